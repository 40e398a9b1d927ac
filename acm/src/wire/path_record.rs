//! Path records: what is to be known of a path before packets can be sent along it.

use std::net::Ipv6Addr;

use super::bytes_at;

/// A value of a path and how it is meant: the field that says "exactly", "at least" and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Selected {
    /// How it is meant: 2 for exactly. Two bits.
    pub selector: u8,
    /// The value. Six bits.
    pub value: u8,
}

impl Selected {
    /// This value and no other.
    pub const fn exactly(value: u8) -> Self {
        Self { selector: 2, value }
    }

    const fn parse(byte: u8) -> Self {
        Self { selector: byte >> 6, value: byte & 0x3f }
    }

    const fn byte(self) -> u8 {
        self.selector << 6 | self.value & 0x3f
    }
}

/// A path record of InfiniBand's, in the layout of `struct ibv_path_record`: 64 bytes in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRecord {
    /// The service that the path is for; 0 for any.
    pub service_id: u64,
    /// The GID of the destination.
    pub dgid: Ipv6Addr,
    /// The GID of the source.
    pub sgid: Ipv6Addr,
    /// The LID of the destination.
    pub dlid: u16,
    /// The LID of the source.
    pub slid: u16,
    /// The flow label. 24 bits.
    pub flow_label: u32,
    /// How many hops there are.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// Whether packets may come back along the reverse of the path.
    pub reversible: bool,
    /// How many paths there are. Seven bits.
    pub paths: u8,
    /// The partition.
    pub pkey: u16,
    /// The class of quality of service. Twelve bits.
    pub qos_class: u16,
    /// The service level. Four bits.
    pub sl: u8,
    /// The code of the MTU: see [`codes`](crate::codes).
    pub mtu: Selected,
    /// The code of the rate: see [`codes`](crate::codes).
    pub rate: Selected,
    /// How long a packet may live: 4.096 us times 2 to this.
    pub life_time: Selected,
    /// Which of several paths is to be preferred; 0 is the first.
    pub preference: u8,
}

impl Default for PathRecord {
    fn default() -> Self {
        Self::parse(&[0; Self::BYTES])
    }
}

impl PathRecord {
    /// How long it is.
    pub const BYTES: usize = 64;

    /// Reads a record. Any bytes are one; those that are reserved are not looked at.
    pub fn parse(bytes: &[u8; Self::BYTES]) -> Self {
        let flow_and_hops = u32::from_be_bytes(bytes_at(bytes, 44));
        let qos_and_sl = u16::from_be_bytes(bytes_at(bytes, 52));
        Self {
            service_id: u64::from_be_bytes(bytes_at(bytes, 0)),
            dgid: Ipv6Addr::from(bytes_at::<16>(bytes, 8)),
            sgid: Ipv6Addr::from(bytes_at::<16>(bytes, 24)),
            dlid: u16::from_be_bytes(bytes_at(bytes, 40)),
            slid: u16::from_be_bytes(bytes_at(bytes, 42)),
            flow_label: flow_and_hops >> 8,
            hop_limit: (flow_and_hops & 0xff) as u8,
            traffic_class: bytes[48],
            reversible: bytes[49] & 0x80 != 0,
            paths: bytes[49] & 0x7f,
            pkey: u16::from_be_bytes(bytes_at(bytes, 50)),
            qos_class: qos_and_sl >> 4,
            sl: (qos_and_sl & 0xf) as u8,
            mtu: Selected::parse(bytes[54]),
            rate: Selected::parse(bytes[55]),
            life_time: Selected::parse(bytes[56]),
            preference: bytes[57],
        }
    }

    /// The record as it travels. Values with more bits than their fields are cut off.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let mut put = |at: usize, value: &[u8]| {
            bytes.iter_mut().skip(at).zip(value).for_each(|(to, from)| *to = *from);
        };
        put(0, &self.service_id.to_be_bytes());
        put(8, &self.dgid.octets());
        put(24, &self.sgid.octets());
        put(40, &self.dlid.to_be_bytes());
        put(42, &self.slid.to_be_bytes());
        put(44, &(self.flow_label << 8 | u32::from(self.hop_limit)).to_be_bytes());
        put(48, &[self.traffic_class, u8::from(self.reversible) << 7 | self.paths & 0x7f]);
        put(50, &self.pkey.to_be_bytes());
        put(52, &(self.qos_class << 4 | u16::from(self.sl & 0xf)).to_be_bytes());
        put(54, &[self.mtu.byte(), self.rate.byte(), self.life_time.byte(), self.preference]);
        bytes
    }
}
