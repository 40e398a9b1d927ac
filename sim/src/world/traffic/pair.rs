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

/// How a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Behind all that were sent before it and arrived.
    InOrder,
    /// Behind one that was sent after it.
    Overtaken,
    /// Not for the first time, or when it was counted as lost.
    Again,
}

/// A frame that may be under way still.
#[derive(Debug, Clone, Copy)]
struct Young {
    sent_at: Instant,
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
        self.young.push_back(Young { sent_at: now, arrived: false, excused: self.parted });
        self.sent += 1;
        self.sent - 1
    }

    /// The frame of this number arrived.
    pub(super) fn arrive(&mut self, number: u64) -> Arrival {
        let first = self.sent - self.young.len() as u64;
        let place = number.checked_sub(first).and_then(|place| self.young.get_mut(place as usize));
        let Some(frame) = place.filter(|frame| !frame.arrived) else { return Arrival::Again };
        frame.arrived = true;
        self.delivered += 1;
        if number < self.newest {
            return Arrival::Overtaken;
        }
        self.newest = number + 1;
        Arrival::InOrder
    }

    /// Decides on the frames that are not young any more. Returns a gap that is over; to be called until
    /// there is none.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Gap> {
        while let Some(&Young { sent_at, arrived, excused }) =
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
        use Arrival::{Again, InOrder, Overtaken};
        assert_eq!(arrivals, [InOrder, InOrder, Overtaken, Again, Again]);
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
