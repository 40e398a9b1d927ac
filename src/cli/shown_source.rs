//! What `mapper view` and `mapper watch` show: a fabric, a simulation as it runs, or the agents of this machine.

use std::path::PathBuf;
use std::time::Duration;

use mapper_proto::map::Fabric;
use mapper_sim::setup::{FaultFile, Setup};
use tracing::warn;

use super::CliError;
use super::fabric_argument::FabricArgument;
use crate::view::feed::Feed;
use crate::view::source::file::{self, WatchedFile};
use crate::view::source::{agents, simulation::Simulation};

/// Options of a simulation that is shown as it runs.
#[derive(Debug, clap::Args)]
pub(super) struct SimulationArgs {
    /// Run every host's agent on the fabric in virtual time, and show how they get on.
    #[arg(long, requires = "topology")]
    sim: bool,
    /// With --sim: what goes wrong, and when, as for `mapper sim`.
    #[arg(long, value_name = "FILE", requires = "sim")]
    faults: Option<PathBuf>,
    /// With --sim: decides everything that is random.
    #[arg(long, default_value_t = 1, requires = "sim")]
    seed: u64,
    /// With --sim: how many virtual milliseconds pass in a second, if this machine is fast enough.
    #[arg(long, default_value_t = 50.0, value_name = "MS", requires = "sim", value_parser = parse_speed)]
    speed: f64,
    /// With --sim: end after this many virtual milliseconds.
    #[arg(long, default_value_t = 60_000, value_name = "MS", requires = "sim", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    limit_ms: u64,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "expected a number of milliseconds".to_owned())?;
    if speed > 0.0 && speed <= 1e6 {
        Ok(speed)
    } else {
        Err("expected more than 0, and at most 1000000".to_owned())
    }
}

/// Where what is shown comes from.
pub(super) enum ShownSource {
    /// A fabric, and the file that it was read from, if it is one.
    Fabric(Fabric, String, Option<WatchedFile>),
    /// A simulation, and how many virtual seconds pass in a second.
    Simulation(Fabric, String, Box<Setup>, f64),
    /// The agents of a run directory.
    Agents(PathBuf),
}

impl ShownSource {
    /// A fabric, or a simulation on it, of which all that can be wrong at the start is known.
    ///
    /// # Errors
    /// If the fabric or what goes wrong in it cannot be read. The error is worded for the user.
    pub(super) fn of(topology: &FabricArgument, options: &SimulationArgs) -> Result<Self, CliError> {
        let path = PathBuf::from(topology.to_string());
        let file = path.exists().then(|| WatchedFile::about_to_be_read(path));
        let (fabric, title) = (topology.load()?, topology.title());
        if !options.sim {
            return Ok(Self::Fabric(fabric, title, file));
        }
        let limit = Duration::from_millis(options.limit_ms);
        let mut setup = Setup { seed: options.seed, limit, ..Setup::default() };
        if let Some(path) = &options.faults {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            setup.faults = FaultFile { name: path.display().to_string(), text };
        }
        Simulation::new(&fabric, &setup)?;
        Ok(Self::Simulation(fabric, title, Box::new(setup), options.speed / 1e3))
    }

    /// Tells all that there is to tell, on the thread that this is called on.
    pub(super) fn tell(self, feed: &Feed) {
        match self {
            Self::Fabric(fabric, title, None) => file::tell(feed, fabric, &title, String::new()),
            Self::Fabric(fabric, title, Some(watched)) => {
                file::tell(feed, fabric.clone(), &title, "read".to_owned());
                watched.follow(feed, &title, fabric);
            }
            Self::Simulation(fabric, title, setup, speed) => {
                feed.tell_fabric(fabric.clone(), format!("{title} (simulated)"));
                let run = Simulation::new(&fabric, &setup).and_then(|run| run.run(feed, &fabric, speed));
                if let Err(error) = run {
                    warn!(%error, "the simulation ended");
                }
            }
            Self::Agents(run_dir) => {
                let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
                agents::follow(feed, &run_dir, &machine);
            }
        }
    }
}
