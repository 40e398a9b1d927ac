//! How to get from tables in force to new ones, so that no mixture of both can deadlock.

use mapper_proto::map::PortRef;

use super::UnionProof;
use crate::tables::{Layers, SlotEnd};
use crate::{Far, Subnet, Tables};

/// The slots whose old entries are to be emptied, wherever new ones differ, before any other entry changes.
///
/// Switches take their new entries one by one, so for a while each may go by either table. Of such a mixture, every
/// dependency of a channel on the next counts that frames of a slot could make by any choice of old and new entries;
/// loops show as circles, too. What closes no circle together with all new dependencies may change in any order. All other
/// slots are emptied first: an empty entry drops frames, and makes no dependency. Then
///
/// - until all of them are empty, what is in force is a part of the old tables;
/// - while others change, it is what was searched here for circles;
/// - and while emptied ones are filled, it is a part of the new tables.
///
/// As in [`prove_tables`](super::prove_tables), frames begin at xbars with hosts, and those to xbars' own addresses do not
/// count. If the new tables have several layers, all that changes is emptied first, since nobody knows the layers of frames
/// that go by old entries.
pub fn emptied_first(subnet: &Subnet, old: &Tables, new: &Tables, layers: &Layers) -> Vec<u32> {
    let is_host = |slot: &u32| matches!(subnet.destinations.end(*slot), SlotEnd::Host { .. });
    let slots: Vec<u32> = (0..new.slot_count() as u32).filter(is_host).collect();
    // What leads nowhere yet makes no dependency.
    let changes = |slot: &u32| {
        let mut pairs = old.of_slot(*slot).iter().zip(new.of_slot(*slot));
        pairs.any(|(&old, new)| old != Tables::NONE && old != *new)
    };
    let changed: Vec<u32> = slots.iter().copied().filter(changes).collect();
    if changed.is_empty() || layers.count > 1 {
        return changed;
    }
    let mut transition = Transition {
        subnet,
        tables: [old, new],
        union: UnionProof::new(&subnet.topology),
        visited: vec![0; subnet.topology.channel_count()],
        visits: 0,
        emptied: Vec::new(),
    };
    let mut union = UnionProof::new(&subnet.topology);
    for &slot in &slots {
        transition.add(&mut union, slot, &[new]);
    }
    transition.union = union;
    transition.settle(&changed);
    transition.emptied.sort_unstable();
    transition.emptied
}

struct Transition<'a> {
    subnet: &'a Subnet,
    tables: [&'a Tables; 2],
    /// All dependencies that may be there while entries change.
    union: UnionProof<'a>,
    /// The number of the last search that passed each channel.
    visited: Vec<u32>,
    visits: u32,
    emptied: Vec<u32>,
}

impl<'a> Transition<'a> {
    /// Lets slots change in any order if that closes no circle; otherwise as many of them as a search by halves finds.
    fn settle(&mut self, slots: &[u32]) {
        let (mut trial, tables) = (self.union.clone(), self.tables);
        for &slot in slots {
            self.add(&mut trial, slot, &tables);
        }
        if trial.prove_acyclic().is_ok() {
            self.union = trial;
        } else if let [slot] = slots {
            self.emptied.push(*slot);
        } else {
            let (one, other) = slots.split_at(slots.len() / 2);
            self.settle(one);
            self.settle(other);
        }
    }

