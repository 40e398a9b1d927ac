//! Layers by the corners of default routes. In two and three dimensions these are half as many as by
//! datelines.

use rayon::prelude::*;

use super::heading::Heading;
use super::lattice::Lattice;
use super::layer::TorusLayer;
use super::serve::Fabric;
use super::trees::TorusTrees;

/// Most routes other than the default ones that are put into layers one by one.
pub(super) const MOST_DETOURS: usize = 250_000;

/// How many layers there are, and those of all pairs, by destination and then by source. `None` if that takes
/// more than `most`, or if too many routes are not the default ones.
///
/// A default route turns at two corners: where its x is right, and where its y is.
///
/// ```text
///      z   D                    first corner:  x of D, y and z of S
///      |   |                    second corner: x and y of D, z of S
///      +---2    (y)
///     S----1    (x)
/// ```
///
/// Its layer says in which half of the rings through each corner that corner is: one bit for the rings of X
/// and Y through the first, one for the ring of Z through the second. A half is an arc of each ring. So in
/// a layer the runs along a ring of X all end in the same half, and those along a ring of Y or Z begin there.
/// None is longer than half the ring. So none goes straight through the router at the end of the half that
/// such runs reach last, or leave first, and no ring is closed.
///
/// All other routes are added one by one, each to the first layer that stays free of circles, its own
/// corners' layer first.
pub(super) fn by_corner(fabric: &Fabric<'_>, trees: &TorusTrees, most: u8) -> Option<(u8, Vec<u8>)> {
    let lattice = fabric.lattice;
    let halves = Halves::new(lattice);
    let labels = halves.label_count();
    if labels > usize::from(most) || trees.detours.len() > MOST_DETOURS {
        return None;
    }
    let routers = lattice.router_count();
    let mut of = vec![0; routers * routers];
    let rows: Vec<Vec<u8>> = (0..lattice.sizes[0]).map(|x| halves.labels(lattice, x)).collect();
    of.par_chunks_mut(routers.max(1)).enumerate().for_each(|(destination, of)| {
        of.copy_from_slice(&rows[usize::from(lattice.coordinates(destination as u32)[0])]);
    });
    let mut stack = Stack { lattice, halves: &halves, layers: (0..labels).map(|_| None).collect(), most };
    let mut channels = Vec::new();
    let wanted = trees.detours.iter().filter(|&&(source, destination)| fabric.wants(source, destination));
    for &(source, destination) in wanted {
        channels.clear();
        let mut at = source;
        while let Some(heading) = trees.heading(at, destination) {
            channels.push(6 * at + heading.index() as u32);
            at = lattice.next(at, heading)?;
        }
        let layer = &mut of[destination as usize * routers + source as usize];
        *layer = stack.add(*layer, &channels)?;
    }
    Some((stack.layers.len() as u8, of))
}

/// The layers, those of default routes first. They are made when a route is first added to them.
struct Stack<'a> {
    lattice: &'a Lattice,
    halves: &'a Halves,
    layers: Vec<Option<TorusLayer>>,
    most: u8,
}

impl Stack<'_> {
    /// Adds a route to the first layer that has room, where its own layer is tried first. `None` if none has.
    fn add(&mut self, own: u8, channels: &[u32]) -> Option<u8> {
        let others = (0..self.layers.len() as u8).filter(|&other| other != own);
        for place in std::iter::once(own).chain(others) {
            let make = || self.halves.layer(self.lattice, place);
            if self.layers[usize::from(place)].get_or_insert_with(make).add(channels) {
                return Some(place);
            }
        }
        let mut fresh = TorusLayer::new(self.lattice);
        let has_room = self.layers.len() < usize::from(self.most) && fresh.add(channels);
        self.layers.push(Some(fresh));
        has_room.then_some(self.layers.len() as u8 - 1)
    }
}

/// The halves of rings.
struct Halves {
    /// By x and y, the half of the rings of X and Y that a place is in. If neither is a ring, all places are
    /// in one.
    first: Vec<Vec<u8>>,
    /// By z, the half of the ring of Z that a place is in.
    second: Vec<u8>,
    /// Whether X or Y is a ring.
    has_first: bool,
}

impl Halves {
    fn new(lattice: &Lattice) -> Self {
        let turns = |dimension: usize, at: u8| {
            if lattice.rings[dimension] {
                (u64::from(at), u64::from(lattice.sizes[dimension]))
            } else {
                (0, 1)
            }
        };
        // The parts of a turn round both rings are added, so that the sum rises to a whole turn along each
        // ring.
        let half = |(one, size): (u64, u64), (other, other_size): (u64, u64)| {
            let whole = size * other_size;
            u8::from(2 * ((one * other_size + other * size) % whole) >= whole)
        };
        let rows = |x: u8| (0..lattice.sizes[1]).map(move |y| half(turns(0, x), turns(1, y))).collect();
        Self {
            first: (0..lattice.sizes[0]).map(rows).collect(),
            second: (0..lattice.sizes[2]).map(|z| half(turns(2, z), (0, 1))).collect(),
            has_first: lattice.rings[0] || lattice.rings[1],
        }
    }

    fn label_count(&self) -> usize {
        let second = self.second.iter().max().copied().unwrap_or_default();
        1 << (u8::from(self.has_first) + second)
    }

