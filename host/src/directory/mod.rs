//! The directory: the service by which hosts tell each other their names and IP addresses.
//!
//! Every host knows the record of each host of the map: its name, and at most sixteen addresses. Records travel
//! along the binary tree over the map's hosts: what a host learns from one neighbour it tells the others, each
//! record once, many in one message. So a record crosses each of the tree's edges once, whoever wants to know
//! it, and no host asks another that is not its neighbour. A child and its parent compare what they know by
//! sums over all records, in `BUCKETS` parts, when they become neighbours and every `COMPARE_EVERY`; they tell
//! each other anew what differs, and compare again soon. That is how a host that starts again learns all.
//!
//! A record has a revision, which only its host raises, and of two records of one host that of the higher
//! revision counts. Revisions are serial numbers (RFC 1982), so the greatest is followed by 0: whatever
//! revision others make up, the host can raise its own above it. A host that is told a wrong record of itself
//! raises its revision above that one's. Names are text for people: two hosts may have the same, and nothing
//! is decided by them. Addresses should be of one host each; [`Directory::clashes`] names those that are not.

mod body;
mod name;
mod neighbour;
mod ranks;
mod rates;
mod record;
mod sums;
pub mod table;
mod told;

use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::wire::ServiceNumber;
use mapper_proto::{Instant, IpNetworkAddress, Mac};

use crate::kernel_path::ByDestination;
use crate::routes::Basis;
use crate::service::{Place, Question, Service};
use body::{Compared, DirectoryBody};
pub use name::{HostName, NotAName};
use neighbour::{Neighbour, UnderWay};
pub use rates::PortRates;
use record::{Record, RecordAddresses};
pub(crate) use sums::fnv;
use sums::{Buckets, bucket_of};
pub use table::{Clash, Directory, Refusal};
pub(crate) use told::LastTold;
use told::Told;

/// How long after a new map neighbours first compare what they know, so that records do not delay the map.
const FIRST_AFTER: Duration = Duration::from_millis(100);
/// How long after its first map a host that has started compares with children that have not compared with it by then.
const CHILDREN_AFTER: Duration = Duration::from_millis(500);
/// A neighbour that was told all that there was is told nothing more for this long, so that records that come
/// one by one travel together. Without it a message would carry only five records when ten thousand hosts
/// start at once.
const TOGETHER: Duration = Duration::from_millis(5);
/// How often neighbours compare what they know.
pub(crate) const COMPARE_EVERY: Duration = Duration::from_secs(10);
/// How long after an unanswered question the same host is asked again, and how soon neighbours compare again that differ still.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// After this many unanswered comparisons in a row the next one waits for [`COMPARE_EVERY`] instead of
/// [`AGAIN_AFTER`]. At first the other host may have no routes of the map yet; if it stays silent, it does
/// not run this service.
const SOON: u8 = 5;

/// The service at one host: what this host knows, and what it tells its neighbours in the tree.
#[derive(Debug)]
pub(crate) struct Gossip {
    own: Mac,
    directory: Directory,
    neighbours: Vec<Neighbour>,
    /// Since when a map that lists nobody else is in force, if one is.
    alone_since: Option<Instant>,
    /// Whether records came or changed since [`Gossip::take_changed`].
    changed: bool,
}

/// Compares two revisions as serial numbers (RFC 1982). The RFC leaves open which of two numbers is later if
/// they are half of all numbers apart; here it is the greater one.
pub(crate) fn in_serial_order(a: u32, b: u32) -> Ordering {
    match a.wrapping_sub(b) {
        0 => Ordering::Equal,
        1..0x8000_0000 => Ordering::Greater,
        0x8000_0000 => a.cmp(&b),
        _ => Ordering::Less,
    }
}

/// The next revision above one, or `wanted` if that is above it.
fn above(revision: u32, wanted: u32) -> u32 {
    if in_serial_order(wanted, revision).is_gt() { wanted } else { revision.wrapping_add(1) }
}

