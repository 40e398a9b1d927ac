//! Which ports lead up to an xbar of a spine from below it.

use rayon::prelude::*;

use super::reach::Reach;
use super::spines::Spines;
use super::tree::{Group, Tree};

/// The xbars some steps below an xbar of a spine.
#[derive(Debug, Clone, Default)]
pub(super) struct StepsBelow {
    /// The xbars.
    pub(super) xbars: Vec<u32>,
    /// The xbar above each, on the way up.
    pub(super) parents: Vec<u32>,
    cables: usize,
    channels: Vec<u32>,
    ports: Vec<u8>,
}

impl StepsBelow {
    /// The ports that lead up from the xbars, when a spine takes this cable of its group.
    pub(super) fn ports(&self, cable: u8) -> &[u8] {
        let first = usize::from(cable) % self.cables * self.xbars.len();
        &self.ports[first..first + self.xbars.len()]
    }

    /// The channels behind these ports.
    pub(super) fn channels(&self, cable: u8) -> &[u32] {
        let first = usize::from(cable) % self.cables * self.xbars.len();
        &self.channels[first..first + self.xbars.len()]
    }
}

/// A template for each xbar that is on a spine: its layers, by the number of steps below it, less 1.
#[derive(Debug)]
pub(super) struct Templates {
    of_xbar: Vec<Vec<StepsBelow>>,
}

impl Templates {
    pub(super) fn new(tree: &Tree<'_>, reach: &Reach, spines: &Spines) -> Self {
        let topology = &tree.subnet.topology;
        let mut used = vec![false; tree.xbar_count()];
        for xbar in 0..tree.xbar_count() as u32 {
            for slot in tree.subnet.destinations.host_slots_of(xbar) {
                used[xbar as usize] = true;
                for &channel in spines.of_slot(slot).channels() {
                    used[topology.head(channel).xbar as usize] = true;
                }
            }
        }
        let layers = (0..tree.xbar_count() as u32)
            .into_par_iter()
            .map(|xbar| if used[xbar as usize] { layers(tree, reach, xbar) } else { Vec::new() });
        Self { of_xbar: layers.collect() }
    }

    /// The layers below an xbar of a spine.
    pub(super) fn of(&self, xbar: u32) -> &[StepsBelow] {
        &self.of_xbar[xbar as usize]
    }
}

fn layers(tree: &Tree<'_>, reach: &Reach, top: u32) -> Vec<StepsBelow> {
    let mut layers: Vec<StepsBelow> = Vec::new();
    let mut last = vec![top];
    loop {
        let mut below: Vec<u32> =
            last.iter().flat_map(|&xbar| tree.down.of(xbar).iter().map(|group| group.far)).collect();
        below.sort_unstable();
        below.dedup();
        if below.is_empty() {
            return layers;
        }
        last.clone_from(&below);
        let above = layers.len() as u8;
        layers.push(layer(tree, (top, reach.of(top)), above, below));
    }
}

/// The way up to `top` of each of these xbars, over the parents in turn if several lead there. The steps from
/// `top` to all xbars are given, and `above` is how many steps the parents are from it.
fn layer(tree: &Tree<'_>, (top, steps): (u32, &[u8]), above: u8, xbars: Vec<u32>) -> StepsBelow {
    let topology = &tree.subnet.topology;
    let place = tree.place[top as usize] as usize;
    let mut groups = Vec::with_capacity(xbars.len());
    let mut leading: Vec<&Group> = Vec::new();
    for &xbar in &xbars {
        leading.clear();
        leading.extend(tree.up.of(xbar).iter().filter(|group| steps[group.far as usize] == above));
        let group = leading.get(place % leading.len().max(1));
        groups.extend(group.map(|group| (group.far, tree.up.channels(group))));
    }
    let cables = groups.iter().map(|(_, channels)| channels.len()).max().unwrap_or(1);
    let channels: Vec<u32> = (0..cables)
        .flat_map(|cable| groups.iter().map(move |(_, channels)| channels[cable % channels.len()]))
        .collect();
    StepsBelow {
        parents: groups.iter().map(|&(far, _)| far).collect(),
        ports: channels.iter().map(|&channel| topology.tail(channel).port).collect(),
        xbars,
        cables,
        channels,
    }
}
