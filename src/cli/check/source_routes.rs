//! Proves hosts' routes from their files: source routes, and what kernels forward by the destination alone or send by segments.

use std::fs;
use std::path::{Path, PathBuf};

use mapper_formats::FormatError;
use mapper_formats::routes::{FaultKind, ListedRoutes, RouteFault, RouteReader};
use mapper_proto::map::Fabric;
use mapper_proto::quote;
use rayon::prelude::*;

use super::by_destination::{Forwarded, Kernels};
use super::by_segments::Senders;
use super::{CheckReport, Judged, JudgedRoutes};
use crate::cli::CliError;
use crate::cli::judgement::{ApartReport, Describer, ProofReport, QualityReport, nothing_to_prove};
use mapper_fabric::wording::counted;
use mapper_routing::tables::Layers;
use mapper_routing::{Quality, RouteLists, TablesProof, Topology, UnionProof, Violation};

/// How many files each thread has in memory at once.
const FILES_A_THREAD: usize = 8;

/// Proves and measures the routes in a folder of `mapper.routes/1` files.
pub(super) fn check(fabric: &Fabric, dir: &Path, max_hops: u8, seed: u64) -> Result<CheckReport, CliError> {
    let topology = Topology::from_fabric(fabric)
        .map_err(|error| error.describe(&mapper_fabric::names::Names::of(fabric)))?;
    let reader = RouteReader::new(fabric, &topology);
    let mut checked = Checked::new(fabric, &topology, max_hops);
    for batch in files(dir)?.chunks(FILES_A_THREAD * rayon::current_num_threads()) {
        let read: Vec<Result<Option<ListedRoutes>, FormatError>> =
            batch.par_iter().map(|path| reader.read(path)).collect();
        let read = read.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (path, routes) in batch.iter().zip(&read) {
            match routes {
                Some(routes) => checked.one_file_a_host(path, routes.from)?,
                None => checked.stranger(path),
            }
        }
        checked.add(&read.into_iter().flatten().collect::<Vec<_>>());
    }
    if !checked.seen.contains(&true) {
        let why = "has no file of a host of this fabric, so there is nothing to check";
        return Err(format!("{} {why}", dir.display()).into());
    }
    checked.finish(seed)
}

/// The JSON files of a folder, sorted by name.
fn files(dir: &Path) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |error| CliError::from(format!("cannot read {}: {error}", dir.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(format!("{} has no files of routes (*.json)", dir.display()).into());
    }
    files.sort_unstable();
    Ok(files)
}

/// The result of the check so far.
struct Checked<'a> {
    fabric: &'a Fabric,
    topology: &'a Topology,
    max_hops: u8,
    /// For each host, whether its file was read.
    seen: Vec<bool>,
    /// The channel dependencies of all routes so far, by layer; `None` for a layer without routes.
    layers: Vec<Option<UnionProof<'a>>>,
    proof: Part,
    routes: u64,
    /// What kernels forward by the destination alone.
    kernels: Kernels<'a>,
    /// What kernels send by segments.
    senders: Senders<'a>,
    /// How many files are of hosts that the fabric does not have, and the first of these files.
    strangers: (u64, Option<PathBuf>),
    /// How many routes lead to hosts that the fabric does not have.
    to_strangers: u64,
    quality: QualityLists<'a>,
}

/// What is wrong with some hosts' routes, and how long they are.
#[derive(Default)]
struct Part {
    unreachable: u64,
    loops: u64,
    other: u64,
    longest: usize,
    violations: Vec<Wrong>,
}

/// What is wrong with a route.
enum Wrong {
    /// Its hops are wrong, or a route is missing.
    Hops(Violation),
    /// It is written wrong. The number is that of the host where it begins.
    Written(u32, RouteFault),
}

impl Wrong {
    /// Describes what is wrong with the names of a fabric.
    fn describe(&self, names: &Describer<'_>) -> String {
        match self {
            Self::Hops(violation) => names.violation(violation),
            Self::Written(from, fault) => {
                let mac = |host: u32| names.topology.mac(host);
                let pair = names.pair(mac(*from), mac(fault.to));
                match &fault.why {
                    FaultKind::UnknownXbar(xbar) => {
                        format!("a route {pair} passes {xbar}, an xbar that the fabric does not have")
                    }
                    FaultKind::OtherBytes(bytes) => {
                        format!("a route {pair} has bytes {bytes} that lead another way than its hops")
                    }
                }
            }
        }
    }
}

impl Part {
    fn add(&mut self, wrong: Wrong) {
        match wrong {
            Wrong::Hops(Violation::NoRoute { .. }) => self.unreachable += 1,
            Wrong::Hops(Violation::Loop { .. }) => self.loops += 1,
            Wrong::Hops(_) | Wrong::Written(..) => self.other += 1,
        }
        if self.violations.len() < TablesProof::MAX_LISTED {
            self.violations.push(wrong);
        }
    }

