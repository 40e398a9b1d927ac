//! Datagrams that a manager sends along directed routes, and their answers: with a window, time-outs and retries.

use std::time::Duration;

use mapper_proto::time::Instant;

use crate::mad::{Attribute, DATA_BYTES, Data, MAD_BYTES, ManagerMethod, Route, Smp};
use crate::requests::Requests;

/// The status bit of a node that is busy and is to be asked again.
pub(crate) const BUSY: u16 = 1;

/// A datagram to send, to which an answer is expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Order<P> {
    /// What the order is for.
    pub(crate) purpose: P,
    pub(crate) method: ManagerMethod,
    pub(crate) attribute: Attribute,
    pub(crate) modifier: u32,
    pub(crate) data: Data,
}

impl<P> Order<P> {
    /// Asks for an attribute.
    pub(crate) const fn get(purpose: P, attribute: Attribute, modifier: u32) -> Self {
        Self { purpose, method: ManagerMethod::Get, attribute, modifier, data: [0; DATA_BYTES] }
    }

    /// Writes an attribute.
    pub(crate) const fn set(purpose: P, attribute: Attribute, modifier: u32, data: Data) -> Self {
        Self { purpose, method: ManagerMethod::Set, attribute, modifier, data }
    }
}

/// Why an order was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Failure {
    /// There was no answer.
    Silent,
    /// The order was refused with a status.
    Refused {
        /// The status, as the specification numbers it.
        status: u16,
    },
    /// The answer says that all is well, but the attribute in it is not what was written.
    NotTaken,
}

/// What became of an order.
#[derive(Debug)]
pub(crate) struct Done<P> {
    pub(crate) order: Order<P>,
    pub(crate) route: Route,
    /// The attribute as it is now.
    pub(crate) result: Result<Data, Failure>,
}

/// How datagrams are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) window: usize,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) key: u64,
}

/// Orders that are not carried out yet.
#[derive(Debug)]
pub(crate) struct Exchange<P> {
    requests: Requests<Order<P>>,
    manner: Manner,
}

impl<P> Exchange<P> {
    pub(crate) fn new(manner: Manner, first_tid: u32) -> Self {
        Self { requests: Requests::new(manner.window, first_tid), manner }
    }

    pub(crate) fn order(&mut self, order: Order<P>, route: Route) {
        self.requests.ask(order, route);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether fewer orders are open than may be under way.
    pub(crate) fn has_room(&self) -> bool {
        self.requests.len() < self.manner.window
    }

    pub(crate) fn next_tid(&self) -> u32 {
        self.requests.next_tid()
    }

    /// The next datagram to send, if one may go out now.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<[u8; MAD_BYTES]> {
        self.next(now).map(|(smp, _)| smp.emit())
    }

    /// The next datagram and what it is for. [`Self::poll_transmit`] gives its bytes.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Smp<ManagerMethod>, &P)> {
        let (tid, request) = self.requests.send(now + self.manner.timeout)?;
        let Order { purpose, method, attribute, modifier, data } = &request.question;
        let smp = Smp {
            method: *method,
            status: 0,
            tid: tid.into(),
            attribute: *attribute,
            modifier: *modifier,
            key: self.manner.key,
            route: request.route.clone(),
            data: *data,
        };
        Some((smp, purpose))
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.requests.next_deadline()
    }

    /// An order that was not answered in time, however often it was sent. To be called until there is none.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Option<Done<P>> {
        while let Some(tid) = self.requests.expired(now) {
            if let Some(given_up) = self.try_again(tid, Failure::Silent) {
                return Some(given_up);
            }
        }
        None
    }

    /// The order that an answer ends, if it answers one that is open. `accepts` says whether an order took
    /// effect, from the attribute as it is now.
    pub(crate) fn handle(
        &mut self,
        answer: &Smp<ManagerMethod>,
        accepts: impl FnOnce(&Order<P>, &Data) -> bool,
    ) -> Option<Done<P>> {
        // Whatever carries datagrams uses the upper half of the transaction's number.
        let tid = answer.tid as u32;
        let asked = self.requests.get(tid)?;
        let order = &asked.question;
        let fits = answer.method == ManagerMethod::GetResponse
            && (answer.attribute, answer.modifier) == (order.attribute, order.modifier)
            && answer.route == asked.route;
        if !fits {
            return None;
        }
        // A port that is busy, or cannot do it yet, may be able to in a moment.
        if answer.status & BUSY != 0 || (answer.status != 0 && order.method == ManagerMethod::Set) {
            return self.try_again(tid, Failure::Refused { status: answer.status });
        }
        if answer.status == 0 && !accepts(order, &answer.data) {
            return self.try_again(tid, Failure::NotTaken);
        }
        let (order, route) = self.requests.take(tid)?;
        let result = match answer.status {
            0 => Ok(answer.data),
            status => Err(Failure::Refused { status }),
        };
        Some(Done { order, route, result })
    }

    fn try_again(&mut self, tid: u32, failure: Failure) -> Option<Done<P>> {
        let (order, route) = self.requests.again(tid, self.manner.retries)?;
        Some(Done { order, route, result: Err(failure) })
    }
}
