//! What agents of this program tell each other by LID, in a class of management of their own (a vendor class
//! with an OUI).
//!
//! ```text
//! offset  bytes  what
//!      0      4  version 1, class, class version 1, method Send
//!      8      8  transaction: the number of the share, again
//!     16      2  attribute: a share, the report of one, or that one is asked for
//!     37      3  OUI
//!     40      1  level
//!     41      1  how many switches the first list names
//!     42      1  how many the second does
//!     44      4  number of the share
//!     48      8  GUID of the sender's port
//!     56      8  GUID of the port of the master that brought the subnet up
//!     64      4  how often it had done so
//!     72      4  each switch: LID, and the highest LID that its table is looked at for
//! ```
//!
//! Such a datagram is not answered. If one is lost, it costs the master the time that it waits for a report.

use thiserror::Error;

use super::{MAD_BYTES, bytes, put, u16_at, u32_at, u64_at};

/// The class: one of those for vendors that name themselves by an OUI. Simulators take classes whose lower half is 1 or 4 for
/// management of the subnet, and 0x32 and 0x33 are taken by `ibping` and `ibsysstat`.
pub const AGENT_CLASS: u8 = 0x3A;
/// The OUI: one that is administered locally, as its second lowest bit says.
pub const AGENT_OUI: [u8; 3] = [0x02, 0x6D, 0x70];
/// The method Send, of a datagram that is not answered.
pub const SEND: u8 = 0x03;
/// The most switches of a share.
pub const MAX_SHARE: usize = (MAD_BYTES - SWITCHES_AT) / SWITCH_BYTES;

const HEADER: [u8; 4] = [1, AGENT_CLASS, 1, SEND];
const TID_AT: usize = 8;
const ATTRIBUTE_AT: usize = 16;
const OUI_AT: usize = 37;
const LEVEL_AT: usize = 40;
const COUNTS_AT: usize = 41;
const NUMBER_AT: usize = 44;
const GUID_AT: usize = 48;
const VERSION_GUID_AT: usize = 56;
const VERSION_COUNTER_AT: usize = 64;
const SWITCHES_AT: usize = 72;
const SWITCH_BYTES: usize = 4;

const SHARE: u16 = 0x10;
const REPORT: u16 = 0x11;
const ASK: u16 = 0x12;

/// The subnet as a master brought it up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SubnetVersion {
    /// The GUID of the master's port.
    pub master: u64,
    /// How often that master had brought the subnet up.
    pub counter: u32,
}

/// A switch that is to be looked at, by LID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareSwitch {
    /// Its LID.
    pub lid: u16,
    /// The highest LID that its table is looked at for, if nothing changed.
    pub linear_top: u16,
}

/// What is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AgentWord {
    /// An agent stands by, and asks the master for a share.
    Ask,
    /// The master has an agent look at these switches, [`MAX_SHARE`] at most.
    Share(Vec<ShareSwitch>),
    /// An agent has looked at all of its share. Both lists together name at most [`MAX_SHARE`] switches.
    Report {
        /// The LIDs of switches that say that something changed, or whose tables are looked at for other LIDs.
        changed: Vec<u16>,
        /// The LIDs of switches that did not answer.
        silent: Vec<u16>,
    },
}

/// A datagram from one agent to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentMad {
    /// The level of the sender. The agent with the highest level becomes master.
    pub level: u8,
    /// The GUID of the sender's port. Of agents with equal levels the one with the lower GUID becomes master.
    pub guid: u64,
    /// The subnet as the sender knows it.
    pub version: SubnetVersion,
    /// The number of the share that is given, or was looked at.
    pub number: u32,
    /// What is told.
    pub word: AgentWord,
}

/// Why bytes are no datagram of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AgentMadError {
    /// Every datagram has 256 bytes.
    #[error("a management datagram of {0} bytes; each has {MAD_BYTES}")]
    Size(usize),
    /// It is of another class, version, method or vendor.
    #[error("class {class:#x} with OUI {oui:02x?}: none of this program's agents sent it")]
    Stranger {
        /// The class.
        class: u8,
        /// The vendor.
        oui: [u8; 3],
    },
    /// It is of a kind that agents of this version do not know.
    #[error("attribute {0:#x} is nothing that agents tell each other")]
    Attribute(u16),
    /// It names more switches than fit.
    #[error("{0} switches; a datagram names {MAX_SHARE} at most")]
    Switches(usize),
}

