//! A stranger at a port that answers as a tree of crossbars without end keeps nobody from mapping, neither
//! while it is there nor when it has fallen silent.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::agent::Transmit;
use mapper_proto::wire::{AgentState, Element, split_route};
use mapper_proto::{Instant, Mac};
use mapper_sim::fabric::{Plant, Xbars};
use mapper_sim::faults::FaultPlan;
use mapper_sim::hostile::EndlessTree;
use mapper_sim::node::{SimulatedHost, Spawn, Start};
use mapper_sim::world::{Options, Until, World};

use crate::keys::ring;
use crate::lab::ms;

/// What a stranger sends back for a frame.
type Answer = fn(&[u8]) -> Option<Transmit>;

fn tagged_254(payload: &[u8]) -> Option<Transmit> {
    EndlessTree::Tagged { ports: 254 }.answer(payload)
}

fn tagged_3(payload: &[u8]) -> Option<Transmit> {
    EndlessTree::Tagged { ports: 3 }.answer(payload)
}

fn plain_15(payload: &[u8]) -> Option<Transmit> {
    EndlessTree::Plain { ports: 15 }.answer(payload)
}

fn plain_3(payload: &[u8]) -> Option<Transmit> {
    EndlessTree::Plain { ports: 3 }.answer(payload)
}

/// Sends the frame back with its turn not yet obeyed. So it looks to its sender as if the port led to the
/// sender itself.
fn unturned(payload: &[u8]) -> Option<Transmit> {
    let (left, frame) = split_route(payload).ok()?;
    let home = left.elements().skip(1);
    Some(Transmit { route: home.chain(left.elements()).collect(), frame: frame.to_vec() })
}

/// Sends the frame on to the host at the port before the stranger's, with the rest of its route as it must be
/// from there. So that host seems to be at the stranger's port.
fn sent_on(payload: &[u8]) -> Option<Transmit> {
    let (left, frame) = split_route(payload).ok()?;
    let mut left = left.elements();
    let turn = left.next().filter(|turn| matches!(turn, Element::Relative(0) | Element::Identify))?;
    let Some(Element::Relative(home)) = left.next() else { return None };
    let route = [Element::Relative(-1), turn, Element::Relative(home + 1)].into_iter().chain(left);
    Some(Transmit { route: route.collect(), frame: frame.to_vec() })
}

/// When a stranger is there.
#[derive(Clone, Copy)]
struct Times {
    /// It comes once in this time.
    every: Duration,
    /// It stays this long each time.
    there: Duration,
    until: Instant,
}

impl Times {
    fn is_there(&self, now: Instant) -> bool {
        let since = now.since(Instant::ZERO).as_nanos() % self.every.as_nanos();
        now < self.until && since < self.there.as_nanos()
    }
}

/// A stranger at a host's port.
#[derive(Clone, Copy)]
struct Stranger {
    host: u32,
    answer: Answer,
    slow_by: Duration,
    times: Times,
}

struct Answering {
    stranger: Stranger,
    outbox: Vec<(Instant, Transmit)>,
    now: Instant,
}

impl SimulatedHost for Answering {
    fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        self.now = now;
        if self.stranger.times.is_there(now) {
            let due = now + self.stranger.slow_by;
            self.outbox.extend((self.stranger.answer)(payload).map(|answer| (due, answer)));
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

impl Spawn for Stranger {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        if start.host != self.host {
            return Box::new(start.real());
        }
        Box::new(Answering { stranger: *self, outbox: Vec::new(), now: start.now })
    }
}

/// A fabric with a stranger, and what the stranger does.
#[derive(Clone, Copy)]
struct Case {
    spec: &'static str,
    kinds: Xbars,
    keys: bool,
    answer: Answer,
    slow_by: Duration,
}

struct Beset {
    world: World,
    case: String,
    hosts: u32,
    xbars: usize,
}

impl Beset {
    fn new(case: Case, times: Times, faults: &str) -> Self {
        let Case { spec, kinds, keys, answer, slow_by } = case;
        let fabric = generate(spec).unwrap();
        let plant = Plant::new(&fabric, kinds, 1).unwrap();
        let hosts = plant.hosts() as u32;
        let faults = FaultPlan::parse("faults", faults, &plant).unwrap().draw(&plant, 1);
        let mut options = Options { seed: 5, ..Options::default() };
        options.agent.keys = keys.then(|| ring(0xaa, 5));
        let spawn = Box::new(Stranger { host: hosts - 3, answer, slow_by, times });
        let world = World::with_nodes(&fabric, plant, options, faults, spawn);
        let case = format!("{spec} {kinds:?}, keys {keys}, slow by {slow_by:?}");
        Self { world, case, hosts, xbars: fabric.map.xbars.len() }
    }

    fn run_to(&mut self, at: Instant) {
        self.world.run(Until::After(at.since(Instant::ZERO)), at).unwrap();
    }

