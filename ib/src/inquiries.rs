//! Questions for paths that programs of this machine ask. They are put to the subnet's administration,
//! wherever that is.
//!
//! A manager that is master asks its own administration. One that stands by asks that of the master by
//! datagrams, and subscribes to what happens in the subnet as soon as a program asks for a path. An answer
//! holds until the number of [`Inquiries::generation`] rises. That is when something happened, twice more
//! while the master may still be writing, and in any case after a while.

mod inquiry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mapper_proto::time::Instant;

use crate::mad::sa::{InformInfo, SaAttribute, SaMad, SaMethod, SaStatus};
use crate::packet::{Address, Packet};
pub use inquiry::{Destination, FoundPath};

use inquiry::Inquiry;

/// Most questions under way.
const MAX_OPEN: usize = 1024;
/// How often a question without an answer is sent again.
const RETRIES: u32 = 3;
/// How long an answer holds at most while the master tells what happens.
const KEPT: Duration = Duration::from_secs(60);
/// How long an answer holds at most while the master does not tell what happens.
const KEPT_UNTOLD: Duration = Duration::from_secs(10);
/// How long after something happened answers are dropped once more, as the master may have written tables
/// since.
const SETTLED: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(10)];
/// The queue pair of management.
const MANAGEMENT_PAIR: u32 = 1;

/// Where this port is, and where the administration of its subnet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Standpoint {
    /// The port's first LID.
    pub(crate) lid: u16,
    /// The LID of the administration.
    pub(crate) administration: u16,
    /// The service level of packets to the administration.
    pub(crate) level: u8,
}

/// What a datagram under way is for.
#[derive(Debug)]
enum Purpose {
    /// A question for a path, with the number that the asker gave it.
    Path(u64, Box<Inquiry>),
    /// A subscription to what happens in the subnet.
    Subscription,
}

#[derive(Debug)]
struct Open {
    purpose: Purpose,
    mad: SaMad,
    times_sent: u32,
    deadline: Instant,
}

/// Questions, and how long their answers hold.
#[derive(Debug)]
pub(crate) struct Inquiries {
    /// How long an answer is waited for.
    timeout: Duration,
    /// Where this port and the administration are; `None` if there is no administration that could be asked
    /// by datagrams.
    standpoint: Option<Standpoint>,
    open: BTreeMap<u32, Open>,
    next_tid: u32,
    out: VecDeque<Packet>,
    found: VecDeque<(u64, FoundPath)>,
    is_subscribed: bool,
    generation: u64,
    /// Whether an answer was given since the generation last rose.
    has_told: bool,
    /// The moments at which the generation rises in any case.
    rises_at: VecDeque<Instant>,
}

