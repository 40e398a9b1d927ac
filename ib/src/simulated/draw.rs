//! Draws a scenario from a seed.

use std::time::Duration;

use mapper_proto::time::Instant;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use mapper_proto::map::Fabric;

use super::model::Model;
use super::subnet_of::SubnetError;
use super::world::{Fault, Noise, World};
use super::{Engines, Violation};
use crate::mad::NodeKind;
use crate::sweep::PortOf;

/// For how long things go wrong.
const TROUBLE: Duration = Duration::from_secs(30);
/// How long the subnet then has to become well before it is checked.
const REST: Duration = Duration::from_secs(60);
/// How long nothing may be written at the end.
const QUIET: Duration = Duration::from_secs(15);

/// A subnet, its managers, and the faults that strike.
#[derive(Debug)]
pub struct Scenario {
    seed: u64,
    model: Model,
    /// The adapters behind which managers run, with their priorities.
    managers: Vec<(usize, u8)>,
    noise: Noise,
    faults: Vec<(Instant, Fault)>,
}

/// The outcome of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Blocks of tables that were written, those of multicast tables among them.
    pub blocks: u64,
    /// Datagrams that were sent by the managers that ran at the end.
    pub sent: u64,
    /// Shares of switches that agents which stood by at the end had looked at.
    pub shares: u64,
}

impl Scenario {
    /// The scenario of a seed, in a subnet that is drawn as well.
    pub fn draw(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (model, hosts, switches) = draw_model(&mut rng);
        Self::befalling(seed, (model, &hosts, &switches), rng)
    }

    /// The scenario of a seed in a subnet as a fabric describes it.
    ///
    /// # Errors
    /// If the fabric is not whole, or too large.
    pub fn draw_in(fabric: &Fabric, seed: u64) -> Result<Self, SubnetError> {
        let (model, hosts, switches) = Model::of(fabric)?;
        Ok(Self::befalling(seed, (model, &hosts, &switches), ChaCha8Rng::seed_from_u64(seed)))
    }

    fn befalling(
        seed: u64,
        (model, hosts, switches): (Model, &[usize], &[usize]),
        mut rng: ChaCha8Rng,
    ) -> Self {
        let count = [1, 1, 2, 2, 3][rng.random_range(0..5)].min(hosts.len());
        let managers: Vec<_> = hosts[..count].iter().map(|&host| (host, rng.random_range(1..4))).collect();
        let noise = match rng.random_range(0..3) {
            0 => Noise::default(),
            1 => Noise { lost: 0.02, twice: 0.05, late: 0.1, garbled: 0.0 },
            // A manager that hears nothing of a master, however often it asks, takes the master's place. That
            // must be rare.
            _ => Noise { lost: 0.04, twice: 0.1, late: 0.2, garbled: 0.02 },
        };
        let between: Vec<[PortOf; 2]> = model
            .cables
            .iter()
            .filter(|(a, b)| a < b && switches.contains(&a.0) && switches.contains(&b.0))
            .map(|(&a, &b)| [a, b])
            .collect();
        let mut faults: Vec<(Instant, Fault)> = Vec::new();
        for _ in 0..rng.random_range(0..8) {
            let at = Instant::ZERO + Duration::from_millis(rng.random_range(0..TROUBLE.as_millis() as u64));
            let lasting = lasting(&mut rng);
            let switch = switches[rng.random_range(0..switches.len())];
            let host = hosts[rng.random_range(0..hosts.len())];
            let (first, then) = match rng.random_range(0..7) {
                0 | 1 if !between.is_empty() => {
                    let ends = between[rng.random_range(0..between.len())];
                    (Fault::Cut(ends[0]), Some(Fault::Mend(ends)))
                }
                2 => match model.cables.get(&(host, 1)) {
                    Some(&far) => (Fault::Cut((host, 1)), Some(Fault::Mend([(host, 1), far]))),
                    None => continue,
                },
                3 => (Fault::Reset(switch), None),
                4 => (Fault::Silent(switch, true), Some(Fault::Silent(switch, false))),
                5 => (Fault::Refuse(switch, true), Some(Fault::Refuse(switch, false))),
                _ => {
                    let manager = rng.random_range(0..managers.len());
                    (Fault::Kill(manager), Some(Fault::Start(manager)))
                }
            };
            faults.push((at, first));
            faults.extend(then.map(|then| (at + lasting, then)));
        }
        // These faults are drawn last, so that older seeds still draw all other faults as they did. Masters
        // that are apart write at the same time, and no proof counts what the other one writes, so nothing
        // else may happen meanwhile.
        let all_is_well = faults.is_empty() && noise.lost == 0.0;
        if managers.len() > 1 && (all_is_well || rng.random_bool(0.3)) {
            let at = if rng.random_bool(0.5) { 0 } else { rng.random_range(0..TROUBLE.as_millis() as u64) };
            let (at, lasting) = (Instant::ZERO + Duration::from_millis(at), lasting(&mut rng));
            let manager = rng.random_range(0..managers.len());
            let fault = |is_so| match all_is_well {
                true => Fault::Apart(is_so),
                false => Fault::Deaf(manager, is_so),
            };
            let both = [(at, fault(true)), (at + lasting, fault(false))];
            faults.extend(both);
        }
        // A cable that is cut stays cut until it is mended. The last fault of all puts everything right.
        faults.sort_by_key(|&(at, _)| at);
        Self { seed, model, managers, noise, faults }
    }

