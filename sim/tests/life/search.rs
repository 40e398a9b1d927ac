//! Mixes of faults drawn from seeds, for agents that map incrementally too.

use mapper_sim::search::Scenario;

use crate::lab::Shortest;

/// A number from the environment.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn incremental_mappers_agree_after_every_drawn_mix_of_faults() {
    let first = number("MAPPER_FAULT_FIRST", 1);
    let count = number("MAPPER_FAULT_SEEDS", 60);
    let fails = |seed: &u64| {
        let mut scenario = Scenario::draw(*seed);
        scenario.setup.agents.map_incrementally = true;
        scenario.run(Shortest, None).err().map(|violation| format!("seed {seed}: {violation}"))
    };
    let failed: Vec<String> = (first..first + count).filter_map(|seed| fails(&seed)).collect();
    assert!(failed.is_empty(), "{} of {count} seeds fail:\n{}", failed.len(), failed.join("\n"));
}
