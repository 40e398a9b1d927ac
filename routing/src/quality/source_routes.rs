//! Source routes: each host's own table, or lists that were read from files.

use std::borrow::Borrow;

use super::bisection::Bisection;
use super::census::{Census, PairRoutes, SourceCensus};
use super::patterns::{KEPT_FLOWS, Patterns};
use super::samples::{Flows, Samples};
use super::{Quality, hosts_in_order};
use crate::host_routes::bits;
use crate::proof::{Violation, walk};
use crate::{HostRoutes, Topology};
use mapper_proto::map::PortRef;

/// The source routes of all hosts, all in memory.
#[derive(Debug)]
pub struct SourceRoutes<'a> {
    topology: &'a Topology,
    /// The table of each host.
    tables: Vec<Option<&'a HostRoutes>>,
    census: Census,
}

impl<'a> SourceRoutes<'a> {
    /// The routes of these tables, which must be of this topology. A host without a table sends nothing.
    pub fn new(topology: &'a Topology, tables: &'a [HostRoutes]) -> Self {
        let mut by_host = vec![None; topology.host_count()];
        for table in tables.iter().filter(|table| table.fits(topology)) {
            by_host[table.from() as usize] = Some(table);
        }
        let tables: Vec<&HostRoutes> = by_host.iter().copied().flatten().collect();
        let mut census = SourceCensus::new(topology);
        census.add_tables(topology, &tables);
        Self { topology, tables: by_host, census: census.finish() }
    }
}

impl PairRoutes for SourceRoutes<'_> {
    fn topology(&self) -> &Topology {
        self.topology
    }

    fn draw(&self, from: u32, to: u32, draw: u32, channels: &mut Vec<u32>) -> bool {
        self.tables[from as usize].is_some_and(|table| draw_route(self.topology, table, to, draw, channels))
    }

    fn census(&self) -> &Census {
        &self.census
    }
}

/// Appends the channels of one of a table's routes to a host; says whether there is one.
fn draw_route(topology: &Topology, table: &HostRoutes, to: u32, draw: u32, channels: &mut Vec<u32>) -> bool {
    let Some((xbar, searches)) = table.searches_to_host(topology, to) else { return false };
    let which = chosen(draw, searches.count_ones());
    let Some(search) = bits(searches).nth(which as usize) else { return false };
    channels.extend(table.entered(topology, search, xbar).map(|back| topology.reverse(back)));
    true
}

/// A number below `count`, as even as 32 bits allow.
fn chosen(draw: u32, count: u32) -> u32 {
    ((u64::from(draw) * u64::from(count)) >> 32) as u32
}

impl SourceCensus {
    /// Adds hosts' tables.
    pub(crate) fn add_tables<T: Borrow<HostRoutes> + Sync>(&mut self, topology: &Topology, tables: &[T]) {
        let leaves: Vec<u32> =
            (0..topology.xbar_count() as u32).filter(|&xbar| !topology.hosts_of(xbar).is_empty()).collect();
        let places_known: Vec<bool> =
            (0..topology.host_count() as u32).map(|host| self.counts(host)).collect();
        self.add(tables, |table, source| {
            let table = table.borrow();
            let mut by_search = vec![(0.0, Vec::new()); u64::BITS as usize];
            let mut channels = Vec::new();
            for &leaf in &leaves {
                let mut used = 0_u64;
                let hosts = topology.hosts_of(leaf).iter();
                for &host in hosts.filter(|&&host| host != table.from() && places_known[host as usize]) {
                    let Some((_, searches)) = table.searches_to_host(topology, host) else { continue };
                    let count = searches.count_ones();
                    source.add_routable(usize::from(count > 0));
                    for search in bits(searches) {
                        let (flows, to) = &mut by_search[search];
                        *flows += 1.0 / f64::from(count);
                        to.push(host);
                    }
                    used |= searches;
                }
                for search in bits(used) {
                    let (flows, to) = &mut by_search[search];
                    channels.clear();
                    channels.extend(table.entered(topology, search, leaf).map(|back| topology.reverse(back)));
                    source.add_route(&channels, *flows, to);
                    *flows = 0.0;
                    to.clear();
                }
            }
        });
    }
}

/// The flows of all patterns, kept as the sources come by. This is for routes that are too many to keep.
pub(crate) struct SourceSamples<'a> {
    topology: &'a Topology,
    patterns: Patterns,
    /// The place of each host.
    places: Vec<u32>,
    /// The flows of each place.
    flows: Vec<Kept>,
}

/// A place's flows, pattern by pattern.
#[derive(Clone, Default)]
struct Kept {
    channels: Vec<u32>,
    /// Where each flow's channels end, and whether it has a route.
    ends: Vec<(u32, bool)>,
}

