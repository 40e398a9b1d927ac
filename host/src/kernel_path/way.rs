//! One route through the kernels, and how far it is proved.

mod course;
mod of_v4;
mod packets;
#[cfg(test)]
mod tests;

use std::time::Duration;

use mapper_fib::segments::Packing;
use mapper_proto::Instant;
use mapper_proto::map::PortRef;
use mapper_proto::wire::RoundTrip;

use super::RECHECK_USED_EVERY;
use super::unlisted::UNLISTED_FOR;
pub(super) use course::{Course, Leaving};
use of_v4::OfV4;
pub(super) use of_v4::TRY_EVERY as TRY_V4_EVERY;

/// How long an answer to a probe of a way that is not proved is waited for, before the next is sent.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_millis(60);
/// How long an answer to a probe of a way that is proved is waited for, where nothing else is known of the
/// way. Cables that die are found much sooner by other means, and a busy machine must not look like one that
/// does not forward.
const RECHECK_WITHIN: Duration = Duration::from_millis(500);
/// A way that was proved is lost if no probe was answered for this long, and no cable is held for dead. That is longer than it
/// takes until there is a map without a host whose daemon has crashed, as that host's kernel may go on while nobody there
/// answers probes.
const UNANSWERED_FOR: Duration = Duration::from_secs(4);
/// As [`UNANSWERED_FOR`], if packets were sent to the host meanwhile and its agent was listened for in vain. No other way is better
/// then: that agent would have to deliver what the tap interface carries. On a busy machine it can take very long until there is a
/// map without the host, from which on its ways are kept for so long as well.
const SILENT_FOR: Duration = UNLISTED_FOR;
/// How long an answer to a probe of a way that is used is waited for, while there are not [`MISSES_OF_USED`] in a row. If one
/// is waited for longer, it is looked at after each such time whether the host's agent is heard again.
const USED_WITHIN: Duration = Duration::from_millis(100);
/// A way is lost if so many probes in a row were not answered while the agent of the host at its end, which
/// would answer them, answered checks by its own frames.
const MISSES_OF_USED: u8 = 5;
/// How long after the first probe that is not answered a used way is lost whose host's agent answers
/// otherwise.
pub(super) const USED_LEFT_AFTER: Duration = USED_WITHIN.saturating_mul(MISSES_OF_USED as u32);
/// Of so many tries of a way whose packets have full segments, one has compressed ones.
const TRY_COMPRESSED_EVERY: u8 = 4;
/// Of so many tries of a way that is proved, one has a probe as long as the longest packet. Somebody may have
/// lowered the MTU of an interface on the way, which short probes do not show.
const TRY_LENGTH_EVERY: u8 = 5;
/// A way that is not proved does not work if so many probes in a row were not answered.
const MISSES: u8 = 3;
/// The longest frame of ordinary links, in bytes behind the Ethernet header. A way along which frames as long as its cables'
/// ends say are lost is tried with such ones: what is between the ends, as a switch or a converter of media, says nothing of
/// itself, nor do crossbars without an agent tell how long frames of cables between them may be.
const ORDINARY_MTU: u32 = 1500;
/// Of so many tries of a way that carries no longer frames, one has a probe as long as its cables' ends say.
const TRY_LONGER_EVERY: u8 = 4;
/// How often a way that works is tried again if there are few ways.
pub(super) const RECHECK_EVERY: Duration = Duration::from_secs(2);
/// How long a way that does not work is left alone at first; each time it is twice as long.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How often [`RETRY_AFTER`] is doubled at most, which makes half a minute. Where there are many ways it is
/// longer.
const MOST_DOUBLINGS: u8 = 5;

