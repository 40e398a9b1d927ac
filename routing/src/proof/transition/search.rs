//! The search for slots that may change in any order.

use mapper_proto::map::PortRef;

use super::frame_layers::{FrameLayers, LayerSet};
use super::{Former, Transition};
use crate::host_routes::bits;
use crate::proof::UnionProof;
use crate::tables::{Layers, SlotEnd};
use crate::{Far, Subnet, Tables};

/// The dependencies of each layer, by its number.
type Unions<'a> = Vec<UnionProof<'a>>;

/// What is known to close no circle yet, and what was found of slots that were looked at.
pub(super) struct CircleSearch<'a> {
    subnet: &'a Subnet,
    /// The new tables, and all old ones, those in force first.
    tables: Vec<&'a Tables>,
    frame_layers: FrameLayers<'a>,
    /// The xbars where frames begin.
    leaves: Vec<u32>,
    /// All dependencies that may be there while entries change.
    unions: Unions<'a>,
    /// Of each channel, the number of the last search that passed it, and in which layers.
    passed: Vec<(u32, LayerSet)>,
    searches: u32,
    pub(super) found: Transition,
}

impl<'a> CircleSearch<'a> {
    /// Begins with the dependencies of frames by the new tables, or, where these close a circle that comes in the end in any
    /// order of writing, of those by entries that stay; `None` if even these close one.
    pub(super) fn new(
        subnet: &'a Subnet,
        former: Former<'a>,
        (new, layers): (&'a Tables, &'a Layers),
        (slots, changed): (&[u32], &[u32]),
    ) -> Option<Self> {
        let frame_layers = FrameLayers::new(layers, former.layers);
        let xbars = 0..subnet.topology.xbar_count() as u32;
        let mut search = Self {
            subnet,
            tables: std::iter::once(new).chain(former.tables.iter().copied()).collect(),
            frame_layers,
            leaves: xbars.filter(|&xbar| subnet.is_leaf(xbar)).collect(),
            unions: vec![UnionProof::new(&subnet.topology); frame_layers.count()],
            passed: vec![(0, 0); subnet.topology.channel_count()],
            searches: 0,
            found: Transition::default(),
        };
        let mut unions = search.unions.clone();
        // Entries that stay as they are still pass frames that are under way by tables from before, so they count.
        let all = search.tables.clone();
        let tables = if former.tables.len() > 1 { &all[..] } else { &all[..1] };
        let stays = |slot: &&u32| changed.binary_search(slot).is_err();
        slots.iter().filter(stays).for_each(|&slot| search.add(&mut unions, slot, tables));
        let mut wider = unions.clone();
        changed.iter().for_each(|&slot| search.add(&mut wider, slot, &[new]));
        if are_acyclic(&wider) {
            return Some(Self { unions: wider, ..search });
        }
        let kept = entries_kept(search.tables[1], new);
        changed.iter().for_each(|&slot| search.add(&mut unions, slot, &[&kept]));
        are_acyclic(&unions).then_some(Self { unions, ..search })
    }

    /// Lets slots change in any order if that closes no circle, or if it closes none without the entries that may come last;
    /// otherwise as many of them as a search by halves finds.
    pub(super) fn settle(&mut self, slots: &[u32]) {
        let tables = self.tables.clone();
        let mut trial = self.unions.clone();
        for &slot in slots {
            self.add(&mut trial, slot, &tables);
        }
        if are_acyclic(&trial) {
            self.unions = trial;
            return;
        }
        let last: Vec<Vec<u32>> = slots.iter().map(|&slot| self.changed_beside_routes(slot)).collect();
        if last.iter().any(|xbars| !xbars.is_empty()) {
            let mut trial = self.unions.clone();
            for (&slot, last) in slots.iter().zip(&last) {
                self.add_but(&mut trial, slot, &tables, last);
            }
            if are_acyclic(&trial) {
                self.unions = trial;
                let entries = slots.iter().zip(last);
                self.found
                    .last
                    .extend(entries.flat_map(|(&slot, last)| last.into_iter().map(move |xbar| (slot, xbar))));
                return;
            }
        }
        if let [slot] = slots {
            self.found.emptied_first.push(*slot);
        } else {
            let (one, other) = slots.split_at(slots.len() / 2);
            self.settle(one);
            self.settle(other);
        }
    }

