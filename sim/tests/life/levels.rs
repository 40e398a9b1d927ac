//! A host starts again with another level than before, while all others still know it by the old level.

use std::cell::Cell;
use std::fmt::Write;

use mapper_proto::map::Rank;
use mapper_sim::fabric::Xbars;
use mapper_sim::world::Until;

use crate::keys::ring;
use crate::lab::{Plan, ms};

const RESTARTED_MS: u64 = 2000;
/// How long a child waits for a silent parent.
const SILENCE_MS: u64 = 3000;

/// A fabric whose host `host` starts with level `before`, and again with level `after`. All others have level
/// 1.
struct Case {
    spec: String,
    kinds: Xbars,
    host: u32,
    before: u8,
    after: u8,
    keys: bool,
}

impl Case {
    /// Runs the case. Returns how many milliseconds it took from the restart until all hosts held one map of
    /// the highest host, or what was wrong.
    fn settle(self) -> Result<u64, String> {
        let Self { spec, kinds, host, before, after, keys } = self;
        let starts = Cell::new(0);
        let mut plan = Plan::new(&spec, kinds)
            .levels(|other| if other == host { after } else { 1 })
            .faults(&format!("at {RESTARTED_MS}ms restart h{}", host + 1))
            .tune(move |other, settings| {
                settings.keys = keys.then(|| ring(0xaa, u64::from(other) + 100 * starts.get()));
                if other == host {
                    starts.set(starts.get() + 1);
                    settings.level = if starts.get() == 1 { before } else { after };
                }
            });
        plan.options.seed = 100 + u64::from(host);
        let case = format!("{spec} {kinds:?} keys {keys}: h{} from level {before} to {after}", host + 1);
        let mut lab = plan.start();
        lab.run_to(ms(RESTARTED_MS - 1));
        if !lab.world.verdict().configured {
            return Err(format!("{case}: not configured before"));
        }
        lab.world.run(Until::Configured, ms(RESTARTED_MS + 30_000)).unwrap();
        let settled_ms = lab.world.now().as_nanos() / 1_000_000 - RESTARTED_MS;
        let verdict = lab.world.verdict();
        let ranks = lab.statuses().into_iter().map(|status| status.rank);
        let highest = ranks.max().map(|Rank { mac, .. }| mac);
        let leader = lab.status("h1").version.mac;
        if !verdict.configured || Some(leader) != highest || settled_ms > SILENCE_MS {
            return Err(format!("{case}: led by {leader} after {settled_ms} ms {}", verdict.why_not));
        }
        Ok(settled_ms)
    }
}

fn fabrics() -> impl Iterator<Item = (u32, String)> {
    (2..=5).flat_map(|n| {
        let ring = (n > 2).then(|| (n, format!("ring:n={n},hosts=1,ports=4")));
        ring.into_iter().chain([(n, format!("clos:hosts={n},ports=4"))])
    })
}

#[test]
fn a_host_that_starts_again_with_another_level_holds_nobody_up() {
    let (mut failed, mut longest_ms) = (String::new(), 0);
    for (hosts, spec) in fabrics() {
        for kinds in [Xbars::Plain, Xbars::Tagged] {
            for host in 0..hosts {
                for (before, after) in [(5, 1), (5, 0), (5, 3), (1, 5), (0, 5), (1, 0), (0, 1)] {
                    for keys in [false, true] {
                        let case = Case { spec: spec.clone(), kinds, host, before, after, keys };
                        match case.settle() {
                            Ok(ms) => longest_ms = longest_ms.max(ms),
                            Err(why) => writeln!(failed, "{why}").unwrap(),
                        }
                    }
                }
            }
        }
    }
    println!("all settled within {longest_ms} ms");
    assert!(failed.is_empty(), "{failed}");
}
