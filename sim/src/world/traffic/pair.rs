//! The frames from one host to another, and which of them arrived.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::wire::Route;

/// How long after it was sent a frame that has not arrived counts as lost. A frame that a host sends again
/// waits for at most 50 ms, and at most twice.
pub const LOST_AFTER: Duration = Duration::from_millis(250);
/// How long after it was sent a frame is remembered, so that one which arrives later than it may is told from one that arrives again.
const REMEMBERED_FOR: Duration = Duration::from_secs(5);

/// A time in which all frames from one host to another were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    /// When the first of them was sent.
    pub(super) from: Instant,
    /// When the first frame that arrived behind them was sent.
    pub(super) to: Instant,
    /// When the two hosts last had to find each other anew before the gap.
    pub(super) renewed_at: Option<Instant>,
    /// When the sender found, behind the last fault before the gap was over, that no safe route leads around dead cables.
    pub(super) no_safe_route_at: Option<Instant>,
}

impl Gap {
    /// When the first of its frames was sent that was not sent before this moment, if one was sent each `between`.
    pub(super) fn first_behind(&self, moment: Instant, between: Duration) -> Instant {
        let before = moment.as_nanos().saturating_sub(self.from.as_nanos());
        let frames = before.div_ceil((between.as_nanos() as u64).max(1));
        self.from + Duration::from_nanos(frames * between.as_nanos() as u64)
    }
}

/// How often a host's flows had to leave their routes and its frames came back so far. As long as none of
/// these counts changes, at the sender of a frame and at the host that sends it on by its tap interface, flows keep to
/// their routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Upheavals {
    /// How many agents were started there.
    pub(super) starts: u64,
    /// How often what its kernel holds has changed.
    pub(super) kernel_changes: u64,
    /// How many flows moved.
    pub(super) flows_moved: u64,
    /// How many frames were sent again.
    pub(super) resent: u64,
}

/// A part of a frame's way, from its sender or from a host on its way that sends it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::world) enum Leg {
    /// As a frame that this host sent along this route.
    Frame { by: u32, route: Route },
    /// As a packet that left crossbars by these channels.
    Packet { channels: Vec<u32> },
}

/// How a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It arrived behind all frames of its flow that were sent before it and arrived at all.
    InOrder,
    /// It arrived behind a frame of its flow that was sent after it.
    Overtaken {
        /// When it was sent.
        sent_at: Instant,
        /// What had happened at its sender by then.
        upheavals: Upheavals,
        /// The host on its way that sent it on by its tap interface, if one did, and what had happened there by then.
        relay: Option<(u32, Upheavals)>,
        /// Whether both were sent once and took the same way, on which nothing can overtake.
        same_way: bool,
    },
    /// It had arrived before.
    Again {
        /// When it was sent.
        sent_at: Instant,
    },
    /// It counted as lost already.
    Late {
        /// When it was sent.
        sent_at: Instant,
    },
    /// It was sent so long ago that nobody knows whether it has arrived before, or was never sent.
    Forgotten,
}

/// A frame that is no longer under way.
#[derive(Debug, Clone, Copy)]
struct Old {
    sent_at: Instant,
    arrived: bool,
}

/// A frame that may be under way still.
#[derive(Debug, Clone)]
struct Young {
    sent_at: Instant,
    upheavals: Upheavals,
    /// The host on its way that sent it on by its tap interface, and what had happened there by then.
    relay: Option<(u32, Upheavals)>,
    /// Its way so far, unless frames are not followed or it is a broadcast.
    legs: Vec<Leg>,
    arrived: bool,
    /// No cables led there when it was sent, so it could not arrive.
    excused: bool,
    /// What [`Pair::renewed_at`] was when it was sent.
    renewed_at: Option<Instant>,
    /// What [`Pair::no_safe_route_at`] was when it was sent.
    no_safe_route_at: Option<Instant>,
}

impl Young {
    /// Whether its way is known, and no host on it sent it again, as one does that is told of a dead cable.
    fn was_sent_once(&self) -> bool {
        let senders = self.legs.iter().filter_map(|leg| match leg {
            Leg::Frame { by, .. } => Some(by),
            Leg::Packet { .. } => None,
        });
        let mut known = BTreeSet::new();
        !self.legs.is_empty() && senders.into_iter().all(|by| known.insert(by))
    }
}

