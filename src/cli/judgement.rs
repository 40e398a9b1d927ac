//! The reports on what was proved of routes and on their quality, as text and as JSON.

pub(super) mod quality;

use std::fmt::Write as _;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, PortRef};
use serde_json::{Value, json};

use mapper_fabric::names;
use mapper_fabric::wording::{SHOWN_NAMES, first_of, plural};
use mapper_routing::engines::Selection;
use mapper_routing::engines::dispersive::SourceProof;
use mapper_routing::{
    Attachment, Cycle, Far, HostPart, Quality, Subnet, TableRoutes, TableViolation, Tables, TablesProof,
    Topology, Violation,
};

/// What was proved of routes, described with the names of the fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ProofReport {
    pub(super) reachable: bool,
    pub(super) loop_free: bool,
    pub(super) deadlock_free: bool,
    /// How many hops the longest route has.
    pub(super) max_hops: usize,
    /// Descriptions of what is wrong, but only of the first violations if there are many.
    pub(super) violations: Vec<String>,
    /// How many violations the descriptions are of.
    pub(super) told: u64,
    /// How many violations there are in all.
    pub(super) violation_count: u64,
    /// The hosts and parts of the fabric that no route can join, as no cables do.
    pub(super) apart: ApartReport,
    /// Whether only routes from some of the hosts were judged.
    pub(super) of_some_hosts: bool,
}

/// The hosts and parts of a fabric that cables do not join with each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ApartReport {
    /// The ids of the hosts that no cables join with the largest part of the fabric, including those without
    /// a cable.
    cut_off: Vec<String>,
    /// How many hosts of `cut_off` have a cable, and the names of the first of them.
    cabled: (usize, Vec<String>),
    /// The ids of the hosts without a cable.
    isolated: Vec<String>,
    /// The names of the first hosts without a cable.
    isolated_shown: Vec<String>,
    /// The parts of the fabric that have hosts, except single hosts without a cable.
    parts: Vec<PartReport>,
}

/// A part of the fabric that no cable joins with the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartReport {
    hosts: usize,
    xbars: usize,
    /// How many pairs its hosts make.
    pairs: u64,
    /// The id of its first host.
    first_host: String,
    /// The names of its first hosts.
    shown: Vec<String>,
}

impl PartReport {
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

impl ApartReport {
    /// The hosts and parts that the cables of a fabric do not join.
    pub(super) fn of(topology: &Topology, fabric: &Fabric, names: &names::Names) -> Self {
        let (parts, isolated): (Vec<HostPart>, Vec<HostPart>) =
            topology.host_parts().into_iter().partition(|part| part.hosts.len() > 1 || part.xbars > 0);
        let isolated: Vec<u32> = isolated.into_iter().flat_map(|part| part.hosts).collect();
        let cut_off = topology.cut_off();
        let is_cabled = |&host: &u32| topology.attachment(host) != Attachment::Nothing;
        let cabled: Vec<u32> = cut_off.iter().copied().filter(is_cabled).collect();
        let part = |part: HostPart| PartReport {
            hosts: part.hosts.len(),
            xbars: part.xbars,
            pairs: part.pairs(),
            first_host: host_names(&part.hosts[..1], fabric).concat(),
            shown: shown_hosts(&part.hosts, names),
        };
        Self {
            cut_off: host_names(&cut_off, fabric),
            cabled: (cabled.len(), shown_hosts(&cabled, names)),
            isolated_shown: shown_hosts(&isolated, names),
            isolated: host_names(&isolated, fabric),
            parts: parts.into_iter().map(part).collect(),
        }
    }

    /// How many pairs of hosts are in different parts, so that no table can join them.
    fn pairs_apart(&self) -> u64 {
        self.pairs_between(self.isolated.len() as u64)
    }

