//! `mapper node`.

use std::path::PathBuf;
use std::process::ExitCode;

use mapper_daemon::agent::driver;
use mapper_daemon::agent::options::{Options, Source};

use super::{CliError, Format, agent};

/// Options of `mapper node`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The network interfaces that are cabled to other nodes, crossbars or hosts, as ports 1, 2, ..
    /// of this machine's own crossbar. A pattern such as 'eth*' takes all that match, now and as they
    /// come, but tap, wireless and bridged interfaces and those that the default route leads to. The agent is
    /// at the port behind the last of them; ports that come later are behind it.
    #[arg(
        long,
        alias = "port",
        value_name = "IF,..",
        value_delimiter = ',',
        required_unless_present = "config"
    )]
    ports: Option<Vec<String>>,
    /// Read options from this file, in the manner of mapper.toml. Of a directory, read mapper.toml and
    /// over it node.toml, if they are there. The command line wins. SIGHUP reads it again: ports come and
    /// go, and the others go on.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// Runs `mapper node`. It prints what `mapper agent` prints.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: Args, format: Format) -> Result<ExitCode, CliError> {
    let line = Options { ports: args.ports, ..args.options };
    agent::finish(driver::run(Source::node(line, args.config))?, format)
}
