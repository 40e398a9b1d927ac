//! The record of a run: what happened, and a digest of all of it.

use mapper_proto::Instant;
use thiserror::Error;

/// Something that happened: an agent's event or a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent<'a> {
    /// When it happened.
    pub at: Instant,
    /// The host's name, or `fault`.
    pub place: &'a str,
    /// What happened, in a word; of a fault, the fault as its file has it.
    pub what: &'a str,
    /// Details in words.
    pub detail: &'a str,
}

/// A trace that cannot be written, or that another run made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Writing or reading failed.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The error.
        source: std::io::Error,
    },
    /// A line that is no line of a trace.
    #[error("{file}:{line}: {why}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// This run does something else than the recorded one.
    #[error("{file}:{line}: the runs part here: recorded {recorded}, now {now}")]
    Diverged {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What the file has.
        recorded: String,
        /// What this run did.
        now: String,
    },
}

/// Where a record goes.
pub trait TraceSink {
    /// Something happened; `digest` covers everything up to and including it.
    ///
    /// # Errors
    /// If it cannot be written, or is not what was recorded.
    fn event(&mut self, event: &TraceEvent<'_>, digest: u64) -> Result<(), TraceError>;

    /// Says now and then how many frames have been sent and received so far.
    ///
    /// # Errors
    /// If it cannot be written, or is not what was recorded.
    fn checkpoint(&mut self, at: Instant, frames: u64, digest: u64) -> Result<(), TraceError>;

    /// The run is over.
    ///
    /// # Errors
    /// If it cannot be written, or the recorded run went on.
    fn end(&mut self, at: Instant, digest: u64) -> Result<(), TraceError>;
}

/// Keeps the digest, and tells the sink what happens.
#[derive(Default)]
pub(super) struct Recorder {
    digest: u64,
    frames: u64,
    sink: Option<Box<dyn TraceSink>>,
    /// The first error of the sink. It stops the run at the next event.
    error: Option<TraceError>,
}

impl Recorder {
    /// After how many frames a checkpoint is written, so that a replay that differs only by a frame is found
    /// near it.
    const CHECKPOINT_FRAMES: u64 = 1024;

    pub(super) fn set_sink(&mut self, sink: Box<dyn TraceSink>) {
        self.sink = Some(sink);
    }

    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) const fn take_error(&mut self) -> Option<TraceError> {
        self.error.take()
    }

    /// A frame was sent or received by a host.
    pub(super) fn frame(&mut self, at: Instant, host: u32, payload: &[u8]) {
        self.mix(at.as_nanos());
        self.mix(u64::from(host));
        self.mix_bytes(payload);
        self.frames += 1;
        if self.frames.is_multiple_of(Self::CHECKPOINT_FRAMES)
            && let Some(sink) = &mut self.sink
        {
            let result = sink.checkpoint(at, self.frames, self.digest);
            self.keep_error(result);
        }
    }

    /// An agent reported something, or a fault struck.
    pub(super) fn event(&mut self, event: &TraceEvent<'_>) {
        self.mix(event.at.as_nanos());
        for text in [event.place, event.what, event.detail] {
            self.mix_bytes(text.as_bytes());
        }
        if let Some(sink) = &mut self.sink {
            let result = sink.event(event, self.digest);
            self.keep_error(result);
        }
    }

    /// The run is over.
    pub(super) fn end(&mut self, at: Instant) -> Result<(), TraceError> {
        self.sink.take().map_or(Ok(()), |mut sink| sink.end(at, self.digest))
    }

    fn keep_error(&mut self, result: Result<(), TraceError>) {
        if let (Err(error), None) = (result, &self.error) {
            self.error = Some(error);
        }
    }

    const fn mix(&mut self, word: u64) {
        self.digest = mixed(self.digest, word);
    }

    /// Long texts are summed up in four lanes, as a processor multiplies for several of them at once.
    fn mix_bytes(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        let (rounds, rest) = bytes.as_chunks::<32>();
        let mut lanes = [0u64; 4];
        for round in rounds {
            let (words, _) = round.as_chunks::<8>();
            for (lane, &word) in lanes.iter_mut().zip(words) {
                *lane = mixed(*lane, u64::from_le_bytes(word));
            }
        }
        if !rounds.is_empty() {
            lanes.iter().for_each(|&lane| self.mix(lane));
        }
        let (words, rest) = rest.as_chunks::<8>();
        words.iter().for_each(|&word| self.mix(u64::from_le_bytes(word)));
        rest.iter().for_each(|&byte| self.mix(u64::from(byte)));
    }
}

/// Mixes a word into a sum by a rotation, an exclusive or and a multiplication. That is quick, and does not
/// withstand an attacker.
const fn mixed(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}
