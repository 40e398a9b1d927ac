//! The tables that were in force, of which engines keep what is still right.

use super::Settings;
use crate::{Subnet, Tables};

/// The tables that were in force, if their right entries are to stay.
///
/// Those that engines get are of their subnet's size: [`leave_out_others`] takes all others out before.
pub(super) fn tables(settings: &Settings) -> Option<&Tables> {
    settings.previous.as_ref().filter(|_| !settings.reassign)
}

/// As [`tables`], if the tables have the size of this subnet's.
pub(super) fn fitting<'a>(subnet: &Subnet, settings: &'a Settings) -> Option<&'a Tables> {
    tables(settings).filter(|tables| is_of_size(tables, subnet))
}

/// Takes tables of another size than a subnet's out of settings: nobody knows which of their xbars and destinations are
/// those of the subnet. Returns what a user should know of that, if any were to stay.
pub(super) fn leave_out_others(subnet: &Subnet, settings: &mut Settings) -> Option<String> {
    let others = settings.previous.take_if(|tables| !is_of_size(tables, subnet))?;
    (!settings.reassign).then(|| {
        format!(
            "the previous tables have {} xbars and {} destinations, the fabric {} and {}: all is routed anew",
            others.xbar_count(),
            others.slot_count(),
            subnet.topology.xbar_count(),
            subnet.destinations.slot_count()
        )
    })
}

fn is_of_size(tables: &Tables, subnet: &Subnet) -> bool {
    let xbars = subnet.topology.xbar_count();
    tables.xbar_count() == xbars && tables.entry_count() == xbars * subnet.destinations.slot_count()
}
