//! The headings to every destination, and the dependencies along them.

use rayon::prelude::*;

use super::defaults;
use super::dependencies::TorusDependencies;
use super::heading::Heading;
use super::serve::{DestinationScratch, Fabric, Figures};
use super::tree::Class;

/// The heading and the class of each route: `cells[destination * routers + source]`.
#[derive(Debug, Clone)]
pub(super) struct TorusTrees {
    routers: usize,
    cells: Vec<u8>,
    /// The dependencies of the routes between routers with hosts.
    pub(super) dependencies: TorusDependencies,
    /// How many of the routes that there should be are missing.
    pub(super) lost: usize,
    /// Destinations for which the rules' own choices were not enough.
    pub(super) searched: usize,
    /// Routes that are not the default ones, as source and destination, by destination. The list is cut short
    /// beyond [`MOST_DETOURS`](super::corners::MOST_DETOURS).
    pub(super) detours: Vec<(u32, u32)>,
}

/// A cell without a heading.
pub(super) const NO_HEADING: u8 = 7;

/// The least number of destinations that are worth a thread's own memory.
const MIN_DESTINATIONS: usize = 16;

pub(super) fn cell(heading: Option<Heading>, class: Class) -> u8 {
    class << 3 | heading.map_or(NO_HEADING, |heading| heading.index() as u8)
}

impl TorusTrees {
    /// Computes the trees to all destinations.
    pub(super) fn new(fabric: &Fabric<'_>) -> Self {
        let routers = fabric.lattice.router_count();
        let mut cells = vec![0; routers * routers];
        let found = if fabric.regions.is_whole(fabric.lattice) {
            Self::by_destination(fabric, &mut cells)
        } else {
            Self::by_region(fabric, &mut cells)
        };
        let found = found.unwrap_or_else(|| Figures::nothing(routers));
        let Figures { mut dependencies, lost, searched, detours } = found;
        if fabric.is_quick {
            dependencies = dependencies.merge(&defaults::dependencies(fabric.lattice));
        }
        Self { routers, cells, dependencies, lost, searched, detours }
    }

    fn by_destination(fabric: &Fabric<'_>, cells: &mut [u8]) -> Option<Figures> {
        let routers = fabric.lattice.router_count();
        let each = |mut scratch: DestinationScratch, (destination, cells): (usize, &mut [u8])| {
            let destination = destination as u32;
            if !(fabric.is_quick && scratch.serve_quickly(fabric, destination, cells)) {
                scratch.serve(fabric, destination);
                scratch.finish(fabric, destination);
                write(&scratch, cells);
            }
            scratch
        };
        let columns = cells.par_chunks_mut(routers.max(1)).enumerate().with_min_len(MIN_DESTINATIONS);
        let done =
            columns.fold(|| DestinationScratch::new(routers), each).map(DestinationScratch::into_figures);
        done.reduce_with(Figures::and)
    }

    fn by_region(fabric: &Fabric<'_>, cells: &mut [u8]) -> Option<Figures> {
        let routers = fabric.lattice.router_count();
        let regions: Vec<_> = fabric.regions.all(fabric.lattice);
        let each = |region: [u8; 3]| {
            let mut scratch = DestinationScratch::new(routers);
            let mut columns = Vec::new();
            scratch.serve_region(fabric, region, |scratch, destination| {
                let mut cells = vec![0; routers];
                write(scratch, &mut cells);
                columns.push((destination, cells));
            });
            (columns, scratch.into_figures())
        };
        let done: Vec<_> = regions.into_par_iter().map(each).collect();
        for (destination, column) in done.iter().flat_map(|(columns, _)| columns) {
            cells[*destination as usize * routers..][..routers].copy_from_slice(column);
        }
        done.into_iter().map(|(_, figures)| figures).reduce(Figures::and)
    }

    /// The cells of a destination, by router. See [`Self::class_of`].
    pub(super) fn column(&self, destination: u32) -> &[u8] {
        &self.cells[destination as usize * self.routers..][..self.routers]
    }

    /// All cells, destination by destination, by source within.
    pub(super) fn cells(&self) -> &[u8] {
        &self.cells
    }

    /// The class in a cell. The lower three bits are the heading's number, 7 where there is none.
    pub(super) const fn class_of(cell: u8) -> Class {
        cell >> 3
    }

    /// The heading from a router towards a destination.
    pub(super) fn heading(&self, router: u32, destination: u32) -> Option<Heading> {
        Heading::from_index(self.cells[destination as usize * self.routers + router as usize] & 7)
    }

    /// The class of the route from a router to a destination.
    pub(super) fn class(&self, source: u32, destination: u32) -> Class {
        self.cells[destination as usize * self.routers + source as usize] >> 3
    }
}

fn write(scratch: &DestinationScratch, cells: &mut [u8]) {
    cells.fill(NO_HEADING);
    for &router in &scratch.tree.order {
        let at = router as usize;
        cells[at] = cell(scratch.tree.headings[at], scratch.tree.classes[at]);
    }
}
