//! Says to all daemons of this network namespace that one of them has the kernel carry packets, so that there is only one.
//!
//! All objects of this project have one protocol number, whichever daemon made them. So a daemon that finds some and does not
//! use the kernel itself takes them for what an earlier run left, unless another one uses it; and two that use it would each
//! take away the objects of the other without end. So the one that does holds an abstract unix socket. Such names belong to the
//! network namespace, as forwarding tables do, and the kernel releases them when the process ends, however it ends. Older
//! versions held names that begin alike.
//!
//! Any user may hold such a name. So it counts only of a process that may change forwarding tables.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::process::geteuid;

use super::KernelError;
use crate::interface_lock::{Holder, holder_of};

/// What the names begin with.
const PREFIX: &str = "mapper/kernel/";
/// The name that one daemon holds.
const OWN: &str = "mapper/kernel/owner";
/// The sockets of this thread's network namespace. Abstract names begin with `@` there.
const SOCKETS: &str = "/proc/thread-self/net/unix";
/// The capability that it takes to change forwarding tables, by its number.
const NET_ADMIN: u32 = 12;

/// Held as long as a daemon has the kernel carry packets.
#[derive(Debug)]
pub struct InUse {
    /// It accepts no connection: whoever connects learns from the kernel who listens. `None` if somebody holds the name who may
    /// not change tables, which keeps nobody from using the kernel.
    _held: Option<UnixListener>,
}

impl InUse {
    /// Says that this process uses the kernel.
    ///
    /// # Errors
    /// If another daemon does. That nothing can be said or known of it is no error: the kernel carries packets all the same.
    pub fn say() -> Result<Self, KernelError> {
        let bind = || UnixListener::bind_addr(&SocketAddr::from_abstract_name(OWN)?);
        let is_used = is_in_use().unwrap_or(false);
        // Another may have said so since, and the name is free if it ended since.
        let held = if is_used { None } else { bind().ok() };
        if held.is_none() && is_in_use().unwrap_or(false) {
            return Err(KernelError::Owned { what: "the kernel's forwarding".to_owned() });
        }
        Ok(Self { _held: held.or_else(|| bind().ok()) })
    }
}

/// Whether a daemon of this network namespace has the kernel carry packets.
///
/// # Errors
/// If the kernel does not tell.
pub fn is_in_use() -> io::Result<bool> {
    let sockets = String::from_utf8_lossy(&std::fs::read(SOCKETS)?).into_owned();
    for name in names(&sockets) {
        if holder_of(name)?.is_some_and(may_change_tables) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The names in this list that say so.
fn names(sockets: &str) -> impl Iterator<Item = &str> {
    // The columns are: Num RefCount Protocol Flags Type St Inode Path.
    let paths = sockets.lines().filter_map(|line| line.split_whitespace().nth(7)?.strip_prefix('@'));
    paths.filter(|name| name.starts_with(PREFIX))
}

/// Whether a process may change forwarding tables. One of which that is not known may.
fn may_change_tables(holder: Holder) -> bool {
    let Some((process, user)) = holder.process_and_user() else { return true };
    if user == 0 || user == geteuid().as_raw() {
        return true;
    }
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    has_capability(&status).unwrap_or(true)
}

/// Whether a process with this `/proc/PID/status` has the capability.
fn has_capability(status: &str) -> Option<bool> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let all = u64::from_str_radix(line.trim(), 16).ok()?;
    Some(all >> NET_ADMIN & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_so_are_found_among_all_sockets() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 34105 @mapper/kernel/77\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 34106 @mapper/interface/eth1\n\
                       0000000000000000: 00000003 00000000 00000000 0001 03 34107\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 34108 /run/mapper/kernel/7\n";
        assert_eq!(names(sockets).collect::<Vec<_>>(), ["mapper/kernel/77"]);
        assert_eq!(names("nonsense\n\n").count(), 0);
    }

    #[test]
    fn who_may_change_tables_is_told_by_the_capability() {
        let of = |all: &str| has_capability(&format!("Name:\tmapper\nCapEff:\t{all}\n"));
        assert_eq!(of("0000000000001000"), Some(true));
        assert_eq!(of("0000000000002000"), Some(false));
        assert_eq!((of("x"), has_capability("")), (None, None));
    }

    #[test]
    fn the_kernel_is_in_use_as_long_as_somebody_says_so() {
        if !mapper_needs::or_skip(!is_in_use().unwrap(), "a machine whose kernel no daemon uses") {
            return;
        }
        let said = InUse::say().unwrap();
        assert!(is_in_use().unwrap());
        let second = InUse::say().unwrap_err();
        assert!(second.to_string().contains("another agent or node of this machine"), "{second}");
        drop(said);
        assert!(InUse::say().is_ok());
    }
}
