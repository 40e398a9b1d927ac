//! Tests of hosts with different settings of `non-clos`, in the simulator. All must route by the setting of
//! the global mapper.

use std::time::Duration;

use mapper_fabric::generate;
use mapper_proto::Instant;
use mapper_sim::fabric::{Plant, Xbars};
use mapper_sim::node::{SimulatedHost, Spawn, Start};
use mapper_sim::world::{Options, Stopped, Until, World};

/// Every other host has `non-clos` set. The last host, which becomes the global mapper, has the setting
/// `leader`.
struct Mixed {
    hosts: u32,
    leader: bool,
}

impl Spawn for Mixed {
    fn spawn(&mut self, mut start: Start) -> Box<dyn SimulatedHost> {
        let host = start.host;
        start.settings.non_clos = if host + 1 == self.hosts { self.leader } else { host.is_multiple_of(2) };
        Box::new(start.real())
    }
}

#[test]
fn all_hosts_route_as_the_global_mapper_is_set() {
    let fabric = generate("torus:x=4,y=4,hosts=1").expect("a fabric");
    let hosts = fabric.map.hosts.len() as u32;
    for leader in [false, true] {
        let plant = Plant::new(&fabric, Xbars::Tagged, 1).expect("a plant");
        let spawn = Box::new(Mixed { hosts, leader });
        let mut world = World::with_nodes(&fabric, plant, Options::default(), Vec::new(), spawn);
        let limit = Instant::ZERO + Duration::from_secs(10);
        assert_eq!(world.run(Until::Configured, limit).expect("a run"), Stopped::Reached);
        world.prove_union().expect("no circle in the routes of all");
        for host in 0..hosts {
            let table = world.table(host).expect("routes");
            let up_down = table.shape().to_string().starts_with("up*/down*");
            assert_eq!(up_down, leader, "host {host}: {}", table.shape());
            let differ: Vec<_> = (0..hosts - 1)
                .filter(|host| host.is_multiple_of(2) != leader)
                .map(|host| world.mac(host))
                .collect();
            assert_eq!(table.basis().map().rules.differ, differ, "host {host}");
        }
    }
}
