//! What must be true of a subnet in the end.

use super::World;
use crate::mad::{PortState, SmState};
use crate::manager::{Status, SubnetCount, SubnetManager};
use crate::simulated::Violation;

impl World<'_> {
    /// What the managers that run know and do.
    pub(crate) fn statuses(&self) -> Vec<Status> {
        self.places.iter().filter_map(|place| place.manager.as_ref()).map(SubnetManager::status).collect()
    }

    /// Checks that the subnet is up and has one master.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_well(&self) -> Result<(), Violation> {
        let wrong = |why| Violation { at: self.now, why };
        let roles: Vec<SmState> = self.statuses().iter().map(|status| status.role).collect();
        if roles.iter().filter(|&&role| role == SmState::Master).count() != 1 {
            return Err(wrong(format!("managers are {roles:?}, and one is to be master")));
        }
        self.model.check_up().and_then(|()| self.model.check_circles()).map_err(wrong)?;
        let ports = self.model.nodes.iter().flat_map(|node| node.ports.range(1..));
        let is_half = |state| matches!(state, PortState::Initialize | PortState::Armed);
        match ports.filter(|(_, port)| is_half(port.state())).count() {
            0 => Ok(()),
            half => Err(wrong(format!("{half} ports are on their way up"))),
        }
    }

    /// How many shares of switches agents looked at for their master so far.
    pub(crate) fn shares(&self) -> u64 {
        self.statuses().iter().map(|status| status.counts[SubnetCount::Shares]).sum()
    }

    /// Checks that all switches are looked at, and that the agents that do so know the subnet as its master
    /// brought it up.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check_shares(&self) -> Result<(), Violation> {
        let wrong = |why| Err(Violation { at: self.now, why });
        let statuses = self.statuses();
        let Some(master) = statuses.iter().find(|status| status.role == SmState::Master) else {
            return wrong("there is no master".to_owned());
        };
        let looks =
            |agent: &&Status| master.others.iter().any(|other| other.guid == agent.guid && other.share > 0);
        if let Some(agent) = statuses.iter().filter(looks).find(|agent| agent.version != master.version) {
            return wrong(format!(
                "agent {:#x} looks at switches of {:?}, and its master brought up {:?}",
                agent.guid, agent.version, master.version
            ));
        }
        let shared: usize = master.others.iter().map(|other| other.share).sum();
        if shared + master.share != master.switches {
            return wrong(format!(
                "{shared} and {} of {} switches are looked at",
                master.share, master.switches
            ));
        }
        if master.problems.is_empty() { Ok(()) } else { wrong(master.problems.join("; ")) }
    }
}
