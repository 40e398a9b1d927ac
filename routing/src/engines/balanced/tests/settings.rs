//! What single settings change.

use super::*;

#[test]
fn weighted_steps_are_shunned() {
    // On a ring of 4, frames from 0 to 1 go the long way round if the short one counts 5.
    let subnet = subnet("ring:n=4,hosts=1");
    let port_to = |from: u32, to: u32| {
        let mut channels = subnet.topology.channels_of(from);
        subnet.topology.tail(channels.find(|&channel| subnet.topology.head(channel).xbar == to).unwrap())
    };
    let settings = Settings { hop_weights: [(port_to(0, 1), 5)].into(), ..Settings::default() };
    let found = tables(Engine::Minhop, &subnet, &settings);
    let slot = subnet.destinations.host_slots_of(1).start;
    assert_eq!(found.port(0, slot), port_to(0, 3).port);
    assert_eq!(found.port(3, slot), port_to(3, 2).port);
}

#[test]
fn dor_takes_the_first_port_in_the_order_that_is_given() {
    let subnet = subnet("hypercube:d=3,hosts=2");
    let first = |settings: &Settings, to: u32| {
        let slot = subnet.destinations.host_slots_of(to).start;
        let port = tables(Engine::Dor, &subnet, settings).port(0, slot);
        let Far::Channel(channel) = subnet.topology.far(PortRef { xbar: 0, port }) else { panic!("a cable") };
        subnet.topology.head(channel).xbar
    };
    let ports: Vec<u8> =
        subnet.topology.channels_of(0).map(|channel| subnet.topology.tail(channel).port).collect();
    let plain = first(&Settings::default(), 7);
    let backwards = ports.iter().rev().copied().collect();
    let reversed = first(&Settings { port_order: [(0, backwards)].into(), ..Settings::default() }, 7);
    assert_ne!(plain, reversed);
    assert!(proved(&subnet, &tables(Engine::Dor, &subnet, &Settings::default())).holds());
}

#[test]
fn uncounted_ports_attract_and_settings_without_effect_are_told() {
    let subnet = subnet("xgft:h=2;m=4,8;w=1,4");
    let settings = Settings { port_shifting: true, connect_roots: true, ..Settings::default() };
    let told = Engine::Minhop.without_effect(&settings);
    assert_eq!(told.len(), 2, "{told:?}");
    // The cable from the first spine down to leaf 0 does not count, so all hosts there choose it.
    let spine = (0..12).find(|&xbar| !subnet.is_leaf(xbar)).unwrap();
    let channel = subnet.topology.channels_of(spine).next().unwrap();
    let settings =
        Settings { uncounted_ports: [subnet.topology.tail(channel)].into(), ..Settings::default() };
    let found = tables(Engine::Minhop, &subnet, &settings);
    let leaf = subnet.topology.head(channel).xbar;
    let up = subnet.topology.tail(subnet.topology.reverse(channel));
    let far = (0..12).find(|&xbar| subnet.is_leaf(xbar) && xbar != leaf).unwrap();
    let to_spine = subnet.topology.channels_of(far).find(|&c| subnet.topology.head(c).xbar == spine).unwrap();
    let port = subnet.topology.tail(to_spine).port;
    for slot in subnet.destinations.host_slots_of(leaf) {
        assert_eq!(found.port(far, slot), port, "by the spine at {up:?}");
    }
}

#[test]
fn connected_roots_reach_each_other_without_a_cycle() {
    for spec in ["xgft:h=2;m=4,8;w=1,4", "xgft:h=3;m=3,3,4;w=1,3,3"] {
        let subnet = subnet(spec);
        let rules = ProofRules { max_hops: 64, xbar_destinations: true };
        let prove = |connect_roots| {
            let settings = Settings { connect_roots, ..Settings::default() };
            let found = tables(Engine::Updn, &subnet, &settings);
            let kept = Settings { previous: Some(found.clone()), ..settings };
            assert_eq!(tables(Engine::Updn, &subnet, &kept), found, "{spec}");
            let proof = prove_tables(&subnet, &found, &crate::tables::Layers::single(), &rules);
            assert!(proof.holds(), "{spec}");
            let roots =
                find_roots(&subnet, &Settings::default(), &Tiers::of(&subnet.topology)).unwrap().xbars;
            let apart = |&from: &u32, to: u32| {
                from != to && found.port(from, subnet.destinations.slot_of_xbar(to)) == Tables::NONE
            };
            roots.iter().map(|&to| roots.iter().filter(|&from| apart(from, to)).count()).sum::<usize>()
        };
        assert!(prove(false) > 0, "{spec}");
        assert_eq!(prove(true), 0, "{spec}");
    }
}
