//! What was proved of routes and how good they are, in words and as JSON.

use std::fmt::Write as _;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, PortRef};
use serde_json::{Value, json};

use super::quality;
use crate::routing::engines::dispersive::SourceProof;
use crate::routing::{Cycle, Quality, Subnet, TableRoutes, Tables, TablesProof, Violation};

/// What was proved, with the names of the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::cli) struct ProofReport {
    pub(in crate::cli) reachable: bool,
    pub(in crate::cli) loop_free: bool,
    pub(in crate::cli) deadlock_free: bool,
    /// Hops of the longest route.
    pub(in crate::cli) max_hops: usize,
    /// What is wrong; the first ones if there is much.
    pub(in crate::cli) violations: Vec<String>,
    /// How many violations there are in all.
    pub(in crate::cli) violation_count: u64,
    /// Hosts that no cables join with most of the fabric.
    pub(in crate::cli) cut_off: Vec<String>,
}

impl ProofReport {
    /// What was proved of tables.
    pub(in crate::cli) fn of_tables(proof: &TablesProof, subnet: &Subnet, fabric: &Fabric) -> Self {
        Self {
            reachable: proof.reachable,
            loop_free: proof.loop_free,
            deadlock_free: proof.deadlock_free,
            max_hops: proof.max_hops,
            violations: proof.violations.iter().map(|found| found.describe(subnet, fabric)).collect(),
            violation_count: proof.violation_count,
            cut_off: host_names(&proof.cut_off, fabric),
        }
    }

    /// What was proved of all hosts' own routes.
    pub(in crate::cli) fn of_source_routes(proof: &SourceProof, fabric: &Fabric) -> Self {
        let names = Names { fabric };
        let mut violations: Vec<String> =
            proof.violations.iter().map(|found| names.violation(found)).collect();
        violations.extend(proof.cycle.iter().map(|cycle| names.deadlock(0, cycle)));
        Self {
            reachable: proof.reachable,
            loop_free: proof.loop_free,
            deadlock_free: proof.deadlock_free,
            max_hops: proof.max_hops,
            violations,
            violation_count: proof.violation_count + u64::from(proof.cycle.is_some()),
            cut_off: host_names(&proof.cut_off, fabric),
        }
    }

    /// Whether all holds that was to be proved.
    pub(in crate::cli) fn holds(&self) -> bool {
        self.violation_count == 0
    }

    pub(in crate::cli) fn json(&self) -> Value {
        json!({
            "reachable": self.reachable,
            "loop_free": self.loop_free,
            "deadlock_free": self.deadlock_free,
            "max_hops": self.max_hops,
            "violations": self.violations,
            "violation_count": self.violation_count,
            "cut_off": self.cut_off,
        })
    }

    /// Lines for a person.
    pub(in crate::cli) fn text(&self) -> String {
        let say = |holds: bool, yes: &'static str, no: &'static str| if holds { yes } else { no };
        let mut text = format!(
            "proof      {}, {}, {}; longest route {}\n",
            say(self.reachable, "every pair has a route", "PAIRS WITHOUT A ROUTE"),
            say(self.loop_free, "no loop", "LOOPS"),
            say(self.deadlock_free, "no deadlock", "DEADLOCK"),
            plural(self.max_hops as u64, "hop"),
        );
        for violation in &self.violations {
            let _infallible = writeln!(text, "           {violation}");
        }
        let more = self.violation_count.saturating_sub(self.violations.len() as u64);
        if more > 0 {
            let _infallible = writeln!(text, "           and {}", plural(more, "more violation"));
        }
        if let [first, ..] = &self.cut_off[..] {
            let count = plural(self.cut_off.len() as u64, "host");
            let _infallible =
                writeln!(text, "cut off    {count} that no cable joins with the rest: {first}..");
        }
        text
    }
}

/// How good routes are; nothing if it was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::cli) struct QualityReport(pub(in crate::cli) Option<Quality>);

impl QualityReport {
    /// Of tables.
    pub(in crate::cli) fn of_tables(subnet: &Subnet, tables: &Tables, seed: u64) -> Self {
        Self(Some(Quality::measure(&TableRoutes::new(subnet, tables), seed)))
    }

    pub(in crate::cli) fn json(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, quality::json)
    }

    /// Lines for a person.
    pub(in crate::cli) fn text(&self) -> String {
        self.0.as_ref().map(quality::text).unwrap_or_default()
    }
}

/// A number and what it counts.
pub(in crate::cli) fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn host_names(hosts: &[u32], fabric: &Fabric) -> Vec<String> {
    hosts.iter().map(|&host| fabric.hosts[host as usize].name.clone()).collect()
}

/// What people call the parts of a fabric.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Names<'a> {
    pub(in crate::cli) fabric: &'a Fabric,
}

impl Names<'_> {
    fn host(&self, mac: Mac) -> String {
        let host = self.fabric.map.hosts.iter().position(|host| host.mac == mac);
        host.map_or_else(|| mac.to_string(), |host| self.fabric.hosts[host].name.clone())
    }

    fn xbar(&self, xbar: u32) -> String {
        let label = self.fabric.xbars.get(xbar as usize);
        label.map_or_else(|| format!("xbar {xbar}"), |label| label.name.clone())
    }

    /// A port as a person finds it.
    fn port(&self, at: PortRef) -> String {
        format!("{} port {}", self.xbar(at.xbar), at.port)
    }

    /// A circle of channels that frames wait for.
    pub(in crate::cli) fn deadlock(&self, layer: u8, cycle: &Cycle) -> String {
        let ports = cycle.ports.iter().chain(cycle.ports.first()).map(|&at| self.port(at));
        format!(
            "layer {layer} can deadlock: frames wait in a circle to leave {}",
            ports.collect::<Vec<_>>().join(", then ")
        )
    }

    /// What is wrong with source routes.
    pub(in crate::cli) fn violation(&self, violation: &Violation) -> String {
        let pair = |from: &Mac, to: &Mac| format!("from {} to {}", self.host(*from), self.host(*to));
        match violation {
            Violation::OtherTopology => violation.to_string(),
            Violation::Misoriented { tail, head } => format!(
                "the cable from {} to {} is oriented against the order of xbars",
                self.port(*tail),
                self.port(*head)
            ),
            Violation::StepBack { arrival, out } => {
                format!(
                    "routes may go from {} to port {out}, against the order of channels",
                    self.port(*arrival)
                )
            }
            Violation::NoRoute { from, to } => {
                format!("{} has no route to {}, though cables lead there", self.host(*from), self.host(*to))
            }
            Violation::Broken { from, to, hop } => {
                format!(
                    "a route {} cannot leave {}: no cable leads on from there",
                    pair(from, to),
                    self.port(*hop)
                )
            }
            Violation::WrongEnd { from, to } => format!("a route {} does not end there", pair(from, to)),
            Violation::Loop { from, to, xbar } => {
                format!("a route {} passes {} twice", pair(from, to), self.xbar(*xbar))
            }
            Violation::TooLong { from, to, hops, max_hops } => {
                format!("a route {} has {hops} hops, but at most {max_hops} are allowed", pair(from, to))
            }
            Violation::IllegalTurn { from, to, arrival, out } => format!(
                "a route {} may not turn from {} to its port {out}",
                pair(from, to),
                self.port(*arrival)
            ),
        }
    }
}
