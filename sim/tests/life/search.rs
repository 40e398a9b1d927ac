//! Scenarios of the fault search, which draws mixes of faults from seeds. They are run with agents that map
//! incrementally, too.

use mapper_sim::search::{ALL_DRAWN_FROM, Scenario};

/// What went wrong in the scenario of a seed, if anything.
fn fault_of(seed: u64, incremental: bool) -> Option<String> {
    let mut scenario = Scenario::draw(seed);
    scenario.setup.agents.map_incrementally = incremental;
    let violation = scenario.run(None).err()?;
    Some(format!("seed {seed}, incremental: {incremental}: {violation}"))
}

#[track_caller]
fn all_hold(seeds: impl IntoIterator<Item = u64>, incremental: bool) {
    let failed: Vec<String> = seeds.into_iter().filter_map(|seed| fault_of(seed, incremental)).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn incremental_mappers_agree_after_every_drawn_mix_of_faults() {
    all_hold(1..=60, true);
}

#[test]
fn all_agree_where_hosts_are_set_apart() {
    all_hold(ALL_DRAWN_FROM..ALL_DRAWN_FROM + 40, false);
}

#[test]
fn tagged_xbars_taken_for_plain_are_found_out() {
    // In these scenarios frames are lost among plain and tagged xbars while the map is made.
    all_hold([838, 1333, 3640, 3773, 4007, 5848, 5912, 6079, 9168], false);
    all_hold([2272, 2561, 3865, 4529, 5686, 6886, 6951, 8607], true);
}

#[test]
fn incremental_mappers_do_not_hold_on_to_what_is_wrong() {
    // In the first scenario the mapper's own cable was moved. In the second a plain xbar without hosts was
    // reached by another port than before.
    all_hold([2201, 9832], true);
}
