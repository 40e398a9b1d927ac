//! The routes of a host that are left when cables die.

use crate::engines::dispersive::{self, Beyond};
use crate::host_routes::bits;
use crate::{HostRoutes, Orientation, RouteOptions, RoutingError, Topology};

impl HostRoutes {
    /// The routes of a host as [`Self::compute`] makes them, but without those to destinations farther than
    /// [`RouteOptions::max_hops`].
    ///
    /// # Errors
    /// If an option is out of range, or there is no such host.
    pub fn compute_within(
        topology: &Topology,
        orientation: &Orientation,
        from: u32,
        options: &RouteOptions,
    ) -> Result<Self, RoutingError> {
        dispersive::compute(topology, orientation, from, options, Beyond::LeftOut)
    }

    /// These routes without those that cross a dead cable. The others stay as they are, as do the hosts that
    /// they serve. `cut` is the topology without those cables: see [`Topology::without`].
    ///
    /// `None` if the host's own cable is dead.
    pub(super) fn less_dead(&self, cut: &Topology) -> Option<Self> {
        let mut kept = Self { lost: vec![0; self.distinct.len()], ..self.clone() };
        for (xbar, &searches) in (0..).zip(&self.distinct) {
            for search in bits(searches) {
                if self.entered(cut, search, xbar).any(|channel| cut.is_dead(channel)) {
                    kept.lost[xbar as usize] |= 1 << search;
                }
            }
        }
        kept.fits(cut).then_some(kept)
    }
}
