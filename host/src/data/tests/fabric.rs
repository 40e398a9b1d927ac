//! Fabrics whose crossbars forward each frame by the rule of the real ones, and the data paths of their
//! hosts.

use mapper_proto::PortSet;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mapper_fabric::generate;
use mapper_proto::map::{Map, PortRef};
use mapper_proto::wire::{Crossbar, CrossbarKind, Decision};
use mapper_proto::{Instant, Mac};

use crate::data::{DataPath, DeadPort};
use crate::routes::{Basis, RouteTable};

pub(super) const LINK_MTU: u32 = 1500;
const TAG: u64 = 0xfee0;

/// The map of a generated fabric whose xbars are all tagged.
pub(super) fn map(spec: &str) -> Map {
    let mut map = generate(spec).unwrap().map;
    map.version.counter = 1;
    for (xbar, tag) in map.xbars.iter_mut().zip(TAG..) {
        xbar.tag = Some(tag);
    }
    map
}

pub(super) fn without_cable(map: &Map, port: PortRef) -> Map {
    let mut map = map.clone();
    map.version.counter += 1;
    map.cables.retain(|cable| cable.a != port && cable.b != port);
    map
}

pub(super) fn table(map: &Map, host: usize) -> Arc<RouteTable> {
    let basis = Arc::new(Basis::new(Arc::new(map.clone())).unwrap());
    Arc::new(
        RouteTable::compute(&basis, map.hosts[host].mac, &mapper_routing::RouteOptions::default()).unwrap(),
    )
}

pub(super) fn data_path(map: &Map, host: usize) -> DataPath {
    let mut path = DataPath::new(map.hosts[host].mac, LINK_MTU, 7);
    path.take_map(Instant::ZERO, map);
    path.install(table(map, host));
    path
}

/// A UDP frame whose source port is the number of its flow.
pub(super) fn frame(from: Mac, to: Mac, flow: u16) -> Vec<u8> {
    let mut bytes = [to.0, from.0].concat();
    bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(flow.to_be_bytes());
    bytes.extend([0, 53, 0, 0, 0, 0]);
    bytes
}

/// What a data path sent: the route and the frame of each.
pub(super) type Sent = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) fn outbound(path: &mut DataPath, now: Instant, frame: &[u8]) -> Sent {
    let mut sent = Sent::new();
    path.outbound(now, frame, &mut |route, frame| sent.push((route.to_vec(), frame.to_vec())));
    sent
}

pub(super) fn undeliverable(path: &mut DataPath, now: Instant, notice: &[u8]) -> (Option<DeadPort>, Sent) {
    let mut sent = Sent::new();
    let dead =
        path.undeliverable(now, notice, &mut |route, frame| sent.push((route.to_vec(), frame.to_vec())));
    (dead, sent)
}

/// The route that the data path sends this frame by.
pub(super) fn route_of(path: &mut DataPath, now: Instant, frame: &[u8]) -> Vec<u8> {
    let mut sent = outbound(path, now, frame);
    assert_eq!(sent.len(), 1);
    sent.remove(0).0
}

/// The crossbars, cables and hosts of a map, and the cables that are cut.
pub(super) struct Fabric<'a> {
    map: &'a Map,
    far: BTreeMap<PortRef, PortRef>,
    hosts: BTreeMap<PortRef, Mac>,
    dead: BTreeSet<PortRef>,
}

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Arrived { at: Mac, frame: Vec<u8> },
    Lost,
}

impl<'a> Fabric<'a> {
    pub(super) fn new(map: &'a Map) -> Self {
        let far = map.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]).collect();
        let hosts = map.hosts.iter().filter_map(|host| Some((host.at?, host.mac))).collect();
        Self { map, far, hosts, dead: BTreeSet::new() }
    }

    pub(super) fn cut(&mut self, port: PortRef) {
        self.dead.insert(port);
        self.dead.extend(self.far.get(&port));
    }

    fn xbar(&self, xbar: u32) -> Crossbar {
        let tag = self.map.xbars[xbar as usize].tag.unwrap();
        Crossbar { kind: CrossbarKind::Tagged { tag }, first_port: 0, ports: 255, carriers: PortSet::ALL }
    }

    /// Sends a payload from a host.
    pub(super) fn send(&self, from: Mac, payload: &[u8]) -> Fate {
        let at = self.hosts.iter().find(|&(_, &mac)| mac == from).map(|(&at, _)| at).unwrap();
        self.travel(at, payload.to_vec())
    }

    fn travel(&self, mut arrival: PortRef, mut payload: Vec<u8>) -> Fate {
        loop {
            let xbar = self.xbar(arrival.xbar);
            let Decision::Forward { port, strip } = xbar.decide(arrival.port, &payload) else {
                return Fate::Lost;
            };
            let out = PortRef { xbar: arrival.xbar, port };
            if self.dead.contains(&out) {
                let Some(notice) = xbar.undeliverable(port, &payload) else { return Fate::Lost };
                // The notice leaves by the port that the frame came in by.
                return self.follow(arrival, notice);
            }
            payload.drain(..strip);
            if let Some(&at) = self.hosts.get(&out) {
                return Fate::Arrived { at, frame: payload };
            }
            arrival = self.far[&out];
        }
    }

    fn follow(&self, out: PortRef, payload: Vec<u8>) -> Fate {
        match self.hosts.get(&out) {
            Some(&at) => Fate::Arrived { at, frame: payload },
            None => self.travel(self.far[&out], payload),
        }
    }
}
