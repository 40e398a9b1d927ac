//! What is known of one xbar, and which of its ports may still hold something.

use std::ops::RangeInclusive;

use super::ExploreError;
use super::knowledge::Far;
use crate::wire::Stamp;

/// How far the question "which xbar is this?" has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    /// It was seen at the end of a route, and at most glanced at.
    Seen,
    /// Its ports are probed a few at a time, to find something that tells it from others.
    Studied,
    /// All of its ports are probed and nothing told it from others, so compare probes have to.
    Compared,
    /// It is none of the xbars resolved before, or a host or a tag will show that it is. All of its ports are
    /// probed, and what is behind them matters.
    Resolved,
}

/// What a tagged xbar says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tag {
    pub(super) tag: u64,
    pub(super) ports: u8,
    /// The number of the port at delta 0.
    pub(super) base: i16,
}

/// What is known of a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortState {
    pub(super) far: Option<Far>,
    /// Frames sent to learn it.
    pub(super) sent: u8,
    /// How many of them are under way.
    pub(super) waiting: u8,
    /// Whether something behind it said that it is our own.
    pub(super) may_be_own: bool,
}

impl PortState {
    /// In place of [`PortState::sent`]: the port will not be probed, as no setting allows so many frames.
    const NEVER: u8 = u8::MAX;

    /// Marks it as probed for good, whatever stamps show.
    pub(super) const fn settle(&mut self) {
        self.sent = Self::NEVER - 1;
    }

    /// Marks it as not to be probed.
    pub(super) const fn never(&mut self) {
        self.sent = Self::NEVER;
    }
}

/// Silence in a row before an xbar is first asked whether it is still there.
const SILENCE_ALLOWED: u16 = 8;

/// What is known of one xbar. Ports are named by deltas in the frame of the root node.
#[derive(Clone, Debug)]
pub(super) struct XbarState {
    /// The node whose route is used to reach it.
    pub(super) via: u32,
    pub(super) stage: Stage,
    pub(super) tag: Option<Tag>,
    /// Only ports that are listed are probed: for a tagged xbar those with carrier, for an xbar of
    /// an earlier map those that are suspect.
    pub(super) listed_only: bool,
    /// How many nodes were joined into it.
    pub(super) sights: u32,
    /// Identify probes sent to it.
    pub(super) identify_sent: u8,
    /// Whether one of them is under way.
    pub(super) identify_waiting: bool,
    /// Port probes spent on a glance.
    pub(super) glanced: u8,
    /// Whether the glance at it found nothing.
    pub(super) glance_failed: bool,
    /// How many more ports a study may probe before it looks at what it has.
    pub(super) study_left: u8,
    /// Whether a host is known on it.
    pub(super) hosted: bool,
    /// Port probes under way.
    pub(super) waiting: u16,
    /// In which queues it stands, with a bit for each [`Class`](super::schedule::Class).
    pub(super) queued: u8,
    /// How many questions were asked on account of this xbar.
    pub(super) spent: u32,
    /// Whether it belongs to a large part without hosts, and so is asked only when nothing else can be.
    pub(super) late: bool,
    /// Whether the map leaves it out; nothing is known of it then.
    pub(super) left_out: bool,
    /// How many branches of a part were left out with it.
    pub(super) branches_left_out: u32,
    /// Questions in a row that nothing behind it answered.
    pub(super) silent_in_a_row: u16,
    /// How many questions in a row may stay without an answer before it is asked whether it is still there.
    pub(super) silence_allowed: u16,
    /// How often it was asked whether it is still there; 0 if that is not in question.
    pub(super) checks_sent: u8,
    /// The listed ports, sorted by delta.
    ports: Vec<(i16, PortState)>,
}

impl XbarState {
    pub(super) fn new(node: u32) -> Self {
        Self {
            via: node,
            stage: Stage::Seen,
            tag: None,
            listed_only: false,
            sights: 1,
            identify_sent: 0,
            identify_waiting: false,
            glanced: 0,
            glance_failed: false,
            study_left: 0,
            hosted: false,
            waiting: 0,
            queued: 0,
            spent: 0,
            late: false,
            left_out: false,
            branches_left_out: 0,
            silent_in_a_row: 0,
            silence_allowed: SILENCE_ALLOWED,
            checks_sent: 0,
            ports: Vec::new(),
        }
    }

    /// What is known of the port at `delta`, if anything.
    pub(super) fn port(&self, delta: i16) -> Option<&PortState> {
        let found = self.ports.binary_search_by_key(&delta, |&(d, _)| d);
        found.ok().map(|at| &self.ports[at].1)
    }

    /// What is known of the port at `delta`, to be changed; the port is listed from now on.
    pub(super) fn port_mut(&mut self, delta: i16) -> &mut PortState {
        let at = match self.ports.binary_search_by_key(&delta, |&(d, _)| d) {
            Ok(at) => at,
            Err(at) => {
                self.ports.insert(at, (delta, PortState::default()));
                at
            }
        };
        &mut self.ports[at].1
    }

    /// All listed ports, by rising delta.
    pub(super) fn ports(&self) -> impl DoubleEndedIterator<Item = (i16, &PortState)> {
        self.ports.iter().map(|(delta, port)| (*delta, port))
    }

    /// What the port at `delta` leads to, if known.
    pub(super) fn far(&self, delta: i16) -> Option<Far> {
        self.port(delta).and_then(|port| port.far)
    }

    /// All ports known to lead somewhere, by rising delta.
    pub(super) fn fars(&self) -> impl DoubleEndedIterator<Item = (i16, Far)> {
        self.ports.iter().filter_map(|(delta, port)| port.far.map(|far| (*delta, far)))
    }

