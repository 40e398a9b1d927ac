//! Multicast groups: who is in them, and what their packets are like.

mod rules;

use std::collections::{BTreeMap, BTreeSet};

use super::Asker;
use super::paths::{LIFE_TIME, PARTITION, PARTITION_NUMBER, own_port};
use super::records::Records;
use super::subnet::{End, Subnet};
use crate::codes::{MTU_CODES, RATE_CODES};
use crate::mad::sa::{Gid, JoinState, Limit, McMemberRecord, SaMad, SaStatus, matches};
use crate::program::multicast::FIRST_MULTICAST_LID;
use rules::{GIVEN, are_bounded, check, may_be_made, scope};

/// The group of all that use IP over InfiniBand in the partition that all are in: broadcast of IPv4 within the subnet.
const BROADCAST: Gid = Gid(0xFF12_401B_FFFF_0000_0000_0000_FFFF_FFFF);
/// The key of that group's queue pairs, which is the same as with OpenSM.
const BROADCAST_KEY: u32 = 0x0B1B;
/// The MTU of a group, unless its maker names one: the code of 2048 bytes.
const USUAL_MTU: u8 = 4;
/// The rate of a group, unless its maker names one: the code of 10 Gb/s.
const USUAL_RATE: u8 = 3;
/// Most groups, whatever switches have room for.
const MAX_GROUPS: u16 = 4096;
/// Most members of all groups together.
const MAX_MEMBERS: usize = 1 << 18;

/// A group.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The properties of its packets. No port is named in it.
    record: McMemberRecord,
    /// Members by the GUIDs of their ports.
    members: BTreeMap<u64, JoinState>,
    /// The members for which another port joined. Any port may take these out.
    proxied: BTreeSet<u64>,
    /// Whether the group exists even without members.
    is_permanent: bool,
}

impl Group {
    pub(super) const fn record(&self) -> &McMemberRecord {
        &self.record
    }

    /// Whether somebody may change how a port takes part: the port itself may, whoever has the managers' key
    /// may, and anybody may if another port joined for it.
    fn may_change(&self, end: &End, asker: Asker) -> bool {
        asker.has_managers_key || end.has(asker.lid) || self.proxied.contains(&end.guid)
    }

    /// The LID that its packets go to.
    pub(crate) const fn lid(&self) -> u16 {
        self.record.lid
    }

    /// Whether the group exists even without members, as the broadcast group of IPoIB does. Packets of such a
    /// group may go to all ports: hosts that do not take part drop them, and tables need not change when
    /// hosts come up or join a new manager's group again.
    pub(crate) const fn is_permanent(&self) -> bool {
        self.is_permanent
    }

    /// The GUIDs of its members' ports, and how each takes part. A port may be away for the moment.
    pub(crate) const fn members(&self) -> &BTreeMap<u64, JoinState> {
        &self.members
    }
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: BTreeMap<Gid, Group>,
    generation: u64,
    members: usize,
    /// How many GIDs were given.
    given: u64,
}

/// The outcome of a join.
pub(super) struct Joined {
    pub(super) record: McMemberRecord,
    pub(super) is_new_group: bool,
}

/// The outcome of a leave.
pub(super) struct Left {
    pub(super) record: McMemberRecord,
    pub(super) is_group_gone: bool,
}

impl Groups {
    /// Only the broadcast group.
    pub(super) fn new() -> Self {
        Self::after(0)
    }

    /// Only the broadcast group, in the generation that follows this one.
    pub(super) fn after(generation: u64) -> Self {
        let record = McMemberRecord {
            queue_key: BROADCAST_KEY,
            lid: FIRST_MULTICAST_LID,
            mtu: Limit::exactly(USUAL_MTU),
            rate: Limit::exactly(USUAL_RATE),
            life_time: Limit::exactly(LIFE_TIME),
            partition: PARTITION,
            scope: scope(BROADCAST),
            group: BROADCAST,
            ..McMemberRecord::parse(&[])
        };
        let broadcast =
            Group { record, members: BTreeMap::new(), proxied: BTreeSet::new(), is_permanent: true };
        let groups = BTreeMap::from([(BROADCAST, broadcast)]);
        Self { groups, generation: generation + 1, members: 0, given: 0 }
    }

    /// A number that rises whenever a group or a member comes or goes.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// All groups. Each has a LID of its own.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }

    pub(super) fn get(&self, gid: Gid) -> Option<&Group> {
        self.groups.get(&gid)
    }

