//! How fast a network is configured, and configured again.

use mapper_proto::Instant;
use mapper_sim::fabric::{End, Node, Xbars};
use mapper_sim::world::Until;

use crate::lab::{Lab, Plan, millis, ms};

const FABRICS: [(&str, &str); 3] = [
    ("ring:n=4,hosts=1", "xbar2:1"),
    ("clos:hosts=8,ports=4", "leaf1:3"),
    ("clos:hosts=128,ports=16", "leaf1:9"),
];

fn end(lab: &Lab, name: &str) -> End {
    let (node, port) = name.split_once(':').unwrap();
    End { node: lab.world.plant().node(node).unwrap(), port: port.parse().unwrap() }
}

/// When all are configured with a map of the fabric as it is.
fn settle(lab: &mut Lab) -> Instant {
    lab.settle_by(ms(20_000));
    lab.world.now()
}

#[test]
fn measure() {
    for (spec, cable) in FABRICS {
        for spread in [0, 100] {
            for incremental in [false, true] {
                let mut plan = Plan::new(spec, Xbars::Tagged)
                    .faults(&format!("at 3400ms cut {cable}\nat 6730ms mend {cable}"))
                    .agents(|s| s.map_incrementally = incremental);
                plan.options.power_on_spread = millis(spread);
                let mut lab = plan.start();
                lab.world.run(Until::After(millis(3399)), ms(3399)).unwrap();
                let first = lab.happenings().iter().filter(|h| h.what == "configured").map(|h| h.at).max().unwrap();
                lab.run_to(ms(3400));
                // The agent of a host at the xbar.
                let at = end(&lab, cable);
                let host = (0..lab.world.plant().hosts() as u32).find(|&h| lab.world.plant().name(Node::Host(h)) == "h2").unwrap();
                lab.world.cable_down(host, at, true, "carrier lost");
                lab.run_to(ms(6729));
                let cut: Vec<_> = lab.happenings().into_iter().filter(|h| h.at >= ms(3400)).collect();
                let again = cut.iter().filter(|h| h.what == "configured").map(|h| h.at).max();
                let mapped: Vec<_> = cut.iter().filter(|h| h.what == "mapped" || h.what == "mapping").map(|h| (h.at, h.what.clone(), h.detail.clone())).collect();
                println!("{spec} spread {spread} incr {incremental}: up {first:?}; again {again:?} {mapped:?}");
                lab.run_to(ms(6730));
                let t = settle(&mut lab);
                println!("   mended {t:?}");
                if spread == 100 { for h in cut.iter().take(60) { println!("      {:?} {} {} {}", h.at, h.place, h.what, h.detail); } }
            }
        }
    }
}
