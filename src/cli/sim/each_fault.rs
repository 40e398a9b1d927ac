//! `mapper sim --each-fault`: tries every single fault of a fabric, each in a run of its own.

use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use mapper_fabric::wording::plural;
use mapper_formats as formats;
use mapper_sim::record::Recorded;
use mapper_sim::search::each::{Each, Failure, Tried, count_kinds};
use serde_json::json;

use super::{Args, writer};
use crate::cli::{CliError, Format, output};

/// How many failures the text lists at most. JSON lists more.
const MOST_IN_TEXT: usize = 20;
/// How many failures JSON lists at most.
const MOST_IN_JSON: usize = 1000;

/// The options of `--each-fault` alone.
#[derive(Debug, clap::Args)]
pub(super) struct EachFault {
    /// Try every single fault, one run each: every cable cut, silent or losing some of its frames, every host and xbar gone, hung,
    /// hostile, new, with another's address, with another MTU, key, name, level or number of routes, and noise on all cables, at
    /// every moment at which an agent does something, mended soon, later, late or never; with --data-path every kernel with a
    /// firewall, for all packets or those of IPv4, or emptied tables; every cable's end moved to every free port, and back, at some of them; every frame lost once,
    /// alone and with its retries. Then pairs: every frame lost, and every change, while agents map because a cable was moved or
    /// cut. Exit status 1 if anything fails.
    #[arg(long, conflicts_with_all = EXCLUDED)]
    pub(super) each_fault: bool,
    /// Run the case of this number alone; --trace and --pcapng record it.
    #[arg(long, value_name = "N", requires = "each_fault", conflicts_with = "every")]
    case: Option<usize>,
    /// Run only every Nth case.
    #[arg(long, value_name = "N", requires = "each_fault", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
}

/// The options that conflict with `--each-fault`. It decides itself on the faults and on how long a run
/// lasts. With noise that never ends, or with agents that do not verify, runs would fail without any fault.
const EXCLUDED: [&str; 11] = [
    "faults",
    "until",
    "limit_ms",
    "map_file",
    "routes_dir",
    "replay",
    "fault_seed",
    "loss",
    "corrupt",
    "duplicate",
    "no_xbar_check",
];

/// Runs all cases, or those that the options name.
pub(super) fn run(args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let fabric = formats::resolve(&args.topology)?;
    let setup = args.setup()?;
    let each = Each::of(fabric, setup.clone())?;
    if let Some(number) = args.each.case {
        return run_case(&each, number, args, format);
    }
    for (option, given) in [("--trace", args.trace.is_some()), ("--pcapng", args.pcapng.is_some())] {
        if given {
            return Err(format!("{option} records one run: say which (--case N)").into());
        }
    }
    let numbers: Vec<usize> = (0..each.cases().len()).step_by(args.each.every as usize).collect();
    // The bar draws nothing unless standard error is a terminal.
    let bar = ProgressBar::new(numbers.len() as u64);
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} faults tried, {eta} to go")?);
    let tried = each.run(&numbers, || bar.inc(1));
    bar.finish_and_clear();
    let report =
        EachFaultReport { each: &each, numbers: &numbers, tried: &tried, command: command(std::env::args()) };
    match format {
        Format::Json => output::print(&format!("{}\n", report.json()))?,
        Format::Text => output::print(&report.text())?,
    }
    Ok(if tried.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs one case in the same way as a scenario of the fault search.
fn run_case(each: &Each, number: usize, args: &Args, format: Format) -> Result<ExitCode, CliError> {
    let count = each.cases().len();
    let case =
        each.cases().get(number).ok_or_else(|| format!("there is no case {number}: there are {count}"))?;
    let scenario = each.scenario(case);
    let recorded = Recorded::Scenario {
        topology: formats::write(&scenario.fabric, formats::FileFormat::Json),
        setup: Box::new(scenario.setup.clone()),
        healed_at_ns: scenario.healed_at.as_nanos(),
        most_gap_ns: scenario.most_gap.map(|gap| gap.as_nanos() as u64),
    };
    let sink = writer(args.trace.as_deref(), recorded)?;
    super::run_scenario(&scenario, sink, args, format)
}

/// What came of a kind of fault.
struct Kind {
    kind: &'static str,
    /// How many were tried.
    tried: usize,
    /// How many of them failed.
    failed: usize,
    /// See [`Tried::longest_gaps`].
    longest_gap: Option<Duration>,
}

fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The results of the cases.
struct EachFaultReport<'a> {
    each: &'a Each,
    numbers: &'a [usize],
    tried: &'a Tried,
    /// The command line, to which `--case N` is appended.
    command: String,
}

