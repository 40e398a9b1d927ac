//! Traces of runs as files of JSON lines. The first line says what the run is. Then comes a line for each
//! event, and now and then one for the frames; the last line is for the end.
//!
//! Every line but the first carries a digest of everything before it, frames included. [`Replayer`] compares
//! a second run with a trace and stops it at the first line that differs.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use mapper_proto::Instant;
use mapper_proto::quote::{self, quoted};
use serde::{Deserialize, Serialize};

use crate::setup::Setup;
use crate::world::{TraceError, TraceEvent, TraceSink};

/// The first line of a trace: what is needed to run it again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The format of the file, which is [`Header::SCHEMA`].
    pub schema: String,
    /// What ran.
    pub recorded: Recorded,
}

/// What a trace is of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Recorded {
    /// A run of `mapper sim`.
    Run {
        /// The fabric: a generator's spec or the text of a file.
        topology: String,
        /// All that decides the run besides the fabric.
        setup: Box<Setup>,
    },
    /// The [`Scenario`](crate::search::Scenario) of this seed.
    FaultSeed(u64),
    /// A [`Scenario`](crate::search::Scenario), which is run with all its checks.
    Scenario {
        /// The text of a fabric file.
        topology: String,
        /// All that decides the run besides the fabric.
        setup: Box<Setup>,
        /// When all faults are mended, or nothing more happens.
        healed_at_ns: u64,
        /// For how long a pair of hosts may lose all frames; `None` if that does not matter.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most_gap_ns: Option<u64>,
    },
}

impl Header {
    /// The name and version of the file format.
    pub const SCHEMA: &'static str = "mapper.trace/1";

    /// The header of a run.
    pub fn new(recorded: Recorded) -> Self {
        Self { schema: Self::SCHEMA.to_owned(), recorded }
    }
}

/// A line of a trace other than the first.
#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Event { ns: u64, place: &'a str, what: &'a str, detail: &'a str, digest: String },
    Checkpoint { ns: u64, frames: u64, digest: String },
    End { ns: u64, end: bool, digest: String },
}

impl Line<'_> {
    fn text(&self) -> Result<String, std::io::Error> {
        serde_json::to_string(self).map_err(std::io::Error::other)
    }
}

fn hex(digest: u64) -> String {
    format!("{digest:016x}")
}

fn event_line<'a>(event: &TraceEvent<'a>, digest: u64) -> Line<'a> {
    let TraceEvent { at, place, what, detail } = *event;
    Line::Event { ns: at.as_nanos(), place, what, detail, digest: hex(digest) }
}

/// Writes a trace.
pub struct Writer {
    file: String,
    out: BufWriter<File>,
}

impl Writer {
    /// Begins a trace file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        let io = |source| TraceError::Io { file: file.clone(), source };
        let mut out = BufWriter::new(File::create(path).map_err(io)?);
        let first = serde_json::to_string(header).map_err(|error| io(error.into()))?;
        writeln!(out, "{first}").map_err(io)?;
        Ok(Self { file, out })
    }

    fn line(&mut self, line: &Line<'_>) -> Result<(), TraceError> {
        let result = line.text().and_then(|text| writeln!(self.out, "{text}"));
        result.map_err(|source| TraceError::Io { file: self.file.clone(), source })
    }
}

impl TraceSink for Writer {
    fn event(&mut self, event: &TraceEvent<'_>, digest: u64) -> Result<(), TraceError> {
        self.line(&event_line(event, digest))
    }

    fn checkpoint(&mut self, at: Instant, frames: u64, digest: u64) -> Result<(), TraceError> {
        self.line(&Line::Checkpoint { ns: at.as_nanos(), frames, digest: hex(digest) })
    }

    fn end(&mut self, at: Instant, digest: u64) -> Result<(), TraceError> {
        self.line(&Line::End { ns: at.as_nanos(), end: true, digest: hex(digest) })?;
        self.out.flush().map_err(|source| TraceError::Io { file: self.file.clone(), source })
    }
}

/// Compares a run with a trace.
pub struct Replayer {
    file: String,
    input: BufReader<File>,
    line: usize,
    /// Whether the file ended within the line that was read last.
    is_cut: bool,
}

