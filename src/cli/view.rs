//! `mapper view`: shows a fabric in a browser.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use mapper_machine::options::default_run_dir;

use super::fabric_argument::{FORMS, FabricArgument};
use super::shown_source::{ShownSource, SimulationArgs};
use super::{CliError, Format, UsageError, output};
use crate::view::feed::Feed;
use crate::view::server::{Access, bind, serve};

/// The fewest letters of a token: nobody can try as many as these may be.
const LEAST_TOKEN: usize = 16;
/// The word for a token that is made at the start.
const MAKE_TOKEN: &str = "new";

/// Options of `mapper view`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(help = format!("The fabric: {FORMS}; a file is read again whenever it changes"))]
    #[arg(value_name = "TOPOLOGY", required_unless_present = "live")]
    topology: Option<FabricArgument>,
    /// Show the maps that the agents of this machine hold, and how the hosts in them are.
    #[arg(long, conflicts_with_all = ["topology", "sim"])]
    live: bool,
    #[command(flatten)]
    simulation: SimulationArgs,
    /// With --live: directory of the status sockets. [default: $MAPPER_RUN_DIR, or /run/mapper]
    #[arg(long, value_name = "DIR", requires = "live")]
    run_dir: Option<PathBuf>,
    /// The address to serve the page on; port 0 takes any that is free. Other addresses than the loopback ones need --token.
    #[arg(long, default_value = "127.0.0.1:8642", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    /// Answer only who has the token that is the first line of this file, or a new one if FILE is `new`.
    ///
    /// The page asks for it. A new one is printed as a part of the page's address that browsers send to nobody.
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
}

/// Runs `mapper view`, until it is ended from outside.
///
/// # Errors
/// If there is no fabric, or the address cannot be served. The error is worded for the user.
pub fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let token = args.token.as_deref().map(token).transpose()?;
    if token.is_none() && !args.listen.ip().is_loopback() {
        let why =
            "is no loopback address, so --token is needed: the page shows the fabric to whoever can reach it";
        return Err(UsageError(format!("{} {why}", args.listen.ip())).into());
    }
    let feed = Arc::new(Feed::new(u32::from_ne_bytes(random()?)));
    let source = match &args.topology {
        Some(topology) => ShownSource::of(topology, &args.simulation)?,
        None => ShownSource::Agents(args.run_dir.clone().unwrap_or_else(default_run_dir)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = bind(args.listen).map_err(|error| {
            format!("cannot serve the page on {}: {error}; name another address with --listen", args.listen)
        })?;
        let address = listener.local_addr()?;
        let teller = Arc::clone(&feed);
        std::thread::Builder::new().name("source".to_owned()).spawn(move || source.tell(&teller))?;
        announce(address, token.as_deref().filter(|_| is_new(args)), format)?;
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        serve(listener, feed, Access::new(address, token.as_deref(), machine)).await;
        Ok(ExitCode::SUCCESS)
    })
}

fn is_new(args: &Args) -> bool {
    args.token.as_deref() == Some(Path::new(MAKE_TOKEN))
}

/// Says where the page is.
fn announce(address: SocketAddr, token: Option<&str>, format: Format) -> Result<(), CliError> {
    let token = token.map(|token| format!("#token={token}")).unwrap_or_default();
    let url = format!("http://{address}/{token}");
    output::print(&match format {
        Format::Text => format!("{url}\n"),
        Format::Json => format!("{}\n", serde_json::json!({ "schema": "mapper.view/1", "url": url })),
    })
}

/// The token of a file, or a new one.
fn token(path: &Path) -> Result<String, CliError> {
    if path == Path::new(MAKE_TOKEN) {
        return Ok(random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect());
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the token: {}: {error}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.len() < LEAST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let path = path.display();
        return Err(format!(
            "{path}:1: a token has {LEAST_TOKEN} or more printable ASCII characters without spaces"
        )
        .into());
    }
    Ok(token.to_owned())
}

/// Bytes that nobody can guess.
fn random<const COUNT: usize>() -> Result<[u8; COUNT], CliError> {
    let mut bytes = [0; COUNT];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_those_that_are_made_differ() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, "short\n").unwrap();
        assert!(token(&path).unwrap_err().to_string().contains("16 or more"));
        std::fs::write(&path, "0123456789abcdef\nrest").unwrap();
        assert_eq!(token(&path).unwrap(), "0123456789abcdef");
        let new = || token(Path::new(MAKE_TOKEN)).unwrap();
        assert!(new().len() == 32 && new() != new());
    }
}
