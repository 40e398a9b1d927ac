//! The process that writes the file of hosts' names.
//!
//! The daemon gives up its privileges as soon as it runs, and the file belongs to root. So the daemon starts this
//! process before that. It keeps the one privilege to write files of others, listens to nobody but the daemon, and
//! writes nothing but names and addresses into the marked part: a daemon that somebody has taken over gains by it
//! what names stand there, and no more. A descriptor that the daemon keeps open would not do: programs replace
//! the file as a whole, and the daemon would go on in the old one.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use mapper_fabric::wording::with_causes;
use mapper_machine::foreign_file;
use mapper_machine::privileges::{self, Needs, PrivilegesError};
use mapper_machine::signals::Signals;
use thiserror::Error;

use super::block::Around;
use super::{KeeperReply, KeeperRequest, KeptHost};

/// The most bytes of a request, which is more than 65,535 hosts take.
const MOST_BYTES: u64 = 128 << 20;

/// Why the process cannot do its work.
#[derive(Debug, Error)]
pub enum KeeperError {
    /// The process cannot give up the privileges that it does not need.
    #[error(transparent)]
    Privileges(#[from] PrivilegesError),
    /// It was not started by a daemon, or the line to the daemon is broken.
    #[error("cannot hear or answer the daemon: this command is one that a daemon starts")]
    Line(#[from] io::Error),
}

/// Keeps the part of the file with this mark as the daemon says that is at the other end of standard input,
/// until that has ended.
///
/// # Errors
/// If privileges cannot be given up, or the line is broken.
pub fn run(path: &Path, mark: &str) -> Result<(), KeeperError> {
    privileges::give_up_all_but(Needs { files: true, ..Needs::default() })?;
    // A signal to stop may go to all processes of the service. This one ends when the daemon does, as the
    // daemon may still have it take the names out: so it takes note of signals, and does nothing about them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _signals = runtime.block_on(async { Signals::new() })?;
    let line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut answers = line.try_clone()?;
    let mut requests = BufReader::new(line);
    loop {
        let mut text = Vec::new();
        (&mut requests).take(MOST_BYTES).read_until(b'\n', &mut text)?;
        if text.last() != Some(&b'\n') {
            return Ok(());
        }
        let mut answer = serde_json::to_vec(&answer(path, mark, &text)).map_err(io::Error::from)?;
        answer.push(b'\n');
        answers.write_all(&answer)?;
    }
}

fn answer(path: &Path, mark: &str, request: &[u8]) -> KeeperReply {
    let done = match serde_json::from_slice(request) {
        Ok(KeeperRequest::Keep(entries)) => keep(path, mark, &entries),
        Ok(KeeperRequest::Remove) => remove(path, mark),
        Err(error) => Err(error.into()),
    };
    done.unwrap_or_else(|error| KeeperReply { failure: Some(with_causes(&error)), ..KeeperReply::default() })
}

fn keep(path: &Path, mark: &str, entries: &[KeptHost]) -> io::Result<KeeperReply> {
    let mut reply = KeeperReply::default();
    foreign_file::change(path, |text| {
        let (text, left_out) = Around::of(text, mark).map_err(io::Error::other)?.with(entries);
        reply.left_out = left_out;
        Ok(text)
    })?;
    Ok(reply)
}

fn remove(path: &Path, mark: &str) -> io::Result<KeeperReply> {
    foreign_file::change(path, |text| Ok(Around::of(text, mark).map_err(io::Error::other)?.without()))?;
    Ok(KeeperReply::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_change_the_file_and_what_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        std::fs::write(&path, "127.0.0.1 localhost\n").unwrap();
        let ask = |request: &KeeperRequest| answer(&path, "fabric0", &serde_json::to_vec(request).unwrap());
        let name = "n1".to_owned();
        let entry = KeptHost { name, addresses: vec!["10.1.0.1".parse().unwrap()], is_own: false };
        assert_eq!(ask(&KeeperRequest::Keep(vec![entry])), KeeperReply::default());
        assert!(std::fs::read_to_string(&path).unwrap().contains("10.1.0.1\tn1.fabric n1\n"));
        assert!(answer(&path, "fabric0", b"{\"Keep\":[{}]}").failure.is_some());
        assert_eq!(ask(&KeeperRequest::Remove), KeeperReply::default());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "127.0.0.1 localhost\n");
        std::fs::write(&path, "# mapper fabric0 begin\n").unwrap();
        let failure = ask(&KeeperRequest::Keep(Vec::new())).failure.unwrap();
        assert!(failure.starts_with("line 1 is a mark"), "{failure}");
    }
}
