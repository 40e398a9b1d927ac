//! What must hold at all times, and whether the routes in use lead where they should.

use std::collections::BTreeMap;
use std::sync::Arc;

use mapper_host::routes::{RoutePath, RouteTable};
use mapper_proto::Mac;
use mapper_proto::map::{FrameSizes, LinkMtu, Map};
use mapper_proto::wire::{AgentState, Data, RoundTrip, Route};
use mapper_routing::UnionProof;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::World;
use crate::fabric::{Fate, Noise, PlantNode};

/// The least number of tables for which other threads are worth their cost.
const FEW_TABLES: usize = 32;

impl World {
    /// Checks that no agent holds more than `most` entries in its queues and tables.
    ///
    /// # Errors
    /// If one does; the error names the host, in words.
    pub fn check_load(&self, most: usize) -> Result<(), String> {
        for (i, slot) in self.hosts.iter().enumerate() {
            let load = slot.node.as_ref().map_or(0, |node| node.load());
            if load > most {
                return Err(format!(
                    "{} holds {load} entries in its queues",
                    self.plant.name(PlantNode::Host(i as u32))
                ));
            }
        }
        Ok(())
    }

    /// Checks that no agent says it is configured without proved routes of the map that it holds.
    ///
    /// # Errors
    /// If one says so; the error names the host, in words.
    pub fn check_routes(&self) -> Result<(), String> {
        (0..self.hosts.len() as u32).try_for_each(|host| self.check_routes_of(host))
    }

    /// As [`Self::check_routes`], of one host.
    pub(super) fn check_routes_of(&self, host: u32) -> Result<(), String> {
        let Some(status) = self.status(host) else { return Ok(()) };
        let routes = self.table(host).map(|table| table.version()).unwrap_or_default();
        if status.state == AgentState::Configured && routes != status.version {
            let name = self.plant.name(PlantNode::Host(host));
            let version = status.version;
            return Err(format!("{name} is configured with map {version} and has routes of map {routes}"));
        }
        Ok(())
    }

    /// Checks that the maps in force say how long frames may be at each of their hosts, if users send any.
    ///
    /// # Errors
    /// In words, naming the host that has such a map.
    pub fn check_frame_sizes(&self) -> Result<(), String> {
        if self.options.traffic.is_none() {
            return Ok(());
        }
        let by_mac = (0..).zip(&self.hosts).map(|(host, slot)| (slot.settings.mac, self.link_mtu(host)));
        let mtus: BTreeMap<Mac, LinkMtu> = by_mac.collect();
        for (host, slot) in (0..).zip(&self.hosts) {
            let Some(map) = slot.node.as_ref().and_then(|node| node.map()) else { continue };
            let mtu_of = |mac| mtus.get(&mac).map(|&mtu| (mac, mtu));
            let sizes = FrameSizes::of(map.hosts.iter().filter_map(|host| mtu_of(host.mac)));
            if map.frame_sizes != sizes {
                let (name, said) = (self.plant.name(PlantNode::Host(host)), &map.frame_sizes);
                return Err(format!("the map of {name} has the MTUs {said:?} instead of {sizes:?}"));
            }
        }
        Ok(())
    }

    /// Proves that the routes of one map, before any repair, cannot deadlock together: in each part that of its
    /// first host. Those of other maps, and repairs, are looked at by [`Self::watch_routes`].
    ///
    /// # Errors
    /// In words, naming a cycle.
    pub fn prove_union(&mut self) -> Result<(), String> {
        let proved = std::mem::take(&mut self.proved);
        let mut in_use = Vec::new();
        for part in self.live_parts() {
            let [first, _, ..] = part.hosts[..] else { continue };
            let Some(version) = self.status(first).map(|status| status.version) else { continue };
            let tables = part.hosts.iter().filter_map(|&host| self.table(host));
            let tables: Vec<_> = tables.filter(|table| table.version() == version).cloned().collect();
            let same = |known: &Vec<Arc<RouteTable>>| {
                known.len() == tables.len()
                    && known.iter().zip(&tables).all(|(one, other)| Arc::ptr_eq(one, other))
            };
            if !proved.iter().any(same) {
                prove_tables_together(&tables)?;
            }
            in_use.push(tables);
        }
        self.proved = in_use;
        Ok(())
    }

