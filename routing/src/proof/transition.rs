//! How to get from tables in force to new ones, so that no mixture of both can deadlock.

use mapper_proto::map::PortRef;

use super::UnionProof;
use crate::tables::{Layers, SlotEnd};
use crate::{Far, Subnet, Tables};

/// In which order the entries of new tables may come into force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transition {
    /// Slots whose old entries are to be emptied, wherever new ones differ, before any other entry changes.
    pub emptied_first: Vec<u32>,
    /// Entries, by slot and xbar, that are to change after all others. By the new tables no host's frames pass them, so
    /// nobody waits for them.
    pub last: Vec<(u32, u32)>,
    /// Whether nothing may change before all frames are gone that are under way by tables from before those in force.
    pub must_wait: bool,
}

/// How to get from the tables in force to new ones.
///
/// Switches take their new entries one by one, so for a while each may go by either table. Of such a mixture, every
/// dependency of a channel on the next counts that frames of a slot could make by any choice of old and new entries;
/// loops show as circles, too. What closes no circle together with all new dependencies may change in any order. If some slots
/// do close one, entries that no host's frames pass by the new tables stay as they are until no frame goes by an old entry any
/// more: often they alone close it, as those of a spine that lost its cable to a leaf and would send frames that still
/// come to it round by another leaf. Slots for which that does not do are emptied first: an empty entry drops frames, and makes
/// no dependency. Then
///
/// - until all of them are empty, what is in force is a part of the old tables;
/// - while others change, it is what was searched here for circles;
/// - and while emptied ones are filled and the last ones change, frames go by a part of the new tables.
///
/// Between these three, frames that are under way get the time to arrive. `old` are the tables in force, and then those that
/// were in force so recently that frames may be under way by them. Their frames count as those of the tables in force, but
/// nothing that is emptied now takes them away: where they are in the way, they are to be waited for.
///
/// As in [`prove_tables`](super::prove_tables), frames begin at xbars with hosts, and those to xbars' own addresses do not
/// count. If the new tables have several layers, all that changes is emptied first, since nobody knows the layers of frames
/// that go by old entries.
pub fn transition(subnet: &Subnet, old: &[&Tables], new: &Tables, layers: &Layers) -> Transition {
    let Some((in_force, before)) = old.split_first() else { return Transition::default() };
    let is_host = |slot: &u32| matches!(subnet.destinations.end(*slot), SlotEnd::Host { .. });
    let slots: Vec<u32> = (0..new.slot_count() as u32).filter(is_host).collect();
    // What leads nowhere yet makes no dependency, unless frames come there by tables from before.
    let counts = |old: u8| old != Tables::NONE || !before.is_empty();
    let changes = |slot: &u32| {
        let mut pairs = in_force.of_slot(*slot).iter().zip(new.of_slot(*slot));
        pairs.any(|(&old, &new)| old != new && counts(old))
    };
    let changed: Vec<u32> = slots.iter().copied().filter(changes).collect();
    let Transition { emptied_first, last, .. } = if changed.is_empty() || layers.count > 1 {
        Transition { emptied_first: changed, ..Transition::default() }
    } else {
        in_one_layer(subnet, old, new, (&slots, changed))
    };
    let must_wait = !before.is_empty() && !emptied_first.is_empty();
    Transition { emptied_first, last, must_wait }
}

/// The order for tables in one layer, of whose slots some change.
fn in_one_layer(
    subnet: &Subnet,
    old: &[&Tables],
    new: &Tables,
    (slots, changed): (&[u32], Vec<u32>),
) -> Transition {
    let mut search = Search::new(subnet, old, new);
    let mut union = UnionProof::new(&subnet.topology);
    let all = search.tables.clone();
    for &slot in slots {
        search.add(&mut union, slot, &[new]);
        // What stays as it is still has frames that are under way by tables from before.
        if old.len() > 1 && changed.binary_search(&slot).is_err() {
            search.add(&mut union, slot, &all);
        }
    }
    if union.prove_acyclic().is_err() {
        return Transition { emptied_first: changed, ..Transition::default() };
    }
    search.union = union;
    search.settle(&changed);
    search.found.emptied_first.sort_unstable();
    search.found.last.sort_unstable();
    search.found
}

