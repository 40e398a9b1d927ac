//! What goes over cables: agents and crossbars of this machine count it at the ends that they have.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::Board;
use mapper_daemon::xbar::{PortTraffic, XbarStatus, socket};
use mapper_proto::Mac;
use mapper_proto::map::{Map, PortRef};
use serde::{Serialize, Serializer};

use super::agents::Known;
use super::in_force::{InForce, cables};

/// How long crossbars may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// The shortest time over which a rate is told, in seconds.
const SHORTEST_S: f64 = 0.2;

/// What goes over cables, and what agents and crossbars said when they were asked last.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    last: BTreeMap<Counter, (Instant, PortTraffic)>,
    /// The routes in force of this machine's hosts.
    pub(crate) in_force: InForce,
    /// What goes over cables now.
    pub(crate) flows: Flows,
}

/// Who counts: an agent alone, a port of a node, or one of a crossbar.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    Agent(u8),
    Node(u8, u8),
    Xbar(String, u8),
}

/// Where in the fabric somebody counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Host(u32),
    Port(PortRef),
}

/// What goes over the cables that somebody counts at.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Flows {
    /// By cable between xbars: from its first end to its second, and back.
    pub(crate) cables: BTreeMap<u32, Flow>,
    /// By host: what it receives, and what it sends.
    pub(crate) hosts: BTreeMap<u32, Flow>,
}

/// What goes over a cable.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Flow {
    /// Bits a second, each way.
    pub(crate) bits: [f64; 2],
    /// Frames lost at its ends since their daemons began.
    pub(crate) lost: u64,
    /// How fast it is, in Mb/s; 0 if nobody knows.
    pub(crate) mbps: u32,
}

/// As the page takes it: a list for each cable or host, and the routes in force.
impl Serialize for Traffic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = |flows: &BTreeMap<u32, Flow>| -> Vec<(u32, u64, u64, u64, u32)> {
            let flows = flows.iter();
            flows.map(|(&at, it)| (at, it.bits[0] as u64, it.bits[1] as u64, it.lost, it.mbps)).collect()
        };
        let loads: Vec<(u32, u32, u32)> =
            self.in_force.loads.iter().map(|(&cable, &[there, back])| (cable, there, back)).collect();
        let told = serde_json::json!({
            "cables": list(&self.flows.cables),
            "hosts": list(&self.flows.hosts),
            "force": { "hosts": self.in_force.hosts, "loads": loads },
        });
        told.serialize(serializer)
    }
}

impl Traffic {
    /// Asks crossbars what they have counted, and agents for routes that may be others. What boards have counted is in them. `None`
    /// if there is nothing new.
    pub(crate) fn renew(&mut self, run_dir: &Path, known: &Known, boards: &[Board]) -> Option<&Self> {
        let now = Instant::now();
        // Without crossbars, or the right to ask them, agents alone tell.
        let xbars = socket::ask_all(run_dir, now + PATIENCE).map(|answers| answers.xbars).unwrap_or_default();
        let is_another = self.in_force.renew(run_dir, known, boards);
        let flows = self.count(now, known, boards, &xbars);
        let is_new = is_another || flows != self.flows;
        self.flows = flows;
        is_new.then_some(self)
    }

    fn count(&mut self, now: Instant, known: &Known, boards: &[Board], xbars: &[XbarStatus]) -> Flows {
        let map = &known.fabric.map;
        let (ends, hosts) = (cables(map), hosts(map));
        let mut flows = Flows::default();
        let mut counted = BTreeMap::new();
        for (counter, end, traffic) in counters(known, boards, xbars) {
            let before = self.last.get(&counter).copied();
            counted.insert(counter, (now, traffic));
            let Some(bits) = before.and_then(|before| rates(before, (now, traffic))) else { continue };
            flows.add(end, bits, traffic, &ends, &hosts);
        }
        self.last = counted;
        flows
    }
}

impl Flows {
    /// Adds what is counted at an end. Where both ends of a cable count, the larger number holds, as some of what was sent has not
    /// arrived yet.
    fn add(
        &mut self,
        end: End,
        [received, sent]: [f64; 2],
        traffic: PortTraffic,
        ends: &BTreeMap<PortRef, (u32, usize)>,
        hosts: &BTreeMap<PortRef, u32>,
    ) {
        let (flow, bits) = match end {
            End::Host(host) => (self.hosts.entry(host).or_default(), [received, sent]),
            End::Port(at) => match (ends.get(&at), hosts.get(&at)) {
                (Some(&(cable, 0)), _) => (self.cables.entry(cable).or_default(), [sent, received]),
                (Some(&(cable, _)), _) => (self.cables.entry(cable).or_default(), [received, sent]),
                // What the xbar's port sends is what the host receives.
                (None, Some(&host)) => (self.hosts.entry(host).or_default(), [sent, received]),
                (None, None) => return,
            },
        };
        flow.bits = [flow.bits[0].max(bits[0]), flow.bits[1].max(bits[1])];
        flow.lost += traffic.lost;
        flow.mbps = match (flow.mbps, traffic.rate_mbps.unwrap_or_default()) {
            (0, mbps) | (mbps, 0) => mbps,
            (one, other) => one.min(other),
        };
    }
}

