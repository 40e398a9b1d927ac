//! The order of hosts that ftree's tables are made for, as OpenSM dumps it (`opensm-ftree-ca-order.dump`).
//!
//! Leaf by leaf a line a compute node, `0x%04x<TAB>description`, and `0xFFFF<TAB>DUMMY` up to the number of
//! the largest leaf. A job whose ranks follow the order shifts without congestion on a full tree.

use std::io::{self, Write};

use mapper_proto::map::Fabric;
use mapper_routing::Subnet;
use mapper_routing::engines::ftree::HostOrder;

/// Writes an order of the hosts of a subnet, which must be of this fabric. A host is there by its first
/// LID.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, fabric: &Fabric, subnet: &Subnet, order: &HostOrder) -> io::Result<()> {
    for leaf in &order.leaves {
        for &host in &leaf.hosts {
            let label = &fabric.hosts[host as usize];
            let name = if label.description.is_empty() { &label.name } else { &label.description };
            let lid = subnet.destinations.lid(subnet.destinations.slots_of_host(host).start);
            writeln!(out, "0x{lid:04x}\t{}", name.replace(|c: char| c.is_control(), " "))?;
        }
        for _ in leaf.hosts.len()..order.padded {
            writeln!(out, "0xFFFF\tDUMMY")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;
    use mapper_routing::engines::Settings;

    #[test]
    fn leaves_are_padded_to_the_largest() {
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        fabric.map.hosts[3].at = None;
        let subnet = Subnet::new(&fabric, None).unwrap();
        let mut text = Vec::new();
        write(&mut text, &fabric, &subnet, &HostOrder::new(&subnet, &Settings::default())).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..4], ["0x0001\th1", "0x0002\th2", "0x0003\th3", "0xFFFF\tDUMMY"]);
        assert_eq!(lines.len(), 8);
    }
}
