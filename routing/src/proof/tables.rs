//! The proof of forwarding tables: that every pair has a route, that routes are not too long and no loops,
//! and that no layer has a cycle of channel dependencies.

mod dependencies;
mod describe;
mod sweep;
#[cfg(test)]
mod tests;
mod wiring;

use std::fmt;

use rayon::prelude::*;

use self::sweep::{Sweep, Swept};
use super::Cycle;
use crate::Subnet;
use crate::tables::{Layers, Tables};
use mapper_fabric::wording::plural;

/// What tables must keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofRules {
    /// How many hops the longest route may have. A hop is an xbar that a frame passes.
    pub max_hops: u8,
    /// Whether frames to and from xbars' own addresses count, too. Then each host must reach every xbar of
    /// its part, and each xbar every host, and the dependencies of these routes may close no cycle either.
    pub xbar_destinations: bool,
}

/// Why frames get no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadEnd {
    /// The table has no entry.
    NoEntry,
    /// The entry leads out of a port without a cable, or whose cable is dead.
    NoCable {
        /// The port.
        port: u8,
    },
    /// The entry leads to another host.
    WrongHost {
        /// The port.
        port: u8,
        /// The host there.
        host: u32,
    },
}

/// What is wrong with tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableViolation {
    /// The tables or the layers have another size than the fabric: they were made for another one.
    OtherFabric {
        /// How many xbars have a table.
        xbars: usize,
        /// How many slots each has.
        slots: usize,
    },
    /// Cables lead to a destination from an xbar where frames begin, but tables do not.
    NoRoute {
        /// The xbar where frames begin.
        from: u32,
        /// The slot that they do not get to.
        slot: u32,
        /// The xbar whose table has no entry, or leads out of a port without a cable or to a wrong host.
        at: u32,
        /// Which of these it is that ends the way.
        why: DeadEnd,
        /// How many entries of that xbar are wrong, this one included.
        entries: u64,
        /// How many routes end there, each xbar where frames begin counting once for each slot.
        routes: u64,
    },
    /// Frames come back to an xbar.
    Loop {
        /// The xbar where they begin.
        from: u32,
        /// The slot that they are for.
        slot: u32,
        /// The xbars of the loop, in order, from the first that frames come to.
        xbars: Vec<u32>,
    },
    /// A route is too long.
    TooLong {
        /// The xbar where it begins.
        from: u32,
        /// The slot that it leads to.
        slot: u32,
        /// How many hops it has.
        hops: usize,
    },
    /// Even the shortest way between two hosts is too long.
    TooFar {
        /// The xbar where frames begin.
        from: u32,
        /// The slot that they are for.
        slot: u32,
        /// The xbars that the shortest way passes.
        hops: usize,
        /// The limit.
        max_hops: u8,
    },
    /// A pair is in a layer that does not exist.
    NoSuchLayer {
        /// The xbar where frames begin.
        from: u32,
        /// The xbar that they are for.
        to: u32,
        /// The layer, as frames would carry it.
        layer: u16,
    },
    /// Channels can wait for each other in a circle.
    Deadlock {
        /// The layer, as frames carry it.
        layer: u8,
        /// The circle.
        cycle: Cycle,
    },
}

impl TableViolation {
    /// How many of the violations in [`TablesProof::violation_count`] this one tells of.
    pub fn count(&self) -> u64 {
        if let Self::NoRoute { routes, .. } = self { *routes } else { 1 }
    }
}

/// What was proved of tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TablesProof {
    /// Whether every two hosts that cables join have a route, each way.
    pub reachable: bool,
    /// Whether no route passes an xbar twice.
    pub loop_free: bool,
    /// Whether no layer has a cycle of channel dependencies.
    pub deadlock_free: bool,
    /// How many hops the longest route has.
    pub max_hops: usize,
    /// Hosts without a cable, and hosts outside the largest part of the fabric: no table can join them.
    pub cut_off: Vec<u32>,
    /// The first violations found, at most [`Self::MAX_LISTED`] of each kind. Routes that end at one xbar
    /// count as one violation, whichever of its entries ends them.
    pub violations: Vec<TableViolation>,
    /// How many violations there are in all. Each xbar where frames begin counts once for each slot.
    pub violation_count: u64,
}

