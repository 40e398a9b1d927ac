//! Scouts that wait for a reply: sent again after a time-out, given up after a number of tries.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::map::PortRef;
use crate::wire::{Answer, Reason, RoundTrip};
use crate::{Instant, Mac};

/// What the agent wants to learn by a scout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// The map version of this parent, while this agent has no valid map.
    ParentVersion(Mac),
    /// That this parent takes note: this subtree is complete, or is no longer.
    ParentNotice(Mac),
    /// That this host takes note: its map is known not to hold.
    Refutation(Mac),
    /// That a child takes note: collect the map, or the map is invalid.
    ChildNotice(Mac),
    /// Whether the parent is as it should be.
    VerifyParent,
    /// Whether a child is as it should be.
    VerifyChild(Mac),
    /// Whether the host of a check is where the map says.
    VerifyHost(usize),
    /// Whether the host at this port, whose cable is said to be dead, answers.
    DoubtedHost(PortRef),
    /// A piece of the map that this host holds.
    Piece(Mac),
    /// Whether another host with this agent's own address is there.
    Twin,
    /// Whether the host at this contested port of the map is as it was.
    Contested(usize),
    /// That a host is quiet while this agent maps.
    Pause,
    /// That a host knows that it may go on.
    Resume,
    /// Nothing. The scout tells something: a text to print, or that the map is invalid.
    Courtesy,
    /// What a service of this host wants to know of another.
    Service {
        /// The service's own number for it.
        ticket: u32,
        /// The host that is asked.
        to: Mac,
    },
}

impl Asked {
    /// Whether verification asks this, which is in no hurry.
    const fn is_of_verification(self) -> bool {
        matches!(self, Self::VerifyParent | Self::VerifyChild(_) | Self::VerifyHost(_))
    }

    /// The only host whose answer counts. Where it is `None`, it tells something too if another
    /// host answers.
    const fn of_whom(self) -> Option<Mac> {
        match self {
            Self::ParentVersion(mac)
            | Self::ParentNotice(mac)
            | Self::Refutation(mac)
            | Self::ChildNotice(mac)
            | Self::Piece(mac)
            | Self::Service { to: mac, .. } => Some(mac),
            Self::VerifyParent
            | Self::VerifyChild(_)
            | Self::VerifyHost(_)
            | Self::DoubtedHost(_)
            | Self::Twin
            | Self::Contested(_)
            | Self::Pause
            | Self::Resume
            | Self::Courtesy => None,
        }
    }
}

/// A scout under way.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// What this agent wants to learn by it.
    pub(super) asked: Asked,
    /// The way that it takes, and the way back that it carries.
    pub(super) way: RoundTrip,
    /// Why.
    pub(super) reason: Reason,
    /// How often it may be sent again.
    pub(super) tries_left: u8,
    /// How long an answer to its last try is waited for.
    wait: Duration,
    deadline: Instant,
}

impl Request {
    /// Whether an answer is one to this scout: of its kind and, for a piece, the one asked for.
    const fn is_answered_by(&self, answer: &Answer) -> bool {
        // The match names every reason, so that a new one does not compile before it is decided what answers it.
        match &self.reason {
            Reason::MapRequest { piece, .. } => {
                matches!(answer, Answer::MapRequest { piece: sent, .. } if *sent == *piece)
            }
            Reason::Service { service, .. } => {
                matches!(answer, Answer::Service { service: answering, .. } if answering.0 == service.0)
            }
            Reason::Mapping => matches!(answer, Answer::Mapping),
            Reason::QueryMapVersion { .. } => matches!(answer, Answer::QueryMapVersion),
            Reason::Tree { .. } => matches!(answer, Answer::Tree),
            Reason::Verify => matches!(answer, Answer::Verify),
            Reason::Pause { .. } => matches!(answer, Answer::Pause),
            Reason::Resume => matches!(answer, Answer::Resume),
            Reason::Printf { .. } => matches!(answer, Answer::Printf),
            Reason::AddressConflict { .. } => matches!(answer, Answer::AddressConflict),
            Reason::Hello => matches!(answer, Answer::Hello),
            // Answers to checks of paths do not come here: [`liveness`](super::liveness) matches them by their ids.
            Reason::Alive { .. } => false,
        }
    }
}

/// All scouts under way. Ids have the first bit set: those of probes have it clear.
#[derive(Debug)]
pub(super) struct Requests {
    by_id: BTreeMap<u32, Request>,
    by_deadline: BTreeSet<(Instant, u32)>,
    next: u32,
}

impl Requests {
    /// The first bit of every id given out here.
    pub(super) const ID_BIT: u32 = 1 << 31;
    /// Most scouts under way at once.
    const LIMIT: usize = 1024;

    /// No scout is under way. Ids count from `first`, which is drawn at random, so that a late reply to a
    /// former self fits none.
    pub(super) fn new(first: u32) -> Self {
        Self { by_id: BTreeMap::new(), by_deadline: BTreeSet::new(), next: first }
    }

