//! A simulated fabric as it runs: every host's agent in virtual time, slowed down so that people can follow.

use std::time::{Duration, Instant as WallInstant};

use mapper_proto::map::{Fabric, PortRef};
use mapper_proto::wire::AgentState;
use mapper_proto::{Instant, Mac};
use mapper_sim::fabric::{PlantNode, PlantPort};
use mapper_sim::faults::FaultPlan;
use mapper_sim::setup::{Setup, SetupError};
use mapper_sim::world::{Until, World, WorldError};
use thiserror::Error;

use crate::view::feed::{CableState, Feed, HostState, Moment};

/// How often what happens is told, in real time.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Why a simulation ends early.
#[derive(Debug, Error)]
pub(crate) enum SimulationError {
    /// It cannot begin.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// It went wrong.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// A run that is told as it goes on.
pub(crate) struct Simulation {
    world: World,
    /// When faults strike, and what they are, in words; the next one last.
    faults: Vec<(Instant, String)>,
    limit: Instant,
}

impl Simulation {
    /// A run that has not begun.
    ///
    /// # Errors
    /// If the fabric cannot be built or the fault file is wrong.
    pub(crate) fn new(fabric: &Fabric, setup: &Setup) -> Result<Self, SimulationError> {
        let world = setup.world(fabric)?;
        let plan = FaultPlan::parse(&setup.faults.name, &setup.faults.text, world.plant())
            .map_err(SetupError::from)?;
        let faults = plan.draw(world.plant(), setup.seed).into_iter();
        let mut faults: Vec<_> =
            faults.map(|timed| (timed.at, timed.fault.describe(world.plant()))).collect();
        faults.reverse();
        Ok(Self { world, faults, limit: setup.limit_at() })
    }

    /// Runs to the end, `speed` virtual seconds in a second, and tells how all is.
    ///
    /// # Errors
    /// If the run goes wrong.
    pub(crate) fn run(mut self, feed: &Feed, fabric: &Fabric, speed: f64) -> Result<(), SimulationError> {
        let began = WallInstant::now();
        loop {
            feed.tell(self.moment(fabric));
            if self.world.now() >= self.limit {
                return Ok(());
            }
            std::thread::sleep(TELL_EVERY);
            let due = Instant::ZERO + began.elapsed().mul_f64(speed);
            // A fabric that is too large for this pace runs as fast as it can, and is told meanwhile.
            let most = self.world.now() + TELL_EVERY.mul_f64(speed);
            let next = due.min(most).min(self.limit).max(self.world.now());
            self.world.run(Until::After(Duration::MAX), next)?;
        }
    }

    fn moment(&mut self, fabric: &Fabric) -> Moment {
        let now = self.world.now();
        let hosts: Vec<HostState> = (0..fabric.map.hosts.len() as u32).map(|host| self.host(host)).collect();
        let cables = fabric.map.cables.iter().map(|cable| self.cable(cable.a, cable.b)).collect();
        let count = |state: HostState| hosts.iter().filter(|&&it| it == state).count();
        let leader = self.leader();
        let mut what = Vec::new();
        while self.faults.last().is_some_and(|(at, _)| *at <= now) {
            what.extend(self.faults.pop().map(|(_, fault)| fault));
        }
        let named = |mac: Mac| {
            let host = fabric.map.hosts.iter().position(|host| host.mac == mac);
            host.and_then(|host| fabric.hosts.get(host))
                .map_or_else(|| mac.to_string(), |label| label.name.clone())
        };
        if what.is_empty() {
            what.extend(leader.map(|leader| format!("{} leads", named(leader))));
        }
        Moment {
            at: Some(format!("{:.1} ms", now.as_millis_f64())),
            unix_ms: None,
            what: what.join("; "),
            says: format!("{} of {} configured", count(HostState::Configured), hosts.len()),
            troubles: Vec::new(),
            reasons: std::collections::BTreeMap::new(),
            hosts,
            cables,
        }
    }

    /// The leader that the first host which knows one names.
    fn leader(&self) -> Option<Mac> {
        let hosts = 0..self.world.plant().hosts() as u32;
        hosts.filter_map(|host| self.world.status(host)).find_map(|status| Some(status.leader?.mac))
    }

    fn host(&self, host: u32) -> HostState {
        if !self.world.is_live(host) {
            return HostState::Missing;
        }
        match self.world.status(host).map(|status| status.state) {
            None => HostState::Unknown,
            Some(AgentState::Configured) => HostState::Configured,
            Some(AgentState::Isolated) => HostState::Isolated,
            Some(_) => HostState::AtWork,
        }
    }

    fn cable(&self, a: PortRef, b: PortRef) -> CableState {
        let end = |at: PortRef| PlantPort { node: PlantNode::Xbar(at.xbar), port: at.port };
        let plant = self.world.plant();
        match plant.peer(end(a)) {
            Some(peer) if peer == end(b) && plant.carries(end(a)) => CableState::Whole,
            Some(peer) if peer == end(b) => CableState::Dead,
            _ => CableState::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use mapper_sim::setup::FaultFile;

    use super::*;
    use crate::view::feed::Seen;

    #[test]
    fn a_run_is_told_with_its_faults_to_the_end() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        let text = "at 60ms cut leaf1:3\nat 61ms kill h1\n".to_owned();
        let faults = FaultFile { name: "faults".to_owned(), text };
        let setup = Setup { faults, limit: Duration::from_secs(8), ..Setup::default() };
        let feed = Feed::new(1);
        feed.tell_fabric(fabric.clone(), "a run".to_owned());
        Simulation::new(&fabric, &setup).unwrap().run(&feed, &fabric, 20.0).unwrap();
        let told: serde_json::Value = serde_json::from_str(&feed.update(&mut Seen::default())[0]).unwrap();
        assert_eq!(told["hosts"], "41111111", "seven are configured, and the first is gone: {told}");
        assert!(told["cables"].as_str().unwrap().contains('1'), "the cut cable: {told}");
        let moments = told["history"].as_array().unwrap();
        assert!(
            moments.iter().any(|moment| moment["what"].as_str().unwrap().contains("cut leaf1:3")),
            "{told}"
        );
    }
}
