//! One route through the kernels, and how far it is proved.

use std::net::Ipv6Addr;
use std::time::Duration;

use mapper_fib::segments::{self, Element, Packing};
use mapper_proto::Instant;
use mapper_proto::map::PortRef;
use mapper_proto::wire::RoundTrip;

/// How long an answer to a probe of a way that is not proved is waited for, before the next is sent.
const ANSWER_WITHIN: Duration = Duration::from_millis(60);
/// The same of a way that is proved. Cables that die are found much sooner by other means, and a machine that is
/// busy must not look like one that does not forward.
const RECHECK_WITHIN: Duration = Duration::from_millis(500);
/// How many probes in a row get no answer from a way that was proved and works no more. That takes longer than a map
/// without a host whose daemon has crashed: its kernel may go on, and answers no probe.
const MISSES_OF_PROVED: u8 = 8;
/// Every so manieth time a way that is used in full segments is tried in compressed ones.
const TRY_COMPRESSED_EVERY: u8 = 4;
/// How many probes in a row get no answer from a way that does not work.
const MISSES: u8 = 3;
/// How often a way that works is tried again.
const RECHECK_EVERY: Duration = Duration::from_secs(2);
/// How long a way that does not work is left alone at first; each time it is twice as long.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often that is doubled at most, which makes it half a minute.
const MOST_DOUBLINGS: u8 = 5;

/// A route to a host, as the kernels on it would obey it.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// Names it among all ways of this host; its nexthops are numbered by it.
    pub(super) number: u32,
    /// The way of the agent's own frames through the same ports.
    pub(super) round_trip: RoundTrip,
    /// The ports by which it leaves the crossbars.
    pub(super) hops: Vec<PortRef>,
    /// What crossbars go by.
    pub(super) course: Course,
    /// The port of this host that it leaves by.
    pub(super) port: u8,
    /// The number of the interface that it leaves by.
    pub(super) interface: u32,
    /// The longest frame that all cables on it carry, in bytes behind the Ethernet header.
    pub(super) link_mtu: u32,
    proof: Proof,
    /// How often it was tried again since it is proved.
    rechecks: u8,
    /// The nonce of the probe that is under way.
    pub(super) nonce: Option<u64>,
    /// Whether that probe has compressed segments, while packets have full ones.
    is_trial: bool,
    /// How elements are packed where nothing speaks against it.
    preferred: Option<Packing>,
}

/// Where a way leaves this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaving {
    /// The port.
    pub(super) port: u8,
    /// The number of its interface.
    pub(super) interface: u32,
    /// The longest frame that all cables on the way carry, in bytes behind the Ethernet header.
    pub(super) link_mtu: u32,
}

/// What crossbars go by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Course {
    /// The segments in the packet.
    Segments {
        /// The elements, but for the last one, which says what is inside.
        elements: Vec<Element>,
        /// Whether crossbars are taken to know several elements in one address.
        packing: Packing,
    },
    /// The destination, by tables of their own.
    Destination,
}

impl Course {
    /// How elements are packed; `None` where there are none.
    const fn packing(&self) -> Option<Packing> {
        match self {
            Self::Segments { packing, .. } => Some(*packing),
            Self::Destination => None,
        }
    }

    /// Has elements packed otherwise.
    const fn set_packing(&mut self, wanted: Packing) {
        if let Self::Segments { packing, .. } = self {
            *packing = wanted;
        }
    }

    /// Whether it leads the same way, however it is packed.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Segments { elements, .. }, Self::Segments { elements: other, .. }) => elements == other,
            (Self::Destination, Self::Destination) => true,
            (Self::Segments { .. } | Self::Destination, _) => false,
        }
    }
}

/// What is known of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Nothing yet. So many probes were not answered.
    Sought { misses: u8, refuted: u8 },
    /// Probes get there. So many in a row were not answered since.
    Found { misses: u8 },
    /// Probes do not get there; that was found so many times in a row.
    Refuted { times: u8 },
}

/// What becomes of a way when its time comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// A probe is to be sent.
    Probe {
        /// Whether it is to be as long as the longest packet.
        full_length: bool,
        /// Whether it is to turn at the last crossbar and come home, which takes no answer of the host.
        turns: bool,
    },
    /// The way carried packets, and does so no more.
    Lost,
    /// It was tried in vain, and is left alone for a while.
    Left,
}

