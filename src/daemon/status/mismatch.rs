//! What dropped frames tell of hosts that cannot work together.

use super::DroppedCounters;

/// Frames that were dropped since another host is set up differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs.
    pub name: &'static str,
    /// How many frames were dropped for it.
    pub frames: u64,
    /// What they were.
    pub what: &'static str,
    /// What to do.
    pub fix: &'static str,
}

impl DroppedCounters {
    /// In what other hosts differ, by what was dropped since the agent's start.
    pub fn mismatches(&self) -> Vec<Mismatch> {
        let one_key_file = "give all hosts of the network one key file";
        let all = [
            Mismatch {
                name: "protocol version",
                frames: self.unknown_version,
                what: "frames of another version of the protocol",
                fix: "run one version of the program on all hosts",
            },
            Mismatch {
                name: "key",
                frames: self.unexpected_tag,
                what: "signed frames, while this agent has no key",
                fix: "name the network's key file with --key-file, or take it from the others",
            },
            Mismatch {
                name: "key",
                frames: self.no_tag,
                what: "frames that are not signed, while this agent has a key",
                fix: one_key_file,
            },
            Mismatch {
                name: "key",
                frames: self.unknown_key,
                what: "frames signed with a key that this agent does not have",
                fix: one_key_file,
            },
            Mismatch {
                name: "key",
                frames: self.bad_tag,
                what: "frames signed with another key of the same number",
                fix: one_key_file,
            },
        ];
        all.into_iter().filter(|mismatch| mismatch.frames > 0).collect()
    }
}
