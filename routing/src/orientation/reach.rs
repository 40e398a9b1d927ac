//! Breadth-first searches from 512 xbars at a time, which do not affect each other.

use super::{Direction, Orientation};
use crate::Topology;

/// Sources that one search follows, a bit each.
pub(super) const BLOCK: usize = 512;

/// Most steps that a search takes. Routes are far shorter, so a fabric with longer ways cannot be used
/// anyway.
pub(super) const MAX_STEPS: usize = 64;

/// The xbars that reached an xbar, a bit each.
type Row = [u64; BLOCK / 64];

fn join(into: &mut Row, from: &Row) {
    for (a, b) in into.iter_mut().zip(from) {
        *a |= b;
    }
}

fn start(topology: &Topology, sources: &[u32]) -> Vec<Row> {
    debug_assert!(sources.len() <= BLOCK);
    let mut rows = vec![[0; BLOCK / 64]; topology.xbar_count()];
    for (bit, &source) in sources.iter().enumerate() {
        rows[source as usize][bit / 64] |= 1 << (bit % 64);
    }
    rows
}

/// One step of a search along any channel. Cables go both ways, so rows are gathered from where the
/// channels lead.
fn step(topology: &Topology, rows: &[Row]) -> Vec<Row> {
    let mut next = rows.to_vec();
    for (xbar, row) in next.iter_mut().enumerate() {
        for channel in topology.channels_of(xbar as u32) {
            join(row, &rows[topology.head(channel).xbar as usize]);
        }
    }
    next
}

/// The eccentricity of each source: steps to the farthest xbar that it reaches, at most
/// [`MAX_STEPS`].
pub(super) fn eccentricities(topology: &Topology, sources: &[u32]) -> Vec<usize> {
    let mut eccentricity = vec![0; sources.len()];
    let mut rows = start(topology, sources);
    for steps in 1..=MAX_STEPS {
        let next = step(topology, &rows);
        let mut gained: Row = [0; BLOCK / 64];
        for (new, old) in next.iter().zip(&rows) {
            for (word, (new, old)) in gained.iter_mut().zip(new.iter().zip(old)) {
                *word |= new & !old;
            }
        }
        if gained == [0; BLOCK / 64] {
            break;
        }
        for (bit, farthest) in eccentricity.iter_mut().enumerate() {
            if gained[bit / 64] >> (bit % 64) & 1 == 1 {
                *farthest = steps;
            }
        }
        rows = next;
    }
    eccentricity
}

/// Whether each of `targets` is reached from each of `sources` by a legal route that is as short as any
/// route.
pub(super) fn legal_is_shortest(
    topology: &Topology,
    orientation: &Orientation,
    sources: &[u32],
    targets: &[u32],
) -> bool {
    let mut any = start(topology, sources);
    let mut rising = any.clone();
    let mut legal = any.clone();
    for _ in 0..MAX_STEPS {
        let next = step(topology, &any);
        if next == any {
            return true;
        }
        let (next_rising, next_legal) = legal_step(topology, orientation, &rising, &legal);
        if targets.iter().any(|&x| next_legal[x as usize] != next[x as usize]) {
            return false;
        }
        (any, rising, legal) = (next, next_rising, next_legal);
    }
    // The way is longer than any route may be, so it does not matter whether it is legal.
    false
}

/// Steps from the sources to all targets that legal routes lead to, at most [`MAX_STEPS`].
pub(super) fn legal_steps(
    topology: &Topology,
    orientation: &Orientation,
    sources: &[u32],
    targets: &[u32],
) -> usize {
    let mut rising = start(topology, sources);
    let mut legal = rising.clone();
    let mut most = 0;
    for steps in 1..=MAX_STEPS {
        let (next_rising, next_legal) = legal_step(topology, orientation, &rising, &legal);
        if next_rising == rising && next_legal == legal {
            break;
        }
        if targets.iter().any(|&target| next_legal[target as usize] != legal[target as usize]) {
            most = steps;
        }
        (rising, legal) = (next_rising, next_legal);
    }
    most
}

/// One step of a search that goes up only (`rising`), and of one that goes up and then down
/// (`legal`).
fn legal_step(
    topology: &Topology,
    orientation: &Orientation,
    rising: &[Row],
    legal: &[Row],
) -> (Vec<Row>, Vec<Row>) {
    let (mut next_rising, mut next_legal) = (rising.to_vec(), legal.to_vec());
    for xbar in 0..topology.xbar_count() {
        for channel in topology.channels_of(xbar as u32) {
            let from = topology.head(channel).xbar as usize;
            // A channel that leads here is the reverse of one that leads out.
            match orientation.direction(channel) {
                Direction::Down => {
                    join(&mut next_rising[xbar], &rising[from]);
                    join(&mut next_legal[xbar], &rising[from]);
                }
                Direction::Up => join(&mut next_legal[xbar], &legal[from]),
                Direction::Barred => {}
            }
        }
    }
    (next_rising, next_legal)
}
