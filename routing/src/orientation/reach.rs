//! Breadth-first searches from 512 xbars at a time, which do not affect each other.

use super::{Direction, Orientation};
use crate::Topology;

/// Sources that one search follows, a bit each.
pub(super) const BLOCK: usize = 512;

/// Most steps that a search takes. Routes are far shorter, so a fabric with longer ways cannot be used
/// anyway.
pub(super) const MAX_STEPS: usize = 64;

/// Words of a bit for each source.
const WORDS: usize = BLOCK / 64;

/// The sources that reached an xbar, a bit each, in so many words.
type Row<const W: usize = WORDS> = [u64; W];

fn join<const W: usize>(into: &mut Row<W>, from: &Row<W>) {
    for (a, b) in into.iter_mut().zip(from) {
        *a |= b;
    }
}

fn start<const W: usize>(topology: &Topology, sources: &[u32]) -> Vec<Row<W>> {
    debug_assert!(sources.len() <= W * 64);
    let mut rows = vec![[0; W]; topology.xbar_count()];
    for (bit, &source) in sources.iter().enumerate() {
        rows[source as usize][bit / 64] |= 1 << (bit % 64);
    }
    rows
}

/// One step of a search along any channel. Cables go both ways, so rows are gathered from where the
/// channels lead.
fn step<const W: usize>(topology: &Topology, rows: &[Row<W>]) -> Vec<Row<W>> {
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
    let mut rows = start::<WORDS>(topology, sources);
    for steps in 1..=MAX_STEPS {
        let next = step(topology, &rows);
        let mut gained: Row = [0; WORDS];
        for (new, old) in next.iter().zip(&rows) {
            for (word, (new, old)) in gained.iter_mut().zip(new.iter().zip(old)) {
                *word |= new & !old;
            }
        }
        if gained == [0; WORDS] {
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
    // Few sources need no wide rows, most of which would be empty.
    if sources.len() <= 64 {
        legal_is_shortest_in::<1>(topology, orientation, sources, targets)
    } else {
        legal_is_shortest_in::<WORDS>(topology, orientation, sources, targets)
    }
}

fn legal_is_shortest_in<const W: usize>(
    topology: &Topology,
    orientation: &Orientation,
    sources: &[u32],
    targets: &[u32],
) -> bool {
    let mut any = start::<W>(topology, sources);
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
    let mut rising = start::<WORDS>(topology, sources);
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
fn legal_step<const W: usize>(
    topology: &Topology,
    orientation: &Orientation,
    rising: &[Row<W>],
    legal: &[Row<W>],
) -> (Vec<Row<W>>, Vec<Row<W>>) {
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
