//! The world with stand-ins for agents.

use mapper_proto::PortSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mapper_proto::agent::Transmit;
use mapper_proto::map::{Cable, Host, HostLabel, Map, MapVersion, PortRef, Xbar, XbarLabel, host_type};
use mapper_proto::wire::{Element, Info, Message, Probe, ProbeKind, Route};

use super::*;
use crate::fabric::{CableState, PlantNode, PlantPort, Xbars};
use crate::faults::Fault;
use crate::node::{SimulatedHost, Start};

/// What stand-ins heard: when, at which host, what.
type Heard = Arc<Mutex<Vec<(u64, u32, Vec<u8>)>>>;

/// Sends given frames at given moments and writes down what it hears.
struct Scripted {
    host: u32,
    script: Vec<(Instant, Transmit)>,
    outbox: Vec<Transmit>,
    heard: Heard,
}

impl SimulatedHost for Scripted {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        self.heard.lock().unwrap().push((now.as_nanos(), self.host, payload.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, transmit)) = self.script.pop_if(|(at, _)| *at <= now) {
            self.outbox.push(transmit);
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        (!self.outbox.is_empty()).then(|| self.outbox.remove(0))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.script.last().map(|(at, _)| *at)
    }
}

/// Starts [`Scripted`] stand-ins; each host sends what is listed for it.
struct Scripts {
    sends: Vec<(u32, Instant, Transmit)>,
    heard: Heard,
}

impl Spawn for Scripts {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        let host = start.host;
        let mut script: Vec<_> =
            self.sends.iter().filter(|s| s.0 == host).map(|s| (s.1, s.2.clone())).collect();
        script.reverse();
        Box::new(Scripted { host, script, outbox: Vec::new(), heard: Arc::clone(&self.heard) })
    }
}

/// A real host, except that whoever looks at its map finds that of another mapper.
struct Deceived {
    host: mapper_host::Host,
}

impl SimulatedHost for Deceived {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        self.host.handle_frame(now, payload);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }

    fn host(&self) -> Option<&mapper_host::Host> {
        Some(&self.host)
    }

    fn host_mut(&mut self) -> Option<&mut mapper_host::Host> {
        Some(&mut self.host)
    }

    fn map(&self) -> Option<Arc<Map>> {
        let mut map = Map::clone(&*self.host.agent().map()?);
        map.version.mac = Mac::from_position(1);
        Some(Arc::new(map))
    }
}

struct AllDeceived;

impl Spawn for AllDeceived {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        Box::new(Deceived { host: start.real() })
    }
}

/// Hosts `h0`, `h1` on ports 1, 2 of xbar `x0`; `h2` on port 1 of `x1`; a cable x0:4 - x1:4.
fn fabric() -> Fabric {
    let at = |xbar, port| Some(PortRef { xbar, port });
    let host = |i, at| Host { mac: Mac::from_position(i), level: 1, host_type: host_type::ETHERNET, at };
    let xbar = |tag| Xbar { ports: 4, tag: Some(tag), ports_known: true };
    let cable = Cable::new(PortRef { xbar: 0, port: 4 }, PortRef { xbar: 1, port: 4 });
    let label = |name: &str| XbarLabel { name: name.to_owned(), ..XbarLabel::default() };
    Fabric {
        map: Map {
            version: MapVersion::NONE,
            hosts: vec![host(0, at(0, 1)), host(1, at(0, 2)), host(2, at(1, 1))],
            xbars: vec![xbar(0xa), xbar(0xb)],
            cables: vec![cable],
            contested: Vec::new(),
            ..Map::default()
        },
        hosts: (0..3).map(|i| HostLabel { name: format!("h{i}"), ..HostLabel::default() }).collect(),
        xbars: vec![label("x0"), label("x1")],
        ..Fabric::default()
    }
}

fn options() -> Options {
    Options { power_on_spread: Duration::ZERO, ..Options::default() }
}

