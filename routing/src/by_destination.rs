//! Routes by destination, for a fabric whose crossbars forward by the destination. An xbar has several ports
//! for a destination if several ways are equally short.
//!
//! A table of an InfiniBand switch has one port for each destination. IP can have several, and spreads flows over
//! them. So here each xbar has all ports by which legal ways to a destination are shortest.
//!
//! An xbar either *falls* or *rises* towards a destination: it falls if a way that only goes down leads
//! there, and otherwise it rises. A packet that has begun to fall never rises again, so all dependencies are
//! up-up, up-down and down-down, and none closes a circle (Schroeder et al., "Autonet", 1991). Each step is
//! one nearer to the destination, so no packet loops as long as all xbars have routes of one map.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mapper_proto::map::PortRef;

use super::proof::Violation;
use super::{Direction, Orientation, Topology};

/// The most xbars of a fabric that is routed by destination, as each host derives and proves the tables of
/// all xbars.
const MOST_XBARS: usize = 2048;

/// The routes of all xbars to one of them.
#[derive(Debug, Clone)]
struct ToXbar {
    /// Steps from each xbar; `u32::MAX` where no legal way leads there.
    steps: Vec<u32>,
    /// Whether a way that only goes down leads there from each xbar.
    falls: Vec<bool>,
}

/// Which channel may follow which by the destination: an order of the fabric's xbars.
#[derive(Debug)]
pub struct OrderByDestination(Orientation);

impl OrderByDestination {
    /// The order of a fabric's xbars.
    pub fn new(topology: &Topology) -> Self {
        // Direction order depends on what a route has passed, which a table by destination does not know, so
        // it is not used.
        Self(Orientation::by_xbars(topology))
    }

    /// Whether packets that go from one channel to another close no circle with any that keep to this order.
    pub fn allows(&self, (first, second): (u32, u32)) -> bool {
        self.0.allows(first, second)
    }

    /// The turns that packets to an xbar take at another one, each as the channel that they come in by and
    /// one that they may leave by. This takes one search of the fabric.
    pub fn turns(&self, topology: &Topology, at: u32, to: u32) -> Vec<(u32, u32)> {
        let routes = ToXbar::search(topology, &self.0, to);
        let leave = routes.next(topology, &self.0, at);
        let comes = |&channel: &u32| {
            let from = topology.tail(channel).xbar;
            from != to && routes.next(topology, &self.0, from).contains(&channel)
        };
        let arrivals = topology.channels_of(at).map(|channel| topology.reverse(channel)).filter(comes);
        arrivals.flat_map(|arrival| leave.iter().map(move |&out| (arrival, out))).collect()
    }
}

/// Routes by destination, of one xbar, proved together with those of all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHops {
    /// The channels out of the xbar, for each destination xbar. There are none for the xbar itself, and for
    /// destinations to which no way leads.
    channels: Vec<Vec<u32>>,
    /// The most bytes of a frame on the ways to a destination xbar that begin with a channel, where it is less than elsewhere.
    narrow: BTreeMap<(u32, u32), u16>,
}

impl NextHops {
    /// The routes of an xbar. `None` if the fabric is too large. `narrow` are the ports whose cables carry shorter frames than
    /// others, at both ends of each, and how many bytes these may have.
    ///
    /// Routes are derived and proved for all xbars, so that all that derive them from one map agree.
    ///
    /// # Errors
    /// If a proof fails, which is a fault of this program.
    pub fn compute(
        topology: &Topology,
        at: u32,
        narrow: &BTreeMap<PortRef, u16>,
    ) -> Result<Option<Self>, Violation> {
        let count = topology.xbar_count();
        if count > MOST_XBARS || at as usize >= count {
            return Ok(None);
        }
        let OrderByDestination(orientation) = OrderByDestination::new(topology);
        orientation.prove(topology)?;
        let mut hops = Self { channels: Vec::with_capacity(count), narrow: BTreeMap::new() };
        for to in 0..count as u32 {
            let routes = ToXbar::search(topology, &orientation, to);
            routes.prove(topology, &orientation, to)?;
            let next = routes.next(topology, &orientation, at);
            if !narrow.is_empty() {
                let most_bytes = routes.most_bytes(topology, &orientation, narrow);
                let of = |&channel: &u32| Some(((to, channel), most_bytes(channel)?));
                hops.narrow.extend(next.iter().filter_map(of));
            }
            hops.channels.push(next);
        }
        Ok(Some(hops))
    }

    /// The channels by which packets to an xbar may leave, which are equally short.
    pub fn towards(&self, xbar: u32) -> &[u32] {
        self.channels.get(xbar as usize).map_or(&[], Vec::as_slice)
    }

