//! The subnet's administration, which hosts ask when they come up: for paths, nodes, ports, multicast groups,
//! services, and to be told what happens.
//!
//! It answers from the subnet as it was when it was last up ([`Subnet`]), and so never from a subnet that is
//! half explored. As long as no subnet has been up, or another manager is master, whoever asks is told to ask
//! again.
//!
//! ```text
//! request ---> paths, listing, tables, groups, services, subscriptions ---> answer in one datagram
//!                                  |         |                         \---> transfer of several (rmpp)
//!                                  |         +-- what ports hold ---> questions to them; the request waits (awaited)
//!                                  +-- what happened ---> reports to subscribers, until they take note
//! ```

mod awaited;
mod groups;
mod listing;
mod multi_paths;
mod paths;
mod records;
mod reports;
mod services;
mod subnet;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use mapper_proto::time::Instant;

use awaited::Awaited;
use groups::Groups;

use crate::mad::sa::{
    Gid, InformInfo, McMemberRecord, Rmpp, SaAttribute, SaMad, SaMethod, SaStatus, ServiceRecord,
    SubnetNotice, class_port_info,
};
use crate::mad::{Data, MANAGERS_KEY, Notice};
use crate::packet::{Address, Packet};
use crate::rmpp::{Key, Transfers};
use records::Records;
use reports::Reports;
use services::Services;
pub(crate) use subnet::Subnet;
pub(crate) use tables::TableOf;
use tables::Told;

/// The code of how long an answer may take: some 4 s, which OpenSM says as well.
const RESPONSE_TIME: u8 = 20;
/// Most answers that wait to be sent. An answer that finds no room is dropped, and will be asked for again.
const MAX_OUT: usize = 1024;
/// Most parts of tables that are asked for at a time, for all requests together.
const MAX_TABLES: usize = 16_384;

/// The sender of a request.
#[derive(Clone, Copy, Debug)]
struct Asker {
    lid: u16,
    queue_pair: u32,
    /// Whether the request has the managers' key. Whoever sends it may see and change what belongs to others; as everybody
    /// knows the key, this guards from mistakes alone.
    has_managers_key: bool,
}

/// How a request is answered.
enum Answer {
    /// By one record.
    One(Vec<u8>),
    /// By any number of records.
    Several(Records),
    /// Later, when ports have told these parts of their tables.
    Later(Vec<TableOf>),
}

/// The administration of a subnet.
#[derive(Debug)]
pub(crate) struct Administration {
    /// The subnet as it was when it was last up; `None` if this manager is not its master.
    subnet: Option<Subnet>,
    groups: Groups,
    services: Services,
    reports: Reports,
    awaited: Awaited,
    transfers: Transfers,
    out: VecDeque<Packet>,
}

impl Default for Administration {
    fn default() -> Self {
        Self {
            subnet: None,
            groups: Groups::new(),
            services: Services::default(),
            reports: Reports::default(),
            awaited: Awaited::default(),
            transfers: Transfers::default(),
            out: VecDeque::new(),
        }
    }
}

impl Administration {
    /// The multicast groups and their members. [`Groups::generation`] says whether they changed.
    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Has long answers end with their first segment, as receivers acknowledge nothing.
    pub(crate) fn send_first_segments_only(&mut self) {
        self.transfers.end_with_first();
    }

    /// Takes in that the subnet is up as described. Subscribers are told which ports came and went.
    pub(crate) fn begin(&mut self, subnet: Subnet) {
        let before = self.subnet.take();
        let gone = self.groups.keep(&subnet);
        self.services.keep(&subnet);
        self.reports.keep(&subnet);
        if let Some(before) = &before {
            let went = before.ends().filter(|end| subnet.by_guid(end.guid).is_none());
            let went = went.map(|end| (SubnetNotice::OUT_OF_SERVICE, before.gid_of(end)));
            let came = subnet.ends().filter(|end| before.by_guid(end.guid).is_none());
            let came = came.map(|end| (SubnetNotice::IN_SERVICE, subnet.gid_of(end)));
            let gone = gone.into_iter().map(|gid| (SubnetNotice::GROUP_GONE, gid));
            let happened: Vec<(u16, Gid)> = went.chain(came).chain(gone).collect();
            for (number, subject) in happened {
                self.reports.tell(&subnet.notice(number, subject), &subnet);
            }
        }
        self.subnet = Some(subnet);
    }

    /// Takes in that another manager is master. Hosts will tell that manager again what they have told this
    /// one.
    pub(crate) fn end(&mut self) {
        if self.subnet.is_some() {
            let groups = Groups::after(self.groups.generation());
            *self = Self { groups, transfers: self.transfers.without_transfers(), ..Self::default() };
        }
    }

