//! Which host becomes the global mapper, which follow it, and the tree over the map's hosts.

use mapper_proto::Tally;
use mapper_proto::agent::Purpose;
use mapper_proto::wire::AgentState;
use mapper_sim::fabric::Xbars;

use crate::lab::{Plan, exploration, millis, ms};

const RING: &str = "ring:n=4,hosts=2,ports=8";

/// How many agents ever begin to map, and how many there are.
fn mappers(spec: &str, kinds: Xbars, spread_ms: u64, seed: u64) -> (usize, usize) {
    let mut plan = Plan::new(spec, kinds);
    (plan.options.power_on_spread, plan.options.seed) = (millis(spread_ms), seed);
    let mut lab = plan.start();
    lab.agree_at(ms(2000));
    let statuses = lab.statuses();
    (statuses.iter().filter(|status| exploration(&status.sent) > 0).count(), statuses.len())
}

/// Checks what ARCHITECTURE.md says of agents that start together. Of n hosts at a crossbar, those map that
/// are higher than all that began before them: 1 + 1/2 + ... + 1/n hosts on average.
#[test]
fn of_many_agents_that_start_together_most_never_need_to_map() {
    let fabrics = [("clos:hosts=32,ports=8", 60), ("now:subclusters=3", 50), ("clos:hosts=128,ports=16", 50)];
    for (spec, most_percent) in fabrics {
        for kinds in [Xbars::Plain, Xbars::Tagged] {
            for spread_ms in [0, 1, 10] {
                let runs = (1..=8).map(|seed| mappers(spec, kinds, spread_ms, seed));
                let (map, all) = runs.fold((0, 0), |(map, all), (m, a)| (map + m, all + a));
                println!("{spec} {kinds:?} {spread_ms} ms: {map} of {all}");
                assert!(100 * map < most_percent * all, "{spec} {kinds:?} {spread_ms} ms: {map} of {all}");
            }
        }
    }
}

#[test]
fn level_beats_address() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let mut lab = Plan::new(RING, kinds).levels(|host| if host == 2 { 3 } else { 1 }).start();
        let version = lab.agree_at(ms(2000));
        assert_eq!(version.mac, lab.status("h3").rank.mac);
        assert!(lab.statuses().iter().all(|status| status.leader.unwrap().level == 3));
    }
}

#[test]
fn level_0_never_maps() {
    let mut lab = Plan::new(RING, Xbars::Plain).levels(|_| 0).start();
    lab.run_to(ms(10_000));
    assert_eq!(lab.in_state(AgentState::Starting), 8);
    assert!(lab.statuses().iter().all(|status| status.sent == Tally::default()));
}

#[test]
fn a_level_0_host_of_the_highest_address_is_configured_by_another() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let mut lab = Plan::new(RING, kinds).levels(|host| u8::from(host != 7)).start();
        let version = lab.agree_at(ms(2000));
        assert_eq!(version.mac, lab.status("h7").rank.mac);
        let status = lab.status("h8");
        assert_eq!((status.state, exploration(&status.sent)), (AgentState::Configured, 0));
    }
}

#[test]
fn level_0_hosts_are_found_again_when_their_leaders_die() {
    // h8 is the global mapper, and h7 the only other one that can map.
    for faults in ["at 2s kill h8", "at 2s kill h7", "at 2s kill h8\nat 2s restart h6", "at 2s restart h8"] {
        let levels = |host| u8::from(host >= 6);
        let mut lab = Plan::new(RING, Xbars::Plain).levels(levels).faults(faults).start();
        lab.agree_at(ms(1999));
        lab.agree_at(ms(7000));
    }
    // If no other host can map, they wait and do not say that the network is complete.
    let faults = "at 2s kill h8\nat 20s restart h8\n";
    let mut lab = Plan::new(RING, Xbars::Plain).levels(|host| u8::from(host == 7)).faults(faults).start();
    lab.agree_at(ms(1999));
    lab.run_to(ms(19_999));
    assert_eq!(lab.in_state(AgentState::Configured), 0);
    let h1 = lab.status("h1");
    assert_eq!((exploration(&h1.sent), h1.network_complete, h1.leader), (0, false, None));
    lab.agree_at(ms(25_000));
}

#[test]
fn losers_query_the_winner_each_second_and_map_when_it_falls_silent() {
    // The winner is so slow that it dies before it has a map.
    let plan = Plan::new(RING, Xbars::Plain).faults("at 4500ms kill h8");
    let mut lab = plan.tune(|host, settings| {
        if host == 7 {
            settings.probe_timeout = millis(2000);
        }
    });
    lab.options.power_on_spread = millis(0);
    let mut lab = lab.start();
    let queries = |lab: &crate::lab::Lab| -> Vec<u64> {
        (1..=7).map(|n| lab.status(&format!("h{n}")).sent[Purpose::Query]).collect()
    };
    lab.run_to(ms(1300));
    assert_eq!(lab.in_state(AgentState::Passive), 7);
    let early = queries(&lab);
    lab.run_to(ms(4300));
    let late = queries(&lab);
    assert!(early.iter().zip(&late).all(|(early, late)| late - early == 3), "{early:?} {late:?}");
    let version = lab.agree_at(ms(9500));
    assert_eq!(version.mac, lab.status("h7").rank.mac);
}

#[test]
fn the_tree_is_the_binary_tree_over_the_hosts_by_rank() {
    let mut lab = Plan::new("clos:hosts=128,ports=16", Xbars::Tagged).start();
    lab.agree_at(ms(2000));
    // The number n of a host in the tree, counted from 1: h128 is the first.
    let mac = |n: u32| (1..=128).contains(&n).then(|| lab.status(&format!("h{}", 129 - n)).rank.mac);
    for n in 1..=128 {
        let status = lab.status(&format!("h{}", 129 - n));
        assert_eq!(status.parent, mac(n / 2), "{n}");
        let children: Vec<_> = [2 * n, 2 * n + 1].into_iter().filter_map(mac).collect();
        assert_eq!(status.children, children, "{n}");
        assert!(status.network_complete, "{n}");
    }
}

#[test]
fn completeness_falls_when_an_agent_dies() {
    let mut lab = Plan::new(RING, Xbars::Plain).faults("at 2s kill h1").start();
    let old = lab.agree_at(ms(1999));
    assert!(lab.statuses().iter().all(|status| status.network_complete));
    lab.agree_at(ms(7000));
    let statuses = lab.statuses();
    assert!(statuses.iter().all(|status| status.network_complete && status.version != old));
    // No agent called the old map complete after the first had found it invalid.
    let invalid = lab.happenings().into_iter().find(|h| h.what == "invalid").unwrap().at;
    let happened = lab.happenings();
    let late =
        |h: &&crate::lab::Happening| h.what == "complete" && h.detail == old.to_string() && h.at > invalid;
    assert_eq!(happened.iter().filter(late).count(), 0);
}
