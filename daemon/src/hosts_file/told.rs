//! The daemon's end of the line to the process that keeps the file of hosts' names.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use mapper_fabric::wording::first_of;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{error, warn};

use super::{KeeperReply, KeeperRequest, KeptHost};

/// How often the file is looked at though no name has changed, as others may have changed it.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How long a daemon that ends waits for the names to be taken out.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file of hosts' names that a process beside the daemon keeps.
#[derive(Debug)]
pub(crate) struct HostsFile {
    child: Child,
    requests: watch::Sender<Option<KeeperRequest>>,
    task: JoinHandle<()>,
    path: PathBuf,
    /// What came of the last request.
    reply: Rc<RefCell<KeeperReply>>,
}

impl HostsFile {
    /// Starts the process that keeps the part with this mark of the file. To be called while this process has
    /// its privileges, in a tokio `LocalSet`.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub(crate) fn open(path: &Path, mark: &str) -> io::Result<Self> {
        let (own, keepers) = StdStream::pair()?;
        own.set_nonblocking(true)?;
        let child = Command::new("/proc/self/exe")
            .args(["hosts-keeper", "--mark", mark, "--file"])
            .arg(path)
            .stdin(Stdio::from(OwnedFd::from(keepers)))
            .stdout(Stdio::null())
            .spawn()?;
        let (requests, asked) = watch::channel(None);
        let reply = Rc::new(RefCell::new(KeeperReply::default()));
        let line =
            Line { stream: BufReader::new(UnixStream::from_std(own)?), asked, reply: Rc::clone(&reply) };
        let task = tokio::task::spawn_local(line.serve(path.to_owned()));
        Ok(Self { child, requests, task, path: path.to_owned(), reply })
    }

    /// Has the file hold these hosts and no others.
    pub(crate) fn keep(&self, entries: Vec<KeptHost>) {
        self.requests.send_replace(Some(KeeperRequest::Keep(entries)));
    }

    /// What is wrong, in words.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let KeeperReply { failure, left_out } = &*self.reply.borrow();
        let path = self.path.display();
        let failure = failure.as_ref().map(|why| format!("cannot keep names in {path}: {why}"));
        let names: Vec<_> =
            left_out.iter().map(|(name, why)| format!("{} ({why})", name.escape_debug())).collect();
        let left_out =
            (!names.is_empty()).then(|| format!("left out of {path}: {}", first_of(&names, names.len())));
        failure.into_iter().chain(left_out).collect()
    }

    /// Has the names taken out of the file, and the process end.
    pub(crate) async fn close(mut self) {
        self.requests.send_replace(Some(KeeperRequest::Remove));
        if tokio::time::timeout(PATIENCE, &mut self.task).await.is_err() {
            self.task.abort();
            error!(path = %self.path.display(), "the names were not taken out in time");
            if let Err(error) = self.child.kill() {
                error!(%error, "cannot end the process that keeps them");
            }
        }
        // The process ends when its line to the daemon closes, and the task that held the line has ended.
        if let Err(error) = self.child.wait() {
            error!(%error, "the process that kept names cannot be waited for");
        }
    }
}

/// The line to the process.
struct Line {
    stream: BufReader<UnixStream>,
    asked: watch::Receiver<Option<KeeperRequest>>,
    reply: Rc<RefCell<KeeperReply>>,
}

impl Line {
    /// Passes requests on until there will be no more, or the process has ended.
    async fn serve(mut self, path: PathBuf) {
        loop {
            if let Ok(Err(_)) = tokio::time::timeout(LOOK_EVERY, self.asked.changed()).await {
                return;
            }
            let Some(request) = self.asked.borrow_and_update().clone() else { continue };
            let is_last = request == KeeperRequest::Remove;
            let reply = self.ask(&request).await.unwrap_or_else(|error| KeeperReply {
                failure: Some(format!("the process that writes it has ended: {error}")),
                ..KeeperReply::default()
            });
            self.take(reply, &path);
            if is_last {
                return;
            }
        }
    }

    async fn ask(&mut self, request: &KeeperRequest) -> io::Result<KeeperReply> {
        let mut text = serde_json::to_vec(request)?;
        text.push(b'\n');
        self.stream.write_all(&text).await?;
        let mut answer = Vec::new();
        self.stream.read_until(b'\n', &mut answer).await?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Logs what is new about the file.
    fn take(&self, reply: KeeperReply, path: &Path) {
        let before = self.reply.replace(reply);
        let reply = self.reply.borrow();
        if let Some(why) = reply.failure.as_ref().filter(|_| reply.failure != before.failure) {
            error!(path = %path.display(), "cannot keep names: {why}");
        }
        for (name, why) in reply.left_out.iter().filter(|(name, why)| before.left_out.get(*name) != Some(why))
        {
            warn!(path = %path.display(), ?name, "left out: {why}");
        }
    }
}