    /// Whether there is a subnet from which hosts are answered.
    pub(crate) const fn is_up(&self) -> bool {
        self.subnet.is_some()
    }

    /// The answer to a request for one record that comes from the manager's own port.
    pub(crate) fn answer_own(&self, request: &SaMad, lid: u16, now: Instant) -> SaMad {
        let asker = Asker { lid, queue_pair: 1, has_managers_key: false };
        let found = self.subnet.as_ref().ok_or(SaStatus::Busy);
        let found = found.and_then(|subnet| self.find(subnet, request, asker, now)?.only());
        match found {
            Ok(Answer::One(record)) => request.answered(0).with_record(&record),
            Ok(Answer::Several(_) | Answer::Later(_)) => request.answered(SaStatus::TooManyRecords.code()),
            Err(status) => request.answered(status.code()),
        }
    }

    /// Passes a trap of a node on to subscribers.
    pub(crate) fn pass_on(&mut self, trap: &Data) {
        let Some(subnet) = &self.subnet else { return };
        let issuer = subnet.by_lid(Notice::parse(trap).issuer).map(|end| subnet.gid_of(end));
        self.reports.tell(&SubnetNotice::of_trap(*trap, issuer.unwrap_or_default()), subnet);
    }

    /// The next datagram to send, if one may go out now.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let packet = self.out.pop_front().or_else(|| self.reports.poll_transmit(now));
        packet.or_else(|| self.transfers.poll_transmit(now))
    }

    /// When to call [`Self::handle_timeout`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let moments =
            [self.transfers.poll_timeout(), self.reports.poll_timeout(), self.services.poll_timeout()];
        moments.into_iter().flatten().min()
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.transfers.handle_timeout(now);
        self.reports.handle_timeout(now);
        self.services.handle_timeout(now);
    }

    /// Takes a datagram of this class. Datagrams that make no sense are ignored.
    pub(crate) fn handle_packet(&mut self, packet: &Packet, now: Instant) {
        let Address::Lid { lid, queue_pair, .. } = packet.address else { return };
        let Ok(request) = SaMad::parse(&packet.mad) else { return };
        let key = (lid, queue_pair, request.tid);
        if request.rmpp.is_active() && request.rmpp.kind != Rmpp::DATA {
            return self.transfers.handle(&key, &request.rmpp, now);
        }
        if request.method == SaMethod::ReportResponse {
            return self.reports.took_note(lid, request.tid);
        }
        let is_under_way = self.transfers.answers(&key, &request) || self.awaited.has(&key);
        if request.method.answers() || is_under_way {
            return;
        }
        let asker = Asker { lid, queue_pair, has_managers_key: request.key == MANAGERS_KEY };
        match self.answer(&request, asker, now) {
            Ok(Answer::Later(tables)) => {
                if !self.awaited.wait(key, request.clone(), asker, tables) {
                    self.respond(key, &request, Err(SaStatus::Busy), now);
                }
            }
            answer => self.respond(key, &request, answer, now),
        }
    }

    /// The next part of a table that a port is to be asked for. [`Self::take_table`] takes the answer.
    pub(crate) fn poll_table(&mut self) -> Option<TableOf> {
        self.awaited.poll_table()
    }

    /// Takes a part of a table that a port told; `None` if it did not tell. Once all parts that are waited
    /// for are there, requests are answered.
    pub(crate) fn take_table(&mut self, table: TableOf, data: Option<Data>, now: Instant) {
        let Some((requests, told)) = self.awaited.take(table, data) else { return };
        for (key, (request, asker)) in requests {
            let answer = self.answer_from(&request, asker, &told);
            self.respond(key, &request, answer, now);
        }
    }

    /// Answers a request from what ports told.
    fn answer_from(&self, request: &SaMad, asker: Asker, told: &Told) -> Result<Answer, SaStatus> {
        let subnet = self.subnet.as_ref().ok_or(SaStatus::Busy)?;
        let parts = tables::asked_for(subnet, &self.groups, request, asker)?;
        // The subnet may have changed meanwhile, so that other parts are needed.
        if parts.iter().any(|(_, table)| !told.contains_key(table)) {
            return Err(SaStatus::Busy);
        }
        let records = tables::records(&parts, told)?;
        if request.method == SaMethod::GetTable { Ok(Answer::Several(records)) } else { records.only() }
    }

    fn respond(&mut self, key: Key, request: &SaMad, answer: Result<Answer, SaStatus>, now: Instant) {
        let (lid, queue_pair, _) = key;
        let level = self.subnet.as_ref().map_or(0, |subnet| subnet.level_to(lid));
        let address = Address::Lid { lid, queue_pair, level };
        match answer {
            Err(status) => self.send(address, &request.answered(status.code())),
            Ok(Answer::One(record)) => self.send(address, &request.answered(0).with_record(&record)),
            Ok(Answer::Several(records)) => {
                let records = (records.offset(), records.into_bytes());
                if !self.transfers.begin(key, address, request, records, now) {
                    self.send(address, &request.answered(SaStatus::Busy.code()));
                }
            }
            Ok(Answer::Later(_)) => self.send(address, &request.answered(SaStatus::Busy.code())),
        }
    }

    fn send(&mut self, address: Address, answer: &SaMad) {
        if self.out.len() < MAX_OUT {
            self.out.push_back(Packet { address, mad: answer.emit() });
        }
    }

    fn answer(&mut self, request: &SaMad, asker: Asker, now: Instant) -> Result<Answer, SaStatus> {
        let subnet = self.subnet.as_ref().ok_or(SaStatus::Busy)?;
        match (request.method, request.attribute) {
            (SaMethod::Get, SaAttribute::ClassPortInfo) => {
                Ok(Answer::One(class_port_info(RESPONSE_TIME).to_vec()))
            }
            (SaMethod::GetMulti, SaAttribute::MultiPathRecord) => {
                Ok(Answer::Several(multi_paths::find(subnet, &self.groups, request)?))
            }
            (SaMethod::Get | SaMethod::GetTable, _) => {
                let parts = tables::asked_for(subnet, &self.groups, request, asker)?;
                if !parts.is_empty() {
                    return Ok(Answer::Later(parts.into_iter().map(|(_, table)| table).collect()));
                }
                let records = self.find(subnet, request, asker, now)?;
                if request.method == SaMethod::GetTable {
                    Ok(Answer::Several(records))
                } else {
                    records.only()
                }
            }
            (SaMethod::Set, SaAttribute::McMemberRecord) => self.join(request, asker),
            (SaMethod::Delete, SaAttribute::McMemberRecord) => self.leave(request, asker),
            (SaMethod::Set, SaAttribute::ServiceRecord) => {
                let record = ServiceRecord::parse(&request.data);
                let record = self.services.register(subnet, record, request.mask, asker, now)?;
                Ok(Answer::One(record.emit().to_vec()))
            }
            (SaMethod::Delete, SaAttribute::ServiceRecord) => {
                let record =
                    self.services.delete(subnet, ServiceRecord::parse(&request.data), request.mask, asker)?;
                Ok(Answer::One(record.emit().to_vec()))
            }
            (SaMethod::Set, SaAttribute::InformInfo) => {
                let wanted = InformInfo::parse(&request.data);
                self.reports.subscribe(wanted, asker)?;
                Ok(Answer::One(wanted.emit().to_vec()))
            }
            _ => Err(SaStatus::MethodAttribute),
        }
    }

    /// The records that match a request.
    fn find(
        &self,
        subnet: &Subnet,
        request: &SaMad,
        asker: Asker,
        now: Instant,
    ) -> Result<Records, SaStatus> {
        match request.attribute {
            SaAttribute::PathRecord => paths::find(subnet, &self.groups, request),
            SaAttribute::McMemberRecord => self.groups.find(subnet, request, asker),
            SaAttribute::ServiceRecord => self.services.find(request, asker, now),
            SaAttribute::InformInfoRecord => self.reports.find(subnet, request),
            SaAttribute::LinearTableRecord => tables::linear(subnet, request),
            // The request names no part of a table that exists.
            SaAttribute::PartitionRecord
            | SaAttribute::SlToVlRecord
            | SaAttribute::VlArbitrationRecord
            | SaAttribute::GuidInfoRecord
            | SaAttribute::MulticastTableRecord => Ok(Records::default()),
            _ => listing::find(subnet, request),
        }
    }

    fn join(&mut self, request: &SaMad, asker: Asker) -> Result<Answer, SaStatus> {
        let subnet = self.subnet.as_ref().ok_or(SaStatus::Busy)?;
        let wanted = McMemberRecord::parse(&request.data);
        let joined = self.groups.join(subnet, wanted, request.mask, asker)?;
        if joined.is_new_group {
            self.reports.tell(&subnet.notice(SubnetNotice::GROUP_MADE, joined.record.group), subnet);
        }
        Ok(Answer::One(joined.record.emit().to_vec()))
    }

    fn leave(&mut self, request: &SaMad, asker: Asker) -> Result<Answer, SaStatus> {
        let subnet = self.subnet.as_ref().ok_or(SaStatus::Busy)?;
        let wanted = McMemberRecord::parse(&request.data);
        let left = self.groups.leave(subnet, &wanted, request.mask, asker)?;
        if left.is_group_gone {
            self.reports.tell(&subnet.notice(SubnetNotice::GROUP_GONE, left.record.group), subnet);
        }
        Ok(Answer::One(left.record.emit().to_vec()))
    }
}
