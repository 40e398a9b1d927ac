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
    let sweeps = trial.manager.status().counts.sweeps;
    // The shortest way to node 7 went by this cable.
    trial.model.cut((6, 2));
    for switch in [7, 6] {
        let lid = trial.model.nodes[switch].ports[&0].lid();
        trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
    }
    trial.run(Duration::from_millis(2500));
    trial.model.check_up().unwrap();
    let counts = trial.manager.status().counts;
    assert_eq!((counts.sweeps, counts.glances), (sweeps, 2));
}

#[test]
fn a_second_failure_right_behind_the_first_takes_no_sweep_either() {
    let mut model = Model::ring(5);
    // This cable is another way from one side of the ring to the other.
    model.cable((6, 4), (8, 4));
    let mut trial = Trial::new(model);
    trial.run(Duration::from_secs(25));
    let sweeps = trial.manager.status().counts.sweeps;
    for (switch, port) in [(6, 2), (8, 2)] {
        trial.model.cut((switch, port));
        let lid = trial.model.nodes[switch].ports[&0].lid();
        trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
        // Old and new entries together could close a circle, so packets under way get a second to arrive.
        trial.run(Duration::from_millis(2500));
        trial.model.check_up().unwrap();
    }
    assert_eq!(trial.manager.status().counts.sweeps, sweeps);
    trial.run(Duration::from_secs(15));
    assert!(trial.manager.status().counts.sweeps > sweeps, "what could not be told is looked at later");
    trial.model.check_up().unwrap();
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
