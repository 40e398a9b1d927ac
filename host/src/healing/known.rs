//! What is known of one cable that is held for dead, or loses frames.

use std::collections::BTreeSet;

use mapper_proto::Instant;
use mapper_proto::agent::{CableCause, PathId};

/// What is known of a cable that loses frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lossy {
    /// How many of a hundred frames it lost that were to cross it there and back, when it was examined last.
    pub(super) lost_percent: u8,
    /// Whether routes go around it where they can.
    pub(super) is_avoided: bool,
}

/// All that is known of a cable that is held for dead, or loses frames.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) since: Instant,
    pub(super) no_carrier: bool,
    pub(super) notice: bool,
    pub(super) silence: bool,
    /// Two other cables of one of its xbars are silent, so that the whole xbar may be dead.
    pub(super) suspected: bool,
    /// It carries frames and loses many.
    pub(super) lossy: Option<Lossy>,
    /// The mapper's frames pass the cable, though users' frames do not.
    pub(super) cleared: bool,
    /// The cable was tested last and gave no answer.
    pub(super) unanswered: bool,
    /// The cable is a host's only one, so there is no way around it.
    pub(super) is_host: bool,
    /// How long the longest frames were that did not pass, as far as is known.
    pub(super) frame_bytes: usize,
    /// The paths that are silent because of it. At most as many as the agent watches.
    pub(super) silent: BTreeSet<PathId>,
}

impl Known {
    pub(super) const fn new(since: Instant, is_host: bool) -> Self {
        Self {
            since,
            no_carrier: false,
            notice: false,
            silence: false,
            suspected: false,
            lossy: None,
            cleared: false,
            unanswered: false,
            is_host,
            frame_bytes: 0,
            silent: BTreeSet::new(),
        }
    }

    /// Why the cable is held for dead.
    pub(super) fn cause(&self) -> Option<CableCause> {
        self.found().or_else(|| self.suspected.then_some(CableCause::Silence))
    }

    /// How the cable itself was found dead.
    pub(super) fn found(&self) -> Option<CableCause> {
        match self {
            Self { no_carrier: true, .. } => Some(CableCause::Carrier),
            Self { notice: true, .. } => Some(CableCause::Notice),
            Self { silence: true, cleared: true, .. } => Some(CableCause::UsersOnly),
            Self { silence: true, .. } => Some(CableCause::Silence),
            Self { .. } => None,
        }
    }

    /// Whether routes go around the cable.
    pub(super) fn is_avoided(&self) -> bool {
        let is_left = self.cause().is_some() || self.lossy.is_some_and(|lossy| lossy.is_avoided);
        self.no_carrier || self.notice || is_left && !self.is_host
    }

    /// Whether the cable is proved dead: it has no carrier, or is held for dead and gave no answer to its last test.
    pub(super) fn is_proved(&self) -> bool {
        self.no_carrier || self.unanswered && self.cause().is_some()
    }
}