    /// Notes a scout, whose answer is waited for as long as `wait`, and says under which id to send it. `None` if there are
    /// too many. Ids grow by less than half of all numbers of 31 bits while any scout matters, and after the highest comes the
    /// lowest, so who gets two scouts of one run can tell which was begun first.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        (asked, way, reason): (Asked, RoundTrip, Reason),
        tries: u8,
        wait: Duration,
    ) -> Option<u32> {
        if self.by_id.len() >= Self::LIMIT {
            return None;
        }
        let mut id = self.next | Self::ID_BIT;
        while self.by_id.contains_key(&id) {
            id = id.wrapping_add(1) | Self::ID_BIT;
        }
        self.next = id.wrapping_add(1);
        let (tries_left, deadline) = (tries.saturating_sub(1), now + wait);
        self.by_id.insert(id, Request { asked, way, reason, tries_left, wait, deadline });
        self.by_deadline.insert((deadline, id));
        Some(id)
    }

    /// Ends the scout with this id if this is the answer of a host that was asked. A reply that does
    /// not fit changes nothing: that of another host, which stands where the way now leads, must not
    /// end the wait for the one that was asked.
    pub(super) fn take_answered(&mut self, id: u32, from: Mac, answer: &Answer) -> Option<Request> {
        let asked = self.by_id.get(&id)?.asked;
        if asked.of_whom().is_some_and(|mac| mac != from) {
            return None;
        }
        self.take_answered_by_any(id, answer)
    }

    /// Ends the scout with this id if this answers it, whichever host the answer is from.
    pub(super) fn take_answered_by_any(&mut self, id: u32, answer: &Answer) -> Option<Request> {
        if !self.by_id.get(&id)?.is_answered_by(answer) {
            return None;
        }
        let request = self.by_id.remove(&id)?;
        self.by_deadline.remove(&(request.deadline, id));
        Some(request)
    }

    /// A scout whose time has run out. It is to be sent again, or it is given up. What verification asks waits twice
    /// as long with each try until that is `longest_wait`, and as long as that from then on.
    pub(super) fn expired(&mut self, now: Instant, longest_wait: Duration) -> Option<Expired> {
        let &(deadline, id) = self.by_deadline.first()?;
        if deadline > now {
            return None;
        }
        self.by_deadline.remove(&(deadline, id));
        let request = self.by_id.get_mut(&id)?;
        if request.tries_left == 0 {
            return self.by_id.remove(&id).map(Expired::GivenUp);
        }
        request.tries_left -= 1;
        if request.asked.is_of_verification() {
            request.wait = request.wait.max((request.wait * 2).min(longest_wait));
        }
        request.deadline = now + request.wait;
        self.by_deadline.insert((request.deadline, id));
        Some(Expired::Again(id, request.clone()))
    }

    /// When the next time-out falls due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by_deadline.first().map(|&(deadline, _)| deadline)
    }

    /// Forgets all scouts that are no longer wanted.
    pub(super) fn forget(&mut self, unwanted: impl Fn(Asked) -> bool) {
        self.by_id.retain(|_, request| !unwanted(request.asked));
        let by_id = &self.by_id;
        self.by_deadline.retain(|(_, id)| by_id.contains_key(id));
    }

    /// Whether a scout with this purpose is under way.
    pub(super) fn waits_for(&self, asked: Asked) -> bool {
        self.by_id.values().any(|request| request.asked == asked)
    }

    /// How many scouts with a purpose of this kind are under way.
    pub(super) fn count(&self, of_kind: impl Fn(Asked) -> bool) -> usize {
        self.by_id.values().filter(|request| of_kind(request.asked)).count()
    }
}

/// What becomes of a scout whose time has run out.
#[derive(Debug)]
pub(super) enum Expired {
    /// Send it again under this id.
    Again(u32, Request),
    /// Give it up: it has had all its tries.
    GivenUp(Request),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MapVersion;

    #[test]
    fn a_reply_that_does_not_fit_changes_nothing() {
        let mut requests = Requests::new(7);
        let version = MapVersion { mac: Mac::from_position(1), counter: 1 };
        let reason = Reason::MapRequest { version, piece: 3, room_bytes: 5 };
        let way = RoundTrip::default();
        let parent = Mac::from_position(2);
        let wait = Duration::from_millis(10);
        let id = requests.begin(Instant::ZERO, (Asked::Piece(parent), way, reason), 1, wait).unwrap();
        let piece = |piece| Answer::MapRequest { version, piece, pieces: 9, needs_bytes: 1, bytes: vec![1] };
        assert!(requests.take_answered(id, parent, &Answer::Verify).is_none());
        assert!(requests.take_answered(id, parent, &piece(2)).is_none(), "another piece");
        assert!(requests.take_answered(id ^ 1, parent, &piece(3)).is_none());
        assert!(requests.take_answered(id, Mac::from_position(3), &piece(3)).is_none(), "another host");
        assert!(requests.take_answered(id, parent, &piece(3)).is_some());
        assert!(requests.take_answered(id, parent, &piece(3)).is_none(), "a duplicate");
        assert_eq!(requests.deadline(), None);
    }
}
