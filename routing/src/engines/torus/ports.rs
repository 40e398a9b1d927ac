//! Turns headings into ports.
use crate::Subnet;
use crate::engines::filling;
use crate::tables::Tables;

use super::grid::{Grid, Sense};
use super::heading::Heading;
use super::trees::TorusTrees;

/// The ports of each router by heading: parallel cables, by rising port.
#[derive(Debug, Clone)]
pub(super) struct HeadingPorts {
    /// `first[6 * router + heading]..` of the next are places in `ports`.
    first: Vec<u32>,
    ports: Vec<u8>,
    has_parallel: bool,
}

impl HeadingPorts {
    /// The ports of a grid's living cables.
    pub(super) fn new(grid: &Grid, subnet: &Subnet) -> Self {
        let topology = &subnet.topology;
        let routers = topology.xbar_count() as u32;
        let mut all = Self {
            first: Vec::with_capacity(6 * routers as usize + 1),
            ports: Vec::new(),
            has_parallel: false,
        };
        let dimensions = grid.dimensions().len();
        for router in 0..routers {
            for heading in Heading::ALL {
                all.first.push(all.ports.len() as u32);
                if heading.dimension() < dimensions {
                    let way = if heading.is_plus() { Sense::Plus } else { Sense::Minus };
                    let channels = grid.channels(router, heading.dimension(), way).iter();
                    let living = channels.filter(|&&channel| !topology.is_dead(channel));
                    all.ports.extend(living.map(|&channel| topology.tail(channel).port));
                    let first = all.first.last().map_or(0, |&first| first as usize);
                    all.has_parallel |= all.ports.len() > first + 1;
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

    /// The tables that follow the headings. Parallel cables take turns for the hosts that they lead to. A
    /// port that was in force stays if it is one of these cables'.
    pub(super) fn tables(&self, subnet: &Subnet, trees: &TorusTrees, previous: Option<&Tables>) -> Tables {
        let destinations = &subnet.destinations;
        let routers = subnet.topology.xbar_count();
        let first_ports = self.first_ports();
        filling::by_block(subnet, |destination, block| {
            let column = trees.column(destination);
            let (own, of_hosts) = block.split_at_mut(routers);
            for ((port, &cell), first) in own.iter_mut().zip(column).zip(first_ports.chunks_exact(8)) {
                *port = first[usize::from(cell & 7)];
            }
            if let Some(previous) = previous.filter(|_| self.has_parallel) {
                let before = previous.of_slot(destinations.slot_of_xbar(destination));
                self.share(column, 0, Some(before), own);
            }
            for (slot, ports) in destinations.host_slots_of(destination).zip(of_hosts.chunks_mut(routers)) {
                ports.copy_from_slice(own);
                if self.has_parallel {
                    // Only hosts are counted, so that cables also take turns if each router has one host.
                    let rank = (slot - destination) as usize;
                    self.share(column, rank, previous.map(|tables| tables.of_slot(slot)), ports);
                }
                ports[destination as usize] = subnet.port_of_slot(slot);
            }
        })
    }

    /// The first port of each heading, with eight places for each router, of which the last two are empty.
    fn first_ports(&self) -> Vec<u8> {
        let routers = (self.first.len() / 6) as u32;
        let of = |router: u32| {
            let port = move |index: u8| {
                let heading = Heading::from_index(index)?;
                self.of(router, heading).first().copied()
            };
            (0..8).map(move |index| port(index).unwrap_or(Tables::NONE))
        };
        (0..routers).flat_map(of).collect()
    }

    /// Takes one of the parallel cables: the one that was taken before, or else the next in turn.
    fn share(&self, column: &[u8], rank: usize, before: Option<&[u8]>, ports: &mut [u8]) {
        for (router, (port, &cell)) in ports.iter_mut().zip(column).enumerate() {
            let Some(heading) = Heading::from_index(cell & 7) else { continue };
            let all = self.of(router as u32, heading);
            let kept = before.map(|before| before[router]).filter(|port| all.contains(port));
            if let Some(shared) = kept.or_else(|| all.get(rank % all.len().max(1)).copied()) {
                *port = shared;
            }
        }
    }
}
