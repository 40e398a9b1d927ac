//! Kinds of causes, by which they are counted.

use enum_map::Enum;
use strum::IntoStaticStr;

use super::{CableCause, Cause};

/// What a [`Cause`] is, without hosts, places and numbers. The names are for programs, and stay the same from version to version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Enum, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CauseKind {
    /// The agent has just started.
    Start,
    /// The operator wants one map after another.
    ToldToRemap,
    /// This agent is set otherwise about `non-clos` than the map says.
    NonClosChanged,
    /// A higher mapper is heard.
    HigherMapper,
    /// A parent offers a new map.
    NewMapOffered,
    /// The higher mapper that this agent waited for has started again, and is lower now.
    MapperRestartedLower,
    /// The higher mapper that this agent waited for is silent.
    MapperSilent,
    /// The address of the higher mapper that this agent waited for is another host's too.
    MapperContested,
    /// No map came for too long, though the higher mapper is heard.
    NoMapCame,
    /// Another host has this agent's address.
    TwinFound,
    /// The other host with this agent's address is gone.
    TwinGone,
    /// A piece of a map could not be read.
    PieceMakesNoSense,
    /// The parent answers, but has no piece of the map.
    NoPieceDelivered,
    /// The parent does not answer requests for pieces.
    PieceUnanswered,
    /// For too long no further piece of the map came.
    PiecesEnded,
    /// All pieces came, but together they are no map.
    MapMakesNoSense,
    /// The map that came does not show this host, or is not its maker's.
    NotInMap,
    /// The parent in the tree does not answer.
    ParentGone,
    /// The parent in the tree says that its map no longer holds.
    ParentHasNoMap,
    /// Another host answers where the parent in the tree was.
    ParentReplaced,
    /// The last exploration failed.
    ExplorationFailed,
    /// The last exploration did not find this host itself.
    SelfNotFound,
    /// Exploring the suspect ports alone found no change, so it must be somewhere else.
    SuspectsUnchanged,
    /// This agent's interface got its carrier back while this agent mapped.
    OwnCarrierBack,
    /// The MTU of a host is another than the map's.
    MtuChanged,
    /// Other cables lose frames than the map shows.
    LossyCables,
    /// The map shows this host with another level or type.
    OwnEntryWrong,
    /// A host is heard that the map lacks.
    HostNotInMap,
    /// A host has another level than in the map.
    LevelChanged,
    /// Another host found a change.
    ChangeReported,
    /// A child holds another map for too long.
    MapNotTaken,
    /// A host of the map does not answer.
    HostSilent,
    /// Another host answers than the map shows.
    HostReplaced,
    /// A host of the map says that another has its address.
    AddressShared,
    /// At a contested port another host answers than one of those with the contested address.
    ContestedReplaced,
    /// An address that was contested is one host's again.
    ContestedAlone,
    /// The host at a contested port does not answer.
    ContestedSilent,
    /// A tagged xbar fills in no stamp any more.
    IdentityLost,
    /// An xbar that filled in no stamp does so now.
    IdentityAppeared,
    /// Another xbar answers than the map shows.
    XbarReplaced,
    /// A cable leads to another port than the map shows.
    CableMoved,
    /// A port of the map has lost its carrier, says its xbar's stamp.
    CarrierLost,
    /// A host answers where the map shows an xbar.
    HostForXbar,
    /// A probe along the map does not come home.
    CableSilent,
    /// Something answers at a port that is empty in the map.
    PortAnswers,
    /// A cable whose two ends the last exploration could not prove to be joined is proved now.
    CableProved,
    /// The crossbar of this machine has no carrier at the cable's port.
    OwnCarrierLost,
    /// Another crossbar has no carrier at the cable's port, and said so.
    CarrierNotice,
    /// A path in use is silent from the cable on.
    PathSilent,
    /// A path in use is silent from the cable on, and yet the mapper's frames pass.
    UsersFramesSilent,
}

