//! The report that `mapper route` prints.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::cache::CacheUse;
use crate::cli::best::{self, Other};
use crate::cli::judgement::{ProofReport, QualityReport};
use mapper_fabric::wording::{counted, plural};
use mapper_routing::Subnet;
use mapper_routing::engines::{Answer, Engine};

/// The report that `mapper route` prints.
pub(super) struct RouteReport {
    engine: Engine,
    /// The other engines that were tried.
    others: Vec<Other>,
    /// Whether the best was asked for.
    is_best: bool,
    xbars: usize,
    hosts: usize,
    compute_ms: f64,
    threads: usize,
    layers: u8,
    pub(super) total_ms: f64,
    pub(super) proof: ProofReport,
    /// How many entries differ from those of `--previous`.
    pub(super) changed_entries: Option<u64>,
    pub(super) quality: QualityReport,
    /// Whether the file of `--cache` was used.
    pub(super) cache: Option<CacheUse>,
    pub(super) notes: Vec<String>,
    /// Each file that was written, as the name of its option in JSON and its path.
    pub(super) written: Vec<(String, String)>,
}

impl RouteReport {
    /// A report with what follows from an answer alone. The caller fills in the rest.
    pub(super) fn of(answer: &Answer<'_>, subnet: &Subnet, is_best: bool) -> Self {
        let (engine, tried, compute_ms, layers) = match answer {
            Answer::Tables(selection) => {
                (selection.engine, &selection.tried, selection.compute_ms, selection.routing.layers.count)
            }
            Answer::SourceRoutes(selection) => (selection.engine, &selection.tried, selection.compute_ms, 1),
        };
        Self {
            engine,
            others: Other::all(tried, subnet),
            is_best,
            xbars: subnet.topology.xbar_count(),
            hosts: subnet.topology.host_count(),
            compute_ms,
            threads: rayon::current_num_threads(),
            layers,
            total_ms: 0.0,
            proof: ProofReport::default(),
            changed_entries: None,
            quality: QualityReport::default(),
            cache: None,
            notes: Vec::new(),
            written: Vec::new(),
        }
    }

    /// The engine that served.
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    pub(super) fn json(&self) -> Value {
        let tried: Vec<Value> = self.others.iter().map(Other::json).collect();
        let written: serde_json::Map<String, Value> =
            self.written.iter().map(|(what, path)| (what.clone(), json!(path))).collect();
        json!({
            "schema": "mapper.route/1",
            "engine": self.engine.name(),
            "tried": tried,
            "xbars": self.xbars,
            "hosts": self.hosts,
            "compute_ms": self.compute_ms,
            "total_ms": self.total_ms,
            "threads": self.threads,
            "layers": self.layers,
            "proof": self.proof.json(),
            "changed_entries": self.changed_entries,
            "quality": self.quality.json(),
            "cache": self.cache.as_ref().map(CacheUse::json),
            "notes": self.notes,
            "written": written,
        })
    }

    /// The report as text for a person.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "engine     {}, for {} on {}, {}\n",
            self.engine,
            plural(self.hosts, "host"),
            plural(self.xbars, "xbar"),
            plural(self.layers, "layer"),
        );
        if self.is_best {
            let measured = self.quality.0.as_ref().map(|quality| quality.effective_bisection);
            text += &best::text(self.engine, measured, &self.others);
        } else {
            text.extend(self.others.iter().filter_map(Other::text));
        }
        text += &self.proof.text();
        text += &self.quality.text();
        // Writing to a string cannot fail.
        if let Some(changed) = self.changed_entries {
            let entries = counted(changed, "entry", "entries");
            let _infallible = writeln!(text, "changed    {entries} against --previous");
        }
        text += &self.cache.as_ref().map(CacheUse::text).unwrap_or_default();
        for note in &self.notes {
            let _infallible = writeln!(text, "note       {note}");
        }
        let _infallible = writeln!(
            text,
            "time       {:.1} ms to compute, {:.1} ms in all, {}",
            self.compute_ms,
            self.total_ms,
            plural(self.threads, "thread")
        );
        for (what, path) in &self.written {
            let _infallible = writeln!(text, "written    {what} {path}");
        }
        text
    }
}
