//! Management datagrams of subnets, by directed routes or by LID, and what they carry.
//!
//! Numbers are big-endian. Every decoder takes any bytes: it gives a value or an error.

mod agent;
mod multicast_table;
mod node_description;
mod node_info;
mod notice;
mod port_info;
mod port_settings;
mod route;
pub mod sa;
mod sm_info;
mod smp;
mod switch_info;
mod wrong_key;

#[cfg(test)]
mod tests;

pub use agent::{
    AGENT_CLASS, AGENT_OUI, AgentMad, AgentMadError, AgentWord, MAX_SHARE, SEND, ShareSwitch, SubnetVersion,
};
pub use multicast_table::MulticastTable;
pub use node_description::NodeDescription;
pub use node_info::{Make, NodeInfo, NodeInfoError, NodeKind};
pub use notice::Notice;
pub use port_info::PortInfo;
pub use port_settings::{PortSettings, PortState};
pub use route::{MAX_HOPS, Route};
pub use sm_info::{Command, MANAGERS_KEY, SmInfo, SmState};
pub use smp::{
    Attribute, DATA_BYTES, MAD_BYTES, ManagerMethod, Method, Methods, RoutedByLid, Smp, SmpError, answer,
};
pub use switch_info::SwitchInfo;
pub use wrong_key::{KeyKind, WrongKey};

/// The data of an SMP.
pub type Data = [u8; DATA_BYTES];

/// A number of `N` bytes at a place in an array that is long enough, as the callers' constants show.
fn bytes<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&data[at..at + N]);
    out
}

fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes(data, at))
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes(data, at))
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes(data, at))
}

fn put(data: &mut [u8], at: usize, value: &[u8]) {
    data[at..at + value.len()].copy_from_slice(value);
}