fn scripted(
    kinds: Xbars,
    options: Options,
    faults: Vec<Timed>,
    sends: Vec<(u32, Instant, Transmit)>,
) -> (World, Heard) {
    let heard = Heard::default();
    let plant = Plant::new(&fabric(), kinds, 1).unwrap();
    let spawn = Box::new(Scripts { sends, heard: Arc::clone(&heard) });
    (World::with_nodes(&fabric(), plant, options, faults, spawn), heard)
}

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn transmit(elements: &[Element], frame: &[u8]) -> Transmit {
    Transmit { route: elements.iter().copied().collect(), frame: frame.to_vec() }
}

fn run_to(world: &mut World, at: Instant) {
    assert_eq!(world.run(Until::After(at - Instant::ZERO), at).unwrap(), Stopped::Reached);
}

#[test]
fn frames_follow_their_route_and_the_rest_of_it_arrives() {
    use Element::{Absolute, Relative};
    let sends = vec![
        (0, ms(1), transmit(&[Relative(1)], &[1])),
        (0, ms(2), transmit(&[Absolute(4), Relative(-3), Relative(0), Relative(9)], &[2])),
        (1, ms(3), transmit(&[Relative(0)], &[3])),
        // The frames go into a port without a cable, to a port that does not exist, and to an xbar where the
        // route ends.
        (0, ms(4), transmit(&[Relative(2)], &[4])),
        (0, ms(5), transmit(&[Relative(-1)], &[5])),
        (0, ms(6), transmit(&[Relative(3)], &[6])),
    ];
    let (mut world, heard) = scripted(Xbars::AsDescribed, options(), Vec::new(), sends);
    run_to(&mut world, ms(10));
    let heard: Vec<_> = heard.lock().unwrap().iter().map(|h| (h.1, h.2.clone())).collect();
    assert_eq!(heard, [(1, vec![1]), (2, vec![0x80, 0x89, 2]), (1, vec![3])]);
    let stats = world.stats();
    assert_eq!(
        (
            stats.frames[FabricCount::Sent],
            stats.frames[FabricCount::Received],
            stats.frames[FabricCount::Misrouted],
            stats.frames[FabricCount::LostOnDeadCables]
        ),
        (6, 3, 2, 1)
    );
}

#[test]
fn a_loopback_probe_is_back_after_a_hundred_microseconds() {
    let sends = vec![(
        0,
        ms(1),
        transmit(&[Element::Relative(3), Element::Relative(0), Element::Relative(-3)], &[1]),
    )];
    let (mut world, heard) = scripted(Xbars::Plain, options(), Vec::new(), sends);
    run_to(&mut world, ms(10));
    let (at, host, _) = heard.lock().unwrap()[0].clone();
    assert_eq!(host, 0);
    assert!((99_000..101_000).contains(&(at - 1_000_000)), "{at}");
}

