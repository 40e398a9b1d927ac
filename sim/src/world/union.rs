//! Whether the routes in force can deadlock: those of all hosts together, of all maps and repairs.
//!
//! What the proof of one map's routes calls a channel is the interface that it stands for in the plant, so
//! routes of different maps meet in one graph. A frame waits for nothing behind a cable that does not pass it,
//! so a route counts up to there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mapper_host::routes::RouteTable;
use mapper_proto::wire::{Data, Route};

use super::World;

/// Which tables, on which state of the plant, were looked at last, and what came of it.
#[derive(Debug, Default)]
pub(super) struct United {
    generation: u64,
    tables: Vec<Option<Arc<RouteTable>>>,
    result: Option<Result<(), String>>,
}

impl World {
    /// Proves that the routes that live hosts use now cannot deadlock, whichever maps and repairs they
    /// belong to.
    ///
    /// # Errors
    /// In words, naming a circle.
    pub fn prove_in_force(&mut self) -> Result<(), String> {
        let hosts = 0..self.hosts.len() as u32;
        let tables: Vec<_> =
            hosts.map(|host| self.table(host).filter(|_| self.is_live(host)).cloned()).collect();
        let same = |one: &Option<Arc<RouteTable>>, other: &Option<Arc<RouteTable>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let known = self.united.generation == self.plant.generation()
            && self.united.tables.len() == tables.len()
            && self.united.tables.iter().zip(&tables).all(|(one, other)| same(one, other));
        if let Some(result) = self.united.result.as_ref().filter(|_| known) {
            return result.clone();
        }
        let result = self.find_circle(&tables);
        let generation = self.plant.generation();
        self.united = United { generation, tables, result: Some(result.clone()) };
        result
    }

    /// Whether some live host has routes that are safe only as long as cables are dead.
    pub fn depends_on_the_dead(&mut self) -> bool {
        let hosts = 0..self.hosts.len() as u32;
        let depends = |host| self.table(host).is_some_and(|table| table.depends_on_the_dead());
        hosts.into_iter().any(|host| depends(host) && self.is_live(host))
    }

    fn find_circle(&self, tables: &[Option<Arc<RouteTable>>]) -> Result<(), String> {
        let frame = Data { token: 0, way_back: Route::new(), ethernet: &[0; 64] }
            .encode()
            .map_err(|error| error.to_string())?;
        let mut after: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (host, table) in (0..).zip(tables) {
            let Some(table) = table else { continue };
            for path in table.hosts().flat_map(|(_, to)| table.paths_to(to)) {
                let payload = [path.way.there.as_bytes(), &frame].concat();
                for pair in self.plant.channels(host, &payload).windows(2) {
                    after.entry(pair[0]).or_default().insert(pair[1]);
                }
            }
        }
        circle(after).map_or(Ok(()), |circle| {
            let ends: Vec<_> = self.plant.ends().collect();
            let names: Vec<_> =
                circle.iter().map(|&socket| self.plant.end_name(ends[socket as usize])).collect();
            Err(format!("the routes in force, of all maps and repairs, can deadlock by {}", names.join(", ")))
        })
    }
}

/// What is left when channels are taken out that wait for none, until there are no more: channels of circles,
/// and such that lead to them.
fn circle(mut after: BTreeMap<u32, BTreeSet<u32>>) -> Option<Vec<u32>> {
    loop {
        let waiting: BTreeSet<u32> = after.keys().copied().collect();
        after.retain(|_, next| {
            next.retain(|channel| waiting.contains(channel));
            !next.is_empty()
        });
        if after.len() == waiting.len() {
            break;
        }
    }
    // Every channel that is left leads to another: whoever follows them comes round.
    let mut way = vec![*after.keys().next()?];
    loop {
        let next = *after.get(way.last()?)?.first()?;
        if let Some(at) = way.iter().position(|&channel| channel == next) {
            return Some(way.split_off(at));
        }
        way.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(u32, u32)]) -> Option<Vec<u32>> {
        let mut after: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        pairs.iter().for_each(|&(one, other)| {
            after.entry(one).or_default().insert(other);
        });
        circle(after)
    }

    #[test]
    fn a_circle_is_found_wherever_it_is() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(1, 2), (2, 3), (1, 3)]), None);
        assert_eq!(found(&[(0, 1), (1, 2), (2, 3), (3, 1), (3, 9)]), Some(vec![1, 2, 3]));
    }
}
