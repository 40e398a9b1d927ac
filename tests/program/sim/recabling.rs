//! Tests of cables between xbars that are cut while all agents run.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_sim::fabric::Xbars;
use mapper_sim::setup::{FaultFile, Setup};
use mapper_sim::world::{Stopped, Until};

/// Some agents notice the cut only because they lose the way to their parent in the tree.
#[test]
fn all_agents_get_a_new_map_when_a_cable_between_xbars_is_cut() {
    let fabric = generate("clos:hosts=8,ports=4").expect("a spec");
    for (seed, xbars) in (1..=60).flat_map(|seed| [(seed, Xbars::Tagged), (seed, Xbars::Plain)]) {
        let faults = FaultFile { name: "cut".to_owned(), text: "at 5s cut leaf1:3\n".to_owned() };
        let setup = Setup { seed, xbars, faults, ..Setup::default() };
        let mut world = setup.world(&fabric).expect("a fabric");
        let before = Duration::from_millis(4999);
        world.run(Until::After(before), Instant::ZERO + before).expect("it goes on");
        let old = world.verdict();
        assert!(old.configured && old.map_matches_fabric, "{xbars:?}, seed {seed}: {}", old.why_not);
        let limit = Instant::ZERO + Duration::from_secs(15);
        let stopped = world.run(Until::Configured, limit).expect("it goes on");
        let new = world.verdict();
        assert_eq!(stopped, Stopped::Reached, "{xbars:?}, seed {seed}: {}", new.why_not);
        assert!(new.configured && new.map_matches_fabric, "{xbars:?}, seed {seed}: {}", new.why_not);
        assert_ne!(old.leaders[0].version, new.leaders[0].version, "{xbars:?}, seed {seed}");
    }
}
