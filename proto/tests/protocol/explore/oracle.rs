//! A fabric that answers probes exactly as crossbars and agents would, and a driver that lets an
//! explorer explore it in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapper_proto::explore::{
    ExploreCost, ExploreError, ExploreOutcome, ExploreRequest, ExploreSettings, Explorer, Met, PartLeftOut,
    RequestKind,
};
use mapper_proto::map::{Contested, Host, Map, PortRef};
use mapper_proto::wire::{Element, ProbeKind, Route, Stamp};
use mapper_proto::{Instant, Mac};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "../../component/mod.rs"]
mod component;

use component::component_of;

/// What is at the other end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OracleEnd {
    Host(usize),
    Port(PortRef),
}

/// Where a frame ends up: the host, what is left of its route, its stamp.
struct Landing {
    host: usize,
    left: Vec<Element>,
    stamp: Option<Stamp>,
}

/// A host that answers as if it were a crossbar.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forger {
    /// What it stamps identify probes with.
    pub(crate) stamp: Stamp,
    /// It also strips relative elements, and sends the frame back where it came from.
    pub(crate) mirrors: bool,
}

/// A host that answers as a tree of crossbars without end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endless {
    /// The ports of each that lead on; `None` for plain ones, all of whose ports do.
    pub(crate) ports: Option<u8>,
    /// How many of these ports answer; the others are silent.
    pub(crate) answering: u8,
    /// How much longer its answers take than those of others.
    pub(crate) slow_by: Duration,
    /// When it falls silent.
    pub(crate) until: Duration,
}

impl Endless {
    /// What is left of a route when it has left the tree again, and the stamp.
    fn turn<'r>(&self, left: &'r [Element]) -> Option<(&'r [Element], Option<Stamp>)> {
        let turn = left.iter().position(|e| matches!(e, Element::Relative(0) | Element::Identify))?;
        let leads_on = |e: &Element| match (self.ports, *e) {
            (Some(ports), Element::Absolute(port)) => (1..=ports.min(self.answering)).contains(&port),
            (Some(ports), Element::Relative(port)) => (1..=ports.min(self.answering) as i8).contains(&port),
            (None, Element::Relative(_)) => true,
            _ => false,
        };
        if !left[..turn].iter().all(leads_on) {
            return None;
        }
        let stamp = match (left[turn], self.ports) {
            (Element::Identify, None) => return None,
            (Element::Identify, Some(ports)) => {
                let tag = left[..turn].iter().fold(0xe4d1_e550_u64, |tag, &element| {
                    let port = match element {
                        Element::Absolute(port) => u64::from(port),
                        Element::Relative(port) => port as u64,
                        Element::Identify => 0,
                    };
                    (tag ^ port).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
                });
                let carriers = (0..=ports).collect();
                Some(Stamp { tag, ports: ports.saturating_add(1), arrival: 0, carriers })
            }
            _ => None,
        };
        Some((left.get(2 * turn + 1..)?, stamp))
    }
}

/// A fabric that answers probes.
pub(crate) struct OracleFabric {
    pub(crate) map: Map,
    ends: BTreeMap<PortRef, OracleEnd>,
    /// Hosts without an agent.
    pub(crate) mute: BTreeSet<Mac>,
    /// The hosts that answer as crossbars, by index.
    pub(crate) forgers: BTreeMap<usize, Forger>,
    /// The hosts that answer as endless trees of crossbars, by index.
    pub(crate) endless: BTreeMap<usize, Endless>,
    /// The time.
    pub(crate) now: Instant,
    pub(crate) first_port: u8,
    /// The share of frames that get lost, there and back together.
    pub(crate) loss: f64,
    pub(crate) round_trip: Duration,
    /// How much time each element of the route of a request adds to the time of its answer.
    pub(crate) hop: Duration,
    /// How much longer than other probes identify probes take.
    pub(crate) slow_stamps_by: Duration,
    /// How much longer than those of xbars the answers of hosts take.
    pub(crate) slow_hosts_by: Duration,
    pub(crate) rng: ChaCha8Rng,
}

impl OracleFabric {
    pub(crate) fn new(map: &Map, first_port: u8) -> Self {
        let mut ends = BTreeMap::new();
        for (index, host) in map.hosts.iter().enumerate() {
            if let Some(at) = host.at {
                assert!(ends.insert(at, OracleEnd::Host(index)).is_none(), "two cables at {at:?}");
            }
        }
        for cable in &map.cables {
            assert!(ends.insert(cable.a, OracleEnd::Port(cable.b)).is_none(), "two cables at {:?}", cable.a);
            if cable.a != cable.b {
                assert!(
                    ends.insert(cable.b, OracleEnd::Port(cable.a)).is_none(),
                    "two cables at {:?}",
                    cable.b
                );
            }
        }
        Self {
            map: map.clone(),
            ends,
            mute: BTreeSet::new(),
            forgers: BTreeMap::new(),
            endless: BTreeMap::new(),
            now: Instant::ZERO,
            first_port,
            loss: 0.0,
            round_trip: Duration::from_micros(100),
            hop: Duration::ZERO,
            slow_stamps_by: Duration::ZERO,
            slow_hosts_by: Duration::ZERO,
            rng: ChaCha8Rng::seed_from_u64(1),
        }
    }

