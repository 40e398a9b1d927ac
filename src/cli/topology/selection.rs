//! Which hosts of a fabric are written.

use mapper_daemon::xbar::ports::matches;
use mapper_fabric::machine;
use mapper_proto::map::{Fabric, HostLabel};

use crate::cli::CliError;

/// Patterns for hosts. In a pattern `*` is any characters, also none, and `?` is any one.
#[derive(Debug, clap::Args)]
pub(super) struct HostSelection {
    /// Write only hosts that match one of these patterns, by id, description or machine, as in 'node*,gpu0?'.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Leave out hosts that match one of these patterns, by id, description or machine.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    without: Vec<String>,
}

impl HostSelection {
    /// The fabric with those of its hosts that are wanted, and all of its crossbars and cables.
    ///
    /// # Errors
    /// If no host is left: a pattern is wrong then.
    pub(super) fn of(&self, fabric: Fabric) -> Result<Fabric, CliError> {
        if self.hosts.is_empty() && self.without.is_empty() {
            return Ok(fabric);
        }
        let Fabric { mut map, hosts: labels, xbars, link_speeds, left_out } = fabric;
        let all = labels.len();
        let (hosts, labels) =
            map.hosts.into_iter().zip(labels).filter(|(_, label)| self.wants(label)).unzip();
        map.hosts = hosts;
        if map.hosts.is_empty() && all > 0 {
            return Err(format!(
                "no host is left of {all}; `mapper topology show` tells what they are called"
            )
            .into());
        }
        Ok(Fabric { map, hosts: labels, xbars, link_speeds, left_out })
    }

    fn wants(&self, label: &HostLabel) -> bool {
        let machine = machine::interface(label).machine;
        let names = [label.name.as_str(), label.description.as_str(), machine.as_str()];
        let any = |patterns: &[String]| {
            patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
        };
        (self.hosts.is_empty() || any(&self.hosts)) && !any(&self.without)
    }
}
