//! Ways for the xbars that a host's spine does not cover: on damaged trees only.

use rayon::prelude::*;

use super::reach::Reach;
use super::spines::{Spine, Spines};
use super::templates::Templates;
use super::tree::Tree;

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
        let mut loads = loads(tree, spines, templates);
        let work: Vec<_> = sources.iter().copied().zip(&uncovered).collect();
        let mut filled = 0;
        for batch in work.chunks(batch(work.len())) {
            let served = batch.par_iter().map_init(
                || Ways::new(tree, reach, loads.clone()),
                |ways, &(to, slots)| ways.serve_all(to, spines, slots),
            );
            let served: Vec<Served> = served.collect();
            for served in served {
                for (slot, entries) in served.entries {
                    detours.base[filled + 1..=slot as usize].fill(detours.all.len());
                    detours.all.extend(entries);
                    detours.base[slot as usize + 1] = detours.all.len();
                    filled = slot as usize + 1;
                }
                for (channel, routes) in served.routes {
                    let load = &mut loads[channel as usize];
                    *load = load.saturating_add(routes);
                }
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
fn batch(destinations: usize) -> usize {
    const BATCHES: usize = 256;
    (destinations / BATCHES).max(1)
}

/// What was chosen for the hosts of one xbar.
struct Served {
    /// By slot.
    entries: Vec<(u32, Vec<Detour>)>,
    /// The channels that this loads, with routes.
    routes: Vec<(u32, u32)>,
}

/// Gives ways, one after another, by the load of all channels so far, in routes.
struct Ways<'a> {
    tree: &'a Tree<'a>,
    reach: &'a Reach,
    loads: Vec<u32>,
    /// The channel that each xbar was given for the host at hand.
    chosen: Vec<Option<u32>>,
}

impl<'a> Ways<'a> {
    fn new(tree: &'a Tree<'a>, reach: &'a Reach, loads: Vec<u32>) -> Self {
        Self { tree, reach, loads, chosen: vec![None; tree.xbar_count()] }
    }

    /// Serves the hosts of an xbar, and leaves the loads as they were.
    fn serve_all(&mut self, to: u32, spines: &Spines, slots: &[(u32, Vec<u32>)]) -> Served {
        let mut served = Served { entries: Vec::with_capacity(slots.len()), routes: Vec::new() };
        for (slot, missing) in slots {
            let entries = self.serve(to, spines.of_slot(*slot), missing, &mut served.routes);
            served.entries.push((*slot, entries));
        }
        for &(channel, routes) in &served.routes {
            self.loads[channel as usize] -= routes;
        }
        served
    }

    fn serve(
        &mut self,
        to: u32,
        spine: &Spine,
        missing: &[u32],
        routes: &mut Vec<(u32, u32)>,
    ) -> Vec<Detour> {
        let cover = Cover::new(self.tree, self.reach, to, spine);
        let topology = &self.tree.subnet.topology;
        let mut detours: Vec<Detour> = Vec::with_capacity(missing.len());
        for &source in missing {
            let weight = self.tree.hosts_at(source);
            let mut at = source;
            while at != to && (at == source || !cover.covers(at)) {
                let channel = match self.chosen[at as usize] {
                    Some(channel) => channel,
                    None => {
                        let Some(channel) = self.least_loaded(to, at) else { break };
                        self.chosen[at as usize] = Some(channel);
                        detours.push(Detour { xbar: at, port: topology.tail(channel).port });
                        channel
                    }
                };
                self.loads[channel as usize] += weight;
                routes.push((channel, weight));
                at = topology.head(channel).xbar;
            }
        }
        for detour in &detours {
            self.chosen[detour.xbar as usize] = None;
        }
        detours
    }

    /// The least loaded first step of the shortest ways.
    fn least_loaded(&self, to: u32, at: u32) -> Option<u32> {
        let steps = self.reach.of(to);
        let nearer = steps[at as usize].checked_sub(1)?;
        let above = self.tree.rank(at).saturating_add(nearer + 1) == self.tree.rank(to);
        let side = if above { &self.tree.down } else { &self.tree.up };
        let (mut best, mut least) = (None, u32::MAX);
        for group in side.of(at).iter().filter(|group| steps[group.far as usize] == nearer) {
            for &channel in side.channels(group) {
                let load = self.loads[channel as usize];
                if load < least {
                    (best, least) = (Some(channel), load);
                }
            }
        }
        best
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