    /// Where a frame ends up that `host` sends; `None` if it gets lost.
    fn walk(&self, host: usize, route: &[Element]) -> Option<Landing> {
        let landing = self.walk_once(host, route)?;
        let Some(endless) = self.endless.get(&landing.host) else { return Some(landing) };
        let is_awake = self.now.since(Instant::ZERO) < endless.until;
        let (rest, stamp) = is_awake.then(|| endless.turn(&landing.left)).flatten()?;
        Some(Landing { stamp, ..self.walk_once(landing.host, rest)? })
    }

    /// How much longer than others the answer to this route takes.
    fn slow_by(&self, host: usize, route: &Route) -> Duration {
        let route: Vec<Element> = route.elements().collect();
        let first = (!self.endless.is_empty()).then(|| self.walk_once(host, &route)).flatten();
        let endless = first.and_then(|landing| self.endless.get(&landing.host));
        endless.map_or(Duration::ZERO, |endless| endless.slow_by)
    }

    /// Follows a route to where it ends, but for what a stranger does to the frame.
    fn walk_once(&self, host: usize, route: &[Element]) -> Option<Landing> {
        let mut route = route.iter().copied().peekable();
        let mut stamp = None;
        let mut turned_back = false;
        let mut end = match self.map.hosts[host].at {
            Some(at) => OracleEnd::Port(at),
            None => OracleEnd::Host((0..self.map.hosts.len()).find(|&other| {
                other != host && self.map.hosts[other].at.is_none() && self.map.xbars.is_empty()
            })?),
        };
        loop {
            let arrival = match end {
                OracleEnd::Host(host) => match (self.forgers.get(&host), route.peek()) {
                    (Some(forger), Some(Element::Identify)) => {
                        route.next();
                        stamp = Some(forger.stamp);
                        self.map.hosts[host].at?
                    }
                    (Some(Forger { mirrors: true, .. }), Some(Element::Relative(_))) => {
                        route.next();
                        self.map.hosts[host].at?
                    }
                    _ => return Some(Landing { host, left: route.collect(), stamp }),
                },
                OracleEnd::Port(arrival) => arrival,
            };
            let xbar = self.map.xbars[arrival.xbar as usize];
            let ports = i16::from(self.first_port)..i16::from(self.first_port) + i16::from(xbar.ports);
            let element = route.next()?;
            // A frame turns back at most once, as with real crossbars.
            let turns_back = matches!(element, Element::Relative(0) | Element::Identify);
            if turns_back && std::mem::replace(&mut turned_back, true) {
                return None;
            }
            let out = match (element, xbar.tag) {
                (Element::Relative(delta), _) => i16::from(arrival.port) + i16::from(delta),
                (Element::Absolute(port), Some(_)) => i16::from(port),
                (Element::Identify, Some(tag)) => {
                    let is_cabled =
                        |port: &u8| self.ends.contains_key(&PortRef { xbar: arrival.xbar, port: *port });
                    let carriers = ports.clone().map(|port| port as u8).filter(is_cabled).collect();
                    stamp = Some(Stamp { tag, ports: xbar.ports, arrival: arrival.port, carriers });
                    i16::from(arrival.port)
                }
                _ => return None,
            };
            if !ports.contains(&out) {
                return None;
            }
            end = *self.ends.get(&PortRef { xbar: arrival.xbar, port: out as u8 })?;
        }
    }

    /// What comes of a request that the host `own` sends; `None` for silence.
    pub(crate) fn answer(&mut self, own: usize, request: &ExploreRequest) -> Option<ExploreOutcome> {
        if self.loss > 0.0 && self.rng.random_bool(self.loss) {
            return None;
        }
        let route: Vec<Element> = request.route.elements().collect();
        let landing = self.walk(own, &route)?;
        let turns = matches!(landing.left.first(), Some(Element::Relative(0) | Element::Identify));
        let answers = !self.mute.contains(&self.map.hosts[landing.host].mac);
        let reply = |way_back: &[Element]| {
            let back = self.walk(landing.host, way_back)?;
            (back.host == own && back.left.is_empty()).then(|| self.host(landing.host))
        };
        match &request.kind {
            _ if landing.host == own && landing.left.is_empty() => {
                Some(ExploreOutcome::Returned { stamp: landing.stamp })
            }
            RequestKind::Probe { kind: ProbeKind::Compare, .. } => None,
            RequestKind::Probe { left, .. } => {
                if !turns || landing.left.len() != usize::from(*left) {
                    None
                } else if landing.host == own {
                    Some(ExploreOutcome::OwnHost)
                } else {
                    answers.then(|| reply(&landing.left[1..])).flatten()
                }
            }
            RequestKind::Scout { way_back } => {
                let arrived = landing.host != own && landing.left.is_empty() && answers;
                let way_back: Vec<Element> = way_back.elements().collect();
                arrived.then(|| reply(&way_back)).flatten()
            }
        }
    }

