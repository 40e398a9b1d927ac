//! Soundings that somebody asked for.

use mapper_proto::Instant;

use super::Host;
use crate::event::HostEvent;
use crate::sounding::{OF_HOST, Plan, SoundingRefused};

impl Host {
    /// Begins to sound ways, under a number that no other sounding has, nor [`OF_HOST`]. [`HostEvent::Sounded`] tells what came of it.
    ///
    /// # Errors
    /// If others are under way, or there would be too many echoes.
    pub fn sound(&mut self, now: Instant, number: u32, plan: Plan) -> Result<(), SoundingRefused> {
        self.soundings.begin(now, number, plan)?;
        self.settle(now);
        Ok(())
    }

    /// Sends echoes that are due, and tells of soundings that have come to their end.
    pub(super) fn settle_soundings(&mut self, now: Instant) {
        self.soundings.handle_timeout(now, &mut self.agent);
        while let Some((number, sounded)) = self.soundings.poll_done() {
            if number == OF_HOST {
                self.examined(now, &sounded);
            } else {
                self.events.push_back(HostEvent::Sounded { number, sounded });
            }
        }
    }
}
