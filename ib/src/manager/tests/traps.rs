//! Failures that switches tell of by traps are healed without an exploration.

use super::*;

#[test]
fn a_trap_is_answered_and_what_changed_is_healed_at_once() {
    let mut trial = Trial::new(Model::ring(5));
    trial.run(Duration::from_secs(25));
    trial.model.cut((6, 2));
    let written = trial.model.table_writes;
    let sent = trial.manager.sent();
    let lid = trial.model.nodes[6].ports[&0].lid();
    trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
    let repress = trial.manager.poll_transmit(trial.now).unwrap();
    let answer = RoutedByLid::<ManagerMethod>::parse(&repress.mad).unwrap().0;
    assert_eq!((answer.method, answer.tid), (ManagerMethod::TrapRepress, 77));
    trial.manager.handle_timeout(trial.now);
    trial.run(Duration::from_secs(4));
    trial.model.check_up().unwrap();
    // Only its three ports are asked. All other datagrams are writes.
    let written = trial.model.table_writes - written;
    assert!(trial.manager.sent() - sent <= 1 + 3 + written, "{} sent", trial.manager.sent() - sent);
    // Because of the mark of the change everything is looked at later.
    trial.run(Duration::from_secs(15));
    trial.model.check_up().unwrap();
}

#[test]
fn both_ends_of_a_failed_cable_tell_and_the_farther_is_asked_by_a_way_that_is_left() {
    let mut trial = Trial::new(Model::ring(5));
    trial.run(Duration::from_secs(25));
    let sweeps = trial.manager.status().counts[SubnetCount::Sweeps];
    // The shortest way to node 7 went by this cable.
    trial.model.cut((6, 2));
    for switch in [7, 6] {
        let lid = trial.model.nodes[switch].ports[&0].lid();
        trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
    }
    trial.run(Duration::from_millis(2500));
    trial.model.check_up().unwrap();
    let counts = trial.manager.status().counts;
    assert_eq!((counts[SubnetCount::Sweeps], counts[SubnetCount::Glances]), (sweeps, 2));
}

#[test]
fn a_second_failure_right_behind_the_first_takes_no_sweep_either() {
    let mut model = Model::ring(5);
    // This cable is another way from one side of the ring to the other.
    model.cable((6, 4), (8, 4));
    let mut trial = Trial::new(model);
    trial.run(Duration::from_secs(25));
    let sweeps = trial.manager.status().counts[SubnetCount::Sweeps];
    for (switch, port) in [(6, 2), (8, 2)] {
        trial.model.cut((switch, port));
        let lid = trial.model.nodes[switch].ports[&0].lid();
        trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
        // Old and new entries together could close a circle, so packets under way get a second to arrive.
        trial.run(Duration::from_millis(2500));
        trial.model.check_up().unwrap();
    }
    assert_eq!(trial.manager.status().counts[SubnetCount::Sweeps], sweeps);
    trial.run(Duration::from_secs(15));
    assert!(
        trial.manager.status().counts[SubnetCount::Sweeps] > sweeps,
        "what could not be told is looked at later"
    );
    trial.model.check_up().unwrap();
}

/// Three leaves with two hosts each, each cabled to three spines; the leaves, and the spines.
fn tree() -> (Model, [usize; 3], [usize; 3]) {
    let mut model = Model::default();
    let hosts: Vec<usize> = (0..6).map(|_| model.add(NodeKind::Adapter, 1)).collect();
    let leaves = [0; 3].map(|_| model.add(NodeKind::Switch, 5));
    let spines = [0; 3].map(|_| model.add(NodeKind::Switch, 3));
    for (place, &leaf) in leaves.iter().enumerate() {
        for port in 1..=2 {
            model.cable((hosts[2 * place + port - 1], 1), (leaf, port as u8));
        }
        for (port, &spine) in (3..).zip(&spines) {
            model.cable((leaf, port), (spine, place as u8 + 1));
        }
    }
    (model, leaves, spines)
}

#[test]
fn hosts_of_a_tree_wait_neither_for_packets_under_way_nor_for_trees_of_groups() {
    for engines in ["engines=minhop", "engines=updn", "engines=ftree", "engines=sssp", ""] {
        let (mut groups_waited, mut spines_waited) = (false, false);
        for (place, port) in (0..3).flat_map(|place| (3..6).map(move |port| (place, port))) {
            let (model, leaves, spines) = tree();
            let mut trial = Trial { engines, ..Trial::new(model) };
            trial.run(Duration::from_secs(25));
            trial.model.check_up().unwrap();
            trial.model.cut((leaves[place], port));
            for switch in [leaves[place], spines[usize::from(port) - 3]] {
                let lid = trial.model.nodes[switch].ports[&0].lid();
                trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
            }
            let ups = trial.ups();
            // Packets under way get a second to arrive, where anybody waits for that.
            trial.run(Duration::from_millis(50));
            let hosts = trial.model.hosts();
            for (&(from, _), &(to, lid)) in hosts.iter().flat_map(|a| hosts.iter().map(move |b| (a, b))) {
                let is_reached = from == to || trial.model.trace(from, lid).1;
                assert!(is_reached, "{engines}: {from} to {to} without port {port} of leaf {place}");
            }
            assert!(trial.ups() > ups, "{engines}");
            groups_waited |= trial.model.check_up().is_err();
            let reach_switches = |model: &Model| {
                let own = |node: usize| model.nodes[node].ports[&0].lid();
                let lids: Vec<(usize, u16)> = (6..12).map(|node| (node, own(node))).collect();
                hosts.iter().all(|&(host, lid)| {
                    lids.iter().all(|&(switch, own)| {
                        model.reached(host, own).is_some() && model.reached(switch, lid).is_some()
                    })
                })
            };
            spines_waited |= !reach_switches(&trial.model);
            trial.run(Duration::from_secs(3));
            trial.model.check_up().unwrap();
            assert!(reach_switches(&trial.model), "{engines}: without port {port} of leaf {place}");
        }
        assert!(groups_waited && spines_waited, "{engines}: else this shows nothing");
    }
}

#[test]
fn a_trap_of_a_host_that_went_or_of_nobody_and_a_cable_that_came_are_healed() {
    let mut trial = Trial::new(Model::ring(5));
    trial.run(Duration::from_secs(25));
    let (written, lid) = (trial.model.table_writes, trial.model.nodes[7].ports[&0].lid());
    let host = trial.model.cables[&(7, 1)];
    for step in 0..3 {
        match step {
            0 => trial.model.cut((7, 1)),
            1 => trial.model.cut((9, 3)),
            _ => trial.model.cable((7, 1), host),
        }
        for lid in [lid, trial.model.nodes[9].ports[&0].lid(), 0, 999] {
            trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
        }
        trial.run(Duration::from_secs(2));
        if step == 0 {
            assert_eq!(trial.model.table_writes, written, "a host that went changes no table");
        }
    }
    trial.run(Duration::from_secs(15));
    trial.model.check_up().unwrap();
}
