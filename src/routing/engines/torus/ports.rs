//! Headings become ports.

use rayon::prelude::*;

use crate::routing::Subnet;
use crate::routing::tables::{End, Tables};

use super::grid::{Grid, Way};
use super::heading::Heading;
use super::trees::Trees;

/// The ports of each router by heading: parallel cables, by rising port.
#[derive(Debug, Clone)]
pub(super) struct Ports {
    /// `first[6 * router + heading]..` of the next are places in `ports`.
    first: Vec<u32>,
    ports: Vec<u8>,
}

impl Ports {
    /// The ports of a grid's living cables.
    pub(super) fn new(grid: &Grid, subnet: &Subnet) -> Self {
        let topology = &subnet.topology;
        let routers = topology.xbar_count() as u32;
        let mut all = Self { first: Vec::with_capacity(6 * routers as usize + 1), ports: Vec::new() };
        let dimensions = grid.dimensions().len();
        for router in 0..routers {
            for heading in Heading::ALL {
                all.first.push(all.ports.len() as u32);
                if heading.dimension() < dimensions {
                    let way = if heading.is_plus() { Way::Plus } else { Way::Minus };
                    let channels = grid.channels(router, heading.dimension(), way).iter();
                    let living = channels.filter(|&&channel| !topology.is_dead(channel));
                    all.ports.extend(living.map(|&channel| topology.tail(channel).port));
                }
            }
        }
        all.first.push(all.ports.len() as u32);
        all
    }

    fn of(&self, router: u32, heading: Heading) -> &[u8] {
        let at = 6 * router as usize + heading.index();
        &self.ports[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Tables of the headings. Parallel cables share the hosts that they lead to, in turn. What was in
    /// force before stays if it is among them.
    pub(super) fn tables(&self, subnet: &Subnet, trees: &Trees, previous: Option<&Tables>) -> Tables {
        let destinations = &subnet.destinations;
        let routers = subnet.topology.xbar_count();
        let mut tables = Tables::empty(routers, destinations.slot_count());
        let fits = |tables: &&Tables| {
            tables.xbar_count() == routers && tables.slot_count() == destinations.slot_count()
        };
        let previous = previous.filter(fits);
        let slots = tables.as_mut_slice().par_chunks_mut(routers.max(1)).enumerate().with_min_len(16);
        slots.for_each(|(slot, ports)| {
            let slot = slot as u32;
            let (destination, own) = match destinations.end(slot) {
                End::Xbar(xbar) => (xbar, None),
                End::Host { host, .. } => match subnet.topology.attachment(host) {
                    crate::routing::Attachment::Port(at) => (at.xbar, Some(at.port)),
                    _ => return,
                },
            };
            let before = previous.map(|tables| tables.of_slot(slot));
            // Hosts only are counted, so that those of one router each take turns as well.
            let rank = (slot - destination) as usize;
            for (router, port) in (0..).zip(ports.iter_mut()) {
                let Some(heading) = trees.heading(router, destination) else { continue };
                let all = self.of(router, heading);
                let kept = before.map(|before| before[router as usize]).filter(|port| all.contains(port));
                *port = match all {
                    [only] => *only,
                    all => kept.or_else(|| all.get(rank % all.len().max(1)).copied()).unwrap_or(Tables::NONE),
                };
            }
            if let Some(own) = own {
                ports[destination as usize] = own;
            }
        });
        tables
    }
}
