//! Breaks tori and meshes in every way and prints what direction order makes of them, beside updn and lash.
//!
//! usage: `torus_faults [--all] [GRID]`, where GRID is part of a grid's name, such as `mesh`
//!
//! Every single fault and every two faults are tried on small grids, and random many on larger ones. A fault is
//! a cable or a router. Each engine's tables are proved: every pair, loops, circles of channel
//! dependencies; a proof that fails ends the search.
//!
//! Two faults that are the same but for a shift along rings are one class. Two of each class are routed, for
//! all of it, unless `--all` is given; and a line says in how many classes these two fare differently.
//! A mesh has no shifts: one in eight of its cases is tried. lash, which takes many times as long as the
//! others, is asked for a sample only.
//!
//! Columns: fabrics, those of a class counting as many; the share of them that an engine routes; the share
//! of all pairs of hosts, those of a fabric that is refused counting as lost, since only whole fabrics are
//! let out; the mean path in the fabrics that it routes, over that of the shortest routes that cables leave,
//! which no scheme can beat; the same in the worst of these fabrics; most layers. updn is given a root, as a
//! torus has none of its own.
#![allow(clippy::print_stdout, reason = "the table goes to standard output")]

mod cases;
mod grids;
mod outcome;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::time::Instant;

use cases::Case;
use grids::{Grid, broken};
use mapper_proto::map::Fabric;
use outcome::{ENGINES, Fate, Outcome};
use rayon::prelude::*;

/// Grids of which all single and double faults are tried.
const SMALL: [(&str, Grid); 5] = [
    ("4x4x4 torus", Grid([(4, true), (4, true), (4, true)])),
    ("5x4x3 torus", Grid([(5, true), (4, true), (3, true)])),
    ("4x4x4 mesh", Grid([(4, false), (4, false), (4, false)])),
    ("5x4x3, y a line", Grid([(5, true), (4, false), (3, true)])),
    ("5x4x3, z a line", Grid([(5, true), (4, true), (3, false)])),
];

/// Grids that lose many cables and routers at random.
const LARGE: [(&str, Grid); 3] = [
    ("8x8x8 torus", Grid([(8, true), (8, true), (8, true)])),
    ("8x8x8 mesh", Grid([(8, false), (8, false), (8, false)])),
    ("10x8x6, y a line", Grid([(10, true), (8, false), (6, true)])),
];

/// How many cables and routers they lose.
const MANY: [(usize, usize); 5] = [(4, 0), (0, 4), (8, 2), (16, 4), (64, 8)];

/// Random cases of each kind.
const RANDOM_CASES: usize = 12;

/// More cases with two faults than this are tried by sample: one of so many.
const MOST_CASES: usize = 10_000;
const SHARE: usize = 8;

/// lash is asked in one of so many cases with two faults.
const LASH_SHARE: usize = 32;

