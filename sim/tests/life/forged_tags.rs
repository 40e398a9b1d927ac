//! If agents have keys, a stranger at a port that stamps probes as a crossbar does, with whatever tag,
//! prevents neither that the fabric is mapped nor that all hosts are configured.

use mapper_fabric::generate;
use mapper_proto::PortSet;
use mapper_proto::agent::Transmit;
use mapper_proto::wire::{
    AgentState, Crossbar, CrossbarKind, Decision, Key, KeyRing, SECRET_BYTES, split_route,
};
use mapper_proto::{Instant, Mac};
use mapper_sim::fabric::{Plant, Xbars};
use mapper_sim::node::{SimulatedHost, Spawn, Start};
use mapper_sim::world::{Options, Until, World};

use crate::lab::ms;

/// A stranger that answers as a crossbar would.
struct Forger {
    crossbar: Crossbar,
    /// The port of that crossbar by which all frames are said to come in.
    arrival: u8,
    /// Whether it sends on all frames that a crossbar would send on, along the one cable that it has.
    forwards: bool,
    outbox: Vec<Transmit>,
}

impl SimulatedHost for Forger {
    fn handle_frame(&mut self, _now: Instant, payload: &[u8]) {
        let mut payload = payload.to_vec();
        let strip = match self.crossbar.decide(self.arrival, &payload) {
            Decision::Identify { strip, stamp_at } => {
                self.crossbar.write_stamp(self.arrival, stamp_at, &mut payload);
                strip
            }
            Decision::Forward { strip, .. } if self.forwards => strip,
            Decision::Forward { .. } | Decision::Drop(_) => return,
        };
        if let Ok((route, frame)) = split_route(&payload[strip..]) {
            self.outbox.push(Transmit { route, frame: frame.to_vec() });
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self) -> Option<Transmit> {
        (!self.outbox.is_empty()).then(|| self.outbox.remove(0))
    }
}

/// Starts a stranger at one host, and a real agent at every other.
struct OneForger {
    host: u32,
    tag: u64,
    arrival: u8,
    forwards: bool,
}

impl Spawn for OneForger {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        if start.host != self.host {
            return Box::new(start.real());
        }
        let kind = CrossbarKind::Tagged { tag: self.tag };
        let crossbar = Crossbar { kind, first_port: 1, ports: 8, carriers: PortSet::ALL };
        Box::new(Forger { crossbar, arrival: self.arrival, forwards: self.forwards, outbox: Vec::new() })
    }
}

#[derive(Clone, Copy, Debug)]
enum Shown {
    OwnXbar,
    OtherXbar,
    NewTag,
}

/// Has a stranger at this host's port show a tag, and fails if that does harm.
fn survive(spec: &str, kinds: Xbars, host: u32, shown: Shown, arrival: u8, forwards: bool) {
    let case = format!("{spec} {kinds:?} h{host} {shown:?} port {arrival}, forwards: {forwards}");
    let fabric = generate(spec).unwrap();
    let plant = Plant::new(&fabric, kinds, 1).unwrap();
    let hosts = plant.hosts();
    let own = fabric.map.hosts[host as usize].at.unwrap().xbar;
    let other = (0..plant.xbars() as u32).rev().find(|&xbar| xbar != own && plant.tag(xbar).is_some());
    let tag = match shown {
        Shown::OwnXbar => plant.tag(own).or_else(|| plant.tag(other?)),
        Shown::OtherXbar => other.and_then(|xbar| plant.tag(xbar)),
        Shown::NewTag => None,
    };
    let tag = tag.unwrap_or(0xbad);
    let mut options = Options { seed: 5, ..Options::default() };
    options.agent.keys = Some(KeyRing::new(vec![Key::new(1, [0xaa; SECRET_BYTES])], 5).unwrap());
    let spawn = Box::new(OneForger { host, tag, arrival, forwards });
    let mut world = World::with_nodes(&fabric, plant, options, Vec::new(), spawn);
    let run_to = |world: &mut World, at: Instant| {
        world.run(Until::After(at.since(Instant::ZERO)), at).unwrap();
    };
    run_to(&mut world, ms(2500));
    let verdict = world.verdict();
    assert!(verdict.configured, "{case}: {}", verdict.why_not);
    let honest: Vec<u32> = (0..hosts as u32).filter(|&other| other != host).collect();
    let version = world.status(honest[0]).unwrap().version;
    let map = world.map(honest[0]).unwrap();
    assert_eq!(map.hosts.len(), hosts - 1, "{case}");
    let phantom = usize::from(tag == 0xbad);
    // A stranger that shows the very port that it is cabled to looks like a plug that sends frames back.
    let looped = map.cables.iter().any(|cable| cable.a == cable.b);
    assert!(verdict.map_matches_fabric || phantom == 1 || looped, "{case}: {}", verdict.why_not);
    assert!(map.xbars.len() <= fabric.map.xbars.len() + phantom, "{case}");
    // As long as nothing changes, no agent makes another map.
    run_to(&mut world, ms(20_000));
    for host in honest {
        let status = world.status(host).unwrap();
        assert_eq!((status.version, status.state), (version, AgentState::Configured), "{case}: h{host}");
        assert!(status.network_complete, "{case}: h{host}");
        let told = status.unreachable.iter().any(|gone| gone.mac == Mac::NOBODY);
        assert_eq!(told, !map.contested.is_empty(), "{case}: {:?}", status.unreachable);
        assert!(told || phantom == 1 || arrival != 8, "{case}: nobody is told");
    }
    world.deliver_all(500, 1).unwrap();
}

#[test]
fn a_stranger_that_shows_any_tag_does_no_harm_where_all_xbars_have_tags() {
    for shown in [Shown::OwnXbar, Shown::OtherXbar, Shown::NewTag] {
        for forwards in [false, true] {
            for arrival in [1, 4, 8] {
                for host in [1, 4] {
                    survive("ring:n=4,hosts=2,ports=8", Xbars::Tagged, host, shown, arrival, forwards);
                }
                survive("clos:hosts=16,ports=8", Xbars::Tagged, 9, shown, arrival, forwards);
            }
        }
    }
}

#[test]
fn a_stranger_that_shows_any_tag_does_no_harm_where_some_xbars_have_tags() {
    for shown in [Shown::OwnXbar, Shown::OtherXbar, Shown::NewTag] {
        for arrival in [1, 4, 8] {
            for host in [1, 4] {
                survive("ring:n=4,hosts=2,ports=8", Xbars::Mixed, host, shown, arrival, false);
            }
        }
    }
}
