//! Tables by which packets may still be under way.

use std::collections::{BTreeMap, VecDeque};

use mapper_proto::time::Instant;

use super::task::Levels;

/// The tables of switches, by GUID.
pub(super) type TablesOfSwitches = BTreeMap<u64, Vec<u8>>;

/// Tables that were in force, and the service levels that hosts were told with them, if that is known.
#[derive(Debug)]
pub(super) struct FormerTables {
    pub(super) tables: TablesOfSwitches,
    pub(super) told: Option<Levels>,
}

/// How many former states of tables are kept.
const MOST: usize = 4;

/// Tables that were in force so recently that packets may be under way by them.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// With the moment at which their packets have arrived or are dropped, the oldest first.
    left: VecDeque<(Instant, FormerTables)>,
}

impl UnderWay {
    /// Takes note that tables are in force no more.
    pub(super) fn leave(&mut self, former: FormerTables, until: Instant) {
        self.left.push_back((until, former));
    }

    /// The tables by which packets may be under way now, the newest first.
    pub(super) fn tables(&mut self, now: Instant) -> impl Iterator<Item = &TablesOfSwitches> {
        self.left.retain(|&(until, _)| until > now);
        self.left.iter().rev().map(|(_, former)| &former.tables)
    }

    /// The service levels that hosts were told with these tables, in the same order.
    pub(super) fn told(&mut self, now: Instant) -> impl Iterator<Item = Option<&Levels>> {
        self.left.retain(|&(until, _)| until > now);
        self.left.iter().rev().map(|(_, former)| former.told.as_ref())
    }

    /// When there are few enough of them to compute the next tables.
    pub(super) fn few_at(&self, now: Instant) -> Option<Instant> {
        let too_many = self.left.iter().filter(|&&(until, _)| until > now).count().checked_sub(MOST)?;
        self.left.iter().map(|&(until, _)| until).filter(|&until| until > now).nth(too_many)
    }

    /// When no packet is under way by any of them.
    pub(super) fn gone_at(&self) -> Option<Instant> {
        self.left.iter().map(|&(until, _)| until).max()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn tables_count_until_their_packets_are_gone_and_few_of_them_are_kept() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut under_way = UnderWay::default();
        for second in 1..=4 {
            let tables = TablesOfSwitches::from([(second, Vec::new())]);
            under_way.leave(FormerTables { tables, told: None }, at(second));
        }
        let guids = |under_way: &mut UnderWay, now| -> Vec<u64> {
            under_way.tables(now).flat_map(|tables| tables.keys().copied()).collect()
        };
        assert_eq!(under_way.few_at(at(0)), Some(at(1)));
        assert_eq!(guids(&mut under_way, at(0)), [4, 3, 2, 1]);
        assert_eq!(guids(&mut under_way, at(2)), [4, 3]);
        assert_eq!((under_way.few_at(at(2)), under_way.gone_at()), (None, Some(at(4))));
    }
}
