//! Tori and meshes of the generator, whole and broken, for tests.

use mapper_fabric::generate;
use mapper_proto::map::{Fabric, PortRef};

use crate::engines::{Routing, Settings};
use crate::tables::{SlotEnd, Tables};
use crate::{Attachment, Far, Subnet, UnionProof};

use super::grid::{Dimension, Grid};
use super::lattice::Lattice;
use super::regions::Regions;
use super::rules::{Aim, choose};

/// A grid of the generator, and what is broken in it.
#[derive(Clone)]
pub(super) struct Broken {
    pub(super) fabric: Fabric,
    dimensions: Vec<Dimension>,
}

impl Broken {
    /// A torus or mesh: size and whether it is a ring, by dimension.
    pub(super) fn new(dimensions: &[(u8, bool)], hosts: u8) -> Self {
        let of = |ring| {
            let size = |(name, (size, _)): (&str, &(u8, bool))| format!("{name}={size}");
            let sizes: Vec<_> = ["x", "y", "z"].into_iter().zip(dimensions).map(size).collect();
            let kind = if ring { "torus" } else { "mesh" };
            generate(&format!("{kind}:{},hosts={hosts}", sizes.join(","))).unwrap()
        };
        let mut all = Self {
            fabric: of(true),
            dimensions: dimensions
                .iter()
                .map(|&(size, ring)| Dimension { size, is_ring: ring && size > 2 })
                .collect(),
        };
        for (i, &(size, ring)) in dimensions.iter().enumerate() {
            if !ring && size > 2 {
                // In a mesh, the cables that would close the rings are removed. They leave the last xbar
                // upwards.
                let plus = 2 * i as u8 + 1;
                let places: Vec<_> = (0..all.fabric.map.xbars.len() as u32).map(|x| all.place(x)).collect();
                let closes = |end: PortRef| end.port == plus && places[end.xbar as usize][i] + 1 == size;
                all.fabric.map.cables.retain(|cable| !closes(cable.a) && !closes(cable.b));
            }
        }
        all
    }

    /// An xbar's coordinates.
    pub(super) fn place(&self, xbar: u32) -> [u8; 3] {
        let mut rest = xbar;
        let mut place = [0; 3];
        for (at, dimension) in place.iter_mut().zip(&self.dimensions) {
            *at = (rest % u32::from(dimension.size)) as u8;
            rest /= u32::from(dimension.size);
        }
        place
    }

    /// The xbar at a place.
    pub(super) fn at(&self, place: [u8; 3]) -> u32 {
        let digits = place.iter().zip(&self.dimensions).rev();
        digits.fold(0, |index, (&at, d)| index * u32::from(d.size) + u32::from(at))
    }

    /// The grid without the cable that leads from a place in a direction ("x+" to "z-").
    pub(super) fn cut(mut self, place: [u8; 3], heading: &str) -> Self {
        let xbar = self.at(place);
        let port = 1 + ["x+", "x-", "y+", "y-", "z+", "z-"].iter().position(|&h| h == heading).unwrap() as u8;
        let before = self.fabric.map.cables.len();
        let there = |end: PortRef| end.xbar == xbar && end.port == port;
        self.fabric.map.cables.retain(|cable| !there(cable.a) && !there(cable.b));
        assert_eq!(self.fabric.map.cables.len() + 1, before, "no cable {heading} at {place:?}");
        self
    }

    /// Removes a cable by its number.
    pub(super) fn cut_cable(&mut self, cable: usize) {
        self.fabric.map.cables.remove(cable);
    }

    /// Removes the cables and hosts of an xbar.
    pub(super) fn cut_xbar(&mut self, xbar: u32) {
        self.fabric.map.cables.retain(|cable| cable.a.xbar != xbar && cable.b.xbar != xbar);
        for host in &mut self.fabric.map.hosts {
            host.at = host.at.filter(|at| at.xbar != xbar);
        }
    }

    pub(super) fn subnet(&self) -> Subnet {
        Subnet::new(&self.fabric, None).unwrap()
    }

    pub(super) fn grid(&self, subnet: &Subnet) -> Grid {
        let places = (0..subnet.topology.xbar_count() as u32).map(|xbar| self.place(xbar)).collect();
        Grid::from_parts(&subnet.topology, &self.dimensions, places).unwrap()
    }

    pub(super) fn lattice(&self) -> Lattice {
        let subnet = self.subnet();
        Lattice::new(&self.grid(&subnet), &subnet.topology)
    }

