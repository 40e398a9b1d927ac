//! How fast a network is configured, and configured again.

use std::time::Duration;

use mapper_proto::Instant;
use mapper_proto::agent::CableCause;
use mapper_sim::fabric::{PlantNode, PlantPort, Xbars};

use crate::lab::{Lab, Plan, millis, ms};

/// Fabrics, each with one of its cables between two xbars and the host that is told of that cable.
const FABRICS: [(&str, &str, &str); 3] = [
    ("ring:n=4,hosts=1", "xbar2:1", "h2"),
    ("clos:hosts=8,ports=4", "leaf1:3", "h2"),
    ("clos:hosts=128,ports=16", "leaf1:9", "h5"),
];

fn end(lab: &Lab, name: &str) -> PlantPort {
    let (node, port) = name.split_once(':').unwrap();
    PlantPort { node: lab.world.plant().node(node).unwrap(), port: port.parse().unwrap() }
}

/// How long it takes from `since` until all are configured with a map of the fabric as it is.
#[track_caller]
fn settle(lab: &mut Lab, since: Instant) -> Duration {
    lab.settle_by(since + Duration::from_secs(20));
    lab.world.now().since(since)
}

#[track_caller]
fn assert_within(took: Duration, most_ms: u64, what: &str) {
    assert!(took <= millis(most_ms), "{what} took {took:?}, not {most_ms} ms");
}

#[test]
fn all_are_configured_soon_after_the_last_was_switched_on() {
    for (spec, ..) in FABRICS {
        for kinds in [Xbars::Plain, Xbars::Tagged] {
            for seed in 0..4 {
                let mut plan = Plan::new(spec, kinds);
                (plan.options.power_on_spread, plan.options.seed) = (millis(100), seed);
                let most_ms = if kinds == Xbars::Plain { 800 } else { 200 };
                assert_within(settle(&mut plan.start(), ms(0)), most_ms, &format!("{spec} {kinds:?}"));
            }
        }
    }
}

#[test]
fn xbars_that_start_later_than_agents_cost_little() {
    let faults: String =
        (1..=4).map(|n| format!("at 0ms off xbar{n}\nat {}ms on xbar{n}\n", 150 + 40 * n)).collect();
    let mut lab = Plan::new(FABRICS[0].0, Xbars::Tagged).faults(&faults).start();
    assert_within(settle(&mut lab, ms(310)), 300, "from the last xbar on");
}

#[test]
fn a_lost_carrier_that_an_agent_sees_leads_to_new_tables_at_once() {
    for (spec, cable, host) in FABRICS {
        for incremental in [false, true] {
            let plan = Plan::new(spec, Xbars::Tagged).faults(&format!("at 3410ms cut {cable}"));
            let mut lab = plan.agents(|settings| settings.map_incrementally = incremental).start();
            lab.agree_at(ms(3409));
            lab.run_to(ms(3410));
            let (host, end) = (lab.host(host), end(&lab, cable));
            lab.world.cable_down(host, end, CableCause::Carrier);
            assert_within(settle(&mut lab, ms(3410)), 30, &format!("{spec}, incremental: {incremental}"));
        }
    }
}

#[test]
fn a_silent_cable_that_an_agent_doubts_leads_to_new_tables_soon() {
    for (spec, cable, host) in FABRICS {
        let plan = Plan::new(spec, Xbars::Tagged).faults(&format!("at 3410ms silence {cable}"));
        let mut lab = plan.start();
        lab.agree_at(ms(3409));
        lab.run_to(ms(3410));
        let (host, end) = (lab.host(host), end(&lab, cable));
        lab.world.cable_down(host, end, CableCause::Silence);
        // The cable is tried three times, and in the new mapping each of its ends four times.
        assert_within(settle(&mut lab, ms(3410)), 150, spec);
    }
}

#[test]
fn what_no_agent_is_told_is_noticed_at_the_next_glance() {
    for (spec, cable, _) in FABRICS {
        for at_ms in [3410, 3657, 3990] {
            let faults = format!("at {at_ms}ms cut {cable}\nat 8s mend {cable}\n");
            let mut lab = Plan::new(spec, Xbars::Tagged).faults(&faults).start();
            lab.run_to(ms(7999));
            let again = lab.happenings().into_iter().filter(|h| h.what == "configured").map(|h| h.at).max();
            assert_within(again.unwrap().since(ms(at_ms)), 250, &format!("{spec}: a cut at {at_ms} ms"));
            assert_within(settle(&mut lab, ms(8000)), 250, &format!("{spec}: the mending of it"));
        }
    }
}

#[test]
fn a_host_that_starts_late_is_in_the_map_soon() {
    for (spec, ..) in FABRICS {
        for kinds in [Xbars::Plain, Xbars::Tagged] {
            // The late host is the lowest mapper in one case, and the highest in the other.
            for host in [0, Plan::new(spec, kinds).fabric.map.hosts.len() as u32 - 1] {
                let lab = Plan::new(spec, kinds).start();
                let name = lab.world.plant().name(PlantNode::Host(host)).to_owned();
                let faults = format!("at 0ms remove {name}\nat 3400ms insert {name}\n");
                let mut lab = Plan::new(spec, kinds).faults(&faults).start();
                lab.agree_at(ms(3399));
                let most_ms = if kinds == Xbars::Plain { 800 } else { 150 };
                assert_within(settle(&mut lab, ms(3400)), most_ms, &format!("{spec} {kinds:?} {name}"));
            }
        }
    }
}
