//! Paths between all hosts, as OpenSM dumps them and the ACM service reads them (`route_preload opensm_full_v1`): a block for
//! each host, and in it a line `LID : SL : MTU : rate` for each other host that the tables lead to.

use std::fmt::Write as _;
use std::io::{self, Write};

use mapper_acm::codes::rate_code;
use mapper_acm::fabric::guid_of;
use mapper_ib::lids::LAST_LID;
use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::tables::{Layers, SlotEnd};
use mapper_routing::{PairRoutes, Subnet, TableRoutes, Tables};
use rayon::prelude::*;

/// The code of the MTU of 2048 bytes, which OpenSM gives ports unless it is told otherwise; no file says more of it.
const MTU: u8 = 4;
/// How fast a path is taken to be of which no cable's speed is known, in Mb/s: as `ibacm` takes it.
const UNKNOWN_RATE_MBPS: u32 = 10_000;

/// Bytes of text that are made at once, unless one host a core needs more.
const BATCH_BYTES: usize = 64 << 20;
/// The most bytes of a line.
const LINE_BYTES: usize = "0xffff : 15 : 4 : 255\n".len();

/// Writes the paths of these tables. The GUID of a host that has none in the fabric's file is the one that its MAC makes, by
/// which the service knows the hosts of agents. A path is as fast as its slowest cable, of those whose speed is known. Paths from
/// and to LIDs that are none of one host are left out, as no reader takes them.
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
    let paths = Paths::new(fabric, subnet, tables, layers);
    let sources: Vec<&HostAddress> = paths.ends.iter().filter(|end| end.path == 0).collect();
    let bytes_a_source = LINE_BYTES * paths.ends.len();
    let at_once = (BATCH_BYTES / bytes_a_source.max(1)).max(rayon::current_num_threads());
    for batch in sources.chunks(at_once) {
        let texts: Vec<String> = batch.par_iter().map(|source| paths.of_source(source)).collect();
        texts.iter().try_for_each(|text| out.write_all(text.as_bytes()))?;
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
    /// How fast its cable is, in Mb/s, if that is known.
    speed_mbps: Option<u32>,
    lid: u32,
}

/// The paths of tables between the hosts of a fabric.
struct Paths<'a> {
    fabric: &'a Fabric,
    subnet: &'a Subnet,
    layers: &'a Layers,
    routes: TableRoutes<'a>,
    /// All addresses of hosts that have a cable, by rising LID.
    ends: Vec<HostAddress>,
    /// How fast the cable of each channel is, in Mb/s, if that is known.
    speeds: Vec<Option<u32>>,
}

impl<'a> Paths<'a> {
    fn new(fabric: &'a Fabric, subnet: &'a Subnet, tables: &'a Tables, layers: &'a Layers) -> Self {
        let topology = &subnet.topology;
        let by_lid = subnet.destinations.by_lid();
        let ends = by_lid.range(..=u32::from(LAST_LID)).map(|(&lid, &slot)| (lid, slot));
        let ends = ends.filter_map(|(lid, slot)| match subnet.destinations.end(slot) {
            SlotEnd::Host { host, path } => {
                let at = fabric.map.hosts[host as usize].at?;
                Some(HostAddress { host, path, at, speed_mbps: speed(fabric, at), lid })
            }
            SlotEnd::Xbar(_) => None,
        });
        let channels = 0..topology.channel_count() as u32;
        Self {
            fabric,
            subnet,
            layers,
            // A way passes no xbar twice.
            routes: TableRoutes::proved(subnet, tables, topology.xbar_count()),
            ends: ends.collect(),
            speeds: channels.map(|channel| speed(fabric, topology.tail(channel))).collect(),
        }
    }

