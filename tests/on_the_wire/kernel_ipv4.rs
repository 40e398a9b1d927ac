//! Packets of IPv4 through the kernels where something on the way drops these alone, as tools for containers set it up.

use crate::can_carry_ip;
use crate::kernel_path::pings;
use crate::lab::wait_for;
use crate::ring::Ring;

/// The interface by which a machine's kernel sends packets to this address.
fn leaves_by(ring: &Ring, at: usize, to: &str) -> String {
    let told = ring.text(at, &format!("ip route get {to}"));
    let mut words = told.split_whitespace().skip_while(|&word| word != "dev").skip(1);
    words.next().unwrap_or_default().to_owned()
}

#[test]
fn packets_of_ipv4_go_around_kernels_that_drop_them_or_by_the_tap_interface_and_those_of_ipv6_stay() {
    if !can_carry_ip() || !mapper_needs::programs(&["iptables"]) {
        return;
    }
    let ring = Ring::new(4);
    let _daemons = ring.start_all(&["--data-path", "routes"], "routes");
    let goes_by_kernel = || leaves_by(&ring, 0, "10.1.0.3").starts_with('e').then_some(());
    wait_for("packets of IPv4 go by the kernel", goes_by_kernel);
    let all_arrive = |why: &str| wait_for(why, || (pings(&ring.machines[0], "10.1.0.3") == 20).then_some(()));
    all_arrive("pings pass");
    let set = |at: usize, policy: &str| {
        assert!(ring.run(at, &format!("iptables -P FORWARD {policy}")).status.success());
    };
    let without_v4 = || ring.board(0, &[])["data_path"]["without_v4"].as_array().map_or(0, Vec::len);
    // Each way to the machine opposite leads through one of them; which are in the tables depends on the addresses.
    set(1, "DROP");
    all_arrive("packets go around the machine that drops them");
    set(3, "DROP");
    wait_for("the board says so", || (without_v4() == 1).then_some(()));
    all_arrive("packets go by the tap interface");
    assert_eq!(leaves_by(&ring, 0, "10.1.0.3"), "fabric0");
    ring.wait_for_kind(0, "routes");
    let warnings = ring.board(0, &[])["warnings"].to_string();
    assert!(warnings.contains("packets of IPv4 to n3 ("), "{warnings}");
    for at in [1, 3] {
        set(at, "ACCEPT");
    }
    wait_for("a way is there again", goes_by_kernel);
    assert_eq!(without_v4(), 0);
    all_arrive("pings pass again");
}

#[test]
fn a_machine_that_takes_no_ipv4_in_by_its_ports_is_sent_it_by_the_tap_interface() {
    if !can_carry_ip() || !mapper_needs::programs(&["iptables"]) {
        return;
    }
    let ring = Ring::new(3);
    let _daemons = ring.start_all(&[], "srv6");
    let leaves_by_kernel = || (leaves_by(&ring, 0, "10.1.0.2") != "fabric0").then_some(());
    wait_for("packets of IPv4 go by the kernel", leaves_by_kernel);
    for port in ["e1", "e2"] {
        assert!(ring.run(1, &format!("iptables -I INPUT -i {port} -j DROP")).status.success());
    }
    wait_for("pings pass by the tap interface", || {
        (pings(&ring.machines[0], "10.1.0.2") == 20).then_some(())
    });
    assert_eq!(leaves_by(&ring, 0, "10.1.0.2"), "fabric0");
    ring.wait_for_kind(0, "srv6");
}
