//! A fabric that does not change is left in peace.

use mapper_sim::fabric::Xbars;

use crate::lab::{Plan, ms};

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
        // 60 cycles; replies are not counted. A host and a port cost some messages each.
        let cycle = (after.sent.verify - before.sent.verify) as usize / 60;
        assert!(cycle <= 3 * size, "{kinds:?}: {cycle} messages a cycle, {size} hosts and ports");
        assert_eq!(after.dropped, before.dropped);
        let explored =
            |sent: mapper_proto::agent::Sent| crate::lab::exploration(&sent) + sent.tree + sent.pieces;
        assert_eq!(explored(after.sent), explored(before.sent));
    }
}
