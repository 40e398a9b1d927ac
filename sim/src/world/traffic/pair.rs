//! The frames from one host to another, and which of them arrived.

use std::collections::VecDeque;
use std::time::Duration;

use mapper_proto::Instant;

/// What has not arrived by then is lost: a frame that a host sends again waits for 50 ms at most, twice.
const PATIENCE: Duration = Duration::from_millis(250);

/// A time in which all frames from one host to another were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    /// When the first of them was sent.
    pub(super) from: Instant,
    /// When the first behind them was sent.
    pub(super) to: Instant,
}

/// How often a host's flows had to leave their routes, and its frames came back, so far: as long as it stays
/// as it is, flows keep to their routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Upheavals {
    /// The agents that were started there.
    pub(super) starts: u64,
    /// Flows that moved.
    pub(super) flows_moved: u64,
    /// Frames that were sent again.
    pub(super) resent: u64,
}

/// How a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Behind all that were sent before it and arrived.
    InOrder,
    /// Behind one that was sent after it.
    Overtaken {
        /// When it was sent.
        sent_at: Instant,
        /// What had happened at its sender by then.
        upheavals: Upheavals,
    },
    /// Not for the first time.
    Again {
        /// When it was sent.
        sent_at: Instant,
    },
    /// When it was counted already, as lost or as delivered.
    Late,
}

/// A frame that may be under way still.
#[derive(Debug, Clone, Copy)]
struct Young {
    sent_at: Instant,
    upheavals: Upheavals,
    arrived: bool,
    /// No cables led there when it was sent, so it could not arrive.
    excused: bool,
}

/// One host's frames to another.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) to: u32,
    pub(super) sent: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// The newest that arrived, and one.
    newest: u64,
    /// Whether no cables lead from one to the other now.
    pub(super) parted: bool,
    /// The frames that may be under way still, oldest first.
    young: VecDeque<Young>,
    /// Since when all were lost.
    lost_since: Option<Instant>,
    /// The moment of the last fault that hit it.
    pub(super) hit_at: Option<Instant>,
}

impl Pair {
    pub(super) fn new(to: u32) -> Self {
        Self {
            to,
            sent: 0,
            delivered: 0,
            lost: 0,
            newest: 0,
            parted: false,
            young: VecDeque::new(),
            lost_since: None,
            hit_at: None,
        }
    }

    /// The next frame is sent. Returns its number.
    pub(super) fn send(&mut self, now: Instant) -> u64 {
        let upheavals = Upheavals::default();
        self.young.push_back(Young { sent_at: now, upheavals, arrived: false, excused: self.parted });
        self.sent += 1;
        self.sent - 1
    }

    /// What had happened at the sender when it had found the newest frame a route.
    pub(super) fn note_upheavals(&mut self, upheavals: Upheavals) {
        if let Some(newest) = self.young.back_mut() {
            newest.upheavals = upheavals;
        }
    }

    /// The frame of this number arrived.
    pub(super) fn arrive(&mut self, number: u64) -> Arrival {
        let first = self.sent - self.young.len() as u64;
        let place = number.checked_sub(first).and_then(|place| self.young.get_mut(place as usize));
        let Some(frame) = place else { return Arrival::Late };
        let (sent_at, upheavals) = (frame.sent_at, frame.upheavals);
        if std::mem::replace(&mut frame.arrived, true) {
            return Arrival::Again { sent_at };
        }
        self.delivered += 1;
        if number < self.newest {
            return Arrival::Overtaken { sent_at, upheavals };
        }
        self.newest = number + 1;
        Arrival::InOrder
    }

    /// Decides on the frames that are not young any more. Returns a gap that is over; to be called until
    /// there is none.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Gap> {
        while let Some(&Young { sent_at, arrived, excused, .. }) =
            self.young.front().filter(|frame| now.since(frame.sent_at) >= PATIENCE)
        {
            self.young.pop_front();
            self.lost += u64::from(!arrived);
            match (arrived, excused) {
                (true, _) => {
                    if let Some(from) = self.lost_since.take() {
                        return Some(Gap { from, to: sent_at });
                    }
                }
                (false, true) => self.lost_since = None,
                (false, false) => {
                    self.lost_since.get_or_insert(sent_at);
                }
            }
        }
        None
    }

    /// The gap that is not over.
    pub(super) fn open_gap(&self, now: Instant) -> Option<Gap> {
        let to = self.young.iter().find(|frame| frame.arrived).map_or(now, |frame| frame.sent_at);
        self.lost_since.map(|from| Gap { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn what_is_lost_comes_twice_or_late_is_told_apart() {
        let mut pair = Pair::new(1);
        (0..5).for_each(|n| assert_eq!(pair.send(ms(10 * n)), n));
        let arrivals = [0, 3, 2, 3, 7].map(|number| pair.arrive(number));
        use Arrival::{Again, InOrder, Late, Overtaken};
        let (overtaken, again) =
            (Overtaken { sent_at: ms(20), upheavals: Upheavals::default() }, Again { sent_at: ms(30) });
        assert_eq!(arrivals, [InOrder, InOrder, overtaken, again, Late]);
        assert_eq!(pair.expire(ms(249)), None);
        assert_eq!(pair.lost, 0);
        assert_eq!(pair.expire(ms(1000)), Some(Gap { from: ms(10), to: ms(20) }));
        assert_eq!(pair.expire(ms(1000)), None);
        assert_eq!((pair.sent, pair.delivered, pair.lost), (5, 3, 2));
        assert_eq!(pair.open_gap(ms(1000)), Some(Gap { from: ms(40), to: ms(1000) }));
    }
    #[test]
    fn what_cannot_arrive_is_lost_and_no_gap() {
        let mut pair = Pair::new(1);
        for n in 0..6 {
            pair.parted = (2..4).contains(&n);
            pair.send(ms(10 * n));
        }
        pair.arrive(0);
        pair.arrive(5);
        assert_eq!(pair.expire(ms(1000)), Some(Gap { from: ms(40), to: ms(50) }));
        assert_eq!((pair.delivered, pair.lost), (2, 4));
    }
}
