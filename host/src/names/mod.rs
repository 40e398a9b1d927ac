//! The service by which hosts tell each other their names.
//!
//! Every host knows the names of all hosts of the map. Names travel along the binary tree over the map's
//! hosts: what a host learns from one neighbour it tells the others, each name once, many in one message. So a
//! name crosses each of the tree's edges once, whoever wants to know it, and no host asks another that is not
//! its neighbour. A child and its parent compare what they know by sums over all names, in
//! `BUCKETS` parts, when they become neighbours and every `COMPARE_EVERY`; they tell each
//! other anew what differs. That is how a host that starts again learns all names.
//!
//! A name has a revision, which only its host raises, and of two names of one host that of the higher
//! revision counts. Revisions are serial numbers (RFC 1982): behind the greatest comes 0, so that nobody can
//! tell one that a host cannot raise its own above. A host that is told a wrong name of itself raises its revision above that one's. Names
//! are text for people: two hosts may have the same, and nothing is decided by them.

mod body;
pub mod table;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use mapper_proto::wire::ServiceNumber;
use mapper_proto::{Instant, Mac};

use crate::service::{Place, Question, Service};
use body::Body;
use table::{Buckets, Named};
pub use table::{HostName, NameTable, NotAName};

/// How long after a new map neighbours first compare what they know, so that names do not delay the map.
const FIRST_AFTER: Duration = Duration::from_millis(100);
/// How often neighbours compare what they know.
pub(crate) const COMPARE_EVERY: Duration = Duration::from_secs(10);
/// How long after an unanswered question the same host is asked again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// After this many unanswered comparisons in a row the next one waits for [`COMPARE_EVERY`] instead of
/// [`AGAIN_AFTER`]. At first the other host may have no routes of the map yet; if it stays silent, it does
/// not run this service.
const SOON: u8 = 5;

/// The names that this host knows, and what it tells its neighbours in the tree.
#[derive(Debug)]
pub struct Names {
    own: Mac,
    table: NameTable,
    neighbours: Vec<Neighbour>,
    /// Whether names came or changed since [`Names::take_changed`].
    changed: bool,
}

/// This host's parent or one of its children in the tree over the map's hosts.
#[derive(Debug)]
struct Neighbour {
    mac: Mac,
    /// When to compare with it. Only a child compares with its parent, so this is `None` for a child of this
    /// host.
    compare_at: Option<Instant>,
    /// The moment before which it is asked nothing.
    not_before: Instant,
    /// The hosts whose names it may not know.
    untold: BTreeSet<Mac>,
    /// Comparisons in a row that were not answered.
    unanswered: u8,
    under_way: Option<UnderWay>,
}

/// A question that waits for its answer.
#[derive(Debug)]
enum UnderWay {
    Compare,
    /// The names of these hosts were told.
    Tell(Vec<Mac>),
}

impl Neighbour {
    fn new(mac: Mac, now: Instant) -> Self {
        Self {
            mac,
            compare_at: None,
            not_before: now,
            untold: BTreeSet::new(),
            unanswered: 0,
            under_way: None,
        }
    }

    /// When there is something to ask this neighbour. `None` while it has a question to answer.
    fn due_at(&self) -> Option<Instant> {
        match (&self.under_way, self.untold.is_empty()) {
            (Some(_), _) => None,
            (None, false) => Some(self.not_before),
            (None, true) => Some(self.compare_at?.max(self.not_before)),
        }
    }
}

