//! The fault search: subnets, managers, faults and times drawn from a seed, and what must hold.
//!
//! First things go wrong: datagrams are lost, come twice or late, writes are refused, switches start again and know nothing,
//! nodes are silent, cables are cut and mended, managers are killed and start again. All the while, after each write, what
//! switches hold together must be free of circles. Then all is mended, and the subnet must come up, with one master, and
//! nothing more be written.
//!
//! `MAPPER_FAULT_SEEDS` says how many seeds are tried (100 by default), and `MAPPER_FAULT_FIRST` which is the first.

mod draw;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use draw::Scenario;

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// What is wrong with a seed, if anything.
fn fault_of(seed: u64) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| Scenario::draw(seed).run())).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
}

#[test]
fn no_tables_in_switches_make_a_circle_and_all_heals_after_every_drawn_mix_of_faults() {
    let first = number("MAPPER_FAULT_FIRST", 1);
    let count = number("MAPPER_FAULT_SEEDS", 100);
    let next = AtomicU64::new(first);
    let search = || {
        let seeds = std::iter::from_fn(|| {
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&seed| seed < first + count)
        });
        seeds.filter_map(|seed| Some((seed, fault_of(seed)?))).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let faults: Vec<(u64, String)> = std::thread::scope(|scope| {
        let searches: Vec<_> = (0..threads).map(|_| scope.spawn(search)).collect();
        searches.into_iter().flat_map(|search| search.join().unwrap()).collect()
    });
    let told: Vec<String> = faults
        .iter()
        .map(|(seed, why)| {
            let why: String = why.chars().take(300).collect();
            format!(
                "MAPPER_FAULT_FIRST={seed} MAPPER_FAULT_SEEDS=1 cargo test -p mapper-ib search::\n    {why}"
            )
        })
        .collect();
    assert!(faults.is_empty(), "{} of {count} seeds fail; run again with\n{}", faults.len(), told.join("\n"));
}

#[test]
fn seeds_that_once_failed_hold() {
    // These seeds failed for one of the following reasons:
    // - Two masters that had been apart never heard of each other, as nothing told the one that ranked lower.
    // - A master that had been cut off took what switches held before for what they held, though another had written to them
    //   meanwhile; so did one that was handed the subnet while it was master itself.
    // - A switch that started again was given the LID of a host that was gone, and packets to that host went in a circle.
    // - The only manager was cut off, looked at no switch, and waited for ever for that look to end.
    // - Two managers that started together both wrote, as one heard nothing of the other's host, or of the port that leads
    //   there, in its only sweep.
    for seed in [1099, 1124, 1228, 1270, 1291, 1842, 2105, 4548, 7121, 7491, 9612, 15177] {
        assert_eq!(fault_of(seed), None, "seed {seed}");
    }
}
