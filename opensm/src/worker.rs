//! The process that computes, as OpenSM's process sees it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, prlimit};
use thiserror::Error;

use crate::{MAX_BYTES, Misfit, Outcome, Request, TransferError, receive, send};

/// How much of the end of a worker's complaints is looked at.
const MOST_WORDS_BYTES: u64 = 64 << 10;
/// The most lines of a worker's complaints that are told.
const MOST_LINES: usize = 3;

/// A program that reads a [`Request`] and writes an [`Outcome`].
///
/// Question, answer and complaints lie in memory files: with pipes, a worker that dies early would send
/// OpenSM a SIGPIPE, which ends it.
#[derive(Debug, Clone)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// How long it may take before it is killed.
    pub limit: Duration,
}

/// Why a worker gave no answer.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// It could not be started.
    #[error("{program} cannot be started: {why}; install opensm-plugin-mapper whole, or name it by worker=")]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The system did not let it be waited for.
    #[error("the computation cannot be waited for: {0}")]
    Wait(io::Error),
    /// It took too long.
    #[error(
        "the computation did not end within {0} s and was stopped; name fewer engines (engines=) or allow more time (seconds=)"
    )]
    TooLong(u64),
    /// It crashed.
    #[error("the computation failed, {status}: {said}")]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        said: String,
    },
    /// The question could not be asked.
    #[error("the subnet {0}")]
    Question(TransferError),
    /// The answer makes no sense.
    #[error("the answer {0}")]
    Answer(TransferError),
    /// The answer is one to another question.
    #[error("the answer {0}; install opensm-plugin-mapper whole, or name its program by worker=")]
    Misfit(Misfit),
}

impl Worker {
    /// Has the worker answer.
    ///
    /// # Errors
    /// If it does not, whatever the reason: it is gone then.
    pub fn run(&self, request: &Request) -> Result<Outcome, WorkerError> {
        let mut question = memory("request").map_err(WorkerError::Wait)?;
        send(&mut question, request).map_err(WorkerError::Question)?;
        question.rewind().map_err(WorkerError::Wait)?;
        let answer = memory("answer").map_err(WorkerError::Wait)?;
        let complaints = memory("complaints").map_err(WorkerError::Wait)?;
        let handle = |file: &File| file.try_clone().map_err(WorkerError::Wait);
        let mut child = Command::new(&self.program)
            .stdin(Stdio::from(question))
            .stdout(Stdio::from(handle(&answer)?))
            .stderr(Stdio::from(handle(&complaints)?))
            // What OpenSM was made to load is not meant for the worker.
            .env_remove("LD_PRELOAD")
            .spawn()
            .map_err(|why| WorkerError::Start { program: self.program.clone(), why })?;
        // The answer lies in memory, of which one that never ends must not take all. Setting the limit fails
        // only if the worker has ended already.
        let most = Rlimit { current: Some(MAX_BYTES), maximum: Some(MAX_BYTES) };
        let _ = prlimit(Some(Pid::from_child(&child)), Resource::Fsize, most);
        let status = self.wait(&mut child)?;
        if !status.success() {
            return Err(WorkerError::Failed { status, said: last_words(complaints) });
        }
        let mut answer = answer;
        answer.rewind().map_err(WorkerError::Wait)?;
        let outcome: Outcome = receive(&mut answer).map_err(WorkerError::Answer)?;
        if let Ok(answer) = &outcome {
            answer.check(request).map_err(WorkerError::Misfit)?;
        }
        Ok(outcome)
    }

    /// Waits until it ended, or ends it. It is gone afterwards in any case.
    fn wait(&self, child: &mut Child) -> Result<ExitStatus, WorkerError> {
        let ended = ends_within(child, self.limit);
        if !matches!(ended, Ok(true)) {
            // Killing fails only if the worker has ended just now.
            let _ = child.kill();
        }
        let status = child.wait().map_err(WorkerError::Wait)?;
        match ended {
            Ok(true) => Ok(status),
            Ok(false) => Err(WorkerError::TooLong(self.limit.as_secs())),
            Err(error) => Err(WorkerError::Wait(error)),
        }
    }
}