    /// Adds all dependencies that frames of a slot could make, if each xbar goes by any of some tables.
    fn add(&mut self, union: &mut UnionProof<'a>, slot: u32, tables: &[&Tables]) {
        self.visits += 1;
        let topology = &self.subnet.topology;
        let onward = |xbar: u32| {
            let ports = tables.iter().map(move |table| table.port(xbar, slot));
            ports.filter_map(move |port| match topology.far(PortRef { xbar, port }) {
                Far::Channel(channel) if port != Tables::NONE => Some(channel),
                _ => None,
            })
        };
        let leaves = (0..topology.xbar_count() as u32).filter(|&xbar| self.subnet.is_leaf(xbar));
        let mut next: Vec<u32> = leaves.flat_map(onward).collect();
        while let Some(channel) = next.pop() {
            if std::mem::replace(&mut self.visited[channel as usize], self.visits) == self.visits {
                continue;
            }
            for after in onward(topology.head(channel).xbar) {
                union.add_dependency(channel, after);
                next.push(after);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use proptest::prelude::*;

    use super::*;
    use crate::engines::{Engine, Settings};
    use crate::proof::{ProofRules, TableViolation, prove_tables};

    fn tables(subnet: &Subnet, engine: Engine, settings: &Settings) -> Tables {
        engine.compute(subnet, settings).unwrap().tables
    }

    /// A ring whose routes never cross one of its cables: that behind this xbar.
    fn ring_cut_at(subnet: &Subnet, cut: u32) -> Tables {
        let count = subnet.topology.xbar_count() as u32;
        let mut tables = Tables::empty(count as usize, subnet.destinations.slot_count());
        for to in 0..count {
            for slot in subnet.destinations.slots_of(to) {
                for xbar in 0..count {
                    let along = |xbar: u32| (xbar + count - cut - 1) % count;
                    let next = match along(xbar).cmp(&along(to)) {
                        std::cmp::Ordering::Less => (xbar + 1) % count,
                        std::cmp::Ordering::Greater => (xbar + count - 1) % count,
                        std::cmp::Ordering::Equal => {
                            tables.set_port(xbar, slot, subnet.port_of_slot(slot));
                            continue;
                        }
                    };
                    let out = subnet.topology.channels_of(xbar);
                    let channel =
                        out.into_iter().find(|&out| subnet.topology.head(out).xbar == next).unwrap();
                    tables.set_port(xbar, slot, subnet.topology.tail(channel).port);
                }
            }
        }
        tables
    }

    #[test]
    fn what_stays_or_only_comes_is_not_emptied() {
        let subnet = Subnet::new(&generate("clos:hosts=16,ports=4").unwrap(), None).unwrap();
        let new = tables(&subnet, Engine::Updn, &Settings::default());
        let nothing = Tables::empty(new.xbar_count(), new.slot_count());
        let none: [u32; 0] = [];
        assert_eq!(emptied_first(&subnet, &new, &new, &Layers::single()), none);
        assert_eq!(emptied_first(&subnet, &nothing, &new, &Layers::single()), none);
    }

    #[test]
    fn only_hosts_to_which_several_xbars_turn_round_are_emptied_first() {
        let subnet = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
        let emptied = |from, to| {
            let (old, new) = (ring_cut_at(&subnet, from), ring_cut_at(&subnet, to));
            emptied_first(&subnet, &old, &new, &Layers::single())
        };
        // The cut moves from the cable behind xbar 0 to the next one. On the way to the host of xbar 1 all
        // other xbars turn round, so that frames could go to and fro between two xbars of which one is new.
        // On the way to all other hosts only xbar 1 turns round.
        let of_the_second: Vec<u32> = subnet.destinations.slots_of(1).collect();
        let first = emptied(0, 1);
        assert!(first.len() == 1 && of_the_second.contains(&first[0]), "{first:?}");
        // Three cables on, three xbars turn round to every host.
        assert_eq!(emptied(0, 3).len(), 6);
    }

    proptest! {
        /// Whatever switches took their new entries: what is in force has no loop and no circle.
        #[test]
        fn no_mixture_of_the_tables_of_a_phase_deadlocks(
            (from, to) in (0..6_u32, 0..6_u32),
            phase in 0..3_u8,
            done in prop::collection::vec(any::<bool>(), 6 * 12),
        ) {
            let subnet = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
            let (old, new) = (ring_cut_at(&subnet, from), ring_cut_at(&subnet, to));
            let emptied = emptied_first(&subnet, &old, &new, &Layers::single());
            let mut mixed = old.clone();
            for slot in 0..new.slot_count() as u32 {
                for xbar in 0..6 {
                    let (old, new) = (old.port(xbar, slot), new.port(xbar, slot));
                    let is_emptied = emptied.contains(&slot) && old != new;
                    let empty = if is_emptied { Tables::NONE } else { old };
                    let changed = if is_emptied { Tables::NONE } else { new };
                    let steps = [old, empty, changed, new];
                    let step = usize::from(phase) + usize::from(done[(slot * 6 + xbar) as usize]);
                    mixed.set_port(xbar, slot, steps[step]);
                }
            }
            let rules = ProofRules { max_hops: 64, xbar_destinations: false };
            let proof = prove_tables(&subnet, &mixed, &Layers::single(), &rules);
            let bad = proof.violations.iter().find(|violation| {
                matches!(violation, TableViolation::Deadlock { .. } | TableViolation::Loop { .. })
            });
            prop_assert!(bad.is_none(), "{}", proof);
        }
    }
}