    /// The most bytes of a frame that all ways to an xbar carry which begin with this channel, whichever of them it takes;
    /// `None` if no cable on them carries shorter frames than others.
    pub fn most_bytes(&self, xbar: u32, channel: u32) -> Option<u16> {
        self.narrow.get(&(xbar, channel)).copied()
    }
}

impl ToXbar {
    fn search(topology: &Topology, orientation: &Orientation, to: u32) -> Self {
        let mut steps = vec![u32::MAX; topology.xbar_count()];
        steps[to as usize] = 0;
        // Xbars whose routes only fall are found first, breadth-first from the destination.
        let mut queue = VecDeque::from([to]);
        while let Some(xbar) = queue.pop_front() {
            for from in neighbours(topology, orientation, xbar, Direction::Down) {
                if steps[from as usize] == u32::MAX {
                    steps[from as usize] = steps[xbar as usize] + 1;
                    queue.push_back(from);
                }
            }
        }
        let falls: Vec<bool> = steps.iter().map(|&steps| steps < u32::MAX).collect();
        // Then the search goes on by xbars that rise, the nearest first.
        let reached = (0..).zip(&steps).filter(|&(_, &steps)| steps < u32::MAX);
        let mut front: BTreeSet<(u32, u32)> = reached.map(|(xbar, &steps)| (steps, xbar)).collect();
        while let Some((distance, xbar)) = front.pop_first() {
            for from in neighbours(topology, orientation, xbar, Direction::Up) {
                let before = steps[from as usize];
                if !falls[from as usize] && distance + 1 < before {
                    front.remove(&(before, from));
                    steps[from as usize] = distance + 1;
                    front.insert((distance + 1, from));
                }
            }
        }
        Self { steps, falls }
    }

    /// The channels by which packets leave an xbar.
    fn next(&self, topology: &Topology, orientation: &Orientation, xbar: u32) -> Vec<u32> {
        let at = xbar as usize;
        let (here, wanted) = match self.falls[at] {
            true => (self.steps[at], Direction::Down),
            false => (self.steps[at], Direction::Up),
        };
        let leads_on = |&channel: &u32| {
            let head = topology.head(channel).xbar as usize;
            here < u32::MAX
                && self.steps[head] == here.wrapping_sub(1)
                && orientation.direction(channel) == wanted
                && (self.falls[head] || wanted == Direction::Up)
        };
        topology.channels_of(xbar).filter(leads_on).collect()
    }

    /// The most bytes of a frame on all ways that begin with a channel, where some cable on them is one of the narrow ones.
    fn most_bytes(
        &self,
        topology: &Topology,
        orientation: &Orientation,
        narrow: &BTreeMap<PortRef, u16>,
    ) -> impl Fn(u32) -> Option<u16> {
        let mut nearest_first: Vec<u32> = (0..topology.xbar_count() as u32).collect();
        nearest_first.sort_by_key(|&xbar| self.steps[xbar as usize]);
        let mut most_from: Vec<Option<u16>> = vec![None; topology.xbar_count()];
        let behind = move |most_from: &[Option<u16>], channel: u32| {
            let cable = narrow.get(&topology.tail(channel)).copied();
            cable.into_iter().chain(most_from[topology.head(channel).xbar as usize]).min()
        };
        for xbar in nearest_first {
            let next = self.next(topology, orientation, xbar);
            most_from[xbar as usize] =
                next.into_iter().filter_map(|channel| behind(&most_from, channel)).min();
        }
        move |channel| behind(&most_from, channel)
    }

    /// Proves that packets leave each xbar that has a way by channels that lead nearer, and that no channel
    /// is followed by one that the orientation does not allow behind it.
    fn prove(&self, topology: &Topology, orientation: &Orientation, to: u32) -> Result<(), Violation> {
        for xbar in (0..topology.xbar_count() as u32).filter(|&xbar| xbar != to) {
            for channel in self.next(topology, orientation, xbar) {
                let head = topology.head(channel);
                for next in self.next(topology, orientation, head.xbar) {
                    let nearer = self.steps[head.xbar as usize] < self.steps[xbar as usize];
                    if !nearer || !orientation.allows(channel, next) {
                        return Err(Violation::StepBack { arrival: head, out: topology.tail(next).port });
                    }
                }
            }
        }
        Ok(())
    }
}