impl CauseKind {
    /// The name by which metrics label causes of this kind.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Cause {
    /// The kind by which the cause is counted. A doubt that a check confirmed is of the kind of what the check found.
    pub fn kind(&self) -> CauseKind {
        match self {
            Self::Start => CauseKind::Start,
            Self::ToldToRemap => CauseKind::ToldToRemap,
            Self::NonClosChanged => CauseKind::NonClosChanged,
            Self::HigherMapper { .. } => CauseKind::HigherMapper,
            Self::NewMapOffered => CauseKind::NewMapOffered,
            Self::MapperRestartedLower => CauseKind::MapperRestartedLower,
            Self::MapperSilent => CauseKind::MapperSilent,
            Self::MapperContested => CauseKind::MapperContested,
            Self::NoMapCame => CauseKind::NoMapCame,
            Self::TwinFound => CauseKind::TwinFound,
            Self::TwinGone => CauseKind::TwinGone,
            Self::PieceMakesNoSense => CauseKind::PieceMakesNoSense,
            Self::NoPieceDelivered => CauseKind::NoPieceDelivered,
            Self::PieceUnanswered => CauseKind::PieceUnanswered,
            Self::PiecesEnded => CauseKind::PiecesEnded,
            Self::MapMakesNoSense => CauseKind::MapMakesNoSense,
            Self::NotInMap => CauseKind::NotInMap,
            Self::ParentGone => CauseKind::ParentGone,
            Self::ParentHasNoMap => CauseKind::ParentHasNoMap,
            Self::ParentReplaced => CauseKind::ParentReplaced,
            Self::ExplorationFailed(_) => CauseKind::ExplorationFailed,
            Self::SelfNotFound => CauseKind::SelfNotFound,
            Self::SuspectsUnchanged => CauseKind::SuspectsUnchanged,
            Self::OwnCarrierBack => CauseKind::OwnCarrierBack,
            Self::MtuChanged => CauseKind::MtuChanged,
            Self::LossyCables => CauseKind::LossyCables,
            Self::OwnEntryWrong => CauseKind::OwnEntryWrong,
            Self::HostNotInMap { .. } => CauseKind::HostNotInMap,
            Self::LevelChanged { .. } => CauseKind::LevelChanged,
            Self::ChangeReported { .. } => CauseKind::ChangeReported,
            Self::MapNotTaken { .. } => CauseKind::MapNotTaken,
            Self::HostSilent { .. } | Self::DoubtedHostSilent => CauseKind::HostSilent,
            Self::HostReplaced { .. } => CauseKind::HostReplaced,
            Self::AddressShared { .. } => CauseKind::AddressShared,
            Self::ContestedReplaced { .. } => CauseKind::ContestedReplaced,
            Self::ContestedAlone { .. } => CauseKind::ContestedAlone,
            Self::ContestedSilent => CauseKind::ContestedSilent,
            Self::IdentityLost => CauseKind::IdentityLost,
            Self::IdentityAppeared => CauseKind::IdentityAppeared,
            Self::XbarReplaced { .. } => CauseKind::XbarReplaced,
            Self::CableMoved { .. } => CauseKind::CableMoved,
            Self::CarrierLost { .. } => CauseKind::CarrierLost,
            Self::HostForXbar => CauseKind::HostForXbar,
            Self::CableSilent => CauseKind::CableSilent,
            Self::PortAnswers => CauseKind::PortAnswers,
            Self::CableProved => CauseKind::CableProved,
            Self::CableDown(cause) => cause.kind(),
            Self::DoubtConfirmed { found, .. } => found.kind(),
        }
    }
}

impl CableCause {
    const fn kind(self) -> CauseKind {
        match self {
            Self::Carrier => CauseKind::OwnCarrierLost,
            Self::Notice => CauseKind::CarrierNotice,
            Self::Silence => CauseKind::PathSilent,
            Self::UsersOnly => CauseKind::UsersFramesSilent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;

    /// Metrics have these as labels, so that alarms of operators rely on them.
    #[test]
    fn names_of_kinds_stay() {
        let names = [
            "start",
            "told_to_remap",
            "non_clos_changed",
            "higher_mapper",
            "new_map_offered",
            "mapper_restarted_lower",
            "mapper_silent",
            "mapper_contested",
            "no_map_came",
            "twin_found",
            "twin_gone",
            "piece_makes_no_sense",
            "no_piece_delivered",
            "piece_unanswered",
            "pieces_ended",
            "map_makes_no_sense",
            "not_in_map",
            "parent_gone",
            "parent_has_no_map",
            "parent_replaced",
            "exploration_failed",
            "self_not_found",
            "suspects_unchanged",
            "own_carrier_back",
            "mtu_changed",
            "lossy_cables",
            "own_entry_wrong",
            "host_not_in_map",
            "level_changed",
            "change_reported",
            "map_not_taken",
            "host_silent",
            "host_replaced",
            "address_shared",
            "contested_replaced",
            "contested_alone",
            "contested_silent",
            "identity_lost",
            "identity_appeared",
            "xbar_replaced",
            "cable_moved",
            "carrier_lost",
            "host_for_xbar",
            "cable_silent",
            "port_answers",
            "cable_proved",
            "own_carrier_lost",
            "carrier_notice",
            "path_silent",
            "users_frames_silent",
        ];
        let known = Tally::<CauseKind>::default();
        assert!(known.iter().map(|(_, name, _)| name).eq(names));
        assert_eq!(CauseKind::HostSilent.name(), "host_silent");
    }
}
