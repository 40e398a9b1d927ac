//! The metrics of a subnet of InfiniBand.

use crate::agent::status::{ManagerSeen, SubnetStanding};
use crate::word::{Worded, words};
use mapper_ib::mad::SmState;
use mapper_ib::manager::SubnetCount;
use mapper_machine::metrics::{Exposition, FamilyKind, Unit};
use strum::VariantArray;

/// Writes what an agent knows of its subnet, and what it did.
pub(super) fn write(text: &mut Exposition, subnet: &SubnetStanding) {
    let help = "What the agent is to other subnet managers.";
    text.family(FamilyKind::StateSet, "mapper_subnet_role", Unit::None, help)
        .states(words::<SmState>(), subnet.role.as_str());
    text.gauge("mapper_subnet_switches", "Switches of the subnet.", subnet.switches as u64);
    let help = "Ports of adapters and routers of the subnet.";
    text.gauge("mapper_subnet_adapter_ports", help, subnet.adapters as u64);
    let help = "Switches without a key of management (M_Key), to which anybody can write.";
    text.gauge("mapper_subnet_switches_without_key", help, subnet.open_switches as u64);
    let help = "Nodes that do not answer, answer wrongly, or do not take what is written, up to 64.";
    text.gauge("mapper_subnet_blamed", help, subnet.blamed.len() as u64);
    let help = "Other subnet managers, by what they are.";
    let mut family = text.family(FamilyKind::Gauge, "mapper_subnet_managers", Unit::None, help);
    for role in SmState::VARIANTS {
        let is_so = |manager: &&ManagerSeen| manager.state == *role;
        family.sample(&[("role", role.word())], subnet.managers.iter().filter(is_so).count() as u64);
    }
    let help = "Layers of the tables in force, each a service level.";
    text.gauge("mapper_subnet_layers", help, subnet.layers.into());
    text.gauge("mapper_subnet_groups", "Multicast groups.", subnet.groups as u64);
    let counts = &subnet.counts;
    let help = "Explorations of the whole subnet.";
    text.counter("mapper_subnet_sweeps", Unit::None, help, counts[SubnetCount::Sweeps]);
    let help = "Looks at the ports of switches that told of a change.";
    text.counter("mapper_subnet_glances", Unit::None, help, counts[SubnetCount::Glances]);
    text.counter("mapper_subnet_traps", Unit::None, "Traps of nodes.", counts[SubnetCount::Traps]);
    let help = "Blocks of forwarding tables written.";
    text.counter("mapper_subnet_blocks_written", Unit::None, help, counts[SubnetCount::Blocks]);
    let help = "Switches that the agent itself looked at last, to see whether something changed.";
    text.gauge("mapper_subnet_share", help, subnet.share as u64);
    let help = "Shares of switches that the agent looked at for a master while it stood by.";
    text.counter("mapper_subnet_shares", Unit::None, help, counts[SubnetCount::Shares]);
    let help =
        "Shares on which agents that stand by did not report, so that this master looked at them itself.";
    text.counter("mapper_subnet_shares_returned", Unit::None, help, counts[SubnetCount::SharesReturned]);
    let help = "Packets that ports dropped for a wrong key and told of, by what the key is for.";
    let mut family = text.family(FamilyKind::Counter, "mapper_subnet_wrong_keys", Unit::None, help);
    family.sample(&[("key", "management")], counts[SubnetCount::WrongManagementKeys]);
    family.sample(&[("key", "partition")], counts[SubnetCount::WrongPartitionKeys]);
    family.sample(&[("key", "queue")], counts[SubnetCount::WrongQueueKeys]);
    let help = "How often the subnet was brought up, each with tables that were proved.";
    text.counter("mapper_subnet_ups", Unit::None, help, counts[SubnetCount::Ups]);
}

#[cfg(test)]
mod tests {
    use super::SmState;
    use crate::agent::metrics::{KnownFabric, render};
    use crate::agent::status::{Board, SubnetStanding};
    use mapper_machine::metrics::Dialect;

    #[test]
    fn a_subnet_has_metrics_of_its_own_beside_those_of_all_agents() {
        let subnet =
            SubnetStanding { role: SmState::Master.into(), switches: 3, ..SubnetStanding::default() };
        let board = Board { subnet: Some(subnet), ..Board::silent(0, String::new()) };
        let text = render(&board, &KnownFabric::new(), &|_| None, Dialect::OpenMetrics);
        crate::xbar::metrics::assert_well_formed(&text);
        for line in [
            r#"mapper_subnet_role{interface="",mapper_subnet_role="master"} 1"#,
            r#"mapper_subnet_switches{interface=""} 3"#,
            r#"mapper_subnet_managers{interface="",role="standby"} 0"#,
            r#"mapper_subnet_sweeps_total{interface=""} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