/// The xbars from which a channel of this direction leads to an xbar.
fn neighbours(
    topology: &Topology,
    orientation: &Orientation,
    xbar: u32,
    direction: Direction,
) -> impl Iterator<Item = u32> {
    // A channel that leads to this xbar is the reverse of one that leads out of it.
    let leads_here = move |&channel: &u32| orientation.direction(topology.reverse(channel)) == direction;
    topology.channels_of(xbar).filter(leads_here).map(|channel| topology.head(channel).xbar)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fabrics;

    /// Walks from one xbar to another, by ports that the number `choice` selects. Returns how many steps it
    /// took.
    fn walk(topology: &Topology, hops: &[NextHops], from: u32, to: u32, mut choice: usize) -> Option<usize> {
        let mut at = from;
        for steps in 0..=topology.xbar_count() {
            if at == to {
                return Some(steps);
            }
            let channels = hops[at as usize].towards(to);
            let channel = *channels.get(choice % channels.len().max(1))?;
            choice /= channels.len().max(1);
            at = topology.head(channel).xbar;
        }
        panic!("it loops between {from} and {to}")
    }

    fn all(topology: &Topology) -> Vec<NextHops> {
        let xbars = 0..topology.xbar_count() as u32;
        xbars.map(|at| NextHops::compute(topology, at, &BTreeMap::new()).unwrap().unwrap()).collect()
    }

    /// The least bytes of these cables on any way from one xbar to another that begins with this channel.
    fn least_on_ways(
        topology: &Topology,
        hops: &[NextHops],
        (channel, to): (u32, u32),
        narrow: &BTreeMap<PortRef, u16>,
    ) -> Option<u16> {
        let behind = hops[topology.head(channel).xbar as usize].towards(to).iter();
        let behind = behind.filter_map(|&next| least_on_ways(topology, hops, (next, to), narrow));
        narrow.get(&topology.tail(channel)).copied().into_iter().chain(behind).min()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_turns_at_an_xbar_are_those_that_tables_lead_packets_by_and_the_order_allows_all(seed: u64) {
            let topology = Topology::from_map(&fabrics::random(seed)).unwrap();
            let (hops, order) = (all(&topology), OrderByDestination::new(&topology));
            let xbars = 0..topology.xbar_count() as u32;
            for (at, to) in xbars.clone().flat_map(|at| xbars.clone().map(move |to| (at, to))) {
                let mut turns = order.turns(&topology, at, to);
                prop_assert!(turns.iter().all(|&turn| order.allows(turn)));
                let comes = |&channel: &u32| topology.head(channel).xbar == at;
                let arrivals = hops.iter().flat_map(|hops| hops.towards(to)).copied().filter(comes);
                let mut led: Vec<(u32, u32)> = arrivals
                    .flat_map(|arrival| hops[at as usize].towards(to).iter().map(move |&out| (arrival, out)))
                    .collect();
                turns.sort_unstable();
                led.sort_unstable();
                prop_assert_eq!(turns, led);
            }
        }

        #[test]
        fn a_way_carries_what_the_narrowest_cable_does_that_its_packets_may_take(
            seed: u64,
            draw in proptest::collection::vec((any::<prop::sample::Index>(), 1300..1500u16), 1..4),
        ) {
            let topology = Topology::from_map(&fabrics::random(seed)).unwrap();
            let xbars = 0..topology.xbar_count() as u32;
            let channels: Vec<u32> = xbars.clone().flat_map(|xbar| topology.channels_of(xbar)).collect();
            let drawn = draw.iter().filter(|_| !channels.is_empty());
            let narrow: BTreeMap<PortRef, u16> = drawn
                .flat_map(|(index, bytes)| {
                    let channel = *index.get(&channels);
                    [topology.tail(channel), topology.head(channel)].map(|end| (end, *bytes))
                })
                .collect();
            let hops = all(&topology);
            for (at, to) in xbars.clone().flat_map(|at| xbars.clone().map(move |to| (at, to))) {
                let of_at = NextHops::compute(&topology, at, &narrow).unwrap().unwrap();
                prop_assert_eq!(of_at.towards(to), hops[at as usize].towards(to));
                for &channel in of_at.towards(to) {
                    let least = least_on_ways(&topology, &hops, (channel, to), &narrow);
                    prop_assert_eq!(of_at.most_bytes(to, channel), least);
                }
            }
        }

        #[test]
        fn every_choice_leads_from_everywhere_to_everywhere(seed: u64, choice: usize) {
            let topology = Topology::from_map(&fabrics::random(seed)).unwrap();
            let hops = all(&topology);
            for from in 0..topology.xbar_count() as u32 {
                for to in 0..topology.xbar_count() as u32 {
                    let steps = walk(&topology, &hops, from, to, choice);
                    // No legal way need lead between xbars of the upper tier of a Clos that have no hosts.
                    if [from, to].iter().all(|&xbar| !topology.hosts_of(xbar).is_empty()) {
                        let joined = topology.component(from) == topology.component(to);
                        prop_assert_eq!(steps.is_some(), joined);
                    }
                    prop_assert_eq!(steps, walk(&topology, &hops, from, to, 0), "ways are equally long");
                }
            }
        }
    }
}