/// One host's frames to another.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) to: u32,
    pub(super) sent: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// How many of the lost frames could not arrive, as no cables led there when they were sent.
    pub(super) out_of_reach: u64,
    /// For each flow, one more than the number of the newest frame that arrived.
    newest: Vec<u64>,
    /// Whether no cables lead from one to the other now.
    pub(super) parted: bool,
    /// When cables last joined the two hosts again, or one of them started.
    pub(super) renewed_at: Option<Instant>,
    /// When the sender first found, behind the last fault of which that is so, that no safe route leads around dead cables.
    pub(super) no_safe_route_at: Option<Instant>,
    /// The frames that may be under way still, oldest first.
    young: VecDeque<Young>,
    /// The frames before those that were sent within [`REMEMBERED_FOR`], oldest first.
    old: VecDeque<Old>,
    /// Since when all frames were lost.
    lost_since: Option<Instant>,
    /// The moment of the last fault that made this pair lose frames.
    pub(super) hit_at: Option<Instant>,
}

impl Pair {
    /// A pair of which no frame was sent yet, whose frames go to this host and belong to so many flows in
    /// turn.
    pub(super) fn new(to: u32, flows: u64) -> Self {
        Self {
            to,
            sent: 0,
            delivered: 0,
            lost: 0,
            out_of_reach: 0,
            newest: vec![0; flows.max(1) as usize],
            parted: false,
            renewed_at: None,
            no_safe_route_at: None,
            young: VecDeque::new(),
            old: VecDeque::new(),
            lost_since: None,
            hit_at: None,
        }
    }

    /// Takes in that the next frame is sent. Returns its number.
    pub(super) fn send(&mut self, now: Instant) -> u64 {
        let upheavals = Upheavals::default();
        self.young.push_back(Young {
            sent_at: now,
            upheavals,
            relay: None,
            legs: Vec::new(),
            arrived: false,
            excused: self.parted,
            renewed_at: self.renewed_at,
            no_safe_route_at: self.no_safe_route_at,
        });
        self.sent += 1;
        self.sent - 1
    }

    /// Notes what had happened at the sender when it had found a route for the newest frame.
    pub(super) fn note_upheavals(&mut self, upheavals: Upheavals) {
        if let Some(newest) = self.young.back_mut() {
            newest.upheavals = upheavals;
        }
    }

    /// Notes what had happened at the host that sends the frame of this number on by its tap interface.
    pub(super) fn note_relay(&mut self, number: u64, at: u32, upheavals: Upheavals) {
        if let Some(frame) = self.young(number) {
            frame.relay = Some((at, upheavals));
        }
    }

    /// Notes a part of the way of the frame of this number.
    pub(super) fn note_leg(&mut self, number: u64, leg: Leg) {
        if let Some(frame) = self.young(number) {
            frame.legs.push(leg);
        }
    }

    fn young(&mut self, number: u64) -> Option<&mut Young> {
        let first = self.sent - self.young.len() as u64;
        self.young.get_mut(number.checked_sub(first)? as usize)
    }

    /// How a frame arrived that is no longer under way.
    fn arrive_old(&mut self, number: u64) -> Arrival {
        let first = self.sent - (self.young.len() + self.old.len()) as u64;
        let frame = number.checked_sub(first).and_then(|index| self.old.get_mut(index as usize));
        let Some(Old { sent_at, arrived }) = frame else { return Arrival::Forgotten };
        let sent_at = *sent_at;
        if std::mem::replace(arrived, true) { Arrival::Again { sent_at } } else { Arrival::Late { sent_at } }
    }

    /// Takes in that the frame of this number arrived.
    pub(super) fn arrive(&mut self, number: u64) -> Arrival {
        let Some(frame) = self.young(number) else { return self.arrive_old(number) };
        let Young { sent_at, upheavals, relay, .. } = *frame;
        if std::mem::replace(&mut frame.arrived, true) {
            return Arrival::Again { sent_at };
        }
        self.delivered += 1;
        let flow = number % self.newest.len() as u64;
        let newest = &mut self.newest[flow as usize];
        if number < *newest {
            let same_way = self.was_overtaken_on_its_way(number);
            return Arrival::Overtaken { sent_at, upheavals, relay, same_way };
        }
        *newest = number + 1;
        Arrival::InOrder
    }

