//! Ways for the xbars that a host's spine does not cover. There are such xbars only on damaged trees.

mod cover;
mod loads;
mod ways;

use rayon::prelude::*;

use super::reach::Reach;
use super::spines::Spines;
use super::templates::Templates;
use super::tree::Tree;
use cover::Cover;
use ways::{StepsOn, Ways};

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
        let steps_on = StepsOn::new(tree);
        let loads = steps_on.in_order(&loads::of_templates(tree, spines, templates));
        let work: Vec<_> =
            sources.iter().copied().zip(&uncovered).filter(|(_, slots)| !slots.is_empty()).collect();
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
            // Each of them learns what the others have loaded.
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

/// How many of so many destination xbars are served side by side, at least 1. None of them sees what the
/// others load. The number does not depend on the number of threads.
fn side_by_side(destinations: usize) -> usize {
    const BATCHES: usize = 256;
    (destinations / BATCHES).max(1)
}

/// What was chosen for the hosts of one xbar.
struct Served {
    /// The detours of each slot.
    entries: Vec<(u32, Vec<Detour>)>,
    /// The places in [`StepsOn`] that these load, each with how many routes.
    routes: Vec<(u32, u32)>,
}