impl AgentMad {
    /// The bytes as they travel. If the lists are longer, only the first [`MAX_SHARE`] switches are in them.
    pub fn emit(&self) -> [u8; MAD_BYTES] {
        let mut mad = [0; MAD_BYTES];
        put(&mut mad, 0, &HEADER);
        put(&mut mad, TID_AT, &u64::from(self.number).to_be_bytes());
        put(&mut mad, OUI_AT, &AGENT_OUI);
        put(&mut mad, NUMBER_AT, &self.number.to_be_bytes());
        put(&mut mad, GUID_AT, &self.guid.to_be_bytes());
        put(&mut mad, VERSION_GUID_AT, &self.version.master.to_be_bytes());
        put(&mut mad, VERSION_COUNTER_AT, &self.version.counter.to_be_bytes());
        mad[LEVEL_AT] = self.level;
        let one = |lid: u16| ShareSwitch { lid, linear_top: 0 };
        let (attribute, first, switches): (u16, usize, Vec<ShareSwitch>) = match &self.word {
            AgentWord::Ask => (ASK, 0, Vec::new()),
            AgentWord::Share(switches) => (SHARE, switches.len(), switches.clone()),
            AgentWord::Report { changed, silent } => {
                (REPORT, changed.len(), changed.iter().chain(silent).map(|&lid| one(lid)).collect())
            }
        };
        put(&mut mad, ATTRIBUTE_AT, &attribute.to_be_bytes());
        let total = switches.len().min(MAX_SHARE);
        let first = first.min(total);
        put(&mut mad, COUNTS_AT, &[first as u8, (total - first) as u8]);
        for (switch, at) in switches.iter().zip((SWITCHES_AT..MAD_BYTES).step_by(SWITCH_BYTES)) {
            put(&mut mad, at, &switch.lid.to_be_bytes());
            put(&mut mad, at + 2, &switch.linear_top.to_be_bytes());
        }
        mad
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// If the bytes are no datagram of an agent, or name more switches than fit.
    pub fn parse(mad: &[u8]) -> Result<Self, AgentMadError> {
        if mad.len() != MAD_BYTES {
            return Err(AgentMadError::Size(mad.len()));
        }
        let oui = bytes(mad, OUI_AT);
        if (mad[..4] != HEADER) || oui != AGENT_OUI {
            return Err(AgentMadError::Stranger { class: mad[1], oui });
        }
        let [first, second] = bytes(mad, COUNTS_AT).map(|count: u8| usize::from(count));
        let switch = |at: usize| ShareSwitch { lid: u16_at(mad, at), linear_top: u16_at(mad, at + 2) };
        let all = (SWITCHES_AT..MAD_BYTES).step_by(SWITCH_BYTES).map(switch);
        if first + second > MAX_SHARE {
            return Err(AgentMadError::Switches(first + second));
        }
        let word = match u16_at(mad, ATTRIBUTE_AT) {
            ASK => AgentWord::Ask,
            SHARE => AgentWord::Share(all.take(first).collect()),
            REPORT => {
                let mut lids = all.map(|switch| switch.lid);
                let changed = lids.by_ref().take(first).collect();
                AgentWord::Report { changed, silent: lids.take(second).collect() }
            }
            other => return Err(AgentMadError::Attribute(other)),
        };
        Ok(Self {
            level: mad[LEVEL_AT],
            guid: u64_at(mad, GUID_AT),
            version: SubnetVersion {
                master: u64_at(mad, VERSION_GUID_AT),
                counter: u32_at(mad, VERSION_COUNTER_AT),
            },
            number: u32_at(mad, NUMBER_AT),
            word,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mad(word: AgentWord) -> AgentMad {
        let version = SubnetVersion { master: 0x1001, counter: 7 };
        AgentMad { level: 9, guid: 0x2001, version, number: 0x0102_0304, word }
    }

    #[test]
    fn what_agents_tell_is_read_as_it_is_written_up_to_the_most_switches() {
        let ask = mad(AgentWord::Ask);
        assert_eq!(AgentMad::parse(&ask.emit()), Ok(ask));
        for count in [0, 1, MAX_SHARE as u16] {
            let switches = (0..count).map(|lid| ShareSwitch { lid, linear_top: 500 + lid });
            let share = mad(AgentWord::Share(switches.collect()));
            assert_eq!(AgentMad::parse(&share.emit()), Ok(share));
            let (changed, silent) = ((0..count / 2).collect(), (count / 2..count).collect());
            let report = mad(AgentWord::Report { changed, silent });
            assert_eq!(AgentMad::parse(&report.emit()), Ok(report));
        }
    }

    #[test]
    fn a_share_is_laid_out_as_it_is_documented() {
        let bytes = mad(AgentWord::Share(vec![ShareSwitch { lid: 5, linear_top: 0x1234 }])).emit();
        assert_eq!(bytes[..4], [1, 0x3A, 1, 3]);
        assert_eq!(bytes[16..18], [0, 0x10]);
        assert_eq!(bytes[37..48], [0x02, 0x6D, 0x70, 9, 1, 0, 0, 1, 2, 3, 4]);
        assert_eq!(bytes[72..78], [0, 5, 0x12, 0x34, 0, 0]);
    }

    #[test]
    fn what_no_agent_sent_is_refused_and_said() {
        let good = mad(AgentWord::Share(Vec::new())).emit();
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            AgentMad::parse(&bytes).unwrap_err()
        };
        assert_eq!(AgentMad::parse(&good[1..]), Err(AgentMadError::Size(255)));
        assert_eq!(with(1, 3), AgentMadError::Stranger { class: 3, oui: AGENT_OUI });
        assert_eq!(with(39, 0), AgentMadError::Stranger { class: AGENT_CLASS, oui: [0x02, 0x6D, 0] });
        assert_eq!(with(17, 0x20), AgentMadError::Attribute(0x20));
        assert_eq!(with(41, 47), AgentMadError::Switches(47));
    }
}
