//! When an agent ends that was told to map once.

use std::time::Duration;

use mapper_host::kernel_path::KernelPath;
use mapper_proto::agent::Unreachable;
use mapper_proto::wire::AgentState;
use mapper_proto::{Instant, Mac};

use super::state::Driver;
use crate::agent::DaemonError;
use crate::agent::status::dead_ports;
use crate::word::Worded;

impl Driver {
    /// Whether the agent must end as `map_once` says: mapping is complete everywhere, and the hosts below
    /// this one in the tree had time to hear of that.
    pub(super) fn must_leave(&mut self) -> Result<bool, DaemonError> {
        let now = self.now();
        if let Some(leave_at) = self.leave_at {
            return match (&self.config.map_file, self.store_failure.take()) {
                (Some(path), Some(source)) => Err(DaemonError::MapFile { path: path.clone(), source }),
                _ => Ok(now >= self.put_off(leave_at) && !self.awaits_another_map(now)),
            };
        }
        match self.config.map_once {
            Some(limit) if now >= Instant::ZERO + limit => Err(self.map_once_limit(limit)),
            _ => Ok(false),
        }
    }

    /// Puts the end off while routes that are to stay in the kernel are not there yet, and returns when the
    /// end is. Other hosts may still need this host's answers then, so it goes on for as long as it does
    /// after the mapping.
    fn put_off(&mut self, leave_at: Instant) -> Instant {
        let now = self.now();
        let limit = self.map_once_until(now);
        if self.config.keep_routes && now < limit && (self.is_trying_ways() || self.waits_for_answers(now)) {
            let at = (now + self.heard_within()).max(leave_at).min(limit);
            self.leave_at = Some(at);
            return at;
        }
        leave_at
    }

    /// Whether another map is under way at the end, or not all hosts have it yet. If so, the end is put off.
    ///
    /// Hosts that start together find each other one after the other, so the first map that all of its hosts
    /// have may lack most of them. Hosts that have left make others map again, too, which must not keep these
    /// for ever.
    fn awaits_another_map(&mut self, now: Instant) -> bool {
        let until = self.wait_for_answers_until.min(self.map_once_until(now));
        if now >= until {
            return false;
        }
        let is_settled = match self.host.agent().status().state {
            AgentState::Configured => {
                self.host.table().is_some_and(|table| self.complete == Some(table.version()))
            }
            AgentState::Isolated => true,
            _ => false,
        };
        if !is_settled {
            self.leave_at = Some((now + self.heard_within()).min(until));
        }
        !is_settled
    }

    /// The moment at which an agent that maps once ends at the latest.
    fn map_once_until(&self, now: Instant) -> Instant {
        self.config.map_once.map_or(now, |limit| Instant::ZERO + limit)
    }

    /// Whether some host's kernel has answered nothing so far, or some host still needs this one's answers, and
    /// waiting may change that: a kernel begins to answer only once its agent hears that the mapping is complete.
    fn waits_for_answers(&self, now: Instant) -> bool {
        let waits = |path: &KernelPath| path.lacks_answers() || path.is_needed();
        now < self.wait_for_answers_until && self.host.kernel_path().is_some_and(waits)
    }

    fn map_once_limit(&self, limit: Duration) -> DaemonError {
        let status = self.host.agent().status();
        let missing = describe_missing(&status.unreachable, |mac| self.called(mac)).unwrap_or_else(|| {
            match status.hosts {
                0 | 1 => match dead_ports(&self.attachment.outer_ports()) {
                    Some(ports) => format!("and no other host was found: {ports}"),
                    None => "and no other host was found".to_owned(),
                },
                _ => "and the global mapper has not heard from all hosts".to_owned(),
            }
        });
        DaemonError::MapOnceLimit { limit, state: status.state.word(), missing }
    }
}

/// Which hosts of the map are missing and why, in words; `None` if none is.
fn describe_missing(unreachable: &[Unreachable], called: impl Fn(Mac) -> String) -> Option<String> {
    let hosts: Vec<_> =
        unreachable.iter().map(|host| format!("{}: {}", called(host.mac), host.why)).collect();
    (!hosts.is_empty()).then(|| format!("and misses {}", hosts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_are_missing_are_called_by_their_names() {
        let mac = Mac::from_position(2);
        let missing = [Unreachable { mac, why: "does not answer".to_owned() }];
        let words = describe_missing(&missing, |mac| format!("n2 ({mac})"));
        assert_eq!(words.as_deref(), Some("and misses n2 (02:00:00:00:00:02): does not answer"));
        assert_eq!(describe_missing(&[], |mac| mac.to_string()), None);
    }
}
