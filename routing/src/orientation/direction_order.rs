//! Direction order without virtual channels: what agents use on a torus or mesh.
//!
//! Source-routed frames have one layer. So rules R0 and R2 of [`torus`](crate::engines::torus) are
//! sharpened by a word: once a route has crossed the dateline of a dimension, it may not go on in that
//! dimension *or* a higher one. Then there are four phases:
//!
//! ```text
//!      phase 0           phase 1           phase 2          phase 3
//!   x+ x- y+ z+  --->   y+ y- z+   --->    z+ z-    --->    (ends)
//!               y-                z-
//!          x dateline        y dateline        z dateline
//!
//!       0---1---2---3---4---5===0     1 to 5: by 0, across the dateline, and there the x's end
//!       |<------ the row ------>|     0 to 4: not beyond 5 that way, so by 1, 2, 3
//! ```
//!
//! No circle closes. A step across Z's dateline is followed by nothing, and z- only by z-, so of z steps a
//! circle could have only z+ without crossing the dateline, and so it has none. Then a step across Y's
//! dateline could only be followed by z, and y- only by y-, so a circle has no y step either. Along X alone
//! it would have to go on across the dateline. In this proof z does not change where Y is considered, and
//! neither y nor z where X is. So each plane can have a Y dateline of its own, and each row an X dateline.
//! They are put where links are missing, and otherwise spread over the rows, so that the long ways round a
//! dateline are spread. The proof is not trusted: the steps are numbered before anything uses them.

use crate::Topology;
use crate::engines::torus::{Grid, Sense, TorusStatement, recognise, under_other_names};
use crate::repair::onward;

use super::{LegalOrder, Orientation, Passage, Shape, numbers};

/// How many phases a route has.
const PHASES: u8 = 4;

/// Most placements of the datelines that are tried with the axes as the map suggests them.
const MOST_PLACEMENTS: u8 = 4;

/// Orients a torus or mesh with at least two dimensions of at least three xbars: in smaller ones up*/down*
/// finds routes that are equally short. It is also `None` if direction order cannot join all hosts that
/// cables join.
pub(super) fn orient(topology: &Topology) -> Option<Orientation> {
    let grid = recognise(topology, &TorusStatement::default()).ok()?;
    let sizes: Vec<u8> = grid.dimensions().iter().map(|dimension| dimension.size).collect();
    if sizes.iter().filter(|&&size| size > 2).count() < 2 {
        return None;
    }
    let as_found = (0..MOST_PLACEMENTS).find_map(|shift| on(topology, &grid, shift));
    let found =
        as_found.or_else(|| under_other_names(&grid, topology).find_map(|renamed| on(topology, &renamed, 0)));
    let (passages, numbers) = found?;
    let (shape, order) = (Shape::Grid { sizes }, LegalOrder::Channels(numbers));
    Some(Orientation::from_passages(topology, shape, PHASES, passages, order))
}

/// The passages of a grid and the numbers of its channels, if legal routes join all hosts.
fn on(topology: &Topology, grid: &Grid, shift: u8) -> Option<(Vec<Passage>, Vec<u32>)> {
    let passages = passages(topology, grid, &Datelines::new(topology, grid, shift));
    let allows = |first: u32, second: u32| passages[first as usize].leads_on_to(passages[second as usize]);
    let numbers = numbers::rising(topology, allows)?;
    joins_all(topology, &numbers, &passages).then_some((passages, numbers))
}

/// Where datelines are: each at the coordinate from which a step towards higher ones crosses it.
struct Datelines {
    /// The dateline of each row along X, at `y + size_y * z`.
    x: Vec<u8>,
    /// The Y dateline of each plane, by z.
    y: Vec<u8>,
    z: u8,
}

