//! Which single failure hurts most, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mapper_fabric::names::Names;
use mapper_fabric::wording::{first_of, plural};
use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::engines::Engine;
use serde_json::{Value, json};

use super::report::number;
use super::{Args, Each, SCHEMA};
use crate::cli::judgement::{host_names, shown_hosts};
use crate::cli::progress::Progress;
use crate::cli::{CliError, best};
use crate::consequences::single::{self, FailureOutcome, Single};
use crate::consequences::{Change, Routed};

/// What each of all cables or xbars costs if it fails alone: all ranked, the worst routed anew.
#[derive(Debug)]
pub(super) struct Failures<'a> {
    args: &'a Args,
    each: Each,
    fabric: &'a Fabric,
    names: Names,
    engine: Option<Engine>,
    /// Why the engine that was named does not serve the whole fabric.
    why_not: Option<String>,
    bisection: Option<f64>,
    entries: Option<usize>,
    tried: usize,
    /// How many failures part hosts.
    parting: usize,
    /// One of each class of alike failures.
    worst: Vec<FailureOutcome>,
    /// How many failures each of these stands for.
    alike: BTreeMap<Single, usize>,
}

impl<'a> Failures<'a> {
    /// Lets each fail.
    pub(super) fn new(args: &'a Args, fabric: &'a Fabric, each: Each) -> Result<Self, CliError> {
        let settings = args.settings();
        let singles = match each {
            Each::Cable => [Single::cables(fabric), Single::host_cables(fabric)].concat(),
            Each::Xbar => Single::xbars(fabric),
        };
        let most = singles.len().min(args.most as usize);
        let progress = Progress::new(best::STEPS + (singles.len() + most) as u64);
        let worded =
            |error: crate::consequences::routed::ConsequencesError| CliError::from(error.to_string());
        let (whole, why_not) =
            Routed::after_or_best(fabric, &Change::default(), args.by(), &settings, &progress)
                .map_err(worded)?;
        if let (None, Some(why_not)) = (whole.serving(), &whole.why_not) {
            return Err(format!("no engine serves this fabric as it is: {why_not}").into());
        }
        progress.begin("ranking all failures");
        let ranks = single::rank(fabric, &whole, &singles, &|| progress.step());
        let mut classes = single::alike(&ranks);
        classes.truncate(most);
        (classes.len()..most).for_each(|_| progress.step());
        progress.begin(format!("routing the worst {}", classes.len()));
        let first: Vec<single::Rank> = classes.iter().map(|&(rank, _)| rank).collect();
        let worst = single::route(fabric, &whole, &first, &settings, &|| progress.step()).map_err(worded)?;
        Ok(Self {
            args,
            each,
            fabric,
            names: Names::of(fabric),
            engine: whole.serving(),
            why_not,
            bisection: whole.bisection(),
            entries: whole.entry_count(),
            tried: singles.len(),
            parting: ranks.iter().filter(|rank| rank.cut_off > 0).count(),
            worst,
            alike: classes.into_iter().map(|(rank, count)| (rank.single, count)).collect(),
        })
    }

    /// How many failures this one stands for, itself too.
    fn alike(&self, outcome: &FailureOutcome) -> usize {
        self.alike.get(&outcome.rank.single).copied().unwrap_or(1)
    }

