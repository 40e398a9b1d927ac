//! Tests of agents that are started at an interface that has one already.

use std::path::Path;

use crate::daemon::{Daemon, cable};
use crate::{MAPPER, can_make_namespaces};

#[test]
fn two_agents_on_one_interface_are_refused_whatever_their_run_directories() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let first = Daemon::agent(&namespace, "eth1", dirs[0].path(), &[]);
    let run_dir = dirs[1].path().to_str().unwrap();
    let second = namespace
        .command(MAPPER)
        .args(["agent", "--interface", "eth1", "--run-dir", run_dir])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    let errors = String::from_utf8(second.stderr).unwrap();
    let process = format!("process {} (", first.process_id());
    assert!(errors.contains("already has an agent") && errors.contains(&process), "{errors}");
    drop(first);
    let _next = Daemon::agent(&namespace, "eth1", dirs[1].path(), &[]);
}

#[test]
fn an_agent_that_a_service_runs_is_known_to_one_that_root_starts_by_hand() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = cable();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    // Other users may not be able to run the program where it was built, so they get a copy in the directory
    // where they may make a socket.
    let program = dirs[0].path().join("mapper");
    mapper_needs::copy_program(Path::new(MAPPER), &program);
    std::fs::set_permissions(dirs[0].path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = namespace.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.args(["--inh-caps=+net_raw", "--ambient-caps=+net_raw"]).arg(&program);
    command.args(["agent", "--interface", "eth1", "--run-dir"]).arg(dirs[0].path().join("run"));
    let _service = Daemon::start_command(command, "the agent runs");
    let second = namespace
        .command(MAPPER)
        .args(["agent", "--interface", "eth1", "--run-dir"])
        .arg(dirs[1].path())
        .output()
        .unwrap();
    let errors = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{errors}");
    assert!(errors.contains("`eth1` already has an agent"), "{errors}");
}
