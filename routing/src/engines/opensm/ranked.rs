//! Hops of routes that keep to up and down.
//!
//! A search from the destination writes hops for each port of each xbar that it comes to. It visits an xbar
//! again when another port of it got fewer hops than it had, and goes on from there by the direction of that
//! step. So what it finds depends on the order of ports, and the search is repeated here step by step.

use std::collections::VecDeque;

use super::OpensmRefusal;
use super::hops::{Hops, NO_PATH, Search, WeightedHops};
use super::roots;
use crate::engines::Settings;
use crate::{Subnet, Topology};

/// What the search knows of xbars that it is to visit.
pub(super) struct Visits {
    queue: VecDeque<u32>,
    waits: Vec<bool>,
    came: Vec<RankStep>,
}

impl Visits {
    pub(super) fn new(xbars: usize) -> Self {
        Self { queue: VecDeque::new(), waits: vec![false; xbars], came: vec![RankStep::Level; xbars] }
    }
}

/// The direction of a step away from the destination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RankStep {
    Up,
    Down,
    Level,
}

/// The rank of an xbar that no root reaches.
const UNRANKED: u32 = u32::MAX;

/// A search that takes no step of one direction after one of the other.
pub(super) struct Ranked<'a> {
    minhop: &'a WeightedHops<'a>,
    /// The direction of a step along each channel.
    steps: Vec<RankStep>,
    /// The direction that a search starts with; it must not follow the opposite one.
    first: RankStep,
    /// Destination xbars to which the shortest of all routes lead.
    unbound: Vec<bool>,
    /// How much a forbidden step counts, if it may be taken at all.
    penalty: Option<u8>,
}

/// Routes that go up and then down. A destination's search goes up first, for it walks routes
/// backwards.
pub(super) fn updn<'a>(
    subnet: &'a Subnet,
    settings: &Settings,
    minhop: &'a WeightedHops<'a>,
) -> Result<Ranked<'a>, OpensmRefusal> {
    let roots = match &settings.roots {
        Some(roots) => roots.clone(),
        None => roots::detect(subnet, minhop),
    };
    if roots.is_empty() {
        let is_given = settings.roots.is_some();
        return Err(if is_given { OpensmRefusal::NoRootGiven } else { OpensmRefusal::NoRootFound });
    }
    let topology = &subnet.topology;
    let ranks = ranks(topology, &roots);
    let id = |xbar: u32| settings.ids.get(&xbar).copied().unwrap_or(subnet.xbar_guids[xbar as usize]);
    let step = |from: u32, to: u32| {
        let (here, there) = (ranks[from as usize], ranks[to as usize]);
        // Among roots every step is up, so that each of them reaches the fabric below the others.
        let up = here > there || here == there && (here == 0 || id(from) > id(to));
        if up { RankStep::Up } else { RankStep::Down }
    };
    let steps = steps(topology, step);
    // If a file names only one root, there is no other to connect it with.
    let connect = settings.connect_roots && (roots.len() > 1 || settings.roots.is_none());
    let unbound = ranks.iter().map(|&rank| connect && rank == 0).collect();
    Ok(Ranked { minhop, steps, first: RankStep::Up, unbound, penalty: None })
}

/// Routes that go down and then up. Rank 0 are the xbars with hosts.
pub(super) fn dnup<'a>(
    subnet: &'a Subnet,
    settings: &Settings,
    minhop: &'a WeightedHops<'a>,
) -> Result<Ranked<'a>, OpensmRefusal> {
    let topology = &subnet.topology;
    let has_host =
        |xbar: &u32| topology.hosts_of(*xbar).iter().any(|&host| subnet.xbar_of_host(host).is_some());
    let leaves: Vec<u32> = (0..topology.xbar_count() as u32).filter(has_host).collect();
    if leaves.is_empty() {
        return Err(OpensmRefusal::NoLeaf);
    }
    let ranks = ranks(topology, &leaves);
    let step = |from: u32, to: u32| match ranks[from as usize].cmp(&ranks[to as usize]) {
        std::cmp::Ordering::Less => RankStep::Down,
        std::cmp::Ordering::Equal => RankStep::Level,
        std::cmp::Ordering::Greater => RankStep::Up,
    };
    let steps = steps(topology, step);
    let unbound = vec![false; topology.xbar_count()];
    let strict = Ranked { minhop, steps, first: RankStep::Down, unbound, penalty: None };
    if !settings.connect_roots {
        return Ok(strict);
    }
    let longest = longest(&strict);
    Ok(Ranked { penalty: Some(longest.saturating_add(1)), ..strict })
}

