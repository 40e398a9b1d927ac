//! Tells the administration what the subnet is like, and writes the groups that hosts join.

use mapper_proto::time::Instant;

use super::{GroupMembers, Members, Stage, SubnetManager};
use crate::administration::Subnet;
use crate::mad::SmState;

impl SubnetManager {
    /// Has long answers to hosts end with their first segment. Clients of a simulator take only the first one
    /// and do not acknowledge it, and they would take a repetition for the answer to their next question.
    pub fn send_first_segments_only(&mut self) {
        self.administration.send_first_segments_only();
    }

    /// Has hosts answered from the subnet as it is now.
    pub(super) fn administer(&mut self, now: Instant) {
        let Some(routes) = &self.routes else { return };
        let others = self.others.iter().map(|other| (other.port, other.info));
        let managers = std::iter::once((self.inventory.own, self.info())).chain(others).collect();
        let subnet =
            Subnet::new(&self.inventory, &self.lids, self.settings.lmc, routes, &self.held.infos, managers);
        if let Some(subnet) = subnet {
            self.administration.begin(subnet);
            self.paths_changed();
            self.take_groups(now);
        }
    }

    /// Has trees written for the groups that hosts made, joined or left, as soon as nothing else is being
    /// written.
    pub(super) fn take_groups(&mut self, now: Instant) {
        let groups = self.administration.groups();
        let generation = groups.generation();
        if generation == self.groups.generation {
            return;
        }
        let members = groups.all().map(|group| match group.is_permanent() {
            true => (group.lid(), Members::All),
            false => (group.lid(), Members::Ports(group.members().keys().copied().collect())),
        });
        let members = members.collect();
        if members == self.groups.members {
            self.groups.generation = generation;
            return;
        }
        self.groups = GroupMembers { generation, members };
        self.are_groups_new = true;
        if let (Stage::Waiting { until }, SmState::Master) = (&mut self.stage, self.role) {
            *until = now;
        }
        self.end_watch(now);
    }
}
