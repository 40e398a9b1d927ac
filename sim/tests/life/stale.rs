//! Of three hosts A, B and C, the agent of C dies and B reboots. In networks of the GM mapper, A and C then
//! kept routes to all hosts while B had one to A only, and nothing said so.

use mapper_sim::fabric::Xbars;

use crate::lab::{Plan, ms};

#[test]
fn a_dead_agent_is_left_out_though_another_reboots() {
    // Each of the three hosts is in turn the one that dies, and one of them is the highest mapper.
    for (a, b, c) in [("h1", "h2", "h3"), ("h3", "h1", "h2"), ("h2", "h3", "h1")] {
        for kinds in [Xbars::Plain, Xbars::Tagged] {
            for reboot_ms in [2000, 2001, 2200, 3100] {
                let faults = format!("at 2s kill {c}\nat {reboot_ms}ms restart {b}\nat 8500ms restart {c}\n");
                let mut lab = Plan::new("clos:hosts=3,ports=8", kinds).faults(&faults).start();
                lab.agree_at(ms(1999));
                lab.agree_at(ms(8499));
                for live in [a, b] {
                    assert!(lab.shows(live, a) && lab.shows(live, b) && !lab.shows(live, c));
                }
                lab.agree_at(ms(13_500));
                for live in [a, b, c] {
                    assert!(lab.shows(live, a) && lab.shows(live, b) && lab.shows(live, c));
                    assert!(lab.status(live).network_complete);
                    assert!(lab.status(live).unreachable.is_empty(), "{:?}", lab.status(live));
                }
            }
        }
    }
}

#[test]
fn no_map_says_for_long_that_a_dead_agent_is_fine() {
    let faults = "at 2s kill h3\nat 2100ms restart h2\n";
    let mut lab = Plan::new("clos:hosts=3,ports=8", Xbars::Plain).faults(faults).start();
    for at_ms in (4000..8000).step_by(50) {
        lab.run_to(ms(at_ms));
        for live in ["h1", "h2"] {
            let status = lab.status(live);
            let claims_all = status.network_complete && status.unreachable.is_empty();
            assert!(!(lab.shows(live, "h3") && claims_all), "{live} at {at_ms} ms: {status:?}");
        }
    }
}
