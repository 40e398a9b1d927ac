//! A world of real hosts, and what the tests ask of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::agent::{Purpose, Settings, Status};
use mapper_proto::map::{Fabric, MapVersion};
use mapper_proto::wire::AgentState;
use mapper_proto::{Instant, Mac, Tally};
use mapper_sim::fabric::{Plant, PlantNode, Xbars};
use mapper_sim::faults::FaultPlan;
use mapper_sim::node::{SimulatedHost, Spawn, Start};
use mapper_sim::world::{Options, Stopped, TraceError, TraceEvent, TraceSink, Until, World};

/// An event of an agent, or a fault, as the trace tells it.
#[derive(Clone, Debug)]
pub(crate) struct Happening {
    pub(crate) at: Instant,
    pub(crate) place: String,
    pub(crate) what: String,
    pub(crate) detail: String,
}

#[derive(Clone, Default)]
struct Diary(Rc<RefCell<Vec<Happening>>>);

impl TraceSink for Diary {
    fn event(&mut self, event: &TraceEvent<'_>, _digest: u64) -> Result<(), TraceError> {
        let TraceEvent { at, place, what, detail } = *event;
        self.0.borrow_mut().push(Happening {
            at,
            place: place.to_owned(),
            what: what.to_owned(),
            detail: detail.to_owned(),
        });
        Ok(())
    }

    fn checkpoint(&mut self, _: Instant, _: u64, _: u64) -> Result<(), TraceError> {
        Ok(())
    }

    fn end(&mut self, _: Instant, _: u64) -> Result<(), TraceError> {
        Ok(())
    }
}

/// Changes an agent's settings before it starts.
type Tune = Box<dyn Fn(u32, &mut Settings)>;

struct Tuned(Tune);

impl Spawn for Tuned {
    fn spawn(&mut self, start: Start) -> Box<dyn SimulatedHost> {
        let mut start = start;
        self.0(start.host, &mut start.settings);
        Box::new(start.real())
    }
}

/// What a world is made of.
pub(crate) struct Plan {
    pub(crate) fabric: Fabric,
    pub(crate) kinds: Xbars,
    pub(crate) faults: String,
    pub(crate) options: Options,
    pub(crate) tune: Tune,
}

impl Plan {
    pub(crate) fn new(spec: &str, kinds: Xbars) -> Self {
        Self {
            fabric: generate(spec).unwrap(),
            kinds,
            faults: String::new(),
            options: Options::default(),
            tune: Box::new(|_, _| ()),
        }
    }

    pub(crate) fn faults(mut self, faults: &str) -> Self {
        self.faults = faults.to_owned();
        self
    }

    /// Sets what every agent is set to.
    pub(crate) fn agents(mut self, set: impl Fn(&mut Settings)) -> Self {
        set(&mut self.options.agent);
        self
    }

    /// Sets what single agents are set to, by host. Levels are set by [`Self::levels`].
    pub(crate) fn tune(mut self, tune: impl Fn(u32, &mut Settings) + 'static) -> Self {
        self.tune = Box::new(tune);
        self
    }

    /// Sets levels by host.
    pub(crate) fn levels(mut self, level: impl Fn(u32) -> u8) -> Self {
        (0..).zip(&mut self.fabric.map.hosts).for_each(|(i, host)| host.level = level(i));
        self
    }

    pub(crate) fn start(self) -> Lab {
        let mut lab = self.start_unrecorded();
        lab.world.record(Box::new(lab.diary.clone()));
        lab
    }

    /// The same without a diary, for fabrics in which so much happens that it would fill the memory.
    pub(crate) fn start_unrecorded(self) -> Lab {
        let plant = Plant::new(&self.fabric, self.kinds, 1).unwrap();
        let faults = FaultPlan::parse("faults", &self.faults, &plant).unwrap().draw(&plant, 1);
        let spawn = Box::new(Tuned(self.tune));
        let world = World::with_nodes(&self.fabric, plant, self.options, faults, spawn);
        Lab { world, diary: Diary::default() }
    }
}

/// A running world.
pub(crate) struct Lab {
    pub(crate) world: World,
    diary: Diary,
}

pub(crate) fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

