//! A plan checked against what was found.

use std::cmp::Reverse;
use std::fmt;

use mapper_proto::map::Fabric;
use serde_json::{Value, json};

use super::matching::Matching;
use super::severity::{Losses, Severity};
use super::sockets::Wirings;
use super::{MatchedBy, NodePort, advice, is_by_position};
use mapper_fabric::wording::plural;

/// A mistake in the wiring, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// What kind of mistake it is: a word for programs, such as `swapped-plugs`.
    pub kind: &'static str,
    /// How much it hurts.
    pub severity: Severity,
    /// The ends of cables that it is about, and whole nodes.
    pub ends: Vec<NodePort>,
    /// What to do, as one move.
    pub advice: String,
    /// What is lost until then, in words; empty if nothing is.
    pub effect: String,
}

/// How found wiring differs from the plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanCheck {
    /// How nodes were matched.
    pub matched_by: MatchedBy,
    /// How many cables the plan has.
    pub planned_cables: usize,
    /// How many cables there are.
    pub found_cables: usize,
    /// What differs, what hurts most first.
    pub differences: Vec<Difference>,
}

impl PlanCheck {
    /// Checks found wiring against a plan.
    pub fn of(plan: &Fabric, found: &Fabric) -> Self {
        let (matched_by, wirings, actions) = recognised(plan, found);
        let mut losses = Losses::of(&wirings);
        let mut differences: Vec<(usize, Difference)> = Vec::new();
        for action in actions {
            let cost = losses.cost(&action);
            let difference = Difference {
                kind: advice::kind(&action, &wirings),
                severity: cost.severity,
                ends: advice::ends(&action, &wirings),
                advice: advice::advice(&action, &wirings),
                effect: cost.effect,
            };
            differences.push((cost.weight, difference));
        }
        // The sort is stable: of those that hurt as much, what is to be done first stays first.
        differences.sort_by_key(|(weight, difference)| (difference.severity, Reverse(*weight)));
        Self {
            matched_by,
            planned_cables: wirings.planned.cable_count(),
            found_cables: wirings.found.cable_count(),
            differences: differences.into_iter().map(|(_, difference)| difference).collect(),
        }
    }

    /// Whether all is as planned.
    pub fn is_as_planned(&self) -> bool {
        self.differences.is_empty()
    }

    /// How many differences have this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.differences.iter().filter(|difference| difference.severity == severity).count()
    }

    /// The JSON `mapper.plan/1`.
    pub fn json(&self) -> Value {
        let end = |end: &NodePort| json!({ "node": end.node.id, "name": end.node.name, "port": end.port });
        let difference = |difference: &Difference| {
            json!({
                "kind": difference.kind,
                "severity": difference.severity.name(),
                "ends": difference.ends.iter().map(end).collect::<Vec<_>>(),
                "advice": difference.advice,
                "effect": difference.effect,
            })
        };
        json!({
            "schema": "mapper.plan/1",
            "same": self.is_as_planned(),
            "matched_by": self.matched_by.name(),
            "planned_cables": self.planned_cables,
            "found_cables": self.found_cables,
            "differences": self.differences.iter().map(difference).collect::<Vec<_>>(),
        })
    }
}

/// How the nodes of a plan are recognised in what was found, and what is to be done then.
///
/// Ids that maps and files give by position count only if they leave fewer cables that are not as planned. Fabrics are taken to
/// number ports otherwise only if that leaves no more to do than if they numbered them alike: where the plugs of most xbars are one
/// port off, that may be a mistake made several times.
fn recognised(plan: &Fabric, found: &Fabric) -> (MatchedBy, Wirings, Vec<advice::Action>) {
    let mut counts: fn(&str) -> bool = |_| true;
    let mut matching = Matching::new(plan, found, counts);
    let mut wirings = Wirings::of(&matching);
    let matched_by = matching.by;
    let has_positions = || plan.xbars.iter().chain(&found.xbars).any(|label| is_by_position(&label.name));
    if matched_by == MatchedBy::Ids && has_positions() {
        let given: fn(&str) -> bool = |name| !is_by_position(name);
        let by_given = Matching::new(plan, found, given);
        let wirings_by_given = Wirings::of(&by_given);
        if wrong(&wirings_by_given) < wrong(&wirings) {
            (counts, matching, wirings) = (given, by_given, wirings_by_given);
        }
    }
    let actions = advice::find(&wirings);
    if matched_by != MatchedBy::Structure && matching.is_numbered_otherwise() && !actions.is_empty() {
        let alike = Wirings::of(&Matching::numbered_alike(plan, found, counts));
        if let Some(fewer) = advice::find_fewer_than(&alike, actions.len()) {
            return (matched_by, alike, fewer);
        }
    }
    (matched_by, wirings, actions)
}

/// How many cables are not as planned.
fn wrong(wirings: &Wirings) -> usize {
    let missing = wirings.planned.cables().filter(|&(a, b)| wirings.found.far(a) != Some(b));
    let extra = wirings.found.cables().filter(|&(a, b)| wirings.planned.far(a) != Some(b));
    missing.count() + extra.count()
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.advice)?;
        if self.effect.is_empty() { Ok(()) } else { write!(f, " ({})", self.effect) }
    }
}

impl fmt::Display for PlanCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.matched_by {
            MatchedBy::Ids => "matched by ids, addresses and tags",
            MatchedBy::Descriptions => "matched by names, as ids of the plan are not in what was found",
            MatchedBy::Structure => "matched by structure, as names of the plan are not in what was found",
        };
        let cables = plural(self.planned_cables, "planned cable");
        if self.is_as_planned() {
            return writeln!(f, "as planned: {cables}, {by}");
        }
        let differences = plural(self.differences.len(), "thing");
        writeln!(f, "{differences} to do for {cables}, {} found; {by}", self.found_cables)?;
        for severity in [Severity::CutsOff, Severity::Bandwidth, Severity::Label] {
            let heading = match severity {
                Severity::CutsOff => "cuts off hosts",
                Severity::Bandwidth => "costs bandwidth",
                Severity::Label => "only the label or the place",
            };
            let mut of_severity =
                self.differences.iter().filter(|difference| difference.severity == severity).peekable();
            if of_severity.peek().is_some() {
                writeln!(f, "{heading}")?;
            }
            for difference in of_severity {
                writeln!(f, "  {difference}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
