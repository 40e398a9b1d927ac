//! The status sockets of this machine's agents: `{unit}.sock` in the run directory.

use std::path::{Path, PathBuf};

use mapper_machine::status::{self, Question, StatusServer, StatusSocketError};

use super::Board;

/// The path of a board's status socket.
pub fn socket_path(run_dir: &Path, unit: u8) -> PathBuf {
    run_dir.join(format!("{unit}.sock"))
}

/// The board numbers that have a socket in this run directory, in order. There are none if there is no such
/// directory.
///
/// # Errors
/// If the directory cannot be read.
pub fn units(run_dir: &Path) -> Result<Vec<u8>, StatusSocketError> {
    let mut units: Vec<u8> = status::names(run_dir)?.iter().filter_map(|name| name.parse().ok()).collect();
    units.sort_unstable();
    Ok(units)
}

/// Asks the agent of a board for its status by connecting to its socket; nothing more is sent. `None` if
/// there is no socket. The answer is not waited for, so that a caller can ask all agents before it takes the
/// answers.
///
/// # Errors
/// If nobody listens, or too many wait already.
pub fn ask(run_dir: &Path, unit: u8) -> Result<Option<Question<Board>>, StatusSocketError> {
    status::ask(socket_path(run_dir, unit))
}

/// Makes the socket of a board, and the run directory if need be. The members of `group` may connect to it.
///
/// # Errors
/// If another agent has the unit, or the socket cannot be made.
pub fn bind(run_dir: &Path, unit: u8, group: Option<&str>) -> Result<StatusServer, StatusSocketError> {
    bind_at(socket_path(run_dir, unit), unit, group)
}

/// Makes another socket of a board at `path`, with the same owner and mode as [`bind`] gives the status
/// socket.
///
/// # Errors
/// If another agent has the unit, or the socket cannot be made.
pub fn bind_at(path: PathBuf, unit: u8, group: Option<&str>) -> Result<StatusServer, StatusSocketError> {
    StatusServer::bind(path, group, || format!("unit {unit}"), "--unit")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::status::Tap;
    use mapper_proto::wire::AgentState;
    use std::time::{Duration, Instant};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn a_board_is_asked_and_answers() {
        let dir = tempfile::tempdir().unwrap();
        let tap = Some(Tap { name: "fabric0".to_owned(), refused: 7, ..Tap::default() });
        let board =
            Board { uptime_ms: 5, state: AgentState::Mapping.into(), tap, ..Board::silent(3, String::new()) };
        let answer = runtime().block_on(async {
            let server = bind(dir.path(), 3, None).unwrap();
            let run_dir = dir.path().to_owned();
            let asking = tokio::task::spawn_blocking(move || {
                let deadline = Instant::now() + Duration::from_secs(60);
                ask(&run_dir, 3).unwrap().unwrap().answer(deadline)
            });
            server.accept().await.unwrap().answer(board.clone()).await;
            asking.await.unwrap().unwrap()
        });
        assert_eq!(answer, board);
    }

    #[test]
    fn a_unit_that_is_taken_is_named_and_so_is_the_option() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = runtime();
        let _inside = runtime.enter();
        let _server = bind(dir.path(), 3, None).unwrap();
        assert_eq!(units(dir.path()).unwrap(), [3]);
        let error = bind(dir.path(), 3, None).unwrap_err();
        assert!(matches!(error, StatusSocketError::Taken { .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("unit 3 is already running (") && text.contains("another --unit"), "{text}");
    }
}