/// Which of two records of one host counts.
fn in_order(a: &Record, b: &Record) -> Ordering {
    let by_what_they_say = || (&a.name, &a.addresses).cmp(&(&b.name, &b.addresses));
    in_serial_order(a.revision, b.revision).then_with(by_what_they_say)
}

impl Gossip {
    /// The service at the host with the address `own`, which has no name and no addresses yet.
    pub(crate) fn new(own: Mac) -> Self {
        let mut directory = Directory::default();
        directory.insert(Told::new(own, Record::default()));
        Self { own, directory, neighbours: Vec::new(), alone_since: None, changed: false }
    }

    /// Says what this host is called. `revision` must be higher than when the host last started: the
    /// seconds since 1970 will do.
    pub(crate) fn set_name(&mut self, name: HostName, revision: u32) {
        self.say(revision, |record| record.name = Some(name));
    }

    /// Says which addresses this host has, and which of them it picked.
    pub(crate) fn set_addresses(
        &mut self,
        all: impl IntoIterator<Item = IpNetworkAddress>,
        is_picked: impl Fn(IpAddr) -> bool,
    ) {
        let addresses = RecordAddresses::new(all, is_picked);
        self.say(0, |record| record.addresses = addresses.with_the_rest_of(&record.addresses));
    }

    /// Says how fast this host's interfaces are.
    pub(crate) fn set_rates(&mut self, rates: PortRates) {
        self.say(0, |record| record.addresses = record.addresses.with_rates(rates));
    }

    /// Says when this host's kernel goes by destination.
    pub(crate) fn set_by_destination(&mut self, by_destination: ByDestination) {
        self.say(0, |record| record.addresses = record.addresses.with_by_destination(by_destination));
    }

    /// Changes this host's own record, and raises its revision, to `wanted` if that is more.
    fn say(&mut self, wanted: u32, change: impl FnOnce(&mut Record)) {
        let known = self.directory.get(self.own).cloned().unwrap_or_default();
        let mut record = known.clone();
        change(&mut record);
        if !record.says_as(&known) {
            record.revision = above(known.revision, wanted);
            self.put_own(record);
        }
    }

    /// Raises the revision of this host's own record without changing what the record says, so that nothing
    /// that depends on the old revision counts any more.
    pub(crate) fn raise_revision(&mut self) {
        let known = self.directory.get(self.own).cloned().unwrap_or_default();
        let revision = above(known.revision, 0);
        self.put_own(Record { revision, ..known });
    }

    /// What this host knows.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Takes what this host says of itself, and will tell it to all neighbours.
    fn put_own(&mut self, record: Record) {
        let rank = self.directory.insert(Told::new(self.own, record));
        for neighbour in &mut self.neighbours {
            neighbour.untold.extend(rank);
        }
        self.changed = true;
    }

    /// Takes the record of the host at this place, and will tell it to all neighbours but the one that told it.
    fn put(&mut self, rank: usize, told: Arc<Told>, told_by: Mac) {
        for neighbour in &mut self.neighbours {
            if neighbour.mac == told_by {
                neighbour.untold.remove(rank);
            } else {
                neighbour.untold.insert(rank);
            }
        }
        self.directory.insert_at(rank, told);
        self.changed = true;
    }

    /// Whether since the last call records came or changed, or another map came, by which other records
    /// count.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether this host knows what a neighbour in the tree knows.
    pub(crate) fn is_in_step(&self) -> bool {
        self.neighbours.iter().any(|neighbour| neighbour.in_step)
    }

    /// Since when a map that lists nobody else has been in force, if one is.
    pub(crate) fn alone_since(&self) -> Option<Instant> {
        self.alone_since
    }

    /// Has the children told of the hosts that the map before did not list, as far as they are known. A child that had the new map first
    /// may have compared what it knows by then, with sums of this host over the hosts of the map before.
    fn tell_children_of_new_hosts(&mut self, parent: Option<Mac>, before: Option<&Basis>) {
        let Some(before) = before else { return };
        let Self { directory, neighbours, .. } = self;
        let is_new = |told: &Arc<Told>| !before.lists(told.mac);
        let new: Vec<usize> = directory.ranks_of(is_new).collect();
        for child in neighbours.iter_mut().filter(|neighbour| Some(neighbour.mac) != parent) {
            child.untold.extend(new.iter().copied());
        }
    }