/// On large grids lash is asked in one of so many of these cases, as it takes seconds each.
const LASH_SHARE_LARGE: usize = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (all, wanted) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => (false, ""),
        ["--all"] => (true, ""),
        ["--all", wanted] => (true, wanted),
        [wanted] => (false, wanted),
        _ => return Err("expected [--all] [GRID]".into()),
    };
    let started = Instant::now();
    println!(
        "{:<17}{:<22}{:>8} {:<6}{:>9}{:>9}{:>8}{:>8}{:>8}",
        "grid", "faults", "fabrics", "engine", "routed %", "pairs %", "path", "worst", "layers"
    );
    for (name, grid) in SMALL.into_iter().filter(|(name, _)| name.contains(wanted)) {
        let whole = grid.fabric()?;
        report(name, "one", grid, &whole, &cases::singles(&whole), 1)?;
        let doubles = match all {
            true => cases::doubles(&whole),
            false => cases::doubles_by_shift(&whole, grid),
        };
        // Where no shift makes cases alike there are too many to ask for all, and one in eight stands for
        // the rest.
        let share = if all || doubles.len() < MOST_CASES { 1 } else { SHARE };
        let doubles: Vec<Case> = doubles.into_iter().step_by(share).collect();
        report(name, "two", grid, &whole, &doubles, LASH_SHARE)?;
    }
    for (name, grid) in LARGE.into_iter().filter(|(name, _)| name.contains(wanted)) {
        let whole = grid.fabric()?;
        for (cables, routers) in MANY {
            let faults = format!("{cables} cables, {routers} routers");
            let cases = cases::random(&whole, cables, routers, RANDOM_CASES);
            report(name, &faults, grid, &whole, &cases, LASH_SHARE_LARGE)?;
        }
    }
    println!("no loop and no circle; {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Routes all cases, by lash one of `lash_share`, and prints a line for each engine.
fn report(
    name: &str,
    faults: &str,
    grid: Grid,
    whole: &Fabric,
    cases: &[Case],
    lash_share: usize,
) -> Result<(), String> {
    let route = |(number, case): (usize, &Case)| {
        let outcome = Outcome::of(&broken(whole, &case.faults), grid, number % lash_share == 0);
        outcome.map_err(|why| format!("{name} without {:?}: {why}", case.faults))
    };
    let outcomes = cases.par_iter().enumerate().map(route).collect::<Result<Vec<Outcome>, String>>()?;
    for (i, engine) in ENGINES.into_iter().enumerate() {
        let mut sum = Sum::default();
        for (case, outcome) in cases.iter().zip(&outcomes) {
            sum.add(case.weight, outcome, i);
        }
        println!("{name:<17}{faults:<22}{:>8} {:<6}{sum}", sum.asked, engine.name());
    }
    if let Some(line) = disagreements(cases, &outcomes) {
        println!("{line}");
    }
    Ok(())
}

/// What an engine made of all fabrics that it was asked for.
#[derive(Default)]
struct Sum {
    asked: usize,
    asked_pairs: usize,
    fabrics: usize,
    pairs: usize,
    steps: usize,
    shortest: usize,
    worst: f64,
    layers: u8,
}

impl Sum {
    fn add(&mut self, weight: usize, outcome: &Outcome, engine: usize) {
        if outcome.fates[engine] == Fate::Untried {
            return;
        }
        self.asked += weight;
        self.asked_pairs += weight * outcome.pairs;
        if let Fate::Routed { steps, layers } = outcome.fates[engine] {
            self.fabrics += weight;
            self.pairs += weight * outcome.pairs;
            self.steps += weight * steps;
            self.shortest += weight * outcome.shortest;
            self.worst = self.worst.max(steps as f64 / outcome.shortest.max(1) as f64);
            self.layers = self.layers.max(layers);
        }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        write!(f, "{:>9.3}{:>9.3}", share(self.fabrics, self.asked), share(self.pairs, self.asked_pairs))?;
        if self.fabrics == 0 {
            return write!(f, "{:>8}{:>8}{:>8}", "-", "-", "-");
        }
        write!(f, "{:>8.4}{:>8.4}{:>8}", self.steps as f64 / self.shortest as f64, self.worst, self.layers)
    }
}

/// In how many classes of shifted faults the cases that were routed fare differently by direction order, if
/// any class has several.
fn disagreements(cases: &[Case], outcomes: &[Outcome]) -> Option<String> {
    let mut classes: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
    for (case, outcome) in cases.iter().zip(outcomes) {
        classes.entry(case.class).or_default().push(outcome.fates[0] == Fate::Refused);
    }
    let several: Vec<_> = classes.into_values().filter(|class| class.len() > 1).collect();
    let differing = several.iter().filter(|class| class.iter().any(|refused| *refused != class[0])).count();
    let count = several.len();
    let line = || {
        format!(
            "  {count} classes by shifts; inside {differing} of them torus routes some and refuses others"
        )
    };
    (count > 0).then(line)
}