/// The hops to the nearest of some xbars, from each.
fn ranks(topology: &Topology, first: &[u32]) -> Vec<u32> {
    let mut ranks = vec![UNRANKED; topology.xbar_count()];
    first.iter().for_each(|&xbar| ranks[xbar as usize] = 0);
    let mut queue: VecDeque<u32> = first.iter().copied().collect();
    while let Some(xbar) = queue.pop_front() {
        let next = ranks[xbar as usize] + 1;
        for channel in topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)) {
            let there = topology.head(channel).xbar;
            if ranks[there as usize] > next {
                ranks[there as usize] = next;
                queue.push_back(there);
            }
        }
    }
    ranks
}

fn steps(topology: &Topology, step: impl Fn(u32, u32) -> RankStep) -> Vec<RankStep> {
    let of = |channel| step(topology.tail(channel).xbar, topology.head(channel).xbar);
    (0..topology.channel_count() as u32).map(of).collect()
}

/// Most hops that a search sets anywhere.
fn longest(search: &Ranked<'_>) -> u8 {
    use rayon::prelude::*;
    let topology = search.topology();
    let of = |hops: &mut Hops, destination| {
        search.fill(destination, hops);
        let known = hops.by_channel.iter().filter(|&&hops| hops != NO_PATH);
        known.max().copied().unwrap_or_default()
    };
    let all = (0..topology.xbar_count() as u32).into_par_iter();
    all.map_init(|| Hops::new(topology), of).max().unwrap_or_default()
}

impl Search for Ranked<'_> {
    fn topology(&self) -> &Topology {
        self.minhop.topology()
    }

    fn fill(&self, destination: u32, hops: &mut Hops) {
        if self.unbound[destination as usize] {
            self.minhop.fill(destination, hops);
        } else {
            hops.clear();
        }
        hops.least[destination as usize] = 0;
        hops.visits.came[destination as usize] = self.first;
        hops.visits.queue.push_back(destination);
        while let Some(xbar) = hops.visits.queue.pop_front() {
            hops.visits.waits[xbar as usize] = false;
            self.visit(xbar, hops);
        }
    }
}

impl Ranked<'_> {
    /// Whether a step must not follow another.
    fn forbids(&self, came: RankStep, step: RankStep) -> bool {
        let turned = if self.first == RankStep::Up { RankStep::Down } else { RankStep::Up };
        came == turned && step == self.first
    }

    /// Lets all neighbours of an xbar know of it.
    fn visit(&self, xbar: u32, hops: &mut Hops) {
        let topology = self.topology();
        let came = hops.visits.came[xbar as usize];
        for out in topology.channels_of(xbar).filter(|&out| !topology.is_dead(out)) {
            let step = self.steps[out as usize];
            let forbidden = self.forbids(came, step);
            let (back, there) = (topology.reverse(out), topology.head(out).xbar);
            let had = hops.by_channel[back as usize];
            let mut here = hops.least[xbar as usize];
            if forbidden {
                let Some(penalty) = self.penalty else { continue };
                here = here.saturating_add(penalty);
                if here >= LIMIT {
                    // The step does not count so far, and even what was known of that port is dropped.
                    hops.by_channel[back as usize] = NO_PATH;
                }
            }
            let next = here.saturating_add(1);
            if next >= had {
                continue;
            }
            hops.set(there, back, next);
            let visits = &mut hops.visits;
            if !visits.waits[there as usize] {
                visits.came[there as usize] = step;
                visits.waits[there as usize] = true;
                visits.queue.push_back(there);
            }
        }
    }
}

/// Hops from which on forbidden steps are not taken.
const LIMIT: u8 = 64;
