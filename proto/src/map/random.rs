//! Random maps for the tests.

use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Cable, Contested, Host, Map, MapVersion, PortRef, Xbar, host_type};
use crate::Mac;

/// What a random map is drawn from. When a property test shrinks these numbers, the map shrinks with them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    pub(crate) hosts: usize,
    pub(crate) xbars: usize,
    pub(crate) cables: usize,
    pub(crate) phantoms: usize,
}

/// Small draws.
pub(crate) fn draws() -> impl Strategy<Value = Draw> {
    (any::<u64>(), 0..24usize, 0..10usize, 0..24usize, 0..3usize)
        .prop_map(|(seed, hosts, xbars, cables, phantoms)| Draw { seed, hosts, xbars, cables, phantoms })
}

impl Draw {
    /// The map drawn: it passes [`Map::check`], and is not connected by design.
    pub(crate) fn map(self) -> Map {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let counter = rng.random_range(1..=u32::MAX);
        let mut map = Map { version: MapVersion { mac: Mac::from_position(1), counter }, ..Map::default() };
        let mut free = Vec::new();
        for xbar in 0..self.xbars as u32 {
            let ports = rng.random_range(1..=16);
            let first = rng.random_range(0..=1);
            let tag = rng.random_bool(0.5).then(|| rng.random());
            map.xbars.push(Xbar { ports, tag, ports_known: tag.is_some() || rng.random_bool(0.5) });
            free.extend((first..first + ports).map(|port| PortRef { xbar, port }));
        }
        free.shuffle(&mut rng);
        for _ in 0..self.cables {
            let Some(a) = free.pop() else { break };
            let b = if rng.random_bool(0.05) { Some(a) } else { free.pop() };
            map.cables.extend(b.map(|b| Cable::new(a, b)));
        }
        let macs = rand::seq::index::sample(&mut rng, 1000, self.hosts + self.phantoms);
        for (nth, position) in macs.iter().enumerate() {
            let phantom = nth >= self.hosts;
            let may_be_unplaced = phantom || (self.xbars == 0 && nth < 2);
            let at = if phantom { None } else { free.pop() };
            if at.is_none() && !may_be_unplaced {
                continue;
            }
            map.hosts.push(Host {
                mac: Mac::from_position(position as u32),
                level: rng.random_range(0..4),
                host_type: if phantom { host_type::PHANTOM } else { host_type::ETHERNET },
                at,
            });
        }
        for nth in 0..rng.random_range(0..4) {
            let mac = Mac::from_position(2000 + nth / 2);
            map.contested.extend(free.pop().map(|at| Contested { mac, at }));
        }
        map.sort_canonical();
        map.lossy = map.cables.iter().filter(|_| rng.random_bool(0.1)).copied().collect();
        map
    }
}
