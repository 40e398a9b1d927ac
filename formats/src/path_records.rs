//! Paths between all hosts, as OpenSM dumps them and the ACM service reads them (`route_preload opensm_full_v1`): a block for
//! each host, and in it a line `LID : SL : MTU : rate` for each other host that the tables lead to.

use std::io::{self, Write};

use mapper_acm::codes::rate_code;
use mapper_acm::fabric::guid_of;
use mapper_proto::map::{Attached, Fabric, PortRef, PortsInUse};
use mapper_routing::tables::{Layers, SlotEnd};
use mapper_routing::{Subnet, Tables};

/// The code of the MTU of 2048 bytes, which OpenSM gives ports unless it is told otherwise; no file says more of it.
const MTU: u8 = 4;
/// How fast a path is taken to be of which no cable's speed is known, in Mb/s: as `ibacm` takes it.
const UNKNOWN_RATE_MBPS: u32 = 10_000;

/// Writes the paths of these tables. The GUID of a host that has none in the fabric's file is the one that its MAC makes, by
/// which the service knows the hosts of agents. A path is as fast as its slowest cable, of those whose speed is known.
///
/// # Errors
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    fabric: &Fabric,
    subnet: &Subnet,
    tables: &Tables,
    layers: &Layers,
) -> io::Result<()> {
    let ports = PortsInUse::new(&fabric.map);
    let walker = Walker { fabric, tables, ports: &ports };
    let ends: Vec<HostAddress> = (subnet.destinations.by_lid().into_iter())
        .filter_map(|(lid, slot)| match subnet.destinations.end(slot) {
            SlotEnd::Host { host, path } => {
                let at = fabric.map.hosts[host as usize].at?;
                Some(HostAddress { host, path, at, lid, slot })
            }
            SlotEnd::Xbar(_) => None,
        })
        .collect();
    for source in ends.iter().filter(|end| end.path == 0) {
        let label = &fabric.hosts[source.host as usize];
        let made = || guid_of(fabric.map.hosts[source.host as usize].mac);
        let guid = label.port_guid.or(label.guid).unwrap_or_else(made);
        writeln!(
            out,
            "Channel Adapter 0x{guid:016x}, base LID {}, LMC {}, port GUID 0x{guid:016x}",
            source.lid,
            subnet.destinations.lmc()
        )?;
        writeln!(out, "# LID : SL : MTU : RATE")?;
        for end in ends.iter().filter(|end| end.host != source.host) {
            let Some(rate_mbps) = walker.rate(source.at, end) else { continue };
            let level = layers.service_level(source.at.xbar, end.at.xbar);
            let rate = rate_code(rate_mbps.unwrap_or(UNKNOWN_RATE_MBPS));
            writeln!(out, "0x{:04x} : {level} : {MTU} : {rate}", end.lid)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// An address of a host.
struct HostAddress {
    host: u32,
    /// Which of the host's addresses it is.
    path: u8,
    /// The port that the host is cabled to.
    at: PortRef,
    lid: u32,
    slot: u32,
}

/// Follows routes through tables.
struct Walker<'a> {
    fabric: &'a Fabric,
    tables: &'a Tables,
    ports: &'a PortsInUse,
}

impl Walker<'_> {
    /// How fast the slowest cable is on the way from a port to an address, if the speed of one is known; `None` if the
    /// tables do not lead there.
    #[expect(clippy::option_option, reason = "the outer one says whether there is a way")]
    fn rate(&self, from: PortRef, to: &HostAddress) -> Option<Option<u32>> {
        let mut at = from;
        let mut least = self.speed(from);
        // A way passes no xbar twice.
        for _ in 0..=self.fabric.map.xbars.len() {
            let out = PortRef { xbar: at.xbar, port: self.tables.port(at.xbar, to.slot) };
            let slower = [least, self.speed(out)];
            least = slower.into_iter().flatten().min();
            match self.ports.at(out)? {
                Attached::Host(host) => return (host == to.host).then_some(least),
                Attached::Xbar(far) => at = far,
            }
        }
        None
    }

    /// How fast the cable in a port is, in Mb/s, if that is known.
    fn speed(&self, at: PortRef) -> Option<u32> {
        Some(self.fabric.link_speeds.get(&at)?.path_mbps())
    }
}

#[cfg(test)]
mod tests {
    use mapper_acm::fabric::gid_of;
    use mapper_acm::files::PathTable;
    use mapper_routing::engines::{Engine, Settings};

    use super::*;

    #[test]
    fn the_acm_service_reads_the_paths_of_tables() {
        let mut fabric = mapper_fabric::generate("clos:hosts=8,ports=4").unwrap();
        let slow = fabric.map.hosts[1].at.unwrap();
        fabric.link_speeds =
            fabric.map.hosts.iter().filter_map(|host| Some((host.at?, "4xEDR".parse().unwrap()))).collect();
        fabric.link_speeds.insert(slow, "4xQDR".parse().unwrap());
        let subnet = Subnet::new(&fabric, None).unwrap();
        let routing = Engine::Minhop.compute(&subnet, &Settings::default()).unwrap();
        let mut out = Vec::new();
        write(&mut out, &fabric, &subnet, &routing.tables, &routing.layers).unwrap();
        let table = PathTable::parse(&String::from_utf8(out).unwrap()).unwrap();
        assert_eq!(table.len(), 8 * 7);
        let gid = |host: usize| gid_of(fabric.map.hosts[host].mac);
        let rate = |from, to| table.path(gid(from), gid(to), 0xffff).unwrap().rate.value;
        assert_eq!(
            (rate(0, 2), rate(0, 1), rate(1, 2)),
            (rate_code(100_000), rate_code(40_000), rate_code(40_000))
        );
        assert!(table.path(gid(0), gid(2), 0xffff).unwrap().reversible);
    }
}
