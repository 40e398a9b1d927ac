//! Ways for the xbars that a host's spine does not cover: on damaged trees only.

use std::ops::Range;

use rayon::prelude::*;

use super::reach::Reach;
use super::spines::{Spine, Spines};
use super::templates::Templates;
use super::tree::Tree;

/// More than the steps of the longest way: a tree has at most 8 ranks.
const MOST_LEVELS: usize = 16;

/// An entry that departs from the templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detour {
    /// The xbar.
    pub(super) xbar: u32,
    /// The port that it sends to.
    pub(super) port: u8,
}

/// All entries that depart from the templates, by slot.
#[derive(Debug)]
pub(super) struct Detours {
    base: Vec<usize>,
    all: Vec<Detour>,
}

impl Detours {
    /// Finds the xbars with hosts that spines do not cover, and gives each the least loaded way.
    pub(super) fn new(tree: &Tree<'_>, reach: &Reach, spines: &Spines, templates: &Templates) -> Self {
        let sources: Vec<u32> =
            (0..tree.xbar_count() as u32).filter(|&xbar| tree.hosts_at(xbar) > 0).collect();
        let destinations = &tree.subnet.destinations;
        let is_source: Vec<u8> =
            (0..tree.xbar_count() as u32).map(|xbar| u8::from(tree.hosts_at(xbar) > 0)).collect();
        let uncovered: Vec<Vec<(u32, Vec<u32>)>> = sources
            .par_iter()
            .map(|&to| {
                let mut missing = Vec::with_capacity(is_source.len());
                let slots = destinations.host_slots_of(to);
                slots
                    .filter_map(|slot| {
                        let cover = Cover::new(tree, reach, to, spines.of_slot(slot));
                        cover.missing(&is_source, &mut missing).map(|xbars| (slot, xbars))
                    })
                    .collect()
            })
            .collect();
        let mut detours = Self { base: vec![0; destinations.slot_count() + 1], all: Vec::new() };
        if uncovered.iter().all(Vec::is_empty) {
            return detours;
        }
        let routes = loads(tree, spines, templates);
        let steps_on = StepsOn::new(tree);
        let loads: Vec<u32> = steps_on.channels.iter().map(|&channel| routes[channel as usize]).collect();
        let work: Vec<_> = sources.iter().copied().zip(&uncovered).collect();
        let side_by_side = side_by_side(work.len());
        let mut lanes: Vec<Ways<'_>> =
            (0..side_by_side).map(|_| Ways::new(tree, reach, &steps_on, loads.clone())).collect();
        let mut filled = 0;
        for batch in work.chunks(side_by_side) {
            let served: Vec<Served> = lanes
                .par_iter_mut()
                .zip(batch)
                .map(|(ways, &(to, slots))| ways.serve_all(to, spines, slots))
                .collect();
            // Each learns what the others loaded.
            lanes.par_iter_mut().enumerate().for_each(|(lane, ways)| {
                let others = served.iter().enumerate().filter(|&(other, _)| other != lane);
                others.for_each(|(_, served)| ways.add(&served.routes));
            });
            for (slot, entries) in served.into_iter().flat_map(|served| served.entries) {
                detours.base[filled + 1..=slot as usize].fill(detours.all.len());
                detours.all.extend(entries);
                detours.base[slot as usize + 1] = detours.all.len();
                filled = slot as usize + 1;
            }
        }
        detours.base[filled + 1..].fill(detours.all.len());
        detours
    }

    /// The entries of a slot.
    pub(super) fn of_slot(&self, slot: u32) -> &[Detour] {
        &self.all[self.base[slot as usize]..self.base[slot as usize + 1]]
    }
}

/// What one host's spine covers: an xbar from which the way up to the spine and then down it is as short
/// as any.
struct Cover<'a> {
    tree: &'a Tree<'a>,
    reach: &'a Reach,
    to: u32,
    spine: &'a Spine,
}

impl<'a> Cover<'a> {
    fn new(tree: &'a Tree<'a>, reach: &'a Reach, to: u32, spine: &'a Spine) -> Self {
        Self { tree, reach, to, spine }
    }

    /// The xbars of the spine, with the steps up to each.
    fn steps(&self) -> impl Iterator<Item = (u8, u32)> {
        let topology = &self.tree.subnet.topology;
        let above = self.spine.channels().iter().map(|&channel| topology.head(channel).xbar);
        (0..).zip(std::iter::once(self.to).chain(above))
    }

    fn covers(&self, xbar: u32) -> bool {
        let steps = self.reach.between(self.to, xbar);
        self.steps().any(|(up, top)| {
            self.reach.above(self.tree, top, xbar) && self.reach.between(top, xbar) + up == steps
        })
    }