    /// How many pairs of hosts are in different parts, if there are `single` hosts that are each a part.
    fn pairs_between(&self, single: u64) -> u64 {
        let hosts = self.parts.iter().map(|part| part.hosts as u64).sum::<u64>() + single;
        let within: u64 = self.parts.iter().map(|part| part.pairs).sum();
        (hosts * hosts.saturating_sub(1) / 2).saturating_sub(within)
    }

    /// The words that say of all pairs which cables join that they have a route.
    fn all_joined(&self) -> &'static str {
        match (self.parts.iter().any(|part| part.pairs > 0), self.parts.len(), self.isolated.len()) {
            (false, ..) if self.pairs_apart() > 0 => "no two hosts are joined by cables",
            (_, 0 | 1, 0) => "every pair has a route",
            (_, 0 | 1, _) => "every pair of cabled hosts has a route",
            _ => "every pair within a part has a route",
        }
    }

    /// Lines for a person; empty if everything is joined.
    fn text(&self) -> String {
        let mut text = String::new();
        let (cut_off, shown) = &self.cabled;
        if *cut_off > 0 {
            let (count, shown) = (plural(*cut_off, "host"), first_of(shown, *cut_off));
            let _infallible = writeln!(text, "cut off    {count} that no cable joins with the rest: {shown}");
        }
        if !self.isolated.is_empty() {
            let count = self.isolated.len();
            let shown = first_of(&self.isolated_shown, count);
            let _infallible = writeln!(text, "isolated   {} without a cable: {shown}", plural(count, "host"));
        }
        text + &self.parts_text()
    }

    /// Lines about the parts; empty if there is only one.
    fn parts_text(&self) -> String {
        if self.parts.len() < 2 {
            return String::new();
        }
        let mut text = format!(
            "parts      {} without a cable between them, so {} of hosts can have no route:\n",
            self.parts.len(),
            plural(self.pairs_between(0), "pair")
        );
        for part in self.parts.iter().take(SHOWN_PARTS) {
            let _infallible = writeln!(text, "           {}", part.text());
        }
        if let more @ 1.. = self.parts.len().saturating_sub(SHOWN_PARTS) {
            let _infallible = writeln!(text, "           and {}", plural(more, "more part"));
        }
        text
    }
}

impl ProofReport {
    /// The report on a proof of tables.
    pub(super) fn of_tables(proof: &TablesProof, subnet: &Subnet, fabric: &Fabric) -> Self {
        Self {
            reachable: proof.reachable,
            loop_free: proof.loop_free,
            deadlock_free: proof.deadlock_free,
            max_hops: proof.max_hops,
            violations: proof.violations.iter().map(|found| found.describe(subnet)).collect(),
            told: proof.violations.iter().map(TableViolation::count).sum(),
            violation_count: proof.violation_count,
            apart: ApartReport::of(&subnet.topology, fabric, &subnet.names),
            of_some_hosts: false,
        }
    }

    /// The report on a proof of all hosts' source routes.
    pub(super) fn of_source_routes(proof: &SourceProof, topology: &Topology, fabric: &Fabric) -> Self {
        let shown = names::Names::of(fabric);
        let names = Describer { fabric, topology, shown: &shown };
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
            apart: ApartReport::of(topology, fabric, &shown),
            of_some_hosts: false,
        }
    }

    /// Whether everything was proved.
    pub(super) fn holds(&self) -> bool {
        self.violation_count == 0
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "reachable": self.reachable,
            "loop_free": self.loop_free,
            "deadlock_free": self.deadlock_free,
            "max_hops": self.max_hops,
            "violations": self.violations,
            "violation_count": self.violation_count,
            "cut_off": self.apart.cut_off,
            "isolated": self.apart.isolated,
            "parts": self.apart.parts.iter().map(PartReport::json).collect::<Vec<_>>(),
            "pairs_apart": self.apart.pairs_apart(),
        })
    }

    /// Lines for a person.
    pub(super) fn text(&self) -> String {
        let say = |holds: bool, yes: &'static str, no: &'static str| if holds { yes } else { no };
        let all_joined = match self.of_some_hosts {
            true => "every pair from hosts with a file has a route",
            false => self.apart.all_joined(),
        };
        let mut text = format!(
            "proof      {}, {}, {}; longest route {}\n",
            say(self.reachable, all_joined, "PAIRS WITHOUT A ROUTE"),
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
        text + &self.apart.text()
    }
}

