//! `mapper trace`, `mapper ping` and `mapper bandwidth`: measure the ways from this machine to another host, by its agents.

mod describe;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mapper_daemon::agent::status::{
    AgentRequest, Answered, Bandwidths, MAX_SOUNDED_BYTES, Pinged, Traced, requests_socket_path, units,
};
use mapper_machine::options::{Bounded, default_run_dir};
use mapper_machine::status as sockets;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::nobody_there::no_agent;
use super::{CliError, Format, output};

/// How long an agent may take to answer beside what it waits for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the trains of a measurement take at most: as many as there may be, one after the other.
const MEASURES: Duration = Duration::from_secs(60);

/// The host that is measured, and who measures.
#[derive(Debug, clap::Args)]
pub struct Asked {
    /// What the host is called, or its MAC, or an address of its on the fabric.
    #[arg(value_name = "HOST|ADDRESS")]
    host: String,
    /// Ask the agent of this board number alone [default: all of this machine].
    #[arg(short = 'b', long, value_name = "BOARD")]
    unit: Option<u8>,
    /// Directory of the status sockets.
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

/// How long frames are.
#[derive(Debug, clap::Args)]
pub struct Length {
    /// How long frames are on cables, in bytes behind the Ethernet header, as MTUs are; as short as can be without it. Longer
    /// ones than a cable on a way carries do not come back. The agents' frames get shorter by the part of the route that is
    /// behind them, a byte or two a crossbar.
    #[arg(short = 's', long, value_name = "BYTES")]
    size: Option<Bounded<64, 65_535>>,
}

impl Length {
    fn frame_bytes(&self) -> Result<u16, std::num::TryFromIntError> {
        self.size.map_or(Ok(0), |size| size.get().try_into())
    }
}

/// Options of `mapper trace`.
#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    length: Length,
}

/// Options of `mapper ping`.
#[derive(Debug, clap::Args)]
pub struct PingArgs {
    #[command(flatten)]
    asked: Asked,
    /// How many frames go along each way.
    #[arg(short = 'c', long, value_name = "N", default_value = "10")]
    count: Bounded<1, 1000>,
    /// The time from one to the next, in milliseconds; all within a minute.
    #[arg(short = 'i', long, value_name = "MS", default_value = "100")]
    interval_ms: Bounded<1, 60_000>,
    #[command(flatten)]
    length: Length,
}

/// Options of `mapper bandwidth`.
///
/// A train of packets as long as the way carries is sent as fast as this host can. How far apart they arrive tells
/// what the slowest part of the way carries of single packets, their headers of IP counted. Where this host can send
/// no faster, the figure is this host's: some gigabits a second with packets of 1500 bytes. TCP may get more, as
/// kernels and network cards forward its packets many at once. Traffic of others on the way makes the figure lower.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct BandwidthArgs {
    #[command(flatten)]
    asked: Asked,
    /// How many trains go along each way.
    #[arg(short = 'c', long, value_name = "N", default_value = "5")]
    count: Bounded<1, 50>,
    /// How many packets a train has.
    #[arg(long, value_name = "N", default_value = "100")]
    packets: Bounded<2, 200>,
}

#[derive(Serialize)]
struct SoundingsJson<'a, T> {
    schema: &'static str,
    boards: &'a [MeasuredByBoard<T>],
}

/// What one agent measured.
#[derive(Serialize)]
struct MeasuredByBoard<T> {
    unit: u8,
    #[serde(flatten)]
    measured: T,
}

