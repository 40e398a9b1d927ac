//! Says to all daemons of this network namespace that one of them has the kernel carry packets.
//!
//! All objects of this project have one protocol number, whichever daemon made them. So a daemon that finds some and does not
//! use the kernel itself takes them for what an earlier run left, unless another one uses it. Each that does holds an
//! abstract unix socket, whose name begins alike. Such names belong to the network namespace, as forwarding
//! tables do, and the kernel releases them when the process ends, however it ends.
//!
//! Any user may hold such a name. So it counts only of a process that may change forwarding tables.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::process::geteuid;

use super::Kernel;
use crate::interface_lock::{Holder, holder_of};

/// What the names begin with.
const PREFIX: &str = "mapper/kernel/";
/// The sockets of this thread's network namespace. Abstract names begin with `@` there.
const SOCKETS: &str = "/proc/thread-self/net/unix";
/// The capability that it takes to change forwarding tables, by its number.
const NET_ADMIN: u32 = 12;

/// Held as long as a daemon has the kernel carry packets.
#[derive(Debug)]
pub struct InUse {
    /// It accepts no connection: whoever connects learns from the kernel who listens.
    _held: UnixListener,
}

impl InUse {
    /// Says that the kernel is used by whoever has opened it so.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn say(kernel: &Kernel) -> io::Result<Self> {
        // The number of the socket is nobody else's in this namespace.
        let name = format!("{PREFIX}{}", kernel.port());
        Ok(Self { _held: UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)? })
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
        let kernel = Kernel::open().unwrap();
        let said = InUse::say(&kernel).unwrap();
        assert!(is_in_use().unwrap());
        drop(said);
        let sockets = std::fs::read_to_string(SOCKETS).unwrap();
        assert!(names(&sockets).all(|name| name != format!("{PREFIX}{}", kernel.port())));
    }
}
