//! With keys, a stranger at a port that answers as a tree of crossbars without end keeps nobody from mapping,
//! neither while it is there nor when it has fallen silent.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::agent::Transmit;
use mapper_proto::wire::{AgentState, Crossbar, CrossbarKind, Decision, Element, split_route};
use mapper_proto::{Instant, Mac};
use mapper_sim::fabric::{Plant, Xbars};
use mapper_sim::faults::FaultPlan;
use mapper_sim::node::{Node, Spawn, Start};
use mapper_sim::world::{Options, Until, World};

use crate::keys::ring;
use crate::lab::ms;

/// A stranger that answers as crossbars of so many ports, each of which leads to another.
struct Endless {
    ports: u8,
    until: Instant,
    slow_by: Duration,
    outbox: Vec<(Instant, Transmit)>,
    now: Instant,
}

impl Endless {
    /// The frame that leaves the tree again, if it turns within.
    fn answer(&self, payload: &[u8]) -> Option<Transmit> {
        let (route, _) = split_route(payload).ok()?;
        let turns = |element: &Element| matches!(element, Element::Relative(0) | Element::Identify);
        let elements: Vec<Element> = route.elements().collect();
        let turn = elements.iter().position(turns)?;
        let (mut skip, mut tag) = (0, 0xe4d1_e550_u64);
        for element in &elements[..turn] {
            skip += element.len_bytes();
            let port = match *element {
                Element::Absolute(port) => port,
                Element::Relative(port) => u8::try_from(port).ok()?,
                Element::Identify => return None,
            };
            if port == 0 || port > self.ports {
                return None;
            }
            tag = (tag ^ u64::from(port)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
        let mut payload = payload.get(skip..)?.to_vec();
        if elements[turn] == Element::Identify {
            let kind = CrossbarKind::Tagged { tag };
            let mut crossbar = Crossbar { kind, first_port: 0, ports: self.ports + 1, carrier: [0; 32] };
            (0..=self.ports).for_each(|port| crossbar.set_carrier(port, true));
            let Decision::Identify { stamp_at, .. } = crossbar.decide(0, &payload) else { return None };
            crossbar.write_stamp(0, stamp_at, &mut payload);
        }
        let (route, frame) = split_route(&payload).ok()?;
        let route = route.elements().skip(1 + turn).collect();
        Some(Transmit { route, frame: frame.to_vec() })
    }
}

impl Node for Endless {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        self.now = now;
        if now < self.until {
            let due = now + self.slow_by;
            self.outbox.extend(self.answer(payload).map(|answer| (due, answer)));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        let is_due = self.outbox.first().is_some_and(|&(due, _)| due <= self.now);
        is_due.then(|| self.outbox.remove(0).1)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.outbox.first().map(|&(due, _)| due)
    }
}

struct OneEndless {
    host: u32,
    ports: u8,
    slow_by: Duration,
    until: Instant,
}

impl Spawn for OneEndless {
    fn spawn(&mut self, start: Start) -> Box<dyn Node> {
        if start.host != self.host {
            return Box::new(start.real());
        }
        let Self { ports, slow_by, until, .. } = *self;
        Box::new(Endless { ports, until, slow_by, outbox: Vec::new(), now: start.now })
    }
}

/// The stranger is there for five seconds; hosts die while it is and when it is not any more.
fn survive(spec: &str, keys: bool, ports: u8, slow_by: Duration) {
    let case = format!("{spec}, keys {keys}, {ports} ports, slow by {slow_by:?}");
    let fabric = generate(spec).unwrap();
    let plant = Plant::new(&fabric, Xbars::Tagged, 1).unwrap();
    let hosts = plant.hosts() as u32;
    let stranger = hosts - 3;
    let faults = FaultPlan::parse("faults", "at 4s kill h2\nat 11s kill h3", &plant).unwrap().draw(&plant, 1);
    let mut options = Options { seed: 5, ..Options::default() };
    options.agent.keys = keys.then(|| ring(0xaa, 5));
    let spawn = Box::new(OneEndless { host: stranger, ports, slow_by, until: ms(10_000) });
    let mut world = World::with_nodes(&fabric, plant, options, faults, spawn);
    for (at, dead) in [(3500, 0), (9900, 1), (15_000, 2)] {
        let at = ms(at);
        world.run(Until::After(at.since(Instant::ZERO)), at).unwrap();
        let verdict = world.verdict();
        assert!(verdict.configured, "{case} at {at:?}: {}", verdict.why_not);
        let map = world.map(0).unwrap();
        assert_eq!(map.hosts.len() as u32, hosts - 1 - dead, "{case} at {at:?}");
        assert_eq!(map.xbars.len(), fabric.map.xbars.len(), "{case} at {at:?}");
        let status = world.status(0).unwrap();
        assert_eq!(status.state, AgentState::Configured, "{case} at {at:?}");
        let told = status.unreachable.iter().any(|gone| gone.mac == Mac::NOBODY);
        // One that answers late may as well be taken for one that has fallen silent.
        assert!(told || at > ms(10_000) || slow_by > Duration::ZERO, "{case} at {at:?}: nobody is told");
    }
}

#[test]
fn a_stranger_that_answers_without_end_does_not_keep_anybody_from_mapping() {
    for keys in [true, false] {
        for slow_by in [Duration::ZERO, Duration::from_millis(8)] {
            survive("clos:hosts=16,ports=8", keys, 254, slow_by);
        }
    }
    survive("ring:n=4,hosts=2,ports=8", true, 3, Duration::ZERO);
}
