//! The service by which hosts tell the global mapper which cables carry frames and lose many.
//!
//! A host goes around such a cable at once where its own routes may, but some pairs of hosts have no other way in the order that
//! the map gives to routes, as on a ring. With a map that shows the cable as lossy all hosts order their routes as if it were not there.
//! So the host tells the global mapper, and again every [`TELL_EVERY`] as long as it finds the cable lossy: the mapper forgets what it was not
//! told again for [`FORGOTTEN_AFTER`], so that a host that went or started again leaves nothing behind. A host that is
//! to map in another's place begins with what the map in force shows.
//!
//! A question is the count of ports (1 byte) and the ports that hold the cables, each as the xbar's tag (8) and its number
//! there (1), those first that were found first. The answer is empty. Cables of xbars without a tag have no name that
//! holds in two maps, so nobody is told of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::map::TaggedPort;
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
    /// The cables that the next map is to show, those first that were found first.
    agreed: Vec<TaggedPort>,
    /// Whether these changed since they were taken.
    changed: bool,
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
        }
    }

    /// Says which cables this host finds lossy, those first that were found first.
    pub(crate) fn set_found(&mut self, now: Instant, mut ports: Vec<TaggedPort>) {
        ports.truncate(MOST_PORTS);
        if self.found != ports {
            self.found = ports;
            self.tell_at = Some(now);
            self.agree();
        }
    }

    /// Forgets what was not told again for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let before = self.reports.len();
        self.reports.retain(|_, report| report.until > now);
        if self.reports.len() < before {
            self.agree();
        }
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.reports.values().map(|report| report.until).min()
    }

    /// The cables that a map of this host is to show as lossy, if that changed since they were last taken.
    pub(crate) fn take_agreed(&mut self) -> Option<Vec<TaggedPort>> {
        std::mem::take(&mut self.changed).then(|| self.agreed.clone())
    }

    /// Has the next [`Self::take_agreed`] tell them in any case, as the agent is another one.
    pub(crate) const fn tell_anew(&mut self) {
        self.changed = true;
    }

    /// The global mapper of the map whose routes are in use.
    fn mapper(&self) -> Option<Mac> {
        self.basis.as_ref()?.map().hosts.first().map(|host| host.mac)
    }

    fn is_mapper(&self) -> bool {
        self.mapper() == Some(self.own)
    }

    /// Puts together what the mapper's own findings and all reports name.
    fn agree(&mut self) {
        if !self.is_mapper() {
            return;
        }
        let reported = || self.reports.values().flat_map(|report| &report.ports).chain(&self.found);
        let mut agreed = self.agreed.clone();
        agreed.retain(|known| reported().any(|port| port == known));
        for port in reported() {
            if !agreed.contains(port) {
                agreed.push(*port);
            }
        }
        self.changed |= self.agreed != agreed;
        self.agreed = agreed;
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
        if self.mapper() != mapper {
            self.told.clear();
        }
        self.tell_at = (!self.found.is_empty() || !self.told.is_empty()).then_some(now + FIRST_AFTER);
        if !self.is_mapper() {
            self.reports.clear();
            let map = place.basis.map();
            self.agreed = map.lossy.iter().filter_map(|cable| map.tagged(cable.a)).collect();
            self.changed = true;
            return;
        }
        let own = self.own;
        self.reports.retain(|mac, _| *mac == own || place.basis.lists(*mac));
        if !was_mapper && !self.agreed.is_empty() {
            let inherited = Report { ports: self.agreed.clone(), until: now + FORGOTTEN_AFTER };
            self.reports.insert(own, inherited);
        }
        self.agree();
    }

    fn asked(&mut self, now: Instant, from: Mac, question: &[u8], _: usize) -> Option<Vec<u8>> {
        let is_of_map = self.basis.as_ref().is_some_and(|basis| basis.lists(from)) && from != self.own;
        let ports = read(question).filter(|_| self.is_mapper() && is_of_map)?;
        if ports.is_empty() {
            self.reports.remove(&from);
        } else {
            self.reports.insert(from, Report { ports, until: now + FORGOTTEN_AFTER });
        }
        self.agree();
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
