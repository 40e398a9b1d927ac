//! Why an agent gives a map up, or maps.

mod kind;

use std::fmt;

pub use kind::CauseKind;

use crate::Mac;
use crate::explore::ExploreError;

/// Why a map no longer holds, or why an agent maps. Its [`Display`](fmt::Display) is for persons and may be
/// reworded; the name of its [kind](Cause::kind) is for programs and may not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The agent has just started.
    Start,
    /// The operator wants one map after another.
    ToldToRemap,
    /// This agent is set otherwise about `non-clos` than the map says.
    NonClosChanged,
    /// A higher mapper is heard.
    HigherMapper {
        /// Its address.
        mac: Mac,
    },
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
    ExplorationFailed(ExploreError),
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
    HostNotInMap {
        /// Its address.
        mac: Mac,
    },
    /// A host has another level than in the map.
    LevelChanged {
        /// Its address.
        mac: Mac,
        /// The level that it has.
        level: u8,
        /// The level that the map shows.
        before: u8,
    },
    /// Another host found a change.
    ChangeReported {
        /// Its address.
        mac: Mac,
    },
    /// A child holds another map for too long.
    MapNotTaken {
        /// Its address.
        mac: Mac,
    },
    /// A host of the map does not answer.
    HostSilent {
        /// Its address.
        mac: Mac,
    },
    /// The host at a cable in doubt does not answer.
    DoubtedHostSilent,
    /// Another host answers than the map shows.
    HostReplaced {
        /// Who answers.
        found: Mac,
        /// The host that the map shows there.
        expected: Mac,
    },
    /// A host of the map says that another has its address.
    AddressShared {
        /// The address.
        mac: Mac,
    },
    /// At a contested port another host answers than one of those with the contested address.
    ContestedReplaced {
        /// Who answers.
        found: Mac,
        /// The contested address.
        mac: Mac,
    },
    /// An address that was contested is one host's again.
    ContestedAlone {
        /// The address.
        mac: Mac,
    },
    /// The host at a contested port does not answer.
    ContestedSilent,
    /// A tagged xbar fills in no stamp any more.
    IdentityLost,
    /// An xbar that filled in no stamp does so now.
    IdentityAppeared,
    /// Another xbar answers than the map shows.
    XbarReplaced {
        /// The tag that it has.
        found: u64,
        /// The tag that the map shows.
        expected: u64,
    },
    /// A cable leads to another port than the map shows.
    CableMoved {
        /// The xbar's tag.
        tag: u64,
        /// The port that it leads to.
        port: u8,
        /// The port that the map shows.
        before: u8,
    },
    /// A port of the map has lost its carrier, says its xbar's stamp.
    CarrierLost {
        /// The xbar's tag.
        tag: u64,
        /// The port.
        port: u8,
    },
    /// A host answers where the map shows an xbar.
    HostForXbar,
    /// A probe along the map does not come home.
    CableSilent,
    /// Something answers at a port that is empty in the map.
    PortAnswers,
    /// A cable whose two ends the last exploration could not prove to be joined is proved now.
    CableProved,
    /// Users' frames found a cable dead.
    CableDown(CableCause),
    /// Users' frames raised a doubt about a cable, and a check confirmed it.
    DoubtConfirmed {
        /// The doubt.
        doubt: CableCause,
        /// What the check found.
        found: Box<Self>,
    },
}

impl Cause {
    /// The cause in the words of its [`Display`](fmt::Display), with hosts called as `call` says, and xbars by their tags as
    /// `call_xbar` says: a person knows them by names.
    pub fn describe(&self, call: impl Fn(Mac) -> String, call_xbar: impl Fn(u64) -> String) -> String {
        let mut text = String::new();
        // To write to a string does not fail.
        let _infallible = self.write(&mut text, &call, &call_xbar);
        text
    }

