//! Service adapters, which switches of real clusters carry.

use super::spec::{Spec, SpecError};

/// Which switches carry a service adapter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// Each switch does.
    Every,
    /// The switches above the leaves do.
    Spines,
    /// No switch does.
    None,
}

impl Service {
    /// The value of the key `service`; [`Self::None`] without the key.
    pub(super) fn of(spec: &Spec<'_>) -> Result<Self, SpecError> {
        match spec.word("service")?.unwrap_or("none") {
            "every" => Ok(Self::Every),
            "spines" => Ok(Self::Spines),
            "none" => Ok(Self::None),
            word => Err(spec.bad("service", word, "every, spines or none")),
        }
    }
}
