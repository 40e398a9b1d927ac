//! What was proved of routes and how good they are, in words and as JSON.

use std::fmt::Write as _;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, PortRef};
use serde_json::{Value, json};

use super::quality;
use mapper_fabric::names;
use mapper_fabric::wording::plural;
use mapper_routing::engines::dispersive::SourceProof;
use mapper_routing::{
    Cycle, Far, HostPart, Quality, Subnet, TableRoutes, TableViolation, Tables, TablesProof, Topology,
    Violation,
};

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
    /// How many violations these tell of.
    pub(in crate::cli) told: u64,
    /// How many violations there are in all.
    pub(in crate::cli) violation_count: u64,
    /// Hosts that no cables join with most of the fabric, by their ids.
    pub(in crate::cli) cut_off: Vec<String>,
    /// The names of the first of these.
    pub(in crate::cli) cut_off_shown: Vec<String>,
    /// The parts of the fabric that have hosts.
    pub(in crate::cli) parts: Vec<PartReport>,
}

/// A part of the fabric that no cable joins with the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct PartReport {
    hosts: usize,
    xbars: usize,
    /// Pairs of its hosts.
    pairs: u64,
    /// The id of its first host.
    first_host: String,
    /// The names of its first hosts.
    shown: Vec<String>,
}

impl PartReport {
    /// All parts of a fabric that have hosts.
    pub(in crate::cli) fn all(topology: &Topology, fabric: &Fabric, names: &names::Names) -> Vec<Self> {
        let report = |part: HostPart| Self {
            hosts: part.hosts.len(),
            xbars: part.xbars,
            pairs: part.pairs(),
            first_host: host_names(&part.hosts[..1], fabric).concat(),
            shown: shown_hosts(&part.hosts, names),
        };
        topology.host_parts().into_iter().map(report).collect()
    }

    fn json(&self) -> Value {
        let Self { hosts, xbars, pairs, first_host, .. } = self;
        json!({ "hosts": hosts, "xbars": xbars, "pairs": pairs, "first_host": first_host })
    }

    fn text(&self) -> String {
        format!(
            "{} on {}, {}: {}",
            plural(self.hosts, "host"),
            plural(self.xbars, "xbar"),
            plural(self.pairs, "pair"),
            first_of(&self.shown, self.hosts)
        )
    }
}

/// The first of some names, and whether there are more.
fn first_of(shown: &[String], count: usize) -> String {
    let more = if shown.len() < count { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}

impl ProofReport {
    /// What was proved of tables.
    pub(in crate::cli) fn of_tables(proof: &TablesProof, subnet: &Subnet, fabric: &Fabric) -> Self {
        Self {
            reachable: proof.reachable,
            loop_free: proof.loop_free,
            deadlock_free: proof.deadlock_free,
            max_hops: proof.max_hops,
            violations: proof.violations.iter().map(|found| found.describe(subnet)).collect(),
            told: proof.violations.iter().map(TableViolation::count).sum(),
            violation_count: proof.violation_count,
            cut_off: host_names(&proof.cut_off, fabric),
            cut_off_shown: shown_hosts(&proof.cut_off, &subnet.names),
            parts: PartReport::all(&subnet.topology, fabric, &subnet.names),
        }
    }

    /// What was proved of all hosts' own routes.
    pub(in crate::cli) fn of_source_routes(
        proof: &SourceProof,
        topology: &Topology,
        fabric: &Fabric,
    ) -> Self {
        let shown = names::Names::of(fabric);
        let names = Names { fabric, topology, shown: &shown };
        let mut violations: Vec<String> =
            proof.violations.iter().map(|found| names.violation(found)).collect();
        violations.extend(proof.cycle.iter().map(|cycle| names.deadlock(0, cycle)));
        Self {
            reachable: proof.reachable,
            loop_free: proof.loop_free,
            deadlock_free: proof.deadlock_free,
            max_hops: proof.max_hops,
            told: violations.len() as u64,
            violations,
            violation_count: proof.violation_count + u64::from(proof.cycle.is_some()),
            cut_off: host_names(&proof.cut_off, fabric),
            cut_off_shown: shown_hosts(&proof.cut_off, &shown),
            parts: PartReport::all(topology, fabric, &shown),
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
            "parts": self.parts.iter().map(PartReport::json).collect::<Vec<_>>(),
            "pairs_apart": self.pairs_apart(),
        })
    }

    /// How many pairs of hosts are in different parts, so that no table can join them.
    fn pairs_apart(&self) -> u64 {
        let hosts: u64 = self.parts.iter().map(|part| part.hosts as u64).sum();
        let within: u64 = self.parts.iter().map(|part| part.pairs).sum();
        (hosts * hosts.saturating_sub(1) / 2).saturating_sub(within)
    }

    /// The parts, if there are several.
    fn parts_text(&self) -> String {
        if self.parts.len() < 2 {
            return String::new();
        }
        let mut text = format!(
            "parts      {} without a cable between them, so {} of hosts can have no route:\n",
            self.parts.len(),
            plural(self.pairs_apart(), "pair")
        );
        for part in self.parts.iter().take(SHOWN_PARTS) {
            let _infallible = writeln!(text, "           {}", part.text());
        }
        if let more @ 1.. = self.parts.len().saturating_sub(SHOWN_PARTS) {
            let _infallible = writeln!(text, "           and {}", plural(more, "more part"));
        }
        text
    }

    /// Lines for a person.
    pub(in crate::cli) fn text(&self) -> String {
        let all = if self.parts.len() < 2 {
            "every pair has a route"
        } else {
            "every pair within a part has a route"
        };
        let say = |holds: bool, yes: &'static str, no: &'static str| if holds { yes } else { no };
        let mut text = format!(
            "proof      {}, {}, {}; longest route {}\n",
            say(self.reachable, all, "PAIRS WITHOUT A ROUTE"),
            say(self.loop_free, "no loop", "LOOPS"),
            say(self.deadlock_free, "no deadlock", "DEADLOCK"),
            plural(self.max_hops, "hop"),
        );
        for violation in &self.violations {
            let _infallible = writeln!(text, "           {violation}");
        }
        let more = self.violation_count.saturating_sub(self.told);
        if more > 0 {
            let _infallible = writeln!(text, "           and {}", plural(more, "more violation"));
        }
        if !self.cut_off.is_empty() {
            let count = plural(self.cut_off.len(), "host");
            let shown = first_of(&self.cut_off_shown, self.cut_off.len());
            let _infallible = writeln!(text, "cut off    {count} that no cable joins with the rest: {shown}");
        }
        text + &self.parts_text()
    }
}

