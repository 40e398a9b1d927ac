//! What a change costs, as text and as JSON.

use std::fmt::Write as _;

use mapper_fabric::names::Names;
use mapper_fabric::wording::{first_of, plural};
use mapper_proto::map::Fabric;
use mapper_routing::engines::Engine;
use serde_json::{Value, json};

use super::tables::ChangedTables;
use super::{Args, SCHEMA};
use crate::cli::judgement::{host_names, shown_hosts};
use crate::consequences::Routed;

/// What a fabric is before a change or after.
#[derive(Debug)]
struct Moment {
    engine: Option<Engine>,
    /// Why the engine that was named does not serve.
    why_not: Option<String>,
    bisection: Option<f64>,
    /// Routes over the busiest cable.
    busiest: f64,
}

impl Moment {
    fn of(routed: &Routed, why_not: Option<String>) -> Self {
        let engine = routed.serving();
        Self { engine, why_not, bisection: routed.bisection(), busiest: routed.most() }
    }

    fn json(&self) -> Value {
        json!({
            "engine": self.engine.map(Engine::name),
            "why_not": self.why_not,
            "effective_bisection": self.bisection,
            "busiest": self.engine.map(|_| self.busiest),
        })
    }
}

/// What a change costs.
#[derive(Debug)]
pub(super) struct ChangeReport<'a> {
    args: &'a Args,
    before: Moment,
    after: Moment,
    cut_off: Vec<String>,
    /// The names of the first hosts that are cut off.
    shown: Vec<String>,
    tables: Option<ChangedTables>,
    entries: Option<usize>,
    fabric: &'a Fabric,
    names: &'a Names,
}

impl<'a> ChangeReport<'a> {
    pub(super) fn new(
        args: &'a Args,
        fabric: &'a Fabric,
        names: &'a Names,
        (before, why_not_before): (Routed, Option<String>),
        (after, why_not_after): (Routed, Option<String>),
    ) -> Self {
        Self {
            args,
            cut_off: host_names(&after.cut_off, fabric),
            shown: shown_hosts(&after.cut_off, names),
            tables: ChangedTables::of(&before, &after),
            entries: before.entry_count(),
            before: Moment::of(&before, why_not_before),
            after: Moment::of(&after, why_not_after),
            fabric,
            names,
        }
    }

    /// The JSON `mapper.what-if/1` of a change.
    pub(super) fn json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "topology": self.args.fabric.to_string(),
            "cut": self.args.cut,
            "removed": self.args.remove,
            "added": self.args.add,
            "cut_off": self.cut_off,
            "before": self.before.json(),
            "after": self.after.json(),
            "changed_entries": self.tables.as_ref().map(ChangedTables::count),
            "entries": self.entries,
            "tables": self.tables.as_ref().map(|tables| tables.json(self.fabric)),
        })
    }

    /// Lines for a person.
    pub(super) fn text(&self) -> String {
        let parts = [(&self.args.cut, "cut"), (&self.args.remove, "remove"), (&self.args.add, "add")];
        let parts = parts.iter().filter(|(all, _)| !all.is_empty());
        let said: Vec<String> = parts.map(|(all, what)| format!("{what} {}", all.join(" "))).collect();
        let mut text = format!("what if    {}\n", said.join(", "));
        let cut_off = match self.cut_off.len() {
            0 => "nobody".to_owned(),
            count => format!("{}: {}", plural(count, "host"), first_of(&self.shown, count)),
        };
        // Writing to a String never fails.
        let _infallible = writeln!(text, "cut off    {cut_off}");
        let engine = |moment: &Moment| moment.engine.map_or("none", Engine::name);
        let _infallible =
            writeln!(text, "engine     {} before, {} after", engine(&self.before), engine(&self.after));
        for (moment, when) in [(&self.before, "before"), (&self.after, "after")] {
            if let Some(why) = &moment.why_not {
                let _infallible = writeln!(text, "           {} {when}: {why}", self.args.refused());
            }
        }
        let [before, after] = [&self.before, &self.after].map(|moment| number(moment.bisection));
        let _infallible = writeln!(
            text,
            "bisection  {before} before, {after} after{}",
            change(self.before.bisection, self.after.bisection)
        );
        let _infallible = writeln!(
            text,
            "busiest    {:.0} routes over the busiest cable one way before, {:.0} after",
            self.before.busiest, self.after.busiest
        );
        if let (Some(tables), Some(entries)) = (&self.tables, self.entries) {
            let changed = tables.count();
            let _infallible =
                writeln!(text, "entries    {changed} of {entries} change if all are computed anew");
            for line in tables.lines(self.names) {
                let _infallible = writeln!(text, "           {line}");
            }
        }
        text
    }
}

impl Args {
    /// The engine that was asked for, as lines about its refusal call it.
    fn refused(&self) -> &'static str {
        match self.engine {
            super::WantedEngine::Best => super::best::NAME,
            super::WantedEngine::Engine(engine) => engine.name(),
        }
    }
}

/// A bisection for a person.
pub(super) fn number(bisection: Option<f64>) -> String {
    bisection.map_or_else(|| "none".to_owned(), |bisection| format!("{bisection:.3}"))
}

/// By how much a bisection changes, in brackets; empty if either is none.
fn change(before: Option<f64>, after: Option<f64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) if before > 0.0 => {
            format!(" ({:+.1} %)", (after - before) / before * 100.0)
        }
        _ => String::new(),
    }
}