impl Datelines {
    /// Puts each dateline where most of the links that it would bar are missing anyway. Among equal places it
    /// takes the next one after a place that differs from row to row and with `shift`.
    fn new(topology: &Topology, grid: &Grid, shift: u8) -> Self {
        let [_, size_y, size_z] = [0, 1, 2].map(|dimension| grid.size(dimension));
        let missing = Missing::of(topology, grid);
        let place = |dimension: usize, spread: usize, count: &dyn Fn(u8) -> u32| {
            let size = grid.size(dimension);
            let first = (spread + usize::from(shift)) % usize::from(size);
            let places = (0..size).map(|step| ((first + usize::from(step)) % usize::from(size)) as u8);
            let best = places.enumerate().max_by_key(|&(turn, at)| (count(at), std::cmp::Reverse(turn)));
            best.map_or(0, |(_, at)| at)
        };
        let rows = (0..size_z).flat_map(|z| (0..size_y).map(move |y| (y, z)));
        Self {
            x: rows
                .map(|(y, z)| place(0, usize::from(y) + usize::from(z), &|x| missing.at([x, y, z], 0)))
                .collect(),
            y: (0..size_z).map(|z| place(1, usize::from(z), &|y| missing.in_row(y, z))).collect(),
            z: place(2, 0, &|z| missing.in_plane(z)),
        }
    }

    /// Whether a step from a place crosses the dateline.
    fn is_crossed(&self, grid: &Grid, from: [u8; 3], dimension: usize, way: Sense) -> bool {
        let [_, y, z] = from.map(usize::from);
        let at = match dimension {
            0 => self.x[y + usize::from(grid.size(1)) * z],
            1 => self.y[z],
            _ => self.z,
        };
        let is_ring = grid.dimensions().get(dimension).is_some_and(|dimension| dimension.is_ring);
        let lower = match way {
            Sense::Plus => from[dimension],
            Sense::Minus => from[dimension].checked_sub(1).unwrap_or(grid.size(dimension) - 1),
        };
        is_ring && lower == at
    }
}

/// How many links towards higher coordinates are missing, place by place.
struct Missing {
    sizes: [u8; 3],
    /// Whether each place lacks its link towards higher coordinates, by dimension. Places stand by x first.
    of: Vec<[bool; 3]>,
}

impl Missing {
    fn of(topology: &Topology, grid: &Grid) -> Self {
        let leads = |xbar: u32, dimension: usize| {
            grid.channels(xbar, dimension, Sense::Plus).iter().any(|&channel| !topology.is_dead(channel))
        };
        let at = |place: [u8; 3]| {
            [0, 1, 2].map(|dimension| {
                let is_there = |xbar| leads(xbar, dimension);
                dimension < grid.dimensions().len() && !grid.xbar_at(place).is_some_and(is_there)
            })
        };
        Self { sizes: [0, 1, 2].map(|dimension| grid.size(dimension)), of: grid.places().map(at).collect() }
    }

    fn at(&self, [x, y, z]: [u8; 3], dimension: usize) -> u32 {
        let [x, y, z, size_x, size_y] = [x, y, z, self.sizes[0], self.sizes[1]].map(usize::from);
        u32::from(self.of[x + size_x * (y + size_y * z)][dimension])
    }

    /// How many links along Y are missing between the row at this y and z and the next one.
    fn in_row(&self, y: u8, z: u8) -> u32 {
        (0..self.sizes[0]).map(|x| self.at([x, y, z], 1)).sum()
    }

    /// How many links along Z are missing between the plane at this z and the next one.
    fn in_plane(&self, z: u8) -> u32 {
        (0..self.sizes[1])
            .flat_map(|y| (0..self.sizes[0]).map(move |x| [x, y, z]))
            .map(|at| self.at(at, 2))
            .sum()
    }
}

/// When routes may take each channel.
fn passages(topology: &Topology, grid: &Grid, datelines: &Datelines) -> Vec<Passage> {
    let mut passages = vec![Passage::BARRED; topology.channel_count()];
    for xbar in 0..topology.xbar_count() as u32 {
        for dimension in 0..grid.dimensions().len() {
            for way in Sense::BOTH {
                let crosses = datelines.is_crossed(grid, grid.coordinates(xbar), dimension, way);
                for &channel in grid.channels(xbar, dimension, way) {
                    passages[channel as usize] = passage(dimension as u8, way, crosses);
                }
            }
        }
    }
    passages
}

