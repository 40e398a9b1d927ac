//! Runs scenarios of the fault search, and tells for how long routes of different maps closed a circle.
//!
//! `cargo run -p mapper-sim --example fault_seeds FIRST COUNT` prints a line for each seed that had such a circle or
//! failed, and at last how many of them there were.

#![expect(clippy::print_stdout, reason = "it prints what it found")]

use std::process::ExitCode;
use std::time::Duration;

use mapper_sim::search::{Outcome, Scenario};
use rayon::prelude::*;

/// Circles that lasted at least so long are counted.
const AT_LEAST: [Duration; 6] = [
    Duration::from_nanos(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map_while(|text| text.parse::<u64>().ok());
    let (first, count) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1000));
    let run = |seed: u64| (seed, Scenario::draw(seed).run(None));
    let outcomes: Vec<_> = (first..first.saturating_add(count)).into_par_iter().map(run).collect();
    let mut held: Vec<Outcome> = Vec::new();
    for (seed, outcome) in outcomes {
        match outcome {
            Ok(outcome) => {
                if outcome.circle.max(outcome.revival) > Duration::ZERO {
                    println!("seed {seed}: {:?}, revival {:?}", outcome.circle, outcome.revival);
                }
                held.push(outcome);
            }
            Err(violation) => println!("seed {seed} fails: {violation}"),
        }
    }
    for (what, circle) in [
        ("different maps", (|it: &Outcome| it.circle) as fn(&Outcome) -> Duration),
        ("cables that revived", |it| it.revival),
    ] {
        let lasting = |least: Duration| held.iter().filter(|&it| circle(it) >= least).count();
        let counts: Vec<_> = AT_LEAST.map(|least| format!("{} for {least:?}", lasting(least))).into();
        let longest = held.iter().map(circle).max().unwrap_or_default();
        println!("circles of {what}: {}, the longest {longest:?}", counts.join(", "));
    }
    let by_kernel: u64 = held.iter().map(|it| it.users.by_kernel).sum();
    let sent: u64 = held.iter().map(|it| it.users.sent).sum();
    println!("{sent} users' frames, {by_kernel} of them through kernels");
    println!("{} of {count} seeds hold", held.len());
    if held.len() as u64 == count { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
