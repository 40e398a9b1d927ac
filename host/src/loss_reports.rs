//! The service by which hosts tell the global mapper which cables carry frames and lose many.
//!
//! A host goes around such a cable at once where its own routes may, but some pairs of hosts have no other way in the order that
//! the map gives to routes, as on a ring. With a map that shows the cable as lossy all hosts order their routes as if it were not there.
//! So the host tells the global mapper, and again every [`TELL_EVERY`] as long as it finds the cable lossy: the mapper forgets what it was not
//! told again for [`FORGOTTEN_AFTER`], so that a host that went or started again leaves nothing behind. A host that maps in another's place
//! begins with what the map in force shows; one that has just started knows of no such map, and is told 100 ms after its own.
//!
//! Each change is a new map for all. So a cable stays left out for a while even if nobody finds it lossy any more, and for twice as
//! long each time that it is found again: a cable with too much traffic is well as soon as it is left out.
//!
//! A question is the count of ports (1 byte) and the ports that hold the cables, each as the xbar's tag (8) and its number
//! there (1), those first that were found first. The answer is empty. Cables between xbars without a tag have no name that
//! holds in two maps, so nobody is told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::map::{Cable, TaggedPort};
use mapper_proto::wire::ServiceNumber;
use mapper_proto::{Instant, Mac};

use crate::routes::Basis;
use crate::service::{Place, Question, Service};

/// How many cables a host tells of at most.
const MOST_PORTS: usize = 8;
/// How long after a new map its mapper is told first, so that reports do not delay the map.
const FIRST_AFTER: Duration = Duration::from_millis(100);
/// How often the mapper is told again.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// How long after a report without an answer the mapper is told again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How long a report counts.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(35);
/// How long a cable that was found for the first time stays left out at least.
const HELD_FOR: Duration = Duration::from_secs(10);
/// How often that time is doubled at most.
const MOST_DOUBLINGS: u32 = 5;
/// For how many cables it is known how often they were found.
const MOST_COUNTED: usize = 256;

/// What one host told.
#[derive(Debug)]
struct Report {
    ports: Vec<TaggedPort>,
    until: Instant,
}

/// The service at one host: what this host finds, and, at the global mapper, what all find.
#[derive(Debug)]
pub(crate) struct LossReports {
    own: Mac,
    /// The map whose routes are in use.
    basis: Option<Arc<Basis>>,
    /// The cables that this host finds lossy.
    found: Vec<TaggedPort>,
    /// What that mapper was last told, and has answered.
    told: Vec<TaggedPort>,
    /// What it is being told.
    under_way: Option<Vec<TaggedPort>>,
    /// When it is told next, if it has to be.
    tell_at: Option<Instant>,
    /// What the other hosts of the map find lossy, at its global mapper. Under that one's own address stands what the map of
    /// another mapper showed that it took over from.
    reports: BTreeMap<Mac, Report>,
    /// The cables that the next map is to show, those first that were found first, each with the moment until which it is shown at
    /// least.
    agreed: Vec<(TaggedPort, Instant)>,
    /// Whether these or the map changed since they were taken.
    changed: bool,
    /// How often cables were found.
    times: BTreeMap<TaggedPort, u32>,
    /// When [`Self::handle_timeout`] has something to do, at the global mapper.
    next_at: Option<Instant>,
}

impl LossReports {
    /// The service at the host with the address `own`.
    pub(crate) const fn new(own: Mac) -> Self {
        Self {
            own,
            basis: None,
            found: Vec::new(),
            told: Vec::new(),
            under_way: None,
            tell_at: None,
            reports: BTreeMap::new(),
            agreed: Vec::new(),
            changed: false,
            times: BTreeMap::new(),
            next_at: None,
        }
    }

    /// Says which cables this host finds lossy, those first that were found first.
    pub(crate) fn set_found(&mut self, now: Instant, mut ports: Vec<TaggedPort>) {
        ports.truncate(MOST_PORTS);
        if self.found != ports {
            self.found = ports;
            self.tell_at = Some(now);
            self.agree(now);
        }
    }

