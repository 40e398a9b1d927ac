//! Records of what the subnet has: nodes, ports, switches, managers, cables. They are only sent in answers,
//! and never read from requests.

use super::Field;
use crate::mad::{Data, NodeDescription, NodeInfo, PortSettings, SmInfo, SwitchInfo, put};

/// The parts of a NodeRecord.
pub const NODE_FIELDS: &[Field] = &[
    Field::bytes(0, 0, 2),
    Field::bytes(2, 4, 1),
    Field::bytes(3, 5, 1),
    Field::bytes(4, 6, 1),
    Field::bytes(5, 7, 1),
    Field::bytes(6, 8, 8),
    Field::bytes(7, 16, 8),
    Field::bytes(8, 24, 8),
    Field::bytes(9, 32, 2),
    Field::bytes(10, 34, 2),
    Field::bytes(11, 36, 4),
    Field::bytes(12, 40, 1),
    Field::bytes(13, 41, 3),
    Field::bytes(14, 44, 64),
];

/// The parts of a PortInfoRecord that a request can name, but for the capabilities.
pub const PORT_FIELDS: &[Field] = &[
    Field::bytes(0, 0, 2),
    Field::bytes(1, 2, 1),
    Field::bytes(4, 12, 8),
    Field::bytes(5, 20, 2),
    Field::bytes(6, 22, 2),
    Field::bytes(7, 24, 4),
    Field::bytes(8, 28, 2),
    Field::bytes(9, 30, 2),
    Field::bytes(10, 32, 1),
    Field::bytes(11, 33, 1),
    Field::bytes(12, 34, 1),
    Field::bytes(13, 35, 1),
    Field::bits(14, 36, 0, 4),
    Field::bits(15, 36, 4, 4),
    Field::bits(16, 37, 0, 4),
    Field::bits(17, 37, 4, 4),
    Field::bits(18, 38, 0, 2),
    Field::bits(19, 38, 5, 3),
    Field::bits(20, 39, 0, 4),
    Field::bits(21, 39, 4, 4),
    Field::bits(22, 40, 0, 4),
    Field::bits(23, 40, 4, 4),
    Field::bits(24, 41, 0, 4),
    Field::bits(30, 45, 4, 4),
    Field::bits(33, 47, 0, 4),
];

/// The parts of a SwitchInfoRecord.
pub const SWITCH_FIELDS: &[Field] = &[
    Field::bytes(0, 0, 2),
    Field::bytes(2, 4, 2),
    Field::bytes(3, 6, 2),
    Field::bytes(4, 8, 2),
    Field::bytes(5, 10, 2),
];

/// The parts of an SMInfoRecord.
pub const MANAGER_FIELDS: &[Field] =
    &[Field::bytes(0, 0, 2), Field::bytes(2, 4, 8), Field::bits(5, 24, 0, 4), Field::bits(6, 24, 4, 4)];

/// The parts of a LinkRecord.
pub const LINK_FIELDS: &[Field] =
    &[Field::bytes(0, 0, 2), Field::bytes(1, 2, 1), Field::bytes(2, 3, 1), Field::bytes(3, 4, 2)];

/// Groups can be joined.
const JOINS: u16 = 1 << 9;
/// Records of ports can be asked for by single capabilities.
const CAPABILITY_MATCHES: u16 = 1 << 13;
/// A group may live as long as a port is there that only sends to it.
const SENDS_ONLY_FULL: u32 = 1 << 13;
/// Records of switches say how far multicast tables reach, as switches tell it.
const MULTICAST_TOP: u32 = 1 << 3;

/// The attribute ClassPortInfo: what the administration can do, and how long it takes to answer, as a code.
pub fn class_port_info(response_time: u8) -> [u8; 72] {
    let mut data = [0; 72];
    put(&mut data, 0, &[1, 2]);
    put(&mut data, 2, &(JOINS | CAPABILITY_MATCHES).to_be_bytes());
    put(
        &mut data,
        4,
        &((SENDS_ONLY_FULL | MULTICAST_TOP) << 5 | u32::from(response_time & 0x1F)).to_be_bytes(),
    );
    data
}

/// The record of a node at one of its ports.
pub fn node_record(lid: u16, info: &NodeInfo, description: &str) -> [u8; 108] {
    let mut data = [0; 108];
    put(&mut data, 0, &lid.to_be_bytes());
    put(&mut data, 4, &info.emit()[..40]);
    put(&mut data, 44, &NodeDescription(description.to_owned()).emit());
    data
}

/// The record of a port, without the key of management, which is a secret.
pub fn port_record(lid: u16, port: u8, settings: &PortSettings) -> [u8; 68] {
    let mut data = [0; 68];
    put(&mut data, 0, &lid.to_be_bytes());
    data[2] = port;
    let info: Data = settings.with_key(0).emit();
    put(&mut data, 4, &info);
    // Removing the key also removes how it protects the port, which is told, so it is put back.
    data[4 + 34] = settings.emit()[34];
    data
}

/// The record of a switch.
pub fn switch_record(lid: u16, info: &SwitchInfo) -> [u8; 24] {
    let mut data = [0; 24];
    put(&mut data, 0, &lid.to_be_bytes());
    put(&mut data, 4, &info.emit()[..20]);
    data
}

/// The record of a manager, without its key.
pub fn manager_record(lid: u16, info: &SmInfo) -> [u8; 25] {
    let mut data = [0; 25];
    put(&mut data, 0, &lid.to_be_bytes());
    put(&mut data, 4, &SmInfo { key: 0, ..*info }.emit()[..21]);
    data
}

/// The record of a cable, from one of its ends.
pub fn link_record(from: u16, port: u8, to_port: u8, to: u16) -> [u8; 6] {
    let mut data = [0; 6];
    put(&mut data, 0, &from.to_be_bytes());
    put(&mut data, 2, &[port, to_port]);
    put(&mut data, 4, &to.to_be_bytes());
    data
}
