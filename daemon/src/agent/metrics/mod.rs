//! What a daemon measures, as OpenMetrics text: over HTTP on this machine, and as a file for
//! node_exporter.
//!
//! The text is made from the same data as the status socket shows, so there is no registry of metrics to keep
//! in step with it. A fabric's cables and hosts are each a metric, which is 0 for one that was seen since the
//! start and is gone. What hosts are called is told by metrics of their own.

mod agent;
mod called;
mod causes;
mod known;
mod present;
mod subnet;

use mapper_machine::metrics::Dialect;
use mapper_proto::Mac;

use super::status::Board;
use crate::xbar::{self, XbarStatus};

pub(crate) use agent::render;
pub(crate) use causes::{CauseCounters, Causes};
pub(crate) use known::KnownFabric;
pub(crate) use present::Present;

/// The metrics of an agent, and of the crossbar if it is a node. `name_of` tells what a host is called.
pub(crate) fn render_node(
    board: &Board,
    known: &KnownFabric,
    name_of: &dyn Fn(Mac) -> Option<String>,
    crossbar: Option<&XbarStatus>,
    dialect: Dialect,
) -> String {
    let agent = render(board, known, name_of, dialect);
    match crossbar {
        None => agent,
        // The families of the two have different names, so one text can follow the other.
        Some(crossbar) => {
            let families = agent.strip_suffix("# EOF\n").unwrap_or(&agent);
            families.to_owned() + &xbar::metrics::render(crossbar, dialect)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_shows_agent_and_crossbar_as_one_text() {
        let (board, known) = (Board::silent(0, String::new()), KnownFabric::new());
        let crossbar = XbarStatus::silent("p1+p2", String::new());
        let text = render_node(&board, &known, &|_| None, Some(&crossbar), Dialect::OpenMetrics);
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"));
        assert!(text.contains("mapper_agent_info") && text.contains("mapper_xbar_info"), "{text}");
    }
}