impl Way {
    /// A way that nothing is known of. `interface` and `link_mtu` are those of the port that it leaves by.
    pub(super) fn new(
        number: u32,
        (round_trip, hops): (RoundTrip, Vec<PortRef>),
        course: Course,
        Leaving { port, interface, link_mtu }: Leaving,
    ) -> Self {
        let proof = Proof::Sought { misses: 0, refuted: 0 };
        let preferred = course.packing();
        Self {
            number,
            round_trip,
            hops,
            course,
            port,
            interface,
            link_mtu,
            proof,
            rechecks: 0,
            nonce: None,
            is_trial: false,
            preferred,
        }
    }

    /// Where and how it leaves this host.
    pub(super) const fn leaving(&self) -> Leaving {
        Leaving { port: self.port, interface: self.interface, link_mtu: self.link_mtu }
    }

    /// Whether packets may take it.
    pub(super) const fn is_proved(&self) -> bool {
        matches!(self.proof, Proof::Found { .. })
    }

    /// Whether it was tried, and does not work.
    pub(super) const fn is_refuted(&self) -> bool {
        matches!(self.proof, Proof::Refuted { .. } | Proof::Sought { refuted: 1.., .. })
    }

    /// The segments of the probe that is to be sent.
    pub(super) fn segments_of_probe(&self) -> Option<Vec<Ipv6Addr>> {
        match (&self.course, self.preferred.filter(|_| self.is_trial)) {
            (Course::Segments { elements, .. }, Some(preferred)) => {
                let elements: Vec<_> = elements.iter().copied().chain([Element::DeliverV6]).collect();
                segments::segments(&elements, preferred)
            }
            _ => self.segments(Element::DeliverV6),
        }
    }

    /// The segments of packets of this kind, none where crossbars go by the destination; `None` if there are too
    /// many.
    pub(super) fn segments(&self, last: Element) -> Option<Vec<Ipv6Addr>> {
        let Course::Segments { elements, packing } = &self.course else { return Some(Vec::new()) };
        let elements: Vec<_> = elements.iter().copied().chain([last]).collect();
        segments::segments(&elements, *packing)
    }

    /// The longest packet that it carries, in bytes.
    pub(super) fn mtu(&self) -> u32 {
        match self.segments(Element::DeliverV6) {
            Some(segments) if segments.is_empty() => self.link_mtu,
            Some(segments) => self.link_mtu.saturating_sub(segments::overhead_bytes(segments.len())),
            None => 0,
        }
    }

    /// Forgets that it did not work, as something on the way has changed. Returns whether its time is now.
    pub(super) fn try_again(&mut self, packing: Packing) -> bool {
        let tries = !self.is_proved();
        if tries {
            self.proof = Proof::Sought { misses: 0, refuted: 0 };
            (self.nonce, self.is_trial) = (None, false);
            self.preferred = self.preferred.map(|_| packing);
            self.course.set_packing(packing);
        }
        tries
    }

    /// Does what is due. Returns that, and when its time comes next. `may_turn` says that probes may turn at the last
    /// crossbar in turn with those that the host answers: a new way is tried so first, and one that is proved once the
    /// host did not answer.
    pub(super) fn fire(&mut self, now: Instant, may_turn: bool) -> (Due, Instant) {
        let (due, next) = self.next_due(now, may_turn);
        if matches!(due, Due::Probe { .. }) && self.segments_of_probe().is_none() {
            // There are more crossbars on it than a list of segments has room for.
            let times = match self.proof {
                Proof::Sought { refuted, .. } | Proof::Refuted { times: refuted } => refuted,
                Proof::Found { .. } => 0,
            };
            self.proof = Proof::Refuted { times: times.saturating_add(1) };
            return (Due::Left, now + RETRY_AFTER * (1 << times.min(MOST_DOUBLINGS)));
        }
        let turns = may_turn
            && match self.proof {
                Proof::Sought { misses, .. } => misses.is_multiple_of(2),
                Proof::Found { misses } => !self.is_trial && !misses.is_multiple_of(2),
                Proof::Refuted { .. } => false,
            };
        match due {
            Due::Probe { full_length, .. } => (Due::Probe { full_length, turns }, next),
            Due::Lost | Due::Left => (due, next),
        }
    }

