//! Questions: those to ask, those under way, and those to ask again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mapper_proto::time::Instant;

use crate::mad::Route;

/// A question that is not answered yet.
#[derive(Debug)]
pub(crate) struct Request<Q> {
    pub(crate) question: Q,
    pub(crate) route: Route,
    /// How often it was sent.
    times_sent: u32,
    /// Until when its answer is waited for; `None` while it is not under way.
    deadline: Option<Instant>,
}

/// All questions that are not answered yet, by the numbers of their transactions. A question keeps its number when it
/// is asked again, so that a late answer counts.
#[derive(Debug)]
pub(crate) struct Requests<Q> {
    window: usize,
    next_tid: u32,
    open: BTreeMap<u32, Request<Q>>,
    /// The questions that were never asked, the oldest first.
    fresh: VecDeque<u32>,
    /// The questions to be asked again. Some may have been answered meanwhile.
    again: VecDeque<u32>,
    /// The questions under way, by the moments until which their answers are waited for.
    deadlines: BTreeSet<(Instant, u32)>,
}

impl<Q> Requests<Q> {
    /// No questions yet. The first one will have the number `first_tid`, and each the number after that of
    /// the one before.
    pub(crate) fn new(window: usize, first_tid: u32) -> Self {
        Self {
            window,
            next_tid: first_tid,
            open: BTreeMap::new(),
            fresh: VecDeque::new(),
            again: VecDeque::new(),
            deadlines: BTreeSet::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// How many questions are not answered yet.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn ask(&mut self, question: Q, route: Route) {
        let tid = self.next_tid;
        self.next_tid = tid.wrapping_add(1);
        self.open.insert(tid, Request { question, route, times_sent: 0, deadline: None });
        self.fresh.push_back(tid);
    }

    /// The number that the next transaction will have.
    pub(crate) fn next_tid(&self) -> u32 {
        self.next_tid
    }

    /// The next question to send and the number of its transaction, if the window has room.
    pub(crate) fn send(&mut self, deadline: Instant) -> Option<(u32, &Request<Q>)> {
        if self.deadlines.len() >= self.window {
            return None;
        }
        let tid = loop {
            let tid = self.fresh.pop_front().or_else(|| self.again.pop_front())?;
            if self.open.contains_key(&tid) {
                break tid;
            }
        };
        let request = self.open.get_mut(&tid)?;
        request.times_sent += 1;
        request.deadline = Some(deadline);
        self.deadlines.insert((deadline, tid));
        Some((tid, request))
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }

    /// A question under way whose answer was waited for long enough.
    pub(crate) fn expired(&self, now: Instant) -> Option<u32> {
        self.deadlines.first().filter(|&&(deadline, _)| deadline <= now).map(|&(_, tid)| tid)
    }

    pub(crate) fn get(&self, tid: u32) -> Option<&Request<Q>> {
        self.open.get(&tid).filter(|request| request.times_sent > 0)
    }

    /// Takes out a question, as it was answered.
    pub(crate) fn take(&mut self, tid: u32) -> Option<(Q, Route)> {
        let request = self.open.remove(&tid)?;
        if let Some(deadline) = request.deadline {
            self.deadlines.remove(&(deadline, tid));
        }
        Some((request.question, request.route))
    }

    /// Has a question under way asked again, after all that were not asked yet. If it was asked again
    /// `retries` times already, it is given up and returned.
    pub(crate) fn again(&mut self, tid: u32, retries: u32) -> Option<(Q, Route)> {
        let request = self.open.get_mut(&tid)?;
        // A second answer to a question that waits for its turn changes nothing.
        let deadline = request.deadline.take()?;
        self.deadlines.remove(&(deadline, tid));
        if request.times_sent <= retries {
            self.again.push_back(tid);
            return None;
        }
        self.take(tid)
    }
}
