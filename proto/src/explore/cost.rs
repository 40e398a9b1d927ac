//! What an exploration costs.

/// What an exploration sent so far, retries counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExploreCost {
    /// Loopback probes.
    pub loopbacks: u64,
    /// Identify probes to learn what is there.
    pub identifies: u64,
    /// Scouts.
    pub scouts: u64,
    /// Probes that compare two ways, be they turned by a delta or by a stamp.
    pub compares: u64,
    /// Outcomes of requests that nothing waits for (late, duplicated, forged), or that cannot be
    /// the outcome of what was asked. They change nothing.
    pub unexpected: u64,
}

impl ExploreCost {
    /// Loopback and identify probes.
    pub const fn switch_probes(&self) -> u64 {
        self.loopbacks + self.identifies
    }

    /// All that was sent.
    pub const fn total(&self) -> u64 {
        self.loopbacks + self.identifies + self.scouts + self.compares
    }
}