    /// Does what is due, with probes that the host answers. Of a new way there are as many of them as without those that
    /// turn.
    fn next_due(&mut self, now: Instant, may_turn: bool) -> (Due, Instant) {
        let missed = self.nonce.take().is_some() && !std::mem::take(&mut self.is_trial);
        let wait = if self.is_proved() { RECHECK_WITHIN } else { ANSWER_WITHIN };
        let probe = |full_length| (Due::Probe { full_length, turns: false }, now + wait);
        let most_misses = if may_turn { 2 * MISSES } else { MISSES };
        match &mut self.proof {
            Proof::Sought { misses, .. } if missed && *misses + 1 < most_misses => {
                *misses += 1;
                probe(true)
            }
            Proof::Found { misses } if missed && *misses + 1 < MISSES_OF_PROVED => {
                *misses += 1;
                probe(false)
            }
            Proof::Sought { refuted, .. } if missed => {
                let refuted = *refuted;
                if let Course::Segments { packing: packing @ Packing::Compressed, .. } = &mut self.course {
                    // A crossbar on the way may know no compressed elements.
                    *packing = Packing::Full;
                    self.proof = Proof::Sought { misses: 0, refuted };
                    return probe(true);
                }
                self.proof = Proof::Refuted { times: refuted.saturating_add(1) };
                (Due::Left, now + RETRY_AFTER * (1 << refuted.min(MOST_DOUBLINGS)))
            }
            Proof::Sought { .. } => probe(true),
            Proof::Found { .. } if missed => {
                self.proof = Proof::Sought { misses: 0, refuted: 1 };
                (Due::Lost, now + RETRY_AFTER)
            }
            Proof::Found { .. } => {
                self.rechecks = self.rechecks.wrapping_add(1);
                // A busy machine may have answered too late when compressed elements were tried.
                self.is_trial = self.preferred != self.course.packing()
                    && self.rechecks.is_multiple_of(TRY_COMPRESSED_EVERY);
                probe(self.is_trial)
            }
            Proof::Refuted { times } => {
                self.proof = Proof::Sought { misses: 0, refuted: *times };
                if let Some(preferred) = self.preferred {
                    self.course.set_packing(preferred);
                }
                probe(true)
            }
        }
    }

