//! Serves one destination after another: by the rules first, and then by search.

use crate::Topology;

use super::corners::MOST_DETOURS;
use super::defaults::Defaults;
use super::dependencies::TorusDependencies;
use super::lattice::Lattice;
use super::quick::Quick;
use super::regions::Regions;
use super::rules::{Aim, Phase, choose};
use super::search::{FAR, PhaseSearch, Task};
use super::tree::{Dodge, Tree};

/// The fabric that is routed.
pub(super) struct Fabric<'a> {
    pub(super) lattice: &'a Lattice,
    pub(super) topology: &'a Topology,
    pub(super) regions: Regions,
    /// Which routers have hosts, and so send frames.
    pub(super) sends: Vec<bool>,
    /// Which routers frames are sent to.
    pub(super) receives: Vec<bool>,
    /// See [`Lattice::troubled`].
    pub(super) troubled: Vec<u32>,
    /// Whether default routes are taken as given, rather than traced: see [`Quick`].
    pub(super) is_quick: bool,
}

impl Fabric<'_> {
    /// Whether there is to be a route from one router to another.
    pub(super) fn wants(&self, source: u32, destination: u32) -> bool {
        source != destination
            && self.sends[source as usize]
            && self.receives[destination as usize]
            && self.topology.component(source) == self.topology.component(destination)
    }

    fn task<'b>(&'b self, destination: u32, dodge: Dodge) -> Task<'b> {
        Task {
            lattice: self.lattice,
            regions: &self.regions,
            dodge,
            aim: Aim::router(self.lattice.coordinates(destination)),
            inside: Regions::fabric(self.lattice),
            step: 1,
        }
    }
}

/// The cell of a router whose route is not the default one.
const OFF: u8 = u8::MAX;

/// Adds routes that are no default ones, unless there are too many to make use of.
fn note_detours(all: &mut Vec<(u32, u32)>, sources: impl Iterator<Item = u32>, destination: u32) {
    let room = (MOST_DETOURS + 1).saturating_sub(all.len());
    all.extend(sources.take(room).map(|source| (source, destination)));
}

/// What was found of some destinations.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    /// The dependencies that their routes make.
    pub(super) dependencies: TorusDependencies,
    /// How many routes are missing.
    pub(super) lost: usize,
    /// How many destinations were searched.
    pub(super) searched: usize,
    /// Routes that are no default ones, as source and destination.
    pub(super) detours: Vec<(u32, u32)>,
}

impl Figures {
    /// Nothing is found yet, between so many routers.
    pub(super) fn nothing(routers: usize) -> Self {
        Self { dependencies: TorusDependencies::new(routers), lost: 0, searched: 0, detours: Vec::new() }
    }

    /// Adds what was found of later destinations.
    pub(super) fn and(mut self, later: Self) -> Self {
        self.detours.extend(later.detours);
        // One more than can be used shows that there are too many.
        self.detours.truncate(MOST_DETOURS + 1);
        Self {
            dependencies: self.dependencies.merge(&later.dependencies),
            lost: self.lost + later.lost,
            searched: self.searched + later.searched,
            detours: self.detours,
        }
    }
}

/// What a thread works with, and what it found.
pub(super) struct DestinationScratch {
    /// The routes to the last destination that was served.
    pub(super) tree: Tree,
    search: PhaseSearch,
    quick: Quick,
    dependencies: TorusDependencies,
    /// The phase in which frames enter each router at the latest, which is A everywhere.
    from_a: Vec<Phase>,
    lost: usize,
    searched: usize,
    /// See [`TorusTrees::detours`](super::trees::TorusTrees::detours).
    detours: Vec<(u32, u32)>,
    defaults: Defaults,
    default_cells: Vec<u8>,
}

impl DestinationScratch {
    /// Memory for a lattice of so many routers.
    pub(super) fn new(routers: usize) -> Self {
        Self {
            tree: Tree::new(routers),
            search: PhaseSearch::new(routers),
            quick: Quick::new(routers),
            dependencies: TorusDependencies::new(routers),
            from_a: vec![Phase::A; routers],
            lost: 0,
            searched: 0,
            detours: Vec::new(),
            defaults: Defaults::default(),
            default_cells: vec![0; routers],
        }
    }

    /// What was found of all that was served.
    pub(super) fn into_figures(self) -> Figures {
        let Self { dependencies, lost, searched, detours, .. } = self;
        Figures { dependencies, lost, searched, detours }
    }

    /// Makes the tree of a destination by the rules. If not all frames arrive, it is made by search, and with
    /// R3's exception if more frames arrive then.
    pub(super) fn serve(&mut self, fabric: &Fabric<'_>, destination: u32) {
        let lattice = fabric.lattice;
        let aim = Aim::router(lattice.coordinates(destination));
        for (router, heading) in (0..).zip(&mut self.tree.headings) {
            *heading = choose(lattice, &fabric.regions, router, &aim);
        }
        let all = lattice.router_count();
        let arrived = self.tree.trace(lattice, destination, Dodge::Barred);
        if arrived == all {
            return;
        }
        let found = self.search(fabric, destination, Dodge::Barred);
        self.searched += usize::from(found > arrived);
        let has_highest_row = !lattice.rings[1] && lattice.sizes[1] > 1;
        if self.lost(fabric, destination) > 0
            && has_highest_row
            && self.search(fabric, destination, Dodge::Allowed) == found
        {
            self.search(fabric, destination, Dodge::Barred);
        }
    }

