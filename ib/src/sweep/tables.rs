//! The forwarding tables that switches hold, read without writing anything.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::time::Instant;

use super::{Found, SweepSettings};
use crate::lids::LAST_LID;
use crate::mad::{Attribute, Method, NodeKind, Route, Smp, SwitchInfo};
use crate::program::{BLOCK, NO_PORT};
use crate::requests::Requests;

/// What is asked of a switch, by its GUID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TableQuestion {
    /// How far its table reaches.
    Reach { guid: u64 },
    /// A block of its table.
    Block { guid: u64, block: u16 },
}

impl TableQuestion {
    const fn guid(self) -> u64 {
        match self {
            Self::Reach { guid } | Self::Block { guid, .. } => guid,
        }
    }

    fn asks(self) -> (Attribute, u32) {
        match self {
            Self::Reach { .. } => (Attribute::SwitchInfo, 0),
            Self::Block { block, .. } => (Attribute::LinearTable, block.into()),
        }
    }
}

/// The tables of all switches of a fabric.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TablesFound {
    /// A port for each LID, 0xFF where none leads, by the switch's GUID.
    pub tables: BTreeMap<u64, Vec<u8>>,
    /// The switches that did not tell their tables, by GUID.
    pub silent: BTreeSet<u64>,
}

/// The reading of all tables. It is driven as a [`super::Sweep`] is, and only ever asks as well.
#[derive(Debug)]
pub struct TableReading {
    settings: SweepSettings,
    requests: Requests<TableQuestion>,
    found: TablesFound,
}

impl TableReading {
    /// Begins to read the tables of the switches that were found.
    pub fn new(settings: SweepSettings, fabric: &Found) -> Self {
        // The transactions are far from those of the sweep, so that late answers to the sweep do not count.
        let mut requests = Requests::new(settings.window.get(), 1 << 24);
        for node in fabric.nodes.iter().filter(|node| node.info.kind == NodeKind::Switch) {
            requests.ask(TableQuestion::Reach { guid: node.info.guid }, node.route.clone());
        }
        Self { settings, requests, found: TablesFound::default() }
    }

    /// The next question to send, if one may go out now. Its type makes sure that it is a question, and does
    /// not write.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Smp> {
        let (tid, request) = self.requests.send(now + self.settings.timeout)?;
        Some(Smp::asking(tid, request.question.asks(), self.settings.key, request.route.clone()))
    }

    /// The moment at which to call [`Self::handle_timeout`]; `None` if nothing is under way.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.requests.next_deadline()
    }

    /// Whether everything was answered or given up.
    pub fn is_done(&self) -> bool {
        self.requests.is_empty()
    }

    /// Takes note of which questions were not answered in time.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(tid) = self.requests.expired(now) {
            self.try_again(tid);
        }
    }

    /// Takes a datagram from the fabric. Datagrams that answer no open question are ignored.
    pub fn handle_mad(&mut self, mad: &[u8]) {
        let Ok(answer) = Smp::<Method>::parse(mad) else { return };
        // Whatever carries datagrams uses the upper half of the transaction's number.
        let tid = answer.tid as u32;
        let Some(asked) = self.requests.get(tid) else { return };
        let fits = answer.method == Method::GetResponse
            && (answer.attribute, answer.modifier) == asked.question.asks()
            && answer.route == asked.route;
        if !fits {
            return;
        }
        if answer.status != 0 {
            return self.try_again(tid);
        }
        let Some((question, route)) = self.requests.take(tid) else { return };
        match question {
            TableQuestion::Reach { guid } => {
                self.reaches(guid, SwitchInfo::parse(&answer.data).linear_top(), &route);
            }
            TableQuestion::Block { guid, block } => {
                let first = usize::from(block) * BLOCK;
                let table = self.found.tables.get_mut(&guid).map_or(&mut [][..], Vec::as_mut_slice);
                let part = table.get_mut(first..).unwrap_or_default();
                part.iter_mut().zip(answer.data).for_each(|(entry, port)| *entry = port);
            }
        }
    }

    /// What was read.
    pub fn finish(mut self) -> TablesFound {
        let silent = &self.found.silent;
        self.found.tables.retain(|guid, _| !silent.contains(guid));
        self.found
    }

    fn reaches(&mut self, guid: u64, top: u16, route: &Route) {
        let top = top.min(LAST_LID);
        self.found.tables.insert(guid, vec![NO_PORT; usize::from(top) + 1]);
        for block in 0..=top / BLOCK as u16 {
            self.requests.ask(TableQuestion::Block { guid, block }, route.clone());
        }
    }

    fn try_again(&mut self, tid: u32) {
        if let Some((question, _)) = self.requests.again(tid, self.settings.retries) {
            self.found.silent.insert(question.guid());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::time::Duration;

    use super::*;
    use crate::mad::{DATA_BYTES, Make, NodeInfo};
    use crate::sweep::Node;

    /// Switches 1 and 2, behind ports of these numbers of the node that asks.
    fn fabric() -> Found {
        let switch = |guid: u64| {
            let kind = NodeKind::Switch;
            let info = NodeInfo {
                kind,
                ports: 8,
                system_guid: 0,
                guid,
                port_guid: guid,
                local_port: 1,
                make: Make::default(),
            };
            Node::new(info, Route::new(&[guid as u8]).unwrap())
        };
        Found { nodes: vec![switch(1), switch(2)], ..Found::default() }
    }

    #[test]
    fn tables_are_read_as_far_as_they_reach_and_who_is_silent_is_named() {
        let (window, timeout) = (NonZeroUsize::new(2).unwrap(), Duration::from_millis(10));
        let settings = SweepSettings { window, timeout, retries: 1, max_nodes: 9, key: 0 };
        let mut reading = TableReading::new(settings, &fabric());
        let mut now = Instant::ZERO;
        while !reading.is_done() {
            while let Some(asked) = reading.poll_transmit(now) {
                // The second switch tells how far its table reaches, but not what is in it.
                let data = match asked.attribute {
                    Attribute::SwitchInfo => SwitchInfo::new(100, 0).with(70, false).emit(),
                    _ if asked.route.ports() == [2] => continue,
                    _ => [asked.modifier as u8 + 1; DATA_BYTES],
                };
                reading.handle_mad(&Smp { method: Method::GetResponse, data, ..asked }.emit());
            }
            now = now + timeout;
            reading.handle_timeout(now);
        }
        let found = reading.finish();
        let expected = [vec![1; 64], vec![2; 7]].concat();
        assert_eq!((found.tables, found.silent), (BTreeMap::from([(1, expected)]), BTreeSet::from([2])));
    }
}
