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

#[test]
fn addresses_of_ipv4_that_are_in_no_network_in_common_go_through_the_kernels() {
    if !can_carry_ip() {
        return;
    }
    for data_path in ["srv6", "routes"] {
        let ring = Ring::new(3);
        let start = |at: usize| {
            let address = format!("10.3.0.{}/32", at + 1);
            ring.start(at, &["--data-path", data_path, "--address", &address])
        };
        let _daemons: Vec<_> = (0..3).map(start).collect();
        wait_for("packets of IPv4 go by the kernel", || {
            leaves_by(&ring, 0, "10.3.0.2").starts_with('e').then_some(())
        });
        wait_for("pings pass", || (pings(&ring.machines[0], "10.3.0.3") == 20).then_some(()));
        let told = ring.text(0, "ip route get 10.3.0.3");
        assert!(told.contains("src 10.3.0.1"), "{told}");
        assert_eq!(ring.board(0, &[])["warnings"].to_string(), "[]");
    }
}

#[test]
fn ports_with_addresses_of_their_own_are_reached_at_these_and_at_those_of_the_fabric() {
    if !can_carry_ip() {
        return;
    }
    for options in [&[][..], &["--address", "10.1.0.0/24"]] {
        let ring = Ring::new(3);
        for (at, machine) in ring.machines.iter().enumerate() {
            for port in [1, 2] {
                machine.ip(&format!("address add 10.9.{}.{port}/24 dev e{port}", at + 1));
            }
        }
        let _daemons: Vec<_> =
            (0..3).map(|at| ring.start(at, &[&["--data-path", "routes"], options].concat())).collect();
        for to in ["10.9.2.1", "10.9.2.2", "10.9.3.1"] {
            wait_for("packets to ports go by the kernel", || {
                leaves_by(&ring, 0, to).starts_with('e').then_some(())
            });
            wait_for("pings pass", || (pings(&ring.machines[0], to) == 20).then_some(()));
        }
        let picked = wait_for("the tap interface has its addresses", || {
            let own = ring.on_tap(1);
            (own.len() == options.len() / 2).then_some(own)
        });
        for address in picked {
            let ip = address.split('/').next().unwrap();
            wait_for("packets to the fabric's address go by the kernel", || {
                leaves_by(&ring, 0, ip).starts_with('e').then_some(())
            });
        }
        assert_eq!(ring.board(0, &[])["data_path"]["without_v4"].as_array().map_or(0, Vec::len), 0);
    }
}

#[test]
fn probes_that_the_own_machine_forbids_are_named_as_such() {
    if !can_carry_ip() || !mapper_needs::programs(&["iptables"]) {
        return;
    }
    let ring = Ring::new(2);
    let _daemons = ring.start_all(&[], "srv6");
    wait_for("packets of IPv4 go by the kernel", || {
        (leaves_by(&ring, 0, "10.1.0.2") != "fabric0").then_some(())
    });
    let is_told = || {
        let warnings = ring.board(0, &[])["warnings"].to_string();
        warnings.contains("forbids this process to send probes of IPv4 through").then_some(())
    };
    assert_eq!(is_told(), None);
    assert!(ring.run(0, "iptables -A OUTPUT -p udp --dport 34997 -j DROP").status.success());
    wait_for("the board says so", is_told);
    assert!(ring.run(0, "iptables -F OUTPUT").status.success());
    wait_for("it says so no more", || is_told().is_none().then_some(()));
}
