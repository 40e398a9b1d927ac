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
    let warnings = |at: usize| ring.board(at, &[])["warnings"].to_string();
    let pinging = Pinging::start(&ring.machines[0], "10.1.0.2");
    nft(LOSE);
    // The hosts at both ends send over the cable, and at least one of them finds for itself that it loses frames.
    let cable = wait_for("n1 or n2 goes around the cable", || {
        [0, 1].into_iter().flat_map(lossy).find(|cable| cable["is_avoided"] == true)
    });
    assert!((10..=60).contains(&cable["lost_percent"].as_u64().unwrap()), "{cable}");
    // Which way around cannot deadlock depends on the addresses that machines happen to have, until there is a map without the
    // cable.
    for at in 0..3 {
        wait_for(&format!("n{} has a map without the cable", at + 1), || {
            let found = lossy(at).iter().any(|cable| cable["is_left_out"] == true);
            let is_named = found || warnings(at).contains("other hosts find that the cable between");
            (is_named && ring.board(at, &[])["left_out_cables"] == 1).then_some(())
        });
    }
    wait_for("the board says so", || {
        let board = ring.text(0, &format!("{MAPPER} board-info --run-dir {}", ring.run_dir(0)));
        let says = [
            "the cable between port ",
            " loses ",
            "routes of all hosts go around it",
            "Network is fully configured.",
        ];
        says.iter().all(|words| board.contains(words)).then_some(())
    });
    let (sent, answered) = pinging.end();
    assert!(answered < sent, "the cable lost packets");
    wait_for("forty packets go around it, of which the cable would lose some", || {
        let said = ring.run(0, "ping -q -c 40 -i 0.01 -W 1 10.1.0.2").stdout;
        String::from_utf8(said).unwrap().contains(" 40 received").then_some(())
    });
    let pinging = Pinging::start(&ring.machines[0], "10.1.0.2");
    nft("delete table netdev lossy");
    for at in 0..3 {
        wait_for(&format!("n{} uses the cable again", at + 1), || {
            (lossy(at).is_empty() && !warnings(at).contains(" loses ")).then_some(())
        });
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
