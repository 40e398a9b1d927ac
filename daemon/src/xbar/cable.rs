//! What boards and crossbars show of the cable at a port, and what is wrong with it in words.

use mapper_proto::Mac;
use mapper_proto::neighbours::{KnownCable, Neighbour};
use mapper_proto::wire::HelloEnd;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::word::Word;

/// What a cable at a port joins, by what is heard there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum CableState {
    /// Nobody is heard.
    Silent,
    /// It leads to one neighbour, and both hear each other.
    Joined,
    /// It leads to one neighbour, which does not hear this end.
    OneWay,
    /// It leads to another port of the same crossbar.
    Looped,
    /// More than two interfaces share it.
    Shared,
}

/// What is known of the cable at a port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CableStatus {
    /// What it joins.
    pub state: Word<CableState>,
    /// The MTU of the interface at this end, in bytes; `None` without carrier.
    pub mtu: Option<u32>,
    /// Who is at the other end, if one neighbour is heard.
    pub neighbour: Option<NeighbourStatus>,
    /// If the cable is `looped`, the port of the same crossbar at its other end.
    pub looped_to: Option<u8>,
    /// If more than two interfaces share the cable, the others: their addresses, and what they are.
    pub shared_with: Vec<String>,
}

/// Who is at the other end of a cable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NeighbourStatus {
    /// The address of the interface there.
    pub mac: String,
    /// The address of the host whose own interface it is; `None` if it belongs to a crossbar.
    pub host: Option<String>,
    /// The tag of the crossbar that it belongs to, as 16 hexadecimal digits; `None` if it has none.
    pub tag: Option<String>,
    /// The port of the crossbar that it belongs to.
    pub port: Option<u8>,
    /// The name of that host, or of the host whose node the crossbar is, if the agent here knows it.
    pub name: Option<String>,
    /// The MTU there, in bytes.
    pub mtu: u32,
    /// What the kernel there does with packets: `srv6`, `srv6_compressed`, `routes`.
    pub flags: Vec<String>,
}

impl From<&Neighbour> for NeighbourStatus {
    fn from(neighbour: &Neighbour) -> Self {
        let Neighbour { end, mac, mtu, flags } = *neighbour;
        let (host, tag, port) = match end {
            HelloEnd::Host { mac } => (Some(mac.to_string()), None, None),
            HelloEnd::Xbar { tag, port } => (None, tag.map(|tag| format!("{tag:016x}")), Some(port)),
        };
        let flags = flags.names().map(str::to_owned).collect();
        Self { mac: mac.to_string(), host, tag, port, name: None, mtu, flags }
    }
}

impl NeighbourStatus {
    /// Takes in the name of the host that this is, or whose node it is. `naming` tells the host that a crossbar is called by.
    pub fn name_by(&mut self, naming: impl Fn(u64) -> Option<Mac>, name_of: impl Fn(Mac) -> Option<String>) {
        let of_tag = |tag: &String| naming(u64::from_str_radix(tag, 16).ok()?);
        let host = self.host.as_ref().and_then(|mac| mac.parse().ok());
        self.name = host.or_else(|| self.tag.as_ref().and_then(of_tag)).and_then(name_of);
    }

    /// Who it is, in words.
    pub fn describe(&self) -> String {
        let Self { mac, host, tag, port, name, .. } = self;
        // The name came from another machine, and may contain control sequences for a terminal.
        let name = name.as_ref().map(|name| name.escape_debug().to_string());
        let called = |id: &str| name.as_ref().map_or_else(|| id.to_owned(), |name| format!("{name} ({id})"));
        match (host, tag, port) {
            (Some(host), _, _) if host == mac => format!("host {}", called(host)),
            (Some(host), _, _) => format!("{mac} of host {}", called(host)),
            (None, Some(tag), Some(port)) => {
                format!("{mac}, port {port} of crossbar {}", called(&format!("0x{tag}")))
            }
            (None, None, Some(port)) => format!("{mac}, port {port} of a plain crossbar"),
            (None, _, None) => mac.clone(),
        }
    }
}

