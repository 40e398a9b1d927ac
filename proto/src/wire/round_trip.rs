//! The way to a host and the way back from it.

use super::Route;

/// The way from one place to another, and the way back. The two need not lead over the same cables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RoundTrip {
    /// The route that leads there.
    pub there: Route,
    /// The route that leads back, for whoever is there.
    pub back: Route,
}

impl RoundTrip {
    /// These two ways as whoever is at the other end sees them.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { there: self.back, back: self.there }
    }
}
