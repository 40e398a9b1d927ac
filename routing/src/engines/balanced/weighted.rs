//! Shortest ways where steps count differently.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ports::XbarPorts;
use super::ranks::each_bit;
use super::ways::Ways;

/// Finds ways to each destination in turn, by Dijkstra's algorithm over (xbar, falls or rises).
///
/// The rule is that of [`Ways`]: the lighter way is taken, and falling if both are equally light. If that
/// leaves an xbar without a way although there is one, every xbar that can fall does.
pub(super) fn find(ports: &XbarPorts, ways: &mut Ways) {
    for place in 0..ways.to.len() {
        let to = ways.to[place];
        let falls = fall(ports, to);
        let first = settle(ports, to, &falls, false);
        let second = settle(ports, to, &falls, true);
        let reach = |found: &Vec<Reaching>| found.iter().filter(|state| state.distance != u32::MAX).count();
        note(ports, ways, place, if reach(&second) > reach(&first) { &second } else { &first });
    }
}

/// How an xbar reaches a destination.
#[derive(Clone, Copy)]
struct Reaching {
    distance: u32,
    falls: bool,
}

const UNREACHED: Reaching = Reaching { distance: u32::MAX, falls: false };

/// The weight of the lightest way down from each xbar.
fn fall(ports: &XbarPorts, to: u32) -> Vec<u32> {
    let mut distance = vec![u32::MAX; ports.xbars];
    let mut heap = BinaryHeap::from([Reverse((0, to))]);
    distance[to as usize] = 0;
    while let Some(Reverse((weight, xbar))) = heap.pop() {
        if weight > distance[xbar as usize] {
            continue;
        }
        for number in ports.numbers_of(xbar) {
            let back = ports.backs[number] as usize;
            let (from, longer) = (ports.heads[number], weight + u32::from(ports.weights[back]));
            if !ports.climbs_by(back) && longer < distance[from as usize] {
                distance[from as usize] = longer;
                heap.push(Reverse((longer, from)));
            }
        }
    }
    distance
}

/// Settles xbars by rising distance. An xbar is offered to fall at the weight of its way down, if the
/// xbars on it fall as well.
fn settle(ports: &XbarPorts, to: u32, falls: &[u32], fall_first: bool) -> Vec<Reaching> {
    let mut states = vec![UNREACHED; ports.xbars];
    // Falling sorts before rising at the same distance.
    let mut heap = BinaryHeap::from([Reverse((0, false, to))]);
    while let Some(Reverse((distance, rises, xbar))) = heap.pop() {
        if states[xbar as usize].distance != u32::MAX {
            continue;
        }
        states[xbar as usize] = Reaching { distance, falls: !rises };
        for number in ports.numbers_of(xbar) {
            let back = ports.backs[number] as usize;
            let (from, longer) = (ports.heads[number], distance + u32::from(ports.weights[back]));
            if states[from as usize].distance != u32::MAX {
                continue;
            }
            if ports.climbs_by(back) {
                if !fall_first || falls[from as usize] == u32::MAX {
                    heap.push(Reverse((longer, true, from)));
                }
            } else if !rises {
                heap.push(Reverse((longer, false, from)));
            }
        }
    }
    states
}

/// Notes ports and order of what was settled.
fn note(ports: &XbarPorts, ways: &mut Ways, place: usize, states: &[Reaching]) {
    let mut order: Vec<u32> =
        (0..ports.xbars as u32).filter(|&xbar| states[xbar as usize].distance != u32::MAX).collect();
    order.sort_by_key(|&xbar| (states[xbar as usize].distance, xbar));
    for &xbar in &order {
        ways.push(place, xbar);
        let state = states[xbar as usize];
        for word in 0..ports.words {
            let at = xbar as usize * ports.words + word;
            let mut mask = 0;
            each_bit(ports.live[at], |bit| {
                let number = at * 64 + bit;
                let head = states[ports.heads[number] as usize];
                let leads = head.distance != u32::MAX
                    && head.distance + u32::from(ports.weights[number]) == state.distance
                    && ports.climbs_by(number) != state.falls
                    && (!state.falls || head.falls);
                mask |= u64::from(leads) << bit;
            });
            ways.set_mask(place, xbar, word, mask);
        }
    }
}
