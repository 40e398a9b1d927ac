//! What an agent needs of the machine, whatever its interface.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use mapper_daemon::agent::options::Config;
use rustix::fs::Access;
use rustix::thread::{CapabilitySet, capabilities};
use socket2::{Domain, Protocol, Socket, Type};

use super::Check;

/// The kernel's device for making tap interfaces.
const TUN_DEVICE: &str = "/dev/net/tun";

pub(super) fn check(config: &Config) -> Vec<Check> {
    let mut checks = vec![check_raw_socket()];
    if config.tap.is_some() {
        checks.push(check_network_administration());
        checks.push(check_tun_device(Path::new(TUN_DEVICE)));
    }
    checks.push(check_directory("run directory", &config.service.run_dir, "--run-dir"));
    if let Some(directory) = config.map_file.as_deref().and_then(Path::parent) {
        checks.push(check_directory("map file", directory, "--map-file"));
    }
    if let Some(directory) = config.service.metrics_file.as_deref().and_then(Path::parent) {
        checks.push(check_directory("metrics file", directory, "--metrics-file"));
    }
    checks
}

fn program() -> String {
    std::env::current_exe().map_or_else(|_| "/path/to/mapper".to_owned(), |path| path.display().to_string())
}

fn check_raw_socket() -> Check {
    let name = "raw sockets";
    // The socket is opened only to see whether it may be. With protocol 0 it receives no frames.
    match Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0))) {
        Ok(_) => Check::ok(name, "may be opened (CAP_NET_RAW)"),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Check::failed(
            name,
            "may not be opened: this process lacks CAP_NET_RAW",
            format!(
                "run as root, or give the program the capability once: setcap cap_net_raw+ep {}",
                program()
            ),
        ),
        Err(error) => Check::failed(
            name,
            format!("cannot be opened: {error}"),
            "use a kernel with packet sockets (CONFIG_PACKET)",
        ),
    }
}

fn check_network_administration() -> Check {
    let name = "network administration";
    match capabilities(None) {
        Ok(sets) if sets.effective.contains(CapabilitySet::NET_ADMIN) => {
            Check::ok(name, "a tap interface may be made (CAP_NET_ADMIN)")
        }
        Ok(_) => Check::failed(
            name,
            "no tap interface may be made: this process lacks CAP_NET_ADMIN",
            format!("run as root, or: setcap cap_net_raw,cap_net_admin+ep {}", program()),
        ),
        Err(error) => Check::error(name, &io::Error::from(error)),
    }
}

fn check_tun_device(device: &Path) -> Check {
    let name = "tap device";
    let shown = device.display();
    match OpenOptions::new().read(true).write(true).open(device) {
        Ok(_) => Check::ok(name, format!("{shown} can be opened")),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Check::failed(
            name,
            format!("{shown} may not be opened by this user"),
            format!("run as root, or let this user open {shown}"),
        ),
        Err(error) => Check::failed(
            name,
            format!("{shown} cannot be opened: {error}"),
            "load the module with `modprobe tun`; in a container, pass the device in",
        ),
    }
}

/// Checks whether files can be made in a directory, or if there is none, whether it can be made.
pub(super) fn check_directory(name: &'static str, directory: &Path, option: &str) -> Check {
    let or_here = |path| if path == Path::new("") { Path::new(".") } else { path };
    let directory = or_here(directory);
    let shown = directory.display();
    let Some(there) = directory.ancestors().map(or_here).find(|ancestor| ancestor.exists()) else {
        return Check::failed(name, format!("{shown} does not exist"), format!("name another with {option}"));
    };
    if !there.is_dir() {
        let what = format!("{} is no directory", there.display());
        return Check::failed(name, what, format!("name another with {option}"));
    }
    match rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if there == directory => Check::ok(name, format!("{shown} can be written")),
        Ok(()) => Check::ok(name, format!("{shown} can be made")),
        Err(error) => Check::failed(
            name,
            format!("{} cannot be written: {error}", there.display()),
            format!("run as root, or name a directory that you may write with {option}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    #[test]
    fn a_directory_that_can_be_written_or_made_is_fine_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let outcome = |path: &Path| check_directory("x", path, "--x").status;
        assert_eq!(outcome(dir.path()), Outcome::Ok);
        assert_eq!(outcome(&dir.path().join("a").join("b")), Outcome::Ok);
        assert_eq!(outcome(Path::new("made-by-nobody")), Outcome::Ok, "below the working directory");
        assert_eq!(outcome(&file), Outcome::Failed);
        assert_eq!(outcome(&file.join("below")), Outcome::Failed);
        assert_eq!(outcome(Path::new("/proc/1/nothing")), Outcome::Failed);
    }

    #[test]
    fn a_missing_tap_device_fails_with_what_to_do() {
        let check = check_tun_device(Path::new("/nonexistent/tun"));
        assert_eq!(check.status, Outcome::Failed);
        assert!(check.fix.unwrap().contains("modprobe tun"));
    }
}
