//! A number for each channel that rises along every legal step.

use crate::Topology;
use crate::repair::onward;

/// Numbers the channels so that each has a higher number than all from which a step leads to it. Steps are
/// those of [`onward`] that `allows` lets pass. None if they close a circle. (Kahn, 1962.)
pub(super) fn rising(topology: &Topology, allows: impl Fn(u32, u32) -> bool) -> Option<Vec<u32>> {
    let count = topology.channel_count();
    let allows = &allows;
    let steps = |first: u32| onward(topology, first).filter(move |&second| allows(first, second));
    let mut waits_for = vec![0_u32; count];
    for first in 0..count as u32 {
        steps(first).for_each(|second| waits_for[second as usize] += 1);
    }
    let mut order: Vec<u32> = (0..count as u32).filter(|&channel| waits_for[channel as usize] == 0).collect();
    let mut numbers = vec![0; count];
    let mut next = 0;
    while let Some(&first) = order.get(next) {
        numbers[first as usize] = next as u32;
        next += 1;
        for second in steps(first) {
            let waits = &mut waits_for[second as usize];
            *waits -= 1;
            if *waits == 0 {
                order.push(second);
            }
        }
    }
    (next == count).then_some(numbers)
}
