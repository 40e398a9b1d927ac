//! What others did to the interfaces that keeps users' frames from passing.

use tracing::warn;

use super::event_loop::Driver;
use super::user_data::UserData;
use crate::daemon::DaemonError;
use crate::daemon::status::unequal_mtus;

impl Driver {
    /// What keeps users' frames from passing on this machine, in words.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.user_data.as_ref().map(UserData::warnings).unwrap_or_default();
        let attachment = &self.attachment;
        let mtu = match &attachment.crossbar {
            Some(switch) => switch.least_mtu(),
            None => attachment.link.mtu(),
        };
        if let Some(mtu) = mtu.filter(|&mtu| mtu < attachment.mtu) {
            warnings.push(format!(
                "an interface of {} carries {mtu} bytes, at the start it was {}: longer frames are lost; raise \
                 its MTU again, or restart the agent",
                attachment.link.name(),
                attachment.mtu
            ));
        }
        warnings.extend(unequal_mtus(&attachment.outer_ports()));
        warnings
    }

    /// After a change of any interface: logs what is new about them.
    ///
    /// # Errors
    /// If the tap interface is gone.
    pub(super) fn look_around(&mut self) -> Result<(), DaemonError> {
        if self.user_data.as_ref().is_some_and(UserData::is_gone) {
            return Err(DaemonError::TapGone);
        }
        let warnings = self.warnings();
        for warning in warnings.iter().filter(|warning| !self.warned.contains(warning)) {
            warn!("{warning}");
        }
        self.warned = warnings;
        Ok(())
    }
}
