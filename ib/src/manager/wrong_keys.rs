//! Uses of wrong keys that ports told the master of.
//!
//! A port that is sent wrong keys again and again tells of each, so people are told once of each sender and
//! receiver, and further uses are counted.

use std::collections::BTreeMap;

use super::{Event, SubnetManager};
use crate::mad::{KeyKind, WrongKey};

/// Most pairs of a sender and a receiver that are remembered.
const MAX_PAIRS: usize = 64;

/// Wrong keys since this manager became master.
#[derive(Debug, Default)]
pub(super) struct WrongKeys {
    /// How often each pair was told of, and the last trap about it.
    pairs: BTreeMap<Pair, (u64, WrongKey)>,
}

/// The kind of key, the LIDs of sender and receiver, and the hops of a directed route.
type Pair = (KeyKind, u16, u16, Option<u8>);

impl SubnetManager {
    /// Takes in that a port told of a wrong key.
    pub(super) fn take_wrong_key(&mut self, told: &WrongKey) {
        self.counts.count(told.kind.into());
        let pair = (told.kind, told.from, told.to, told.hops);
        let pairs = &mut self.wrong_keys.pairs;
        if !pairs.contains_key(&pair) && pairs.len() >= MAX_PAIRS {
            return;
        }
        let (times, last) = pairs.entry(pair).or_insert((0, *told));
        *times += 1;
        *last = *told;
        if *times == 1 {
            let words = self.tell_wrong_key(told);
            self.tell(Event::WrongKey(words));
        }
    }

    /// All uses of wrong keys, in words.
    pub(super) fn wrong_keys(&self) -> Vec<String> {
        let pairs = self.wrong_keys.pairs.values();
        pairs.map(|(times, told)| format!("{} ({times} times)", self.tell_wrong_key(told))).collect()
    }

    fn tell_wrong_key(&self, told: &WrongKey) -> String {
        let key = match told.kind {
            // The key itself is not shown, as it may be nearly the right one, with a typing error.
            KeyKind::Management => "key of management (M_Key)".to_owned(),
            KeyKind::Partition => format!("key of a partition (P_Key {:#06x})", told.key),
            KeyKind::Queue => format!("key of a queue pair (Q_Key {:#010x})", told.key),
        };
        let from = match told.hops {
            Some(hops) => format!("somebody {hops} cables away by a directed route"),
            None => self.name_of_lid(told.from),
        };
        format!("{from} sent to {} with a wrong {key}", self.name_of_lid(told.to))
    }

    /// The node whose port has a LID.
    fn name_of_lid(&self, lid: u16) -> String {
        let adapters = self.inventory.adapters.iter();
        let adapters = adapters.map(|of| (of.port_guid, of.node_guid, self.settings.lmc));
        let switches = self.inventory.switches.iter().map(|of| (of.port_guid, of.guid, 0));
        let has = |port: u64, lmc: u8| {
            self.lids.of(port).is_some_and(|first| (first..first + (1 << lmc)).contains(&lid))
        };
        let node = adapters.chain(switches).find(|&(port, _, lmc)| has(port, lmc)).map(|(_, node, _)| node);
        match node {
            Some(node) => format!("{} at LID {lid}", self.name_of(node)),
            None => format!("nobody's LID {lid}"),
        }
    }
}
