//! The places in a host's group of nexthops, and which way each leads along.
//!
//! Linux replaces a nexthop in a few microseconds, and a group's list of nexthops in a tenth of a
//! millisecond. So a group keeps its nexthops when a way is lost: those that led along the lost way are led
//! along another one, and flows on all other nexthops stay where they are.

use super::Numbers;

/// A place in the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// The number of its nexthops.
    pub(super) number: u32,
    /// The number of the way.
    pub(super) way: u32,
}

/// The least number of places of a group, even if there is one way only. Linux counts no packets of IPv4 for
/// a group with a single nexthop, as there is nothing to choose, and the counts tell which paths are in use.
const LEAST_PLACES: usize = 2;

/// All places of a host's group.
#[derive(Debug, Default)]
pub(super) struct Slots(Vec<Slot>);

impl Slots {
    /// Has the places lead along these ways, so that each way has at least one place. A place that leads
    /// along one of them already stays.
    pub(super) fn assign(&mut self, ways: &[u32], numbers: &mut Numbers) {
        if ways.is_empty() {
            self.0.drain(..).for_each(|slot| numbers.give_back(slot.number));
            return;
        }
        for &way in ways.iter().filter(|&&way| self.count(way) == 0).collect::<Vec<_>>() {
            let free = self.0.iter().position(|slot| !ways.contains(&slot.way));
            let free = free.or_else(|| self.0.iter().position(|slot| self.count(slot.way) > 1));
            match free {
                Some(at) => self.0[at].way = way,
                None => self.0.push(Slot { number: numbers.take(), way }),
            }
        }
        while let Some(at) = self.0.iter().position(|slot| !ways.contains(&slot.way)) {
            let least = ways.iter().copied().min_by_key(|&way| self.count(way));
            self.0[at].way = least.unwrap_or_default();
        }
        while self.0.len() < LEAST_PLACES {
            self.0.push(Slot { number: numbers.take(), way: ways[0] });
        }
    }

    fn count(&self, way: u32) -> usize {
        self.0.iter().filter(|slot| slot.way == way).count()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ways(slots: &Slots) -> Vec<u32> {
        slots.iter().map(|slot| slot.way).collect()
    }

    #[test]
    fn what_led_along_a_lost_way_leads_along_another_and_all_else_stays() {
        let (mut slots, mut numbers) = (Slots::default(), Numbers::from(0));
        slots.assign(&[10, 11, 12], &mut numbers);
        assert_eq!(ways(&slots), [10, 11, 12]);
        slots.assign(&[10, 12], &mut numbers);
        assert_eq!(ways(&slots), [10, 10, 12]);
        slots.assign(&[12], &mut numbers);
        assert_eq!(ways(&slots), [12, 12, 12]);
        slots.assign(&[12, 13], &mut numbers);
        assert_eq!(ways(&slots), [13, 12, 12]);
        slots.assign(&[], &mut numbers);
        assert!(ways(&slots).is_empty());
        assert_eq!(numbers.take(), 0, "numbers of places that are gone are free");
    }

    #[test]
    fn a_single_way_has_two_places_as_linux_counts_nothing_where_there_is_no_choice() {
        let (mut slots, mut numbers) = (Slots::default(), Numbers::from(0));
        slots.assign(&[10], &mut numbers);
        assert_eq!(ways(&slots), [10, 10]);
        slots.assign(&[10, 11], &mut numbers);
        assert_eq!(ways(&slots), [11, 10], "the second way takes one of them");
        slots.assign(&[11], &mut numbers);
        assert_eq!(ways(&slots), [11, 11]);
    }

    proptest! {
        #[test]
        fn each_way_has_a_place_and_each_place_a_way(
            steps in proptest::collection::vec(proptest::collection::btree_set(0..9u32, 0..9), 1..9),
        ) {
            let (mut slots, mut numbers) = (Slots::default(), Numbers::from(0));
            for step in steps {
                let before: Vec<Slot> = slots.iter().collect();
                let wanted: Vec<u32> = step.into_iter().collect();
                slots.assign(&wanted, &mut numbers);
                let now = ways(&slots);
                prop_assert!(wanted.iter().all(|way| now.contains(way)));
                prop_assert!(now.iter().all(|way| wanted.contains(way)));
                prop_assert!(now.len() <= 9 && (now.is_empty() || now.len() >= LEAST_PLACES));
                // A place moves only if its way is lost, or the way keeps another place.
                for (before, after) in before.iter().zip(slots.iter()) {
                    prop_assert!(before.way == after.way || !wanted.contains(&before.way) || now.contains(&before.way));
                }
            }
        }
    }
}
