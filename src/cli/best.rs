//! `best`: the engine that gives a fabric the best tables that are proved, found by trying.

use serde_json::{Value, json};

use super::progress::Progress;
use mapper_fabric::wording::plural;
use mapper_routing::Subnet;
use mapper_routing::engines::best::Watch;
use mapper_routing::engines::{Engine, Tried};

/// The most steps of progress that [`choose`] makes.
pub(super) const STEPS: u64 = Engine::ALL.len() as u64;

/// The name that users give for an engine to have the best one chosen.
pub(super) const NAME: &str = "best";

/// What the name is for, in less than a line of help.
pub(super) const SUMMARY: &str =
    "all that suit the fabric, and of them the best that is proved (taken if none is named)";

/// A bar that shows how many engines were tried.
impl Watch for Progress {
    fn begin_round(&self, engines: usize) {
        self.begin(format!("trying {}", plural(engines, "engine")));
    }

    fn end_attempt(&self) {
        self.step();
    }
}

/// An engine that was tried and does not serve, as reports show it.
#[derive(Debug, Clone)]
pub(super) struct Other {
    engine: Engine,
    /// Why the engine cannot serve, in the names of the fabric; `None` if it could.
    why_not: Option<String>,
    /// The effective bisection that its tables would have.
    effective_bisection: Option<f64>,
    left_out: bool,
}

impl Other {
    /// All engines that were tried beside the one that serves.
    pub(super) fn all(tried: &[Tried], subnet: &Subnet) -> Vec<Self> {
        let other = |tried: &Tried| Self {
            engine: tried.engine,
            why_not: tried.why_not.effective_bisection().is_none().then(|| tried.describe(subnet)),
            effective_bisection: tried.why_not.effective_bisection(),
            left_out: tried.why_not.is_left_out(),
        };
        tried.iter().map(other).collect()
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "engine": self.engine.name(),
            "why_not": self.why_not,
            "effective_bisection": self.effective_bisection,
        })
    }

    /// Says why the engine cannot serve, in a line for people; `None` if it could.
    pub(super) fn text(&self) -> Option<String> {
        let why_not = self.why_not.as_ref()?;
        Some(format!("not {:<6} {why_not}\n", self.engine.name()))
    }
}

/// Says which engine serves and why, what the next best engines would have given, and which were left out.
pub(super) fn text(engine: Engine, effective_bisection: Option<f64>, others: &[Other]) -> String {
    let mut next: Vec<(f64, Engine)> =
        others.iter().filter_map(|other| Some((other.effective_bisection?, other.engine))).collect();
    // The sort is stable, so of equally good engines the simplest stays the first.
    next.sort_by(|one, other| other.0.total_cmp(&one.0));
    let given = effective_bisection.unwrap_or_default();
    let why = match next.first() {
        None => format!("{engine}, the only one that serves within the layers allowed"),
        Some(&(bisection, other)) if bisection > given => {
            let of = next.len() + 1;
            format!(
                "{engine}, with an effective bisection of {given:.3}; {other}, which has the highest of {of} that are \
                 proved, {bisection:.3}, is hardly better, and takes more layers, changes more entries, is less simple or \
                 serves hosts alone less well"
            )
        }
        Some(&(bisection, next_best)) => {
            let of = next.len() + 1;
            format!(
                "{engine}, with the best effective bisection of {of} that are proved, {given:.3}; the next, \
                 {next_best}, would give {bisection:.3}"
            )
        }
    };
    format!("best       {why}\n{}", left_out(others))
}

/// Engines that might serve and were not tried, those together that were left out for one reason.
fn left_out(others: &[Other]) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for other in others.iter().filter(|other| other.left_out) {
        let Some(why) = other.why_not.as_deref() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, engines)) => engines.push(other.engine.name()),
            None => reasons.push((why, vec![other.engine.name()])),
        }
    }
    let line = |(why, engines): (&str, Vec<&str>)| format!("left out   {}: {why}\n", engines.join(", "));
    reasons.into_iter().map(line).collect()
}
