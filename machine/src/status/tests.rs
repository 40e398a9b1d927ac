//! Tests of both ends of a status socket.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::unistd::Group;

use super::question::group_of;
use super::server::group_id;
use super::*;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn socket_path(run_dir: &Path) -> PathBuf {
    run_dir.join("0.sock")
}

fn bind(run_dir: &Path, group: Option<&str>) -> Result<StatusServer, StatusSocketError> {
    StatusServer::bind(socket_path(run_dir), group, || "unit 0".to_owned(), "--unit")
}

fn fetch(run_dir: &Path) -> Result<Option<String>, StatusSocketError> {
    let deadline = Instant::now() + Duration::from_secs(60);
    ask(socket_path(run_dir))?.map(|question| question.answer(deadline)).transpose()
}

#[test]
fn asks_and_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = dir.path().join("run");
    let status = "mapping".to_owned();
    let answer = runtime().block_on(async {
        let server = bind(&run_dir, None).unwrap();
        let asked_dir = run_dir.clone();
        let asking = tokio::task::spawn_blocking(move || fetch(&asked_dir));
        server.accept().await.unwrap().answer(status.clone()).await;
        asking.await.unwrap().unwrap()
    });
    assert_eq!(answer, Some(status));
    assert!(names(&run_dir).unwrap().is_empty(), "the socket goes with the server");
}

#[test]
fn a_socket_is_taken_while_its_daemon_runs_and_free_when_that_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let _inside = runtime.enter();
    let server = bind(dir.path(), None).unwrap();
    assert!(matches!(bind(dir.path(), None), Err(StatusSocketError::Taken { .. })));
    drop(server);
    assert_eq!(fetch(dir.path()).unwrap(), None);

    drop(std::os::unix::net::UnixListener::bind(socket_path(dir.path())).unwrap());
    assert_eq!(names(dir.path()).unwrap(), ["0"]);
    assert!(matches!(fetch(dir.path()), Err(StatusSocketError::LeftBehind { .. })));
    bind(dir.path(), None).unwrap();
}

#[test]
fn who_listens_but_says_nothing_or_nonsense_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let listener = std::os::unix::net::UnixListener::bind(socket_path(dir.path())).unwrap();
    let answer = || ask::<String>(socket_path(dir.path())).unwrap().unwrap();
    assert!(matches!(answer().answer(Instant::now()), Err(StatusSocketError::Silent { .. })));
    drop(listener.accept().unwrap());

    let question = answer();
    listener.accept().unwrap().0.write_all(b"nonsense, and more of it").unwrap();
    let later = Instant::now() + Duration::from_secs(60);
    assert!(matches!(question.answer(later), Err(StatusSocketError::Garbled { .. })));
}

#[test]
fn the_socket_lets_in_its_group_only() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = runtime();
    let _inside = runtime.enter();
    let own = rustix::process::getegid().as_raw();
    for (group, gid) in [(None, own), (Some(own.to_string()), own)] {
        let _server = bind(dir.path(), group.as_deref()).unwrap();
        let metadata = std::fs::metadata(socket_path(dir.path())).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.gid()), (0o660, gid));
    }
    let root = Group::from_gid(0.into()).unwrap().unwrap().name;
    assert!(matches!(group_id(&root, |source| panic!("{source}")), Ok(0)));
    let error = bind(dir.path(), Some("no-such-group")).unwrap_err();
    assert!(matches!(error, StatusSocketError::NoGroup { .. }), "{error}");
}

#[test]
fn an_error_says_once_what_is_wrong_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let _stuck = std::os::unix::net::UnixListener::bind(socket_path(dir.path())).unwrap();
    let question = ask::<String>(socket_path(dir.path())).unwrap().unwrap();
    assert_eq!(question.process_id(), Some(std::process::id().cast_signed()));
    let error = question.answer(Instant::now()).unwrap_err();
    assert!(error.to_string().ends_with("(timed out); if it hangs, restart it"), "{error}");
    assert!(std::error::Error::source(&error).is_none());
    assert_eq!(group_of(Path::new("/proc")), None);
    let denied = |group| StatusSocketError::Denied { path: "/run/0.sock".into(), group }.to_string();
    let text = "you may not ask its daemon on /run/0.sock; run as root";
    assert_eq!(denied(None), text);
    assert_eq!(denied(Some("fabric".to_owned())), format!("{text}, or join the group fabric"));
}

#[test]
fn no_directory_is_no_daemons() {
    assert!(names(Path::new("/nonexistent/mapper")).unwrap().is_empty());
    assert_eq!(fetch(Path::new("/nonexistent/mapper")).unwrap(), None);
}