impl Inquiries {
    /// No questions yet. An answer is waited for as long as `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            standpoint: None,
            open: BTreeMap::new(),
            next_tid: 1,
            out: VecDeque::new(),
            found: VecDeque::new(),
            is_subscribed: false,
            generation: 0,
            has_told: false,
            rises_at: VecDeque::new(),
        }
    }

    /// A number that rises whenever answers of before may no longer hold.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether there is an administration that can be asked by datagrams.
    pub(crate) const fn has_administration(&self) -> bool {
        self.standpoint.is_some()
    }

    /// Takes in where this port and the administration are. If that has changed, no answer of before holds.
    pub(crate) fn stand_at(&mut self, standpoint: Option<Standpoint>) {
        if self.standpoint == standpoint {
            return;
        }
        self.standpoint = standpoint;
        self.is_subscribed = false;
        self.out.clear();
        for open in std::mem::take(&mut self.open).into_values() {
            self.give_up(&open.purpose);
        }
        self.rise();
    }

    /// Takes in that no answer of before holds any more.
    pub(crate) fn rise(&mut self) {
        self.generation += 1;
        self.has_told = false;
    }

    /// Begins to ask for the path to a destination. [`Self::poll_found`] tells what came of it, under this
    /// number.
    pub(crate) fn ask(&mut self, number: u64, own_description: &str, to: &Destination, now: Instant) {
        let Some(standpoint) = self.standpoint.filter(|_| self.open.len() < MAX_OPEN) else {
            return self.tell(number, FoundPath::Unavailable, now);
        };
        match Inquiry::new(standpoint.lid, own_description, to) {
            Err(found) => self.tell(number, found, now),
            Ok(inquiry) => {
                self.subscribe(now);
                let mad = inquiry.request.clone();
                self.send(Purpose::Path(number, Box::new(inquiry)), mad, now);
            }
        }
    }

    /// Does the same by asking this manager's own administration, which answers at once.
    pub(crate) fn ask_own(
        &mut self,
        number: u64,
        (lid, own_description): (u16, &str),
        to: &Destination,
        now: Instant,
        mut answer: impl FnMut(&SaMad) -> SaMad,
    ) {
        let found = match Inquiry::new(lid, own_description, to) {
            Err(found) => found,
            Ok(mut inquiry) => loop {
                let answer = answer(&inquiry.request);
                if let Some(found) = inquiry.take(&answer) {
                    break found;
                }
            },
        };
        self.tell(number, found, now);
    }

    /// A question that has ended, and what came of it.
    pub(crate) fn poll_found(&mut self) -> Option<(u64, FoundPath)> {
        self.found.pop_front()
    }

    /// The next datagram to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<Packet> {
        self.out.pop_front()
    }

    /// When to call [`Self::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let open = self.open.values().map(|open| open.deadline);
        open.chain(self.rises_at.front().copied()).min()
    }

    /// Sends questions again that were not answered, or gives them up, and raises the generation when that is
    /// due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let is_late = |open: &Open| open.deadline <= now;
        let late: Vec<u32> =
            self.open.iter().filter(|(_, open)| is_late(open)).map(|(&tid, _)| tid).collect();
        for tid in late {
            let Some(mut open) = self.open.remove(&tid) else { continue };
            if open.times_sent > RETRIES {
                self.give_up(&open.purpose);
                continue;
            }
            open.times_sent += 1;
            open.deadline = now + self.timeout;
            self.out.extend(self.packet(&open.mad));
            self.open.insert(tid, open);
        }
        while self.rises_at.front().is_some_and(|&at| at <= now) {
            self.rises_at.pop_front();
            if self.has_told {
                self.rise();
            }
        }
    }

    /// Takes a datagram of the administration's class. Returns false if it is a request, which is for an
    /// administration.
    pub(crate) fn handle_packet(&mut self, packet: &Packet, now: Instant) -> bool {
        let Address::Lid { lid, .. } = packet.address else { return false };
        let Ok(mad) = SaMad::parse(&packet.mad) else { return false };
        let is_of_administration = self.standpoint.is_some_and(|standpoint| standpoint.administration == lid);
        match mad.method {
            SaMethod::GetResponse => {
                if is_of_administration {
                    self.handle_answer(&mad, now);
                }
                true
            }
            SaMethod::Report => {
                if is_of_administration {
                    self.out.push_back(Packet { address: packet.address, mad: mad.answered(0).emit() });
                    self.something_happened(now);
                }
                true
            }
            _ => false,
        }
    }

    fn handle_answer(&mut self, answer: &SaMad, now: Instant) {
        // Whatever carries datagrams uses the upper half of the transaction's number.
        let tid = answer.tid as u32;
        let fits = |open: &&Open| open.mad.attribute == answer.attribute;
        if self.open.get(&tid).filter(fits).is_none() || answer.status == SaStatus::Busy.code() {
            // An administration that is busy is asked again when the time for an answer is over.
            return;
        }
        let Some(open) = self.open.remove(&tid) else { return };
        match open.purpose {
            Purpose::Subscription => self.is_subscribed = answer.status == 0,
            Purpose::Path(number, mut inquiry) => match inquiry.take(answer) {
                Some(found) => self.tell(number, found, now),
                None => {
                    let mad = inquiry.request.clone();
                    self.send(Purpose::Path(number, inquiry), mad, now);
                }
            },
        }
    }

    fn something_happened(&mut self, now: Instant) {
        if self.has_told {
            self.rise();
        }
        self.rises_at = SETTLED.into_iter().map(|after| now + after).collect();
    }

    /// Subscribes to what happens in the subnet, unless that was done.
    fn subscribe(&mut self, now: Instant) {
        let is_asked = self.open.values().any(|open| matches!(open.purpose, Purpose::Subscription));
        if self.is_subscribed || is_asked {
            return;
        }
        let wanted = InformInfo {
            first_lid: InformInfo::ALL,
            is_generic: true,
            subscribes: true,
            trap_type: InformInfo::ALL,
            trap: InformInfo::ALL,
            queue_pair: MANAGEMENT_PAIR,
            producer: InformInfo::ALL_PRODUCERS,
            ..InformInfo::parse(&[])
        };
        let mad = inquiry::request(SaMethod::Set, SaAttribute::InformInfo, 0, &wanted.emit());
        self.send(Purpose::Subscription, mad, now);
    }

    fn send(&mut self, purpose: Purpose, mut mad: SaMad, now: Instant) {
        let tid = self.next_tid;
        self.next_tid = tid.wrapping_add(1);
        mad.tid = tid.into();
        self.out.extend(self.packet(&mad));
        self.open.insert(tid, Open { purpose, mad, times_sent: 1, deadline: now + self.timeout });
    }

    fn packet(&self, mad: &SaMad) -> Option<Packet> {
        let Standpoint { administration: lid, level, .. } = self.standpoint?;
        let address = Address::Lid { lid, queue_pair: MANAGEMENT_PAIR, level };
        Some(Packet { address, mad: mad.emit() })
    }

    fn give_up(&mut self, purpose: &Purpose) {
        if let Purpose::Path(number, _) = purpose {
            self.found.push_back((*number, FoundPath::Unavailable));
        }
    }

    fn tell(&mut self, number: u64, found: FoundPath, now: Instant) {
        self.found.push_back((number, found));
        self.has_told = true;
        if self.rises_at.is_empty() && self.standpoint.is_some() {
            self.rises_at.push_back(now + if self.is_subscribed { KEPT } else { KEPT_UNTOLD });
        }
    }
}