impl CableStatus {
    pub(super) fn new(cable: &KnownCable, mtu: Option<u32>) -> Self {
        let state = |state: CableState| Self { state: state.into(), mtu, ..Self::default() };
        match cable {
            KnownCable::Silent => state(CableState::Silent),
            KnownCable::Joined(neighbour) => {
                Self { neighbour: Some(neighbour.into()), ..state(CableState::Joined) }
            }
            KnownCable::OneWay(neighbour) => {
                Self { neighbour: Some(neighbour.into()), ..state(CableState::OneWay) }
            }
            KnownCable::Looped { port } => Self { looped_to: Some(*port), ..state(CableState::Looped) },
            KnownCable::Shared(parties) => Self {
                shared_with: parties.iter().map(ToString::to_string).collect(),
                ..state(CableState::Shared)
            },
        }
    }

    /// Whether the interfaces at its two ends carry frames of different length.
    pub fn mtus_differ(&self) -> bool {
        let theirs = self.neighbour.as_ref().map(|neighbour| neighbour.mtu);
        self.state == CableState::Joined && self.mtu.is_some() && self.mtu != theirs
    }

    /// The longest frame that the cable carries at both ends, in bytes, if the interface here has this MTU.
    pub fn carries(&self, mtu: u32) -> u32 {
        let theirs = self.neighbour.as_ref().filter(|_| self.state == CableState::Joined).map(|it| it.mtu);
        theirs.map_or(mtu, |theirs| theirs.min(mtu))
    }

    /// What is wrong with the cable of an interface, in words, and what to do; `None` if nothing is.
    pub fn trouble(&self, interface: &str) -> Option<String> {
        let Self { state, neighbour, looped_to, shared_with, mtu } = self;
        match (state.known(), neighbour, looped_to) {
            (Some(CableState::Joined), Some(neighbour), _) if self.mtus_differ() => {
                let (mtu, who, theirs) = (mtu.unwrap_or_default(), neighbour.describe(), neighbour.mtu);
                Some(format!(
                    "{interface} carries {mtu} bytes, and at the other end of its cable {who} carries {theirs}: \
                     longer frames than the lesser are lost; set the MTU alike at both ends"
                ))
            }
            (Some(CableState::OneWay), Some(neighbour), _) => {
                let who = neighbour.describe();
                Some(format!(
                    "{interface} hears {who}, which does not hear it: the cable, or what is in between, carries \
                     frames in one direction only"
                ))
            }
            (Some(CableState::Looped), _, Some(port)) => Some(format!(
                "{interface} is cabled to port {port} of the same crossbar, which leads nowhere: cable it to \
                 another machine"
            )),
            (Some(CableState::Shared), ..) => {
                let who = shared_with.join(", ");
                Some(format!(
                    "{interface} shares its cable with more than one interface: {who}. No frames are sent over it, \
                     as they would arrive several times; leave one interface at each end of the cable (one \
                     function of a network card with several), and no bridge or switch in between"
                ))
            }
            (
                None
                | Some(CableState::Silent | CableState::Joined | CableState::OneWay | CableState::Looped),
                ..,
            ) => None,
        }
    }