    /// Whether some later frame of the same flow has arrived that took the same way as the one of this number.
    fn was_overtaken_on_its_way(&self, number: u64) -> bool {
        let (first, flows) = (self.sent - self.young.len() as u64, self.newest.len() as u64);
        let of_flow = (first..).zip(&self.young).filter(|(other, _)| other % flows == number % flows);
        let mut from_it = of_flow.skip_while(|&(other, _)| other < number).map(|(_, frame)| frame);
        let Some(frame) = from_it.next().filter(|frame| frame.was_sent_once()) else { return false };
        from_it.any(|later| later.arrived && later.legs == frame.legs)
    }

    /// Decides which of the frames that can be under way no more were lost. Returns a gap that is over; to be
    /// called until there is none.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Gap> {
        while let Some(&Young { sent_at, arrived, excused, renewed_at, no_safe_route_at, .. }) =
            self.young.front().filter(|frame| now.since(frame.sent_at) >= LOST_AFTER)
        {
            self.young.pop_front();
            self.old.push_back(Old { sent_at, arrived });
            while self.old.front().is_some_and(|oldest| now.since(oldest.sent_at) >= REMEMBERED_FOR) {
                self.old.pop_front();
            }
            self.lost += u64::from(!arrived);
            // A gap does not reach back beyond a time in which a host was gone, as it sent nothing meanwhile.
            self.lost_since = self.lost_since.filter(|&since| renewed_at.is_none_or(|anew| since >= anew));
            match (arrived, excused) {
                (true, _) => {
                    if let Some(from) = self.lost_since.take() {
                        return Some(Gap { from, to: sent_at, renewed_at, no_safe_route_at });
                    }
                }
                (false, true) => {
                    self.out_of_reach += 1;
                    self.lost_since = None;
                }
                (false, false) => {
                    self.lost_since.get_or_insert(sent_at);
                }
            }
        }
        None
    }

    /// How many frames have not arrived, and were sent too lately to count as lost.
    pub(super) fn undecided(&self) -> u64 {
        self.young.iter().filter(|frame| !frame.arrived).count() as u64
    }

    /// The gap that is not over yet, if there is one. It counts up to now, or up to when users stopped.
    pub(super) fn open_gap(&self, sent_until: Instant) -> Option<Gap> {
        let arrived = self.young.iter().find(|frame| frame.arrived);
        let of_now = (sent_until, self.renewed_at, self.no_safe_route_at);
        let (to, renewed_at, no_safe_route_at) =
            arrived.map_or(of_now, |frame| (frame.sent_at, frame.renewed_at, frame.no_safe_route_at));
        let from = self.lost_since.filter(|&since| renewed_at.is_none_or(|anew| since >= anew))?;
        Some(Gap { from, to, renewed_at, no_safe_route_at })
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::wire::Element;

    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn what_is_lost_comes_twice_or_late_is_told_apart() {
        let mut pair = Pair::new(1, 1);
        (0..5).for_each(|n| assert_eq!(pair.send(ms(10 * n)), n));
        let arrivals = [0, 3, 2, 3, 7].map(|number| pair.arrive(number));
        use Arrival::{Again, Forgotten, InOrder, Late, Overtaken};
        let (overtaken, again) = (
            Overtaken { sent_at: ms(20), upheavals: Upheavals::default(), relay: None, same_way: false },
            Again { sent_at: ms(30) },
        );
        assert_eq!(arrivals, [InOrder, InOrder, overtaken, again, Forgotten]);
        assert_eq!(pair.expire(ms(249)), None);
        assert_eq!(pair.lost, 0);
        assert_eq!(
            pair.expire(ms(1000)),
            Some(Gap { from: ms(10), to: ms(20), renewed_at: None, no_safe_route_at: None })
        );
        assert_eq!(pair.expire(ms(1000)), None);
        assert_eq!((pair.sent, pair.delivered, pair.lost), (5, 3, 2));
        assert_eq!(
            pair.open_gap(ms(1000)),
            Some(Gap { from: ms(40), to: ms(1000), renewed_at: None, no_safe_route_at: None })
        );
        let arrivals = [1, 1, 2].map(|number| pair.arrive(number));
        let again = |at| Again { sent_at: ms(at) };
        assert_eq!(arrivals, [Late { sent_at: ms(10) }, again(10), again(20)]);
        pair.send(ms(6000));
        pair.expire(ms(6300));
        assert_eq!(pair.arrive(1), Forgotten);
    }

    #[test]
    fn flows_may_overtake_each_other_and_not_themselves() {
        let mut pair = Pair::new(1, 2);
        (0..4).for_each(|n| assert_eq!(pair.send(ms(n)), n));
        let arrivals = [3, 0, 2, 1].map(|number| pair.arrive(number));
        assert_eq!(arrivals[..3], [Arrival::InOrder; 3]);
        assert!(matches!(arrivals[3], Arrival::Overtaken { .. }));
    }

    /// Whether a frame that took these legs was overtaken on its way, by a later one of its flow that took those.
    fn is_overtaken_on_its_way(legs: &[Leg], later: &[Leg]) -> bool {
        let mut pair = Pair::new(1, 2);
        (0..3).for_each(|n| assert_eq!(pair.send(ms(n)), n));
        for (number, legs) in [(0, legs), (1, legs), (2, later)] {
            legs.iter().for_each(|leg| pair.note_leg(number, leg.clone()));
        }
        assert_eq!([1, 2].map(|number| pair.arrive(number)), [Arrival::InOrder; 2]);
        let Arrival::Overtaken { same_way, .. } = pair.arrive(0) else { panic!("in order") };
        same_way
    }

    #[test]
    fn nothing_overtakes_on_one_way_unless_it_is_sent_again() {
        let frame = |by, turn| Leg::Frame { by, route: [Element::Relative(turn)].into_iter().collect() };
        let packet = |channel| Leg::Packet { channels: vec![channel] };
        assert!(is_overtaken_on_its_way(&[frame(0, 1)], &[frame(0, 1)]));
        assert!(!is_overtaken_on_its_way(&[frame(0, 1)], &[frame(0, 2)]));
        assert!(!is_overtaken_on_its_way(&[frame(0, 1), frame(0, 1)], &[frame(0, 1), frame(0, 1)]));
        assert!(!is_overtaken_on_its_way(&[], &[]), "nobody has followed them");
        assert!(is_overtaken_on_its_way(&[packet(3)], &[packet(3)]));
        assert!(is_overtaken_on_its_way(&[packet(3), frame(5, 1)], &[packet(3), frame(5, 1)]));
        assert!(!is_overtaken_on_its_way(&[packet(3), frame(5, 1)], &[packet(3), frame(5, 2)]));
        assert!(!is_overtaken_on_its_way(&[packet(3)], &[packet(4)]));
    }

    #[test]
    fn what_cannot_arrive_is_lost_and_no_gap() {
        let mut pair = Pair::new(1, 1);
        for n in 0..6 {
            pair.parted = (2..4).contains(&n);
            pair.send(ms(10 * n));
        }
        pair.arrive(0);
        pair.arrive(5);
        assert_eq!(
            pair.expire(ms(1000)),
            Some(Gap { from: ms(40), to: ms(50), renewed_at: None, no_safe_route_at: None })
        );
        assert_eq!((pair.delivered, pair.lost, pair.out_of_reach), (2, 4, 2));
    }

    #[test]
    fn each_frame_is_delivered_lost_or_undecided() {
        let mut pair = Pair::new(1, 1);
        (0..6).for_each(|n| assert_eq!(pair.send(ms(100 * n)), n));
        assert_eq!([1, 4].map(|number| pair.arrive(number)), [Arrival::InOrder; 2]);
        while pair.expire(ms(500)).is_some() {}
        assert_eq!((pair.sent, pair.delivered, pair.lost, pair.undecided()), (6, 2, 2, 2));
    }

    #[test]
    fn a_host_that_was_gone_sent_nothing() {
        let mut pair = Pair::new(1, 1);
        assert_eq!(pair.send(ms(0)), 0);
        // The last frame that a host sends before it is gone and the first once it is back are lost.
        assert_eq!(pair.send(ms(10)), 1);
        let renewed_at = Some(ms(500));
        pair.renewed_at = renewed_at;
        (0..3).for_each(|n| assert_eq!(pair.send(ms(510 + 10 * n)), 2 + n));
        pair.arrive(0);
        pair.arrive(4);
        pair.renewed_at = Some(ms(600));
        assert_eq!(
            pair.expire(ms(2000)),
            Some(Gap { from: ms(510), to: ms(530), renewed_at, no_safe_route_at: None })
        );
        assert_eq!((pair.delivered, pair.lost), (2, 3));
    }
}