#[test]
fn a_tagged_xbar_stamps_and_a_plain_one_drops() {
    let probe =
        Probe { id: 1, kind: ProbeKind::Identify, left: 1, info: Info::default(), way_there: Route::new() };
    let ask = || vec![(0, ms(1), transmit(&[Element::Identify], &Message::Probe(probe.clone()).encode()))];
    let (mut world, heard) = scripted(Xbars::AsDescribed, options(), Vec::new(), ask());
    run_to(&mut world, ms(10));
    let frame = heard.lock().unwrap()[0].2.clone();
    let stamp = Message::decode(&frame).unwrap().1.unwrap();
    assert_eq!(
        (stamp.tag, stamp.ports, stamp.arrival, stamp.carriers),
        (0xa, 4, 1, PortSet::from_iter([1, 2, 4]))
    );
    let (mut world, heard) = scripted(Xbars::Plain, options(), Vec::new(), ask());
    run_to(&mut world, ms(10));
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn a_busy_host_queues_and_then_loses_frames() {
    let mut options = options();
    options.timing.service = Duration::from_micros(10);
    options.timing.receive_queue = 3;
    let sends = (0..6).map(|i| (0, ms(1), transmit(&[Element::Relative(1)], &[i]))).collect();
    let (mut world, heard) = scripted(Xbars::Plain, options, Vec::new(), sends);
    run_to(&mut world, ms(10));
    let heard = heard.lock().unwrap();
    let gaps: Vec<u64> = heard.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert_eq!(gaps, [10_000; 3]);
    assert_eq!((world.stats().frames[FabricCount::Overflowed], world.stats().peak_receive_queue), (2, 3));
}

#[test]
fn faults_cut_silence_mend_and_move() {
    let every_ms = (0..8)
        .map(|i| (0, ms(i) + Duration::from_micros(500), transmit(&[Element::Relative(1)], &[i as u8])));
    let end = |port| PlantPort { node: PlantNode::Xbar(0), port };
    let fault = |at, fault| Timed { at: ms(at), fault, line: None };
    let faults = vec![
        fault(1, Fault::Cut(end(2))),
        fault(2, Fault::Mend(end(2))),
        fault(3, Fault::Silence(PlantPort { node: PlantNode::Host(1), port: 0 })),
        fault(4, Fault::Mend(end(2))),
        fault(5, Fault::Move { from: end(2), to: end(3) }),
        fault(6, Fault::Move { from: end(3), to: end(2) }),
        fault(7, Fault::Off(0)),
    ];
    let (mut world, heard) = scripted(Xbars::Plain, options(), faults, every_ms.collect());
    run_to(&mut world, ms(10));
    let heard: Vec<u8> = heard.lock().unwrap().iter().map(|h| h.2[0]).collect();
    assert_eq!(heard, [0, 2, 4, 6]);
    assert_eq!(world.faults_left(), 0);
}

#[test]
fn a_demanded_fault_that_cannot_strike_is_an_error() {
    let end = PlantPort { node: PlantNode::Xbar(0), port: 3 };
    let faults = vec![Timed { at: ms(1), fault: Fault::Cut(end), line: Some(4) }];
    let (mut world, _) = scripted(Xbars::Plain, options(), faults.clone(), Vec::new());
    let error = world.run(Until::After(Duration::from_millis(2)), ms(2)).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "no cable is plugged into x0:3");
    let drawn = faults.into_iter().map(|timed| Timed { line: None, ..timed }).collect();
    let (mut world, _) = scripted(Xbars::Plain, options(), drawn, Vec::new());
    run_to(&mut world, ms(2));
}

#[test]
fn noise_loses_flips_and_doubles() {
    let sends = || (0..2000).map(|i| (0, ms(i), transmit(&[Element::Relative(1)], &[0; 32]))).collect();
    let mut noisy = options();
    noisy.noise = Noise { loss: 0.1, corrupt: 0.1, duplicate: 0.1 };
    let (mut world, heard) = scripted(Xbars::Plain, noisy.clone(), Vec::new(), sends());
    run_to(&mut world, ms(2100));
    let stats = world.stats();
    // A frame crosses two cables, so 1 - 0.9^2 of 2,000 frames are lost.
    assert!((300..460).contains(&stats.frames[FabricCount::LostToNoise]), "{stats:?}");
    let heard = heard.lock().unwrap().clone();
    let flipped = heard.iter().filter(|h| h.2.iter().any(|&b| b != 0)).count();
    assert!((200..420).contains(&flipped), "{flipped}");
    assert!(
        heard.len() as u64 + stats.frames[FabricCount::LostToNoise] + stats.frames[FabricCount::Misrouted]
            > 2100
    );
    let (mut again, _) = scripted(Xbars::Plain, noisy, Vec::new(), sends());
    run_to(&mut again, ms(2100));
    assert_eq!(again.digest(), world.digest());
    assert_eq!(again.stats(), stats);
}

fn real(spawn: impl Spawn + 'static, faults: Vec<Timed>) -> World {
    let plant = Plant::new(&fabric(), Xbars::AsDescribed, 1).unwrap();
    World::with_nodes(&fabric(), plant, options(), faults, Box::new(spawn))
}

#[test]
fn configured_means_one_map_and_its_routes_everywhere() {
    let mut world = real(RealHosts, Vec::new());
    assert!(!world.verdict().configured);
    assert_eq!(world.run(Until::Configured, ms(1000)).unwrap(), Stopped::Reached);
    let verdict = world.verdict();
    assert!(verdict.configured && verdict.map_matches_fabric, "{verdict:?}");
    assert_eq!(verdict.leaders.len(), 1);
    assert_eq!((verdict.leaders[0].host, verdict.leaders[0].hosts), (2, 3));
    world.deliver_all(100, 1).unwrap();
    world.prove_union().unwrap();
}

