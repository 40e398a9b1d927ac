//! Datagrams as lines of text, for a person and to be played again.
//!
//! ```text
//! 0.001204000 sent directed 018101..00 Get NodeInfo 0x0 along 0,1 (transaction 0x2)
//! 0.001398000 received directed 018101..00 GetResponse NodeInfo 0x0 along 0,1 (transaction 0x2): switch 0x1500 with 4 ports
//! 0.204000000 received 5/0/0 010101..00 Trap Notice 0x0 (transaction 0x4d): 128 of LID 5
//! ```
//!
//! A line has the seconds since the start, the direction, the other end (`directed`, or LID, queue pair and
//! service level), the bytes in hexadecimal digits, and what they mean. This last part is not read again.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use mapper_proto::quote;
use mapper_proto::time::Instant;
use thiserror::Error;

use crate::mad::sa::{self, SaMad};
use crate::mad::{
    AGENT_CLASS, AgentMad, AgentWord, Attribute, MAD_BYTES, ManagerMethod, NodeDescription, NodeInfo,
    NodeKind, Notice, PortSettings, RoutedByLid, SmInfo, Smp, SwitchInfo,
};
use crate::packet::{Address, Packet};

/// Which way a datagram went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the program that recorded it.
    Sent,
    /// To that program.
    Received,
}

/// A datagram that was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// The time since the start.
    pub at: Instant,
    /// Which way it went.
    pub direction: Direction,
    /// The datagram.
    pub packet: Packet,
}

/// A line that is no recorded datagram.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{0}` is no datagram that was recorded; expected seconds, sent or received, the other end, and 512 digits"
)]
pub struct ParseRecordError(String);

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.at.since(Instant::ZERO);
        write!(f, "{}.{:09} ", since.as_secs(), since.subsec_nanos())?;
        f.write_str(match self.direction {
            Direction::Sent => "sent ",
            Direction::Received => "received ",
        })?;
        match self.packet.address {
            Address::Directed => f.write_str("directed ")?,
            Address::Lid { lid, queue_pair, level } => write!(f, "{lid}/{queue_pair}/{level} ")?,
        }
        self.packet.mad.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, " {}", Meaning(&self.packet.mad))
    }
}

impl FromStr for Recorded {
    type Err = ParseRecordError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let refused = || ParseRecordError(quote::visible(&line.chars().take(80).collect::<String>()));
        read(line).ok_or_else(refused)
    }
}

fn read(line: &str) -> Option<Recorded> {
    let mut words = line.split(' ');
    let (seconds, nanos) = words.next()?.split_once('.')?;
    if nanos.len() != 9 {
        return None;
    }
    let since = Duration::new(seconds.parse().ok()?, nanos.parse().ok()?);
    let direction = match words.next()? {
        "sent" => Direction::Sent,
        "received" => Direction::Received,
        _ => return None,
    };
    let address = match words.next()? {
        "directed" => Address::Directed,
        by_lid => {
            let mut numbers = by_lid.split('/');
            let (lid, queue_pair) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
            Address::Lid { lid, queue_pair, level: numbers.next()?.parse().ok()? }
        }
    };
    let digits = words.next().filter(|digits| digits.len() == 2 * MAD_BYTES && digits.is_ascii())?;
    let mut mad = [0; MAD_BYTES];
    for (at, byte) in mad.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(Recorded { at: Instant::ZERO + since, direction, packet: Packet { address, mad } })
}

/// Writes what an agent tells another, in words.
fn tell_agent(f: &mut fmt::Formatter<'_>, mad: &AgentMad) -> fmt::Result {
    let AgentMad { level, guid, version, number, word } = mad;
    write!(f, "agent {guid:#x} of level {level}, subnet {} of {:#x}: ", version.counter, version.master)?;
    match word {
        AgentWord::Ask => f.write_str("asks for a share"),
        AgentWord::Share(switches) => {
            let lids: Vec<u16> = switches.iter().map(|switch| switch.lid).collect();
            write!(f, "share {number}: switches at LIDs {lids:?}")
        }
        AgentWord::Report { changed, silent } => {
            write!(f, "report on share {number}: changed {changed:?}, silent {silent:?}")
        }
    }
}

/// A datagram, which is shown in words.
#[derive(Clone, Copy, Debug)]
pub struct Meaning<'a>(pub &'a [u8; MAD_BYTES]);