struct Search<'a> {
    subnet: &'a Subnet,
    /// The new tables, and all old ones, those in force first.
    tables: Vec<&'a Tables>,
    /// All dependencies that may be there while entries change.
    union: UnionProof<'a>,
    /// The number of the last search that passed each channel.
    visited: Vec<u32>,
    visits: u32,
    found: Transition,
}

impl<'a> Search<'a> {
    fn new(subnet: &'a Subnet, old: &[&'a Tables], new: &'a Tables) -> Self {
        Self {
            subnet,
            tables: std::iter::once(new).chain(old.iter().copied()).collect(),
            union: UnionProof::new(&subnet.topology),
            visited: vec![0; subnet.topology.channel_count()],
            visits: 0,
            found: Transition::default(),
        }
    }

    /// Lets slots change in any order if that closes no circle, or if it closes none without the entries that may come last;
    /// otherwise as many of them as a search by halves finds.
    fn settle(&mut self, slots: &[u32]) {
        let tables = self.tables.clone();
        let mut trial = self.union.clone();
        for &slot in slots {
            self.add(&mut trial, slot, &tables);
        }
        if trial.prove_acyclic().is_ok() {
            self.union = trial;
            return;
        }
        let last: Vec<Vec<u32>> = slots.iter().map(|&slot| self.changed_beside_routes(slot)).collect();
        if last.iter().any(|xbars| !xbars.is_empty()) {
            let mut trial = self.union.clone();
            for (&slot, last) in slots.iter().zip(&last) {
                self.add_but(&mut trial, slot, &tables, last);
            }
            if trial.prove_acyclic().is_ok() {
                self.union = trial;
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
        self.walk(slot, &[new], &[], |_, _| {});
        let topology = &self.subnet.topology;
        let is_used = |channel: u32| self.visited[channel as usize] == self.visits;
        let is_passed = |xbar: u32| {
            let mut out = topology.channels_of(xbar);
            self.subnet.is_leaf(xbar) || out.any(|channel| is_used(topology.reverse(channel)))
        };
        let changes = |&xbar: &u32| new.port(xbar, slot) != in_force.port(xbar, slot);
        (0..topology.xbar_count() as u32).filter(changes).filter(|&xbar| !is_passed(xbar)).collect()
    }

    /// Adds all dependencies that frames of a slot could make, if each xbar goes by any of some tables.
    fn add(&mut self, union: &mut UnionProof<'a>, slot: u32, tables: &[&Tables]) {
        self.add_but(union, slot, tables, &[]);
    }

    /// The same, if some xbars do not go by the first of these tables.
    fn add_but(&mut self, union: &mut UnionProof<'a>, slot: u32, tables: &[&Tables], but: &[u32]) {
        self.walk(slot, tables, but, |channel, after| union.add_dependency(channel, after));
    }

    /// Tells of each channel that frames of a slot could wait in, and each that they could wait for there.
    fn walk(&mut self, slot: u32, tables: &[&Tables], but: &[u32], mut tell: impl FnMut(u32, u32)) {
        self.visits += 1;
        let subnet = self.subnet;
        let onward = |xbar: u32| {
            let tables = if but.binary_search(&xbar).is_ok() { &tables[1..] } else { tables };
            tables.iter().filter_map(move |table| channel_of(subnet, table, xbar, slot))
        };
        let leaves = (0..subnet.topology.xbar_count() as u32).filter(|&xbar| subnet.is_leaf(xbar));
        let mut next: Vec<u32> = leaves.flat_map(onward).collect();
        while let Some(channel) = next.pop() {
            if std::mem::replace(&mut self.visited[channel as usize], self.visits) == self.visits {
                continue;
            }
            for after in onward(subnet.topology.head(channel).xbar) {
                tell(channel, after);
                next.push(after);
            }
        }
    }
}

/// The channel that a table sends frames of a slot through, if it leads to another xbar.
fn channel_of(subnet: &Subnet, table: &Tables, xbar: u32, slot: u32) -> Option<u32> {
    let port = table.port(xbar, slot);
    match subnet.topology.far(PortRef { xbar, port }) {
        Far::Channel(channel) if port != Tables::NONE => Some(channel),
        _ => None,
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
        for old in [&new, &nothing] {
            assert_eq!(transition(&subnet, &[old], &new, &Layers::single()), Transition::default());
        }
    }

    #[test]
    fn only_hosts_to_which_several_xbars_turn_round_are_emptied_first() {
        let subnet = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
        let emptied = |from, to| {
            let (old, new) = (ring_cut_at(&subnet, from), ring_cut_at(&subnet, to));
            transition(&subnet, &[&old], &new, &Layers::single()).emptied_first
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

    /// A fabric, and the same without one of its cables.
    fn whole_and_cut(spec: &str, cut: usize) -> [Subnet; 2] {
        let whole = generate(spec).unwrap();
        let mut fabric = whole.clone();
        fabric.map.cables.remove(cut % fabric.map.cables.len());
        [whole, fabric].map(|fabric| Subnet::new(&fabric, None).unwrap())
    }

    #[test]
    fn no_engine_has_hosts_wait_after_a_cable_of_a_tree_failed() {
        for spec in ["clos:hosts=72,ports=12", "xgft:h=3;m=3,3,4;w=1,3,3"] {
            for cut in [0, 7, 20] {
                let [whole, cut] = whole_and_cut(spec, cut);
                for engine in Engine::ALL {
                    let Ok(old) = engine.compute(&whole, &Settings::default()) else { continue };
                    let settings = Settings { previous: Some(old.tables.clone()), ..Settings::default() };
                    let new = engine.compute(&cut, &settings).unwrap();
                    let found = transition(&cut, &[&old.tables], &new.tables, &new.layers);
                    let emptied = found.emptied_first.len();
                    assert_eq!(emptied, 0, "{engine} on {spec}: {} layers", new.layers.count);
                    // What comes last closes no circle then.
                    let mut first = new.tables.clone();
                    for &(slot, xbar) in &found.last {
                        first.set_port(xbar, slot, old.tables.port(xbar, slot));
                    }
                    let then = transition(&cut, &[&first], &new.tables, &new.layers);
                    assert_eq!(then, Transition::default(), "{engine} on {spec}");
                }
            }
        }
    }

    #[test]
    fn frames_that_are_under_way_by_tables_from_before_count_as_well() {
        let [whole, cut] = whole_and_cut("clos:hosts=72,ports=12", 0);
        let old = tables(&whole, Engine::Minhop, &Settings::default());
        let settings = Settings { previous: Some(old.clone()), ..Settings::default() };
        let new = tables(&cut, Engine::Minhop, &settings);
        let found = transition(&cut, &[&old], &new, &Layers::single());
        assert!(!found.last.is_empty());
        let mut first = new.clone();
        for &(slot, xbar) in &found.last {
            first.set_port(xbar, slot, old.port(xbar, slot));
        }
        // What came last still does, as long as frames may come there.
        assert_eq!(transition(&cut, &[&first, &old], &new, &Layers::single()), found);
        assert_eq!(transition(&cut, &[&first, &first], &new, &Layers::single()), Transition::default());
        // Nothing is emptied that could keep frames of before out of the way.
        let ring = Subnet::new(&generate("ring:n=6,hosts=1").unwrap(), None).unwrap();
        let [before, in_force, new] = [3, 0, 1].map(|cut| ring_cut_at(&ring, cut));
        assert!(transition(&ring, &[&in_force, &before], &new, &Layers::single()).must_wait);
        assert!(!transition(&ring, &[&in_force], &new, &Layers::single()).must_wait);
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
            let emptied = transition(&subnet, &[&old], &new, &Layers::single()).emptied_first;
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
