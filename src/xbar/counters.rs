//! What a crossbar counts at each port.

use mapper_proto::wire::DropReason;
use serde::{Deserialize, Serialize};

use mapper_machine::link::Unsent;

/// What became of the frames that arrived at a port: `received` is `forwarded` and all of
/// `dropped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArrivalCounters {
    /// Frames that left by another port, or by the same.
    pub forwarded: u64,
    /// Frames that arrived and did not leave by any port, by why.
    pub dropped: DropCounters,
    /// Notices sent back out of this port: a data frame could not go on.
    pub notices: u64,
    /// Notices not sent, as there were too many of them.
    pub notices_suppressed: u64,
}

/// Frames dropped since the start, by why, at the port where they arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DropCounters {
    /// The route ends at the crossbar.
    pub no_route: u64,
    /// To a port that the crossbar does not have.
    pub no_such_port: u64,
    /// A route element of a kind that it does not know.
    pub not_understood: u64,
    /// The frame ends inside its route.
    pub truncated: u64,
    /// It asks for a stamp and has no room for one.
    pub no_stamp_area: u64,
    /// It turns back more than once.
    pub turns_again: u64,
    /// Too many frames with a route longer than there and back over 62 crossbars came in.
    pub long_routes: u64,
    /// To a port whose interface has no carrier.
    pub no_carrier: u64,
    /// To a port without interface.
    pub no_interface: u64,
    /// Too many frames waited to leave.
    pub queue_full: u64,
    /// Longer than the interface carries.
    pub too_long: u64,
    /// The kernel did not take it for another reason.
    pub refused: u64,
}

impl DropCounters {
    /// All dropped frames together.
    pub const fn total(&self) -> u64 {
        // Without `..`: a new counter shall not compile before it is summed.
        let Self {
            no_route,
            no_such_port,
            not_understood,
            truncated,
            no_stamp_area,
            turns_again,
            long_routes,
            no_carrier,
            no_interface,
            queue_full,
            too_long,
            refused,
        } = *self;
        let by_decision = no_route + no_such_port + not_understood + truncated + no_stamp_area + turns_again;
        by_decision + long_routes + no_carrier + no_interface + queue_full + too_long + refused
    }

    pub(super) const fn count_decision(&mut self, reason: DropReason) {
        *match reason {
            DropReason::NoRoute => &mut self.no_route,
            DropReason::NoSuchPort => &mut self.no_such_port,
            DropReason::NotUnderstood => &mut self.not_understood,
            DropReason::Truncated => &mut self.truncated,
            DropReason::NoStampArea => &mut self.no_stamp_area,
            DropReason::TurnsAgain => &mut self.turns_again,
        } += 1;
    }

    pub(super) const fn count_unsent(&mut self, why: Unsent) {
        *match why {
            Unsent::QueueFull => &mut self.queue_full,
            Unsent::TooLong => &mut self.too_long,
            Unsent::Down => &mut self.no_carrier,
            Unsent::Refused => &mut self.refused,
        } += 1;
    }
}