impl Replayer {
    /// The most bytes of a line. A fabric of 100,000 hosts fits in the first line.
    const MAX_LINE_BYTES: u64 = 256 << 20;

    /// Opens a trace and reads what to run again.
    ///
    /// # Errors
    /// If it cannot be read or is no trace.
    pub fn open(path: &Path) -> Result<(Self, Header), TraceError> {
        let file = path.display().to_string();
        let input = File::open(path).map_err(|source| TraceError::Io { file: file.clone(), source })?;
        let mut replayer = Self { file, input: BufReader::new(input), line: 0, is_cut: false };
        let first = replayer.next_line()?;
        let header: Header = serde_json::from_str(&first)
            .map_err(|error| replayer.malformed(format!("expected the head of a trace: {error}")))?;
        if header.schema != Header::SCHEMA {
            let why = format!("expected the schema {}, found {}", Header::SCHEMA, quoted(&header.schema));
            return Err(replayer.malformed(why));
        }
        Ok((replayer, header))
    }

    fn malformed(&self, why: impl Into<String>) -> TraceError {
        let why = quote::harmless(&why.into(), quote::MAX_MESSAGE_BYTES);
        TraceError::Malformed { file: self.file.clone(), line: self.line, why }
    }

    fn next_line(&mut self) -> Result<String, TraceError> {
        let mut bytes = Vec::new();
        self.line += 1;
        let mut limited = std::io::Read::take(&mut self.input, Self::MAX_LINE_BYTES);
        let length = limited
            .read_until(b'\n', &mut bytes)
            .map_err(|source| TraceError::Io { file: self.file.clone(), source })?;
        if length as u64 == Self::MAX_LINE_BYTES {
            return Err(self.malformed(format!("a line longer than {length} bytes; expected a trace")));
        }
        self.is_cut = length > 0 && !bytes.ends_with(b"\n");
        bytes.truncate(bytes.trim_ascii_end().len());
        String::from_utf8(bytes).map_err(|_| self.malformed("this is not UTF-8, so it is no trace"))
    }

    fn compare(&mut self, line: &Line<'_>) -> Result<(), TraceError> {
        let recorded = self.next_line()?;
        let now = line.text().map_err(|source| TraceError::Io { file: self.file.clone(), source })?;
        if recorded == now {
            return Ok(());
        }
        let (recorded, now) = match recorded.is_empty() {
            true => ("nothing (the trace ends)".to_owned(), quote::harmless(&now, quote::MAX_MESSAGE_BYTES)),
            false => (where_they_part(&recorded, &now), where_they_part(&now, &recorded)),
        };
        if self.is_cut && now.starts_with(&recorded) {
            return Err(self.malformed("the file is cut off in this line; up to here the runs are the same"));
        }
        Err(TraceError::Diverged { file: self.file.clone(), line: self.line, recorded, now })
    }
}

/// The part of a line that an error message shows. It is the beginning of the line, or if both lines begin
/// alike for long, what stands around the first difference.
fn where_they_part(line: &str, other: &str) -> String {
    const BEFORE: usize = 60;
    let same = line.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let from = if same < quote::MAX_MESSAGE_BYTES / 2 { 0 } else { line.floor_char_boundary(same - BEFORE) };
    let dots = if from > 0 { ".." } else { "" };
    format!("{dots}{}", quote::harmless(&line[from..], quote::MAX_MESSAGE_BYTES))
}

impl TraceSink for Replayer {
    fn event(&mut self, event: &TraceEvent<'_>, digest: u64) -> Result<(), TraceError> {
        self.compare(&event_line(event, digest))
    }

    fn checkpoint(&mut self, at: Instant, frames: u64, digest: u64) -> Result<(), TraceError> {
        self.compare(&Line::Checkpoint { ns: at.as_nanos(), frames, digest: hex(digest) })
    }

    fn end(&mut self, at: Instant, digest: u64) -> Result<(), TraceError> {
        self.compare(&Line::End { ns: at.as_nanos(), end: true, digest: hex(digest) })?;
        let rest = self.input.fill_buf().map(|rest| !rest.is_empty());
        if rest.map_err(|source| TraceError::Io { file: self.file.clone(), source })? {
            self.line += 1;
            return Err(self.malformed("expected nothing behind the end of the trace"));
        }
        Ok(())
    }
}
