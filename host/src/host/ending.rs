//! When a host ends that maps once.

use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::map::MapVersion;
use mapper_proto::wire::AgentState;

use super::Host;
use crate::event::HostEvent;

/// How long a host that maps once waits at least, once it has a map that all hosts have, for other hosts that this one lacks and,
/// if it leaves its routes in the kernel, for kernels that have answered nothing. On a busy machine agents are seconds behind,
/// and whoever ends too soon has no routes to them for good.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// How a host ends that maps once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndOnceMapped {
    /// When it ends at the latest, if mapping was complete everywhere once.
    pub until: Instant,
    /// Whether its routes stay in the kernel. All that is proved stays there then, once all hosts have routes of one map, as the
    /// others end, too.
    pub keeps_kernel_routes: bool,
}

/// How far a host is with ending.
#[derive(Debug)]
pub(super) struct Ending {
    asked: EndOnceMapped,
    /// The last map that was complete everywhere.
    complete: Option<MapVersion>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No map was complete everywhere so far.
    Mapping,
    /// The hosts below this one in the tree hear that the map is complete when they next ask this one, so it stays until
    /// `at`; and no longer than `answers_until` for another map or for kernels that have not answered.
    Leaving { at: Instant, answers_until: Instant },
    /// It has said that it ends.
    Ended,
}

impl Ending {
    /// When it is to be looked whether the host ends.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Leaving { at, .. } => Some(at),
            Stage::Mapping | Stage::Ended => None,
        }
    }
}

impl Host {
    /// Has the host end once mapping is complete everywhere, and the hosts below this one in the tree had time to hear of that;
    /// [`HostEvent::MappedOnce`] says when. To be called after [`Self::use_kernel`], where the kernel is used.
    pub fn end_once_mapped(&mut self, now: Instant, how: EndOnceMapped) {
        if let Some(kernel) = self.kernel.as_mut().filter(|_| how.keeps_kernel_routes) {
            kernel.hold_once_complete();
        }
        self.ending = Some(Ending { asked: how, complete: None, stage: Stage::Mapping });
        // That all hosts have a map is heard once only, and may have been.
        if let Some(table) = self.table.as_ref().filter(|_| self.agent.status().network_complete) {
            self.note_complete(now, table.version());
        }
    }

    /// Whether the host is to end once mapping is complete everywhere, and it was.
    pub fn is_ending(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.stage != Stage::Mapping)
    }

    /// Takes in that all hosts of this map have it.
    pub(super) fn note_complete(&mut self, now: Instant, version: MapVersion) {
        let heard_within = self.heard_within();
        // A network that has only this host is complete, too, but nobody waits for that.
        let is_alone = self.table.as_ref().is_none_or(|table| table.hosts().next().is_none());
        let Some(ending) = self.ending.as_mut().filter(|_| !is_alone) else { return };
        ending.complete = Some(version);
        if ending.stage == Stage::Mapping {
            let answers_until = now + (3 * heard_within).max(ANSWERS_WITHIN);
            ending.stage = Stage::Leaving { at: now + heard_within, answers_until };
        }
    }

    /// Ends if it is time to, and nothing is left to be waited for.
    pub(super) fn settle_ending(&mut self, now: Instant) {
        let Some(&Ending { asked, complete, stage: Stage::Leaving { at, answers_until } }) =
            self.ending.as_ref()
        else {
            return;
        };
        let EndOnceMapped { until, keeps_kernel_routes } = asked;
        let later = now + self.heard_within();
        // Other hosts may need this host's answers as long as its own ways are being tried.
        let at = match keeps_kernel_routes && now < until && self.awaits_kernels(now < answers_until) {
            true => at.max(later.min(until)),
            false if now < at => return,
            false if now < until.min(answers_until) && !self.is_settled_in(complete) => {
                later.min(until).min(answers_until)
            }
            false => {
                self.events.push_back(HostEvent::MappedOnce);
                return self.set_stage(Stage::Ended);
            }
        };
        self.set_stage(Stage::Leaving { at, answers_until });
    }

    fn set_stage(&mut self, stage: Stage) {
        self.ending.iter_mut().for_each(|ending| ending.stage = stage);
    }

    /// Whether it is not known yet of some host whether the kernel carries its packets; or, if the host `waits_for_answers`, some
    /// host's kernel has answered nothing so far, or some host still needs the answers of this one: a kernel begins to answer only
    /// once its agent hears that the mapping is complete.
    fn awaits_kernels(&self, waits_for_answers: bool) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| {
            !kernel.has_tried_all() || waits_for_answers && (kernel.lacks_answers() || kernel.is_needed())
        })
    }

    /// Whether no other map than the one that is `complete` is under way.
    ///
    /// Hosts that start together find each other one after the other, so the first map that all of its hosts
    /// have may lack most of them. Hosts that have left make others map again, too, which must not keep these
    /// for ever.
    fn is_settled_in(&self, complete: Option<MapVersion>) -> bool {
        match self.agent.status().state {
            AgentState::Configured => {
                self.table.as_ref().is_some_and(|table| complete == Some(table.version()))
            }
            AgentState::Isolated => true,
            _ => false,
        }
    }

    /// The time within which each child in the tree asks this agent, and so hears what it knows.
    fn heard_within(&self) -> Duration {
        self.agent.heard_within()
    }
}
