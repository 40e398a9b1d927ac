//! Tests of a fabric deeper than the longest route. Each host that cannot be reached is named, and the agents
//! do not map for ever.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_proto::agent::{Purpose, Status};
use mapper_proto::wire::AgentState;
use mapper_sim::setup::Setup;
use mapper_sim::world::Until;

/// What the agents say after this many seconds.
fn statuses(spec: &str, seconds: u64) -> Vec<Status> {
    let fabric = generate(spec).unwrap();
    let setup = Setup::default();
    let mut world = setup.world(&fabric).unwrap();
    let end = Duration::from_secs(seconds);
    world.run(Until::After(end), Instant::ZERO + end).unwrap();
    (0..fabric.map.hosts.len() as u32).map(|host| world.status(host).unwrap()).collect()
}

#[test]
fn hosts_too_far_apart_say_so_and_all_others_work() {
    let statuses = statuses("mesh:x=12", 10);
    let version = statuses[0].version;
    assert!(version.is_some());
    for (position, status) in statuses.iter().enumerate() {
        assert_eq!(status.version, version, "one map for all");
        assert!(!status.network_complete, "h{} calls the network complete", position + 1);
        if position == 0 || position == 11 {
            let why = &status.unreachable.iter().find(|host| host.mac == status.rank.mac).unwrap().why;
            assert!(why.contains("12 hops") && why.contains("02:00:00:00:00:0c"), "{why}");
            assert!(why.contains("02:00:00:00:00:01"), "{why}");
        } else {
            assert_eq!(status.state, AgentState::Configured);
        }
    }
    let mapped = statuses[11].sent[Purpose::SwitchProbe];
    assert!(mapped < 500, "{mapped} probes: the map is made again and again");
}

#[test]
fn what_no_probe_can_reach_does_not_keep_the_fabric_busy() {
    // The fabric has more xbars in a row than a route has room for.
    let global_mapper = |seconds| statuses("mesh:x=70", seconds).pop().unwrap();
    let (first, second) = (global_mapper(60), global_mapper(120));
    let a_mapping = second.mapping.unwrap().switch_probes;
    let probes = second.sent[Purpose::SwitchProbe] - first.sent[Purpose::SwitchProbe];
    // There is at most one mapping in eight seconds, and one may have been under way at the start.
    assert!(probes <= 9 * a_mapping, "{probes} probes in a minute, {a_mapping} a mapping");
}
