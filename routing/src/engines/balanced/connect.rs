//! Routes between roots, which go down to a hub and up again.
//!
//! Up*/down* has no way from one root to another. A way down and up again is safe if no channel can come to
//! wait for itself. So some xbars become *hubs*, where frames may turn from down to up, one by one from the
//! lowest, each only if the dependencies of all legal turns and those at the hubs have no cycle (Dally and
//! Seitz, "Deadlock-free message routing in multiprocessor interconnection networks", 1987).

use mapper_proto::map::PortRef;

use super::ranks::Order;
use crate::engines::acyclic::AcyclicGraph;
use crate::{Far, Subnet, Tables, Topology};

/// Most xbars that are tried as hubs.
const MOST_TRIED: usize = 32;

/// Adds entries by which the roots reach each other. Returns how many pairs still do not.
pub(super) fn connect(subnet: &Subnet, order: &Order, roots: &[u32], tables: &mut Tables) -> usize {
    let topology = &subnet.topology;
    let mut lowest: Vec<u32> = (0..topology.xbar_count() as u32).collect();
    lowest.sort_by_key(|&xbar| std::cmp::Reverse(order.place(xbar)));
    let mut turns = HubTurns::new(topology, order);
    let mut apart = count_apart(subnet, roots, tables);
    for hub in lowest.into_iter().take(MOST_TRIED) {
        if apart == 0 {
            break;
        }
        if !turns.make_hub(hub) {
            continue;
        }
        for &root in roots {
            for slot in subnet.destinations.slots_of(root) {
                turns.extend(root, slot, tables);
            }
        }
        apart = count_apart(subnet, roots, tables);
    }
    apart
}

/// How many pairs of roots that cables join have no route.
fn count_apart(subnet: &Subnet, roots: &[u32], tables: &Tables) -> usize {
    let topology = &subnet.topology;
    let apart = |from: u32, to: u32| {
        from != to
            && topology.component(from) == topology.component(to)
            && tables.port(from, subnet.destinations.slot_of_xbar(to)) == Tables::NONE
    };
    roots.iter().map(|&to| roots.iter().filter(|&&from| apart(from, to)).count()).sum()
}

/// The turns that frames may take: never up after down, except at hubs.
struct HubTurns<'a> {
    topology: &'a Topology,
    order: &'a Order,
    is_hub: Vec<bool>,
    /// Which channel is waited for while which is held, by all turns that frames may take.
    dependencies: AcyclicGraph,
}

impl<'a> HubTurns<'a> {
    /// The turns of an order without hubs.
    fn new(topology: &'a Topology, order: &'a Order) -> Self {
        let is_hub = vec![false; topology.xbar_count()];
        let dependencies = AcyclicGraph::in_order(&places_of_channels(topology, order));
        let mut turns = Self { topology, order, is_hub, dependencies };
        for xbar in 0..topology.xbar_count() as u32 {
            let legal = turns.turns_at(xbar).filter(|&(held, wanted)| turns.allows(held, wanted));
            for (held, wanted) in legal.collect::<Vec<_>>() {
                let keeps_to_order = turns.dependencies.insert(held, wanted);
                debug_assert!(keeps_to_order, "frames that go up and then down keep to the order");
            }
        }
        turns
    }

    /// Makes an xbar a hub, unless that would close a circle. Returns whether it is one.
    fn make_hub(&mut self, xbar: u32) -> bool {
        let opened: Vec<(u32, u32)> =
            self.turns_at(xbar).filter(|&(held, wanted)| !self.allows(held, wanted)).collect();
        let fits = opened.iter().position(|&(held, wanted)| !self.dependencies.insert(held, wanted));
        if let Some(refused) = fits {
            for &(held, wanted) in &opened[..refused] {
                self.dependencies.remove(held, wanted);
            }
        }
        self.is_hub[xbar as usize] = fits.is_none();
        fits.is_none()
    }

    /// All turns at an xbar that do not lead back to where the frame came from, as held and wanted channel.
    fn turns_at(&self, xbar: u32) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let Self { topology, .. } = *self;
        let onward = move || topology.channels_of(xbar).filter(|&channel| is_usable(topology, channel));
        onward().flat_map(move |back| {
            let held = topology.reverse(back);
            onward()
                .filter(move |&wanted| !comes_back(topology, held, wanted))
                .map(move |wanted| (held, wanted))
        })
    }

    fn climbs(&self, channel: u32) -> bool {
        climbs(self.topology, self.order, channel)
    }

    /// Whether frames may go on by a channel that begins where another ends.
    fn may_turn(&self, held: u32, wanted: u32) -> bool {
        !comes_back(self.topology, held, wanted) && self.allows(held, wanted)
    }

    /// Whether a turn that does not lead back is legal by the order, or at a hub.
    fn allows(&self, held: u32, wanted: u32) -> bool {
        let at = self.topology.head(held).xbar;
        self.climbs(held) || !self.climbs(wanted) || self.is_hub[at as usize]
    }

    /// Gives xbars without a route to a slot one that leads on to xbars that have one, by turns that are
    /// allowed.
    fn extend(&self, to: u32, slot: u32, tables: &mut Tables) {
        let xbars = self.topology.xbar_count() as u32;
        let mut queue: Vec<u32> =
            (0..xbars).filter(|&xbar| xbar == to || tables.port(xbar, slot) != Tables::NONE).collect();
        let mut next = 0;
        while let Some(&xbar) = queue.get(next) {
            next += 1;
            let onward = match self.topology.far(PortRef { xbar, port: tables.port(xbar, slot) }) {
                Far::Channel(channel) if xbar != to => Some(channel),
                _ => None,
            };
            for back in self.topology.channels_of(xbar).filter(|&channel| is_usable(self.topology, channel)) {
                let channel = self.topology.reverse(back);
                let from = self.topology.tail(channel);
                let is_open = from.xbar != to && tables.port(from.xbar, slot) == Tables::NONE;
                if is_open && onward.is_none_or(|onward| self.may_turn(channel, onward)) {
                    tables.set_port(from.xbar, slot, from.port);
                    queue.push(from.xbar);
                }
            }
        }
    }
}

/// Whether frames may take a channel.
fn is_usable(topology: &Topology, channel: u32) -> bool {
    !topology.is_dead(channel) && topology.tail(channel).xbar != topology.head(channel).xbar
}

/// Whether a channel leads to the xbar that another one comes from.
fn comes_back(topology: &Topology, held: u32, wanted: u32) -> bool {
    topology.head(wanted).xbar == topology.tail(held).xbar
}

fn climbs(topology: &Topology, order: &Order, channel: u32) -> bool {
    order.climbs(topology.tail(channel).xbar, topology.head(channel).xbar)
}

/// Each channel's place in an order that legal turns keep to: first the channels up, from the end of the order of xbars to
/// its beginning, then those down.
fn places_of_channels(topology: &Topology, order: &Order) -> Vec<u32> {
    let place = |channel: &u32| {
        let (place, climbs) = (order.place(topology.tail(*channel).xbar), climbs(topology, order, *channel));
        (!climbs, if climbs { u32::MAX - place } else { place }, *channel)
    };
    let mut channels: Vec<u32> = (0..topology.channel_count() as u32).collect();
    channels.sort_unstable_by_key(place);
    let mut places = vec![0; channels.len()];
    for (place, channel) in (0..).zip(channels) {
        places[channel as usize] = place;
    }
    places
}
