//! The headings to every destination, and what depends on what along them.

use rayon::prelude::*;

use super::dependencies::Dependencies;
use super::heading::Heading;
use super::lattice::Lattice;
use super::regions::Regions;
use super::rules::{Aim, choose};
use super::search::Search;
use super::tree::{Class, Dodge, Tree};

/// The heading and the class of each route: `cells[destination * routers + source]`.
#[derive(Debug, Clone)]
pub(super) struct Trees {
    routers: usize,
    cells: Vec<u8>,
    /// What the routes between routers with hosts make depend on what.
    pub(super) dependencies: Dependencies,
    /// Destinations that took more than the rules' own choices.
    pub(super) searched: usize,
}

/// A cell without a heading.
const NO_HEADING: u8 = 7;

fn cell(heading: Option<Heading>, class: Class) -> u8 {
    class << 3 | heading.map_or(NO_HEADING, |heading| heading.index() as u8)
}

/// What a thread works with.
struct Scratch {
    tree: Tree,
    search: Search,
    dependencies: Dependencies,
    searched: usize,
}

impl Trees {
    /// Computes them. `sends` tells which routers have hosts.
    pub(super) fn new(lattice: &Lattice, regions: &Regions, sends: &[bool], arrives: &[bool]) -> Self {
        let routers = lattice.router_count();
        let mut cells = vec![NO_HEADING; routers * routers];
        let scratch = || Scratch {
            tree: Tree::new(routers),
            search: Search::new(routers),
            dependencies: Dependencies::new(routers),
            searched: 0,
        };
        let each = |mut scratch: Scratch, (destination, cells): (usize, &mut [u8])| {
            let destination = destination as u32;
            scratch.serve(lattice, regions, destination, sends);
            if arrives[destination as usize] {
                scratch.dependencies.add(lattice, &scratch.tree, sends);
            }
            for &router in &scratch.tree.order {
                let at = router as usize;
                cells[at] = cell(scratch.tree.headings[at], scratch.tree.classes[at]);
            }
            scratch
        };
        let done = cells
            .par_chunks_mut(routers.max(1))
            .enumerate()
            .with_min_len(16)
            .fold(scratch, each)
            .map(|scratch| (scratch.dependencies, scratch.searched))
            .reduce_with(|one, other| (one.0.merge(&other.0), one.1 + other.1));
        let (dependencies, searched) = done.unwrap_or_else(|| (Dependencies::new(routers), 0));
        Self { routers, cells, dependencies, searched }
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

impl Scratch {
    /// Makes the tree of a destination: by the rules; by search, if not all frames arrive so; with R3's
    /// exception, if more arrive then.
    fn serve(&mut self, lattice: &Lattice, regions: &Regions, destination: u32, sends: &[bool]) {
        let aim = Aim::router(lattice.coordinates(destination));
        for (router, heading) in (0..).zip(&mut self.tree.headings) {
            *heading = choose(lattice, regions, router, &aim);
        }
        let all = lattice.router_count();
        if self.tree.trace(lattice, destination, Dodge::Barred) == all {
            return;
        }
        let arrived = self.arrived(sends);
        self.search.run(lattice, regions, destination, Dodge::Barred, &mut self.tree);
        let mut best = self.tree.trace(lattice, destination, Dodge::Barred);
        self.searched += usize::from(self.arrived(sends) > arrived);
        if best < all && !lattice.rings[1] && lattice.sizes[1] > 1 {
            self.search.run(lattice, regions, destination, Dodge::Allowed, &mut self.tree);
            let dodged = self.tree.trace(lattice, destination, Dodge::Allowed);
            if dodged == best {
                self.search.run(lattice, regions, destination, Dodge::Barred, &mut self.tree);
                best = self.tree.trace(lattice, destination, Dodge::Barred);
            }
        }
        debug_assert!(best >= 1, "a destination reaches itself");
    }

    fn arrived(&self, sends: &[bool]) -> usize {
        self.tree.order.iter().filter(|&&router| sends[router as usize]).count()
    }
}