/// Which of two revisions is the later one, as RFC 1982 has it. What that leaves open is decided, too: of two
/// that are half of all numbers apart the greater one is later.
fn in_serial_order(a: u32, b: u32) -> Ordering {
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

impl Names {
    /// The service at the host with the address `own`, which knows no names yet.
    pub fn new(own: Mac) -> Self {
        Self { own, table: NameTable::default(), neighbours: Vec::new(), changed: false }
    }

    /// Says what this host is called. `revision` must be higher than when the host last started: the
    /// seconds since 1970 will do.
    pub(crate) fn set_own(&mut self, name: HostName, revision: u32) {
        let known = self.table.get(self.own).filter(|known| known.name == name);
        if known.is_none() {
            let revision = self.table.get(self.own).map_or(revision, |known| above(known.revision, revision));
            self.put(Named { mac: self.own, name, revision }, None);
        }
    }

    /// The names that this host knows.
    pub fn table(&self) -> &NameTable {
        &self.table
    }

    /// Takes a name, and will tell it to all neighbours but the one that told it.
    fn put(&mut self, named: Named, told_by: Option<Mac>) {
        for neighbour in self.neighbours.iter_mut().filter(|neighbour| Some(neighbour.mac) != told_by) {
            neighbour.untold.insert(named.mac);
        }
        self.table.insert(named);
        self.changed = true;
    }

    /// Whether names came or changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Takes names that a neighbour told.
    fn learn(&mut self, from: Mac, told: Vec<Named>) {
        for named in told {
            let known = self.table.get(named.mac).map(|known| (known.revision, known.name.clone()));
            let is_own_and_wrong =
                named.mac == self.own && known.as_ref().is_some_and(|(_, name)| *name != named.name);
            let order = known.as_ref().map(|(revision, name)| {
                in_serial_order(named.revision, *revision).then_with(|| named.name.cmp(name))
            });
            if is_own_and_wrong {
                // Only a host itself says what it is called, so others must take the name that it has.
                let (revision, name) = known.unwrap_or((0, named.name.clone()));
                let revision = above(named.revision, revision);
                self.put(Named { mac: self.own, name, revision }, None);
            } else if order.is_none_or(Ordering::is_gt) && self.table.is_listed(named.mac) {
                self.forget_untold(from, named.mac);
                self.put(named, Some(from));
            } else if order.is_some_and(Ordering::is_eq) {
                self.forget_untold(from, named.mac);
            }
        }
    }

    fn forget_untold(&mut self, neighbour: Mac, mac: Mac) {
        if let Some(neighbour) = self.neighbours.iter_mut().find(|it| it.mac == neighbour) {
            neighbour.untold.remove(&mac);
        }
    }

    /// Compares the sums of a neighbour with this host's own. Returns the parts that differ, except those of
    /// which the neighbour will be told names anyway; `None` if `from` is no neighbour.
    fn compare(&mut self, from: Mac, theirs: &Buckets) -> Option<u32> {
        let ours = self.table.buckets();
        let neighbour = self.neighbours.iter_mut().find(|it| it.mac == from)?;
        let awaited = neighbour.untold.iter().fold(0, |parts, &mac| parts | 1 << table::bucket_of(mac));
        let differing = ours.differing(theirs) & !awaited;
        neighbour.untold.extend(self.table.hosts_in(differing));
        Some(differing)
    }
}

impl Service for Names {
    fn number(&self) -> ServiceNumber {
        ServiceNumber::NAMES
    }

    fn map_changed(&mut self, now: Instant, place: &Place) {
        let mut before = std::mem::take(&mut self.neighbours);
        for mac in place.parent.into_iter().chain(place.children.iter().copied()) {
            let known = before.iter().position(|neighbour| neighbour.mac == mac);
            let mut neighbour =
                known.map_or_else(|| Neighbour::new(mac, now), |known| before.swap_remove(known));
            neighbour.compare_at = (place.parent == Some(mac)).then_some(now + FIRST_AFTER);
            neighbour.unanswered = 0;
            neighbour.not_before = now + FIRST_AFTER;
            self.neighbours.push(neighbour);
        }
        self.table.take_map(&place.basis);
        let table = &self.table;
        for neighbour in &mut self.neighbours {
            neighbour.untold.retain(|&mac| table.is_listed(mac));
        }
    }

    fn asked(&mut self, _: Instant, from: Mac, question: &[u8], _: usize) -> Option<Vec<u8>> {
        match body::read(question)? {
            Body::Compare(theirs) => self.compare(from, &theirs).map(|parts| parts.to_be_bytes().to_vec()),
            Body::Tell(told) => {
                self.neighbours
                    .iter()
                    .any(|neighbour| neighbour.mac == from)
                    .then(|| self.learn(from, told))?;
                Some(Vec::new())
            }
        }
    }

    fn answered(&mut self, now: Instant, to: Mac, answer: Option<&[u8]>) {
        let Some(neighbour) = self.neighbours.iter_mut().find(|neighbour| neighbour.mac == to) else {
            return;
        };
        let Some(under_way) = neighbour.under_way.take() else { return };
        match (under_way, answer) {
            (UnderWay::Compare, Some(parts)) => {
                neighbour.compare_at = Some(now + COMPARE_EVERY);
                neighbour.unanswered = 0;
                if let Ok(parts) = parts.try_into().map(u32::from_be_bytes) {
                    neighbour.untold.extend(self.table.hosts_in(parts));
                }
            }
            (UnderWay::Compare, None) => {
                let wait = if neighbour.unanswered < SOON { AGAIN_AFTER } else { COMPARE_EVERY };
                neighbour.unanswered = neighbour.unanswered.saturating_add(1);
                neighbour.compare_at = Some(now + wait);
            }
            (UnderWay::Tell(_), Some(_)) => {}
            (UnderWay::Tell(macs), None) => {
                neighbour.untold.extend(macs);
                neighbour.not_before = now + AGAIN_AFTER;
            }
        }
    }

    fn poll_question(&mut self, now: Instant) -> Option<Question> {
        let due = |neighbour: &&mut Neighbour| neighbour.due_at().is_some_and(|at| at <= now);
        let neighbour = self.neighbours.iter_mut().find(due)?;
        let (to, table) = (neighbour.mac, &self.table);
        let mut told = Vec::new();
        let mut writer = body::Teller::default();
        while let Some(&mac) = neighbour.untold.first() {
            // The neighbour does not need names of hosts that the map no longer lists.
            let named = table.get(mac).filter(|_| table.is_listed(mac));
            if named.is_some_and(|named| !writer.push(named)) {
                break;
            }
            neighbour.untold.remove(&mac);
            told.extend(named.map(|_| mac));
        }
        let (under_way, body) = if told.is_empty() {
            (UnderWay::Compare, body::compare(&table.buckets()))
        } else {
            (UnderWay::Tell(told), writer.finish())
        };
        neighbour.under_way = Some(under_way);
        // An answer never needs more room than its question took.
        Some(Question { to, body, room_bytes: 0 })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.neighbours.iter().filter_map(Neighbour::due_at).min()
    }
}

#[cfg(test)]
mod tests;