    fn join(&mut self, other: Self) {
        self.unreachable += other.unreachable;
        self.loops += other.loops;
        self.other += other.other;
        self.longest = self.longest.max(other.longest);
        let room = TablesProof::MAX_LISTED - self.violations.len();
        self.violations.extend(other.violations.into_iter().take(room));
    }
}

impl<'a> Checked<'a> {
    fn new(fabric: &'a Fabric, topology: &'a Topology, max_hops: u8) -> Self {
        Self {
            fabric,
            topology,
            max_hops,
            seen: vec![false; topology.host_count()],
            layers: vec![None; Layers::MAX.into()],
            proof: Part::default(),
            routes: 0,
            kernels: Kernels::new(fabric, topology),
            senders: Senders::new(topology, max_hops),
            strangers: (0, None),
            to_strangers: 0,
            quality: QualityLists::new(topology),
        }
    }

    fn one_file_a_host(&mut self, path: &Path, host: u32) -> Result<(), CliError> {
        if std::mem::replace(&mut self.seen[host as usize], true) {
            let name = &self.fabric.hosts[host as usize].name;
            return Err(format!("{}: host: {name} has another file here, too", path.display()).into());
        }
        Ok(())
    }

    /// Counts a file of a host that the fabric does not have.
    fn stranger(&mut self, path: &Path) {
        self.strangers.0 += 1;
        self.strangers.1.get_or_insert_with(|| path.to_owned());
    }

    /// Adds the routes of some hosts.
    fn add(&mut self, read: &[ListedRoutes]) {
        let parts: Vec<Part> = read.par_iter().map(|routes| self.prove(routes)).collect();
        parts.into_iter().for_each(|part| self.proof.join(part));
        self.routes += read.iter().map(|host| (host.routes.len() + host.faults.len()) as u64).sum::<u64>();
        self.to_strangers += read.iter().map(|host| host.strangers).sum::<u64>();
        let topology = self.topology;
        self.layers.par_iter_mut().enumerate().for_each(|(layer, union)| {
            for host in read {
                for route in host.routes.iter().filter(|route| usize::from(route.layer) == layer) {
                    let union = union.get_or_insert_with(|| UnionProof::new(topology));
                    // A route that cannot be added is wrong, and `prove` has found that above.
                    let _found = union.add_route(host.from, route.to, &route.hops);
                }
            }
        });
        for host in read {
            self.kernels.add(host);
            self.senders.add(host);
        }
        self.quality.add(read);
    }

    /// Proves the routes of a host one by one, and that there is a route to every host that cables lead to.
    fn prove(&self, host: &ListedRoutes) -> Part {
        let mut part = Part::default();
        let mut reached = vec![false; self.topology.host_count()];
        for fault in &host.faults {
            part.add(Wrong::Written(host.from, fault.clone()));
        }
        for route in &host.routes {
            let max_hops = self.max_hops.into();
            match mapper_routing::walk(self.topology, host.from, route.to, &route.hops, max_hops) {
                Ok(_) => {
                    reached[route.to as usize] = true;
                    part.longest = part.longest.max(route.hops.len());
                }
                Err(violation) => part.add(Wrong::Hops(violation)),
            }
        }
        self.missed(host.from, &reached, &mut part);
        part
    }

    /// Adds a violation for each host that cables lead to but no route reaches.
    fn missed(&self, from: u32, reached: &[bool], part: &mut Part) {
        for (to, reached) in (0..).zip(reached) {
            if !reached && to != from && self.topology.connected(from, to) {
                let (from, to) = (self.topology.mac(from), self.topology.mac(to));
                part.add(Wrong::Hops(Violation::NoRoute { from, to }));
            }
        }
    }

    /// Notes on files and routes that were skipped, as the fabric does not have their hosts.
    fn passed_over(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let (count, Some(first)) = &self.strangers {
            let files = counted(
                *count,
                "file is of a host that the fabric does not have, and is passed over",
                "files are of hosts that the fabric does not have, and are passed over",
            );
            let first_one = if *count == 1 { "" } else { "the first is " };
            notes.push(format!("{files}: {first_one}{}", quote::visible(&first.display().to_string())));
        }
        if self.to_strangers > 0 {
            notes.push(counted(
                self.to_strangers,
                "route leads to a host that the fabric does not have, and is passed over",
                "routes lead to hosts that the fabric does not have, and are passed over",
            ));
        }
        notes
    }

