//! Compares each map with the plan of the fabric's wiring.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_formats::json::NamesByAddress;
use mapper_formats::{self as formats, FormatError};
use mapper_proto::Instant;
use mapper_proto::map::Map;
use mapper_wiring::PlanCheck;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use super::state::Driver;
use crate::agent::DaemonError;
use crate::agent::on_change::Teller;
use crate::agent::options::PlanConfig;
use crate::agent::status::PlanStanding;

/// How long after a map or a name came the map is compared with the plan, as more of them may follow.
const CHECK_AFTER: Duration = Duration::from_secs(2);

/// How many differences are remembered as logged, and so how many lines one comparison takes at most.
const MOST_LOGGED: usize = 1024;

/// What came of a comparison: the check and the version of the map, or why the plan cannot be read.
pub(super) type Checked = Result<(PlanCheck, String), FormatError>;

/// A plan, and what is not as it says.
#[derive(Debug, Default)]
pub(super) struct PlanWatch {
    due_at: Option<Instant>,
    running: Option<JoinHandle<Checked>>,
    standing: Option<PlanStanding>,
    /// What is not as planned and was logged.
    logged: BTreeSet<String>,
    teller: Option<Teller>,
    /// What was told last.
    told: Option<Value>,
}

impl PlanWatch {
    /// Reads the plan once, so that a mistake in it is seen at the start, and starts what tells of changes.
    ///
    /// # Errors
    /// If the plan cannot be read, or nothing can be started.
    pub(super) fn begin(plan: Option<&PlanConfig>) -> Result<Self, DaemonError> {
        let Some(plan) = plan else { return Ok(Self::default()) };
        formats::resolve_plan(&plan.file, None)?;
        Ok(Self { teller: teller(Some(plan))?, ..Self::default() })
    }

    /// When the next comparison is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at.filter(|_| self.running.is_none())
    }

    /// Waits until a comparison ends, for ever if none is under way. `None` if it panicked.
    pub(super) async fn checked(&mut self) -> Option<Checked> {
        let Some(running) = &mut self.running else { return pending().await };
        let checked = running.await.ok();
        self.running = None;
        checked
    }

    /// How the last map that was compared differs from the plan.
    pub(super) fn standing(&self) -> Option<&PlanStanding> {
        self.standing.as_ref()
    }
}

fn teller(plan: Option<&PlanConfig>) -> Result<Option<Teller>, DaemonError> {
    let on_change = plan.and_then(|plan| plan.on_change.clone());
    on_change.map(Teller::start).transpose().map_err(DaemonError::OnChange)
}

impl Driver {
    /// Has the newest map compared with the plan soon, if there is one.
    pub(super) fn check_plan_soon(&mut self) {
        if self.config.plan.is_some() && self.plan.due_at.is_none() {
            self.plan.due_at = Some(self.now() + CHECK_AFTER);
        }
    }

    /// Begins a comparison if one is due and none is under way.
    pub(super) fn check_plan_if_due(&mut self) {
        if self.plan.due_at().is_none_or(|at| at > self.now()) {
            return;
        }
        self.plan.due_at = None;
        let (Some(plan), Some(map)) = (&self.config.plan, self.host.newest_map()) else { return };
        let (file, map, names) = (plan.file.clone(), Arc::clone(map), self.names_of_map());
        self.plan.running = Some(tokio::task::spawn_blocking(move || check(&file, &map, &names)));
    }

    /// Takes in what a comparison said. The board shows it, the log has each difference once, and whoever is
    /// to be told of changes is told.
    pub(super) fn take_checked(&mut self, checked: Option<Checked>) {
        match checked {
            Some(Ok((check, version))) => {
                self.log_differences(&check);
                self.plan.standing = Some(PlanStanding::of(&check));
                self.tell_of_plan(&check, &version);
            }
            Some(Err(failure)) => {
                let failure = with_causes(&failure);
                let standing = PlanStanding::unreadable(failure.clone());
                if self.plan.standing.as_ref() != Some(&standing) {
                    error!("the plan cannot be used: {failure}");
                }
                self.plan.standing = Some(standing);
            }
            None => error!("the comparison of map and plan failed"),
        }
    }

    /// Logs the differences that are new. A difference that goes and comes back is new again.
    fn log_differences(&mut self, check: &PlanCheck) {
        let now: BTreeSet<String> =
            check.differences.iter().take(MOST_LOGGED).map(ToString::to_string).collect();
        for difference in check.differences.iter().take(MOST_LOGGED) {
            let told = difference.to_string();
            if !self.plan.logged.contains(&told) {
                warn!(
                    severity = difference.severity.name(),
                    kind = difference.kind,
                    "not as planned: {told}"
                );
            }
        }
        if now.is_empty() && self.plan.standing.as_ref().is_none_or(|before| !before.differences.is_empty()) {
            info!(
                cables = check.planned_cables,
                matched_by = check.matched_by.name(),
                "the fabric is as planned"
            );
        }
        self.plan.logged = now;
    }

    /// Tells what has changed since it last told something. If all is as planned at the start, that is no
    /// news.
    fn tell_of_plan(&mut self, check: &PlanCheck, version: &str) {
        let Some(teller) = &self.plan.teller else { return };
        let mut json = check.json();
        let differences = json["differences"].clone();
        let is_news = match &self.plan.told {
            Some(told) => *told != differences,
            None => !check.is_as_planned(),
        };
        if is_news {
            json["unit"] = json!(self.config.unit);
            json["interface"] = json!(self.attachment.link.name());
            json["mac"] = json!(self.host.own().to_string());
            json["map_version"] = json!(version);
            teller.tell(format!("{json}\n"));
        }
        self.plan.told = Some(differences);
    }

    /// Follows a plan that the configuration names anew; the same one is read again.
    pub(super) fn plan_changed(&mut self, old: Option<&PlanConfig>) {
        let new = self.config.plan.clone();
        if old.and_then(|plan| plan.on_change.as_ref())
            != new.as_ref().and_then(|plan| plan.on_change.as_ref())
        {
            match teller(new.as_ref()) {
                Ok(teller) => self.plan.teller = teller,
                Err(error) => error!("nobody is told of changes: {}", with_causes(&error)),
            }
        }
        if new.is_none() {
            (self.plan.standing, self.plan.told, self.plan.due_at) = (None, None, None);
            self.plan.logged.clear();
        }
        self.check_plan_soon();
    }
}

/// Compares a map with the plan.
fn check(file: &str, map: &Map, names: &NamesByAddress) -> Checked {
    let found = names.label(map);
    let plan = formats::resolve_plan(file, Some(&found))?;
    Ok((PlanCheck::of(&plan, &found), map.version.to_string()))
}