fn ends_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let end: OwnedFd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let started = Instant::now();
    loop {
        let left = limit.saturating_sub(started.elapsed());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let mut ready = [PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)];
        match poll(&mut ready, Some(&left)) {
            Ok(count) => return Ok(count > 0),
            // A signal that was meant for OpenSM has interrupted the wait, which goes on.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn memory(name: &str) -> io::Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC)?))
}

/// The end of what it complained about: a panic's lines if there are some, else the last ones.
fn last_words(mut complaints: File) -> String {
    let mut said = Vec::new();
    let read = complaints.metadata().and_then(|file| {
        complaints.seek(SeekFrom::Start(file.len().saturating_sub(MOST_WORDS_BYTES)))?;
        complaints.take(MOST_WORDS_BYTES).read_to_end(&mut said)
    });
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if read.is_err() || lines.is_empty() {
        return "it said nothing".to_owned();
    }
    // Behind the words of a panic there may be a long backtrace.
    let panic = lines.iter().rposition(|line| line.contains(" panicked at "));
    let first = panic.unwrap_or(lines.len().saturating_sub(MOST_LINES));
    let words = lines.iter().skip(first).take(MOST_LINES).copied().collect::<Vec<_>>().join("; ");
    words.chars().filter(|c| !c.is_control()).take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer;
    use crate::request::tests::ring;

    /// What a worker that runs this script comes to.
    fn run(script: &str, limit_s: u64) -> String {
        ask(&Request::default(), script, limit_s).unwrap_err().to_string()
    }

    fn ask(request: &Request, script: &str, limit_s: u64) -> Result<Outcome, WorkerError> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("worker");
        mapper_needs::write_program(&program, &format!("#!/bin/sh\n{script}\n"));
        let worker = Worker { program, limit: Duration::from_secs(limit_s) };
        worker.run(request)
    }

    #[test]
    fn a_worker_that_fails_is_told_of() {
        assert!(run("echo broken >&2; exit 7", 60).ends_with("exit status: 7: broken"));
        assert!(run("kill -SEGV $$", 60).contains("signal: 11"));
        assert!(run("exec sleep 600", 1).contains("did not end within 1 s"));
        assert!(
            run("echo nonsense", 60).starts_with("the answer is of another version of mapper, or cut off")
        );
        assert!(run("exit 0", 60).starts_with("the answer is of another version of mapper, or cut off"));
        assert!(run("kill -KILL $$", 60).contains("signal: 9"));
        let worker = Worker { program: "/nowhere".into(), limit: Duration::from_secs(1) };
        assert!(
            worker
                .run(&Request::default())
                .unwrap_err()
                .to_string()
                .starts_with("/nowhere cannot be started")
        );
    }

    #[test]
    fn the_last_words_of_a_worker_are_told_whatever_it_said_before() {
        let warnings = "for i in $(seq 20000); do echo warning $i; done >&2";
        let told = run(&format!("{warnings}; exit 1"), 60);
        assert!(told.ends_with(": warning 19998; warning 19999; warning 20000"), "{told}");
        let panic =
            "printf \"thread 'main' panicked at a.rs:1:2:\\nit broke\\nstack backtrace:\\n 0: x\\n\" >&2";
        let told = run(&format!("{warnings}; {panic}; exit 101"), 60);
        assert!(
            told.ends_with(": thread 'main' panicked at a.rs:1:2:; it broke; stack backtrace:"),
            "{told}"
        );
    }

    #[test]
    fn answers_that_are_spoiled_or_to_another_question_are_refused() {
        let (question, other) = (ring(4), ring(5));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer");
        let mut bytes = Vec::new();
        send(&mut bytes, &answer(&question)).unwrap();
        let tell = format!("cat {}", path.display());
        std::fs::write(&path, &bytes).unwrap();
        ask(&question, &tell, 60).unwrap().unwrap();
        let error = ask(&other, &tell, 60).unwrap_err().to_string();
        assert!(
            error.starts_with("the answer has tables of 4 switches, in place of the 5 that were asked for"),
            "{error}"
        );
        for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(matches!(ask(&question, &tell, 60), Err(WorkerError::Answer(_))), "{length} bytes");
        }
    }

    #[test]
    fn an_answer_without_end_is_stopped() {
        let error = run("exec cat /dev/zero", 600);
        assert!(error.contains("signal: 25"), "SIGXFSZ: {error}");
    }
}
