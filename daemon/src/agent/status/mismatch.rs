//! What dropped frames tell of hosts that cannot work together.

use mapper_proto::agent::FrameDrop;

use super::Counters;

/// Frames that were dropped since another host is set up differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs.
    pub kind: MismatchKind,
    /// How many frames were dropped for this reason.
    pub frames: u64,
    /// What these frames were, in words.
    pub what: &'static str,
    /// What to do, in words.
    pub fix: &'static str,
}

/// What hosts have otherwise than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MismatchKind {
    /// The version of the protocol.
    Version,
    /// The key of the network.
    Key,
}

impl MismatchKind {
    /// What people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "protocol version",
            Self::Key => "key",
        }
    }
}

impl Counters {
    /// How other hosts are set up differently, by what was dropped since the agent's start.
    pub fn mismatches(&self) -> Vec<Mismatch> {
        let dropped = &self.dropped;
        let one_key_file = "give all hosts of the network one key file";
        let all = [
            Mismatch {
                kind: MismatchKind::Version,
                frames: dropped[FrameDrop::UnknownVersion],
                what: "frames of another version of the protocol",
                fix: "run one version of the program on all hosts",
            },
            Mismatch {
                kind: MismatchKind::Key,
                frames: dropped[FrameDrop::UnexpectedTag],
                what: "signed frames, while this agent has no key",
                fix: "name the network's key file with --key-file, or take it from the others",
            },
            Mismatch {
                kind: MismatchKind::Key,
                frames: dropped[FrameDrop::NoTag],
                what: "frames that are not signed, while this agent has a key",
                fix: one_key_file,
            },
            Mismatch {
                kind: MismatchKind::Key,
                frames: dropped[FrameDrop::UnknownKey],
                what: "frames signed with a key that this agent does not have",
                fix: one_key_file,
            },
            Mismatch {
                kind: MismatchKind::Key,
                frames: dropped[FrameDrop::BadTag],
                what: "frames signed with another key of the same number",
                fix: one_key_file,
            },
        ];
        all.into_iter().filter(|mismatch| mismatch.frames > 0).collect()
    }
}
