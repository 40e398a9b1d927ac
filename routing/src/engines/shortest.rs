//! Shortest routes between all xbars, by the least loaded channels.

mod kept;

pub(super) use kept::{KeptTrees, serve as serve_kept};

use super::trees::Trees;
use crate::Subnet;

/// How often all trees are grown again once the loads of all are known, as the first ones were grown when few
/// loads were known.
const ROUNDS: usize = 1;

/// How an xbar chooses among the channels that begin a shortest route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// The least loaded route as a whole; a tree of its own for each address of a host.
    LeastLoadedByHost,
    /// The least loaded route as a whole; one tree for all hosts of an xbar.
    LeastLoaded,
    /// The neighbour behind the first port; parallel cables to it by load. In meshes and cubes whose ports
    /// stand by dimension this is dimension order.
    FirstPort,
}

/// Trees of shortest routes to all xbars.
pub(super) struct ShortestTrees {
    /// The trees: one to each xbar, or one to each address of its hosts.
    pub(super) trees: Trees,
    /// How many pairs of hosts send through the busiest channel.
    pub(super) busiest: u64,
    grown: Vec<Growing>,
    /// How many pairs of hosts send through each channel.
    loads: Vec<u64>,
}

impl ShortestTrees {
    /// Grows the trees one after another; what each puts on the channels counts when the next is grown. Then each is taken
    /// away and grown again among all others. Trees to service adapters, which hardly receive, come last each time, and
    /// those to hosts are grown as if there were none.
    pub(super) fn new(subnet: &Subnet, choice: Choice) -> Self {
        let xbars = subnet.topology.xbar_count();
        let mut trees = Trees::begin(xbars);
        let mut grower = Grower::new(subnet, choice);
        let (hosts, adapters) = grower.plant(&mut trees);
        hosts.iter().chain(&adapters).for_each(|tree| grower.grow(tree, &mut trees, &[]));
        for _ in 0..ROUNDS {
            adapters.iter().for_each(|tree| grower.take_away(tree, &trees));
            for tree in &hosts {
                grower.take_away(tree, &trees);
                grower.grow(tree, &mut trees, &[]);
            }
            adapters.iter().for_each(|tree| grower.grow(tree, &mut trees, &[]));
        }
        let busiest = grower.loads.iter().copied().max().unwrap_or_default();
        Self { trees, busiest, grown: hosts.into_iter().chain(adapters).collect(), loads: grower.loads }
    }

    /// How much routes meet each other: the sum, over all pairs of hosts, of how many pairs send through the
    /// busiest channel of the pair's route. The lower it is, the more bandwidth flows get.
    pub(super) fn crowding(&self, subnet: &Subnet) -> u128 {
        let mut grower = Grower::new(subnet, Choice::LeastLoaded);
        grower.loads.copy_from_slice(&self.loads);
        self.grown.iter().map(|tree| grower.crowding(tree, &self.trees)).sum()
    }
}

/// A tree that is grown.
struct Growing {
    /// Its number among all trees.
    number: u32,
    /// The xbar that it leads to.
    end: u32,
    /// The first slot that it leads to: of a host, or of the xbar itself if that has none.
    slot: u32,
    /// How much a frame along it counts.
    weight: u64,
}

/// Grows tree after tree, and counts the load of each channel.
struct Grower<'a> {
    subnet: &'a Subnet,
    choice: Choice,
    /// How many pairs of hosts send through each channel so far.
    loads: Vec<u64>,
    /// The destination that was searched for last.
    end: Option<u32>,
    /// Hops to it.
    hops: Vec<u32>,
    /// Xbars from near to far.
    reached: Vec<u32>,
    /// The load of the whole route from each xbar, or that of the route's busiest channel.
    costs: Vec<u64>,
    /// Hosts whose frames come by each xbar.
    sources: Vec<u64>,
}