    /// Takes records that a neighbour told. Returns whether the map lists the hosts of all of them.
    fn learn(&mut self, from: Mac, told: Vec<(Option<usize>, Arc<Told>)>) -> bool {
        let mut are_all_listed = true;
        for (rank, told) in told {
            if told.mac == self.own {
                self.correct(from, &told.record);
                continue;
            }
            let Some(rank) = rank else {
                self.directory.refused.count(Refusal::NotInMap);
                are_all_listed = false;
                continue;
            };
            match self.directory.at_rank(rank).map(|known| in_order(&told.record, &known.record)) {
                None | Some(Ordering::Greater) => self.put(rank, told, from),
                Some(Ordering::Equal) => self.forget_untold(from, rank),
                Some(Ordering::Less) => {}
            }
        }
        are_all_listed
    }

    /// Takes in what a neighbour told of this host itself. Only a host itself knows what it is called and
    /// which addresses it has, so if the neighbour is wrong, the host raises its revision and tells others
    /// anew.
    fn correct(&mut self, from: Mac, told: &Record) {
        let known = self.directory.get(self.own).cloned().unwrap_or_default();
        if *told == known {
            if let Some(rank) = self.directory.rank(self.own) {
                self.forget_untold(from, rank);
            }
            return;
        }
        if !told.says_as(&known) {
            self.directory.refused.count(Refusal::OfThisHost);
        }
        if in_serial_order(told.revision, known.revision).is_ge() {
            let revision = above(told.revision, known.revision);
            self.put_own(Record { revision, ..known });
        }
    }

    fn forget_untold(&mut self, neighbour: Mac, rank: usize) {
        if let Some(neighbour) = self.neighbours.iter_mut().find(|it| it.mac == neighbour) {
            neighbour.untold.remove(rank);
        }
    }

    /// Compares the sums of a neighbour with this host's own. Nothing is wanted of the parts of which the
    /// neighbour is or will be told records anyway. `None` if `from` is no neighbour.
    fn compare(&mut self, from: Mac, theirs: &Buckets) -> Option<Compared> {
        let differing = self.directory.buckets().differing(theirs);
        let neighbour = self.neighbours.iter_mut().find(|it| it.mac == from)?;
        let untold = neighbour.untold.iter().filter_map(|rank| Some(self.directory.at_rank(rank)?.mac));
        let on_its_way = neighbour.under_way.iter().flat_map(UnderWay::told);
        let awaited = untold.chain(on_its_way).fold(0, |parts, mac| parts | 1 << bucket_of(mac));
        let wanted = differing & !awaited;
        neighbour.untold.extend(self.directory.ranks_in(wanted));
        neighbour.in_step = differing == 0;
        neighbour.has_compared();
        Some(Compared { wanted, differing })
    }
}

impl Service for Gossip {
    fn number(&self) -> ServiceNumber {
        ServiceNumber::DIRECTORY
    }

    fn map_changed(&mut self, now: Instant, place: &Place) {
        let ranks_before = self.directory.basis().cloned();
        let mut before = std::mem::take(&mut self.neighbours);
        for mac in place.parent.into_iter().chain(place.children.iter().copied()) {
            let known = before.iter().position(|neighbour| neighbour.mac == mac);
            let mut neighbour =
                known.map_or_else(|| Neighbour::new(mac, now), |known| before.swap_remove(known));
            neighbour.map_changed(now, place.parent == Some(mac), ranks_before.is_none());
            let untold = std::mem::take(&mut neighbour.untold);
            let macs = untold.iter().filter_map(|rank| ranks_before.as_ref()?.at_rank(rank));
            neighbour.untold.extend(macs.filter_map(|mac| place.basis.rank(mac)));
            self.neighbours.push(neighbour);
        }
        let since = self.alone_since.unwrap_or(now);
        self.alone_since = (place.basis.map().hosts.len() <= 1).then_some(since);
        self.directory.take_map(self.own, &place.basis);
        self.tell_children_of_new_hosts(place.parent, ranks_before.as_deref());
        self.changed = true;
    }