    /// Those of some xbars (1) that are not covered, and that some way leads from. `missing` is room for a
    /// byte an xbar: the sweeps over all xbars are what damaged and full trees alike wait for.
    fn missing(&self, xbars: &[u8], missing: &mut Vec<u8>) -> Option<Vec<u32>> {
        let steps = self.reach.of(self.to);
        missing.clear();
        missing.extend(xbars.iter().zip(steps).map(|(&xbar, &steps)| xbar & u8::from(steps != Reach::NONE)));
        for (up, top) in self.steps() {
            let rank = self.tree.rank(top);
            let below = self.reach.of(top).iter().zip(&self.tree.ranks.of).zip(steps);
            for (missing, ((&down, &low), &steps)) in missing.iter_mut().zip(below) {
                let covered = (rank.saturating_add(down) == low) & (down.wrapping_add(up) == steps);
                *missing &= u8::from(!covered);
            }
        }
        if missing.iter().fold(0, |any, &missing| any | missing) == 0 {
            return None;
        }
        Some((0..).zip(&*missing).filter(|(_, missing)| **missing == 1).map(|(xbar, _)| xbar).collect())
    }
}

/// How many destination xbars of so many are served side by side, at least 1: none of them sees what the
/// others load. The number of threads does not matter.
fn side_by_side(destinations: usize) -> usize {
    const BATCHES: usize = 256;
    (destinations / BATCHES).max(1)
}

/// What was chosen for the hosts of one xbar.
struct Served {
    /// By slot.
    entries: Vec<(u32, Vec<Detour>)>,
    /// The places in [`StepsOn`] that this loads, with routes.
    routes: Vec<(u32, u32)>,
}

/// All channels of a tree, those up and then those down, by the xbar that they leave.
///
/// What is compared of them stands side by side: thousands of choices a host are made here.
struct StepsOn<'a> {
    tree: &'a Tree<'a>,
    channels: Vec<u32>,
    /// The xbar that each leads to.
    far: Vec<u32>,
    /// Where those down begin.
    down: usize,
}

impl<'a> StepsOn<'a> {
    fn new(tree: &'a Tree<'a>) -> Self {
        let topology = &tree.subnet.topology;
        let channels: Vec<u32> =
            tree.up.all_channels().iter().chain(tree.down.all_channels()).copied().collect();
        let far = channels.iter().map(|&channel| topology.head(channel).xbar).collect();
        Self { tree, channels, far, down: tree.up.all_channels().len() }
    }

    fn out_of(&self, xbar: u32, up: bool) -> Range<usize> {
        if up {
            return self.tree.up.places(xbar);
        }
        let places = self.tree.down.places(xbar);
        self.down + places.start..self.down + places.end
    }
}

/// Gives ways, one after another, by the load of all channels so far, in routes.
struct Ways<'a> {
    tree: &'a Tree<'a>,
    reach: &'a Reach,
    steps_on: &'a StepsOn<'a>,
    /// By place in `steps_on`.
    loads: Vec<u32>,
    /// Of the host at hand: the xbars that still need a way, by the steps from it.
    levels: Vec<Vec<u32>>,
    /// How many hosts send by each of these xbars.
    weights: Vec<u32>,
}

impl<'a> Ways<'a> {
    fn new(tree: &'a Tree<'a>, reach: &'a Reach, steps_on: &'a StepsOn<'a>, loads: Vec<u32>) -> Self {
        let weights = vec![0; tree.xbar_count()];
        Self { tree, reach, steps_on, loads, levels: vec![Vec::new(); MOST_LEVELS], weights }
    }

    fn add(&mut self, routes: &[(u32, u32)]) {
        for &(place, routes) in routes {
            let load = &mut self.loads[place as usize];
            *load = load.saturating_add(routes);
        }
    }

    /// Serves the hosts of an xbar.
    fn serve_all(&mut self, to: u32, spines: &Spines, slots: &[(u32, Vec<u32>)]) -> Served {
        let mut served = Served { entries: Vec::with_capacity(slots.len()), routes: Vec::new() };
        for (slot, missing) in slots {
            let entries = self.serve(to, spines.of_slot(*slot), missing, &mut served.routes);
            served.entries.push((*slot, entries));
        }
        served
    }

