//! Answers what programs of this machine ask about this port and the paths from it.

use mapper_proto::time::Instant;

use super::SubnetManager;
use crate::inquiries::{Destination, FoundPath, Standpoint};
use crate::mad::{PortState, SmState};

/// The port behind which a manager runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnPort {
    /// The GUID of its node.
    pub node: u64,
    /// What people call its node.
    pub description: String,
    /// Its own GUID.
    pub guid: u64,
    /// The prefix of its subnet.
    pub prefix: u64,
    /// Its number at its node.
    pub number: u8,
    /// How many ports its node has.
    pub ports: u8,
    /// Its first LID; 0 for none.
    pub lid: u16,
    /// 2^lmc LIDs belong to it.
    pub lmc: u8,
}

impl SubnetManager {
    /// The port behind which this manager runs, once it is known and if it is an adapter's.
    pub fn own_port(&self) -> Option<OwnPort> {
        let own = self.inventory.own_adapter()?;
        let ports = self.inventory.nodes.get(&own.node_guid).map_or(1, |info| info.ports);
        Some(OwnPort {
            node: own.node_guid,
            description: own.description.clone(),
            guid: own.port_guid,
            prefix: self.inventory.prefix(),
            number: own.port,
            ports,
            lid: own.settings.lid(),
            lmc: own.settings.lmc(),
        })
    }

    /// Whether paths can be asked for: by this manager's own administration, or by that of the master.
    pub fn can_find_paths(&self) -> bool {
        match self.role {
            SmState::Master => self.administration.is_up(),
            _ => self.inquiries.has_administration(),
        }
    }

    /// A number that rises whenever paths may have changed. What was found before it rose no longer holds.
    pub fn paths_generation(&self) -> u64 {
        self.inquiries.generation()
    }

    /// Begins to find the path from this port to a destination. [`Self::poll_found`] says with this number what came of it.
    pub fn find_path(&mut self, number: u64, to: &Destination, now: Instant) {
        let Self { role, inventory, inquiries, administration, .. } = self;
        let Some(own) = inventory.own_adapter() else {
            return inquiries.ask(number, "", to, now);
        };
        let (lid, description) = (own.settings.lid(), own.description.as_str());
        match *role {
            SmState::Master => inquiries.ask_own(number, (lid, description), to, now, |request| {
                administration.answer_own(request, lid, now)
            }),
            _ => inquiries.ask(number, description, to, now),
        }
    }

    /// A path that was looked for, and what came of it.
    pub fn poll_found(&mut self) -> Option<(u64, FoundPath)> {
        self.inquiries.poll_found()
    }

    /// Takes in where the subnet's administration is, which this manager's own port tells once the master has
    /// made it active.
    pub(super) fn look_for_administration(&mut self) {
        let own = self.inventory.own_adapter().map(|own| &own.settings);
        let active = own.filter(|own| own.state() == PortState::Active && self.role == SmState::Standby);
        let is_told = |own: &&crate::mad::PortSettings| own.lid() != 0 && own.manager_lid() != 0;
        let standpoint = active.filter(is_told).map(|own| Standpoint {
            lid: own.lid(),
            administration: own.manager_lid(),
            level: own.manager_level(),
        });
        self.inquiries.stand_at(standpoint);
    }

    /// Takes in that this manager's own administration gives other answers from now on.
    pub(super) fn paths_changed(&mut self) {
        self.look_for_administration();
        self.inquiries.rise();
    }
}