/// A route to a host, as the kernels on it would obey it.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// The number that names the way among all ways of this host.
    pub(super) number: u32,
    /// Its place among the ways to its host, from 0.
    pub(super) place: u32,
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
    /// The longest frame that all cables on it carry by what their ends say, in bytes behind the Ethernet header.
    pub(super) link_mtu: u32,
    /// The longest frame that is taken to pass: that, or [`ORDINARY_MTU`] if such ones are lost.
    carried_mtu: u32,
    /// Whether a probe along it got lost that was longer than that, while shorter ones are answered.
    longer_is_lost: bool,
    proof: Proof,
    /// How often the way was tried again since it was proved.
    rechecks: u8,
    /// The nonce of the probe that is under way.
    pub(super) nonce: Option<u64>,
    /// When the last probe was sent.
    probed_at: Instant,
    /// Until when the answer to the last probe is waited for.
    answer_by: Instant,
    /// When the first of the latest probes in a row that were not answered was sent.
    missing_since: Instant,
    /// Whether one of these was given up while packets were sent to the host and its agent was listened for, and the agent was not
    /// heard since.
    missing_in_use: bool,
    /// What the probe under way has otherwise than packets, if it is a trial.
    trial: Option<Trial>,
    /// The trial that is to be the next probe. It follows an answer at once and takes no other probe's turn, as its own
    /// loss says nothing of the way.
    next_trial: Option<Trial>,
    /// Whether probes are as long as the longest packet until one is answered.
    tries_length: bool,
    /// How elements are packed unless a crossbar on the way does not obey it.
    preferred: Option<Packing>,
    /// Whether packets of IPv4 get through, too.
    of_v4: OfV4,
    /// Whether that can be asked, as both hosts have addresses of IPv4 and the one at the end answers there.
    tries_v4: bool,
    /// See [`Self::is_silent_behind`].
    is_silent_behind: bool,
}

/// What a probe has otherwise than the packets that go along its way, to find whether these could have it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    /// Compressed segments instead of full ones.
    Packing,
    /// It is as long as the ends of all cables say.
    Length,
    /// It is of IPv4, which something on the way may treat otherwise.
    Version4,
}

/// What is known of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Nothing yet. In this try `misses` probes were not answered, and `refuted` tries before it were in
    /// vain.
    Sought { misses: u8, refuted: u8 },
    /// Probes get there and are answered.
    Found {
        /// How many probes in a row were not answered since.
        misses: u8,
        /// How many of the latest of these were not answered while the host's agent answered its own frames.
        while_heard: u8,
    },
    /// Probes do not get there, which was found `times` times in a row.
    Refuted { times: u8 },
}

/// What is known of the host at a way's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FarEnd {
    /// Whether probes that turn at the last crossbar may alternate with those that the host answers. A new
    /// way is first tried by one that turns; a proved one is tried so once the host did not answer.
    pub(super) may_turn: bool,
    /// Whether packets are sent to the host.
    pub(super) is_used: bool,
    /// Whether the agent is asked by its own frames whether it is there.
    pub(super) is_listened_for: bool,
    /// When the host's agent was last heard to answer anything; `None` for never.
    pub(super) heard_at: Option<Instant>,
}

