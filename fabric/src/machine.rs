//! What machine an interface is in, and what a switch is called, told from descriptions.
//!
//! A plan calls a server `node001` and a switch `leaf3`, and what is found is described as `node001 mlx5_1`,
//! `Node001.cluster HCA-2` or `MF0;leaf3:MQM8700/U1`.

use std::collections::BTreeMap;

use mapper_proto::map::{Fabric, HostLabel, XbarLabel};

/// What names of adapters begin with, as drivers and firmware give them.
const ADAPTERS: [&str; 9] = ["hca", "mlx", "hfi", "qib", "bnxt", "cxi", "irdma", "ib", "ca"];

/// Where an interface is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MachineInterface {
    /// The machine's name in small letters, without a domain.
    pub machine: String,
    /// The adapter in it; empty if nothing is said of it.
    pub adapter: Natural,
    /// The adapter's port.
    pub port: u8,
}

/// A text by which adapters are ordered as people do, `mlx5_2` before `mlx5_10`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Natural(Vec<(String, u64)>);

impl Natural {
    /// The parts of a text.
    pub fn of(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let word = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let (front, behind) = rest.split_at(word);
            let digits = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
            let (number, behind) = behind.split_at(digits);
            parts.push((front.to_ascii_lowercase(), number.parse().unwrap_or_default()));
            rest = behind;
        }
        Self(parts)
    }
}

/// Where a host is.
pub fn interface(label: &HostLabel) -> MachineInterface {
    // A machine's further interfaces are hosts of their own, which readers mark with the port.
    let mark = format!("-p{}", label.node_port);
    let id = label.name.strip_suffix(&mark).filter(|_| label.node_port > 1).unwrap_or(&label.name);
    let description = label.description.trim();
    let text = if description.is_empty() || names_no_machine(description) { id } else { description };
    let (machine, adapter) = match text.rsplit_once([' ', '/']) {
        Some((machine, adapter)) if is_adapter(adapter) => (machine.trim(), adapter),
        _ => (text, ""),
    };
    MachineInterface { machine: short(machine), adapter: Natural::of(adapter), port: label.node_port }
}

/// Whether this is an adapter in a switch that computes for the network, and no interface of a machine.
pub fn is_service_adapter(label: &HostLabel) -> bool {
    label.description.trim().to_ascii_lowercase().ends_with("aggregation node")
}

/// Whether a description is what firmware says as long as no driver has told it the machine's name: the same for all adapters of
/// a kind.
fn names_no_machine(description: &str) -> bool {
    description.ends_with("Mellanox Technologies")
}

fn is_adapter(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ADAPTERS.iter().any(|name| word.starts_with(name)) && word.ends_with(|c: char| c.is_ascii_digit())
}

/// A name in small letters and without a domain.
fn short(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let is_address = name.split('.').all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    match name.split_once('.') {
        Some((host, _)) if !is_address && !host.is_empty() && !name.contains([' ', '/']) => host.to_owned(),
        _ => name,
    }
}

/// What an xbar is called in small letters: without what management firmware puts around its name.
pub fn xbar(label: &XbarLabel) -> String {
    let description = label.description.trim();
    let text = if description.is_empty() { &label.name } else { description };
    let text = match text.split_once(';') {
        Some((firmware, rest)) if firmware.starts_with("MF") => rest.split(':').next().unwrap_or(rest),
        _ => text,
    };
    short(text)
}

/// For each host the place of its interface among those of its machine, from 0, and how many these are.
pub fn rails(fabric: &Fabric) -> Vec<(MachineInterface, usize, usize)> {
    let interfaces: Vec<MachineInterface> = fabric.hosts.iter().map(interface).collect();
    let mut machines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (host, interface) in interfaces.iter().enumerate() {
        machines.entry(&interface.machine).or_default().push(host);
    }
    let mut rails = vec![(0, 1); interfaces.len()];
    for hosts in machines.values_mut() {
        hosts.sort_by_key(|&host| (&interfaces[host].adapter, interfaces[host].port, host));
        for (place, &host) in hosts.iter().enumerate() {
            rails[host] = (place, hosts.len());
        }
    }
    interfaces.into_iter().zip(rails).map(|(interface, (place, count))| (interface, place, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, description: &str, node_port: u8) -> HostLabel {
        let (name, description) = (name.to_owned(), description.to_owned());
        HostLabel { name, description, node_port, ..HostLabel::default() }
    }

    #[test]
    fn interfaces_are_told_by_machine_adapter_and_port() {
        let of = |name, description, port| {
            let interface = interface(&host(name, description, port));
            (interface.machine, interface.port)
        };
        assert_eq!(of("H-1", "Node001.cluster HCA-2", 1), ("node001".to_owned(), 1));
        assert_eq!(of("H-1", "node001 mlx5_10", 1), ("node001".to_owned(), 1));
        assert_eq!(of("h1-p2", "", 2), ("h1".to_owned(), 2));
        assert_eq!(of("h1-p2", "", 1), ("h1-p2".to_owned(), 1), "it is no mark of the port");
        assert_eq!(of("10.1.0.1", "", 1), ("10.1.0.1".to_owned(), 1), "an address is no name with a domain");
        let unnamed = "MT4123 ConnectX6   Mellanox Technologies";
        assert_eq!(of("H-1", unnamed, 1), ("h-1".to_owned(), 1), "this names no machine");
        assert!(is_service_adapter(&host("H-1", "Mellanox Technologies Aggregation Node", 1)));
        assert!(!is_service_adapter(&host("H-1", "node1 HCA-1", 1)));
        assert!(Natural::of("mlx5_2") < Natural::of("mlx5_10"));
    }

    #[test]
    fn rails_are_counted_in_the_order_of_adapters() {
        let fabric = Fabric {
            hosts: vec![
                host("a", "n1 mlx5_10", 1),
                host("b", "n1 mlx5_2", 1),
                host("c", "n2 mlx5_0", 1),
                host("d", "n1 mlx5_2", 2),
            ],
            ..Fabric::default()
        };
        let places: Vec<_> = rails(&fabric).into_iter().map(|(_, place, of)| (place, of)).collect();
        assert_eq!(places, [(2, 3), (0, 3), (0, 1), (1, 3)]);
    }

    #[test]
    fn switches_are_called_as_people_named_them() {
        let called = |description: &str| {
            xbar(&XbarLabel { description: description.to_owned(), ..XbarLabel::default() })
        };
        assert_eq!(called("MF0;Leaf3.dc1:MQM8700/U1"), "leaf3");
        assert_eq!(called("Quantum Mellanox Technologies"), "quantum mellanox technologies");
    }
}
