//! The keys that hosts sign with, and how they are changed without a gap: each host takes one step after the
//! other, and none takes the next before all have taken the last one.

use mapper_proto::agent::Settings;
use mapper_proto::wire::{Key, KeyRing, SECRET_BYTES};

use super::World;
use super::options::derive_seed;

/// Names the stream of salts of keys.
const SALTS: u64 = 7;

/// How far a host is in a change of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum KeyStep {
    /// It has only the old key.
    #[default]
    Old,
    /// It signs with the old key and accepts the new one.
    OldFirst,
    /// It signs with the new key and accepts the old one.
    NewFirst,
    /// It has only the new key.
    New,
}

impl KeyStep {
    /// How many steps a change takes.
    pub(crate) const COUNT: u32 = 3;

    /// The step that follows this one. The last step stays.
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Old => Self::OldFirst,
            Self::OldFirst => Self::NewFirst,
            Self::NewFirst | Self::New => Self::New,
        }
    }

    fn keys(self) -> Vec<Key> {
        let old = Key::new(1, [0x5a; SECRET_BYTES]);
        let new = Key::new(2, [0xa5; SECRET_BYTES]);
        match self {
            Self::Old => vec![old],
            Self::OldFirst => vec![old, new],
            Self::NewFirst => vec![new, old],
            Self::New => vec![new],
        }
    }
}

impl World {
    /// The settings of the next agent of a host, or those that its running agent has from now on. `seed` is
    /// that of the agent's start.
    pub(super) fn settings_of(&self, host: u32, seed: u64) -> Settings {
        let slot = &self.hosts[host as usize];
        let mut settings = slot.settings.clone();
        if self.options.signed {
            settings.keys = KeyRing::new(slot.key_step.keys(), derive_seed(seed, SALTS, 0)).ok();
        }
        settings
    }
}