/// Everybody who counts, where that is in the fabric, and what was counted.
fn counters(known: &Known, boards: &[Board], xbars: &[XbarStatus]) -> Vec<(Counter, End, PortTraffic)> {
    let map = &known.fabric.map;
    let mut all = Vec::new();
    for board in boards {
        let Some(mac) = board.mac.as_ref().and_then(|mac| mac.parse::<Mac>().ok()) else { continue };
        let Some(&host) = known.hosts_known_to(board).get(&mac) else { continue };
        let of_host = End::Host(host as u32);
        all.extend(board.traffic.map(|traffic| (Counter::Agent(board.unit), of_host, traffic)));
        if let Some(at) = map.hosts[host].at {
            let end = |port: u8| End::Port(PortRef { xbar: at.xbar, port });
            let ports = board.ports.iter();
            all.extend(
                ports.map(|port| (Counter::Node(board.unit, port.port), end(port.port), port.traffic)),
            );
        }
    }
    for status in xbars {
        let Some(xbar) = status.tag.as_ref().and_then(|tag| known.xbar_of_tag(tag)) else { continue };
        for port in &status.ports {
            let end = End::Port(PortRef { xbar, port: port.port });
            all.push((Counter::Xbar(status.name.clone(), port.port), end, PortTraffic::from(port)));
        }
    }
    all
}

/// The host at each port of an xbar.
fn hosts(map: &Map) -> BTreeMap<PortRef, u32> {
    (0..).zip(&map.hosts).filter_map(|(host, it)| Some((it.at?, host))).collect()
}

/// Bits a second, received and sent, between two looks; `None` if the daemon began anew, or the looks are too close.
fn rates((then, before): (Instant, PortTraffic), (now, after): (Instant, PortTraffic)) -> Option<[f64; 2]> {
    let seconds = now.saturating_duration_since(then).as_secs_f64();
    let rate = |before: u64, after: u64| Some(after.checked_sub(before)? as f64 * 8.0 / seconds);
    let rates =
        [rate(before.received_bytes, after.received_bytes)?, rate(before.sent_bytes, after.sent_bytes)?];
    (seconds >= SHORTEST_S).then_some(rates)
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;
    use mapper_daemon::agent::status::{BoardPort, MapVersionDto};
    use mapper_daemon::xbar::PortStatus;

    fn bytes(received: u64, sent: u64) -> PortTraffic {
        PortTraffic { received_bytes: received, sent_bytes: sent, lost: 1, rate_mbps: Some(100) }
    }

    #[test]
    fn what_ends_count_is_told_of_cables_both_ways_and_of_hosts() {
        let fabric = generate("ring:n=3").unwrap();
        let (cable, tag) = (fabric.map.cables[0], |xbar: u32| fabric.map.xbars[xbar as usize].tag.unwrap());
        let node = fabric.map.hosts.iter().position(|host| host.at.unwrap().xbar == cable.a.xbar).unwrap();
        let alone = fabric.map.hosts.iter().position(|host| host.at.unwrap().xbar == cable.b.xbar).unwrap();
        let at = fabric.map.hosts[alone].at.unwrap();
        let mut known = Known::default();
        known.add("a/1".to_owned(), fabric.clone(), None);
        let board = |unit, host: usize| Board {
            mac: Some(fabric.map.hosts[host].mac.to_string()),
            ..Board::silent(unit, String::new())
        };
        let look = |factor: u64| {
            let port = BoardPort {
                port: cable.a.port,
                traffic: bytes(factor * 1000, factor * 500),
                ..BoardPort::default()
            };
            let boards = [
                Board { ports: vec![port], ..board(0, node) },
                Board { traffic: Some(bytes(factor * 10, factor * 20)), ..board(1, alone) },
            ];
            let port = |port: u8, received: u64, sent: u64| PortStatus {
                port,
                received_bytes: factor * received,
                sent_bytes: factor * sent,
                ..PortStatus::default()
            };
            let xbar = XbarStatus {
                name: "x".to_owned(),
                tag: Some(format!("{:016x}", tag(cable.b.xbar))),
                ports: vec![port(cable.b.port, 400, 1000), port(at.port, 20, 10)],
                ..XbarStatus::default()
            };
            (boards, [xbar])
        };
        let mut traffic = Traffic::default();
        let began = Instant::now();
        let (boards, xbars) = look(1);
        assert_eq!(
            traffic.count(began, &known, &boards, &xbars),
            Flows::default(),
            "a first look has no rates"
        );
        let (boards, xbars) = look(3);
        let flows = traffic.count(began + Duration::from_secs(2), &known, &boards, &xbars);
        assert_eq!(flows.cables, BTreeMap::from([(0, Flow { bits: [4000.0, 8000.0], lost: 1, mbps: 100 })]));
        let host = Flow { bits: [80.0, 160.0], lost: 1, mbps: 100 };
        assert_eq!(flows.hosts, BTreeMap::from([(alone as u32, host)]));
        // A daemon that began anew counts from zero.
        let (boards, xbars) = look(0);
        assert_eq!(traffic.count(began + Duration::from_secs(3), &known, &boards, &xbars), Flows::default());
    }

    #[test]
    fn an_agent_counts_in_its_own_map_though_others_have_a_host_of_its_address() {
        let mut known = Known::default();
        let ring = generate("ring:n=3").unwrap();
        let boards = [0_u8, 1].map(|unit| Board {
            map_version: Some(MapVersionDto { mac: "a".to_owned(), counter: unit.into() }),
            mac: Some(ring.map.hosts[unit as usize].mac.to_string()),
            traffic: Some(bytes(1, 1)),
            ..Board::silent(unit, String::new())
        });
        for board in &boards {
            let version = board.map_version.as_ref().unwrap().to_string();
            known.add(version, ring.clone(), Some(board.unit));
        }
        let ends: Vec<End> = counters(&known, &boards, &[]).into_iter().map(|(_, end, _)| end).collect();
        assert_eq!(ends, [End::Host(0), End::Host(4)]);
    }
}
