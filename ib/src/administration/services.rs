//! Services that ports offer, each for a time.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_proto::time::Instant;

use super::Asker;
use super::paths::{PARTITION, PARTITION_NUMBER, own_port};
use super::records::Records;
use super::subnet::Subnet;
use crate::mad::sa::{Gid, SaMad, SaStatus, ServiceRecord, matches};

/// Most services.
const MAX_SERVICES: usize = 4096;
/// Most services of one port.
const MAX_OF_PORT: usize = 256;

/// What identifies a service: number, port and partition.
type Key = (u64, Gid, u16);

/// A service.
#[derive(Debug)]
struct Service {
    record: ServiceRecord,
    /// When its lease ends; [`Instant::FAR`] for never.
    until: Instant,
}

/// All services.
#[derive(Debug, Default)]
pub(super) struct Services {
    all: BTreeMap<Key, Service>,
}

impl Services {
    /// Registers a service, or changes one that is registered.
    pub(super) fn register(
        &mut self,
        subnet: &Subnet,
        mut record: ServiceRecord,
        mask: u64,
        asker: Asker,
        now: Instant,
    ) -> Result<ServiceRecord, SaStatus> {
        let needed = ServiceRecord::ID | ServiceRecord::GID;
        if mask & needed != needed {
            return Err(SaStatus::InsufficientComponents);
        }
        record.gid = offering(subnet, record.gid, asker)?;
        if mask & ServiceRecord::PARTITION == 0 {
            record.partition = PARTITION;
        }
        if mask & ServiceRecord::LEASE == 0 {
            record.lease = ServiceRecord::FOR_EVER;
        }
        if mask & ServiceRecord::KEY == 0 {
            record.key = [0; 16];
        }
        if (record.partition ^ PARTITION) & PARTITION_NUMBER != 0 || record.lease == 0 {
            return Err(SaStatus::Invalid);
        }
        let key = (record.id, record.gid, record.partition);
        match self.all.get(&key) {
            Some(known) if known.record.key != record.key => return Err(SaStatus::Denied),
            Some(_) => {}
            None => {
                let of_port = self.all.keys().filter(|(_, gid, _)| *gid == record.gid).count();
                if self.all.len() >= MAX_SERVICES || of_port >= MAX_OF_PORT {
                    return Err(SaStatus::NoResources);
                }
            }
        }
        let lease = Duration::from_secs(record.lease.into());
        let until = if record.lease == ServiceRecord::FOR_EVER { Instant::FAR } else { now + lease };
        self.all.insert(key, Service { record, until });
        Ok(record)
    }

    /// Removes a service.
    pub(super) fn delete(
        &mut self,
        subnet: &Subnet,
        record: ServiceRecord,
        mask: u64,
        asker: Asker,
    ) -> Result<ServiceRecord, SaStatus> {
        let needed = ServiceRecord::ID | ServiceRecord::GID;
        if mask & needed != needed {
            return Err(SaStatus::InsufficientComponents);
        }
        let partition = if mask & ServiceRecord::PARTITION == 0 { PARTITION } else { record.partition };
        let key = (record.id, offering(subnet, record.gid, asker)?, partition);
        let known = &self.all.get(&key).ok_or(SaStatus::NoRecords)?.record;
        let told = if mask & ServiceRecord::KEY == 0 { [0; 16] } else { record.key };
        if !asker.has_managers_key && known.key != told {
            return Err(SaStatus::Denied);
        }
        let gone = ServiceRecord { key: [0; 16], ..*known };
        self.all.remove(&key);
        Ok(gone)
    }

    /// The services that match a request. The keys of others' services are left out.
    pub(super) fn find(&self, request: &SaMad, asker: Asker, now: Instant) -> Result<Records, SaStatus> {
        let mut records = Records::default();
        for Service { record, until } in self.all.values() {
            if !matches(ServiceRecord::FIELDS, request.mask, &request.data, &record.emit()) {
                continue;
            }
            let left = u32::try_from(until.since(now).as_secs()).unwrap_or(ServiceRecord::FOR_EVER);
            let lease = if *until == Instant::FAR { ServiceRecord::FOR_EVER } else { left };
            let is_told = asker.has_managers_key || request.mask & ServiceRecord::KEY != 0;
            let key = if is_told { record.key } else { [0; 16] };
            records.push(&ServiceRecord { lease, key, ..*record }.emit())?;
        }
        Ok(records)
    }

    /// Removes the services of ports that are gone for good.
    pub(super) fn keep(&mut self, subnet: &Subnet) {
        self.all.retain(|(_, gid, _), _| subnet.knows(gid.guid()));
    }

    /// When the next lease ends.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.values().map(|service| service.until).filter(|&until| until != Instant::FAR).min()
    }

    /// Removes the services whose lease has ended.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.all.retain(|_, service| service.until > now);
    }
}

/// The GID of the port that offers a service. A request that names no port means the asker's own.
fn offering(subnet: &Subnet, named: Gid, asker: Asker) -> Result<Gid, SaStatus> {
    let end = match named == Gid::default() {
        true => subnet.by_lid(asker.lid).ok_or(SaStatus::InvalidGid)?,
        false => own_port(subnet, named, asker)?,
    };
    Ok(subnet.gid_of(end))
}