    /// Writes the cells of a destination by the rules. Returns whether all routes arrive.
    pub(super) fn serve_quickly(&mut self, fabric: &Fabric<'_>, destination: u32, cells: &mut [u8]) -> bool {
        let served = self.quick.serve(fabric, destination, cells, &mut self.dependencies);
        if served {
            note_detours(&mut self.detours, self.quick.changed().iter().copied(), destination);
        }
        served
    }

    fn search(&mut self, fabric: &Fabric<'_>, destination: u32, dodge: Dodge) -> usize {
        let task = fabric.task(destination, dodge);
        let ends = Phase::ALL.into_iter().map(|phase| (destination, phase, 0));
        self.search.measure(&task, ends);
        self.tree.headings.fill(None);
        self.search.assign(&task, &self.from_a, &mut self.tree.headings);
        self.tree.trace(fabric.lattice, destination, dodge)
    }

    /// How many routes to a destination are missing.
    fn lost(&self, fabric: &Fabric<'_>, destination: u32) -> usize {
        let routers = 0..fabric.lattice.router_count() as u32;
        routers.filter(|&source| fabric.wants(source, destination) && !self.tree.arrives(source)).count()
    }

    /// Counts the routes of a destination's tree, and adds the dependencies that they make.
    pub(super) fn finish(&mut self, fabric: &Fabric<'_>, destination: u32) {
        if !fabric.receives[destination as usize] {
            return;
        }
        if self.tree.order.len() < fabric.lattice.router_count() {
            self.lost += self.lost(fabric, destination);
        }
        self.dependencies.add(fabric.lattice, &self.tree, &fabric.sends);
        self.find_detours(fabric.lattice, destination);
    }

    /// Notes which routes of the tree are not the default ones.
    fn find_detours(&mut self, lattice: &Lattice, destination: u32) {
        self.defaults.set(lattice, &Aim::router(lattice.coordinates(destination)));
        self.defaults.fill(lattice, &mut self.default_cells);
        let (tree, cells) = (&self.tree, &mut self.default_cells);
        // Routers stand behind the one that they send to, so a router off the default way takes all behind it
        // off, too.
        let detours = tree.order.iter().skip(1).copied().filter(|&router| {
            let is_default = tree.next(lattice, router).is_some_and(|(heading, next)| {
                cells[router as usize] & 7 == heading.index() as u8 && cells[next as usize] != OFF
            });
            if !is_default {
                cells[router as usize] = OFF;
            }
            !is_default
        });
        note_detours(&mut self.detours, detours, destination);
    }

    /// Makes the trees of a region's destinations, and shows each.
    ///
    /// Outside the region, routers have one heading for all of it; inside, one for each destination, and
    /// routes do not leave the region again. First the sum of the distances to all destinations is found for
    /// each state inside, then the distances from outside to the states from which all destinations can be
    /// reached. At last each destination's headings inside are chosen so that they serve every phase in which
    /// frames come in.
    pub(super) fn serve_region(
        &mut self,
        fabric: &Fabric<'_>,
        region: [u8; 3],
        mut show: impl FnMut(&Self, u32),
    ) {
        let lattice = fabric.lattice;
        let aim = fabric.regions.aim(lattice, region);
        let members: Vec<u32> = (0..lattice.router_count() as u32)
            .filter(|&router| aim.contains(lattice.coordinates(router)))
            .collect();
        let ends = self.measure_inside(fabric, &aim, &members);
        let steps = members.iter().filter(|&&member| fabric.receives[member as usize]).count().max(1) as u32;
        let whole = Task { aim, step: steps, ..fabric.task(0, Dodge::Barred) };
        self.search.measure(&whole, ends.into_iter());
        self.tree.headings.fill(None);
        self.search.assign(&whole, &self.from_a, &mut self.tree.headings);
        let outside = self.tree.headings.clone();
        let asked = self.search.asked().to_vec();
        for &destination in &members {
            self.tree.headings.copy_from_slice(&outside);
            let task = Task { inside: aim, ..fabric.task(destination, Dodge::Barred) };
            self.search.measure(&task, Phase::ALL.into_iter().map(|phase| (destination, phase, 0)));
            self.search.assign(&task, &asked, &mut self.tree.headings);
            self.tree.trace(lattice, destination, Dodge::Barred);
            self.finish(fabric, destination);
            show(self, destination);
        }
    }

    /// For each state inside a region, the sum of the distances to its destinations.
    fn measure_inside(&mut self, fabric: &Fabric<'_>, aim: &Aim, members: &[u32]) -> Vec<(u32, Phase, u32)> {
        let states = members.iter().flat_map(|&member| Phase::ALL.map(|phase| (member, phase, 0_u32)));
        let mut ends: Vec<_> = states.collect();
        for &destination in members.iter().filter(|&&member| fabric.receives[member as usize]) {
            let task = Task { inside: *aim, ..fabric.task(destination, Dodge::Barred) };
            self.search.measure(&task, Phase::ALL.into_iter().map(|phase| (destination, phase, 0)));
            for (router, phase, sum) in &mut ends {
                *sum = match self.search.distance(*router, *phase) {
                    FAR => FAR,
                    distance => sum.saturating_add(distance),
                };
            }
        }
        ends
    }
}