    /// What the rules choose from one place to another, datelines being where coordinates wrap.
    pub(super) fn choose(&self, from: [u8; 3], to: [u8; 3]) -> String {
        let lattice = self.lattice();
        let regions = Regions::new(&lattice, None);
        let chosen = choose(&lattice, &regions, self.at(from), &Aim::router(to));
        chosen.map_or_else(|| "none".to_owned(), |heading| heading.to_string())
    }

    /// Routes the grid with the axes as they are.
    pub(super) fn route(&self, settings: &Settings) -> Result<(Subnet, Routing), String> {
        let subnet = self.subnet();
        let grid = self.grid(&subnet);
        let routing = super::engine::compute_as_named(&subnet, settings, &grid)
            .map_err(|error| error.why.to_string())?;
        Ok((subnet, routing))
    }
}

/// What was found of tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    /// Pairs of hosts that cables join.
    pub(super) pairs: usize,
    /// Steps from xbar to xbar of all their routes.
    pub(super) steps: usize,
    /// How many steps shortest routes would take.
    pub(super) shortest: usize,
    /// Routes over the busiest channel.
    pub(super) busiest: usize,
    pub(super) layers: u8,
}

/// Follows every route of one host to another and searches the layers for circles, trusting nothing.
pub(super) fn prove(subnet: &Subnet, routing: &Routing) -> Figures {
    let topology = &subnet.topology;
    let mut unions = vec![UnionProof::new(topology); usize::from(routing.layers.count)];
    let mut loads = vec![0; topology.channel_count()];
    let mut figures = Figures { layers: routing.layers.count, ..Figures::default() };
    let mut used = vec![false; usize::from(routing.layers.count)];
    let hosts: Vec<_> = (0..topology.host_count() as u32)
        .filter(|&host| matches!(topology.attachment(host), Attachment::Port(_)))
        .collect();
    for &to in &hosts {
        let end = subnet.xbar_of_host(to).unwrap();
        let steps_to = steps(subnet, end);
        for start in (0..topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar)) {
            let senders = topology.hosts_of(start).iter().filter(|&&host| host != to).count();
            let living = matches!(topology.attachment(topology.hosts_of(start)[0]), Attachment::Port(_));
            if topology.component(start) != topology.component(end) || senders == 0 || !living {
                continue;
            }
            let layer = usize::from(routing.layers.of(start, end));
            let route = follow(subnet, &routing.tables, start, to);
            used[layer] |= !route.is_empty();
            route.iter().for_each(|&channel| loads[channel as usize] += senders);
            route.windows(2).for_each(|pair| unions[layer].add_dependency(pair[0], pair[1]));
            figures.pairs += senders;
            figures.steps += senders * route.len();
            figures.shortest += senders * steps_to[start as usize];
        }
    }
    for union in &unions {
        union.prove_acyclic().unwrap();
    }
    figures.busiest = loads.into_iter().max().unwrap_or_default();
    figures
}

/// The channels of the route from an xbar to a host, which must end there.
fn follow(subnet: &Subnet, tables: &Tables, start: u32, to: u32) -> Vec<u32> {
    let topology = &subnet.topology;
    let slot = subnet.destinations.slots_of_host(to).start;
    assert_eq!(subnet.destinations.end(slot), SlotEnd::Host { host: to, path: 0 });
    let mut route = Vec::new();
    let mut at = start;
    loop {
        let port = tables.port(at, slot);
        match topology.far(PortRef { xbar: at, port }) {
            Far::Host(host) => {
                assert_eq!(host, to, "frames from xbar {start} end at a wrong host");
                return route;
            }
            Far::Nothing => panic!("no route from xbar {start} to host {to}, at xbar {at}"),
            Far::Channel(channel) => {
                route.push(channel);
                at = topology.head(channel).xbar;
                assert!(route.len() <= topology.xbar_count(), "a loop from xbar {start} to host {to}");
            }
        }
    }
}

/// Steps from each xbar to one.
fn steps(subnet: &Subnet, end: u32) -> Vec<usize> {
    let topology = &subnet.topology;
    let mut steps = vec![usize::MAX; topology.xbar_count()];
    steps[end as usize] = 0;
    let mut queue = std::collections::VecDeque::from([end]);
    while let Some(xbar) = queue.pop_front() {
        for channel in topology.channels_of(xbar) {
            let next = topology.head(channel).xbar as usize;
            if steps[next] == usize::MAX {
                steps[next] = steps[xbar as usize] + 1;
                queue.push_back(next as u32);
            }
        }
    }
    steps
}
