//! The tables that were in force, of which engines keep what is still right.

use thiserror::Error;

use super::{Refusal, Settings};
use crate::{Subnet, Tables};

/// The tables that were in force are of another fabric. The numbers are those of its xbars and destinations,
/// and of those of this fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the previous tables are of {} xbars and {} destinations, the fabric has {} and {}; \
     reassign (--reassign), or give tables of this fabric (--previous)",
    tables.0, tables.1, fabric.0, fabric.1
)]
struct OtherPrevious {
    tables: (usize, usize),
    fabric: (usize, usize),
}

/// The tables that were in force, if their right entries are to stay.
///
/// # Errors
/// If they are of another fabric.
pub(super) fn tables<'a>(subnet: &Subnet, settings: &'a Settings) -> Result<Option<&'a Tables>, Refusal> {
    let Some(tables) = settings.previous.as_ref().filter(|_| !settings.reassign) else { return Ok(None) };
    let (xbars, slots) = (subnet.topology.xbar_count(), subnet.destinations.slot_count());
    if tables.entry_count() != xbars * slots || tables.xbar_count() != xbars {
        let tables = (tables.xbar_count(), tables.slot_count());
        return Err(Refusal::own(OtherPrevious { tables, fabric: (xbars, slots) }));
    }
    Ok(Some(tables))
}