/// Runs `mapper trace`. The exit status is 1 if the host answers along no way.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn trace(TraceArgs { asked, length }: &TraceArgs, format: Format) -> Result<ExitCode, CliError> {
    let request = AgentRequest::Trace { host: asked.host.clone(), frame_bytes: length.frame_bytes()? };
    let boards: Vec<MeasuredByBoard<Traced>> = asked.ask(&request, Duration::ZERO, "trace of a route")?;
    let answers = |traced: &Traced| {
        let hosts = traced.ways.iter().filter_map(|way| way.hops.last());
        hosts.map(|host| host.received).sum::<usize>() > 0
    };
    let is_reached = boards.iter().any(|board| answers(&board.measured));
    print(&boards, "mapper.trace/1", format, describe::traced)?;
    Ok(if is_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs `mapper ping`. The exit status is 1 if nothing came back.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn ping(
    PingArgs { asked, count, interval_ms, length }: &PingArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let (count, interval_ms) = (count.get(), interval_ms.get());
    let (host, frame_bytes) = (asked.host.clone(), length.frame_bytes()?);
    let request = AgentRequest::Ping { host, count: u16::try_from(count)?, interval_ms, frame_bytes };
    let lasts = Duration::from_millis(interval_ms.into()) * count;
    let boards: Vec<MeasuredByBoard<Pinged>> = asked.ask(&request, lasts, "round trips")?;
    let is_answered = boards.iter().any(|board| board.measured.ways.iter().any(|way| way.received > 0));
    print(&boards, "mapper.ping/1", format, describe::pinged)?;
    Ok(if is_answered { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs `mapper bandwidth`. The exit status is 1 if no way told what it carries.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn bandwidth(
    BandwidthArgs { asked, count, packets }: &BandwidthArgs,
    format: Format,
) -> Result<ExitCode, CliError> {
    let (trains, packets) = (u16::try_from(count.get())?, u16::try_from(packets.get())?);
    let request = AgentRequest::Bandwidth { host: asked.host.clone(), trains, packets };
    let boards: Vec<MeasuredByBoard<Bandwidths>> = asked.ask(&request, MEASURES, "bandwidth")?;
    let tells = boards.iter().any(|board| board.measured.ways.iter().any(|way| way.median_mbps.is_some()));
    print(&boards, "mapper.bandwidth/1", format, describe::bandwidths)?;
    Ok(if tells { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Asked {
    /// Has the agents of this machine measure, one after the other, as they may share cables.
    fn ask<T: DeserializeOwned>(
        &self,
        request: &AgentRequest,
        lasts: Duration,
        wanted: &'static str,
    ) -> Result<Vec<MeasuredByBoard<T>>, CliError> {
        let run_dir = self.run_dir.clone().unwrap_or_else(default_run_dir);
        let asked = self.unit.map_or_else(|| units(&run_dir), |unit| Ok(vec![unit]))?;
        let (mut boards, mut refused) = (Vec::new(), None);
        for unit in asked {
            match ask_unit(&run_dir, unit, request, lasts, wanted)? {
                Some(Answered::Measured(measured)) => boards.push(MeasuredByBoard { unit, measured }),
                Some(Answered::Refused(why)) => refused = refused.or(Some(why)),
                None => {}
            }
        }
        match refused {
            Some(why) if boards.is_empty() => Err(why.into()),
            None if boards.is_empty() => Err(no_agent(self.unit, &run_dir).into()),
            _ => Ok(boards),
        }
    }
}

/// Has one agent measure; `None` if there is none.
fn ask_unit<T: DeserializeOwned>(
    run_dir: &Path,
    unit: u8,
    request: &AgentRequest,
    lasts: Duration,
    wanted: &'static str,
) -> Result<Option<Answered<T>>, CliError> {
    let Some(question) = sockets::ask(requests_socket_path(run_dir, unit))? else { return Ok(None) };
    let deadline = Instant::now() + lasts + PATIENCE;
    Ok(Some(question.request(request)?.answer_json(deadline, MAX_SOUNDED_BYTES, wanted)?))
}

fn print<T: Serialize>(
    boards: &[MeasuredByBoard<T>],
    schema: &'static str,
    format: Format,
    describe: impl Fn(u8, &T) -> String,
) -> Result<(), CliError> {
    let text = match format {
        Format::Json => serde_json::to_string_pretty(&SoundingsJson { schema, boards })? + "\n",
        Format::Text => boards.iter().map(|board| describe(board.unit, &board.measured)).collect(),
    };
    output::print(&text)
}
