//! How urgent frames of agents are for the queues of interfaces.

use crate::can_make_namespaces;
use crate::daemon::{Daemon, cable};
use crate::lab::wait_for;

/// Counts the frames of agents that leave by a port: first those that queues with classes send before all others, then the rest.
const COUNT: &str = "add table netdev urgent; \
                     add chain netdev urgent out { type filter hook egress device eth1 priority 0; }; \
                     add rule netdev urgent out ether type 0x88b5 meta priority 0:6 counter accept; \
                     add rule netdev urgent out ether type 0x88b5 counter";

#[test]
fn frames_of_agents_and_crossbars_are_marked_as_urgent() {
    if !can_make_namespaces() || !mapper_needs::programs(&["nft"]) {
        return;
    }
    for words in [&["agent", "--interface", "eth1"][..], &["node", "--ports", "eth1"]] {
        let namespace = cable();
        let counts = namespace.command("nft").arg(COUNT).status().unwrap().success();
        if !mapper_needs::or_skip(counts, "a kernel whose interfaces have hooks for what they send") {
            return;
        }
        let run_dir = tempfile::tempdir().unwrap();
        let words = [words, &["--run-dir", run_dir.path().to_str().unwrap()]].concat();
        let _daemon = Daemon::start(&namespace, &words, "the agent runs");
        let counted = || {
            let output = namespace.command_line("nft -j list chain netdev urgent out").output().unwrap();
            let chain: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let of_rule = |entry: &serde_json::Value| {
                let expressions = entry["rule"]["expr"].as_array()?;
                expressions.iter().find_map(|it| it["counter"]["packets"].as_u64())
            };
            chain["nftables"].as_array().into_iter().flatten().filter_map(of_rule).collect::<Vec<_>>()
        };
        let [urgent, others] = wait_for("frames leave by the port", || {
            <[u64; 2]>::try_from(counted()).ok().filter(|[urgent, others]| urgent + others >= 20)
        });
        assert_eq!((others, urgent >= 20), (0, true), "{words:?}");
    }
}
