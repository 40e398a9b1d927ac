//! The report that `mapper route` prints.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::answer::why_not;
use super::cache::CacheUse;
use super::judgement::{ProofReport, QualityReport};
use mapper_fabric::wording::{counted, plural};
use mapper_routing::Subnet;
use mapper_routing::engines::{Answer, Engine};

/// The report that `mapper route` prints.
pub(super) struct Report {
    engine: Engine,
    /// The engines that were tried before it, and why each did not serve.
    tried: Vec<(Engine, String)>,
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

impl Report {
    /// A report with what follows from an answer alone. The caller fills in the rest.
    pub(super) fn of(answer: &Answer<'_>, subnet: &Subnet) -> Self {
        let (engine, tried, compute_ms, layers) = match answer {
            Answer::Tables(selection) => {
                (selection.engine, &selection.tried, selection.compute_ms, selection.routing.layers.count)
            }
            Answer::SourceRoutes(selection) => (selection.engine, &selection.tried, selection.compute_ms, 1),
        };
        Self {
            engine,
            tried: tried.iter().map(|tried| (tried.engine, why_not(tried, subnet))).collect(),
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
        let tried: Vec<Value> = (self.tried.iter())
            .map(|(engine, why_not)| json!({ "engine": engine.name(), "why_not": why_not }))
            .collect();
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
        // Writing to a String never fails.
        for (engine, why_not) in &self.tried {
            let _infallible = writeln!(text, "not {:<6} {why_not}", engine.name());
        }
        text += &self.proof.text();
        text += &self.quality.text();
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
