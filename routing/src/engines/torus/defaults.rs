//! The default routes by rule R1, all at once: the dependencies that they make, and a table of those to one
//! destination.

use std::cmp::Ordering;

use super::dependencies::{ClassSet, TorusDependencies};
use super::heading::Heading;
use super::lattice::{Lattice, NOWHERE};
use super::rules::{Aim, along};
use super::tree::Class;

/// What runs along a dimension may do, as a set: 1 for "does not cross the dateline" and 2 for "crosses it".
type Crossings = u8;

/// The run of no step.
const NO_RUN: Crossings = 1;

/// All runs along one dimension, of routes that go the shorter way round.
#[derive(Debug, Clone)]
struct Runs {
    /// By the coordinate where they begin; also the run of no step.
    starting: Vec<Crossings>,
    /// By the coordinate where they end; also the run of no step.
    ending: Vec<Crossings>,
    /// By heading and by the coordinate that their first step leaves.
    first: [Vec<Crossings>; 2],
    /// By heading and by the coordinate that their last step leaves.
    last: [Vec<Crossings>; 2],
    /// By heading and by a coordinate that they leave by a step that is not the last.
    going_on: [Vec<Crossings>; 2],
}

impl Runs {
    fn new(lattice: &Lattice, dimension: usize) -> Self {
        let size = usize::from(lattice.sizes[dimension]);
        let none = || [vec![0; size], vec![0; size]];
        let mut runs = Self {
            starting: vec![NO_RUN; size],
            ending: vec![NO_RUN; size],
            first: none(),
            last: none(),
            going_on: none(),
        };
        for from in 0..lattice.sizes[dimension] {
            for to in (0..lattice.sizes[dimension]).filter(|&to| to != from) {
                let ways = [true, false].map(|plus| {
                    let heading = Heading::along(dimension, plus);
                    (heading, lattice.distance(from, to, heading))
                });
                let shortest = ways.iter().filter_map(|way| way.1).min();
                for (heading, length) in ways {
                    // If both ways are equally short, some routes take each.
                    if length == shortest {
                        runs.add(lattice, from, to, heading);
                    }
                }
            }
        }
        runs
    }

    fn add(&mut self, lattice: &Lattice, from: u8, to: u8, heading: Heading) {
        let way = way(heading);
        let mut left = Vec::new();
        let mut at = from;
        let mut crossings = NO_RUN;
        while at != to {
            left.push(usize::from(at));
            if lattice.crosses_at(at, heading) {
                crossings = 2;
            }
            let Some(next) = lattice.step(at, heading) else { return };
            at = next;
        }
        self.starting[usize::from(from)] |= crossings;
        self.ending[usize::from(to)] |= crossings;
        let Some((&last, before)) = left.split_last() else { return };
        self.first[way][left[0]] |= crossings;
        self.last[way][last] |= crossings;
        for &at in before {
            self.going_on[way][at] |= crossings;
        }
    }
}

/// The classes whose run along each dimension is one of these.
fn classes(x: Crossings, y: Crossings, z: Crossings) -> ClassSet {
    let bits = [x, y, z];
    let has = |class: usize| (0..3).all(|dimension| bits[dimension] >> (class >> dimension & 1) & 1 == 1);
    (0..8).filter(|&class| has(class)).fold(0, |set, class| set | 1 << class)
}

/// All dependencies of default routes between any two places of the grid. If some routers have no hosts, or
/// links are missing, there are really fewer.
pub(super) fn dependencies(lattice: &Lattice) -> TorusDependencies {
    let mut all = TorusDependencies::new(lattice.router_count());
    let runs = [0, 1, 2].map(|dimension| Runs::new(lattice, dimension));
    for router in 0..lattice.router_count() as u32 {
        let at = lattice.coordinates(router).map(usize::from);
        for heading in Heading::ALL {
            all.add_turn(router, heading, heading, classes_on(&runs, at, heading));
            for &onward in &Heading::ALL[2 * heading.dimension() + 2..] {
                all.add_turn(router, heading, onward, classes_of_turn(&runs, at, heading, onward));
            }
        }
    }
    all
}

/// The classes of routes that go on at a place the way they came in.
fn classes_on(runs: &[Runs; 3], at: [usize; 3], heading: Heading) -> ClassSet {
    let dimension = heading.dimension();
    let [x, y, z] = [0, 1, 2].map(|other| match other.cmp(&dimension) {
        Ordering::Less => runs[other].ending[at[other]],
        Ordering::Equal => runs[other].going_on[way(heading)][at[other]],
        Ordering::Greater => runs[other].starting[at[other]],
    });
    classes(x, y, z)
}

/// The classes of routes that end a run at a place and begin one along a later dimension. Runs along dimensions before the first
/// have ended here, those between the two are none, as the place is right in these, and those behind the second are to come.
fn classes_of_turn(runs: &[Runs; 3], at: [usize; 3], heading: Heading, onward: Heading) -> ClassSet {
    let (ends, begins) = (heading.dimension(), onward.dimension());
    let [x, y, z] = [0, 1, 2].map(|other| match (other.cmp(&ends), other.cmp(&begins)) {
        (Ordering::Less, _) => runs[other].ending[at[other]],
        (Ordering::Equal, _) => runs[other].last[way(heading)][at[other]],
        (Ordering::Greater, Ordering::Less) => NO_RUN,
        (Ordering::Greater, Ordering::Equal) => runs[other].first[way(onward)][at[other]],
        (Ordering::Greater, Ordering::Greater) => runs[other].starting[at[other]],
    });
    classes(x, y, z)
}

/// The number of a heading's way along its dimension.
fn way(heading: Heading) -> usize {
    usize::from(!heading.is_plus())
}

/// A table of the default heading and class of each router's route to one destination. Memory for many
/// destinations in turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Defaults {
    /// By dimension and coordinate, the heading's number (7 if the coordinate is right) and the class bit
    /// of crossing the dateline.
    along: [Vec<(u8, Class)>; 3],
}

impl Defaults {
    /// Sets the table for this aim.
    pub(super) fn set(&mut self, lattice: &Lattice, aim: &Aim) {
        for dimension in 0..3 {
            let runs = &mut self.along[dimension];
            runs.clear();
            for from in 0..lattice.sizes[dimension] {
                let heading = along(lattice, dimension, from, aim);
                let mut crosses = false;
                let mut at = from;
                while let Some(heading) = heading
                    && !aim.holds(dimension, at)
                {
                    crosses |= lattice.crosses_at(at, heading);
                    let Some(next) = lattice.step(at, heading) else { break };
                    at = next;
                }
                let number = heading.map_or(7, |heading| heading.index() as u8);
                runs.push((number, Class::from(crosses) << dimension));
            }
        }
    }

    /// Writes a cell for each router: its class times 8, and the number of its heading.
    pub(super) fn fill(&self, lattice: &Lattice, cells: &mut [u8]) {
        let mut places = lattice.places();
        for &(heading_z, class_z) in &self.along[2] {
            for &(heading_y, class_y) in &self.along[1] {
                let heading = if heading_y < 7 { heading_y } else { heading_z };
                let class = class_y | class_z;
                let (row, rest) = places.split_at(self.along[0].len());
                places = rest;
                for (&router, &(heading_x, class_x)) in row.iter().zip(&self.along[0]) {
                    let heading = if heading_x < 7 { heading_x } else { heading };
                    if router != NOWHERE {
                        cells[router as usize] = (class | class_x) << 3 | heading;
                    }
                }
            }
        }
    }
}