impl<'a> Grower<'a> {
    fn new(subnet: &'a Subnet, choice: Choice) -> Self {
        let xbars = subnet.topology.xbar_count();
        Self {
            subnet,
            choice,
            loads: vec![0; subnet.topology.channel_count()],
            end: None,
            hops: vec![u32::MAX; xbars],
            reached: Vec::with_capacity(xbars),
            costs: vec![0; xbars],
            sources: vec![0; xbars],
        }
    }

    /// Prepares all trees: those that lead to hosts, and those that lead only to service adapters.
    fn plant(&self, trees: &mut Trees) -> (Vec<Growing>, Vec<Growing>) {
        let (mut hosts, mut adapters) = (Vec::new(), Vec::new());
        for end in 0..self.subnet.topology.xbar_count() as u32 {
            let slots = self.subnet.destinations.host_slots_of(end);
            let size = if self.choice == Choice::LeastLoadedByHost { 1 } else { slots.len().max(1) };
            let count = (slots.len() / size).max(1);
            for _ in 0..count {
                trees.add();
            }
            trees.next_destination();
            for (number, start) in trees.to(end).zip(slots.clone().step_by(size).chain([slots.end])) {
                let slots = start..slots.end.min(start + size as u32);
                let weight = slots.len() as u64;
                let leads_to_host = slots.clone().any(|slot| !self.subnet.leads_to_service_adapter(slot));
                let kind = if leads_to_host { &mut hosts } else { &mut adapters };
                let own = self.subnet.destinations.slots_of(end).start;
                let slot = slots.clone().next().unwrap_or(own);
                kind.push(Growing { number, end, slot, weight });
            }
        }
        (hosts, adapters)
    }