    /// The faults that strike, and when. What is mended at the end is not among them.
    pub fn faults(&self) -> impl Iterator<Item = (Instant, Fault)> {
        self.faults.iter().copied()
    }

    /// How many hosts, switches, cables and managers there are.
    pub fn size(&self) -> [usize; 4] {
        let hosts = self.model.hosts().len();
        [hosts, self.model.nodes.len() - hosts, self.model.cables.len() / 2, self.managers.len()]
    }

    /// Runs the scenario with the engines that compute tables.
    ///
    /// # Errors
    /// If something does not hold.
    pub fn run(&self, engines: Engines<'_>) -> Result<Outcome, Violation> {
        let mut world = World::new(self.model.clone(), engines, &self.managers, self.noise, self.seed);
        for &(at, fault) in &self.faults {
            world.run_until(at)?;
            world.strike(fault);
        }
        world.run_until(Instant::ZERO + TROUBLE)?;
        world.heal(&self.model);
        world.run_until(Instant::ZERO + TROUBLE + REST)?;
        world.check_well()?;
        let (written, shares) = (world.writes(), world.shares());
        let at = Instant::ZERO + TROUBLE + REST + QUIET;
        world.run_until(at)?;
        world.check_well()?;
        world.check_shares()?;
        if world.writes() != written {
            return Err(Violation { at, why: "tables are written that were right".to_owned() });
        }
        if world.shares() == shares && self.managers.len() > 1 {
            return Err(Violation { at, why: "agents that stand by look at no switches".to_owned() });
        }
        let sent = world.statuses().iter().map(|status| status.datagrams.sent).sum();
        Ok(Outcome { blocks: written, sent, shares: world.shares() })
    }
}

/// How long a fault lasts.
fn lasting(rng: &mut ChaCha8Rng) -> Duration {
    Duration::from_millis([5, 50, 300, 2000, 8000][rng.random_range(0..5)])
}

/// A subnet with its hosts and its switches: a ring, a ring with chords, or a tree with two levels.
pub(super) fn draw_model(rng: &mut ChaCha8Rng) -> (Model, Vec<usize>, Vec<usize>) {
    if rng.random_bool(0.4) {
        let count = rng.random_range(3..7);
        return (Model::ring(count), (0..count).collect(), (count..2 * count).collect());
    }
    let mut model = Model::default();
    let (count, ports) = (rng.random_range(2..7_usize), 12);
    let hosts: Vec<usize> =
        (0..rng.random_range(count..=2 * count)).map(|_| model.add(NodeKind::Adapter, 1)).collect();
    let switches: Vec<usize> = (0..count).map(|_| model.add(NodeKind::Switch, ports)).collect();
    let mut used = vec![0; count];
    let mut port = |switch: usize| {
        used[switch] += 1;
        (switches[switch], used[switch])
    };
    for (nth, &host) in hosts.iter().enumerate() {
        model.cable((host, 1), port(nth % count));
    }
    // Each switch is cabled to one before it, and some to others, so that there are circles.
    for switch in 1..count {
        model.cable(port(switch), port(rng.random_range(0..switch)));
    }
    for _ in 0..rng.random_range(0..=count) {
        let (a, b) = (rng.random_range(0..count), rng.random_range(0..count));
        if a != b {
            model.cable(port(a), port(b));
        }
    }
    (model, hosts, switches)
}