    /// Fails unless all hosts but the stranger and `dead` others are configured with a map of the whole
    /// fabric.
    #[track_caller]
    fn is_mapped(&mut self, dead: u32) {
        let (case, at) = (&self.case, self.world.now());
        let verdict = self.world.verdict();
        assert!(verdict.configured, "{case} at {at:?}: {}", verdict.why_not);
        let map = self.world.map(0).unwrap();
        assert_eq!(map.hosts.len() as u32, self.hosts - 1 - dead, "{case} at {at:?}");
        assert_eq!(map.xbars.len(), self.xbars, "{case} at {at:?}");
        assert_eq!(self.world.status(0).unwrap().state, AgentState::Configured, "{case} at {at:?}");
    }

    /// Whether the first host names a port behind which nobody can be believed.
    fn is_told(&self) -> bool {
        let status = self.world.status(0).unwrap();
        status.unreachable.iter().any(|gone| gone.mac == Mac::NOBODY)
    }
}

/// Lets a stranger be there for ten seconds. One host dies meanwhile, and another one afterwards.
fn survive(case: Case) {
    let until = ms(10_000);
    let times = Times { every: Duration::from_secs(3600), there: Duration::from_secs(10), until };
    let mut beset = Beset::new(case, times, "at 4s kill h2\nat 11s kill h3");
    for (at, dead) in [(3500, 0), (9900, 1), (15_000, 2)] {
        beset.run_to(ms(at));
        beset.is_mapped(dead);
        // A stranger that answers late may also be taken for one that has fallen silent.
        let must_be_told = ms(at) <= until && case.slow_by.is_zero();
        assert!(beset.is_told() || !must_be_told, "{} at {at} ms: nobody is told", beset.case);
    }
}

const CLOS: &str = "clos:hosts=16,ports=8";
const RING: &str = "ring:n=4,hosts=2,ports=8";

#[test]
fn a_stranger_that_answers_without_end_does_not_keep_anybody_from_mapping() {
    for keys in [true, false] {
        for slow_by in [Duration::ZERO, Duration::from_millis(8)] {
            survive(Case { spec: CLOS, kinds: Xbars::Tagged, keys, answer: tagged_254, slow_by });
        }
    }
    let slow_by = Duration::ZERO;
    survive(Case { spec: RING, kinds: Xbars::Tagged, keys: true, answer: tagged_3, slow_by });
}

#[test]
fn one_behind_plain_crossbars_does_not_either() {
    for spec in [CLOS, RING] {
        for keys in [true, false] {
            for answer in [tagged_254 as Answer, tagged_3, plain_15, plain_3] {
                survive(Case { spec, kinds: Xbars::Plain, keys, answer, slow_by: Duration::ZERO });
            }
        }
    }
}

#[test]
fn one_that_pretends_to_be_plain_crossbars_among_tagged_ones_does_not_either() {
    for answer in [plain_15 as Answer, plain_3] {
        survive(Case { spec: CLOS, kinds: Xbars::Tagged, keys: true, answer, slow_by: Duration::ZERO });
    }
}

#[test]
fn one_that_throws_probes_back_unturned_does_not_either() {
    for spec in [CLOS, RING] {
        for kinds in [Xbars::Tagged, Xbars::Plain, Xbars::Mixed] {
            survive(Case { spec, kinds, keys: true, answer: unturned, slow_by: Duration::ZERO });
        }
    }
}

#[test]
fn one_that_sends_probes_on_to_another_host_does_not_either() {
    for spec in [CLOS, RING] {
        for kinds in [Xbars::Tagged, Xbars::Plain, Xbars::Mixed] {
            survive(Case { spec, kinds, keys: true, answer: sent_on, slow_by: Duration::ZERO });
        }
    }
}

#[test]
fn one_that_comes_and_goes_leaves_all_mapped_each_time() {
    for (kinds, answer) in [
        (Xbars::Tagged, tagged_254 as Answer),
        (Xbars::Tagged, tagged_3),
        (Xbars::Plain, plain_15),
        (Xbars::Tagged, unturned),
        (Xbars::Plain, unturned),
    ] {
        let every = Duration::from_secs(20);
        let times = Times { every, there: every / 2, until: ms(200_000) };
        let case = Case { spec: RING, kinds, keys: true, answer, slow_by: Duration::ZERO };
        // The restarts have all map again while the stranger is there, and while it is not.
        let restarts = (0..20).map(|nth| format!("at {}s restart h2\n", 10 * nth + 3));
        let mut beset = Beset::new(case, times, &restarts.collect::<String>());
        for nth in 1..=20 {
            beset.run_to(ms(nth * 10_000 - 1));
            beset.is_mapped(0);
            beset.world.check_load(1024).unwrap();
        }
    }
}