    /// What to do about the trouble with the cable of an interface, with the command if there is one.
    pub fn remedy(&self, interface: &str) -> String {
        match (self.state.known(), &self.neighbour, self.mtu) {
            (Some(CableState::Joined), Some(neighbour), Some(mtu)) if self.mtus_differ() => {
                let (who, theirs) = (neighbour.describe(), neighbour.mtu);
                let (here, there) = (
                    format!("`ip link set {interface} mtu {theirs}` here"),
                    format!(
                        "`ip link set PORT mtu {mtu}` on the machine of {who}, where PORT is the interface of that address"
                    ),
                );
                // The lesser value is one that both ends can.
                match theirs < mtu {
                    true => format!("{here}; or, if the other end can, {there}"),
                    false => format!("{there}; or, if this end can, {here}"),
                }
            }
            (Some(CableState::Shared), ..) => format!(
                "take out the bridge or switch in between; or leave all interfaces of this cable but one of each of two \
                 machines out of `--ports`: {interface} here, unless it is that one"
            ),
            (
                None
                | Some(CableState::Silent | CableState::Joined | CableState::OneWay | CableState::Looped),
                ..,
            ) => "see to the cable; then `mapper doctor` again".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use mapper_proto::neighbours::Party;
    use mapper_proto::wire::HelloFlags;

    use super::*;
    use crate::word::words;

    /// Programs rely on these.
    #[test]
    fn words_of_states_are_those_of_the_contract() {
        assert!(words::<CableState>().eq(["silent", "joined", "one-way", "looped", "shared"]));
    }

    fn neighbour() -> Neighbour {
        let end = HelloEnd::Xbar { tag: Some(0xfeed), port: 3 };
        Neighbour { end, mac: Mac::from_position(1), mtu: 1500, flags: HelloFlags::ROUTES }
    }

    #[test]
    fn what_is_wrong_with_a_cable_is_said_in_words() {
        let trouble = |cable: KnownCable, mtu| CableStatus::new(&cable, Some(mtu)).trouble("eth1");
        assert_eq!(trouble(KnownCable::Silent, 1500), None);
        assert_eq!(trouble(KnownCable::Joined(neighbour()), 1500), None);
        let text = trouble(KnownCable::Joined(neighbour()), 9000).unwrap();
        let named = "eth1 carries 9000 bytes, and at the other end of its cable 02:00:00:00:00:01, port 3 of \
                     crossbar 0x000000000000feed carries 1500:";
        assert!(text.starts_with(named), "{text}");
        let text = trouble(KnownCable::OneWay(neighbour()), 1500).unwrap();
        assert!(text.contains("which does not hear it"), "{text}");
        let text = trouble(KnownCable::Looped { port: 2 }, 1500).unwrap();
        assert!(text.starts_with("eth1 is cabled to port 2 of the same crossbar"), "{text}");
        let host = Mac::from_position(7);
        let parties = vec![
            Party { mac: host, end: Some(HelloEnd::Host { mac: host }) },
            Party { mac: Mac::from_position(8), end: None },
        ];
        let text = trouble(KnownCable::Shared(parties), 1500).unwrap();
        assert!(text.contains("interface: host 02:00:00:00:00:07, 02:00:00:00:00:08. No"), "{text}");
    }

    #[test]
    fn a_neighbour_is_shown_as_what_it_is() {
        let status = NeighbourStatus::from(&neighbour());
        assert_eq!((status.tag.as_deref(), status.port), (Some("000000000000feed"), Some(3)));
        assert_eq!(status.flags, ["routes"]);
        let end = HelloEnd::Host { mac: Mac::from_position(1) };
        let host = NeighbourStatus::from(&Neighbour { end, ..neighbour() });
        assert_eq!(host.describe(), "host 02:00:00:00:00:01");
    }

    #[test]
    fn a_neighbour_is_called_by_the_name_of_its_host() {
        let (own, other) = (Mac::from_position(1), Mac::from_position(7));
        let describe = |end| {
            let mut status = NeighbourStatus::from(&Neighbour { end, ..neighbour() });
            let name_of =
                |mac: Mac| (mac == own || mac == other).then(|| format!("n{}", mac.to_u64() & 0xff));
            status.name_by(|tag| (tag == 0xfeed).then_some(other), name_of);
            status.describe()
        };
        assert_eq!(describe(HelloEnd::Host { mac: own }), "host n1 (02:00:00:00:00:01)");
        let of_other = "02:00:00:00:00:01 of host n7 (02:00:00:00:00:07)";
        assert_eq!(describe(HelloEnd::Host { mac: other }), of_other);
        let tagged = |tag| describe(HelloEnd::Xbar { tag: Some(tag), port: 3 });
        let of_node = "02:00:00:00:00:01, port 3 of crossbar n7 (0x000000000000feed)";
        assert_eq!(tagged(0xfeed), of_node);
        assert_eq!(tagged(0xbeef), "02:00:00:00:00:01, port 3 of crossbar 0x000000000000beef");
    }
}