/// How good routes are; nothing if it was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::cli) struct QualityReport(pub(in crate::cli) Option<Quality>);

impl QualityReport {
    /// Of tables; nothing if they lead no host to another.
    pub(in crate::cli) fn of_tables(subnet: &Subnet, tables: &Tables, seed: u64) -> Self {
        Self::of(Quality::measure(&TableRoutes::new(subnet, tables), seed))
    }

    /// What was measured; nothing if it was measured over no routes although there should be some.
    pub(in crate::cli) fn of(quality: Quality) -> Self {
        let pairs = quality.hosts as u64 * (quality.hosts as u64).saturating_sub(1);
        Self((pairs == 0 || quality.unroutable < pairs).then_some(quality))
    }

    pub(in crate::cli) fn json(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, quality::json)
    }

    /// Lines for a person.
    pub(in crate::cli) fn text(&self) -> String {
        self.0.as_ref().map(quality::text).unwrap_or_default()
    }
}

/// Most parts, and most hosts of a part, that are shown to a person.
const SHOWN_PARTS: usize = 8;
const SHOWN_HOSTS: usize = 8;

/// What a proof is worth where there is no pair.
pub(in crate::cli) fn nothing_to_prove(topology: &Topology) -> Option<String> {
    let why = "no two hosts are joined by cables, so there was no pair to prove";
    (!topology.joins_hosts()).then(|| why.to_owned())
}

/// The ids of hosts, as programs match them.
pub(in crate::cli) fn host_names(hosts: &[u32], fabric: &Fabric) -> Vec<String> {
    hosts.iter().map(|&host| fabric.hosts[host as usize].name.clone()).collect()
}

/// The names of the first of some hosts.
pub(in crate::cli) fn shown_hosts(hosts: &[u32], names: &names::Names) -> Vec<String> {
    hosts.iter().take(SHOWN_HOSTS).map(|&host| names.host(host)).collect()
}

/// What people call the parts of a fabric.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Names<'a> {
    pub(in crate::cli) fabric: &'a Fabric,
    pub(in crate::cli) topology: &'a Topology,
    pub(in crate::cli) shown: &'a names::Names,
}

impl Names<'_> {
    fn host(&self, mac: Mac) -> String {
        let host = self.fabric.map.hosts.iter().position(|host| host.mac == mac);
        host.map_or_else(|| mac.to_string(), |host| self.shown.host(host as u32))
    }

    /// Where a route leads.
    pub(in crate::cli) fn pair(&self, from: Mac, to: Mac) -> String {
        format!("from {} to {}", self.host(from), self.host(to))
    }

    fn xbar(&self, xbar: u32) -> String {
        self.shown.xbar(xbar)
    }

    /// A port as a person finds it.
    fn port(&self, at: PortRef) -> String {
        format!("{} port {}", self.xbar(at.xbar), at.port)
    }

    /// A port, and where its cable ends.
    fn cable(&self, at: PortRef) -> String {
        match self.topology.far(at) {
            Far::Channel(channel) => {
                format!("{} (to {})", self.port(at), self.port(self.topology.head(channel)))
            }
            Far::Host(_) | Far::Nothing => self.port(at),
        }
    }

    /// A circle of channels that frames wait for.
    pub(in crate::cli) fn deadlock(&self, layer: u8, cycle: &Cycle) -> String {
        let ports = cycle.ports.iter().chain(cycle.ports.first()).map(|&at| self.cable(at));
        format!(
            "layer {layer} can deadlock: frames wait in a circle to leave {}",
            ports.collect::<Vec<_>>().join(", then ")
        )
    }

    /// What is wrong with source routes.
    pub(in crate::cli) fn violation(&self, violation: &Violation) -> String {
        let pair = |from: &Mac, to: &Mac| self.pair(*from, *to);
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
            Violation::Astray { from, to, hop } => format!(
                "a route {} leaves {}, though it does not come to that xbar",
                pair(from, to),
                self.port(*hop)
            ),
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