    /// Takes out the members that are gone for good, and the groups that have no members left. Returns these
    /// groups.
    pub(super) fn keep(&mut self, subnet: &Subnet) -> Vec<Gid> {
        let before = self.members;
        for group in self.groups.values_mut() {
            group.members.retain(|&guid, _| subnet.knows(guid));
            group.proxied.retain(|guid| group.members.contains_key(guid));
        }
        self.members = self.groups.values().map(|group| group.members.len()).sum();
        if self.members == before {
            return Vec::new();
        }
        self.generation += 1;
        let is_gone =
            |group: &Group| !group.is_permanent && !group.members.values().any(|of| of.keeps_group());
        let gone: Vec<Gid> =
            self.groups.iter().filter(|(_, group)| is_gone(group)).map(|(&gid, _)| gid).collect();
        for gid in &gone {
            self.drop_group(*gid);
        }
        gone
    }

    fn drop_group(&mut self, gid: Gid) {
        if let Some(group) = self.groups.remove(&gid) {
            self.members -= group.members.len();
        }
    }

    /// Has a port take part in a group. If there is no such group, it is made, provided that the request says
    /// all that is needed.
    pub(super) fn join(
        &mut self,
        subnet: &Subnet,
        wanted: McMemberRecord,
        mask: u64,
        asker: Asker,
    ) -> Result<Joined, SaStatus> {
        let needed = McMemberRecord::PORT | McMemberRecord::STATE;
        if mask & needed != needed {
            return Err(SaStatus::InsufficientComponents);
        }
        if wanted.state.is_none() {
            return Err(SaStatus::Invalid);
        }
        let end = subnet.by_gid(wanted.port).ok_or(SaStatus::InvalidGid)?;
        let gid = if mask & McMemberRecord::GROUP == 0 { Gid::default() } else { wanted.group };
        let is_member = |group: &Group| group.members.contains_key(&end.guid);
        if self.members >= MAX_MEMBERS && !self.groups.get(&gid).is_some_and(is_member) {
            return Err(SaStatus::NoResources);
        }
        let (gid, is_new_group) = match self.groups.get(&gid) {
            Some(group) => {
                check(&group.record, &wanted, mask, end)?;
                (gid, false)
            }
            None => (self.make(subnet, gid, &wanted, mask, end)?, true),
        };
        let group = self.groups.get_mut(&gid).ok_or(SaStatus::NoResources)?;
        let before = group.members.get(&end.guid).copied();
        let is_own = end.has(asker.lid);
        if before.is_some() && !group.may_change(end, asker) {
            return Err(SaStatus::Denied);
        }
        let state = before.unwrap_or_default().with(wanted.state);
        if is_own {
            group.proxied.remove(&end.guid);
        } else if before.is_none() {
            group.proxied.insert(end.guid);
        }
        group.members.insert(end.guid, state);
        self.members += usize::from(before.is_none());
        self.generation += u64::from(before != Some(state));
        let is_proxy = group.proxied.contains(&end.guid);
        let record = McMemberRecord { port: wanted.port, state, is_proxy, ..group.record };
        Ok(Joined { record, is_new_group })
    }

    fn make(
        &mut self,
        subnet: &Subnet,
        gid: Gid,
        wanted: &McMemberRecord,
        mask: u64,
        end: &End,
    ) -> Result<Gid, SaStatus> {
        if !wanted.state.keeps_group() {
            return Err(SaStatus::Invalid);
        }
        let needed = McMemberRecord::QUEUE_KEY
            | McMemberRecord::PARTITION
            | McMemberRecord::TRAFFIC_CLASS
            | McMemberRecord::LEVEL
            | McMemberRecord::FLOW_LABEL;
        if mask & needed != needed {
            return Err(SaStatus::InsufficientComponents);
        }
        let is_ours = (wanted.partition ^ PARTITION) & PARTITION_NUMBER == 0;
        let is_given = gid == Gid::default();
        if !is_ours || !(is_given || may_be_made(gid)) {
            return Err(SaStatus::Invalid);
        }
        let quality = end.quality();
        let bounded = |component: u64, limit: Limit, usual: u8, offered: u8, scale: &[u8]| {
            let both = component | component >> 1;
            let limit = if mask & both == both { limit } else { Limit::exactly(usual) };
            limit.fit(offered, scale).ok_or(SaStatus::Invalid)
        };
        let mtu = bounded(
            McMemberRecord::MTU,
            wanted.mtu,
            USUAL_MTU.min(quality.mtu()),
            quality.mtu(),
            &MTU_CODES,
        )?;
        let usual_rate =
            Limit::exactly(USUAL_RATE).fit(quality.rate(), &RATE_CODES).unwrap_or(quality.rate());
        let rate = bounded(McMemberRecord::RATE, wanted.rate, usual_rate, quality.rate(), &RATE_CODES)?;
        let lid = self.free_lid(subnet).ok_or(SaStatus::NoResources)?;
        let gid = if is_given { self.given_gid(wanted, mask) } else { gid };
        let record = McMemberRecord {
            group: gid,
            port: Gid::default(),
            lid,
            mtu: Limit::exactly(mtu),
            rate: Limit::exactly(rate),
            life_time: Limit::exactly(LIFE_TIME),
            partition: PARTITION,
            scope: scope(gid),
            state: JoinState::default(),
            is_proxy: false,
            ..*wanted
        };
        self.groups.insert(
            gid,
            Group { record, members: BTreeMap::new(), proxied: BTreeSet::new(), is_permanent: false },
        );
        self.generation += 1;
        Ok(gid)
    }

