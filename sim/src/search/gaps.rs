//! For how long users of two hosts may hear nothing of each other, and how long a new map may take.
//!
//! Something is promised for a fault that strikes when all is well: all hosts use a map of the fabric as it
//! is, each has an address of its own and holds no cable for dead, and no frame is lost at random. The
//! promise counts up to the next fault, for pairs of hosts that knew each other before and that cables joined
//! all the while. Without keys a hostile host may claim the addresses of others; once one of them believes it,
//! nothing is promised up to the next fault, as none of those who seem to share an address is believed. This is promised:
//!
//! | fault | users hear nothing for |
//! |---|---|
//! | of a cable or host | five intervals of the checks of paths, if three may be missed: those of silence, and as long as finding out where the path breaks and a new check may take |
//! | of a whole xbar, by itself or with the agent of its node | twice that: the path that is taken next may lead through it too |
//! | a cable is moved | until the new map, as no other cable may lead there |
//!
//! Around a cable that is proved dead, a host may find that each way to another would need a turn that is not safe until
//! all hosts know of the cable (see [`mapper_routing::repair`]). From then on the pair waits for the new map.
//!
//! Where kernels forward users' packets, and one of them does not do so behind the fault (because of a firewall, of tables that
//! somebody emptied until its host puts that right, or because a node's host is cabled to another crossbar than when it started;
//! and once such a node was there, because a host that starts again goes by what its earlier run has left until it has tried its ways),
//! all of these times are longer by [`WAY_LEFT_WITHIN`](mapper_host::kernel_path::WAY_LEFT_WITHIN), or by
//! [`V4_LEFT_WITHIN`](mapper_host::kernel_path::V4_LEFT_WITHIN) where a firewall drops IPv4 alone. No map shows such a kernel, and nobody tells of it, so each host finds it only by probes
//! that are not answered, and whenever routes change, some may lead there again. The times are not longer where
//! an agent has let go of its routes, because another host has its address or no cable leads from it any more:
//! it says so to its neighbours, which leave its kernel at once.
//!
//! Behind any fault, even one that struck while others went on, no pair goes on losing frames once all hosts
//! use a map of the fabric as it is.

use std::time::Duration;

use mapper_proto::Instant;

use super::Scenario;
use crate::faults::Fault;
use crate::world::{FaultEffect, TrafficReport};

/// The longest time after a fault that struck when all was well until all hosts have a new map, if nothing
/// else happens. An agent leaves a parent that it met in the election after 3 s of silence, and verification
/// goes round once a second.
const NEW_MAP: Duration = Duration::from_secs(5);

impl Scenario {
    /// Checks whether all in this report of users' frames, up to now, is as promised.
    pub(super) fn check_gaps(&self, report: &TrafficReport, now: Instant) -> Result<(), String> {
        let ends = report.faults.iter().skip(1).map(|next| next.at).chain([now]);
        for (effect, until) in report.faults.iter().zip(ends) {
            self.check_effect(effect, until)
                .map_err(|why| format!("behind {} at {:?}: {why}", effect.what, effect.at))?;
        }
        Ok(())
    }

    /// Checks what one fault did to users.
    fn check_effect(&self, effect: &FaultEffect, until: Instant) -> Result<(), String> {
        let Some(users) = self.setup.users else { return Ok(()) };
        // Gaps are told from frames that are sent now and then, so they look longer than they are.
        let between = users.turn();
        // Hosts go around a path by routes that they compute then, and may be at others until then.
        let left_after = effect.paths_left_within + self.setup.computing();
        let promised = promised(effect, left_after);
        if let (Some(gap), Some(promised)) = (effect.kept_gap, promised)
            && gap > promised + effect.left_within + between
        {
            return Err(format!("users of two hosts heard nothing of each other for {gap:?}"));
        }
        if let Some(gap) = effect.mapped_gap.filter(|&gap| gap > left_after + effect.left_within + between) {
            return Err(format!(
                "users of two hosts heard nothing of each other for {gap:?} though all hosts had a new map"
            ));
        }
        let undisturbed =
            effect.kept_gap.is_some() && effect.mapped_gap.is_some() && self.setup.agents.xbar_check;
        let took = effect.new_map_after.unwrap_or_else(|| until.since(effect.at));
        if undisturbed && took > NEW_MAP + self.setup.computing() {
            return Err(format!("no new map within {took:?}"));
        }
        Ok(())
    }
}

/// The longest time that a fault which struck when all was well may keep users of two hosts apart, if the
/// fault of a cable does so for `left_after`; `None` if nothing is promised before the new map.
fn promised(effect: &FaultEffect, left_after: Duration) -> Option<Duration> {
    match effect.fault {
        // All cables of the xbar go at once.
        _ if effect.ends_xbar => Some(2 * left_after),
        // No other cable may lead where this one did. A cable that loses frames now and then keeps nobody apart, and costs some
        // frames of a pair in a row by chance.
        Fault::Move { .. } | Fault::Lossy { .. } => None,
        // Noise on all cables keeps nobody apart either.
        Fault::Loss(_) | Fault::Corrupt(_) => None,
        Fault::Off(_)
        | Fault::Cut(_)
        | Fault::Mend(_)
        | Fault::Silence(_)
        | Fault::Firewall(_)
        | Fault::FirewallV4(_)
        | Fault::Flush(_)
        | Fault::Kill(_)
        | Fault::Restart(_)
        | Fault::Mute(_)
        | Fault::Hostile(_)
        | Fault::Remove(_)
        | Fault::Insert(_)
        | Fault::Twin { .. }
        | Fault::Untwin(_)
        | Fault::On(_)
        | Fault::Swap(_)
        | Fault::Lose(_)
        | Fault::LoseTries(_)
        | Fault::Rekey(_)
        | Fault::Mtu { .. }
        | Fault::Level { .. }
        | Fault::Passes { .. }
        | Fault::Set { .. }
        | Fault::Rename { .. }
        | Fault::Readdress { .. }
        | Fault::Alias { .. }
        | Fault::Ask { .. }
        | Fault::Open(_)
        | Fault::Heal
        | Fault::Duplicate(_)
        | Fault::Jitter(_) => Some(left_after),
    }
}
