//! Which groups may be made, and who may join one.

use crate::administration::paths::PARTITION_NUMBER;
use crate::administration::subnet::End;
use crate::codes::{MTU_CODES, RATE_CODES};
use crate::mad::sa::{Gid, Limit, McMemberRecord, SaStatus, matches};

/// The beginning of GIDs that the administration gives to groups that were made without one: transient, and
/// with its mark.
pub(super) const GIVEN: u128 = 0xFF10_A01B << 96;

/// Whether a group may be made with a GID that is asked for. Its scope and flags must exist, and it must not
/// be one of those that the administration itself gives.
pub(super) fn may_be_made(gid: Gid) -> bool {
    let flags = (gid.0 >> 116) as u8 & 0xF;
    let is_given = gid.0 >> 96 == (GIVEN | 2 << 112) >> 96;
    gid.is_multicast() && flags <= 1 && scope(gid) != 0 && !is_given
}

/// How far a group reaches, as its GID says.
pub(super) const fn scope(gid: Gid) -> u8 {
    (gid.0 >> 112) as u8 & 0xF
}

/// Whether the group's values are within the bounds of a request.
pub(super) fn are_bounded(group: &McMemberRecord, wanted: &McMemberRecord, mask: u64) -> bool {
    let within = |component: u64, limit: Limit, has: u8, scale: &[u8]| {
        let both = component | component >> 1;
        mask & both != both || limit.allows(has, scale)
    };
    let every: Vec<u8> = (0..64).collect();
    within(McMemberRecord::MTU, wanted.mtu, group.mtu.code, &MTU_CODES)
        && within(McMemberRecord::RATE, wanted.rate, group.rate.code, &RATE_CODES)
        && within(McMemberRecord::LIFE_TIME, wanted.life_time, group.life_time.code, &every)
}

/// Checks whether a port may join a group with this record.
///
/// # Errors
/// If the request names something else than the group has, or the port cannot take its packets.
pub(super) fn check(
    group: &McMemberRecord,
    wanted: &McMemberRecord,
    mask: u64,
    end: &End,
) -> Result<(), SaStatus> {
    let fixed = McMemberRecord::QUEUE_KEY
        | McMemberRecord::TRAFFIC_CLASS
        | McMemberRecord::LEVEL
        | McMemberRecord::FLOW_LABEL
        | McMemberRecord::SCOPE;
    let is_same = matches(McMemberRecord::FIELDS, mask & fixed, &wanted.emit(), &group.emit())
        && (mask & McMemberRecord::PARTITION == 0
            || (wanted.partition ^ group.partition) & PARTITION_NUMBER == 0)
        && are_bounded(group, wanted, mask);
    let quality = end.quality();
    let can = Limit::exactly(group.mtu.code).fit(quality.mtu(), &MTU_CODES).is_some()
        && Limit::exactly(group.rate.code).fit(quality.rate(), &RATE_CODES).is_some();
    if is_same && can { Ok(()) } else { Err(SaStatus::Invalid) }
}
