//! Tests of hostile agents among honest ones.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_sim::fabric::Xbars;
use mapper_sim::setup::{FaultFile, Setup};
use mapper_sim::world::{Stopped, Until};

/// Two hosts attack all others for three seconds and are then replaced by honest agents.
const ATTACK: &str = "at 500ms hostile h2\nat 700ms hostile h7\nat 3500ms restart h2\nat 3500ms restart h7\n";

#[test]
fn honest_agents_bear_an_attack_and_agree_again() {
    let fabric = generate("clos:hosts=16,ports=8").expect("a spec");
    for (seed, xbars) in [(1, Xbars::Tagged), (2, Xbars::Plain), (3, Xbars::Mixed)] {
        let faults = FaultFile { name: "attack".to_owned(), text: ATTACK.to_owned() };
        let setup = Setup { seed, xbars, faults, ..Setup::default() };
        let mut world = setup.world(&fabric).expect("a fabric");
        for ms in (100..=3500).step_by(100) {
            let time = Duration::from_millis(ms);
            world.run(Until::After(time), Instant::ZERO + time).expect("it goes on");
            world.check_load(1024).expect("queues are bounded");
            world.check_routes().expect("no agent uses unproved routes");
        }
        assert!(world.stats().peak_in_flight < 16 * 128, "{:?}", world.stats());
        assert!(world.totals().dropped > 1000, "{:?}", world.totals());
        let limit = Instant::ZERO + Duration::from_secs(30);
        let stopped = world.run(Until::Configured, limit).expect("it goes on");
        assert_eq!(stopped, Stopped::Reached, "seed {seed}: {}", world.verdict().why_not);
        world.deliver_all(usize::MAX, seed).expect("all routes lead where they should");
        world.prove_union().expect("free of deadlock");
    }
}