#[test]
fn the_highest_mapper_must_have_made_the_map() {
    let mut world = real(AllDeceived, Vec::new());
    assert_eq!(world.run(Until::Configured, ms(1000)).unwrap(), Stopped::Reached);
    let verdict = world.verdict();
    assert!(verdict.configured && !verdict.map_matches_fabric);
    assert!(verdict.why_not.contains("highest"), "{}", verdict.why_not);
}

#[test]
fn after_a_fault_the_old_map_does_not_count() {
    let end = PlantPort { node: PlantNode::Xbar(0), port: 4 };
    let faults = vec![Timed { at: ms(900), fault: Fault::Cut(end), line: Some(1) }];
    let mut world = real(RealHosts, faults);
    assert_eq!(world.run(Until::Configured, ms(901)).unwrap(), Stopped::Limit);
    let verdict = world.verdict();
    assert!(!verdict.map_matches_fabric, "{verdict:?}");
    assert!(world.deliver_all(100, 1).is_ok(), "frames are delivered within each part");
    assert!(world.plant.set_cable(end, CableState::Up).is_ok());
    assert!(world.verdict().map_matches_fabric);
}

#[test]
fn each_route_of_a_pair_is_walked_there_and_back() {
    let ends = |port| [0, 1].map(|xbar| PortRef { xbar, port });
    let mut fabric = fabric();
    let [a, b] = ends(3);
    fabric.map.cables.push(Cable::new(a, b));
    fabric.map.cables.sort();
    let plant = Plant::new(&fabric, Xbars::AsDescribed, 1).unwrap();
    let mut world = World::new(&fabric, plant, options(), Vec::new());
    assert_eq!(world.run(Until::Configured, ms(1000)).unwrap(), Stopped::Reached);
    world.deliver_all(100, 1).unwrap();
    for port in [3, 4] {
        let end = PlantPort { node: PlantNode::Xbar(0), port };
        world.plant.set_cable(end, CableState::Silent).unwrap();
        let why = world.deliver_all(100, 1).unwrap_err();
        assert!(why.contains(" does not lead there"), "{why}");
        world.plant.set_cable(end, CableState::Up).unwrap();
    }
    world.deliver_all(100, 1).unwrap();
}

#[test]
fn each_part_has_a_true_map_or_not_by_itself() {
    let mut world = real(RealHosts, Vec::new());
    assert_eq!(world.run(Until::Configured, ms(1000)).unwrap(), Stopped::Reached);
    let parted = PlantPort { node: PlantNode::Xbar(0), port: 4 };
    world.plant.set_cable(parted, CableState::Cut).unwrap();
    let at = world.now();
    run_to(&mut world, at + Duration::from_secs(5));
    let [one, other] = [0, 1].map(PlantNode::Xbar);
    assert!(world.is_of_one_true_map(one) && world.is_of_one_true_map(other));
    world.plant.set_cable(PlantPort { node: PlantNode::Xbar(0), port: 2 }, CableState::Cut).unwrap();
    assert!(!world.is_of_one_true_map(one) && world.is_of_one_true_map(other));
}

#[test]
fn an_agent_that_stops_time_is_told() {
    struct Stuck;
    impl SimulatedHost for Stuck {
        fn handle_frame(&mut self, _: Instant, _: &[u8]) {}
        fn handle_timeout(&mut self, _: Instant) {}
        fn poll_timeout(&self) -> Option<Instant> {
            Some(Instant::ZERO)
        }
    }
    struct AllStuck;
    impl Spawn for AllStuck {
        fn spawn(&mut self, _: Start) -> Box<dyn SimulatedHost> {
            Box::new(Stuck)
        }
    }
    let plant = Plant::new(&fabric(), Xbars::Plain, 1).unwrap();
    let mut world = World::with_nodes(&fabric(), plant, options(), Vec::new(), Box::new(AllStuck));
    let error = world.run(Until::After(Duration::from_millis(1)), ms(1)).unwrap_err();
    assert!(error.to_string().contains("does not let time pass"), "{error}");
}