/// When routes may take a step: rules R0 and R2, sharpened as the text above says.
fn passage(dimension: u8, way: Sense, crosses_dateline: bool) -> Passage {
    let then = match way {
        _ if crosses_dateline => dimension + 1,
        Sense::Plus => 0,
        Sense::Minus => dimension,
    };
    Passage { until: dimension, then }
}

/// Destinations that are followed at once, a bit each.
const BLOCK: usize = 512;

/// The xbars that something leads to, a bit each.
type Row = [u64; BLOCK / 64];

/// Whether legal routes lead from each xbar with hosts to every other one that cables lead to.
fn joins_all(topology: &Topology, numbers: &[u32], passages: &[Passage]) -> bool {
    let is_end = |&xbar: &u32| !topology.hosts_of(xbar).is_empty();
    let ends: Vec<u32> = (0..topology.xbar_count() as u32).filter(is_end).collect();
    let mut order: Vec<u32> = (0..topology.channel_count() as u32).collect();
    order.sort_unstable_by_key(|&channel| std::cmp::Reverse(numbers[channel as usize]));
    let mut reach = DestinationReach { topology, passages, order, bit_of: Vec::new(), rows: Vec::new() };
    ends.chunks(BLOCK).all(|block| {
        reach.follow(block);
        ends.iter().all(|&from| {
            let row = reach.from(from);
            let is_missed = |(bit, &end): (usize, &u32)| {
                topology.component(end) == topology.component(from) && row[bit / 64] >> (bit % 64) & 1 == 0
            };
            !block.iter().enumerate().any(is_missed)
        })
    })
}

/// Which destinations of a block each channel leads to.
struct DestinationReach<'a> {
    topology: &'a Topology,
    passages: &'a [Passage],
    /// The channels in an order in which each leads on only to earlier ones.
    order: Vec<u32>,
    /// By xbar, its bit in a row; none has a bit outside the block.
    bit_of: Vec<usize>,
    /// The destinations, by channel and phase after it.
    rows: Vec<Row>,
}

impl DestinationReach<'_> {
    /// Finds for each channel, and each phase that a route can be in behind it, the destinations that it
    /// leads to: its head, and those of all channels that may follow.
    fn follow(&mut self, block: &[u32]) {
        self.bit_of = vec![usize::MAX; self.topology.xbar_count()];
        block.iter().enumerate().for_each(|(bit, &end)| self.bit_of[end as usize] = bit);
        self.rows.resize(usize::from(PHASES) * self.topology.channel_count(), [0; BLOCK / 64]);
        for &channel in &self.order {
            for phase in self.passages[channel as usize].then..PHASES {
                let mut row = self.own(self.topology.head(channel).xbar);
                onward(self.topology, channel).for_each(|next| self.join(&mut row, phase, next));
                self.rows[usize::from(PHASES) * channel as usize + usize::from(phase)] = row;
            }
        }
    }

    /// The destinations that routes from an xbar lead to.
    fn from(&self, xbar: u32) -> Row {
        let mut row = self.own(xbar);
        self.topology.channels_of(xbar).for_each(|channel| self.join(&mut row, 0, channel));
        row
    }

    fn own(&self, xbar: u32) -> Row {
        let mut row = [0; BLOCK / 64];
        let bit = self.bit_of[xbar as usize];
        if let Some(word) = row.get_mut(bit / 64) {
            *word = 1 << (bit % 64);
        }
        row
    }

    /// Adds the destinations of a channel that is taken in a phase, if it may be taken then.
    fn join(&self, row: &mut Row, phase: u8, channel: u32) {
        if let Some(after) = self.passages[channel as usize].after(phase) {
            let place = usize::from(PHASES) * channel as usize + usize::from(after);
            row.iter_mut().zip(&self.rows[place]).for_each(|(a, b)| *a |= b);
        }
    }
}

#[cfg(test)]
mod tests;
