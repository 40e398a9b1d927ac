//! What the options of an agent do.

use mapper_proto::agent::{MappingCost, Purpose, Status};
use mapper_proto::wire::AgentState;
use mapper_sim::fabric::Xbars;
use mapper_sim::world::FabricCount;

use crate::lab::{Lab, Plan, exploration, millis, ms};

const CLOS: &str = "clos:hosts=32,ports=8";

/// The leaf's end of the first cable between a leaf and a spine.
fn first_cable(plan: &Plan) -> String {
    let end = plan.fabric.map.cables[0].a;
    format!("{}:{}", plan.fabric.xbars[end.xbar as usize].name, end.port)
}

/// How many probes and scouts of verification and exploration all hosts but the leader have sent.
fn of_others(lab: &Lab, leader: &str) -> u64 {
    let leader = lab.status(leader).rank;
    let others = lab.statuses().into_iter().filter(|status| status.rank != leader);
    others.map(|status| status.sent[Purpose::Verify] + exploration(&status.sent)).sum()
}

#[test]
fn pause_keeps_the_others_quiet_while_the_leader_maps() {
    let plan = Plan::new(CLOS, Xbars::Plain);
    let end = first_cable(&plan);
    let plan = plan.faults(&format!("at 0ms cut {end}\nat 2s mend {end}\n"));
    let mut lab = plan.tune(|host, settings| settings.pause = host == 31).start();
    lab.agree_at(ms(1999));
    let step = millis(1) / 5;
    while lab.status("h32").state != AgentState::Mapping {
        assert!(lab.world.now() < ms(7000));
        lab.run_to(lab.world.now() + step);
    }
    // It takes a while until all hosts know of the pause and that the map is invalid.
    lab.run_to(lab.world.now() + step * 5);
    let before = of_others(&lab, "h32");
    let mut looks = 0;
    while lab.status("h32").state == AgentState::Mapping {
        assert_eq!(of_others(&lab, "h32"), before, "after {looks} looks");
        lab.run_to(lab.world.now() + step);
        looks += 1;
    }
    assert!(looks > 3, "{looks}");
    lab.agree_at(ms(9000));
    assert!(of_others(&lab, "h32") > before + 100, "they go on");
}

/// The probes that an agent sent between two looks. A passive agent has no map to verify. What it sends then
/// as verification tells its children that their map is invalid, and is sent again if it was lost.
fn probes_between(before: &Status, after: &Status) -> u64 {
    let explored = exploration(&after.sent) - exploration(&before.sent);
    let is_word = [before, after].iter().all(|status| status.state == AgentState::Passive);
    explored + if is_word { 0 } else { after.sent[Purpose::Verify] - before.sent[Purpose::Verify] }
}

/// Looks at all other hosts while the leader explores. Returns how many probes they sent, and in how many
/// looks that was counted.
fn probes_while_the_leader_maps(loss: &str) -> (u64, u32) {
    let plan = Plan::new(CLOS, Xbars::Tagged);
    let end = first_cable(&plan);
    let plan = plan.faults(&format!("at 2s cut {end}\n{loss}"));
    let mut lab = plan.tune(|host, settings| settings.pause = host == 31).start();
    lab.agree_at(ms(1999));
    let explored = |lab: &Lab| exploration(&lab.status("h32").sent);
    let (step, mut before, mut probes, mut looks) = (millis(1) / 50, explored(&lab), 0, 0);
    let mut others = lab.statuses();
    while lab.world.now() < ms(3000) {
        lab.run_to(lab.world.now() + step);
        let (now, of_others) = (explored(&lab), lab.statuses());
        let maps = lab.status("h32").state == AgentState::Mapping && now > before;
        if maps {
            looks += 1;
            let leader = lab.status("h32").rank;
            let pairs = others.iter().zip(&of_others).filter(|(_, after)| after.rank != leader);
            probes += pairs.map(|(before, after)| probes_between(before, after)).sum::<u64>();
        }
        (before, others) = (now, of_others);
    }
    (probes, looks)
}

#[test]
fn all_are_quiet_from_the_first_probe_on_although_pauses_are_lost() {
    for loss in ["", "at 1999ms loss 5%\n"] {
        let (probes, looks) = probes_while_the_leader_maps(loss);
        assert!(looks > 3 && probes == 0, "{loss}: {probes} probes in {looks} looks");
    }
}