/// The quality of routes; `None` if it was not measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct QualityReport(pub(super) Option<Quality>);

impl QualityReport {
    /// The quality of tables; `None` if they lead no host to another.
    pub(super) fn of_tables(subnet: &Subnet, tables: &Tables, seed: u64) -> Self {
        Self::of(Quality::measure(&TableRoutes::new(subnet, tables), seed))
    }

    /// The quality of tables that were chosen with this seed.
    pub(super) fn of_selection(subnet: &Subnet, selection: &Selection, seed: u64) -> Self {
        let routes = TableRoutes::new(subnet, &selection.routing.tables);
        Self::of(Quality::measure_knowing(&routes, seed, selection.bisection))
    }

    /// A measured quality; `None` if no pair has a route although there are pairs.
    pub(super) fn of(quality: Quality) -> Self {
        let pairs = quality.hosts as u64 * (quality.hosts as u64).saturating_sub(1);
        Self((pairs == 0 || quality.unroutable < pairs).then_some(quality))
    }

    pub(super) fn json(&self) -> Value {
        self.0.as_ref().map_or(Value::Null, quality::json)
    }

    /// Lines for a person.
    pub(super) fn text(&self) -> String {
        self.0.as_ref().map(quality::text).unwrap_or_default()
    }
}

/// How many parts are shown to a person.
const SHOWN_PARTS: usize = 8;

/// A note if no two hosts are joined by cables, as then the proof says nothing.
pub(super) fn nothing_to_prove(topology: &Topology) -> Option<String> {
    let why = "no two hosts are joined by cables, so there was no pair to prove";
    (!topology.joins_hosts()).then(|| why.to_owned())
}

/// The ids of hosts, as programs match them.
pub(super) fn host_names(hosts: &[u32], fabric: &Fabric) -> Vec<String> {
    hosts.iter().map(|&host| fabric.hosts[host as usize].name.clone()).collect()
}

/// The names of the first of some hosts.
pub(super) fn shown_hosts(hosts: &[u32], names: &names::Names) -> Vec<String> {
    hosts.iter().take(SHOWN_NAMES).map(|&host| names.host(host)).collect()
}

/// Describes violations with the names of a fabric's nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Describer<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) topology: &'a Topology,
    pub(super) shown: &'a names::Names,
}

impl Describer<'_> {
    fn host(&self, mac: Mac) -> String {
        let host = self.fabric.map.hosts.iter().position(|host| host.mac == mac);
        host.map_or_else(|| mac.to_string(), |host| self.shown.host(host as u32))
    }

    /// The two ends of a route in words.
    pub(super) fn pair(&self, from: Mac, to: Mac) -> String {
        format!("from {} to {}", self.host(from), self.host(to))
    }

    fn xbar(&self, xbar: u32) -> String {
        self.shown.xbar(xbar)
    }

    /// A port as a person finds it.
    pub(super) fn port(&self, at: PortRef) -> String {
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

    /// Describes a circle of channels in which frames can wait for each other.
    pub(super) fn deadlock(&self, layer: u8, cycle: &Cycle) -> String {
        let ports = cycle.ports.iter().chain(cycle.ports.first()).map(|&at| self.cable(at));
        format!(
            "layer {layer} can deadlock: frames wait in a circle to leave {}",
            ports.collect::<Vec<_>>().join(", then ")
        )
    }

    /// Describes what is wrong with source routes.
    pub(super) fn violation(&self, violation: &Violation) -> String {
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