    /// The lowest LID that no group has; `None` if switches have no room for one more.
    fn free_lid(&self, subnet: &Subnet) -> Option<u16> {
        let most = subnet.multicast_capacity().unwrap_or(MAX_GROUPS).min(MAX_GROUPS);
        let taken: BTreeSet<u16> = self.groups.values().map(Group::lid).collect();
        (FIRST_MULTICAST_LID..FIRST_MULTICAST_LID + most).find(|lid| !taken.contains(lid))
    }

    /// A GID that no group has, of the scope that is wanted, or else of that of the subnet.
    fn given_gid(&mut self, wanted: &McMemberRecord, mask: u64) -> Gid {
        let scope = if mask & McMemberRecord::SCOPE == 0 { 2 } else { wanted.scope };
        loop {
            self.given += 1;
            let gid = Gid(GIVEN | u128::from(scope) << 112 | u128::from(self.given));
            if !self.groups.contains_key(&gid) {
                return gid;
            }
        }
    }

    /// Ends the ways of taking part in a group that the request names, for a port.
    pub(super) fn leave(
        &mut self,
        subnet: &Subnet,
        wanted: &McMemberRecord,
        mask: u64,
        asker: Asker,
    ) -> Result<Left, SaStatus> {
        let needed = McMemberRecord::GROUP | McMemberRecord::PORT | McMemberRecord::STATE;
        if mask & needed != needed {
            return Err(SaStatus::InsufficientComponents);
        }
        let end = subnet.by_gid(wanted.port).ok_or(SaStatus::InvalidGid)?;
        let group = self.groups.get_mut(&wanted.group).ok_or(SaStatus::Invalid)?;
        if !group.may_change(end, asker) {
            return Err(SaStatus::Denied);
        }
        let before = group.members.get(&end.guid).copied().ok_or(SaStatus::Invalid)?;
        if wanted.state.is_none() || !before.has(wanted.state) {
            return Err(SaStatus::Invalid);
        }
        let state = before.without(wanted.state);
        if state.is_none() {
            group.members.remove(&end.guid);
            group.proxied.remove(&end.guid);
            self.members -= 1;
        } else {
            group.members.insert(end.guid, state);
        }
        self.generation += 1;
        let is_proxy = group.proxied.contains(&end.guid);
        let record = McMemberRecord { port: wanted.port, state, is_proxy, ..group.record };
        let is_group_gone = !group.is_permanent && !group.members.values().any(|of| of.keeps_group());
        if is_group_gone {
            self.drop_group(wanted.group);
        }
        Ok(Left { record, is_group_gone })
    }

    /// The groups that match a request. Whoever has the managers' key is told each member, and others each
    /// group once. A request about the asker's own port is answered with that port as the member.
    pub(super) fn find(&self, subnet: &Subnet, request: &SaMad, asker: Asker) -> Result<Records, SaStatus> {
        let wanted = McMemberRecord::parse(&request.data);
        let mut records = Records::default();
        let of_port = match request.mask & McMemberRecord::PORT {
            0 => None,
            // Who else joined is told only to managers.
            _ => match own_port(subnet, wanted.port, asker) {
                Ok(end) => Some(end),
                Err(_) => return Ok(records),
            },
        };
        for group in self.groups.values() {
            let fits = |record: &McMemberRecord| {
                matches(McMemberRecord::FIELDS, request.mask, &request.data, &record.emit())
                    && are_bounded(&group.record, &wanted, request.mask)
                    && (request.mask & McMemberRecord::STATE == 0 || record.state.has(wanted.state))
            };
            if of_port.is_none() && (!asker.has_managers_key || group.members.is_empty()) {
                if fits(&group.record) {
                    records.push(&group.record.emit())?;
                }
                continue;
            }
            let members =
                group.members.iter().filter(|&(&guid, _)| of_port.is_none_or(|end| end.guid == guid));
            for (&guid, &state) in members {
                let Some(end) = subnet.by_guid(guid) else { continue };
                let is_proxy = group.proxied.contains(&guid);
                let record = McMemberRecord { port: subnet.gid_of(end), state, is_proxy, ..group.record };
                if fits(&record) {
                    records.push(&record.emit())?;
                }
            }
        }
        Ok(records)
    }
}
