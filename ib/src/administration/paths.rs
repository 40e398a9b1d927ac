//! Paths between ports, by the tables in force. Their service level is that of the engine, and their MTU and
//! rate are what all ports on the way can do.

use super::groups::Groups;
use super::records::Records;
use super::subnet::{End, Subnet};
use crate::codes::{MTU_CODES, RATE_CODES};
use crate::mad::sa::{Gid, Limit, PathRecord, SaMad, SaMethod, SaStatus};

/// The partition that every port is a full member of.
pub(super) const PARTITION: u16 = 0xFFFF;
/// The bits of a partition's key that name the partition. The other bit says how a port is a member.
pub(super) const PARTITION_NUMBER: u16 = 0x7FFF;
/// The code of how long packets are under way at most: 1 s, which OpenSM says as well.
pub(super) const LIFE_TIME: u8 = 18;
/// Most pairs of ports that are looked at for an answer.
const MAX_PAIRS: usize = 1 << 16;

/// The paths that match a request.
pub(super) fn find(subnet: &Subnet, groups: &Groups, request: &SaMad) -> Result<Records, SaStatus> {
    let wanted = PathQuery { record: PathRecord::parse(&request.data), mask: request.mask };
    let most = match request.method {
        SaMethod::Get => 1,
        _ if wanted.has(PathRecord::COUNT) => usize::from(wanted.record.count),
        _ => usize::MAX,
    };
    let mut records = Records::default();
    wanted.find(subnet, groups, most, &mut records)?;
    Ok(records)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
}

/// What a request asks for.
pub(super) struct PathQuery {
    pub(super) record: PathRecord,
    pub(super) mask: u64,
}

impl PathQuery {
    /// Adds the paths between all pairs of ports, for each pair at most as many as are wanted.
    pub(super) fn find(
        &self,
        subnet: &Subnet,
        groups: &Groups,
        most: usize,
        records: &mut Records,
    ) -> Result<(), SaStatus> {
        if self.has(PathRecord::PARTITION) && (self.record.partition ^ PARTITION) & PARTITION_NUMBER != 0 {
            return Ok(());
        }
        let sources = self.ends(subnet, Side::Source)?;
        if self.has(PathRecord::DESTINATION) && self.record.destination.is_multicast() {
            for source in sources {
                if let Some(path) = self.to_group(subnet, groups, source) {
                    records.push(&path.emit())?;
                }
            }
            return Ok(());
        }
        let destinations = self.ends(subnet, Side::Destination)?;
        if sources.len().saturating_mul(destinations.len()) > MAX_PAIRS {
            return Err(SaStatus::NoResources);
        }
        for source in sources {
            for destination in &destinations {
                for path in self.between(subnet, source, destination).take(most) {
                    records.push(&path.emit())?;
                }
            }
        }
        Ok(())
    }

    fn has(&self, component: u64) -> bool {
        self.mask & component != 0
    }

    /// The bound on a value, if the request names both the value and its selector.
    fn limit(&self, component: u64, limit: Limit) -> Option<Limit> {
        let both = component | component >> 1;
        (self.mask & both == both).then_some(limit)
    }