/// What becomes of a way when its time comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// A probe is to be sent.
    Probe {
        /// Whether the probe is to be as long as the longest packet.
        full_length: bool,
        /// Whether the probe is to turn at the last crossbar and come home, which needs no answer of the
        /// host.
        turns: bool,
    },
    /// The way carried packets, and does so no more.
    Lost,
    /// The way was tried in vain, and is left alone for a while.
    Left,
    /// The probe under way is waited for further.
    Wait,
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
            place: 0,
            round_trip,
            hops,
            course,
            port,
            interface,
            link_mtu,
            carried_mtu: link_mtu,
            longer_is_lost: false,
            proof,
            rechecks: 0,
            nonce: None,
            probed_at: Instant::ZERO,
            answer_by: Instant::ZERO,
            missing_since: Instant::ZERO,
            missing_in_use: false,
            trial: None,
            next_trial: None,
            tries_length: false,
            preferred,
            of_v4: OfV4::UNKNOWN,
            tries_v4: false,
            is_silent_behind: false,
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

    /// Whether it was tried in vain so often that it is left alone for the longest time.
    pub(super) const fn is_hopeless(&self) -> bool {
        matches!(self.proof, Proof::Refuted { times } if times > MOST_DOUBLINGS)
    }

    /// Whether packets of IPv4 may take it, of a way that others may take.
    pub(super) const fn carries_v4(&self) -> bool {
        self.of_v4.gets_through()
    }

    /// Whether packets may take it, and it is not known yet whether those of IPv4 may.
    pub(super) const fn is_v4_unknown(&self) -> bool {
        self.is_proved() && self.of_v4.is_unknown()
    }

    /// Whether the probe that is to be sent is of IPv4.
    pub(super) fn probes_v4(&self) -> bool {
        self.trial == Some(Trial::Version4)
    }

    /// Whether the last probe that was answered turned before the host, and one to the host was not answered before it. So the
    /// host's agent is silent, and nobody says whether packets of IPv4 get through.
    pub(super) const fn is_silent_behind(&self) -> bool {
        self.is_silent_behind
    }

    /// Takes in whether the probe that is answered now turned before the host, and whether it can be asked from now on whether
    /// packets of IPv4 get through.
    pub(super) const fn note_answer(&mut self, turned: bool, tries_v4: bool) {
        let has_missed = match self.proof {
            Proof::Sought { misses, .. } | Proof::Found { misses, .. } => misses > 0,
            Proof::Refuted { .. } => false,
        };
        (self.is_silent_behind, self.tries_v4) = (turned && has_missed, tries_v4);
    }

    /// Takes in that the host at its end has another address of IPv4. Whether packets of IPv4 get through depends on the kernels
    /// on the way, so they go on; where they did not, it is tried anew.
    pub(super) const fn try_v4_again(&mut self) {
        if !self.of_v4.gets_through() {
            self.of_v4 = OfV4::UNKNOWN;
        }
    }

    /// Forgets that it works, as what answered probes may not be at its end any more.
    pub(super) const fn forget_proof(&mut self) {
        if self.is_proved() {
            self.proof = Proof::Sought { misses: 0, refuted: 0 };
        }
    }

    /// Forgets that it did not work, as something on the way has changed. Returns whether its time is now.
    pub(super) fn try_again(&mut self, packing: Packing) -> bool {
        let tries = !self.is_proved();
        if tries {
            self.proof = Proof::Sought { misses: 0, refuted: 0 };
            (self.nonce, self.trial, self.next_trial) = (None, None, None);
            self.take_longest();
            self.preferred = self.preferred.map(|_| packing);
            self.course.set_packing(packing);
        }
        tries
    }

    /// Does what is due. Returns that, and when its time comes next.
    pub(super) fn fire(&mut self, now: Instant, end: FarEnd) -> (Due, Instant) {
        if self.nonce.is_some() && now < self.answer_by && !self.is_given_up_early(now, end) {
            return (Due::Wait, self.next_look(now, end));
        }
        let may_turn = end.may_turn;
        let (due, next) = self.next_due(now, end);
        if matches!(due, Due::Probe { .. }) && self.segments_of_probe().is_none() {
            // The way has more crossbars than a list of segments has room for.
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
                Proof::Found { misses, .. } => self.trial.is_none() && !misses.is_multiple_of(2),
                Proof::Refuted { .. } => false,
            };
        match due {
            Due::Probe { full_length, .. } => {
                (self.probed_at, self.answer_by) = (now, next);
                (Due::Probe { full_length, turns }, self.next_look(now, end))
            }
            Due::Lost | Due::Left | Due::Wait => (due, next),
        }
    }

    /// Whether the agent at the way's end was heard since the last probe was sent.
    fn was_heard(&self, end: FarEnd) -> bool {
        end.heard_at.is_some_and(|at| at > self.probed_at)
    }

    /// Whether the probe under way is given up before its time: it was sent when the way was not used or its host silent, and
    /// now the way is used and the host's agent is heard.
    fn is_given_up_early(&self, now: Instant, end: FarEnd) -> bool {
        self.is_proved() && end.is_used && self.was_heard(end) && now >= self.probed_at + USED_WITHIN
    }

    /// When the way is looked at again while a probe is under way. A used way is tried often as soon as its host's agent is
    /// heard, so that is before the probe is given up if the probe is waited for longer than those of used ways are.
    fn next_look(&self, now: Instant, end: FarEnd) -> Instant {
        if end.is_used { self.answer_by.min(now + USED_WITHIN) } else { self.answer_by }
    }

    /// When the way is tried that packets may take since this moment. If a probe is under way, that is when its answer would
    /// have come.
    pub(super) fn used_from(&self, since: Instant) -> Instant {
        if self.nonce.is_some() {
            self.probed_at + USED_WITHIN
        } else {
            since + self.spread(RECHECK_USED_EVERY)
        }
    }

    /// Does what is due, with probes that the host answers. A new way gets as many of these as if no probes
    /// turned before the host.
    fn next_due(&mut self, now: Instant, end: FarEnd) -> (Due, Instant) {
        let missed_trial = self.trial.take();
        let missed = self.nonce.take().is_some() && missed_trial.is_none();
        match missed_trial {
            Some(Trial::Length) => self.longer_is_lost = true,
            Some(Trial::Version4) => self.of_v4.missed(),
            Some(Trial::Packing) | None => {}
        }
        let probe = |full_length| (Due::Probe { full_length, turns: false }, now + ANSWER_WITHIN);
        let most_misses = if end.may_turn { 2 * MISSES } else { MISSES };
        if missed && let Proof::Found { misses, while_heard } = self.proof {
            return self.missed_of_proved(now, end, (misses, while_heard));
        }
        match &mut self.proof {
            Proof::Sought { misses, .. } if missed && *misses + 1 < most_misses => {
                *misses += 1;
                probe(true)
            }
            Proof::Sought { refuted, .. } if missed => {
                let refuted = *refuted;
                if let Course::Segments { packing: packing @ Packing::Compressed, .. } = &mut self.course {
                    // A crossbar on the way may know no compressed elements.
                    *packing = Packing::Full;
                    self.proof = Proof::Sought { misses: 0, refuted };
                    return probe(true);
                }
                if self.carried_mtu > ORDINARY_MTU {
                    self.carried_mtu = ORDINARY_MTU;
                    self.proof = Proof::Sought { misses: 0, refuted };
                    return probe(true);
                }
                self.proof = Proof::Refuted { times: refuted.saturating_add(1) };
                (Due::Left, now + RETRY_AFTER * (1 << refuted.min(MOST_DOUBLINGS)))
            }
            Proof::Sought { .. } => probe(true),
            Proof::Found { .. } => {
                self.trial = self.next_trial.take();
                if self.trial.is_none() {
                    self.rechecks = self.rechecks.wrapping_add(1);
                    self.tries_length |= self.rechecks.is_multiple_of(TRY_LENGTH_EVERY);
                }
                let within = if end.is_used { USED_WITHIN } else { RECHECK_WITHIN };
                let full_length = match self.trial {
                    Some(Trial::Packing | Trial::Length) => true,
                    Some(Trial::Version4) => false,
                    None => self.tries_length,
                };
                (Due::Probe { full_length, turns: false }, now + within)
            }
            Proof::Refuted { times } => {
                self.proof = Proof::Sought { misses: 0, refuted: *times };
                self.take_longest();
                if let Some(preferred) = self.preferred {
                    self.course.set_packing(preferred);
                }
                probe(true)
            }
        }
    }

    /// Does what is due after a probe of a way that is proved was not answered. An agent that answers nothing
    /// may have crashed while its kernel goes on; but an agent that answers its own frames would have
    /// answered the probe.
    fn missed_of_proved(
        &mut self,
        now: Instant,
        end: FarEnd,
        (misses, while_heard): (u8, u8),
    ) -> (Due, Instant) {
        if misses == 0 {
            (self.missing_since, self.missing_in_use) = (self.probed_at, false);
        }
        let misses = misses.saturating_add(1);
        let was_heard = self.was_heard(end);
        self.missing_in_use = !was_heard && (self.missing_in_use || end.is_used && end.is_listened_for);
        // An agent that was silent and has only just been heard again may not have been there yet when the probe came.
        let counts = now >= self.answer_by || misses <= MISSES_OF_USED;
        let while_heard = if was_heard && counts { while_heard + 1 } else { 0 };
        // While cables look dead, hosts map, which takes a busy machine longer. An agent that is heard again is asked anew.
        let is_to_wait = end.may_turn || was_heard;
        let kept_for = if self.missing_in_use { SILENT_FOR } else { UNANSWERED_FOR };
        let is_unanswered = !is_to_wait && now.since(self.missing_since) >= kept_for;
        if while_heard >= MISSES_OF_USED || is_unanswered {
            self.proof = Proof::Sought { misses: 0, refuted: 1 };
            return (Due::Lost, now + RETRY_AFTER);
        }
        self.proof = Proof::Found { misses, while_heard };
        let is_quick = end.is_used && (misses < MISSES_OF_USED || was_heard);
        let within = if is_quick { USED_WITHIN } else { RECHECK_WITHIN };
        (Due::Probe { full_length: self.tries_length, turns: false }, now + within)
    }

    /// Takes in that the probe under way was answered; the way is tried again after about `every`. Returns whether
    /// packets may take the way from now on that could not before, and when its time comes next.
    pub(super) fn answered(&mut self, now: Instant, every: Duration) -> (bool, Instant) {
        self.nonce = None;
        self.tries_length = false;
        let trial = self.trial.take();
        if !self.is_proved() {
            self.of_v4 = OfV4::UNKNOWN;
        }
        let is_news = match trial {
            Some(Trial::Packing) => {
                self.preferred.into_iter().for_each(|it| self.course.set_packing(it));
                true
            }
            Some(Trial::Length) => {
                self.take_longest();
                true
            }
            Some(Trial::Version4) => self.of_v4.answered(),
            None => !self.is_proved(),
        };
        self.proof = Proof::Found { misses: 0, while_heard: 0 };
        self.next_trial = if trial.is_none() { self.trial_to_come() } else { None };
        (is_news, if self.next_trial.is_some() { now } else { now + self.spread(every) })
    }

    /// Takes frames to pass that are as long as the ends of all cables say.
    const fn take_longest(&mut self) {
        (self.carried_mtu, self.longer_is_lost) = (self.link_mtu, false);
    }

    /// The trial whose turn it is. A busy machine may have answered too late when compressed elements, or long packets, were tried
    /// first, and what is on the way may be another thing by now.
    fn trial_to_come(&self) -> Option<Trial> {
        let is_turn = |of: u8, every: u8| self.rechecks % every == of;
        match () {
            () if self.preferred != self.course.packing()
                && is_turn(TRY_COMPRESSED_EVERY - 1, TRY_COMPRESSED_EVERY) =>
            {
                Some(Trial::Packing)
            }
            () if self.shortened_to().is_some() && is_turn(1, TRY_LONGER_EVERY) => Some(Trial::Length),
            () if self.tries_v4 && self.of_v4.is_due(self.rechecks) => Some(Trial::Version4),
            () => None,
        }
    }

    /// A time that is up to a quarter longer than `every`, depending on the way's number, so that ways are
    /// tried at different moments even if all were found at one.
    pub(super) fn spread(&self, every: Duration) -> Duration {
        every + every * (self.number % 64) / 256
    }
}
