//! What keeps kernels from carrying packets though cables and kernels are whole, and what is said of it.

use crate::can_carry_ip;
use crate::kernel_path::wait_for_pings;
use crate::lab::wait_for;
use crate::ring::Ring;

#[test]
fn hosts_whose_addresses_are_of_two_networks_are_told_so_on_both_boards() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(2);
    let prefixes = ["fd01::/64", "fd02::/64"];
    let _daemons: Vec<_> = (0..2).map(|at| ring.start(at, &["--fabric-prefix", prefixes[at]])).collect();
    for (at, [own, other]) in [["fd01::", "fd02::"], ["fd02::", "fd01::"]].into_iter().enumerate() {
        let said = format!(
            "the other host's IPv6 addresses are of the network {other}/64, and this host's of {own}/64, so that neither \
             has a route to the other: start all hosts with the same --fabric-prefix"
        );
        wait_for(&format!("n{} says so", at + 1), || {
            let board =
                ring.text(at, &format!("{} board-info --run-dir {}", crate::MAPPER, ring.run_dir(at)));
            board.contains(&said).then_some(())
        });
    }
}

#[test]
fn a_port_whose_mtu_is_too_small_for_ipv6_is_named_and_left_out_until_it_is_raised() {
    if !can_carry_ip() {
        return;
    }
    let ring = Ring::new(3);
    let mut daemons = ring.start_all(&["--data-path", "srv6", "--log-level", "info"], "srv6");
    // Linux switches IPv6 off at such an interface, and takes its routes away.
    ring.machines[0].ip("link set e1 mtu 1200");
    daemons[0].read_log_until("the MTU is too small for IPv6 at e1 (1200 bytes)");
    let leaves_by_e1 = || ring.text(0, "ip nexthop show proto 109").contains("dev e1");
    // No proved route leads to the second machine the other way around.
    wait_for("packets to the second machine go by the tap interface", || {
        let path = &ring.board(0, &[])["data_path"];
        (path["kind"] == "srv6" && path["installed"] == 1 && !leaves_by_e1()).then_some(())
    });
    wait_for_pings(&ring.machines[0], "10.1.0.2");
    ring.machines[0].ip("link set e1 mtu 1500");
    wait_for("packets leave by the port", || leaves_by_e1().then_some(()));
    wait_for_pings(&ring.machines[0], "10.1.0.2");
}