    fn write(
        &self,
        f: &mut impl fmt::Write,
        call: &impl Fn(Mac) -> String,
        call_xbar: &impl Fn(u64) -> String,
    ) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::ToldToRemap => "it is told to keep remapping",
            Self::NonClosChanged => "its non-clos was changed",
            Self::HigherMapper { mac } => return write!(f, "{} is a higher mapper", call(*mac)),
            Self::NewMapOffered => "a new map is to be had",
            Self::MapperRestartedLower => "its higher mapper has started again and is lower now",
            Self::MapperSilent => "its higher mapper fell silent",
            Self::MapperContested => "its higher mapper shares its address with another host",
            Self::NoMapCame => "no map came",
            Self::TwinFound => "another host has this address",
            Self::TwinGone => "no other host has this address any more",
            Self::PieceMakesNoSense => "a piece of the map makes no sense",
            Self::NoPieceDelivered => "its parent delivers no piece of the map",
            Self::PieceUnanswered => "its parent does not deliver the map",
            Self::PiecesEnded => "no more of the map came from its parent",
            Self::MapMakesNoSense => "the map that came makes no sense",
            Self::NotInMap => "the map that came does not show this host",
            Self::ParentGone => "its parent is gone",
            Self::ParentHasNoMap => "the parent has no valid map",
            Self::ParentReplaced => "another host answers in its parent's place",
            Self::ExplorationFailed(error) => return write!(f, "the last exploration failed: {error}"),
            Self::SelfNotFound => "the last exploration did not find this host itself",
            Self::SuspectsUnchanged => "the suspect ports are as they were",
            Self::OwnCarrierBack => "its own cable was plugged in anew while it mapped",
            Self::MtuChanged => "the frames that a host's ports carry became others: an MTU was changed, or a port came or went",
            Self::LossyCables => "other cables lose frames than the map shows",
            Self::OwnEntryWrong => "the map is wrong about this host's level or type",
            Self::HostNotInMap { mac } => return write!(f, "host {} is not in the map", call(*mac)),
            Self::LevelChanged { mac, level, before } => {
                return write!(f, "host {} has level {level}, no longer {before}", call(*mac));
            }
            Self::ChangeReported { mac } => return write!(f, "host {} reports a change", call(*mac)),
            Self::MapNotTaken { mac } => return write!(f, "host {} does not take the map", call(*mac)),
            Self::HostSilent { mac } => return write!(f, "host {} no longer answers", call(*mac)),
            Self::DoubtedHostSilent => "the host no longer answers",
            Self::HostReplaced { found, expected } => {
                return write!(f, "host {} answers where {} was", call(*found), call(*expected));
            }
            Self::AddressShared { mac } => {
                return write!(f, "host {} shares its address with another", call(*mac));
            }
            Self::ContestedReplaced { found, mac } => {
                return write!(
                    f,
                    "host {} answers where one of the hosts known as {} was",
                    call(*found),
                    call(*mac)
                );
            }
            Self::ContestedAlone { mac } => {
                return write!(f, "host {} is alone with its address", call(*mac));
            }
            Self::ContestedSilent => "a host whose address another has no longer answers",
            Self::IdentityLost => "an xbar no longer tells its identity",
            Self::IdentityAppeared => "an xbar tells an identity that had none",
            Self::XbarReplaced { found, expected } => {
                return write!(f, "xbar {} stands where {} was", call_xbar(*found), call_xbar(*expected));
            }
            Self::CableMoved { tag, port, before } => {
                return write!(
                    f,
                    "a cable leads to port {port} of xbar {}, no longer {before}",
                    call_xbar(*tag)
                );
            }
            Self::CarrierLost { tag, port } => {
                return write!(f, "port {port} of xbar {} has lost its carrier", call_xbar(*tag));
            }
            Self::HostForXbar => "a host stands where an xbar was",
            Self::CableSilent => "a cable or an xbar no longer answers",
            Self::PortAnswers => "something answers at a port that was empty",
            Self::CableProved => "a cable is there that could not be proved before",
            Self::CableDown(cause) => return write!(f, "{cause}"),
            Self::DoubtConfirmed { doubt, found } => {
                write!(f, "{doubt}; checked: ")?;
                return found.write(f, call, call_xbar);
            }
        })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &|mac| mac.to_string(), &|tag| format!("{tag:016x}"))
    }
}

/// How it became known that a cable is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CableCause {
    /// The crossbar of this machine has no carrier at the cable's port.
    Carrier,
    /// Another crossbar has no carrier at the cable's port, and said so.
    Notice,
    /// A path in use is silent from there on.
    Silence,
    /// A path in use is silent from there on, and yet the mapper's frames pass.
    UsersOnly,
}

impl CableCause {
    /// Whether the cable is dead beyond doubt.
    pub const fn is_certain(self) -> bool {
        matches!(self, Self::Carrier | Self::Notice)
    }
}

impl fmt::Display for CableCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Carrier => "no carrier at the crossbar of this machine",
            Self::Notice => "no carrier, says the crossbar",
            Self::Silence => "a path in use is silent from there on",
            Self::UsersOnly => "it carries the mapper's frames and not users'",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_called_as_the_caller_says_in_the_same_words() {
        let (mac, expected) = (Mac::from_position(1), Mac::from_position(2));
        let silent = Box::new(Cause::HostSilent { mac });
        for cause in [
            Cause::HigherMapper { mac },
            Cause::HostNotInMap { mac },
            Cause::LevelChanged { mac, level: 3, before: 1 },
            Cause::ChangeReported { mac },
            Cause::MapNotTaken { mac },
            Cause::HostReplaced { found: mac, expected },
            Cause::AddressShared { mac },
            Cause::ContestedReplaced { found: mac, mac: expected },
            Cause::ContestedAlone { mac },
            Cause::DoubtConfirmed { doubt: CableCause::Silence, found: silent },
            Cause::XbarReplaced { found: 7, expected: 8 },
            Cause::CableMoved { tag: 7, port: 1, before: 2 },
            Cause::CarrierLost { tag: 7, port: 1 },
            Cause::NoMapCame,
        ] {
            let (shown, called) =
                (cause.to_string(), cause.describe(|mac| format!("({mac})"), |tag| format!("({tag:016x})")));
            assert_eq!(called.replace(['(', ')'], ""), shown);
            for known_by in ["02:00:00:00:00:01", "02:00:00:00:00:02", "0000000000000007"] {
                assert_eq!(called.contains(&format!("({known_by})")), shown.contains(known_by), "{called}");
            }
        }
    }
}
