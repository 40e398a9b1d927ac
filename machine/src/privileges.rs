//! Gives up the privileges that a running daemon does not need any more.
//!
//! Opening interfaces and making a tap takes capabilities (capabilities(7)). A daemon that a malicious frame
//! has taken over must not have them.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use thiserror::Error;

/// A number of capabilities that no kernel exceeds.
const CAPABILITIES: u32 = 64;

/// What a daemon still needs once it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Whether it must be able to open an interface again that went away and came back (`CAP_NET_RAW`).
    pub raw_sockets: bool,
    /// Whether it must be able to change interfaces (`CAP_NET_ADMIN`).
    pub network_administration: bool,
    /// Whether it must be able to read and write files of others (`CAP_DAC_OVERRIDE`).
    pub files: bool,
}

/// Why privileges could not be given up.
#[derive(Debug, Error)]
pub enum PrivilegesError {
    /// There are other threads with privileges, which would keep them, as privileges belong to threads.
    #[error("privileges must be given up before there are other threads: there are {0} that hold some")]
    Threads(usize),
    /// The kernel refused.
    #[error("cannot give up privileges: {doing}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

impl Needs {
    fn capabilities(self) -> CapabilitySet {
        let mut kept = CapabilitySet::empty();
        kept.set(CapabilitySet::NET_RAW, self.raw_sockets);
        kept.set(CapabilitySet::NET_ADMIN, self.network_administration);
        kept.set(CapabilitySet::DAC_OVERRIDE, self.files);
        kept
    }
}

/// Gives up every privilege of this process except those that it needs, also for programs that it might
/// start. To be called while no other thread has privileges.
///
/// # Errors
/// If other threads have privileges, or the kernel refuses.
pub fn give_up_all_but(needs: Needs) -> Result<(), PrivilegesError> {
    let threads = privileged_threads().map_err(refused("counting threads in /proc"))?;
    if threads != 0 {
        return Err(PrivilegesError::Threads(threads));
    }
    keep_only(needs.capabilities())
}

/// Gives up every privilege of the calling thread.
///
/// # Errors
/// If the kernel refuses.
pub fn give_up_of_this_thread() -> Result<(), PrivilegesError> {
    keep_only(CapabilitySet::empty())
}

fn refused(doing: &'static str) -> impl FnOnce(io::Error) -> PrivilegesError {
    move |source| PrivilegesError::Refused { doing, source }
}

/// How many other threads of this process have not given up their privileges.
fn privileged_threads() -> io::Result<usize> {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let mut count = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let thread = thread?;
        if thread.file_name().to_str() == Some(&own) {
            continue;
        }
        match std::fs::read_to_string(thread.path().join("status")) {
            Ok(status) => count += usize::from(!has_no_privileges(&status)),
            // The thread has ended since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Whether a thread with this status (proc(5)) has no privileges and can get none.
fn has_no_privileges(status: &str) -> bool {
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let is_empty = |key| value(key).is_some_and(|set| set.bytes().all(|digit| digit == b'0'));
    is_empty("CapPrm") && is_empty("CapInh") && is_empty("CapAmb") && value("NoNewPrivs") == Some("1")
}

fn keep_only(kept: CapabilitySet) -> Result<(), PrivilegesError> {
    set_no_new_privs(true).map_err(|e| refused("setting no_new_privs")(e.into()))?;
    clear_ambient_capability_set().map_err(|e| refused("clearing the ambient set")(e.into()))?;
    let held = capabilities(None).map_err(|e| refused("reading its capabilities")(e.into()))?;
    // The bounding set limits what a program that is started could get. If this process may not change it,
    // no_new_privs alone ensures that such a program gets nothing.
    if held.effective.contains(CapabilitySet::SETPCAP) {
        clear_bounding_set(kept).map_err(refused("clearing the bounding set"))?;
    }
    let kept = held.permitted & kept;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(|e| refused("dropping capabilities")(e.into()))
}

fn clear_bounding_set(kept: CapabilitySet) -> io::Result<()> {
    for capability in (0..CAPABILITIES).map(|n| CapabilitySet::from_bits_retain(1 << n)) {
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !kept.contains(capability) => remove_capability_from_bounding_set(capability)?,
            Ok(_) => {}
            // The kernel knows no capabilities from this number on.
            Err(rustix::io::Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_kept_and_nothing_else() {
        let none = Needs::default();
        assert_eq!(none.capabilities(), CapabilitySet::empty());
        let raw = Needs { raw_sockets: true, ..none };
        assert_eq!(raw.capabilities(), CapabilitySet::NET_RAW);
        let both = Needs { network_administration: true, ..raw };
        assert_eq!(both.capabilities(), CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN);
        assert_eq!(Needs { files: true, ..none }.capabilities(), CapabilitySet::DAC_OVERRIDE);
    }

    #[test]
    fn a_process_with_threads_is_refused_as_they_would_keep_their_privileges() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || ended.recv().is_err());
        assert!(matches!(give_up_all_but(Needs::default()), Err(PrivilegesError::Threads(1..))));
        drop(end);
        assert!(other.join().unwrap());
    }

    #[test]
    fn a_thread_without_privileges_is_told_from_others() {
        let none = "Name:\tlog\nCapInh:\t0000\nCapPrm:\t0000\nCapAmb:\t0000\nNoNewPrivs:\t1\n";
        assert!(has_no_privileges(none));
        assert!(!has_no_privileges(&none.replace("CapPrm:\t0000", "CapPrm:\t2000")));
        assert!(!has_no_privileges(&none.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0")));
        assert!(!has_no_privileges(""));
        let given_up = std::thread::spawn(|| {
            give_up_of_this_thread().unwrap();
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        assert!(has_no_privileges(&given_up.join().unwrap()));
    }
}
