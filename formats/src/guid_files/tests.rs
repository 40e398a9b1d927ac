//! Lists that are taken as they stand, and lines that are not.

use super::*;
use mapper_fabric::generate;
use std::io::Write as _;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Xbars have GUIDs 0x200000000000001 and so on, hosts' ports their own.
fn subnet() -> Subnet {
    Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap()
}

#[test]
fn a_hosts_guid_means_its_xbar_among_roots() {
    let subnet = subnet();
    let (spine, host) = (subnet.xbar_guids[4], subnet.host_port_guids[7]);
    let file = file(&format!("# roots\n{spine:#x}\n\n{host:#x} # by a host\n{spine:016x}\n"));
    let listed = roots(file.path(), &subnet).unwrap();
    assert_eq!(listed, Loaded { found: vec![4, 3], notes: Vec::new() });
}

#[test]
fn bad_lines_are_discarded_and_told() {
    let subnet = subnet();
    let guid = subnet.host_port_guids[2];
    let file = file(&format!("0xno\n{guid:#x}\n{:#x}\n0x77\nmore \u{1b}[31m\n", subnet.xbar_guids[0]));
    let listed = hosts(file.path(), &subnet).unwrap();
    assert_eq!(listed.found, BTreeSet::from([2]));
    assert_eq!(
        listed.notes,
        [
            "3 lines discarded, the first is line 1 (`0xno`): expected a GUID, as in 0x2c90200001234, or the name of a node here",
            "passed over: line 4 (`0x77`): no node here has this GUID",
        ]
    );
}

#[test]
fn ports_must_be_there_and_once() {
    let subnet = subnet();
    let [a, b] = [subnet.xbar_guids[0], subnet.xbar_guids[1]];
    let orders = file(&format!("{a:#x} 4 0x3\n{a:#x} 1\n{b:#x} 1 1\n{b:#x} 5\n{b:#x}\n"));
    let listed = port_order(orders.path(), &subnet).unwrap();
    assert_eq!(listed.found, BTreeMap::from([(0, vec![4, 3])]));
    assert!(listed.notes[0].starts_with("4 lines discarded, the first is line 2 "), "{:?}", listed.notes);
    let weights = file(&format!("{a:#x} 3 7\n{a:#x} 4 0\n{a:#x} 4 256\n{a:#x} 0 1\n"));
    let listed = hop_weights(weights.path(), &subnet).unwrap();
    assert_eq!(listed.found, BTreeMap::from([(PortRef { xbar: 0, port: 3 }, 7)]));
    let ignored = file(&format!("{a:#x} 3\n{:#x}\n{b:#x}\n", subnet.host_port_guids[2]));
    let listed = uncounted_ports(ignored.path(), &subnet).unwrap();
    assert_eq!(listed.found, BTreeSet::from([PortRef { xbar: 0, port: 3 }, PortRef { xbar: 1, port: 1 }]));
    assert!(
        listed.notes.iter().any(|note| note.starts_with("1 line of hosts: no effect, ")),
        "{:?}",
        listed.notes
    );
}

#[test]
fn orders_and_ids_keep_what_is_said() {
    let subnet = subnet();
    let (xbar, host) = (subnet.xbar_guids[5], subnet.host_port_guids[3]);
    let order = file(&format!("{host:#x}\n{xbar:#x}\n{host:#x}\n"));
    let listed = routing_order(order.path(), &subnet).unwrap();
    assert_eq!(listed.found, [SubnetNode::Host(3), SubnetNode::Xbar(5)]);
    assert_eq!(listed.notes.len(), 1);
    let file = file(&format!("{xbar:#x} 17\n{host:#x} 3\n"));
    let listed = ids(file.path(), &subnet).unwrap();
    assert_eq!((listed.found, listed.notes.len()), (BTreeMap::from([(5, 17)]), 1));
}

#[test]
fn names_stand_for_guids() {
    let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
    fabric.xbars[4].description = "rack 4 # top".to_owned();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let named = file("\"rack 4 # top\" # by description\nspine2\nh8 # by a host\nspine1\n");
    let listed = roots(named.path(), &subnet).unwrap();
    assert_eq!(listed, Loaded { found: vec![4, 5, 3], notes: Vec::new() });
    let named = file("leaf2 3 7\nleaf2:3 1\n");
    let listed = hop_weights(named.path(), &subnet).unwrap();
    assert_eq!((listed.found, listed.notes.len()), (BTreeMap::from([(PortRef { xbar: 1, port: 3 }, 7)]), 1));
}
