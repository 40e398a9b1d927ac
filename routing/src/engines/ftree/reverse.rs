//! Pairs that no way up and then down joins. They are refused unless I/O nodes may be reached by steps the
//! wrong way.

use super::reach::Reach;
use super::refusal::{FtreeRefusal, host_name};
use super::tree::Tree;
use super::{Settings, host_of_slot};

/// An entry on a way with steps down before the last step up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReverseEntry {
    /// The xbar.
    pub(super) xbar: u32,
    /// The destination.
    pub(super) slot: u32,
    /// The port that leads on.
    pub(super) port: u8,
}

/// The best way of an xbar: how many steps the wrong way it takes, how many steps in all, and the channel
/// that it begins with.
type Label = (u32, u32, u32);

/// The entries for all xbars from which no way up and down leads, as far as I/O nodes allow them. Some xbars
/// are joined in another way, and need none.
///
/// # Errors
/// If a pair of hosts has no way. The pair is named.
pub(super) fn ways(
    tree: &Tree<'_>,
    reach: &Reach,
    settings: &Settings,
    are_joined: &[u32],
) -> Result<Vec<ReverseEntry>, FtreeRefusal> {
    let topology = &tree.subnet.topology;
    let needs_ways = |&xbar: &u32| tree.hosts_at(xbar) > 0 && are_joined.binary_search(&xbar).is_err();
    let sources: Vec<u32> = (0..tree.xbar_count() as u32).filter(needs_ways).collect();
    let is_source: Vec<u8> = (0..tree.xbar_count() as u32).map(|xbar| u8::from(needs_ways(&xbar))).collect();
    let mut ways = Vec::new();
    for &to in &sources {
        // Most often no xbar lacks a way, which one pass shows.
        let none = |(&steps, &source): (&u8, &u8)| source & u8::from(steps == Reach::NONE);
        if reach.of(to).iter().zip(&is_source).map(none).fold(0, |any, none| any | none) == 0 {
            continue;
        }
        let lacks = |from: &u32| {
            reach.between(to, *from) == Reach::NONE && topology.component(*from) == topology.component(to)
        };
        let lacking: Vec<u32> = sources.iter().copied().filter(lacks).collect();
        if lacking.is_empty() {
            continue;
        }
        let labels = search(tree, reach, to, u32::from(settings.max_reverse_hops));
        for &from in &lacking {
            refuse_pair(tree, settings, (from, to), labels[from as usize])?;
        }
        for (xbar, label) in (0..).zip(labels) {
            let Some((_, _, channel)) = label.filter(|_| reach.between(to, xbar) == Reach::NONE) else {
                continue;
            };
            let port = topology.tail(channel).port;
            ways.extend(tree.subnet.destinations.slots_of(to).map(|slot| ReverseEntry { xbar, slot, port }));
        }
    }
    Ok(ways)
}

/// Refuses a pair of hosts that would need steps the wrong way, if neither of them may be reached by such
/// steps.
fn refuse_pair(
    tree: &Tree<'_>,
    settings: &Settings,
    (from, to): (u32, u32),
    label: Option<Label>,
) -> Result<(), FtreeRefusal> {
    let subnet = tree.subnet;
    let first = |xbar: u32, io: bool| {
        let hosts = subnet.destinations.host_slots_of(xbar).filter_map(|slot| host_of_slot(subnet, slot));
        let mut hosts = hosts.filter(|host| io || !settings.io_nodes.contains(host));
        hosts.next()
    };
    let plain = first(from, false).zip(first(to, false));
    let (pair, reverse_hops) = match (plain, label) {
        (None, Some(_)) => return Ok(()),
        (None, None) => (first(from, true).zip(first(to, true)), Some(settings.max_reverse_hops)),
        (Some(pair), _) => (Some(pair), None),
    };
    let (from, to) = pair.unwrap_or_default();
    let (from, to) = (host_name(subnet, from), host_name(subnet, to));
    Err(FtreeRefusal::Apart { from, to, reverse_hops })
}

/// The best ways to an xbar from all xbars that have no way up and down: those with the fewest steps the
/// wrong way, and of these the shortest.
fn search(tree: &Tree<'_>, reach: &Reach, to: u32, most: u32) -> Vec<Option<Label>> {
    let steps = reach.of(to);
    let known = |&steps: &u8| (steps != Reach::NONE).then_some((0, u32::from(steps), u32::MAX));
    let mut labels: Vec<Option<Label>> = steps.iter().map(known).collect();
    loop {
        let mut better = labels.clone();
        let lacking = (0..tree.xbar_count() as u32).filter(|&xbar| steps[xbar as usize] == Reach::NONE);
        for xbar in lacking {
            for (side, wrong) in [(&tree.up, 0), (&tree.down, 1)] {
                for group in side.of(xbar) {
                    let Some((reversed, far, _)) = labels[group.far as usize] else { continue };
                    let Some(&channel) = side.channels(group).first() else { continue };
                    let label = (reversed + wrong, far + 1, channel);
                    if label.0 <= most && better[xbar as usize].is_none_or(|best| label < best) {
                        better[xbar as usize] = Some(label);
                    }
                }
            }
        }
        if better == labels {
            return labels;
        }
        labels = better;
    }
}