    /// The xbars whose entry for a slot changes, and which no host's frames pass by the new tables.
    fn changed_beside_routes(&mut self, slot: u32) -> Vec<u32> {
        let (new, in_force) = (self.tables[0], self.tables[1]);
        self.walk(slot, &[new], &[], |_, _, _| {});
        let topology = &self.subnet.topology;
        let is_used = |channel: u32| self.passed[channel as usize].0 == self.searches;
        let is_passed = |xbar: u32| {
            let mut out = topology.channels_of(xbar);
            self.subnet.is_leaf(xbar) || out.any(|channel| is_used(topology.reverse(channel)))
        };
        let changes = |&xbar: &u32| new.port(xbar, slot) != in_force.port(xbar, slot);
        (0..topology.xbar_count() as u32).filter(changes).filter(|&xbar| !is_passed(xbar)).collect()
    }

    /// Adds all dependencies that frames of a slot could make, if each xbar goes by any of some tables.
    fn add(&mut self, unions: &mut Unions<'a>, slot: u32, tables: &[&Tables]) {
        self.add_but(unions, slot, tables, &[]);
    }

    /// The same, if some xbars do not go by the first of these tables.
    fn add_but(&mut self, unions: &mut Unions<'a>, slot: u32, tables: &[&Tables], but: &[u32]) {
        self.walk(slot, tables, but, |layers, channel, after| {
            bits(layers.into()).for_each(|layer| unions[layer].add_dependency(channel, after));
        });
    }

    /// Tells of each channel that frames of a slot could wait in, each that they could wait for there, and in which layers.
    /// It may tell of the same several times, with other layers.
    fn walk(&mut self, slot: u32, tables: &[&Tables], but: &[u32], mut tell: impl FnMut(LayerSet, u32, u32)) {
        self.searches += 1;
        let (subnet, frame_layers) = (self.subnet, self.frame_layers);
        let end = match subnet.destinations.end(slot) {
            SlotEnd::Xbar(xbar) => Some(xbar),
            SlotEnd::Host { host, .. } => subnet.xbar_of_host(host),
        };
        // Nothing leads to a host without a cable.
        let Some(end) = end else { return };
        let onward = |xbar: u32| {
            let tables = if but.binary_search(&xbar).is_ok() { &tables[1..] } else { tables };
            tables.iter().filter_map(move |table| channel_of(subnet, table, xbar, slot))
        };
        let begin = |&leaf: &u32| onward(leaf).map(move |channel| (channel, frame_layers.of(leaf, end)));
        let mut next: Vec<(u32, LayerSet)> = self.leaves.iter().flat_map(begin).collect();
        while let Some((channel, layers)) = next.pop() {
            let (search, passed) = &mut self.passed[channel as usize];
            let before = if *search == self.searches { *passed } else { 0 };
            let more = layers & !before;
            (*search, *passed) = (self.searches, before | layers);
            if more == 0 {
                continue;
            }
            for after in onward(subnet.topology.head(channel).xbar) {
                tell(more, channel, after);
                next.push((after, more));
            }
        }
    }
}

/// The entries that are the same in two tables.
fn entries_kept(one: &Tables, other: &Tables) -> Tables {
    let mut kept = one.clone();
    for slot in 0..one.slot_count() as u32 {
        for xbar in
            (0..one.xbar_count() as u32).filter(|&xbar| one.port(xbar, slot) != other.port(xbar, slot))
        {
            kept.set_port(xbar, slot, Tables::NONE);
        }
    }
    kept
}

fn are_acyclic(unions: &Unions<'_>) -> bool {
    unions.iter().all(|union| union.prove_acyclic().is_ok())
}

/// The channel that a table sends frames of a slot through, if it leads to another xbar.
fn channel_of(subnet: &Subnet, table: &Tables, xbar: u32, slot: u32) -> Option<u32> {
    let port = table.port(xbar, slot);
    match subnet.topology.far(PortRef { xbar, port }) {
        Far::Channel(channel) if port != Tables::NONE => Some(channel),
        _ => None,
    }
}