impl EachFaultReport<'_> {
    fn text(&self) -> String {
        let each = self.each;
        let mut text = format!(
            "moments       {} at which an agent does something\nframes        {}\n",
            each.moments(),
            each.frames()
        );
        for Kind { kind, tried, failed, longest_gap } in self.kinds() {
            let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
            let gap = longest_gap.map(|gap| format!("; the longest gap of a pair {} ms", in_ms(gap)));
            text += &format!("{kind:<13} {tried}{failed}{}\n", gap.unwrap_or_default());
        }
        for failure in self.tried.failures.iter().take(MOST_IN_TEXT) {
            text += &format!("failed        {}\n", self.what(failure));
            text += &format!("              {}\n              {}\n", failure.why, self.replay(failure));
        }
        let untold = self.tried.failures.len().saturating_sub(MOST_IN_TEXT);
        if untold > 0 {
            text += &format!("failed        {untold} more (--format json)\n");
        }
        let tried = plural(self.numbers.len() as u64, "fault");
        text + &format!("tried         {tried}, {} failed\n", self.tried.failures.len())
    }

    fn json(&self) -> serde_json::Value {
        let kinds: Vec<_> = self
            .kinds()
            .map(|Kind { kind, tried, failed, longest_gap }| {
                let gap_ms = longest_gap.map(in_ms);
                json!({ "kind": kind, "tried": tried, "failed": failed, "longest_gap_ms": gap_ms })
            })
            .collect();
        let failed: Vec<_> = self
            .tried
            .failures
            .iter()
            .take(MOST_IN_JSON)
            .map(|failure| {
                json!({
                    "what": self.what(failure),
                    "why": failure.why,
                    "case": failure.number,
                    "replay": self.replay(failure),
                })
            })
            .collect();
        json!({
            "schema": "mapper.each-fault/1",
            "tried": self.numbers.len(),
            "failures": self.tried.failures.len(),
            "failed": failed,
            "kinds": kinds,
            "moments": self.each.moments(),
            "frames": self.each.frames(),
        })
    }

    /// Each kind of fault.
    fn kinds(&self) -> impl Iterator<Item = Kind> {
        let cases = self.each.cases();
        let tried = count_kinds(self.numbers.iter().map(|&number| &cases[number]));
        let failed = count_kinds(self.tried.failures.iter().map(|failure| &cases[failure.number]));
        tried.into_iter().map(move |(kind, tried)| Kind {
            kind,
            tried,
            failed: failed.get(kind).copied().unwrap_or(0),
            longest_gap: self.tried.longest_gaps.get(kind).copied(),
        })
    }

    fn what(&self, failure: &Failure) -> String {
        let file = self.each.fault_file(&self.each.cases()[failure.number]);
        file.trim_end().replace('\n', "; ")
    }

    fn replay(&self, failure: &Failure) -> String {
        format!("{} --case {}", self.command, failure.number)
    }
}

/// This command line without the options that say how to print and which cases to run.
fn command(words: impl Iterator<Item = String>) -> String {
    let mut command = "mapper".to_owned();
    let mut words = words.skip(1);
    while let Some(word) = words.next() {
        if ["--format", "--every"].contains(&word.as_str()) {
            words.next();
        } else if !["--format=", "--every="].iter().any(|option| word.starts_with(option)) {
            command += " ";
            command += &shell_word(&word);
        }
    }
    command
}

/// A word as it must be written in a shell.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_told_as_a_shell_reads_it() {
        let words = [
            "/bin/mapper",
            "--format=json",
            "sim",
            "xgft:h=1;m=2;w=1",
            "--every",
            "7",
            "--each-fault",
            "it's",
        ];
        let told = command(words.into_iter().map(str::to_owned));
        assert_eq!(told, r"mapper sim 'xgft:h=1;m=2;w=1' --each-fault 'it'\''s'");
    }
}