impl<'a> SourceSamples<'a> {
    pub(crate) fn new(topology: &'a Topology, seed: u64) -> Self {
        let patterns = Patterns::draw(topology, &hosts_in_order(topology), seed, KEPT_FLOWS);
        let mut places = vec![u32::MAX; topology.host_count()];
        (0..).zip(&patterns.hosts).for_each(|(place, &host)| places[host as usize] = place);
        let flows = vec![Kept::default(); patterns.hosts.len()];
        Self { topology, patterns, places, flows }
    }

    /// Draws the flows that a host sends.
    pub(crate) fn add(&mut self, table: &HostRoutes) {
        let Some(place) = self.places.get(table.from() as usize).filter(|&&place| place != u32::MAX) else {
            return;
        };
        let place = *place as usize;
        let (mut channels, mut ends) = (Vec::new(), Vec::with_capacity(self.patterns.count()));
        for pattern in 0..self.patterns.count() {
            let start = channels.len();
            let routed = self.patterns.target(pattern, place).is_some_and(|to| {
                let draw = self.patterns.choice(pattern, place);
                draw_route(self.topology, table, self.patterns.hosts[to], draw, &mut channels)
            });
            if !routed {
                channels.truncate(start);
            }
            ends.push((channels.len() as u32, routed));
        }
        channels.shrink_to_fit();
        self.flows[place] = Kept { channels, ends };
    }

    /// The quality that follows from what was counted and drawn.
    pub(crate) fn finish(self, census: SourceCensus) -> Quality {
        let samples = Samples::of(&self, &self.patterns, Bisection::of(&self, &self.patterns));
        Quality::new(self.topology, &self.patterns, &census.finish(), &samples)
    }
}

impl Flows for SourceSamples<'_> {
    fn topology(&self) -> &Topology {
        self.topology
    }

    fn flow(&self, pattern: usize, from: usize, _to: usize, channels: &mut Vec<u32>) -> bool {
        let kept = &self.flows[from];
        let Some(&(end, routed)) = kept.ends.get(pattern) else { return false };
        let start = if pattern == 0 { 0 } else { kept.ends[pattern - 1].0 };
        channels.extend_from_slice(&kept.channels[start as usize..end as usize]);
        routed
    }
}

/// Routes of any origin, given one by one.
#[derive(Debug)]
pub struct RouteLists<'a> {
    topology: &'a Topology,
    /// For each source, every route's destination and channels.
    routes: Vec<Vec<(u32, Vec<u32>)>>,
}

impl<'a> RouteLists<'a> {
    /// A list without any routes yet.
    pub fn new(topology: &'a Topology) -> Self {
        Self { topology, routes: vec![Vec::new(); topology.host_count()] }
    }

    /// Adds a route, as the ports to leave by.
    ///
    /// # Errors
    /// If it does not lead from one host to the other: see [`walk`].
    pub fn add(&mut self, from: u32, to: u32, hops: &[PortRef]) -> Result<(), Violation> {
        let channels = walk(self.topology, from, to, hops, usize::MAX)?;
        self.routes[from as usize].push((to, channels));
        Ok(())
    }

    /// Counts what crosses each channel, so that the routes can be measured.
    pub fn counted(mut self) -> CountedRoutes<'a> {
        // Routes of a pair stay in the order in which they came.
        self.routes.iter_mut().for_each(|routes| routes.sort_by_key(|&(to, _)| to));
        let mut census = SourceCensus::new(self.topology);
        let known: Vec<bool> =
            (0..self.topology.host_count() as u32).map(|host| census.counts(host)).collect();
        let sources: Vec<usize> = (0..self.routes.len()).filter(|&from| known[from]).collect();
        census.add(&sources, |&from, source| {
            for pair in self.routes[from].chunk_by(|one, next| one.0 == next.0) {
                let to = pair[0].0;
                if to as usize == from || !known[to as usize] {
                    continue;
                }
                source.add_routable(1);
                pair.iter().for_each(|(_, route)| source.add_route(route, 1.0 / pair.len() as f64, &[to]));
            }
        });
        CountedRoutes { topology: self.topology, routes: self.routes, census: census.finish() }
    }
}

/// Routes of any origin, counted.
#[derive(Debug)]
pub struct CountedRoutes<'a> {
    topology: &'a Topology,
    /// For each source, every route's destination and channels, sorted by destination.
    routes: Vec<Vec<(u32, Vec<u32>)>>,
    census: Census,
}

impl PairRoutes for CountedRoutes<'_> {
    fn topology(&self) -> &Topology {
        self.topology
    }

    fn draw(&self, from: u32, to: u32, draw: u32, channels: &mut Vec<u32>) -> bool {
        let routes = &self.routes[from as usize];
        let first = routes.partition_point(|route| route.0 < to);
        let count = routes[first..].partition_point(|route| route.0 == to);
        let Some((_, route)) = routes[first..first + count].get(chosen(draw, count as u32) as usize) else {
            return false;
        };
        channels.extend_from_slice(route);
        true
    }

    fn census(&self) -> &Census {
        &self.census
    }
}
