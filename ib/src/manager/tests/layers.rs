//! Tables in several layers.

use mapper_fabric::generate;

use super::*;

/// A torus that an engine brought up in several layers.
fn torus(engines: &'static str) -> Trial {
    let (model, ..) = Model::of(&generate("torus:x=4,y=4,z=1,hosts=1").unwrap()).unwrap();
    let mut trial = Trial { engines, ..Trial::new(model) };
    trial.run(Duration::from_secs(25));
    assert!(trial.manager.status().layers > 1, "{:?}", trial.events);
    trial
}

/// Cuts the first cable between two switches, and has one of them tell.
fn cut(trial: &mut Trial) {
    let is_switch = |at: usize| trial.model.nodes[at].info.kind == NodeKind::Switch;
    let between = trial.model.cables.iter().find(|&(&(a, _), &(b, _))| is_switch(a) && is_switch(b));
    let &end = between.unwrap().0;
    trial.model.cut(end);
    let lid = trial.model.nodes[end.0].ports[&0].lid();
    trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
}

#[test]
fn hosts_that_keep_their_levels_need_not_wait_after_a_cable_failed() {
    let mut trial = torus("engines=torus");
    cut(&mut trial);
    trial.run(Duration::from_millis(100));
    trial.model.check_up().unwrap();
}

#[test]
fn a_master_that_told_no_levels_has_packets_gone_before_others_take_their_place() {
    let mut trial = torus("engines=torus");
    // The cable fails while no manager runs.
    let lids = trial.manager.lids().clone();
    trial.manager = SubnetManager::new(settings(), lids, trial.now);
    cut(&mut trial);
    trial.run(Duration::from_millis(900));
    assert!(trial.model.check_up().is_err(), "hosts wait until nothing goes by old entries");
    trial.run(Duration::from_secs(25));
    trial.model.check_up().unwrap();
}
