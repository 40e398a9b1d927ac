//! What every engine says of itself.

use super::shared::Shared;
use super::{EngineError, Refusal, Routing, Setting, Settings};
use crate::Subnet;

/// An engine as it is written: its name, what it is for, what it obeys, and what it computes.
///
/// Each engine implements this in a module of its own, and stands in the list of [`super::Engine`].
pub(super) trait Algorithm: Sync {
    /// The name that a user gives.
    fn name(&self) -> &'static str;

    /// What the engine is for, in less than a line of the help.
    fn summary(&self) -> &'static str;

    /// The settings that decide what it computes, when it is given these. [`Self::compute`] sees all others
    /// as if nobody had set them, and the user is told that they had no effect.
    ///
    /// [`Setting`] has no names for what all engines obey: seed, longest route, destinations of xbars, and that all is balanced anew.
    fn obeys(&self, settings: &Settings) -> &'static [Setting];

    /// Checks what can be seen without computing anything. [`Self::compute`] is called only where this holds.
    ///
    /// # Errors
    /// If it cannot serve a fabric of this size and addresses, or not with these settings.
    fn check(&self, _subnet: &Subnet, _settings: &Settings) -> Result<(), Refusal> {
        Ok(())
    }

    /// Computes tables. They are not proved yet: [`super::select`] does that.
    ///
    /// # Errors
    /// If it cannot serve this fabric, or not with these settings; the error says what would help.
    fn compute(&self, subnet: &Subnet, settings: &Settings) -> Result<Routing, EngineError>;

    /// The same, where other engines are tried on the same subnet with the same settings, and what several of them begin
    /// with need be computed but once.
    ///
    /// # Errors
    /// As [`Self::compute`].
    fn compute_sharing(
        &self,
        subnet: &Subnet,
        settings: &Settings,
        _shared: &Shared<'_>,
    ) -> Result<Routing, EngineError> {
        self.compute(subnet, settings)
    }
}