    /// The JSON `mapper.what-if/1` of all single failures.
    pub(super) fn json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "topology": self.args.fabric.to_string(),
            "each": match self.each { Each::Cable => "cable", Each::Xbar => "xbar" },
            "tried": self.tried,
            "parting": self.parting,
            "host_cables": self.host_cables(),
            "before": {
                "engine": self.engine.map(Engine::name),
                "why_not": self.why_not,
                "effective_bisection": self.bisection,
            },
            "entries": self.entries,
            "worst": self.worst.iter().map(|outcome| self.outcome_json(outcome)).collect::<Vec<_>>(),
            "exact_for_all": ["cut_off", "parting", "routes"],
            "exact_for_worst": ["engine", "why_not", "effective_bisection", "changed_entries"],
            "estimated": ["strain"],
        })
    }

    fn outcome_json(&self, outcome: &FailureOutcome) -> Value {
        let id = |xbar: u32| self.fabric.xbars.get(xbar as usize).map(|label| label.name.clone());
        let end = |at: PortRef| format!("{}:{}", id(at.xbar).unwrap_or_default(), at.port);
        let host = |host: u32| self.fabric.hosts.get(host as usize).map(|label| label.name.clone());
        let (cable, xbar) = match outcome.rank.single {
            Single::Host(number) => {
                let at = self.fabric.map.hosts[number as usize].at.map(end);
                (Some([host(number).unwrap_or_default(), at.unwrap_or_default()]), None)
            }
            Single::Cable(cable) => {
                let cable = self.fabric.map.cables[cable as usize];
                (Some([end(cable.a), end(cable.b)]), None)
            }
            Single::Xbar(xbar) => (None, id(xbar)),
        };
        json!({
            "cable": cable,
            "xbar": xbar,
            "alike": self.alike(outcome),
            "cut_off": host_names(&outcome.cut_off, self.fabric),
            "engine": outcome.engine.map(Engine::name),
            "why_not": outcome.why_not,
            "effective_bisection": outcome.bisection,
            "changed_entries": outcome.changed_entries,
            "routes": outcome.rank.routes,
            "strain": outcome.rank.strain,
        })
    }

    /// A table for a person, and below it what of it is exact.
    pub(super) fn text(&self) -> String {
        let what = match self.each {
            Each::Cable => {
                let hosts = self.host_cables();
                format!("{} between xbars and {hosts} of hosts", plural(self.tried - hosts, "cable"))
            }
            Each::Xbar => plural(self.tried, "xbar"),
        };
        let engine = self.engine.map_or("none", Engine::name);
        let mut text = format!(
            "each of    {what}, alone; {} of them cut off hosts\nbefore     {engine}, bisection {}\n",
            self.parting,
            number(self.bisection)
        );
        if let Some(why_not) = &self.why_not {
            // Writing to a String never fails.
            let _infallible =
                writeln!(text, "           the engine that was named does not serve: {why_not}");
        }
        if self.worst.is_empty() {
            return text;
        }
        let _infallible = writeln!(
            text,
            "\n{:>7}  {:>9}  {:>9}  {:<10}  what fails",
            "cut off", "bisection", "entries", "engine"
        );
        for outcome in &self.worst {
            text += &self.line(outcome);
        }
        let listed = self.worst.len();
        let _infallible = writeln!(
            text,
            "\nWho is cut off is exact for all {}. Bisection, entries and engine are exact for the {listed} listed, which were routed\n\
             anew, each for those of which the same is known: those that rank first by hosts cut off and, as an estimate, by how much fuller the cables beside become.",
            self.tried
        );
        text
    }

    fn line(&self, outcome: &FailureOutcome) -> String {
        let what = match outcome.rank.single {
            Single::Host(host) => format!("the cable of {}", self.names.host(host)),
            Single::Cable(cable) => {
                let cable = self.fabric.map.cables[cable as usize];
                self.names.cable([cable.a, cable.b])
            }
            Single::Xbar(xbar) => self.names.xbar(xbar),
        };
        let count = outcome.cut_off.len();
        let hosts = match count {
            0 => String::new(),
            _ => format!(", which cuts off {}", first_of(&shown_hosts(&outcome.cut_off, &self.names), count)),
        };
        let what = match self.alike(outcome) {
            1 => what,
            count => format!("{what}, or one of {} alike", count - 1),
        };
        let entries = outcome.changed_entries.map_or_else(|| "-".to_owned(), |count| count.to_string());
        let engine = outcome.engine.map_or("none", Engine::name);
        let bisection = number(outcome.bisection);
        let mut line = format!("{count:>7}  {bisection:>9}  {entries:>9}  {engine:<10}  {what}{hosts}\n");
        if let Some(why_not) = &outcome.why_not {
            let before = self.engine.map_or("none", Engine::name);
            let _infallible = writeln!(line, "{:>43}{before} does not serve: {why_not}", "");
        }
        line
    }

    fn host_cables(&self) -> usize {
        self.fabric.map.hosts.iter().filter(|host| host.at.is_some()).count()
    }
}