    /// The ports that a request names on one side, or all ports if it names none.
    fn ends<'a>(&self, subnet: &'a Subnet, side: Side) -> Result<Vec<&'a End>, SaStatus> {
        let record = &self.record;
        let (gid_mask, gid, lid_mask, lid) = match side {
            Side::Source => (PathRecord::SOURCE, record.source, PathRecord::SOURCE_LID, record.source_lid),
            Side::Destination => (
                PathRecord::DESTINATION,
                record.destination,
                PathRecord::DESTINATION_LID,
                record.destination_lid,
            ),
        };
        let by_gid = match self.has(gid_mask) {
            true => Some(subnet.by_gid(gid).ok_or(SaStatus::InvalidGid)?),
            false => None,
        };
        if !self.has(lid_mask) {
            return Ok(by_gid.map_or_else(|| subnet.ends().collect(), |end| vec![end]));
        }
        let by_lid = subnet.by_lid(lid).filter(|end| by_gid.is_none_or(|known| known.guid == end.guid));
        Ok(by_lid.into_iter().collect())
    }

    /// The paths between two ports, by as many of their LIDs as fit.
    fn between(&self, subnet: &Subnet, source: &End, destination: &End) -> impl Iterator<Item = PathRecord> {
        let lids = |end: &End, component, lid| {
            if self.has(component) { lid..=lid } else { end.lid..=end.lid + ((1 << end.lmc) - 1) }
        };
        let from: Vec<u16> = lids(source, PathRecord::SOURCE_LID, self.record.source_lid).collect();
        let to: Vec<u16> =
            lids(destination, PathRecord::DESTINATION_LID, self.record.destination_lid).collect();
        // Each LID of the port that has more LIDs is in one path.
        let pairs = (0..from.len().max(to.len())).map(move |at| (from[at % from.len()], to[at % to.len()]));
        pairs.filter_map(move |(from, to)| self.path(subnet, (source, from), (destination, to)))
    }

    fn path(
        &self,
        subnet: &Subnet,
        (source, from): (&End, u16),
        (end, to): (&End, u16),
    ) -> Option<PathRecord> {
        let quality = subnet.path(source, to)?;
        let level = subnet.level(from, to);
        if self.has(PathRecord::LEVEL) && level != self.record.level {
            return None;
        }
        let is_reversible = subnet.path(end, from).is_some();
        if self.has(PathRecord::REVERSIBLE) && self.record.is_reversible && !is_reversible {
            return None;
        }
        let path = PathRecord {
            destination: subnet.gid_of(end),
            source: subnet.gid_of(source),
            destination_lid: to,
            source_lid: from,
            is_reversible,
            level,
            ..self.record
        };
        self.bounded(path, quality.mtu(), quality.rate())
    }

    /// The path to all members of a group.
    fn to_group(&self, subnet: &Subnet, groups: &Groups, source: &End) -> Option<PathRecord> {
        let group = groups.get(self.record.destination)?.record();
        let path = PathRecord {
            source: subnet.gid_of(source),
            destination_lid: group.lid,
            source_lid: source.lid,
            flow: group.flow,
            traffic_class: group.traffic_class,
            level: group.level,
            ..self.record
        };
        self.bounded(path, group.mtu.code, group.rate.code)
    }

    /// The path with its MTU and rate, if these are as the request wants them.
    fn bounded(&self, path: PathRecord, mtu: u8, rate: u8) -> Option<PathRecord> {
        let fit = |component, limit, offered, scale: &[u8]| match self.limit(component, limit) {
            Some(limit) => limit.fit(offered, scale),
            None => Some(offered),
        };
        let mtu = fit(PathRecord::MTU, self.record.mtu, mtu, &MTU_CODES)?;
        let rate = fit(PathRecord::RATE, self.record.rate, rate, &RATE_CODES)?;
        let life_time = match self.limit(PathRecord::LIFE_TIME, self.record.life_time) {
            Some(limit) => limit.fit_life_time(LIFE_TIME)?,
            None => LIFE_TIME,
        };
        Some(PathRecord {
            service: 0,
            count: 0,
            partition: PARTITION,
            mtu: Limit::exactly(mtu),
            rate: Limit::exactly(rate),
            life_time: Limit::exactly(life_time),
            preference: 0,
            ..path
        })
    }
}

/// The port with a GID, if the asker is that port or may speak for others.
pub(super) fn own_port(subnet: &Subnet, gid: Gid, asker: super::Asker) -> Result<&End, SaStatus> {
    let end = subnet.by_gid(gid).ok_or(SaStatus::InvalidGid)?;
    if asker.has_managers_key || end.has(asker.lid) { Ok(end) } else { Err(SaStatus::Denied) }
}
