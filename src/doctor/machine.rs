//! What an agent needs of the machine, whatever its interface.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mapper_daemon::agent::options::Config;
use rustix::fs::Access;
use rustix::thread::{CapabilitySet, capabilities};
use socket2::{Domain, Protocol, Socket, Type};

use super::Check;

/// The kernel's device for making tap interfaces.
const TUN_DEVICE: &str = "/dev/net/tun";

/// The user whom the package's daemons run as.
const PACKAGES_USER: &str = "mapper";

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
    let mapper = fs::read_to_string("/etc/passwd").ok().and_then(|users| number_of(PACKAGES_USER, &users));
    if let (Some(key_file), Some(mapper)) = (&config.key_file, mapper) {
        checks.extend(check_key_owner(key_file, mapper));
    }
    checks
}

/// The number of a user, by the text of `/etc/passwd`.
fn number_of(name: &str, users: &str) -> Option<u32> {
    let mut words = users.lines().map(|line| line.split(':'));
    words.find_map(|mut words| (words.next()? == name).then(|| words.nth(1)?.parse().ok()).flatten())
}

/// Says that the package's daemons, which run as the user of this number, cannot read the key file, if that is another's. Whoever
/// runs this may well read it.
fn check_key_owner(key_file: &Path, mapper: u32) -> Option<Check> {
    let owner = fs::metadata(key_file).ok()?.uid();
    let path = key_file.display();
    (owner != mapper).then(|| {
        let what = format!(
            "{path} belongs to user number {owner}, so the package's daemons, which run as user {PACKAGES_USER}, cannot read it"
        );
        Check::warning("key file", what, format!("if they are to use it, `chown {PACKAGES_USER} {path}`"))
    })
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
    fn a_key_file_that_the_packages_daemons_cannot_read_is_named() {
        let users = "root:x:0:0:root:/root:/bin/bash\nmapper:x:108:114::/var/lib/mapper:/usr/sbin/nologin\n";
        assert_eq!([number_of("mapper", users), number_of("map", users)], [Some(108), None]);
        let file = tempfile::NamedTempFile::new().unwrap();
        let owner = file.as_file().metadata().unwrap().uid();
        assert_eq!(check_key_owner(file.path(), owner), None);
        let check = check_key_owner(file.path(), owner + 1).unwrap();
        assert!(check.fix.unwrap().contains("chown mapper "));
        assert_eq!(check_key_owner(Path::new("/nonexistent/key"), 108), None);
    }

    #[test]
    fn a_missing_tap_device_fails_with_what_to_do() {
        let check = check_tun_device(Path::new("/nonexistent/tun"));
        assert_eq!(check.status, Outcome::Failed);
        assert!(check.fix.unwrap().contains("modprobe tun"));
    }
}