impl Lab {
    /// A world that was set up elsewhere, with a diary from now on.
    pub(crate) fn around(mut world: World) -> Self {
        let diary = Diary::default();
        world.record(Box::new(diary.clone()));
        Self { world, diary }
    }

    /// A world that has run for 3 s, by when all hosts agree on a map.
    #[track_caller]
    pub(crate) fn configured(plan: Plan) -> Self {
        let mut lab = plan.start();
        lab.agree_at(ms(3000));
        lab
    }

    /// Runs until this moment.
    pub(crate) fn run_to(&mut self, at: Instant) {
        self.world.run(Until::After(at.since(Instant::ZERO)), at).unwrap();
    }

    /// Runs to `at`, and fails unless all live agents of each connected part then hold one map that matches
    /// the fabric and say that the network is complete. Returns the version of the first part's map.
    #[track_caller]
    pub(crate) fn agree_at(&mut self, at: Instant) -> MapVersion {
        self.run_to(at);
        let verdict = self.world.verdict();
        assert!(
            verdict.configured && verdict.map_matches_fabric,
            "at {at:?}: {}",
            self.explain(&verdict.why_not)
        );
        self.world.deliver_all(500, 1).unwrap();
        verdict.leaders.first().map(|leader| leader.version).unwrap_or_default()
    }

    /// Runs until all faults have struck and all hosts are configured with a map that matches the fabric.
    /// Fails if that is not so by `limit`.
    #[track_caller]
    pub(crate) fn settle_by(&mut self, limit: Instant) {
        let stopped = self.world.run(Until::Configured, limit).unwrap();
        let verdict = self.world.verdict();
        let settled = stopped == Stopped::Reached && verdict.map_matches_fabric;
        assert!(settled, "by {limit:?}: {}", self.explain(&verdict.why_not));
    }

    /// How many parts with two hosts or more there are, each with its leader.
    pub(crate) fn leaders(&mut self) -> usize {
        self.world.verdict().leaders.len()
    }

    fn explain(&self, why: &str) -> String {
        let happened = self.happenings();
        let last = happened.iter().skip(happened.len().saturating_sub(40));
        let lines = last.map(|h| format!("{:?} {} {} {}", h.at, h.place, h.what, h.detail));
        format!("{why}\n{}", lines.collect::<Vec<_>>().join("\n"))
    }

    /// All that happened so far.
    pub(crate) fn happenings(&self) -> Vec<Happening> {
        self.diary.0.borrow().clone()
    }

    /// How often this happened from `since` on.
    pub(crate) fn count(&self, what: &str, since: Instant) -> usize {
        self.diary.0.borrow().iter().filter(|h| h.what == what && h.at >= since).count()
    }

    /// The host of this name.
    #[track_caller]
    pub(crate) fn host(&self, name: &str) -> u32 {
        match self.world.plant().node(name) {
            Some(PlantNode::Host(host)) => host,
            other => panic!("{name} is {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn status(&self, name: &str) -> Status {
        self.world.status(self.host(name)).unwrap()
    }

    /// The status of every agent that runs.
    pub(crate) fn statuses(&self) -> Vec<Status> {
        (0..self.world.plant().hosts() as u32).filter_map(|host| self.world.status(host)).collect()
    }

    /// How many agents are in this state.
    pub(crate) fn in_state(&self, state: AgentState) -> usize {
        self.statuses().iter().filter(|status| status.state == state).count()
    }

    /// Whether a map that any host holds shows this address.
    pub(crate) fn shows_address(&self, mac: Mac) -> bool {
        let hosts = 0..self.world.plant().hosts() as u32;
        let mut maps = hosts.filter_map(|host| self.world.map(host));
        maps.any(|map| map.hosts.iter().any(|host| host.mac == mac))
    }

    /// Whether the map that this host holds shows that one.
    pub(crate) fn shows(&self, holder: &str, other: &str) -> bool {
        let mac = self.world.mac(self.host(other));
        self.world.map(self.host(holder)).is_some_and(|map| map.hosts.iter().any(|host| host.mac == mac))
    }
}

/// A duration in milliseconds.
pub(crate) const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// All messages of exploration that an agent sent.
pub(crate) fn exploration(sent: &Tally<Purpose>) -> u64 {
    sent[Purpose::SwitchProbe] + sent[Purpose::Scout] + sent[Purpose::Compare]
}
