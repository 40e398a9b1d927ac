//! All routes to one destination: a tree of headings, traced.

use super::heading::Heading;
use super::lattice::Lattice;
use super::rules::{Phase, after_dodge};

/// Whether R3's exception is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dodge {
    /// The exception is not in use: R0 and R2 hold as they are.
    Barred,
    /// The exception is in use.
    Allowed,
}

/// The phase after a step.
pub(super) fn after(
    lattice: &Lattice,
    router: u32,
    phase: Phase,
    heading: Heading,
    dodge: Dodge,
) -> Option<Phase> {
    match dodge {
        Dodge::Barred => phase.after(heading, lattice.crosses(router, heading)),
        Dodge::Allowed => after_dodge(lattice, router, phase, heading),
    }
}

/// Which datelines a route crosses, as bits: 1, 2 and 4 for X, Y and Z; 8 if it makes use of R3.
pub(super) type Class = u8;

/// How many classes there are.
pub(super) const CLASSES: usize = 16;

/// The bit of a route that makes use of R3.
const DODGES: Class = 8;

/// What tracing found of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traced {
    New,
    OnTheWay,
    /// Frames from here arrive, and keep to the rules.
    Good,
    /// Frames from here do not arrive, or break the rules.
    Bad,
}

/// The routes to one destination, by router. Memory for many destinations in turn.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    /// Where each router sends frames; none at the destination and where no route leads on.
    pub(super) headings: Vec<Option<Heading>>,
    /// Routers whose frames arrive, each after the one that it sends them to.
    pub(super) order: Vec<u32>,
    /// The class of each route.
    pub(super) classes: Vec<Class>,
    /// Hops of each route.
    pub(super) hops: Vec<u16>,
    /// The last phase in which a frame may enter a router and follow its route.
    latest: Vec<Phase>,
    states: Vec<Traced>,
    way: Vec<u32>,
}

impl Tree {
    /// Memory for a lattice of so many routers.
    pub(super) fn new(routers: usize) -> Self {
        Self {
            headings: vec![None; routers],
            order: Vec::with_capacity(routers),
            classes: vec![0; routers],
            hops: vec![0; routers],
            latest: vec![Phase::C; routers],
            states: vec![Traced::New; routers],
            way: Vec::new(),
        }
    }

    /// Whether frames from a router arrive.
    pub(super) fn arrives(&self, router: u32) -> bool {
        self.states[router as usize] == Traced::Good
    }

    /// Follows the headings from every router. A route counts only if it ends at the destination and keeps
    /// to R0 and R2. Returns from how many routers frames arrive.
    ///
    /// The last part of a route keeps to the rules if the whole route does, as a frame that begins there
    /// begins in phase A. So each router is looked at only once, and its route is judged by the step there
    /// and by the last phase in which a frame may enter the next router.
    pub(super) fn trace(&mut self, lattice: &Lattice, destination: u32, dodge: Dodge) -> usize {
        self.states.fill(Traced::New);
        self.order.clear();
        self.states[destination as usize] = Traced::Good;
        self.latest[destination as usize] = Phase::C;
        self.classes[destination as usize] = 0;
        self.hops[destination as usize] = 0;
        self.order.push(destination);
        for start in 0..self.headings.len() as u32 {
            let mut at = start;
            while self.states[at as usize] == Traced::New {
                self.states[at as usize] = Traced::OnTheWay;
                self.way.push(at);
                match self.next(lattice, at) {
                    Some((_, next)) => at = next,
                    None => break,
                }
            }
            while let Some(router) = self.way.pop() {
                let good = self.settle(lattice, router, dodge);
                self.states[router as usize] = if good { Traced::Good } else { Traced::Bad };
                if good {
                    self.order.push(router);
                }
            }
        }
        self.order.len()
    }

    /// Where a router's frames go.
    pub(super) fn next(&self, lattice: &Lattice, router: u32) -> Option<(Heading, u32)> {
        let heading = self.headings[router as usize]?;
        Some((heading, lattice.next(router, heading)?))
    }

    /// Judges a router after the next one was judged.
    fn settle(&mut self, lattice: &Lattice, router: u32, dodge: Dodge) -> bool {
        let Some((heading, next)) = self.next(lattice, router) else { return false };
        if self.states[next as usize] != Traced::Good || self.headings[next as usize] == Some(heading.back())
        {
            return false;
        }
        let limit = self.latest[next as usize];
        let fits = |&phase: &Phase| {
            after(lattice, router, phase, heading, dodge).is_some_and(|after| after <= limit)
        };
        let Some(latest) = Phase::ALL.into_iter().rev().find(fits) else { return false };
        let crosses = lattice.crosses(router, heading);
        let by_rule = Phase::A.after(heading, crosses).is_some_and(|after| after <= limit);
        self.latest[router as usize] = latest;
        self.classes[router as usize] = self.classes[next as usize]
            | (Class::from(crosses) << heading.dimension())
            | if by_rule { 0 } else { DODGES };
        self.hops[router as usize] = self.hops[next as usize] + 1;
        true
    }
}
