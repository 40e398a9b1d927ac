//! In a fabric that does not change, nobody maps and nothing grows.

use mapper_proto::Tally;
use mapper_proto::agent::Purpose;
use mapper_sim::fabric::Xbars;

use crate::lab::{Lab, Plan, exploration, millis, ms};
use crate::paths::run_watched;

#[test]
fn an_unchanged_fabric_keeps_its_map_at_a_bounded_cost() {
    for kinds in [Xbars::Plain, Xbars::Tagged] {
        let plan = Plan::new("clos:hosts=128,ports=16", kinds);
        let map = &plan.fabric.map;
        let size = map.hosts.len() + map.xbars.iter().map(|xbar| usize::from(xbar.ports)).sum::<usize>();
        let mut lab = plan.start();
        let version = lab.agree_at(ms(2000));
        let before = lab.world.totals();
        for second in 3..=62 {
            assert_eq!(lab.agree_at(ms(second * 1000)), version);
            lab.world.check_load(64).unwrap();
        }
        let after = lab.world.totals();
        // These are 60 cycles of verification. A cycle takes at most three messages for each host and port;
        // replies are not counted.
        let cycle = (after.sent[Purpose::Verify] - before.sent[Purpose::Verify]) as usize / 60;
        assert!(cycle <= 3 * size, "{kinds:?}: {cycle} messages a cycle, {size} hosts and ports");
        assert_eq!(after.dropped, before.dropped);
        let explored = |sent: Tally<Purpose>| exploration(&sent) + sent[Purpose::Tree] + sent[Purpose::Piece];
        assert_eq!(explored(after.sent), explored(before.sent));
    }
}

/// What must not grow: events, messages of mapping, and dropped frames.
fn growth(lab: &Lab) -> (usize, u64, u64) {
    let totals = lab.world.totals();
    (
        lab.happenings().len(),
        exploration(&totals.sent) + totals.sent[Purpose::Tree] + totals.sent[Purpose::Piece],
        totals.dropped,
    )
}

#[test]
fn nothing_grows_in_a_day_of_idling() {
    for kinds in [Xbars::Tagged, Xbars::Plain] {
        // Verification is ten times slower than by default, so that the test of a day takes seconds. That
        // changes nothing about a single cycle.
        let plan = Plan::new("clos:hosts=16,ports=8", kinds);
        let mut lab = plan.agents(|settings| settings.verify_pause = millis(10_000)).start();
        let version = lab.agree_at(ms(2000));
        let before = growth(&lab);
        for hour in 1..=24 {
            assert_eq!(lab.agree_at(ms(hour * 3_600_000)), version);
            assert_eq!(growth(&lab), before, "{kinds:?}: in hour {hour}");
            lab.world.check_load(32).unwrap();
        }
    }
}

#[test]
fn nothing_grows_while_paths_are_in_use() {
    let mut lab = Plan::new("clos:hosts=16,ports=8", Xbars::Tagged).start();
    let version = lab.agree_at(ms(2000));
    let before = growth(&lab);
    let pairs: Vec<_> = (0..16).map(|i| (i, (i + 5) % 16)).collect();
    for minute in 1..=10 {
        run_watched(&mut lab, &pairs, ms(minute * 60_000));
        assert_eq!(lab.agree_at(ms(minute * 60_000)), version);
        assert_eq!(growth(&lab), before, "in minute {minute}");
        lab.world.check_load(32).unwrap();
    }
}
