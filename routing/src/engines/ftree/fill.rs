//! Fills the tables, one destination xbar at a time.

use super::detours::Detours;
use super::reach::Reach;
use super::spines::{Spine, Spines};
use super::templates::Templates;
use super::tree::Tree;
use crate::Tables;
use crate::engines::filling;

/// Fills tables, each entry once or twice, while its row is at hand.
pub(super) fn tables(
    tree: &Tree<'_>,
    reach: &Reach,
    spines: &Spines,
    templates: &Templates,
    detours: &Detours,
) -> Tables {
    let count = tree.xbar_count();
    let destinations = &tree.subnet.destinations;
    filling::by_block(tree.subnet, |to, block| {
        let base = base_row(tree, reach, to);
        for (slot, row) in destinations.slots_of(to).zip(block.chunks_exact_mut(count)) {
            row.copy_from_slice(&base);
            if slot == destinations.slot_of_xbar(to) {
                continue;
            }
            lay(tree, reach, to, (spines.of_slot(slot), templates), row);
            for detour in detours.of_slot(slot) {
                row[detour.xbar as usize] = detour.port;
            }
            row[to as usize] = tree.subnet.port_of_slot(slot);
        }
    })
}

/// A row with a shortest way to an xbar from all others, over the nearer groups in turn, by the place of the
/// xbar.
fn base_row(tree: &Tree<'_>, reach: &Reach, to: u32) -> Vec<u8> {
    let topology = &tree.subnet.topology;
    let steps = reach.of(to);
    let turn = tree.place[to as usize];
    let rank = tree.rank(to);
    let mut row = vec![Tables::NONE; tree.xbar_count()];
    for (at, port) in (0..).zip(&mut row) {
        let own = steps[at as usize];
        if own == Reach::NONE || own == 0 {
            continue;
        }
        let side = if tree.rank(at).saturating_add(own) == rank { &tree.down } else { &tree.up };
        let groups = side.of(at);
        let first = pick(turn, GOLDEN, groups.len());
        let nearer =
            groups[first..].iter().chain(&groups[..first]).find(|group| steps[group.far as usize] == own - 1);
        let channels = nearer.map(|group| side.channels(group)).unwrap_or_default();
        if let Some(&channel) = channels.get(pick(turn, SILVER, channels.len())) {
            *port = topology.tail(channel).port;
        }
    }
    row
}

/// The golden section of 2^32: its multiples fall evenly between 0 and 2^32.
const GOLDEN: u32 = 0x9e37_79b9;

/// The fraction of the square root of 2, times 2^32: its multiples fall evenly, too.
const SILVER: u32 = 0x6a09_e667;

/// A number below `count`, evenly spread over turns, without a division.
fn pick(turn: u32, section: u32, count: usize) -> usize {
    ((u64::from(turn.wrapping_mul(section)) * count as u64) >> u32::BITS) as usize
}

/// Lays a host's spine, and the ways up to it, over a row.
fn lay(tree: &Tree<'_>, reach: &Reach, to: u32, (spine, templates): (&Spine, &Templates), row: &mut [u8]) {
    let topology = &tree.subnet.topology;
    let steps = reach.of(to);
    let above = spine.channels().iter().map(|&channel| topology.head(channel).xbar);
    for (step, top) in std::iter::once(to).chain(above).enumerate() {
        for (depth, layer) in (1..).zip(templates.of(top)) {
            let ports = layer.ports(spine.cable(step, depth));
            for (&xbar, &port) in layer.xbars.iter().zip(ports) {
                // Where the steps differ, a shorter way leads from there.
                if usize::from(steps[xbar as usize]) == step + depth {
                    row[xbar as usize] = port;
                }
            }
        }
    }
    for &channel in spine.channels() {
        let down = topology.head(channel);
        row[down.xbar as usize] = down.port;
    }
}
