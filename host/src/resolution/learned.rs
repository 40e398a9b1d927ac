//! What was learned of names and addresses that the directory does not tell.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mapper_proto::{Instant, Mac};

use super::group::Group;
use super::wanted::Wanted;
use crate::directory::{Directory, in_serial_order};

/// The most names and addresses that are remembered. If there are more, those that were learned first are
/// forgotten.
const MOST: usize = 4096;
/// The most hosts that are remembered to have the same name or address.
const MOST_OWNERS: usize = 4;
/// How long it is remembered who has a name or an address.
const KEEP: Duration = Duration::from_secs(3600);

/// A host that said that it has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The host.
    pub mac: Mac,
    /// The revision of its record in the directory when it said so. Whoever gives up a name or an address raises that, so
    /// what a host said at an earlier revision no longer counts.
    pub revision: u32,
    /// The best group that this host and that one can use.
    pub group: Group,
}

impl Owner {
    /// Whether the owner said so before its record was at this revision.
    pub(super) fn is_from_before(&self, revision: u32) -> bool {
        in_serial_order(revision, self.revision) == Ordering::Greater
    }

    /// Whether the owner may have given up what it had, as the directory has a newer record of it.
    pub(super) fn is_outdated(&self, directory: &Directory) -> bool {
        directory.revision_of(self.mac).is_some_and(|now| self.is_from_before(now))
    }
}

#[derive(Debug)]
struct Entry {
    owners: Vec<Owner>,
    expires: Instant,
    /// The number of this entry in `Learned::order`.
    turn: u64,
}

/// Who has what, as the owners themselves said.
#[derive(Debug, Default)]
pub(super) struct Learned {
    entries: BTreeMap<Wanted, Entry>,
    /// The entries by when they were learned.
    order: VecDeque<(u64, Wanted)>,
    next_turn: u64,
}

impl Learned {
    /// Takes in that a host has something. Returns whether the host is a new owner of what others are known
    /// to have, too.
    pub(super) fn add(&mut self, now: Instant, wanted: &Wanted, owner: Owner) -> bool {
        if let Some(entry) = self.entries.get_mut(wanted).filter(|entry| entry.expires > now) {
            if let Some(known) = entry.owners.iter_mut().find(|known| known.mac == owner.mac) {
                // Messages may arrive in another order than they were sent in.
                if !owner.is_from_before(known.revision) {
                    *known = owner;
                }
                return false;
            }
            if entry.owners.len() >= MOST_OWNERS {
                entry.owners.remove(0);
            }
            entry.owners.push(owner);
            return true;
        }
        let turn = self.next_turn;
        self.next_turn += 1;
        let entry = Entry { owners: vec![owner], expires: now + KEEP, turn };
        self.entries.insert(wanted.clone(), entry);
        self.order.push_back((turn, wanted.clone()));
        while self.entries.len() > MOST || self.order.len() > 2 * MOST {
            let Some((turn, oldest)) = self.order.pop_front() else { break };
            if self.entries.get(&oldest).is_some_and(|entry| entry.turn == turn) {
                self.entries.remove(&oldest);
            }
        }
        false
    }

    /// Forgets who has something, as it is asked anew.
    pub(super) fn forget(&mut self, wanted: &Wanted) {
        self.entries.remove(wanted);
    }

    /// Forgets what was said by hosts for which `is_kept` is false.
    pub(super) fn retain(&mut self, is_kept: impl Fn(Mac) -> bool) {
        self.entries.retain(|_, entry| {
            entry.owners.retain(|owner| is_kept(owner.mac));
            !entry.owners.is_empty()
        });
    }

    /// The hosts that have something, of those that `counts` does not leave out.
    pub(super) fn owners(
        &self,
        now: Instant,
        wanted: &Wanted,
        counts: impl Fn(&Owner) -> bool,
    ) -> impl Iterator<Item = Owner> {
        let entry = self.entries.get(wanted).filter(|entry| entry.expires > now);
        let owners = entry.map_or(&[][..], |entry| &entry.owners);
        owners.iter().copied().filter(move |owner| counts(owner))
    }

    /// All that is remembered.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &Wanted> {
        self.entries.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(n: u32) -> Owner {
        Owner { mac: Mac::from_position(n), revision: 1, group: Group::default() }
    }

    fn name(n: usize) -> Wanted {
        Wanted::parse(&format!("n{n}")).unwrap()
    }

    #[test]
    fn what_was_learned_first_goes_and_all_grows_old() {
        let mut learned = Learned::default();
        let now = Instant::ZERO;
        for n in 0..MOST + 10 {
            // A name that is forgotten and learned again takes the room of one entry.
            learned.forget(&name(MOST));
            learned.add(now, &name(MOST), owner(1));
            learned.add(now, &name(n), owner(2));
        }
        assert!(learned.len() <= MOST && learned.order.len() <= 2 * MOST);
        let known = |learned: &Learned, now, n| learned.owners(now, &name(n), |_| true).count();
        assert_eq!((known(&learned, now, 0), known(&learned, now, MOST + 9)), (0, 1));
        assert_eq!(known(&learned, now + KEEP, MOST + 9), 0);
        learned.retain(|mac| mac == Mac::from_position(1));
        assert_eq!((learned.len(), known(&learned, now, MOST)), (1, 1));
    }

    #[test]
    fn what_a_host_said_first_counts_no_more_when_it_comes_last() {
        let mut learned = Learned::default();
        let (now, of_now) = (Instant::ZERO, Owner { revision: 2, ..owner(1) });
        for said in [of_now, owner(1)] {
            assert!(!learned.add(now, &name(7), said));
            assert_eq!(learned.owners(now, &name(7), |_| true).collect::<Vec<_>>(), [of_now]);
        }
    }

    #[test]
    fn who_has_the_same_as_another_is_told_once() {
        let mut learned = Learned::default();
        let said = [1, 1, 2, 2, 3].map(|n| learned.add(Instant::ZERO, &name(7), owner(n)));
        assert_eq!(said, [false, false, true, false, true]);
        let all: Vec<_> = learned.owners(Instant::ZERO, &name(7), |_| true).map(|it| it.mac).collect();
        assert_eq!(all, [1, 2, 3].map(Mac::from_position));
    }
}
