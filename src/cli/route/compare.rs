//! `mapper route --compare`: compares the results of several engines on a fabric.

mod page;

use std::fmt::Write as _;

use mapper_proto::map::Fabric;
use serde_json::{Value, json};

use crate::cli::judgement::{ProofReport, nothing_to_prove, quality};
use mapper_fabric::wording::plural;
use mapper_routing::engines::{self, Answer, Engine, Proof, Settings};
use mapper_routing::{Quality, Subnet, TableRoutes};

/// The name of the schema.
const SCHEMA: &str = "mapper.compare/1";

/// The results of several engines, in the order in which they were named.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    xbars: usize,
    hosts: usize,
    rows: Vec<Row>,
    /// Notes on the settings for the user.
    notes: Vec<String>,
}

/// The result of an engine.
#[derive(Debug, Clone)]
struct Row {
    engine: Engine,
    /// Why it would not serve; `None` if it would.
    why_not: Option<String>,
    /// What it computed, whether or not that passes the proof.
    computed: Option<Computed>,
}

#[derive(Debug, Clone)]
struct Computed {
    layers: u8,
    compute_ms: f64,
    proof: ProofReport,
    quality: Quality,
    notes: Vec<String>,
}

impl Comparison {
    /// Computes, proves and measures routes by each engine. Routes that fail the proof are measured too.
    /// `notes` are notes on the settings.
    pub(super) fn of(
        fabric: &Fabric,
        subnet: &Subnet,
        engines: &[Engine],
        settings: &Settings,
        mut notes: Vec<String>,
    ) -> Self {
        notes.extend(nothing_to_prove(&subnet.topology));
        let row = |&engine: &Engine| Row::of(fabric, subnet, engine, settings);
        Self {
            xbars: subnet.topology.xbar_count(),
            hosts: subnet.topology.host_count(),
            rows: engines.iter().map(row).collect(),
            notes,
        }
    }

    /// The JSON `mapper.compare/1`, with an object for each engine like that of `mapper.route/1`, and
    /// `served`.
    pub(super) fn json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "xbars": self.xbars,
            "hosts": self.hosts,
            "threads": rayon::current_num_threads(),
            "engines": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// A page that shows the engines side by side, with the loads that each puts on channels.
    pub(super) fn page(&self, title: &str) -> String {
        page::page(self, title)
    }

    /// A table for a person, and below it why engines would not serve.
    pub(super) fn text(&self) -> String {
        let mut cells: Vec<[String; 10]> = vec![HEADINGS.map(str::to_owned)];
        cells.extend(self.rows.iter().map(Row::cells));
        let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 10] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &cells {
            // Names are aligned to the left of their columns, numbers to the right.
            let cell = |(at, (cell, width)): (usize, (&String, usize))| {
                if at < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            };
            let line: Vec<String> = row.iter().zip(widths).enumerate().map(cell).collect();
            text += line.join("  ").trim_end();
            text.push('\n');
        }
        for row in &self.rows {
            // Writing to a String never fails.
            if let Some(why_not) = &row.why_not {
                let _infallible = writeln!(text, "{} would not serve: {why_not}", row.engine);
            }
            for note in row.computed.iter().flat_map(|computed| &computed.notes) {
                let _infallible = writeln!(text, "{}: {note}", row.engine);
            }
        }
        for note in &self.notes {
            let _infallible = writeln!(text, "{note}");
        }
        text + LEGEND
    }
}

const HEADINGS: [&str; 10] =
    ["engine", "serves", "layers", "compute ms", "hops", "EFI", "bisection", "a2a", "random", "shift"];

const LEGEND: &str = "\
EFI: routes over the busiest channel; bisection: part of its cable's bandwidth that a host gets in random
matchings; then the flows on the busiest channel at worst: all-to-all, random permutations (mean), shifts.
";

impl Row {
    fn of(fabric: &Fabric, subnet: &Subnet, engine: Engine, settings: &Settings) -> Self {
        match engines::answer(subnet, &[engine], settings, Proof::Reported) {
            Ok(answer) => {
                let mut computed = Computed::of(&answer, fabric, subnet, settings);
                computed.notes.extend(engine.without_effect(settings));
                let why_not = (!computed.proof.holds()).then(|| failed(&computed.proof));
                Self { engine, why_not, computed: Some(computed) }
            }
            Err(refused) => {
                let why = refused.tried.iter().map(|tried| tried.describe(subnet)).collect::<Vec<_>>();
                Self { engine, why_not: Some(why.join("; ")), computed: None }
            }
        }
    }