    /// The host with this index says who it is. Hosts that share an address differ by their session.
    fn host(&self, index: usize) -> ExploreOutcome {
        let host = self.map.hosts[index];
        let before = self.map.hosts[..index].iter().filter(|other| other.mac == host.mac).count();
        ExploreOutcome::Host(Met { session: before as u32, ..host.into() })
    }

    /// What can be known: the part of the fabric that hangs together with the host `own`, without
    /// hosts that have no agent, and with those contested that share an address.
    pub(crate) fn knowable(&self, own: usize) -> Map {
        let mac = self.map.hosts[own].mac;
        let mut map = self.map.clone();
        map.hosts.retain(|host| !self.mute.contains(&host.mac));
        let own = map.hosts.iter().position(|host| host.mac == mac).unwrap();
        let mut map = component_of(&map, own);
        let macs: Vec<Mac> = map.hosts.iter().map(|host| host.mac).collect();
        let is_shared = |host: &Host| macs.iter().filter(|&&mac| mac == host.mac).count() > 1;
        let (contested, hosts): (Vec<_>, Vec<_>) = map.hosts.into_iter().partition(is_shared);
        map.hosts = hosts;
        map.contested = contested.iter().map(|h| Contested { mac: h.mac, at: h.at.unwrap() }).collect();
        map.sort_canonical();
        map
    }
}

pub(crate) fn settings(plain_ports: u8) -> ExploreSettings {
    ExploreSettings {
        plain_ports,
        max_hops: 11,
        probe_timeout: Duration::from_millis(1),
        probe_tries: 3,
        probe_window: 64,
        prove_tags: false,
        greet_hosts: false,
        tell_silent_parts: false,
    }
}

/// What came of an exploration.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) map: Result<Map, ExploreError>,
    pub(crate) cost: ExploreCost,
    pub(crate) took: Duration,
    pub(crate) left_out: Vec<PartLeftOut>,
    /// Most entries in the explorer's tables.
    pub(crate) most_load: usize,
}

pub(crate) fn own_host(fabric: &OracleFabric, own: usize) -> Host {
    Host { at: None, ..fabric.map.hosts[own] }
}

/// Explores from the host `own`.
pub(crate) fn explore(fabric: &mut OracleFabric, own: usize, settings: &ExploreSettings) -> Run {
    let explorer = Explorer::new(settings, own_host(fabric, own), 7);
    drive(fabric, own, settings, explorer)
}

/// Lets an explorer explore to its end.
pub(crate) fn drive(
    fabric: &mut OracleFabric,
    own: usize,
    settings: &ExploreSettings,
    explorer: Explorer,
) -> Run {
    drive_with(fabric, own, settings, explorer, |_, outcome| outcome)
}

/// Explores as [`drive`] does, with something that meddles with what comes of each request.
pub(crate) fn drive_with(
    fabric: &mut OracleFabric,
    own: usize,
    settings: &ExploreSettings,
    mut explorer: Explorer,
    mut meddle: impl FnMut(&ExploreRequest, Option<ExploreOutcome>) -> Option<ExploreOutcome>,
) -> Run {
    let mut now = Instant::ZERO;
    let mut events: BTreeMap<(Instant, u64), (u32, ExploreOutcome)> = BTreeMap::new();
    let mut sent = 0;
    let mut most_load = 0;
    loop {
        fabric.now = now;
        while let Some(request) = explorer.poll_probe(now) {
            sent += 1;
            if sent % 1024 == 0 {
                most_load = most_load.max(explorer.load());
            }
            assert!(sent < 20_000_000, "exploration does not end");
            assert!(request.route.as_bytes().len() <= Route::MAX_BYTES);
            let outcome = fabric.answer(own, &request);
            if let Some(outcome) = meddle(&request, outcome) {
                let hops = u32::try_from(request.route.hops()).unwrap();
                let is_stamped = matches!(request.kind, RequestKind::Probe { kind: ProbeKind::Identify, .. });
                let is_of_host = matches!(outcome, ExploreOutcome::Host(_));
                let slow_by = if is_stamped { fabric.slow_stamps_by } else { Duration::ZERO }
                    + if is_of_host { fabric.slow_hosts_by } else { Duration::ZERO }
                    + fabric.slow_by(own, &request.route);
                let after = fabric.round_trip + fabric.hop * hops + slow_by;
                events.insert((now + after, sent), (request.id, outcome));
            }
        }
        if let Some(map) = explorer.result() {
            assert_eq!(explorer.cost().total(), sent, "every request is counted");
            let left_out = explorer.parts_left_out();
            let took = now.since(Instant::ZERO);
            return Run { map, cost: explorer.cost(), took, left_out, most_load };
        }
        let event = events.first_key_value().map(|(&(at, _), _)| at);
        let timeout = explorer.poll_timeout().expect("waits for something");
        assert!(timeout <= now + settings.longest_wait());
        if let Some(at) = event.filter(|&at| at <= timeout) {
            now = at;
            let (_, (id, outcome)) = events.pop_first().unwrap();
            explorer.handle_outcome(now, id, outcome);
        } else {
            now = timeout;
            explorer.handle_timeout(now);
        }
    }
}
