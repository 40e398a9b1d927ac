//! Why a status socket cannot be served or asked.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::codec::CodecError;

/// Why a status socket cannot be served or asked.
#[derive(Debug, Error)]
pub enum StatusSocketError {
    /// The run directory does not exist and cannot be made.
    #[error(
        "cannot make the run directory {}; run as root, or name one that you may write with --run-dir",
        path.display()
    )]
    RunDir {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The run directory cannot be read.
    #[error("cannot read the run directory {}", path.display())]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another daemon serves the socket.
    #[error("{daemon} is already running ({} answers); stop it, or choose another {option}", path.display())]
    Taken {
        /// The name of both daemons, as in "unit 3".
        daemon: String,
        /// The option that gives a daemon this name.
        option: &'static str,
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot make the status socket {}", path.display())]
    Bind {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no such group.
    #[error("there is no group {name:?} on this machine; name one of /etc/group, or its number")]
    NoGroup {
        /// The group as it was named.
        name: String,
    },
    /// Nobody listens on the socket.
    #[error("its daemon runs no more, but left its status socket {} behind", path.display())]
    LeftBehind {
        /// The socket.
        path: PathBuf,
    },
    /// The daemon does not answer.
    #[error("its daemon does not answer on {} ({why}); if it hangs, restart it", path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        why: io::Error,
    },
    /// The socket is not for this user.
    #[error("you may not ask its daemon on {}; run as root{}", path.display(), or_join(group.as_deref()))]
    Denied {
        /// The socket.
        path: PathBuf,
        /// The group that may ask, by name or number, if it can be told.
        group: Option<String>,
    },
    /// The daemon ended while it answered.
    #[error("its daemon hung up on {} before it had said all: it leaves", path.display())]
    HungUp {
        /// The socket.
        path: PathBuf,
    },
    /// What the daemon says is not the JSON that was asked for.
    #[error("what listens on {} tells no {wanted}; the daemon and this program must be of one version", path.display())]
    NotJson {
        /// The socket.
        path: PathBuf,
        /// What was expected, in a word.
        wanted: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// What the daemon sent is no status.
    #[error("what listens on {} is not understood", path.display())]
    Garbled {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        source: CodecError,
    },
}

fn or_join(group: Option<&str>) -> String {
    group.map_or_else(String::new, |group| format!(", or join the group {group}"))
}
