//! The status sockets of this machine's crossbars: `xbar-{name}.sock` in the run directory.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use mapper_fabric::wording::with_causes;
use tracing::debug;

use super::{PortStatus, Switch, XbarStatus};
use mapper_machine::status::{self, Question, StatusServer, StatusSocketError};

/// What the names of crossbars' sockets begin with.
const PREFIX: &str = "xbar-";

/// The path of a crossbar's status socket.
pub fn socket_path(run_dir: &Path, name: &str) -> PathBuf {
    run_dir.join(format!("{PREFIX}{name}.sock"))
}

/// The names of the crossbars that have a socket in this run directory, in order. There are none if there is
/// no such directory.
///
/// # Errors
/// If the directory cannot be read.
pub fn names(run_dir: &Path) -> Result<Vec<String>, StatusSocketError> {
    let sockets = status::names(run_dir)?;
    Ok(sockets.iter().filter_map(|socket| socket.strip_prefix(PREFIX)).map(str::to_owned).collect())
}

/// Makes the socket of a crossbar, and the run directory if need be. The members of `group` may connect to
/// it.
///
/// # Errors
/// If another crossbar serves the socket, or the socket cannot be made.
pub fn bind(run_dir: &Path, name: &str, group: Option<&str>) -> Result<StatusServer, StatusSocketError> {
    StatusServer::bind(socket_path(run_dir, name), group, || format!("crossbar `{name}`"), "--name")
}

/// Tells each client the status of the crossbar, for ever. It must run in a tokio `LocalSet`.
pub async fn serve(server: StatusServer, switch: Rc<Switch>) {
    loop {
        match server.accept().await {
            Ok(client) => {
                let mut status = switch.status();
                status.ports = status.ports.into_iter().map(PortStatus::with_rate).collect();
                drop(tokio::spawn(client.answer(status)));
            }
            Err(error) => debug!(%error, "cannot accept on the status socket"),
        }
    }
}

/// Asks all crossbars of a run directory at once. The answers also list a crossbar that does not answer
/// before `deadline`, and say why it did not.
///
/// # Errors
/// If the directory cannot be read.
pub fn ask_all(run_dir: &Path, deadline: Instant) -> Result<Answers, StatusSocketError> {
    let mut asked = Vec::new();
    let mut denied = false;
    for name in names(run_dir)? {
        // A crossbar that has ended since the directory was read has no socket any more, and is left out.
        if let Some(question) = status::ask(socket_path(run_dir, &name)).transpose() {
            denied |= matches!(question, Err(StatusSocketError::Denied { .. }));
            asked.push((name, question));
        }
    }
    let answers = asked.into_iter().map(|(name, question)| {
        let answer = question.and_then(|question: Question<XbarStatus>| question.answer(deadline));
        answer.unwrap_or_else(|error| XbarStatus::silent(&name, with_causes(&error)))
    });
    Ok(Answers { xbars: answers.collect(), denied })
}

/// The answers of the crossbars of a run directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answers {
    /// The crossbars, in the order of their names.
    pub xbars: Vec<XbarStatus>,
    /// Whether one of them may not be asked by this user.
    pub denied: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn crossbars_are_told_from_agents_and_those_that_ended_say_so() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["0.sock", "xbar-a.sock", "xbar-b.lock"] {
            drop(UnixListener::bind(dir.path().join(name)).unwrap());
        }
        assert_eq!(names(dir.path()).unwrap(), ["a"]);
        let xbars = ask_all(dir.path(), Instant::now()).unwrap().xbars;
        assert_eq!(xbars.len(), 1);
        assert!(xbars[0].no_answer.as_ref().unwrap().contains("runs no more"), "{xbars:?}");
    }

    #[test]
    fn a_name_is_taken_while_its_crossbar_runs() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let server = bind(dir.path(), "a", None).unwrap();
        let error = bind(dir.path(), "a", None).unwrap_err().to_string();
        assert!(error.contains("crossbar `a` is already running"), "{error}");
        bind(dir.path(), "b", None).unwrap();
        drop(server);
        bind(dir.path(), "a", None).unwrap();
    }
}