    /// Serves one host, far xbars first: so each xbar knows how many send by it before it chooses.
    fn serve(
        &mut self,
        to: u32,
        spine: &Spine,
        missing: &[u32],
        routes: &mut Vec<(u32, u32)>,
    ) -> Vec<Detour> {
        let cover = Cover::new(self.tree, self.reach, to, spine);
        let topology = &self.tree.subnet.topology;
        let steps = self.reach.of(to);
        for &source in missing {
            self.weights[source as usize] = self.tree.hosts_at(source);
            self.levels[usize::from(steps[source as usize])].push(source);
        }
        let mut detours: Vec<Detour> = Vec::with_capacity(missing.len() + missing.len() / 2);
        for level in (1..MOST_LEVELS).rev() {
            let mut xbars = std::mem::take(&mut self.levels[level]);
            for at in xbars.drain(..) {
                let weight = std::mem::take(&mut self.weights[at as usize]);
                let Some(place) = self.least_loaded(to, at, steps) else { continue };
                let channel = self.steps_on.channels[place];
                detours.push(Detour { xbar: at, port: topology.tail(channel).port });
                let load = &mut self.loads[place];
                *load = load.saturating_add(weight);
                routes.push((place as u32, weight));
                let next = self.steps_on.far[place];
                let waits = self.weights[next as usize] > 0;
                if waits || next != to && !cover.covers(next) {
                    self.weights[next as usize] += weight;
                    if !waits {
                        self.levels[level - 1].push(next);
                    }
                }
            }
            // The room stays for the next host.
            self.levels[level] = xbars;
        }
        detours
    }

    /// The least loaded first step of the shortest ways; of equal ones the first.
    fn least_loaded(&self, to: u32, at: u32, steps: &[u8]) -> Option<usize> {
        let nearer = steps[at as usize].checked_sub(1)?;
        let above = self.tree.rank(at).saturating_add(nearer + 1) == self.tree.rank(to);
        let places = self.steps_on.out_of(at, !above);
        let (loads, far) = (&self.loads[places.clone()], &self.steps_on.far[places.clone()]);
        // Without branches: which load is least cannot be foretold.
        let best = (0_u64..).zip(loads).zip(far).fold(u64::MAX, |best, ((place, &load), &far)| {
            let farther = u64::from(steps[far as usize] != nearer).wrapping_neg();
            best.min(u64::from(load) << u32::BITS | place | farther)
        });
        (best != u64::MAX).then(|| places.start + (best as u32) as usize)
    }
}

/// How many routes the templates put on each channel.
fn loads(tree: &Tree<'_>, spines: &Spines, templates: &Templates) -> Vec<u32> {
    let topology = &tree.subnet.topology;
    let mut loads = vec![0; topology.channel_count()];
    let count = tree.xbar_count();
    // How many hosts each xbar's template serves with each cable, a layer at a time.
    let mut uses: Vec<Vec<Vec<u64>>> = (0..count as u32)
        .map(|xbar| templates.of(xbar).iter().map(|_| vec![0; 1 << u8::BITS]).collect())
        .collect();
    let hosts: u64 = (0..count as u32).map(|xbar| u64::from(tree.hosts_at(xbar))).sum();
    for to in 0..count as u32 {
        for slot in tree.subnet.destinations.host_slots_of(to) {
            let spine = spines.of_slot(slot);
            let Some((top, step)) =
                spine.channels().last().map(|&last| (topology.head(last).xbar, spine.channels().len()))
            else {
                continue;
            };
            for (depth, layer) in uses[top as usize].iter_mut().enumerate() {
                layer[usize::from(spine.cable(step, depth + 1))] += 1;
            }
            for &channel in spine.channels() {
                loads[topology.reverse(channel) as usize] += hosts;
            }
        }
    }
    let mut weights = vec![0; count];
    for top in 0..count as u32 {
        let layers = templates.of(top);
        for (layer, uses) in layers.iter().zip(&uses[top as usize]).rev() {
            for (&xbar, &parent) in layer.xbars.iter().zip(&layer.parents) {
                weights[xbar as usize] += u64::from(tree.hosts_at(xbar));
                weights[parent as usize] += weights[xbar as usize];
            }
            for (cable, &hosts) in (0..=u8::MAX).zip(uses).filter(|(_, hosts)| **hosts > 0) {
                for (&xbar, &channel) in layer.xbars.iter().zip(layer.channels(cable)) {
                    loads[channel as usize] += hosts * weights[xbar as usize];
                }
            }
        }
        weights[top as usize] = 0;
        for layer in layers {
            layer.xbars.iter().for_each(|&xbar| weights[xbar as usize] = 0);
        }
    }
    // Half of the range is room for detours: all routes of the largest fabric do not fill it.
    loads.into_iter().map(|load: u64| load.min(1 << 31) as u32).collect()
}
