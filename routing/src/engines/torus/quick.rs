//! Serves one destination on a large grid: default routes are written, and only routes that differ from them
//! are looked at.

use super::defaults::Defaults;
use super::dependencies::TorusDependencies;
use super::heading::Heading;
use super::rules::{Aim, Phase, choose};
use super::serve::Fabric;
use super::tree::Class;
use super::trees::cell;

/// Memory for many destinations in turn.
#[derive(Debug, Clone)]
pub(super) struct Quick {
    defaults: Defaults,
    /// Routers whose routes are not the default ones.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
    turns: Vec<(u32, Heading, Heading)>,
}

impl Quick {
    /// Memory for a lattice of so many routers.
    pub(super) fn new(routers: usize) -> Self {
        Self {
            defaults: Defaults::default(),
            changed: Vec::new(),
            is_changed: vec![false; routers],
            turns: Vec::new(),
        }
    }

    /// The routers whose routes to the last destination are not the default ones.
    pub(super) fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// Writes the cells of a destination by the rules. Returns false if not all routes arrive, so that a
    /// search must take the rules' place.
    ///
    /// Only troubled routers can choose otherwise than by default. Routes through those that do are found by
    /// going back from them, and only these routes are traced and add dependencies, as the dependencies of
    /// all default routes are known beforehand.
    pub(super) fn serve(
        &mut self,
        fabric: &Fabric<'_>,
        destination: u32,
        cells: &mut [u8],
        dependencies: &mut TorusDependencies,
    ) -> bool {
        let aim = Aim::router(fabric.lattice.coordinates(destination));
        self.defaults.set(fabric.lattice, &aim);
        self.defaults.fill(fabric.lattice, cells);
        for &router in &self.changed {
            self.is_changed[router as usize] = false;
        }
        self.changed.clear();
        for &router in fabric.troubled.iter().filter(|&&router| router != destination) {
            let chosen = choose(fabric.lattice, &fabric.regions, router, &aim);
            let default = Heading::from_index(cells[router as usize] & 7);
            if chosen != default {
                cells[router as usize] = cell(chosen, 0);
                self.change(router);
            }
        }
        self.go_back(fabric, cells);
        let senders = self.changed.iter().filter(|&&router| fabric.wants(router, destination));
        for &router in senders {
            let Some(class) = Self::trace(&mut self.turns, fabric, router, destination, cells) else {
                return false;
            };
            cells[router as usize] = cell(Heading::from_index(cells[router as usize] & 7), class);
            for &(at, heading, onward) in &self.turns {
                dependencies.add_turn(at, heading, onward, 1 << class);
            }
        }
        true
    }

    fn change(&mut self, router: u32) {
        if !std::mem::replace(&mut self.is_changed[router as usize], true) {
            self.changed.push(router);
        }
    }

    /// Adds all routers whose frames come to a changed one.
    fn go_back(&mut self, fabric: &Fabric<'_>, cells: &[u8]) {
        let mut looked_at = 0;
        while let Some(&router) = self.changed.get(looked_at) {
            looked_at += 1;
            for heading in Heading::ALL {
                if let Some(before) = fabric.lattice.next(router, heading.back())
                    && cells[before as usize] & 7 == heading.index() as u8
                {
                    self.change(before);
                }
            }
        }
    }

    /// Follows a route from a router and notes its turns. `None` if it does not arrive, or breaks R0 or R2.
    fn trace(
        turns: &mut Vec<(u32, Heading, Heading)>,
        fabric: &Fabric<'_>,
        start: u32,
        destination: u32,
        cells: &[u8],
    ) -> Option<Class> {
        let lattice = fabric.lattice;
        turns.clear();
        let (mut at, mut phase, mut class) = (start, Phase::A, 0);
        let mut heading = Heading::from_index(cells[at as usize] & 7)?;
        // A route that passed all routers without arriving is in a loop.
        for _ in 0..lattice.router_count() {
            let crosses = lattice.crosses(at, heading);
            phase = phase.after(heading, crosses)?;
            class |= Class::from(crosses) << heading.dimension();
            let next = lattice.next(at, heading)?;
            if next == destination {
                return Some(class);
            }
            let onward = Heading::from_index(cells[next as usize] & 7).filter(|&on| on != heading.back())?;
            turns.push((at, heading, onward));
            (at, heading) = (next, onward);
        }
        None
    }
}