    /// Which half a place is in: of its rings of X and Y, or of its ring of Z.
    fn half(&self, [x, y, z]: [u8; 3], dimension: usize) -> u8 {
        if dimension < 2 { self.first[usize::from(x)][usize::from(y)] } else { self.second[usize::from(z)] }
    }

    /// The label of a first and a second half.
    fn label(&self, first: u8, second: u8) -> u8 {
        first | second << u8::from(self.has_first)
    }

    /// The first and the second half of a label.
    fn of_label(&self, label: u8) -> [u8; 2] {
        if self.has_first { [label & 1, label >> 1] } else { [0, label] }
    }

    /// The labels of routes from each router to places with this x.
    fn labels(&self, lattice: &Lattice, x: u8) -> Vec<u8> {
        let of = |router: u32| {
            let [_, y, z] = lattice.coordinates(router);
            self.label(self.half([x, y, z], 0), self.half([x, y, z], 2))
        };
        (0..lattice.router_count() as u32).map(of).collect()
    }

    /// Whether no default route with a label goes straight on through a place.
    fn is_barred(&self, lattice: &Lattice, place: [u8; 3], heading: Heading, label: u8) -> bool {
        let dimension = heading.dimension();
        if !lattice.rings[dimension] {
            return false;
        }
        // Runs along X end in their half, those along Y and Z begin there.
        let beyond = if dimension == 0 { heading } else { heading.back() };
        let Some(at) = lattice.step(place[dimension], beyond) else { return false };
        let mut next = place;
        next[dimension] = at;
        let own = self.of_label(label)[usize::from(dimension == 2)];
        self.half(place, dimension) == own && self.half(next, dimension) != own
    }

    /// All dependencies that default routes with a label may make.
    fn layer(&self, lattice: &Lattice, label: u8) -> TorusLayer {
        let channels = 6 * lattice.router_count();
        let (mut onward, mut ranks) = (vec![0; channels], vec![0; channels]);
        for router in 0..lattice.router_count() as u32 {
            for heading in Heading::ALL {
                let Some(next) = lattice.next(router, heading) else { continue };
                let channel = 6 * router as usize + heading.index();
                ranks[channel] = self.rank(lattice, lattice.coordinates(router), heading, label);
                let goes_on = |onward: &Heading| {
                    lattice.has(next, *onward)
                        && (onward.dimension() > heading.dimension()
                            || *onward == heading
                                && !self.is_barred(lattice, lattice.coordinates(next), heading, label))
                };
                let bits = Heading::ALL.iter().filter(|onward| goes_on(onward));
                onward[channel] = bits.fold(0, |bits, onward| bits | 1 << onward.index());
            }
        }
        TorusLayer::with(lattice, onward, &ranks)
    }

    /// A number that rises along all default routes with a label: by dimension, and by how far a step is from
    /// where no such route goes straight on.
    fn rank(&self, lattice: &Lattice, place: [u8; 3], heading: Heading, label: u8) -> u32 {
        let dimension = heading.dimension();
        let size = u32::from(lattice.sizes[dimension]);
        let (mut at, mut steps) = (place, 0);
        while steps < size && !self.is_barred(lattice, at, heading, label) {
            let Some(before) = lattice.step(at[dimension], heading.back()) else { break };
            at[dimension] = before;
            steps += 1;
        }
        (dimension as u32) << u8::BITS | steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::torus::engine::fabric;
    use crate::engines::torus::fabrics::{Broken, prove};
    use crate::engines::torus::ports::HeadingPorts;
    use crate::engines::{Routing, Settings};
    use crate::tables::Layers;

    /// The layers by corner, proved with the tables.
    fn layers(broken: &Broken) -> u8 {
        let subnet = broken.subnet();
        let grid = broken.grid(&subnet);
        let lattice = Lattice::new(&grid, &subnet.topology);
        let fabric = fabric(&subnet, &Settings::default(), &lattice);
        let trees = TorusTrees::new(&fabric);
        let (count, of) = by_corner(&fabric, &trees, Layers::MAX).unwrap();
        let layers = Layers::by_destination(count, 0, of, lattice.router_count());
        let tables = HeadingPorts::new(&grid, &subnet).tables(&subnet, &trees, None);
        prove(&subnet, &Routing { layers, ..Routing::in_one_layer(tables) });
        count
    }

    #[test]
    fn two_halves_for_each_corner_are_enough() {
        let grids: [(&[(u8, bool)], u8); 9] = [
            (&[(8, true), (8, true), (8, true)], 4),
            (&[(7, true), (4, true), (5, true)], 4),
            (&[(3, true), (8, true), (3, true)], 4),
            (&[(12, true), (10, true)], 2),
            (&[(9, true), (4, false), (5, false)], 2),
            (&[(4, false), (9, true), (5, false)], 2),
            (&[(4, false), (5, false), (8, true)], 2),
            (&[(11, true)], 2),
            (&[(4, false), (3, false), (5, false)], 1),
        ];
        for (dimensions, count) in grids {
            let whole = Broken::new(dimensions, 1);
            assert_eq!(layers(&whole), count, "{dimensions:?}");
            for cable in (0..whole.fabric.map.cables.len()).step_by(whole.fabric.map.cables.len() / 5) {
                let mut broken = whole.clone();
                broken.cut_cable(cable);
                if broken.route(&Settings::default()).is_ok() {
                    // The layers are proved however many they are. The engine takes those by datelines if
                    // these are fewer.
                    layers(&broken);
                }
            }
        }
    }
}