    /// The block of a host.
    fn of_source(&self, source: &HostAddress) -> String {
        let host = source.host as usize;
        let label = &self.fabric.hosts[host];
        let made = || guid_of(self.fabric.map.hosts[host].mac);
        let guid = label.port_guid.or(label.guid).unwrap_or_else(made);
        let (lid, lmc) = (source.lid, self.subnet.destinations.lmc());
        let mut text = format!(
            "Channel Adapter 0x{guid:016x}, base LID {lid}, LMC {lmc}, port GUID 0x{guid:016x}\n# LID : SL : MTU : RATE\n"
        );
        text.reserve(LINE_BYTES * self.ends.len());
        let mut channels = Vec::new();
        for end in self.ends.iter().filter(|end| end.host != source.host) {
            channels.clear();
            if !self.routes.draw(source.host, end.host, end.path.into(), &mut channels) {
                continue;
            }
            let between = channels.iter().map(|&channel| self.speeds[channel as usize]);
            let slowest = between.chain([source.speed_mbps, end.speed_mbps]).flatten().min();
            let rate = rate_code(slowest.unwrap_or(UNKNOWN_RATE_MBPS));
            let level = self.layers.service_level(source.at.xbar, end.at.xbar);
            let _infallible = writeln!(text, "0x{:04x} : {level} : {MTU} : {rate}", end.lid);
        }
        text.push('\n');
        text
    }
}

/// How fast the cable in a port is, in Mb/s, if that is known.
fn speed(fabric: &Fabric, at: PortRef) -> Option<u32> {
    Some(fabric.link_speeds.get(&at)?.path_mbps())
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

    #[test]
    fn a_block_has_all_addresses_that_tables_lead_to() {
        let mut fabric = mapper_fabric::generate("ring:n=3,hosts=1").unwrap();
        let cable = fabric.map.cables[0];
        for end in [cable.a, cable.b] {
            fabric.link_speeds.insert(end, "1xSDR".parse().unwrap());
        }
        let subnet = Subnet::new(&fabric, Some(1)).unwrap();
        let routing = Engine::Minhop.compute(&subnet, &Settings::default()).unwrap();
        let mut tables = routing.tables;
        let lost = subnet.destinations.slots_of_host(2).start;
        tables.set_port(fabric.map.hosts[0].at.unwrap().xbar, lost, Tables::NONE);
        let mut out = Vec::new();
        write(&mut out, &fabric, &subnet, &tables, &routing.layers).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first = "Channel Adapter 0x000000fffe000001, base LID 2, LMC 1, port GUID 0x000000fffe000001\n\
                     # LID : SL : MTU : RATE\n0x0004 : 0 : 4 : 2\n0x0005 : 0 : 4 : 2\n0x0007 : 0 : 4 : 3\n\n";
        assert!(text.starts_with(first), "{text}");
        assert_eq!(text.matches("Channel Adapter").count(), 3);
    }

    /// What the service makes of the paths of this fabric.
    fn read_back(fabric: &Fabric, lmc: u8) -> PathTable {
        let subnet = Subnet::new(fabric, Some(lmc)).unwrap();
        let routing = Engine::Minhop.compute(&subnet, &Settings::default()).unwrap();
        let mut out = Vec::new();
        write(&mut out, fabric, &subnet, &routing.tables, &routing.layers).unwrap();
        PathTable::parse(&String::from_utf8(out).unwrap()).unwrap()
    }

    #[test]
    fn the_service_reads_what_is_written_whatever_lids_there_are() {
        let mut fabric = mapper_fabric::generate("clos:hosts=8,ports=4").unwrap();
        assert_eq!(read_back(&fabric, 2).len(), 8 * 7 * 4);
        // One host has the last LID of one host, and another the first that stands for a group.
        fabric.hosts[0].lid = Some(LAST_LID);
        fabric.hosts[1].lid = Some(LAST_LID + 1);
        let table = read_back(&fabric, 0);
        let gid = |host: usize| gid_of(fabric.map.hosts[host].mac);
        assert_eq!(table.len(), 7 * 6);
        assert!(table.path(gid(2), gid(0), 0xffff).is_some() && !table.has_gid(gid(1)));
    }
}
