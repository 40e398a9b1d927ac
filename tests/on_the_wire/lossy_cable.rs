//! A cable that carries packets and loses some of them, as one with a dirty plug does.

use crate::lab::wait_for;
use crate::pinging::Pinging;
use crate::ring::Ring;
use crate::{MAPPER, can_carry_ip};

/// Has a port of a machine lose a fifth of all that arrives.
const LOSE: &str = "add table netdev lossy; \
                    add chain netdev lossy port { type filter hook ingress device e2 priority 0; }; \
                    add rule netdev lossy port numgen random mod 5 == 0 drop";

/// Whether machines can have such ports.
fn can_lose() -> bool {
    can_carry_ip() && mapper_needs::programs(&["nft"])
}

fn loses_until_it_is_mended(data_path: &str) {
    let ring = Ring::new(3);
    // Agents are patient: on a busy machine none must hold a live cable for dead, and send over the bad one for that.
    let options = ["--data-path", data_path, "--liveness-misses", "10"];
    let _daemons: Vec<_> = (0..3).map(|at| ring.start_addressed(at, &options)).collect();
    wait_for("the first reaches the second in the way meant", || {
        let is_meant = ring.board(0, &[])["data_path"]["kind"] == data_path;
        (is_meant && ring.run(0, "ping -c 1 -W 1 10.1.0.2").status.success()).then_some(())
    });
    let nft = |rules: &str| assert!(ring.machines[1].command("nft").arg(rules).status().unwrap().success());
    let lossy = |at: usize| ring.board(at, &[])["lossy_cables"].as_array().cloned().unwrap_or_default();
    let pinging = Pinging::start(&ring.machines[0], "10.1.0.2");
    nft(LOSE);
    // Those at both ends send over it, and find it for themselves.
    for at in [0, 1] {
        let cable = wait_for(&format!("n{} goes around the cable", at + 1), || lossy(at).first().cloned());
        assert_eq!(cable["is_avoided"], true, "{cable}");
        assert!((10..=60).contains(&cable["lost_percent"].as_u64().unwrap()), "{cable}");
    }
    let board = ring.text(0, &format!("{MAPPER} board-info --run-dir {}", ring.run_dir(0)));
    assert!(board.contains("warning: the cable between port ") && board.contains(" loses "), "{board}");
    assert!(board.contains("Network is fully configured."), "{board}");
    let (sent, answered) = pinging.end();
    assert!(answered < sent, "the cable lost packets");
    // Which way around cannot deadlock depends on the addresses that machines happen to have, until there is a map without the
    // cable.
    for at in [0, 1] {
        let left_out = || lossy(at).first().filter(|cable| cable["is_left_out"] == true).cloned();
        wait_for(&format!("n{} has a map without the cable", at + 1), left_out);
    }
    let says_so = || {
        let warnings = ring.board(2, &[])["warnings"].to_string();
        warnings.contains("other hosts find that the cable between").then_some(())
    };
    wait_for("n3, which sends nothing over the cable, knows of it", says_so);
    wait_for("packets go around it", || {
        ring.run(0, "ping -c 40 -i 0.01 -W 1 10.1.0.2").status.success().then_some(())
    });
    let pinging = Pinging::start(&ring.machines[0], "10.1.0.2");
    nft("delete table netdev lossy");
    for at in [0, 1] {
        wait_for(&format!("n{} uses the cable again", at + 1), || lossy(at).is_empty().then_some(()));
    }
    let (sent, answered) = pinging.end();
    assert!(sent > 100 && sent == answered, "{answered} of {sent}");
}

#[test]
fn packets_by_kernels_go_around_a_cable_that_loses_some_until_it_is_mended() {
    if can_lose() {
        loses_until_it_is_mended("srv6");
    }
}

#[test]
fn packets_by_agents_go_around_a_cable_that_loses_some_until_it_is_mended() {
    if can_lose() {
        loses_until_it_is_mended("tap");
    }
}