    fn json(&self) -> Value {
        let computed = self.computed.as_ref();
        json!({
            "engine": self.engine.name(),
            "served": self.why_not.is_none(),
            "why_not": self.why_not,
            "layers": computed.map(|computed| computed.layers),
            "compute_ms": computed.map(|computed| computed.compute_ms),
            "proof": computed.map(|computed| computed.proof.json()),
            "quality": computed.map(|computed| quality::json(&computed.quality)),
            "notes": computed.map_or(&[][..], |computed| &computed.notes),
        })
    }

    fn cells(&self) -> [String; 10] {
        let serves = match (&self.why_not, &self.computed) {
            (None, _) => "yes",
            (Some(_), Some(_)) => "no: unsafe",
            (Some(_), None) => "no",
        };
        let mut cells = std::array::from_fn(|_| "-".to_owned());
        cells[0] = self.engine.to_string();
        cells[1] = serves.to_owned();
        if let Some(Computed { layers, compute_ms, proof, quality, .. }) = &self.computed {
            let partial = if quality.shifts < quality.all_shifts { "*" } else { "" };
            let numbers = [
                layers.to_string(),
                format!("{compute_ms:.1}"),
                proof.max_hops.to_string(),
                quality::number(quality.edge_forwarding_index),
                format!("{:.3}", quality.effective_bisection),
                quality.congestion_a2a.to_string(),
                format!("{:.1}", quality.congestion_random_permutation),
                format!("{}{partial}", quality.congestion_shift),
            ];
            cells[2..].iter_mut().zip(numbers).for_each(|(cell, number)| *cell = number);
        }
        cells
    }
}

impl Computed {
    fn of(answer: &Answer<'_>, fabric: &Fabric, subnet: &Subnet, settings: &Settings) -> Self {
        match answer {
            Answer::Tables(selection) => {
                let routes = TableRoutes::new(subnet, &selection.routing.tables);
                Self {
                    layers: selection.routing.layers.count,
                    compute_ms: selection.compute_ms,
                    proof: ProofReport::of_tables(&selection.proof, subnet, fabric),
                    quality: Quality::measure(&routes, settings.seed),
                    notes: selection.routing.notes.clone(),
                }
            }
            Answer::SourceRoutes(selection) => Self {
                layers: 1,
                compute_ms: selection.compute_ms,
                proof: ProofReport::of_source_routes(&selection.proof, &subnet.topology, fabric),
                quality: selection.quality.clone(),
                notes: Vec::new(),
            },
        }
    }
}

/// Why routes that fail the proof would not serve.
fn failed(proof: &ProofReport) -> String {
    match (proof.violations.first(), proof.violation_count) {
        (Some(first), 1) => first.clone(),
        (Some(first), count) => format!("{first}, and {}", plural(count - 1, "more violation")),
        (None, _) => "the proof fails".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;

    fn comparison(spec: &str, engines: &[Engine]) -> Comparison {
        let fabric = generate(spec).unwrap();
        let subnet = Subnet::new(&fabric, None).unwrap();
        Comparison::of(&fabric, &subnet, engines, &Settings::default(), Vec::new())
    }

    #[test]
    fn engines_stand_side_by_side_with_those_that_cannot_serve() {
        let comparison = comparison("clos:hosts=16,ports=4", &[Engine::File, Engine::Dispersive]);
        let text = comparison.text();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("engine      serves  layers  compute ms  hops"), "{text}");
        assert!(lines[1].starts_with("file        no           -"), "{text}");
        assert!(lines[2].starts_with("dispersive  yes          1"), "{text}");
        assert!(lines[3].starts_with("file would not serve: "), "{text}");
        let json = comparison.json();
        assert_eq!((&json["schema"], &json["hosts"]), (&json!("mapper.compare/1"), &json!(16)));
        let [file, dispersive] = &json["engines"].as_array().unwrap()[..] else { panic!("{json}") };
        assert_eq!((&file["served"], &file["quality"]), (&json!(false), &Value::Null));
        assert_eq!((&dispersive["served"], &dispersive["why_not"]), (&json!(true), &Value::Null));
        assert_eq!(dispersive["proof"]["deadlock_free"], json!(true));
        for measure in [
            "edge_forwarding_index",
            "effective_bisection",
            "congestion_a2a",
            "congestion_random_permutation",
            "congestion_shift",
        ] {
            assert!(dispersive["quality"][measure].is_number(), "{measure}: {json}");
        }
    }
}