    fn asked(&mut self, _: Instant, from: Mac, question: &[u8], _: usize) -> Option<Vec<u8>> {
        let Some(body) = body::read(question, self.directory.basis().map(|basis| &**basis)) else {
            self.directory.refused.count(Refusal::Malformed);
            return None;
        };
        if self.neighbours.iter().all(|neighbour| neighbour.mac != from) {
            self.directory.refused.count(Refusal::NoNeighbour);
            return None;
        }
        match body {
            DirectoryBody::Compare(theirs) => self.compare(from, &theirs).map(Compared::to_bytes),
            DirectoryBody::Tell(told) => {
                Some(if self.learn(from, told) { Vec::new() } else { body::NOT_ALL_TAKEN.to_vec() })
            }
        }
    }

    fn answered(&mut self, now: Instant, to: Mac, answer: Option<&[u8]>) {
        let Some(neighbour) = self.neighbours.iter_mut().find(|neighbour| neighbour.mac == to) else {
            return;
        };
        let Some(under_way) = neighbour.under_way.take() else { return };
        match (under_way, answer) {
            (UnderWay::Compare, Some(answer)) => match Compared::read(answer) {
                Some(answer) => neighbour.compared(now, &self.directory, answer),
                None => {
                    self.directory.refused.count(Refusal::Malformed);
                    neighbour.compare_at = neighbour.compare_at.map(|_| now + COMPARE_EVERY);
                }
            },
            (UnderWay::Compare, None) => {
                let wait = if neighbour.unanswered < SOON { AGAIN_AFTER } else { COMPARE_EVERY };
                neighbour.unanswered = neighbour.unanswered.saturating_add(1);
                neighbour.compare_at = neighbour.compare_at.map(|_| now + wait);
            }
            (UnderWay::Tell(_), Some(answer)) if answer == body::NOT_ALL_TAKEN => neighbour.compare_soon(now),
            (UnderWay::Tell(_), Some(_)) => {}
            (UnderWay::Tell(macs), None) => {
                neighbour.untold.extend(macs.into_iter().filter_map(|mac| self.directory.rank(mac)));
                neighbour.not_before = now + AGAIN_AFTER;
            }
        }
    }

    fn poll_question(&mut self, now: Instant) -> Option<Question> {
        let due = |neighbour: &&mut Neighbour| neighbour.due_at().is_some_and(|at| at <= now);
        let neighbour = self.neighbours.iter_mut().find(due)?;
        let (to, directory) = (neighbour.mac, &self.directory);
        let mut writer = body::Teller::new();
        let records = neighbour.untold.iter().filter_map(|rank| Some((rank, directory.at_rank(rank)?)));
        let told: Vec<_> =
            records.take_while(|(_, told)| writer.push(told)).map(|(rank, told)| (rank, told.mac)).collect();
        told.iter().for_each(|&(rank, _)| neighbour.untold.remove(rank));
        if neighbour.untold.is_empty() && !told.is_empty() {
            neighbour.tell_after = now + TOGETHER;
        }
        let (under_way, body) = if told.is_empty() {
            (UnderWay::Compare, body::compare(&directory.buckets()))
        } else {
            (UnderWay::Tell(told.into_iter().map(|(_, mac)| mac).collect()), writer.finish())
        };
        neighbour.under_way = Some(under_way);
        // An answer never needs more room than its question took.
        Some(Question { to, body, room_bytes: 0 })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.neighbours.iter().filter_map(Neighbour::due_at).min()
    }
}

/// A directory in which a host's record has this revision.
#[cfg(test)]
pub(crate) fn table_with(mac: Mac, revision: u32) -> Directory {
    let mut directory = Directory::default();
    directory.insert(Told::new(mac, Record { revision, ..Record::default() }));
    directory
}

#[cfg(test)]
pub(crate) mod tests;
