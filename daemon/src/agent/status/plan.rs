//! How the newest map differs from the plan of the wiring.

use serde::{Deserialize, Serialize};

use mapper_wiring::severity::Severity;
use mapper_wiring::{Difference, PlanCheck};

/// The most differences that a board lists; all are counted.
const MOST_LISTED: usize = 64;

/// How the newest map differs from the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlanStanding {
    /// Why the plan cannot be read; `None` if it could.
    pub failure: Option<String>,
    /// How nodes were matched: ids, descriptions or structure.
    pub matched_by: String,
    /// How many cables the plan has.
    pub planned_cables: usize,
    /// How many differences cut hosts off.
    pub cuts_off: usize,
    /// How many differences cost bandwidth.
    pub bandwidth: usize,
    /// How many differences concern only names and places.
    pub label: usize,
    /// The differences, the worst first; at most 64.
    pub differences: Vec<PlanDifference>,
}

/// Something that is not as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDifference {
    /// What kind of mistake it is.
    pub kind: String,
    /// cuts-off, bandwidth or label.
    pub severity: String,
    /// What it is about: nodes, and ports as `NODE:PORT`.
    pub ends: Vec<String>,
    /// What to do.
    pub advice: String,
    /// What is lost until then; empty if nothing is.
    pub effect: String,
}

impl PlanStanding {
    /// The standing that a check found.
    pub fn of(check: &PlanCheck) -> Self {
        Self {
            failure: None,
            matched_by: check.matched_by.name().to_owned(),
            planned_cables: check.planned_cables,
            cuts_off: check.count(Severity::CutsOff),
            bandwidth: check.count(Severity::Bandwidth),
            label: check.count(Severity::Label),
            differences: check.differences.iter().take(MOST_LISTED).map(PlanDifference::of).collect(),
        }
    }

    /// The standing of a plan that cannot be read, for the reason `failure`.
    pub fn unreadable(failure: String) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

impl PlanDifference {
    fn of(difference: &Difference) -> Self {
        Self {
            kind: difference.kind.to_owned(),
            severity: difference.severity.name().to_owned(),
            ends: difference.ends.iter().map(ToString::to_string).collect(),
            advice: difference.advice.clone(),
            effect: difference.effect.clone(),
        }
    }
}
