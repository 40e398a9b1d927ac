//! Whether all of a board's network is as it should be, for `network_whole` and for the words of `mapper board-info`, which are to
//! say the same.

use super::Board;
use crate::xbar::cable::CableStatus;

/// What a configured board shows that keeps its network from being fully configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkLack {
    /// Hosts of the map do not answer, or hold another map.
    Hosts,
    /// Cables of the map are dead, and routes lead around them.
    Cables,
    /// The two ends of a cable that no map shows carry frames of different length, so that some may be lost.
    EqualMtus,
}

impl Board {
    /// What this board shows that keeps its network from being fully configured, once the board itself is.
    pub fn network_lack(&self) -> Option<NetworkLack> {
        if !self.unreachable.is_empty() {
            return Some(NetworkLack::Hosts);
        }
        if !self.dead_cables.is_empty() {
            return Some(NetworkLack::Cables);
        }
        // A cable between hosts that carries less than others is named, and frames are no longer than it carries. What no map
        // shows are the ports of crossbars without an agent: frames of other hosts may be lost there.
        let mut cables = self.cable.iter().chain(self.ports.iter().map(|port| &port.cable));
        let differ = self.narrow_cables.is_empty() && cables.any(CableStatus::mtus_differ);
        differ.then_some(NetworkLack::EqualMtus)
    }

    /// Whether all hosts are configured, and nothing of the network is missing.
    pub(super) fn has_whole_network(&self) -> bool {
        self.network_configured && self.network_lack().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DeadCable, NarrowCable, Reason};
    use super::*;
    use crate::xbar::cable::{CableState, NeighbourStatus};

    fn board() -> Board {
        Board { network_configured: true, ..Board::silent(0, String::new()) }
    }

    #[test]
    fn a_network_is_configured_only_where_nothing_of_it_is_missing() {
        assert!(board().has_whole_network());
        let reason = Reason { mac: "02:00:00:00:00:09".to_owned(), why: "runs no agent".to_owned() };
        for lacking in [
            Board { network_configured: false, ..board() },
            Board { unreachable: vec![reason], ..board() },
            Board { dead_cables: vec![DeadCable::default()], ..board() },
        ] {
            assert!(!lacking.has_whole_network(), "{lacking:?}");
        }
    }

    #[test]
    fn warnings_and_cables_that_all_know_to_be_narrow_leave_a_network_configured() {
        let neighbour = NeighbourStatus { mtu: 1500, ..NeighbourStatus::default() };
        let (state, mtu) = (CableState::Joined.into(), Some(9000));
        let cable = CableStatus { state, mtu, neighbour: Some(neighbour), ..CableStatus::default() };
        let differs = Board { cable: Some(cable), ..board() };
        assert_eq!(differs.network_lack(), Some(NetworkLack::EqualMtus));
        let narrow_cables = vec![NarrowCable { mtu: 1500, longest: 9000, ends: Vec::new() }];
        let warnings = vec!["1500 bytes at eth1 of this host".to_owned()];
        assert!(Board { narrow_cables, warnings, ..differs }.has_whole_network());
    }
}
