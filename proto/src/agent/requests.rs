//! Scouts that wait for a reply: sent again after a time-out, given up after a number of tries.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::wire::{Reason, Route};
use crate::{Instant, Mac};

/// What the agent wants to learn by a scout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// The parent's map version, while this agent has no valid map.
    ParentVersion,
    /// That the parent takes note: the map is invalid, or this subtree is complete.
    ParentNotice,
    /// That a child takes note: collect the map, or the map is invalid.
    ChildNotice(Mac),
    /// Whether the parent is as it should be.
    VerifyParent,
    /// Whether a child is as it should be.
    VerifyChild(Mac),
    /// Whether the host of a check is where the map says.
    VerifyHost(usize),
    /// A piece of the map.
    Piece,
    /// Nothing: pause, resume, printf.
    Courtesy,
}

/// A scout under way.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// What for.
    pub(super) asked: Asked,
    /// The way there.
    pub(super) route: Route,
    /// The way back that it carries.
    pub(super) way_back: Route,
    /// Why.
    pub(super) reason: Reason,
    /// How often it may be sent again.
    pub(super) tries_left: u8,
    deadline: Instant,
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

    /// None under way. `first` seeds the ids, so that a late reply to a former self misses.
    pub(super) fn new(first: u32) -> Self {
        Self { by_id: BTreeMap::new(), by_deadline: BTreeSet::new(), next: first }
    }

    /// Notes a scout and says under which id to send it. `None` if there are too many.
    pub(super) fn begin(
        &mut self,
        asked: Asked,
        (route, way_back): (Route, Route),
        reason: Reason,
        tries: u8,
        deadline: Instant,
    ) -> Option<u32> {
        if self.by_id.len() >= Self::LIMIT {
            return None;
        }
        let mut id = self.next | Self::ID_BIT;
        while self.by_id.contains_key(&id) {
            id = id.wrapping_add(1) | Self::ID_BIT;
        }
        self.next = id.wrapping_add(1);
        let tries_left = tries.saturating_sub(1);
        self.by_id.insert(id, Request { asked, route, way_back, reason, tries_left, deadline });
        self.by_deadline.insert((deadline, id));
        Some(id)
    }

    /// Ends the scout with this id: it was answered.
    pub(super) fn take(&mut self, id: u32) -> Option<Request> {
        let request = self.by_id.remove(&id)?;
        self.by_deadline.remove(&(request.deadline, id));
        Some(request)
    }

    /// A look at the scout with this id.
    pub(super) fn peek(&self, id: u32) -> Option<&Request> {
        self.by_id.get(&id)
    }

    /// A scout whose time has run out: to be sent again (it then waits until `now + wait`), or
    /// given up.
    pub(super) fn expired(&mut self, now: Instant, wait: Duration) -> Option<Expired> {
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
        request.deadline = now + wait;
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
    /// It had its tries.
    GivenUp(Request),
}
