//! The daemon that runs on an interface, and what it says.

use std::time::{Duration, Instant};

use super::Check;
use crate::daemon::interface_lock::{Holder, holder};
use crate::daemon::options::Config;
use crate::daemon::status::{Board, Mismatch, ask, units};

/// An agent that says nothing for so long is taken for stuck. A busy machine takes a second or more.
const PATIENCE: Duration = Duration::from_secs(3);

/// Who works on an interface.
#[derive(Debug)]
pub(super) enum Daemon {
    /// Nobody.
    None,
    /// An agent of this run directory.
    Agent(Box<Board>),
    /// A daemon that has no status socket in this run directory.
    Other(Holder),
    /// The kernel does not tell.
    Unknown(std::io::Error),
}

impl Daemon {
    /// That on the interface of this configuration.
    pub(super) fn on(config: &Config) -> Self {
        let deadline = Instant::now() + PATIENCE;
        let units = units(&config.run_dir).unwrap_or_default();
        let questions = units.into_iter().filter_map(|unit| ask(&config.run_dir, unit).ok().flatten());
        let mut boards = questions.filter_map(|question| question.answer(deadline).ok());
        let works_on = |board: &Board| {
            // A node is called by all its ports.
            board.interface.iter().flat_map(|name| name.split(',')).any(|name| name == config.interface)
        };
        match boards.find(works_on) {
            Some(board) => Self::Agent(Box::new(board)),
            None => match holder(&config.interface) {
                Ok(None) => Self::None,
                Ok(Some(holder)) => Self::Other(holder),
                Err(error) => Self::Unknown(error),
            },
        }
    }

    pub(super) fn check(&self, config: &Config) -> Check {
        let name = "daemon";
        match self {
            Self::None => Check::ok(name, "no agent or crossbar works on it"),
            Self::Agent(board) => {
                Check::ok(name, format!("the agent of unit {} works on it: {}", board.unit, board.state))
            }
            Self::Other(holder) => Check::failed(
                name,
                format!(
                    "{} works on it, and has no status socket in {}",
                    holder.describe(),
                    config.run_dir.display()
                ),
                "stop that one before an agent is started here, or name its --run-dir",
            ),
            Self::Unknown(error) => Check::error(name, error),
        }
    }
}

/// What a running agent says of the fabric.
pub(super) fn check_fabric(board: &Board) -> Vec<Check> {
    let mut checks = Vec::new();
    let hosts: Vec<_> = board.unreachable.iter().map(|host| format!("{}: {}", host.mac, host.why)).collect();
    checks.push(if board.network_configured && hosts.is_empty() {
        Check::ok("network", format!("fully configured, with {} hosts", board.hosts))
    } else {
        let missing = if hosts.is_empty() { String::new() } else { format!("; {}", hosts.join("; ")) };
        let what = format!("not fully configured: this agent is {}{missing}", board.state);
        Check::warning("network", what, "`mapper board-info` on each host says what it waits for")
    });
    if let Some(why) = &board.routing_failure {
        checks.push(Check::failed("routes", why, "cable the fabric closer, or raise max-hops on all hosts"));
    }
    for Mismatch { name, frames, what, fix } in board.counters.dropped.mismatches() {
        let what = format!("since it began the agent has dropped {frames} {what}");
        checks.push(Check::warning(name, what, fix));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    #[test]
    fn a_running_agent_tells_what_it_misses() {
        let mut board = Board { network_configured: true, hosts: 3, ..Board::silent(0, String::new()) };
        assert!(check_fabric(&board).iter().all(|check| check.status == Outcome::Ok));
        board.counters.dropped.unknown_version = 2;
        board.counters.dropped.bad_tag = 1;
        board.routing_failure = Some("too deep".to_owned());
        let found: Vec<_> =
            check_fabric(&board).into_iter().map(|check| (check.name, check.status)).collect();
        let expected = [
            ("network", Outcome::Ok),
            ("routes", Outcome::Failed),
            ("protocol version", Outcome::Warning),
            ("key", Outcome::Warning),
        ];
        assert_eq!(found, expected);
    }
}
