use super::*;
use crate::routing::engines::Balance;
use mapper_sim::topology::generate;

fn subnet(spec: &str) -> Subnet {
    Subnet::new(&generate(spec).unwrap(), None).unwrap()
}

fn exact() -> Settings {
    Settings { balance: Balance::Opensm, ..Settings::default() }
}

#[test]
fn equal_ports_take_turns() {
    let subnet = subnet("clos:hosts=8,ports=4");
    let routing = Engine::Minhop.compute(&subnet, &exact()).unwrap();
    let ports: Vec<u8> = (2..8)
        .map(|host| routing.tables.port(0, subnet.destinations.slots_of_host(host).start))
        .collect();
    assert_eq!(ports, [3, 4, 3, 4, 3, 4]);
}
