//! The ports of a node, and what keeps frames from passing them.

use serde::{Deserialize, Serialize};

use crate::xbar::cable::CableStatus;
use crate::xbar::{PortStatus, PortTraffic};

/// A port of a node's own crossbar that leads out of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BoardPort {
    /// The port's number at the crossbar.
    pub port: u8,
    /// The interface's name.
    pub interface: String,
    /// Whether there is such an interface.
    pub exists: bool,
    /// Whether the interface is administratively up.
    pub up: bool,
    /// Whether the interface has carrier.
    pub carrier: bool,
    /// The MTU of the interface, in bytes; `None` without interface.
    pub mtu: Option<u32>,
    /// What is known of the cable: who is at its other end.
    pub cable: CableStatus,
    /// What went over the cable.
    #[serde(default)]
    pub traffic: PortTraffic,
}

impl BoardPort {
    /// What keeps frames from passing, in words, and what to do; `None` if nothing does.
    pub fn trouble(&self) -> Option<String> {
        let Self { port, interface, .. } = self;
        let why = match self {
            Self { carrier: true, .. } => return None,
            Self { exists: false, .. } => "does not exist".to_owned(),
            Self { up: false, .. } => format!("is down; `ip link set {interface} up`"),
            Self { .. } => "has no carrier: is the cable plugged in, and the other end up?".to_owned(),
        };
        Some(format!("port {port} ({interface}) {why}"))
    }
}

impl From<&PortStatus> for BoardPort {
    fn from(port: &PortStatus) -> Self {
        let traffic = PortTraffic::from(port);
        let PortStatus { port, ref interface, exists, up, carrier, mtu, ref cable, .. } = *port;
        Self { port, interface: interface.clone(), exists, up, carrier, mtu, cable: cable.clone(), traffic }
    }
}

/// The ports over which nothing passes, in few words: `eth1 is down, eth2 has no carrier`; `None` if there is
/// none.
pub fn dead_ports(ports: &[BoardPort]) -> Option<String> {
    let dead = ports.iter().filter(|port| !port.carrier).map(|port| {
        let why = match (port.exists, port.up) {
            (false, _) => "does not exist",
            (true, false) => "is down",
            (true, true) => "has no carrier",
        };
        format!("{} {why}", port.interface)
    });
    let dead: Vec<_> = dead.collect();
    (!dead.is_empty()).then(|| dead.join(", "))
}

/// Says in words that some ports that have carrier carry shorter frames than others; `None` if all carry the same.
pub fn unequal_mtus(ports: &[BoardPort]) -> Option<String> {
    let cabled = || ports.iter().filter(|port| port.carrier);
    let known = || cabled().filter_map(|port| Some((port.mtu?, port.interface.as_str())));
    let (most, _) = known().max()?;
    let small: Vec<_> =
        known().filter(|&(mtu, _)| mtu < most).map(|(mtu, name)| format!("{name} {mtu}")).collect();
    (!small.is_empty()).then(|| {
        format!(
            "ports carry frames of different length: {}, where another carries {most}: the tap interface keeps to the \
             shortest; set the MTU alike at both ends of all cables of the fabric",
            small.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_carry_less_than_another_are_named() {
        let of = |interface: &str, mtu, carrier| BoardPort {
            interface: interface.to_owned(),
            mtu,
            carrier,
            ..BoardPort::default()
        };
        let port = |interface: &str, mtu| of(interface, mtu, true);
        let equal = [port("eth1", Some(9000)), port("eth2", Some(9000)), port("eth3", None)];
        assert_eq!(unequal_mtus(&equal), None);
        assert_eq!(unequal_mtus(&[port("eth1", Some(9000)), of("eth2", Some(1500), false)]), None);
        let text = unequal_mtus(&[port("eth1", Some(9000)), port("eth2", Some(1500))]).unwrap();
        assert!(text.contains("eth2 1500, where another carries 9000"), "{text}");
    }

    #[test]
    fn a_port_that_nothing_passes_says_why_and_what_to_do() {
        let port = |exists, up, carrier| BoardPort {
            port: 2,
            interface: "eth2".to_owned(),
            exists,
            up,
            carrier,
            mtu: None,
            ..BoardPort::default()
        };
        assert_eq!(port(true, true, true).trouble(), None);
        let down = port(true, false, false);
        assert_eq!(down.trouble().unwrap(), "port 2 (eth2) is down; `ip link set eth2 up`");
        assert!(port(true, true, false).trouble().unwrap().starts_with("port 2 (eth2) has no carrier"));
        assert_eq!(port(false, false, false).trouble().unwrap(), "port 2 (eth2) does not exist");
        let ports = [down, port(true, true, true), port(true, true, false)];
        assert_eq!(dead_ports(&ports).unwrap(), "eth2 is down, eth2 has no carrier");
        assert_eq!(dead_ports(&ports[1..2]), None);
    }
}