    fn finish(self, seed: u64) -> Result<CheckReport, CliError> {
        let shown = mapper_fabric::names::Names::of(self.fabric);
        let names = Describer { fabric: self.fabric, topology: self.topology, shown: &shown };
        let given = self.seen.iter().filter(|&&seen| seen).count();
        let of_some_hosts = given < self.real_hosts();
        let mut notes = self.notes(given);
        let mut found = self.proof_of_frames(&names);
        // Segments say nothing of layers, so packets by them wait in layer 0, where a circle of frames alone is told already.
        let of_agents = (self.layers[0].as_ref()).filter(|_| !found.circle_in_first_layer);
        let by_segments = self.senders.prove(&names, of_agents);
        let by_destination = self.kernels.prove(&names);
        let judged = JudgedRoutes {
            source_routes: self.routes,
            hosts_given: given,
            by_destination: by_destination.count,
            by_segments: by_segments.count,
        };
        for forwarded in [by_destination, by_segments] {
            notes.extend(found.add(forwarded));
        }
        let (quality, note) = match of_some_hosts {
            false => self.quality.measure(seed),
            true => (QualityReport::default(), None),
        };
        notes.extend(note);
        Ok(CheckReport {
            hosts: self.topology.host_count(),
            xbars: self.topology.xbar_count(),
            layers: self.layers.iter().flatten().count().max(1) as u8,
            judged: Judged::Routes(judged),
            proof: ProofReport {
                apart: ApartReport::of(self.topology, self.fabric, &shown),
                of_some_hosts,
                ..found.report(self.proof.unreachable)
            },
            quality,
            notes,
        })
    }

    /// How many hosts the fabric has without those that only inflate its map.
    fn real_hosts(&self) -> usize {
        (0..self.topology.host_count() as u32).filter(|&host| !self.topology.is_phantom(host)).count()
    }

    /// What a user should know of what was given: files of so many hosts.
    fn notes(&self, given: usize) -> Vec<String> {
        let mut notes: Vec<String> = nothing_to_prove(self.topology).into_iter().collect();
        let all = self.real_hosts();
        if given < all {
            notes.push(format!(
                "routes of {given} of {all} hosts given: only pairs from hosts with a file are judged, and only \
                 their routes are proved together"
            ));
        }
        notes.extend(self.passed_over());
        notes
    }

    /// What is wrong with the routes of agents' frames: each by itself, and all of a layer together.
    fn proof_of_frames(&self, names: &Describer<'_>) -> Found {
        let mut violations: Vec<String> =
            self.proof.violations.iter().map(|wrong| wrong.describe(names)).collect();
        let circles: Vec<_> = (self.layers.par_iter())
            .map(|union| union.as_ref().and_then(|union| union.prove_acyclic().err()))
            .collect();
        for (layer, cycle) in (0..).zip(&circles) {
            violations.extend(cycle.iter().map(|cycle| names.deadlock(layer, cycle)));
        }
        let Part { loops, other, longest, .. } = self.proof;
        Found {
            violations,
            loops,
            other,
            longest,
            cycles: circles.iter().flatten().count(),
            circle_in_first_layer: circles[0].is_some(),
        }
    }
}

/// What was found wrong with routes, of frames and of packets that kernels forward.
struct Found {
    violations: Vec<String>,
    loops: u64,
    other: u64,
    longest: usize,
    cycles: usize,
    /// Whether frames of agents wait for each other in layer 0, where packets by segments wait, too.
    circle_in_first_layer: bool,
}

impl Found {
    /// Adds what was found wrong with what kernels forward, and gives the notes on it.
    fn add(&mut self, forwarded: Forwarded) -> Vec<String> {
        let Forwarded { count: _, loops, broken, cycle, longest, violations, notes } = forwarded;
        self.violations.extend(violations);
        self.cycles += usize::from(cycle);
        self.loops += loops;
        self.other += broken;
        self.longest = self.longest.max(longest);
        notes
    }

    /// The same as a report, with so many pairs that have no route.
    fn report(self, unreachable: u64) -> ProofReport {
        let Self { violations, loops, other, longest, cycles, .. } = self;
        ProofReport {
            reachable: unreachable == 0,
            loop_free: loops == 0,
            deadlock_free: cycles == 0,
            max_hops: longest,
            violation_count: unreachable + loops + other + cycles as u64,
            told: violations.len() as u64,
            violations,
            apart: ApartReport::default(),
            of_some_hosts: false,
        }
    }
}

/// All routes, which are kept to measure their quality unless there are too many.
struct QualityLists<'a> {
    lists: Option<RouteLists<'a>>,
    hops: usize,
}

/// How many hops are kept at most, which take some hundred megabytes.
const MAX_KEPT_HOPS: usize = 50_000_000;

impl<'a> QualityLists<'a> {
    fn new(topology: &'a Topology) -> Self {
        Self { lists: Some(RouteLists::new(topology)), hops: 0 }
    }

    fn add(&mut self, read: &[ListedRoutes]) {
        let Some(lists) = &mut self.lists else { return };
        for host in read {
            for route in &host.routes {
                // Each route takes memory besides that of its hops.
                self.hops += route.hops.len() + 8;
                // A route that leads elsewhere is not measured, and the proof reports it.
                let _told = lists.add(host.from, route.to, &route.hops);
            }
        }
        if self.hops > MAX_KEPT_HOPS {
            self.lists = None;
        }
    }

    fn measure(self, seed: u64) -> (QualityReport, Option<String>) {
        match self.lists {
            Some(lists) => (QualityReport::of(Quality::measure(&lists.counted(), seed)), None),
            None => {
                let why = "quality is not measured: the routes are too many to be kept in memory";
                (QualityReport::default(), Some(why.to_owned()))
            }
        }
    }
}
