//! The loads before any detour.

use super::super::spines::Spines;
use super::super::templates::Templates;
use super::super::tree::Tree;

/// How many routes the templates put on each channel.
pub(super) fn of_templates(tree: &Tree<'_>, spines: &Spines, templates: &Templates) -> Vec<u32> {
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
    // Half of the range is left for detours. All routes of the largest fabric do not fill it.
    loads.into_iter().map(|load: u64| load.min(1 << 31) as u32).collect()
}
