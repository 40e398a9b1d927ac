//! When an agent ends that was told to map once.

use std::time::Duration;

use mapper_proto::agent::Unreachable;
use mapper_proto::{Instant, Mac};

use super::state::Driver;
use crate::agent::DaemonError;
use crate::agent::status::dead_ports;
use crate::word::Worded;

impl Driver {
    /// Whether the agent must end as `map_once` says.
    ///
    /// # Errors
    /// If the map could not be stored, or mapping was complete nowhere in time.
    pub(super) fn must_leave(&mut self) -> Result<bool, DaemonError> {
        let Some(limit) = self.config.map_once else { return Ok(false) };
        if self.host.is_ending() {
            return match (&self.config.map_file, self.store_failure.take()) {
                (Some(path), Some(source)) => Err(DaemonError::MapFile { path: path.clone(), source }),
                _ => Ok(self.has_mapped_once),
            };
        }
        match self.now() >= Instant::ZERO + limit {
            true => Err(self.map_once_limit(limit)),
            false => Ok(false),
        }
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