impl TablesProof {
    /// The most violations of a kind that are kept.
    pub const MAX_LISTED: usize = 16;

    /// Whether everything that was to be proved holds.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }

    /// Says in a phrase what is wrong.
    pub fn summary(&self) -> String {
        self.to_string()
    }

    /// The first violation by the names of the fabric, and how many more there are; `None` if there is none.
    pub fn describe_failure(&self, subnet: &Subnet) -> Option<String> {
        let first = self.violations.first()?;
        let (told, first) = (first.count(), first.describe(subnet));
        Some(match self.violation_count.saturating_sub(told) {
            0 => first,
            more => format!("{first} ({})", plural(more, "more violation")),
        })
    }
}

impl fmt::Display for TablesProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.violations.first(), self.violation_count) {
            (None, _) => {
                let longest = plural(self.max_hops, "hop");
                let pair = if self.cut_off.is_empty() { "every pair" } else { "every pair that cables join" };
                write!(f, "{pair} has a route, of {longest} at most; no deadlock")
            }
            (Some(first), count) => match count.saturating_sub(first.count()) {
                0 => write!(f, "{first}"),
                more => write!(f, "{first} ({})", plural(more, "more violation")),
            },
        }
    }
}

/// Proves tables, trusting nothing of how they were made.
///
/// Frames begin at every xbar with hosts and go to every address of every host, and in the layer of their two
/// xbars. Each xbar's next step is followed once a slot, and what lies behind it is remembered. So the time
/// is linear in the number of entries. A route of `n` channels makes `n - 1` dependencies, of one channel on
/// the next. Tables are free of deadlock if these close no circle within a layer (Dally and Seitz, 1987).
/// Pairs of hosts that no cables join need no route. Entries that no such frame comes by do not count.
/// Neither do the dependencies of frames that never arrive, which are violations anyway.
///
/// The result does not depend on the number of threads. Violations stand in the order of their kinds, then of
/// slots, then of the xbars where frames begin. Only xbars with wrong entries stand in the order of how many
/// routes end there.
pub fn prove_tables(subnet: &Subnet, tables: &Tables, layers: &Layers, rules: &ProofRules) -> TablesProof {
    let topology = &subnet.topology;
    let (xbars, slots) = (topology.xbar_count(), subnet.destinations.slot_count());
    let cut_off = topology.cut_off();
    if tables.xbar_count() != xbars || (xbars > 0 && tables.slot_count() != slots) || !layers.fit(xbars) {
        let violation =
            TableViolation::OtherFabric { xbars: tables.xbar_count(), slots: tables.slot_count() };
        return TablesProof {
            violations: vec![violation],
            violation_count: 1,
            cut_off,
            ..TablesProof::default()
        };
    }
    let sweep = Sweep::new(subnet, tables, layers, rules);
    let found: Vec<Swept> = (0..xbars as u32)
        .into_par_iter()
        .map_init(|| sweep.scratch(), |scratch, xbar| sweep.destination(scratch, xbar))
        .collect();
    let found = found.into_iter().fold(Swept::default(), Swept::and);
    let cycles = sweep.cycles();
    let mut proof = TablesProof {
        reachable: found.no_route.count == 0 && found.loops.count == 0,
        loop_free: found.loops.count == 0,
        deadlock_free: cycles.is_empty() && found.no_layer.count == 0,
        max_hops: found.max_hops,
        cut_off,
        violation_count: found.violation_count() + cycles.len() as u64,
        violations: found.into_violations(),
    };
    proof.violations.extend(
        cycles.into_iter().map(|(layer, cycle)| TableViolation::Deadlock {
            layer: layers.first.saturating_add(layer),
            cycle,
        }),
    );
    proof
}
