//! Subscriptions of those who want to be told what happens, and reports that were not confirmed yet.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mapper_proto::time::Instant;

use super::Asker;
use super::records::Records;
use super::subnet::Subnet;
use crate::mad::sa::{
    INFORM_FIELDS, InformInfo, Rmpp, SaAttribute, SaMad, SaMethod, SaStatus, SubnetNotice, inform_record,
    matches,
};
use crate::packet::{Address, Packet};

/// Most subscriptions.
const MAX_SUBSCRIPTIONS: usize = 4096;
/// Most subscriptions of one LID.
const MAX_OF_LID: usize = 64;
/// Most reports that were not confirmed yet. If there are as many, what else happens is not told.
const MAX_OPEN: usize = 4096;
/// How many reports may be under way.
const WINDOW: usize = 16;
/// How long a subscriber may take to confirm a report.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How often a report is sent again.
const RETRIES: u32 = 3;
/// The queue pair of management.
const MANAGEMENT_PAIR: u32 = 1;

/// A report on its way.
#[derive(Debug)]
struct Report {
    to: u16,
    level: u8,
    notice: SubnetNotice,
    times_sent: u32,
    /// When the report is sent again unless it was confirmed; `None` before it was sent.
    deadline: Option<Instant>,
}

/// Subscriptions and reports.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The LIDs of subscribers, each with what it wants to be told.
    subscriptions: BTreeSet<(u16, InformInfo)>,
    /// The reports that were not confirmed yet, by the numbers of their transactions.
    open: BTreeMap<u32, Report>,
    /// The transactions of reports that are to be sent.
    waiting: VecDeque<u32>,
    under_way: usize,
    next_tid: u32,
}

impl Reports {
    /// Subscribes a port to what happens, or ends its subscription.
    pub(super) fn subscribe(&mut self, wanted: InformInfo, asker: Asker) -> Result<(), SaStatus> {
        let subscribes = wanted.subscribes;
        // Two subscriptions that differ only in response time count as one. Each queue pair has its own, and ends its own.
        let wanted = InformInfo {
            subscribes: true,
            queue_pair: if wanted.queue_pair == 0 { asker.queue_pair } else { wanted.queue_pair },
            response_time: 0,
            ..wanted
        };
        let entry = (asker.lid, wanted);
        if !subscribes {
            return if self.subscriptions.remove(&entry) { Ok(()) } else { Err(SaStatus::Invalid) };
        }
        let of_lid = self.subscriptions.iter().filter(|(lid, _)| *lid == asker.lid).count();
        if !self.subscriptions.contains(&entry)
            && (self.subscriptions.len() >= MAX_SUBSCRIPTIONS || of_lid >= MAX_OF_LID)
        {
            return Err(SaStatus::NoResources);
        }
        self.subscriptions.insert(entry);
        Ok(())
    }

    /// The records of subscriptions that match a request.
    pub(super) fn find(&self, subnet: &Subnet, request: &SaMad) -> Result<Records, SaStatus> {
        let mut records = Records::default();
        let (mut last, mut number) = (0, 0);
        for (lid, wanted) in &self.subscriptions {
            number = if *lid == last { number + 1 } else { 0 };
            last = *lid;
            let Some(end) = subnet.by_lid(*lid) else { continue };
            let record = inform_record(subnet.gid_of(end), number, wanted);
            if matches(INFORM_FIELDS, request.mask, &request.data, &record) {
                records.push(&record)?;
            }
        }
        Ok(records)
    }

    /// Sends a notice to all who want to be told of it.
    pub(super) fn tell(&mut self, notice: &SubnetNotice, subnet: &Subnet) {
        let wanting = self.subscriptions.iter().filter(|(_, wanted)| notice.is_wanted(wanted));
        let lids: BTreeSet<u16> = wanting.map(|&(lid, _)| lid).collect();
        for to in lids {
            if self.open.len() >= MAX_OPEN {
                return;
            }
            let level = subnet.level_to(to);
            let tid = self.next_tid;
            self.next_tid = tid.wrapping_add(1);
            self.open.insert(tid, Report { to, level, notice: *notice, times_sent: 0, deadline: None });
            self.waiting.push_back(tid);
        }
    }

    /// Takes in that a subscriber confirmed a report.
    pub(super) fn took_note(&mut self, from: u16, tid: u64) {
        // Whatever carries datagrams uses the upper half of the transaction's number.
        let tid = tid as u32;
        if self.open.get(&tid).is_some_and(|report| report.to == from && report.times_sent > 0)
            && let Some(report) = self.open.remove(&tid)
        {
            self.under_way -= usize::from(report.deadline.is_some());
        }
    }

    /// Drops the subscriptions of ports that are gone.
    pub(super) fn keep(&mut self, subnet: &Subnet) {
        self.subscriptions.retain(|&(lid, _)| subnet.by_lid(lid).is_some());
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if self.under_way >= WINDOW {
            return None;
        }
        let (tid, report) = loop {
            let tid = self.waiting.pop_front()?;
            if let Some(report) = self.open.get_mut(&tid) {
                break (tid, report);
            }
        };
        report.times_sent += 1;
        report.deadline = Some(now + TIMEOUT);
        self.under_way += 1;
        let mad = SaMad {
            method: SaMethod::Report,
            status: 0,
            tid: tid.into(),
            attribute: SaAttribute::Notice,
            modifier: 0,
            rmpp: Rmpp::default(),
            key: 0,
            offset: 0,
            mask: 0,
            data: [0; crate::mad::sa::RECORD_BYTES],
        };
        let mad = mad.with_record(&report.notice.emit()).emit();
        let address = Address::Lid { lid: report.to, queue_pair: MANAGEMENT_PAIR, level: report.level };
        Some(Packet { address, mad })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.open.values().filter_map(|report| report.deadline).min()
    }

    /// Sends reports again that were not confirmed in time, or gives them up.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let is_late = |report: &Report| report.deadline.is_some_and(|at| at <= now);
        let late: Vec<u32> = self.open.iter().filter(|(_, of)| is_late(of)).map(|(&tid, _)| tid).collect();
        for tid in late {
            self.under_way -= 1;
            let Some(report) = self.open.get_mut(&tid) else { continue };
            report.deadline = None;
            if report.times_sent > RETRIES {
                self.open.remove(&tid);
            } else {
                self.waiting.push_back(tid);
            }
        }
    }
}
