//! Paths between several ports at once.

use super::groups::Groups;
use super::paths::PathQuery;
use super::records::Records;
use super::subnet::Subnet;
use crate::mad::sa::{MultiPathRecord, PathRecord, SaMad, SaStatus};

/// The paths between the ports that a request names, from each source to each destination.
pub(super) fn find(subnet: &Subnet, groups: &Groups, request: &SaMad) -> Result<Records, SaStatus> {
    let counts = MultiPathRecord::SOURCE_COUNT | MultiPathRecord::DESTINATION_COUNT;
    if request.mask & counts != counts {
        return Err(SaStatus::InsufficientComponents);
    }
    let wanted = MultiPathRecord::parse(&request.data).ok_or(SaStatus::NoResources)?;
    if wanted.sources.is_empty() || wanted.destinations.is_empty() {
        return Err(SaStatus::Invalid);
    }
    let mask = MultiPathRecord::path_mask(request.mask);
    // The number of paths that are wanted is for all pairs together.
    let most = if mask & PathRecord::COUNT == 0 { usize::MAX } else { usize::from(wanted.path.count) };
    let mut records = Records::default();
    for &source in &wanted.sources {
        for &destination in &wanted.destinations {
            let left = most - records.count().min(most);
            let pair = PathQuery {
                record: PathRecord { source, destination, ..wanted.path },
                mask: mask & !PathRecord::COUNT | PathRecord::SOURCE | PathRecord::DESTINATION,
            };
            pair.find(subnet, groups, left, &mut records)?;
        }
    }
    Ok(records)
}
