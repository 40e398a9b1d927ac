//! Every change of the fabric is found, and leads to one map of the fabric as it now is.

use mapper_sim::fabric::Xbars;

use crate::lab::{Lab, Plan, millis, ms};

/// Four xbars in a ring (ports 1 and 2), two hosts each (3 and 4), four ports free.
const RING: &str = "ring:n=4,hosts=2,ports=8";

/// How many maps one change may cost at most.
const MOST_MAPS: usize = 4;

/// Lets a fault strike at 2 s, when all hosts are configured, and fails unless all agree again 5 s later.
#[track_caller]
fn change(kinds: Xbars, incremental: bool, before: &str, fault: &str) -> Lab {
    let faults = format!("{before}\nat 2s {fault}\n");
    let plan = Plan::new(RING, kinds).faults(&faults);
    let mut lab = plan.agents(|settings| settings.map_incrementally = incremental).start();
    let old = lab.agree_at(ms(1999));
    let new = lab.agree_at(ms(7000));
    assert_ne!(old, new, "`{fault}` on {kinds:?} xbars leads to no new map");
    let maps = lab.count("mapped", ms(2000));
    assert!(maps <= MOST_MAPS, "{maps} maps for `{fault}` on {kinds:?} xbars, incremental: {incremental}");
    lab
}

#[track_caller]
fn change_both(before: &str, fault: &str) {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        for incremental in [false, true] {
            change(kinds, incremental, before, fault);
        }
    }
}

#[test]
fn a_host_is_lost() {
    change_both("", "remove h3");
    // The host with the highest mapper is lost.
    change_both("", "remove h8");
}

#[test]
fn a_host_is_added() {
    change_both("at 0ms remove h3", "insert h3");
    change_both("at 0ms remove h8", "insert h8");
}

#[test]
fn a_cable_is_lost() {
    change_both("", "cut xbar2:1");
    change_both("", "cut h5");
}

#[test]
fn a_cable_swallows_all_frames() {
    change_both("", "silence xbar2:1");
    change_both("", "silence h5");
}

#[test]
fn a_cable_is_added() {
    change_both("at 0ms cut xbar2:1", "mend xbar2:1");
}

#[test]
fn a_cable_is_moved() {
    // The cable is moved to another port of its xbar, and to another xbar.
    change_both("", "move xbar2:1 to xbar2:7");
    change_both("", "move xbar2:1 to xbar1:6");
}

#[test]
fn a_host_is_moved() {
    change_both("", "move xbar2:3 to xbar2:7");
    change_both("", "move xbar2:3 to xbar4:8");
    // The host of the global mapper is moved.
    change_both("", "move xbar4:4 to xbar1:8");
}

#[test]
fn an_xbar_is_lost() {
    change_both("", "off xbar2");
}

#[test]
fn an_xbar_is_added() {
    change_both("at 0ms off xbar2", "on xbar2");
}

#[test]
fn an_xbar_is_swapped() {
    change(Xbars::Tagged, false, "", "swap xbar2");
    change(Xbars::Tagged, true, "", "swap xbar2");
}

#[test]
fn an_agent_is_dead_while_its_wire_is_alive() {
    change_both("", "kill h3");
    change_both("", "mute h3");
}

#[test]
fn the_global_mapper_is_killed() {
    let lab = change(Xbars::Plain, false, "", "kill h8");
    assert_eq!(lab.status("h1").leader.unwrap().mac, lab.status("h7").rank.mac);
    change(Xbars::Tagged, false, "", "kill h8");
}

#[test]
fn the_global_mapper_restarts() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let mut lab = Plan::new(RING, kinds).faults("at 2s restart h8").start();
        let old = lab.agree_at(ms(1999));
        let new = lab.agree_at(ms(7000));
        assert_eq!(old.mac, new.mac);
        assert_ne!(old.counter, new.counter, "its maps differ from those of before its restart");
        assert!(old.counter != 0 && new.counter != 0);
    }
}

#[test]
fn an_agent_that_restarts_is_given_the_map() {
    // In the last case routes take long to compute, and children wait for their parent meanwhile.
    for (kinds, compute_ms) in [(Xbars::Plain, 1), (Xbars::Tagged, 1), (Xbars::Tagged, 1500)] {
        // In the tree, h1 is a leaf and h7 a parent.
        for name in ["h1", "h7"] {
            let mut plan = Plan::new(RING, kinds).faults(&format!("at 8s restart {name}"));
            plan.options.timing.compute = millis(compute_ms);
            let mut lab = plan.start();
            let old = lab.agree_at(ms(7999));
            let new = lab.agree_at(ms(16_000));
            assert_eq!(old, new, "{name}: nothing has changed");
        }
    }
}

#[test]
fn an_agent_that_restarts_need_not_wait_for_its_parent_to_notice() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        for fabric in [RING, "xgft:h=2;m=2,2;w=1,2", "xgft:h=2;m=4,4;w=1,2"] {
            for host in 1..=3 {
                let faults = format!("at 319389289ns restart h{host}");
                let mut lab = Plan::new(fabric, kinds).faults(&faults).start();
                let old = lab.agree_at(ms(319));
                assert_eq!(old, lab.agree_at(ms(400)), "h{host} of {fabric}");
                let is_told = lab.status(&format!("h{host}")).network_complete;
                assert!(is_told, "h{host} of {fabric} knows that all hosts have the map");
            }
        }
    }
}

#[test]
fn a_parent_is_killed() {
    // h7 and h6 are the children of h8, h5 and h4 those of h7.
    change_both("", "kill h7");
    // Here a parent and its child are killed at once.
    change_both("at 2s kill h8", "kill h7");
}

#[test]
fn parts_have_a_leader_each_and_join_under_one() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let faults = "at 0ms cut xbar1:1\nat 0ms cut xbar3:1\nat 2s mend xbar1:1\nat 7s cut xbar1:1\n";
        let mut lab = Plan::new(RING, kinds).faults(faults).start();
        lab.agree_at(ms(1999));
        assert_eq!(lab.leaders(), 2);
        lab.agree_at(ms(6999));
        assert_eq!(lab.leaders(), 1);
        lab.agree_at(ms(12_000));
        assert_eq!(lab.leaders(), 2);
    }
}

#[test]
fn two_hosts_and_a_cable() {
    let mut lab = Plan::new(RING, Xbars::Plain);
    lab.fabric.map.xbars.clear();
    lab.fabric.map.cables.clear();
    lab.fabric.map.hosts.truncate(2);
    lab.fabric.map.hosts.iter_mut().for_each(|host| host.at = None);
    let mut lab = lab.faults("at 2s cut h1\nat 7s mend h1").start();
    lab.agree_at(ms(1999));
    lab.agree_at(ms(6999));
    lab.agree_at(ms(12_000));
    assert_eq!(lab.leaders(), 1);
}