    /// Takes in that the probe under way was answered. Returns whether packets may take the way from now on
    /// that could not before, and when its time comes next.
    pub(super) fn answered(&mut self, now: Instant) -> (bool, Instant) {
        self.nonce = None;
        let is_trial = std::mem::take(&mut self.is_trial);
        if let Some(preferred) = self.preferred.filter(|_| is_trial) {
            self.course.set_packing(preferred);
        }
        let is_news = !self.is_proved() || is_trial;
        self.proof = Proof::Found { misses: 0 };
        // Ways are checked at different moments, whatever brought them all up at one.
        let spread = Duration::from_millis(u64::from(self.number % 64) * 8);
        (is_news, now + RECHECK_EVERY + spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Due = Due::Probe { full_length: true, turns: false };
    const SHORT: Due = Due::Probe { full_length: false, turns: false };

    fn way() -> Way {
        let elements = vec![Element::FirstPort(1), Element::Port(2)];
        let course = Course::Segments { elements, packing: Packing::Compressed };
        let leaving = Leaving { port: 1, interface: 2, link_mtu: 1500 };
        Way::new(3, (RoundTrip::default(), Vec::new()), course, leaving)
    }

    /// Fires, and says that a probe is under way if one is to be sent.
    fn fire(way: &mut Way, now: &mut Instant) -> Due {
        fire_or_turn(way, now, false)
    }

    fn fire_or_turn(way: &mut Way, now: &mut Instant, may_turn: bool) -> Due {
        let (due, next) = way.fire(*now, may_turn);
        assert!(next > *now);
        *now = next;
        if matches!(due, Due::Probe { .. }) {
            way.nonce = Some(7);
        }
        due
    }

    #[test]
    fn a_way_is_proved_by_an_answer_and_lost_after_eight_that_do_not_come() {
        let (mut way, mut now) = (way(), Instant::ZERO);
        assert_eq!(fire(&mut way, &mut now), LONG);
        assert!(!way.is_proved());
        let (news, next) = way.answered(now);
        assert!(news && way.is_proved() && next > now + Duration::from_secs(1));
        assert_eq!(fire(&mut way, &mut now), SHORT);
        assert!(!way.answered(now).0, "it is no news that it works still");
        for _ in 0..MISSES_OF_PROVED {
            assert!(way.is_proved());
            assert_eq!(fire(&mut way, &mut now), SHORT);
        }
        assert_eq!(fire(&mut way, &mut now), Due::Lost);
        assert!(!way.is_proved() && way.is_refuted());
        assert_eq!(fire(&mut way, &mut now), LONG);
        assert!(way.answered(now).0 && way.is_proved());
    }

    #[test]
    fn of_a_host_that_answered_before_probes_turn_at_the_last_crossbar_until_it_answers_again() {
        let turning = |full_length| Due::Probe { full_length, turns: true };
        let (mut way, mut now) = (way(), Instant::ZERO);
        // It may have crashed, so nobody waits for its answer first; and if it has a crossbar of another kind, it does.
        for expected in [turning(true), LONG, turning(true)] {
            assert_eq!(fire_or_turn(&mut way, &mut now, true), expected);
        }
        assert!(way.answered(now).0 && way.is_proved());
        for expected in [SHORT, turning(false), SHORT, turning(false)] {
            assert_eq!(fire_or_turn(&mut way, &mut now, true), expected);
        }
        // While it is away, every other probe proves the way, which is not lost.
        for _ in 0..20 {
            assert!(!way.answered(now).0);
            assert_eq!(fire_or_turn(&mut way, &mut now, true), SHORT);
            assert_eq!(fire_or_turn(&mut way, &mut now, true), turning(false));
        }
    }

    #[test]
    fn a_way_that_is_not_obeyed_compressed_is_tried_in_full_and_then_left_alone_longer_and_longer() {
        let (mut way, mut now) = (way(), Instant::ZERO);
        for _ in 0..MISSES {
            assert_eq!(fire(&mut way, &mut now), LONG);
            assert_eq!(way.mtu(), 1460);
        }
        for _ in 0..MISSES {
            assert_eq!(fire(&mut way, &mut now), LONG);
            assert_eq!(way.mtu(), 1420, "three segments stand in a routing header");
        }
        let mut pauses = Vec::new();
        for _ in 0..9 {
            let before = now;
            assert_eq!(fire(&mut way, &mut now), Due::Left);
            assert!(way.is_refuted() && !way.is_proved());
            pauses.push(now.since(before));
            for _ in 0..2 * MISSES {
                assert_eq!(fire(&mut way, &mut now), LONG);
            }
        }
        assert!(pauses.is_sorted() && pauses[0] == RETRY_AFTER && pauses[8] == Duration::from_secs(32));
        assert!(way.answered(now).0 && way.mtu() == 1420);
    }

    #[test]
    fn a_way_in_full_segments_is_tried_in_compressed_ones_now_and_then() {
        let (mut way, mut now) = (way(), Instant::ZERO);
        for _ in 0..2 * MISSES {
            fire(&mut way, &mut now);
        }
        assert!(way.answered(now).0 && way.segments_of_probe().unwrap().len() == 3);
        let mut trials = 0;
        for _ in 0..3 * TRY_COMPRESSED_EVERY {
            let due = fire(&mut way, &mut now);
            if way.segments_of_probe().unwrap().len() == 1 {
                // It gets lost, which says nothing of the way as it is used.
                trials += 1;
                assert_eq!(due, LONG);
                assert_eq!(fire(&mut way, &mut now), SHORT);
            }
            assert!(way.is_proved() && !way.answered(now).0);
        }
        assert!(trials > 1);
        while way.segments_of_probe().unwrap().len() > 1 {
            fire(&mut way, &mut now);
            if way.segments_of_probe().unwrap().len() > 1 {
                way.answered(now);
            }
        }
        assert!(way.answered(now).0 && way.mtu() == 1460, "it is news that packets may be longer");
    }
}