impl fmt::Display for Meaning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0[sa::CLASS_AT] == sa::CLASS {
            return match SaMad::parse(self.0) {
                Ok(mad) => write!(
                    f,
                    "{:?} {:?} (transaction {:#x}), status {:#x}, segment {}",
                    mad.method, mad.attribute, mad.tid, mad.status, mad.rmpp.segment
                ),
                Err(error) => write!(f, "administration: {error}"),
            };
        }
        if self.0[sa::CLASS_AT] == AGENT_CLASS {
            return match AgentMad::parse(self.0) {
                Ok(mad) => tell_agent(f, &mad),
                Err(error) => write!(f, "agent: {error}"),
            };
        }
        let (smp, is_directed) = match Smp::<ManagerMethod>::parse(self.0) {
            Ok(smp) => (smp, true),
            Err(error) => match RoutedByLid::<ManagerMethod>::parse(self.0) {
                Ok(RoutedByLid(smp)) => (smp, false),
                Err(_) => return write!(f, "class {:#x}: {error}", self.0[sa::CLASS_AT]),
            },
        };
        write!(f, "{:?} {} {:#x}", smp.method, smp.attribute.name(), smp.modifier)?;
        if is_directed {
            write!(f, " along {}", smp.route)?;
        }
        write!(f, " (transaction {:#x})", smp.tid)?;
        if smp.status != 0 {
            return write!(f, ": status {:#x}", smp.status);
        }
        let data = data_of(&smp);
        if data.is_empty() { Ok(()) } else { write!(f, ": {data}") }
    }
}

/// The data of an answer or a write in words; empty for questions and for tables.
fn data_of(smp: &Smp<ManagerMethod>) -> String {
    let mut text = String::new();
    if smp.method == ManagerMethod::Get {
        return text;
    }
    let data = &smp.data;
    // Writing to a String never fails.
    let _infallible = match smp.attribute {
        Attribute::NodeDescription => write!(text, "{}", quote::quoted(&NodeDescription::parse(data).0)),
        Attribute::NodeInfo => match NodeInfo::parse(data) {
            Ok(info) => {
                let kind = match info.kind {
                    NodeKind::Adapter => "adapter",
                    NodeKind::Switch => "switch",
                    NodeKind::Router => "router",
                };
                write!(text, "{kind} {:#x} with {} ports", info.guid, info.ports)
            }
            Err(error) => write!(text, "{error}"),
        },
        Attribute::PortInfo => {
            let port = PortSettings::parse(data);
            write!(text, "{:?}, LID {}, manager at LID {}", port.state(), port.lid(), port.manager_lid())
        }
        Attribute::SwitchInfo => {
            let info = SwitchInfo::parse(data);
            let changed = if info.state_changed() { ", a port changed" } else { "" };
            write!(text, "table up to LID {}{changed}", info.linear_top())
        }
        Attribute::SmInfo => {
            let info = SmInfo::parse(data);
            write!(text, "{:#x} with priority {}: {:?}", info.guid, info.priority, info.state)
        }
        Attribute::Notice => {
            let notice = Notice::parse(data);
            write!(text, "{} of LID {}", notice.number.unwrap_or_default(), notice.issuer)
        }
        Attribute::GuidInfo
        | Attribute::PartitionTable
        | Attribute::SlToVl
        | Attribute::VlArbitration
        | Attribute::LinearTable
        | Attribute::MulticastTable => Ok(()),
    };
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mad::{Method, Route};

    fn recorded(mad: [u8; MAD_BYTES]) -> Recorded {
        let at = Instant::ZERO + Duration::new(3, 7);
        Recorded { at, direction: Direction::Sent, packet: Packet { address: Address::Directed, mad } }
    }

    #[test]
    fn a_datagram_is_told_by_the_name_of_its_attribute_and_its_way() {
        let route = Route::new(&[1, 4]).unwrap();
        let mad = Smp::<Method>::asking(9, (Attribute::PortInfo, 3), 0, route).emit();
        let line = recorded(mad).to_string();
        assert!(line.starts_with("3.000000007 sent directed 0181"), "{line}");
        assert!(line.ends_with(" Get PortInfo 0x3 along 0,1,4 (transaction 0x9)"), "{line}");
    }

    #[test]
    fn what_is_no_record_is_refused_by_its_beginning() {
        for line in
            ["", "1.5 sent directed 00", "x sent", "1.000000000 lost directed 00", "1.000000000 sent 5/0 00"]
        {
            let refused = line.parse::<Recorded>().unwrap_err().to_string();
            assert!(refused.starts_with(&format!("`{line}` is no datagram that was recorded")), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn any_datagram_is_read_as_it_is_written(
            bytes in prop::collection::vec(any::<u8>(), MAD_BYTES),
            class in prop_oneof![Just(0x81_u8), Just(1), Just(3), any::<u8>()],
            lid in any::<u16>(),
            nanos in 0..u64::MAX / 2,
        ) {
            let mut mad: [u8; MAD_BYTES] = bytes.try_into().unwrap();
            mad[sa::CLASS_AT] = class;
            let address = Address::Lid { lid, queue_pair: 1, level: 3 };
            let at = Instant::ZERO + Duration::from_nanos(nanos);
            let written = Recorded { at, direction: Direction::Received, packet: Packet { address, mad } };
            prop_assert_eq!(written.to_string().parse(), Ok(written));
        }
    }
}
