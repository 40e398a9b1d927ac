//! The reference model for the refusals of the engine torus: a search over all states that the rules R0 to R3
//! of direction order allow. It shares no code with the engine, and makes no tables.

use mapper_proto::map::Fabric;

use super::grids::Grid;

/// How many headings there are: up and down in X, Y and Z, in the order of the generator's ports.
const HEADINGS: usize = 6;

/// Rule R0: the headings that a frame may take in each phase. It may enter a later phase at any router.
const PHASES: [&[usize]; 3] = [&[0, 1, 2, 4], &[2, 3, 4], &[4, 5]];

/// The heading down in Y. Rule R3 allows it in the first phase at the highest row of a mesh.
const Y_MINUS: usize = 3;

/// The cables of a broken grid.
pub(super) struct Model {
    grid: Grid,
    /// The router behind each heading of each router.
    next: Vec<[Option<u32>; HEADINGS]>,
    has_host: Vec<bool>,
}

impl Model {
    pub(super) fn new(grid: Grid, fabric: &Fabric) -> Self {
        let routers = fabric.map.xbars.len();
        let mut model = Self { grid, next: vec![[None; HEADINGS]; routers], has_host: vec![false; routers] };
        for cable in &fabric.map.cables {
            for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
                model.next[from.xbar as usize][usize::from(from.port - 1)] = Some(to.xbar);
            }
        }
        for at in fabric.map.hosts.iter().filter_map(|host| host.at) {
            model.has_host[at.xbar as usize] = true;
        }
        model
    }

    /// All choices of datelines: for each of Y and Z that is a ring, the coordinate below its dateline. A
    /// dateline in X forbids nothing.
    pub(super) fn datelines(&self) -> Vec<[Option<u8>; 3]> {
        let places = |dimension: usize| -> Vec<Option<u8>> {
            let (size, ring) = self.grid.0[dimension];
            if ring && size > 2 { (0..size).map(Some).collect() } else { vec![None] }
        };
        let of_z = places(2);
        places(1).into_iter().flat_map(|y| of_z.iter().map(move |&z| [None, y, z])).collect()
    }

    /// The pairs of routers with hosts that cables join, but no route by the rules R0 to R3.
    pub(super) fn unconnected(&self, datelines: [Option<u8>; 3]) -> Vec<(u32, u32)> {
        let routers = 0..self.next.len() as u32;
        let senders = routers.clone().filter(|&router| self.has_host[router as usize]);
        let lost = senders.flat_map(|source| {
            let (by_rule, by_cable) = (self.reached(source, Some(datelines)), self.reached(source, None));
            let wanted = routers.clone().filter(|&end| self.has_host[end as usize]);
            let lost = wanted.filter(move |&end| by_cable[end as usize] && !by_rule[end as usize]);
            lost.map(move |end| (source, end)).collect::<Vec<_>>()
        });
        lost.collect()
    }

    /// The routers that frames from `source` can reach: by the rules with these datelines, or without
    /// datelines by any cables.
    fn reached(&self, source: u32, datelines: Option<[Option<u8>; 3]>) -> Vec<bool> {
        let mut seen = vec![[false; PHASES.len()]; self.next.len()];
        let mut waiting = vec![(source, 0)];
        while let Some((router, phase)) = waiting.pop() {
            if std::mem::replace(&mut seen[router as usize][phase], true) {
                continue;
            }
            for (heading, next) in self.next[router as usize].iter().enumerate() {
                let Some(next) = *next else { continue };
                let phases = match datelines {
                    None => vec![phase],
                    Some(datelines) => self.phases_after(router, phase, heading, datelines),
                };
                waiting.extend(phases.into_iter().map(|phase| (next, phase)));
            }
        }
        seen.into_iter().map(|phases| phases.contains(&true)).collect()
    }

    /// The phases that a frame may be in after a step.
    fn phases_after(
        &self,
        router: u32,
        phase: usize,
        heading: usize,
        datelines: [Option<u8>; 3],
    ) -> Vec<usize> {
        let at = self.grid.place(router);
        let dimension = heading / 2;
        let size = self.grid.0[dimension].0;
        // A dateline is crossed upwards from the coordinate below it, and downwards from the one above.
        let crossed = datelines[dimension].is_some_and(|below| {
            at[dimension] == if heading.is_multiple_of(2) { below } else { (below + 1) % size }
        });
        // Rule R2: after a dateline, no phase of a higher dimension follows.
        let least = if crossed { dimension } else { 0 };
        let mut phases: Vec<usize> =
            (phase..PHASES.len()).filter(|&later| PHASES[later].contains(&heading)).collect();
        let (rows, y_ring) = self.grid.0[1];
        let is_highest = (!y_ring || rows == 2) && at[1] + 1 == rows;
        if phase == 0 && heading == Y_MINUS && is_highest {
            phases.push(0);
        }
        phases.into_iter().map(|phase| phase.max(least)).collect()
    }
}