    /// Finds the hops from every xbar to a destination, unless it was searched for last.
    fn search(&mut self, end: u32) {
        if self.end.replace(end) == Some(end) {
            return;
        }
        let topology = &self.subnet.topology;
        self.hops.fill(u32::MAX);
        self.hops[end as usize] = 0;
        self.reached.clear();
        self.reached.push(end);
        let mut at = 0;
        while let Some(&xbar) = self.reached.get(at) {
            at += 1;
            for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
                let next = topology.head(channel).xbar;
                if self.hops[next as usize] == u32::MAX {
                    self.hops[next as usize] = self.hops[xbar as usize] + 1;
                    self.reached.push(next);
                }
            }
        }
    }

    /// Grows a tree, and counts what it puts on channels. `kept` is empty or has a port for each xbar; those
    /// of its ports that lead on stay.
    fn grow(&mut self, tree: &Growing, trees: &mut Trees, kept: &[u8]) {
        let &Growing { number, end, weight, .. } = tree;
        self.search(end);
        let ports = trees.ports_mut(number);
        let topology = &self.subnet.topology;
        self.costs[end as usize] = 0;
        let mut chosen = Vec::with_capacity(self.reached.len());
        for &xbar in &self.reached[1..] {
            let stays = kept.get(xbar as usize).and_then(|&port| self.next(xbar, port));
            let Some(channel) = stays.or_else(|| self.choose(xbar)) else { continue };
            let next = topology.head(channel).xbar;
            self.costs[xbar as usize] = self.costs[next as usize] + self.loads[channel as usize];
            ports[xbar as usize] = topology.tail(channel).port;
            chosen.push(channel);
        }
        self.count(&chosen, |load, routes| load + routes * weight);
    }

    /// Takes the load of a tree off the channels.
    fn take_away(&mut self, tree: &Growing, trees: &Trees) {
        let &Growing { number, end, weight, .. } = tree;
        self.search(end);
        let ports = trees.ports(number);
        let next = |&xbar: &u32| self.next(xbar, ports[xbar as usize]);
        let chosen: Vec<u32> = self.reached[1..].iter().filter_map(next).collect();
        self.count(&chosen, |load, routes| load - routes * weight);
    }

    /// The sum, over all routes of a tree, of how many pairs send through the route's busiest channel.
    fn crowding(&mut self, tree: &Growing, trees: &Trees) -> u128 {
        self.search(tree.end);
        let topology = &self.subnet.topology;
        let ports = trees.ports(tree.number);
        let mut all = 0;
        self.costs[tree.end as usize] = 0;
        for at in 1..self.reached.len() {
            let xbar = self.reached[at];
            let Some(channel) = self.next(xbar, ports[xbar as usize]) else { continue };
            let onward = self.costs[topology.head(channel).xbar as usize];
            let busiest = onward.max(self.loads[channel as usize]);
            self.costs[xbar as usize] = busiest;
            let routes = tree.weight * topology.hosts_of(xbar).len() as u64;
            all += u128::from(busiest) * u128::from(routes);
        }
        all
    }

    /// Changes the loads of a tree's channels, which are given from near to far, by the routes over each.
    fn count(&mut self, chosen: &[u32], change: impl Fn(u64, u64) -> u64) {
        let topology = &self.subnet.topology;
        for &xbar in &self.reached {
            self.sources[xbar as usize] = topology.hosts_of(xbar).len() as u64;
        }
        for &channel in chosen.iter().rev() {
            let (from, to) = (topology.tail(channel).xbar, topology.head(channel).xbar);
            let sources = self.sources[from as usize];
            self.sources[to as usize] += sources;
            let load = &mut self.loads[channel as usize];
            *load = change(*load, sources);
        }
    }

    /// The channel that an xbar's frames leave by.
    fn choose(&self, xbar: u32) -> Option<u32> {
        let topology = &self.subnet.topology;
        let next = |channel: u32| topology.head(channel).xbar as usize;
        let nearer = |channel: &u32| {
            !topology.is_dead(*channel) && self.hops[next(*channel)] < self.hops[xbar as usize]
        };
        let mut channels = topology.channels_of(xbar).filter(nearer);
        match self.choice {
            Choice::FirstPort => {
                let first = channels.next()?;
                let parallel = channels.filter(|&channel| next(channel) == next(first));
                std::iter::once(first).chain(parallel).min_by_key(|&channel| self.loads[channel as usize])
            }
            Choice::LeastLoaded | Choice::LeastLoadedByHost => {
                let cost = |channel: u32| self.costs[next(channel)] + self.loads[channel as usize];
                channels.min_by_key(|&channel| cost(channel))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::map::Fabric;
    use proptest::prelude::*;

    use super::*;
    use crate::fabrics::random;
    use crate::{Far, Quality, TableRoutes, walk_tables};

    proptest! {
        /// The crowding is compared with what walking each pair's route gives.
        #[test]
        fn crowding_is_what_the_busiest_channels_of_all_routes_carry(seed: u64) {
            let subnet = Subnet::new(&Fabric { map: random(seed), ..Fabric::default() }, None).unwrap();
            for choice in [Choice::LeastLoadedByHost, Choice::LeastLoaded, Choice::FirstPort] {
                let shortest = ShortestTrees::new(&subnet, choice);
                let tables = shortest.trees.tables(&subnet);
                let loads = Quality::measure(&TableRoutes::new(&subnet, &tables), 1).loads;
                let hosts = 0..subnet.topology.host_count() as u32;
                let mut all = 0.0;
                for (from, to) in hosts.clone().flat_map(|from| hosts.clone().map(move |to| (from, to))) {
                    let slots = subnet.destinations.slots_of_host(to);
                    let Some(hops) = slots.clone().next().and_then(|slot| walk_tables(&subnet, &tables, from, slot))
                    else { continue };
                    let passed = hops.into_iter().filter_map(|hop| match subnet.topology.far(hop) {
                        Far::Channel(channel) => Some(loads[channel as usize]),
                        _ => None,
                    });
                    all += passed.fold(0.0, f64::max);
                }
                prop_assert_eq!(shortest.crowding(&subnet) as f64, all, "{:?}", choice);
            }
        }
    }
}