    /// The first and last port known to lead somewhere.
    pub(super) fn span(&self) -> (i16, i16) {
        let first = self.fars().next().map_or(0, |(delta, _)| delta);
        let last = self.fars().next_back().map_or(0, |(delta, _)| delta);
        (first, last)
    }

    /// The ports that a plain xbar can have: two of them differ by less than `plain_ports`.
    pub(super) fn feasible(&self, plain_ports: i16) -> RangeInclusive<i16> {
        let (first, last) = self.span();
        last - plain_ports + 1..=first + plain_ports - 1
    }

    /// Whether the port at `delta` can exist.
    pub(super) fn is_feasible(&self, delta: i16, plain_ports: i16) -> bool {
        match &self.tag {
            Some(tag) => (0..=255).contains(&(tag.base + delta)),
            None => self.feasible(plain_ports).contains(&delta),
        }
    }

    /// Whether no xbar could have ports that far apart. A tagged one says how many it has; as long as the xbar may turn
    /// out to be tagged, ports may differ by more than on a plain one.
    fn check_span(&self) -> Result<(), ExploreError> {
        let (first, last) = self.span();
        let fits = match &self.tag {
            Some(tag) => tag.base + first >= 0 && tag.base + last <= 255 && last - first < tag.ports.into(),
            None => last - first <= 255,
        };
        fits.then_some(()).ok_or(ExploreError::TOO_WIDE)
    }

    /// Notes that the port at `delta`, of which nothing was known, leads to `far`.
    pub(super) fn set_far(&mut self, delta: i16, far: Far) -> Result<(), ExploreError> {
        self.port_mut(delta).far = Some(far);
        self.hosted |= matches!(far, Far::Host(_));
        if self.hosted {
            self.stage = Stage::Resolved;
        }
        self.check_span()
    }

    /// Notes that the xbar is tagged, which settles which one it is.
    pub(super) fn set_tag(&mut self, tag: Tag) -> Result<(), ExploreError> {
        self.tag = Some(tag);
        self.stage = Stage::Resolved;
        self.listed_only = true;
        // Ports that were probed on the guess that the xbar is plain are probed again only if they have carrier.
        for (_, port) in &mut self.ports {
            if port.far.is_none() {
                port.never();
            }
        }
        self.check_span()
    }

    /// Lists the ports that this stamp shows with carrier, but for those listed already.
    pub(super) fn want_carriers(&mut self, stamp: &Stamp) {
        let Some(tag) = self.tag else { return };
        // Ports count from 0 or from 1.
        for number in 0..=tag.ports {
            if stamp.has_carrier(number) {
                let port = self.port_mut(i16::from(number) - tag.base);
                if port.sent == PortState::NEVER {
                    port.sent = 0;
                }
            }
        }
    }

    /// Forgets what the port at `delta` leads to.
    pub(super) fn forget_port(&mut self, delta: i16) {
        let port = self.port_mut(delta);
        *port = PortState { waiting: port.waiting, ..PortState::default() };
    }

    /// What this xbar has cost, if each sight of it costs `sight`.
    pub(super) fn cost(&self, sight: u64) -> u64 {
        u64::from(self.sights) * sight + self.ports.len() as u64 + u64::from(self.spent)
    }

    /// Forgets what is known of the xbar, so that nothing is left to ask of it.
    pub(super) fn leave_out(&mut self) {
        *self = Self {
            stage: Stage::Resolved,
            listed_only: true,
            identify_sent: u8::MAX,
            left_out: true,
            sights: self.sights,
            ..Self::new(self.via)
        };
    }

    /// Takes over what was known of another sight of this xbar, but for what its ports lead to.
    pub(super) fn absorb(&mut self, other: Self, shift: i16) -> Result<(), ExploreError> {
        if other.left_out {
            self.sights += other.sights;
            return Ok(());
        }
        if self.left_out {
            // The other sight was reached by another way, and only what was found by that way is kept.
            *self = Self { sights: self.sights, ..Self::new(self.via) };
        }
        self.spent += other.spent;
        self.late &= other.late;
        self.checks_sent = self.checks_sent.max(other.checks_sent);
        self.stage = self.stage.max(other.stage);
        self.listed_only |= other.listed_only;
        self.sights += other.sights;
        self.identify_sent = self.identify_sent.max(other.identify_sent);
        self.identify_waiting |= other.identify_waiting;
        self.glanced = self.glanced.max(other.glanced);
        self.glance_failed |= other.glance_failed;
        self.study_left = self.study_left.max(other.study_left);
        self.waiting += other.waiting;
        for (delta, old) in other.ports {
            let port = self.port_mut(delta + shift);
            port.sent = port.sent.max(old.sent);
            port.waiting += old.waiting;
            port.may_be_own |= old.may_be_own;
        }
        match (self.tag, other.tag) {
            (Some(a), Some(b)) if a.tag != b.tag || a.base + shift != b.base => {
                Err(ExploreError::Contradiction("two tags on one xbar"))
            }
            (None, Some(tag)) => self.adopt_tag(Tag { base: tag.base - shift, ..tag }),
            _ => Ok(()),
        }
    }

    /// Takes over the tag of an xbar whose ports with carrier are listed already.
    fn adopt_tag(&mut self, tag: Tag) -> Result<(), ExploreError> {
        self.tag = Some(tag);
        self.listed_only = true;
        self.stage = Stage::Resolved;
        self.check_span()
    }
}
