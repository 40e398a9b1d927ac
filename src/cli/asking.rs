//! Commands that ask a fabric of InfiniBand, and never write to it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant as Clock};

use mapper_daemon::subnet;
use mapper_fabric::{MAX_HOSTS, MAX_XBARS};
use mapper_ib::mad::Smp;
use mapper_ib::sweep::{Found, Sweep, SweepSettings, TableReading, TablesFound};
use mapper_machine::mad_port::{AskingPort, PortName};
use mapper_proto::time::Instant;

use super::CliError;
use super::places::{self, NamedPath};

/// Longest wait in one go.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How a fabric is asked, for commands with an option `--interface`.
#[derive(Debug, clap::Args)]
pub(super) struct AskingOptions {
    /// Most questions under way at a time.
    #[arg(long, value_name = "N", default_value = "8", requires = "interface")]
    window: NonZeroUsize,
    /// How long an answer may take, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 500, requires = "interface",
          value_parser = clap::value_parser!(u32).range(1..=60_000))]
    timeout: u32,
    /// How often a question without an answer is asked again.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "interface",
          value_parser = clap::value_parser!(u32).range(..=100))]
    retries: u32,
    /// The file of the key of management, for ports that tell nothing without it.
    #[arg(long, value_name = "FILE", requires = "interface")]
    m_key_file: Option<PathBuf>,
}

impl AskingOptions {
    /// The file that is read, if one is named, with its option.
    pub(super) fn places(&self) -> Vec<NamedPath<'_>> {
        places::given(&[("--m-key-file", &self.m_key_file)])
    }
}

/// A port that a fabric is asked by.
pub(super) struct Asker<'a> {
    name: &'a PortName,
    port: AskingPort,
    settings: SweepSettings,
}

impl<'a> Asker<'a> {
    /// Opens a port.
    ///
    /// # Errors
    /// If there is no such port, this process may not use it, or the file of the key has none.
    pub(super) fn open(name: &'a PortName, options: &AskingOptions) -> Result<Self, CliError> {
        let timeout = Duration::from_millis(options.timeout.into());
        let key = options.m_key_file.as_deref().map_or(Ok(0), subnet::read_key)?;
        let settings = SweepSettings {
            window: options.window,
            timeout,
            retries: options.retries,
            max_nodes: (MAX_HOSTS + MAX_XBARS) as usize,
            key,
        };
        let port = AskingPort::open(name, timeout)?;
        Ok(Self { name, port, settings })
    }

    /// Explores the fabric.
    ///
    /// # Errors
    /// If the port is gone, or there is nothing.
    pub(super) fn explore(&self) -> Result<Found, CliError> {
        let found = self.drive(Sweep::new(self.settings))?.finish();
        if found.nodes.is_empty() {
            let why = found.problems.first().map(|problem| found.tell(problem)).unwrap_or_default();
            return Err(format!("{}: nothing was found: {why}", self.name).into());
        }
        Ok(found)
    }

    /// Reads the tables out of the switches that were found.
    ///
    /// # Errors
    /// If the port is gone.
    pub(super) fn read_tables(&self, fabric: &Found) -> Result<TablesFound, CliError> {
        Ok(self.drive(TableReading::new(self.settings, fabric))?.finish())
    }

    /// Sends what is asked, and hands on what comes, until all is answered or given up.
    fn drive<Q: Questions>(&self, mut questions: Q) -> Result<Q, CliError> {
        let start = Clock::now();
        let now = || Instant::ZERO + start.elapsed();
        let gone = |error| format!("{}: {error}", self.name);
        while !questions.is_done() {
            while let Some(question) = questions.poll_transmit(now()) {
                self.port.send(&question).map_err(gone)?;
            }
            let wait = questions.poll_timeout().map_or(MAX_WAIT, |deadline| deadline.since(now()));
            if let Some(mad) = self.port.receive(wait.min(MAX_WAIT)).map_err(gone)? {
                questions.handle_mad(&mad);
            }
            questions.handle_timeout(now());
        }
        Ok(questions)
    }
}

/// A state machine that asks a fabric, as [`Asker`] drives it.
trait Questions {
    fn is_done(&self) -> bool;
    fn poll_transmit(&mut self, now: Instant) -> Option<Smp>;
    fn poll_timeout(&self) -> Option<Instant>;
    fn handle_mad(&mut self, mad: &[u8]);
    fn handle_timeout(&mut self, now: Instant);
}

macro_rules! questions {
    ($($kind:ty),*) => {$(
        impl Questions for $kind {
            fn is_done(&self) -> bool {
                <$kind>::is_done(self)
            }

            fn poll_transmit(&mut self, now: Instant) -> Option<Smp> {
                <$kind>::poll_transmit(self, now)
            }

            fn poll_timeout(&self) -> Option<Instant> {
                <$kind>::poll_timeout(self)
            }

            fn handle_mad(&mut self, mad: &[u8]) {
                <$kind>::handle_mad(self, mad);
            }

            fn handle_timeout(&mut self, now: Instant) {
                <$kind>::handle_timeout(self, now);
            }
        }
    )*};
}

questions!(Sweep, TableReading);