    /// Sends a user's frame along each of the routes in use, there and back, between up to `pairs` pairs of live hosts
    /// drawn from `seed`, and says which does not arrive. Costs no virtual time.
    ///
    /// # Errors
    /// In words, naming the pair.
    pub fn deliver_all(&mut self, pairs: usize, seed: u64) -> Result<(), String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for part in self.live_parts() {
            let [first, _, ..] = part.hosts[..] else { continue };
            let Some(map) = self.hosts[first as usize].node.as_ref().and_then(|node| node.map()) else {
                continue;
            };
            let count = part.hosts.len();
            let all = count * (count - 1);
            for n in 0..all.min(pairs) {
                let n = if all <= pairs { n } else { rng.random_range(0..all) };
                let (from, to) = (n / (count - 1), n % (count - 1));
                let to = if to >= from { to + 1 } else { to };
                self.deliver_one(&map, part.hosts[from], part.hosts[to], &mut rng)?;
            }
        }
        Ok(())
    }

    /// Sends a frame along each of the routes in use between two hosts, there and back.
    fn deliver_one(&mut self, map: &Map, from: u32, to: u32, rng: &mut ChaCha8Rng) -> Result<(), String> {
        let [from_name, to_name] = [from, to].map(|host| self.plant.name(PlantNode::Host(host)).to_owned());
        let table = self.table(from).filter(|table| table.version() == map.version).cloned();
        let number = table.as_ref().and_then(|table| table.host(self.mac(to)));
        let paths = table.iter().zip(number).flat_map(|(table, to)| table.paths_to(to));
        let mut leads_there = false;
        for RoutePath { way: RoundTrip { there, back }, .. } in paths {
            leads_there = true;
            for (route, ends, what) in [(there, (from, to), "route"), (back, (to, from), "way back")] {
                if let Err(fate) = self.walk_route(&route, ends, rng)? {
                    let why = format!(
                        "the {what} {route} of {from_name} and {to_name} does not lead there: {fate:?}"
                    );
                    return Err(why);
                }
            }
        }
        if leads_there { Ok(()) } else { Err(format!("{from_name} has no route to {to_name}")) }
    }

    /// Sends a frame along a route from one host to another. The inner error says what became of it if it does not arrive.
    fn walk_route(
        &mut self,
        route: &Route,
        (from, to): (u32, u32),
        rng: &mut ChaCha8Rng,
    ) -> Result<Result<(), Fate>, String> {
        let frame = Data { token: 0, way_back: Route::new(), ethernet: &[0; 64] }
            .encode()
            .map_err(|error| error.to_string())?;
        let mut payload = [route.as_bytes(), &frame].concat();
        let fate = self.plant.walk(from, &mut payload, &self.options.timing, &Noise::default(), rng);
        let length = route.as_bytes().len();
        let arrives =
            matches!(fate, Fate::Arrives { host, stripped, .. } if host == to && stripped == length);
        Ok(if arrives { Ok(()) } else { Err(fate) })
    }
}

/// Proves that these tables of one map, as they were before any repair, cannot deadlock together. Repairs are
/// looked at where all routes in force are: see [`World::watch_routes`].
fn prove_tables_together(tables: &[Arc<RouteTable>]) -> Result<(), String> {
    let Some(first) = tables.first() else { return Ok(()) };
    let begin = || Ok(UnionProof::new(first.basis().topology()));
    if tables.len() < FEW_TABLES {
        let mut union = UnionProof::new(first.basis().topology());
        for table in tables {
            union.add_table(table.whole()).map_err(|error| error.to_string())?;
        }
        return union.prove_acyclic().map_err(|cycle| cycle.to_string());
    }
    let union = tables
        .par_iter()
        .fold(begin, |union: Result<UnionProof<'_>, String>, table| {
            let mut union = union?;
            union.add_table(table.whole()).map_err(|error| error.to_string())?;
            Ok(union)
        })
        .reduce(begin, |one, other| {
            let mut one = one?;
            one.merge(&other?);
            Ok(one)
        })?;
    union.prove_acyclic().map_err(|cycle| cycle.to_string())
}
