//! Which dimension is X, which way is up, and where coordinates begin: a choice among those that a shape
//! leaves open, made so that the same map gets the same coordinates everywhere.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::grid::{Dimension, Sense};
use super::super::statement::TorusStatement;
use crate::Topology;

/// The share of a dimension's channels that must leave by the usual ports for these to count, in quarters.
const USUAL_QUARTERS: usize = 3;

/// Dimensions, and each xbar's coordinates.
pub(super) type Placed = (Vec<Dimension>, Vec<[u8; 3]>);

/// Orders and turns dimensions, and shifts rings.
///
/// - What is stated comes first: the order of sizes, directions of ports, the origin.
/// - If nearly all channels of each dimension leave by one port up and by another down, X has the lowest
///   ports, and the lower port leads up.
/// - Otherwise X is the dimension with the most rows without any link (service rows), then the longest; up
///   leads to the xbars with lower numbers.
/// - Coordinates of rings begin at the first xbar.
pub(super) fn settle(topology: &Topology, placed: Placed, statement: &TorusStatement) -> Placed {
    let mut placed = placed;
    let origin = statement.origin.filter(|&origin| (origin as usize) < placed.1.len());
    let ports = usual_ports(topology, &placed);
    let by_ports = ports.iter().all(UsualPorts::are_telling);
    for (i, ports) in ports.iter().enumerate() {
        // Directions are chosen last, so that the first xbar of a ring stays at 0.
        shift(&mut placed, i, origin.unwrap_or(0));
        let turn = match (statement.has_ports(), origin) {
            (true, _) => false,
            (false, Some(origin)) if !placed.0[i].is_ring => placed.1[origin as usize][i] > 0,
            _ if by_ports && ports.way(Sense::Plus).0 != ports.way(Sense::Minus).0 => {
                ports.way(Sense::Plus).0 > ports.way(Sense::Minus).0
            }
            _ => is_turned(&placed, i),
        };
        if turn {
            mirror(&mut placed, i);
        }
    }
    let mut order: Vec<usize> = (0..placed.0.len()).collect();
    let rank = |&i: &usize| {
        let lowest = if by_ports { ports[i].lowest() } else { 0 };
        let bare = if by_ports { 0 } else { bare_rows(topology, &placed, i) };
        (lowest, Reverse(bare), Reverse(placed.0[i].size), first_off_zero(&placed, i))
    };
    if statement.has_ports() {
        return placed;
    }
    if statement.sizes.is_some() {
        // Only dimensions that are alike may change places.
        let mut alike = order.clone();
        alike.sort_by_key(|i| (placed.0[*i], rank(i)));
        let mut slots = order.clone();
        slots.sort_by_key(|&i| (placed.0[i], i));
        slots.into_iter().zip(alike).for_each(|(slot, from)| order[slot] = from);
    } else {
        order.sort_by_key(rank);
    }
    permute(&placed, &order)
}

/// Whether ports tell directions of these coordinates.
pub(super) fn ports_tell(topology: &Topology, placed: &Placed) -> bool {
    usual_ports(topology, placed).iter().all(UsualPorts::are_telling)
}

/// The ports by which channels leave up and down a dimension.
#[derive(Default)]
struct UsualPorts {
    count: [BTreeMap<u8, usize>; 2],
}

impl UsualPorts {
    /// The usual port of a way, and how many channels leave by it.
    fn way(&self, way: Sense) -> (u8, usize) {
        let most = self.count[way as usize].iter().max_by_key(|&(port, times)| (times, Reverse(port)));
        most.map_or((u8::MAX, 0), |(&port, &times)| (port, times))
    }

    fn lowest(&self) -> u8 {
        self.way(Sense::Plus).0.min(self.way(Sense::Minus).0)
    }

    fn are_telling(&self) -> bool {
        let all: usize = self.count.iter().flat_map(BTreeMap::values).sum();
        let usual = self.way(Sense::Plus).1 + self.way(Sense::Minus).1;
        all > 0 && 4 * usual >= USUAL_QUARTERS * all
    }
}

fn usual_ports(topology: &Topology, (dimensions, coordinates): &Placed) -> Vec<UsualPorts> {
    let mut ports: Vec<UsualPorts> = dimensions.iter().map(|_| UsualPorts::default()).collect();
    for channel in 0..topology.channel_count() as u32 {
        let (tail, head) = (topology.tail(channel), topology.head(channel));
        let (from, to) = (coordinates[tail.xbar as usize], coordinates[head.xbar as usize]);
        if let Some(i) = (0..dimensions.len()).find(|&i| from[i] != to[i]) {
            let way = if dimensions[i].step(from[i], Sense::Plus) == Some(to[i]) {
                Sense::Plus
            } else {
                Sense::Minus
            };
            *ports[i].count[way as usize].entry(tail.port).or_default() += 1;
        }
    }
    ports
}

/// Shifts a ring so that an xbar is at 0.
fn shift((dimensions, coordinates): &mut Placed, i: usize, origin: u32) {
    if let (Dimension { size, is_ring: true }, Some(&origin)) =
        (dimensions[i], coordinates.get(origin as usize))
    {
        for at in coordinates.iter_mut() {
            at[i] = if at[i] >= origin[i] { at[i] - origin[i] } else { size - origin[i] + at[i] };
        }
    }
}

/// The coordinate if the dimension is counted the other way. In a ring 0 stays 0.
fn mirrored(Dimension { size, is_ring }: Dimension, at: u8) -> u8 {
    match (is_ring, at) {
        (true, 0) => 0,
        (true, _) => size - at,
        (false, _) => size - 1 - at,
    }
}

fn mirror((dimensions, coordinates): &mut Placed, i: usize) {
    coordinates.iter_mut().for_each(|at| at[i] = mirrored(dimensions[i], at[i]));
}

/// Whether the first xbar that mirroring would move has the higher coordinate.
fn is_turned((dimensions, coordinates): &Placed, i: usize) -> bool {
    let mirrored = |at: &[u8; 3]| mirrored(dimensions[i], at[i]);
    coordinates.iter().find(|at| at[i] != mirrored(at)).is_some_and(|at| at[i] > mirrored(at))
}

/// How many rows along a dimension have no link although the neighbours are there.
fn bare_rows(topology: &Topology, (dimensions, coordinates): &Placed, i: usize) -> usize {
    if dimensions[i].size < 3 {
        return 0;
    }
    // For each row, by its coordinates in the other dimensions, how many xbars it has and whether any has a
    // link along it.
    let mut rows: BTreeMap<[u8; 3], (usize, bool)> = BTreeMap::new();
    for (xbar, at) in (0..).zip(coordinates) {
        let mut across = *at;
        across[i] = 0;
        let is_along = |channel: u32| coordinates[topology.head(channel).xbar as usize][i] != at[i];
        let row = rows.entry(across).or_default();
        row.0 += 1;
        row.1 |= topology.channels_of(xbar).any(is_along);
    }
    rows.values().filter(|&&(xbars, has_link)| xbars > 1 && !has_link).count()
}

/// The first xbar that is not at 0.
fn first_off_zero((_, coordinates): &Placed, i: usize) -> usize {
    coordinates.iter().position(|at| at[i] > 0).unwrap_or(usize::MAX)
}

fn permute((dimensions, coordinates): &Placed, order: &[usize]) -> Placed {
    let moved = |at: &[u8; 3]| std::array::from_fn(|i| order.get(i).map_or(0, |&from| at[from]));
    (order.iter().map(|&from| dimensions[from]).collect(), coordinates.iter().map(moved).collect())
}