    /// Forgets what was not told again for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.next_at.is_some_and(|at| at <= now) {
            self.agree(now);
        }
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next_at
    }

    /// The cables that a map of this host is to show as lossy, if these or the map changed since they were last taken.
    pub(crate) fn take_agreed(&mut self) -> Option<Vec<TaggedPort>> {
        std::mem::take(&mut self.changed).then(|| self.agreed.iter().map(|&(port, _)| port).collect())
    }

    /// Has the next [`Self::take_agreed`] tell them in any case, as the agent is another one.
    pub(crate) const fn tell_anew(&mut self) {
        self.changed = true;
    }

    /// The global mapper of the map whose routes are in use.
    fn mapper(&self) -> Option<Mac> {
        self.basis.as_ref()?.map().hosts.first().map(|host| host.mac)
    }

    /// Whether this host is the global mapper.
    pub(crate) fn is_mapper(&self) -> bool {
        self.mapper() == Some(self.own)
    }

    /// Puts together what the mapper's own findings and all reports name.
    fn agree(&mut self, now: Instant) {
        self.next_at = None;
        if !self.is_mapper() {
            return;
        }
        self.reports.retain(|_, report| report.until > now);
        let reported = self.reports.values().flat_map(|report| &report.ports).chain(&self.found);
        let reported: BTreeSet<TaggedPort> = reported.copied().collect();
        let before = self.agreed.len();
        self.agreed.retain(|(port, until)| reported.contains(port) || *until > now);
        let known: BTreeSet<TaggedPort> = self.agreed.iter().map(|&(port, _)| port).collect();
        let new: Vec<TaggedPort> = reported.difference(&known).copied().collect();
        self.changed |= self.agreed.len() < before || !new.is_empty();
        for port in new {
            let times = self.times.get(&port).copied().unwrap_or_default();
            if times > 0 || self.times.len() < MOST_COUNTED {
                self.times.insert(port, times.saturating_add(1));
            }
            self.agreed.push((port, now + HELD_FOR * (1 << times.min(MOST_DOUBLINGS))));
        }
        let held = self.agreed.iter().filter(|(port, _)| !reported.contains(port)).map(|&(_, until)| until);
        self.next_at = self.reports.values().map(|report| report.until).chain(held).min();
    }

    fn has_to_tell(&self) -> bool {
        !self.is_mapper() && self.under_way.is_none() && !(self.found.is_empty() && self.told.is_empty())
    }
}

impl Service for LossReports {
    fn number(&self) -> ServiceNumber {
        ServiceNumber::LOSS_REPORTS
    }

    fn map_changed(&mut self, now: Instant, place: &Place) {
        let (mapper, was_mapper) = (self.mapper(), self.is_mapper());
        self.basis = Some(Arc::clone(&place.basis));
        // Which cables routes can do without depends on the map.
        self.changed = true;
        if self.mapper() != mapper {
            self.told.clear();
        }
        self.tell_at = (!self.found.is_empty() || !self.told.is_empty()).then_some(now + FIRST_AFTER);
        if !self.is_mapper() {
            self.reports.clear();
            let map = place.basis.map();
            let named = |cable: &Cable| map.tagged(cable.a).or_else(|| map.tagged(cable.b));
            self.agreed = map.lossy.iter().filter_map(named).map(|port| (port, now + HELD_FOR)).collect();
            self.next_at = None;
            return;
        }
        let own = self.own;
        self.reports.retain(|mac, _| *mac == own || place.basis.lists(*mac));
        if !was_mapper && !self.agreed.is_empty() {
            let ports = self.agreed.iter().map(|&(port, _)| port).collect();
            self.reports.insert(own, Report { ports, until: now + FORGOTTEN_AFTER });
        }
        self.agree(now);
    }

    fn asked(&mut self, now: Instant, from: Mac, question: &[u8], _: usize) -> Option<Vec<u8>> {
        let is_of_map = self.basis.as_ref().is_some_and(|basis| basis.lists(from)) && from != self.own;
        let ports = read(question).filter(|_| self.is_mapper() && is_of_map)?;
        let until = now + FORGOTTEN_AFTER;
        match self.reports.get_mut(&from) {
            Some(known) if known.ports == ports => known.until = until,
            known if ports.is_empty() => {
                if known.is_some() {
                    self.reports.remove(&from);
                    self.agree(now);
                }
            }
            _ => {
                self.reports.insert(from, Report { ports, until });
                self.agree(now);
            }
        }
        Some(Vec::new())
    }

    fn answered(&mut self, now: Instant, to: Mac, answer: Option<&[u8]>) {
        let Some(told) = self.under_way.take() else { return };
        if answer.is_none() || self.mapper() != Some(to) {
            self.tell_at = Some(now + AGAIN_AFTER);
            return;
        }
        let wait = if told == self.found { TELL_EVERY } else { Duration::ZERO };
        self.tell_at = Some(now + wait);
        self.told = told;
    }

    fn poll_question(&mut self, now: Instant) -> Option<Question> {
        let to = self.mapper().filter(|_| self.poll_timeout().is_some_and(|at| at <= now))?;
        self.under_way = Some(self.found.clone());
        Some(Question { to, body: write(&self.found), room_bytes: 0 })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.tell_at.filter(|_| self.has_to_tell())
    }
}

fn write(ports: &[TaggedPort]) -> Vec<u8> {
    // There are at most eight.
    let mut bytes = vec![ports.len() as u8];
    for TaggedPort { tag, port } in ports {
        bytes.extend(tag.to_be_bytes());
        bytes.push(*port);
    }
    bytes
}

/// The ports in a question. `None` if no host would write it so.
fn read(question: &[u8]) -> Option<Vec<TaggedPort>> {
    let (&count, rest) = question.split_first()?;
    let (ports, rest) = rest.as_chunks::<9>();
    if ports.len() != usize::from(count) || ports.len() > MOST_PORTS || !rest.is_empty() {
        return None;
    }
    let port = |&[tag @ .., port]: &[u8; 9]| TaggedPort { tag: u64::from_be_bytes(tag), port };
    Some(ports.iter().map(port).collect())
}

#[cfg(test)]
mod tests;
