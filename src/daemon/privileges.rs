//! What a running daemon may do: only what it still needs.
//!
//! Opening interfaces and making a tap takes capabilities (capabilities(7)) that a daemon which has
//! been taken over by a malicious frame must not have.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use thiserror::Error;

/// More than any kernel has.
const CAPABILITIES: u32 = 64;

/// What a daemon still needs once it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// To open an interface again that went and came back (`CAP_NET_RAW`).
    pub raw_sockets: bool,
    /// To change interfaces (`CAP_NET_ADMIN`).
    pub network_administration: bool,
}

/// Privileges that could not be given up.
#[derive(Debug, Error)]
pub enum PrivilegesError {
    /// Privileges are those of a thread: others would keep theirs.
    #[error("privileges must be given up before there are other threads, and there are {0} already")]
    Threads(usize),
    /// The kernel refused.
    #[error("cannot give up privileges: {doing}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl Needs {
    fn capabilities(self) -> CapabilitySet {
        let mut kept = CapabilitySet::empty();
        kept.set(CapabilitySet::NET_RAW, self.raw_sockets);
        kept.set(CapabilitySet::NET_ADMIN, self.network_administration);
        kept
    }
}

/// Gives up every privilege of this process but those that it needs, for itself and whatever it
/// might start. Call it while the process has one thread.
///
/// # Errors
/// If the process has other threads, or the kernel refuses.
pub fn give_up_all_but(needs: Needs) -> Result<(), PrivilegesError> {
    let refused = |doing| move |source: io::Error| PrivilegesError::Refused { doing, source };
    let threads = std::fs::read_dir("/proc/self/task").map_err(refused("counting threads in /proc"))?.count();
    if threads != 1 {
        return Err(PrivilegesError::Threads(threads));
    }
    let kept = needs.capabilities();
    set_no_new_privs(true).map_err(|e| refused("setting no_new_privs")(e.into()))?;
    clear_ambient_capability_set().map_err(|e| refused("clearing the ambient set")(e.into()))?;
    let held = capabilities(None).map_err(|e| refused("reading its capabilities")(e.into()))?;
    // The bounding set limits what a program that is started could get. Whoever may not change it
    // can get nothing either, as no_new_privs is set.
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
            // The kernel knows none from here on.
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
    }

    #[test]
    fn a_process_with_threads_is_refused_as_they_would_keep_their_privileges() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || ended.recv().is_err());
        assert!(matches!(give_up_all_but(Needs::default()), Err(PrivilegesError::Threads(2..))));
        drop(end);
        assert!(other.join().unwrap());
    }
}