#[test]
fn a_thrashing_mapper_maps_for_ever() {
    let mut lab = Plan::new(CLOS, Xbars::Tagged).tune(|host, settings| settings.thrash = host == 31).start();
    let mut versions = Vec::new();
    for at_ms in (1000..12_000).step_by(10) {
        lab.run_to(ms(at_ms));
        versions.extend(lab.statuses().iter().filter(|status| status.network_complete).map(|s| s.version));
    }
    versions.sort_unstable();
    versions.dedup();
    assert!((5..100).contains(&versions.len()), "{}", versions.len());
}

#[test]
fn a_printeur_prints_what_its_children_say() {
    for accepts in [true, false] {
        let plan = Plan::new(CLOS, Xbars::Tagged).agents(|settings| settings.printeur = accepts);
        let mut lab = plan.faults("at 2s cut h1").start();
        lab.agree_at(ms(7000));
        assert_eq!(lab.count("printed", ms(0)) > 0, accepts);
        let leader = lab.happenings().iter().filter(|h| h.what == "printed" && h.place == "h32").count();
        assert_eq!(leader > 0, accepts, "agents that become passive tell the winner");
    }
}

#[test]
fn a_printeur_hears_from_its_children_in_the_tree_whomever_it_beat() {
    // h28 is the fifth in the tree. Its children are h23 and h22, and they print that they are configured.
    let plan = Plan::new(CLOS, Xbars::Tagged).tune(|host, settings| settings.printeur = host == 27);
    let mut lab = plan.faults("at 2s cut h1").start();
    let children = lab.host("h28");
    lab.agree_at(ms(7000));
    let children = lab.world.status(children).unwrap().children;
    let printed: Vec<_> = lab.happenings().into_iter().filter(|h| h.what == "printed").collect();
    for child in children {
        let configured = |h: &&crate::lab::Happening| {
            h.place == "h28" && h.detail == format!("{child}: {child}: configured")
        };
        // Each child prints it once for the first map, and once for the map after the cut.
        assert_eq!(printed.iter().filter(configured).count(), 2, "{child}: {printed:?}");
    }
}

const fn cost(mapping: MappingCost) -> u64 {
    mapping.switch_probes + mapping.scouts + mapping.compares
}

#[test]
fn an_incremental_mapper_probes_what_changed() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let plan = Plan::new("clos:hosts=128,ports=16", kinds);
        let end = first_cable(&plan);
        let faults = format!("at 3s cut {end}\nat 7s mend {end}\n");
        let plan = plan.agents(|settings| settings.map_incrementally = true).faults(&faults);
        let mut lab = plan.start();
        let first = lab.agree_at(ms(1999));
        let whole = cost(lab.status("h128").mapping.unwrap());
        let second = lab.agree_at(ms(6999));
        let cut = cost(lab.status("h128").mapping.unwrap());
        let third = lab.agree_at(ms(12_000));
        let mended = cost(lab.status("h128").mapping.unwrap());
        assert!(first != second && second != third);
        assert!(cut * 10 < whole && mended * 10 < whole, "{kinds:?}: {whole} {cut} {mended}");
    }
}

#[test]
fn without_xbar_checks_cables_between_xbars_are_left_alone() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let verify = |xbar_check| {
            let plan = Plan::new(CLOS, kinds).agents(|settings| settings.xbar_check = xbar_check);
            let cables = plan.fabric.map.cables.len() as u64;
            let mut lab = plan.start();
            lab.agree_at(ms(2000));
            let before = lab.world.totals().sent[Purpose::Verify];
            lab.agree_at(ms(12_000));
            (lab.world.totals().sent[Purpose::Verify] - before, cables)
        };
        let ((with, cables), (without, _)) = (verify(true), verify(false));
        // In ten seconds there are nine to eleven cycles, as a cycle takes a little longer than the pause of
        // a second between two.
        assert!(with - without >= 9 * cables && with - without <= 11 * cables, "{with} {without} {cables}");
    }
}

#[test]
fn a_small_probe_window_only_takes_longer() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let faults = "at 5s cut h1";
        let plan = Plan::new(CLOS, kinds).agents(|settings| settings.probe_window = 1).faults(faults);
        let mut lab = plan.start();
        lab.agree_at(ms(4999));
        lab.agree_at(ms(10_000));
    }
}

#[test]
fn verification_fills_no_short_queue() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let mut plan = Plan::new("random:xbars=40,ports=8,hosts=4,links=100", kinds);
        plan.options.timing.receive_queue = 8;
        let mut lab = plan.start();
        lab.agree_at(ms(5000));
        let before = lab.world.stats().frames[FabricCount::Overflowed];
        lab.agree_at(ms(15_000));
        assert_eq!(lab.world.stats().frames[FabricCount::Overflowed], before, "{kinds:?}");
    }
}
