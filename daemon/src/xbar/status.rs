//! What a crossbar says of itself: `mapper.xbar/1` describes each crossbar as one.

use mapper_proto::Tally;
use mapper_proto::wire::{Crossbar, CrossbarKind};
use serde::{Deserialize, Serialize};

use super::cable::CableStatus;
use super::counters::{ArrivalCount, ArrivalCounters, XbarDrop};
use super::data_path::XbarDataPath;
use super::traffic::rate_mbps;
use mapper_machine::link::Link;
use mapper_machine::link::port::LinkCount;
use mapper_machine::log;

/// One crossbar of this machine, as `mapper.xbar/1` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct XbarStatus {
    /// The crossbar's name on this machine.
    pub name: String,
    /// `plain` or `tagged`.
    pub kind: String,
    /// The tag of a tagged crossbar, as 16 hexadecimal digits; `None` for a plain one.
    pub tag: Option<String>,
    /// The number of its first port.
    pub first_port: u8,
    /// How many ports it has, with an interface or without.
    pub port_count: u8,
    /// The ports that have an interface, present or not, by rising number.
    pub ports: Vec<PortStatus>,
    /// The id of its process.
    pub pid: u32,
    /// How long it has been running, in milliseconds.
    pub uptime_ms: u64,
    /// Lines of its process's log that were lost, since nobody read them or they could not be written.
    pub log_lines_lost: u64,
    /// What users' packets go by; `None` where an agent of the same process says so, or nothing is known.
    #[serde(default)]
    pub data_path: Option<XbarDataPath>,
    /// Why the crossbar did not answer; `None` if it did. Only the name is known of one that did not.
    pub no_answer: Option<String>,
}

/// One port of a crossbar, and what it counted since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortStatus {
    /// The port's number.
    pub port: u8,
    /// The interface's name.
    pub interface: String,
    /// Whether there is such an interface.
    pub exists: bool,
    /// Whether the interface is administratively up.
    pub up: bool,
    /// Whether the interface has carrier.
    pub carrier: bool,
    /// The MTU of the interface, in bytes; `None` if there is no interface, or the link is inside a process
    /// and has no such limit.
    pub mtu: Option<u32>,
    /// How fast the interface is, in Mb/s, if it says so; told to who asks the socket.
    #[serde(default)]
    pub rate_mbps: Option<u32>,
    /// What is known of the cable: who is at its other end.
    pub cable: CableStatus,
    /// Frames that arrived: those forwarded, those dropped, and hellos.
    pub received: u64,
    /// Bytes that arrived, with the Ethernet headers.
    pub received_bytes: u64,
    /// Frames that the kernel lost, since they arrived faster than they were taken. They are not in
    /// `received`.
    pub overruns: u64,
    /// Frames that arrived here and left by some port.
    pub forwarded: u64,
    /// Hellos of neighbours, which end here.
    pub hellos: u64,
    /// Frames that arrived here and left by no port, counted by the reason.
    pub dropped: Tally<XbarDrop>,
    /// Frames that left by this port.
    pub sent: u64,
    /// Bytes that left by this port, with the Ethernet headers.
    pub sent_bytes: u64,
    /// Frames that should have left by this port, but that its link did not take.
    pub unsent: u64,
    /// Hellos sent out of this port; they are in `sent`, too.
    pub hellos_sent: u64,
    /// Notices sent back out of this port, each because a data frame that arrived here could not be
    /// forwarded, or because a port lost carrier that a check from here had left by.
    pub notices: u64,
    /// Notices not sent because there were too many of them.
    pub notices_suppressed: u64,
}

impl XbarStatus {
    pub(super) fn new(name: &str, crossbar: &Crossbar, ports: Vec<PortStatus>, uptime_ms: u64) -> Self {
        let (kind, tag) = match crossbar.kind {
            CrossbarKind::Plain => ("plain", None),
            CrossbarKind::Tagged { tag } => ("tagged", Some(format!("{tag:016x}"))),
        };
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            tag,
            first_port: crossbar.first_port,
            port_count: crossbar.ports,
            ports,
            pid: std::process::id(),
            uptime_ms,
            log_lines_lost: log::lines_lost(),
            data_path: None,
            no_answer: None,
        }
    }

    /// The status of a crossbar that did not answer; `why` says so in words.
    pub fn silent(name: &str, why: String) -> Self {
        Self { name: name.to_owned(), no_answer: Some(why), ..Self::default() }
    }
}

impl PortStatus {
    /// Asks how fast the interface is.
    pub fn with_rate(mut self) -> Self {
        self.rate_mbps = rate_mbps(&self.interface);
        self
    }

    pub(super) fn new(port: u8, link: &Link, arrivals: ArrivalCounters, cable: CableStatus) -> Self {
        let over_link = link.counts();
        let ArrivalCounters { counts, dropped } = arrivals;
        Self {
            port,
            interface: link.name().to_owned(),
            exists: link.exists(),
            up: link.up(),
            carrier: link.carrier(),
            mtu: link.mtu(),
            rate_mbps: None,
            cable,
            received: over_link[LinkCount::Received],
            received_bytes: over_link[LinkCount::ReceivedBytes],
            overruns: over_link[LinkCount::Overruns],
            forwarded: counts[ArrivalCount::Forwarded],
            hellos: counts[ArrivalCount::Hellos],
            dropped,
            sent: over_link[LinkCount::Sent],
            sent_bytes: over_link[LinkCount::SentBytes],
            unsent: over_link[LinkCount::Unsent],
            hellos_sent: counts[ArrivalCount::HellosSent],
            notices: counts[ArrivalCount::Notices],
            notices_suppressed: counts[ArrivalCount::NoticesSuppressed],
        }
    }
}
