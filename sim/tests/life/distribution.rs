//! How the map reaches all hosts.

use mapper_proto::agent::Purpose;
use mapper_proto::map::{host_type, is_isomorphic};
use mapper_proto::wire::AgentState;
use mapper_sim::fabric::Xbars;

use crate::lab::{Lab, Plan, millis, ms};
use mapper_proto::Instant;

const CLOS: &str = "clos:hosts=32,ports=8";

#[test]
fn it_works_with_lost_frames() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let mut lab = Plan::new(CLOS, kinds).faults("loss 5%").start();
        lab.settle_by(ms(15_000));
    }
}

#[test]
fn garbled_late_and_doubled_frames_do_no_harm() {
    let faults = "corrupt 1%\nduplicate 10%\njitter 200us\n";
    let mut lab = Plan::new(CLOS, Xbars::Tagged).faults(faults).start();
    lab.settle_by(ms(15_000));
}

/// Agents that send tiny pieces of the map, one at a time, so that a child takes milliseconds to collect it.
fn slow_pieces() -> Plan {
    Plan::new(CLOS, Xbars::Tagged).agents(|settings| {
        settings.piece_bytes = 40;
        settings.piece_window = 1;
    })
}

/// The moment when h31, the first child of h32, has just told its children to collect the map from it. It is
/// taken from a run without faults, as a run with a fault is the same until then.
fn first_fetch() -> Instant {
    let mut lab = slow_pieces().start();
    lab.agree_at(ms(3000));
    let happened = lab.happenings();
    let parent = happened.iter().find(|h| h.place == "h31" && h.what == "map").unwrap();
    parent.at + millis(1) / 2
}

/// Lets a fault strike while h29 and h28, the children of h31, collect the map from it.
fn in_mid_fetch(fault: &str) -> Lab {
    let at = first_fetch();
    let mut lab = slow_pieces().faults(&format!("at {}us {fault}\n", at.as_nanos() / 1000)).start();
    lab.run_to(at);
    assert_eq!(lab.status("h29").state, AgentState::Fetching);
    lab.agree_at(at + millis(6000));
    lab
}

#[test]
fn a_child_recovers_whose_parent_dies_in_mid_fetch() {
    in_mid_fetch("kill h31");
    in_mid_fetch("mute h31");
    in_mid_fetch("remove h31");
}

#[test]
fn a_child_recovers_whose_parent_has_another_map_in_mid_fetch() {
    in_mid_fetch("restart h31");
    in_mid_fetch("restart h32");
    in_mid_fetch("kill h32");
    in_mid_fetch("cut h1");
}

#[test]
fn a_map_travels_in_many_pieces() {
    let mut lab = slow_pieces().start();
    lab.agree_at(ms(3000));
    // h1 has no children, so it sent nothing but requests, one for each piece.
    let pieces = lab.status("h1").sent[Purpose::Piece];
    assert!((10..100).contains(&pieces), "{pieces}");
}

/// Routes take seconds to compute here, and all hosts have the map long before the first has routes.
#[test]
fn nobody_waits_for_the_map_until_others_have_routes() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let mut plan = Plan::new(CLOS, kinds);
        plan.options.timing.compute = millis(5000);
        let mut lab = plan.start();
        lab.run_to(ms(2000));
        assert_eq!(lab.in_state(AgentState::Routing), 32, "{kinds:?}");
        assert!(lab.statuses().iter().all(|status| !status.network_complete));
        lab.agree_at(ms(8000));
        assert!(lab.statuses().iter().all(|status| status.network_complete));
        // A child that took note of the map was not told again.
        let tree: u64 = lab.statuses().iter().map(|status| status.sent[Purpose::Tree]).sum();
        assert!(tree < 3 * 32, "{tree}");
    }
}

/// The parent's word of the map is lost. As soon as there are routes the child is told again, long before
/// verification would find it.
#[test]
fn a_child_that_took_no_note_is_told_again_when_there_are_routes() {
    let mut plan = Plan::new(CLOS, Xbars::Tagged);
    plan.options.timing.compute = millis(100);
    let told_at = {
        let mut lab = Plan { tune: Box::new(|_, _| ()), ..plan }.start();
        lab.agree_at(ms(3000));
        lab.happenings().into_iter().find(|h| h.place == "h32" && h.what == "map").unwrap().at
    };
    let us = told_at.as_nanos() / 1000 - 50;
    let mut plan = Plan::new(CLOS, Xbars::Tagged)
        .faults(&format!("at {us}us silence h31\nat {}us mend h31\n", us + 60_000));
    plan.options.timing.compute = millis(100);
    let mut lab = plan.start();
    lab.settle_by(told_at + millis(350));
}

#[test]
fn phantoms_inflate_the_map_and_nothing_else() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let plan =
            Plan::new(CLOS, kinds).agents(|settings| settings.extra_hosts = 100).faults("at 2s cut h1");
        let real = plan.fabric.map.clone();
        let mut lab = plan.start();
        for (at_ms, hosts) in [(1999, 32), (7000, 31)] {
            lab.run_to(ms(at_ms));
            let map = lab.world.map(lab.host("h32")).unwrap();
            assert_eq!(map.hosts.len(), hosts + 100);
            let mut found = (*map).clone();
            found.hosts.retain(|host| host.host_type != host_type::PHANTOM);
            assert_eq!(found.hosts.len(), hosts);
            if hosts == 32 && kinds == Xbars::Tagged {
                is_isomorphic(&found, &real).unwrap();
            }
            let statuses = lab.statuses().into_iter().filter(|status| status.state == AgentState::Configured);
            let statuses: Vec<_> = statuses.filter(|status| status.version == map.version).collect();
            assert_eq!(statuses.len(), hosts);
            assert!(statuses.iter().all(|status| status.network_complete && status.unreachable.is_empty()));
            let children: usize = statuses.iter().map(|status| status.children.len()).sum();
            assert_eq!(children, hosts - 1);
        }
    }
}
