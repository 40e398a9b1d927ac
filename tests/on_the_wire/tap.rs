//! Tests of the tap interface, each in a namespace of its own.

use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::link::held_address::HeldAddress;
use mapper_machine::link::interface::Interface;
use mapper_machine::link::tap::{Tap, TapError};
use mapper_proto::Mac;

use crate::can_make_taps;
use crate::lab::wait_for;
use crate::namespace::Namespace;

const MAC: Mac = Mac::from_position(7);

/// Runs `inside` with a tokio runtime in a new namespace, if this machine lets the test make one.
fn in_namespace(inside: impl FnOnce(&Namespace) + Send) {
    if !can_make_taps() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link set lo up");
    namespace.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { inside(&namespace) });
    });
}

#[test]
fn an_interface_is_made_as_asked_for_and_gone_with_its_owner() {
    in_namespace(|namespace| {
        let tap = Tap::create("t0", MAC, 1417).unwrap();
        let interface = Interface::look_up(tap.name()).unwrap().unwrap();
        assert_eq!((interface.mac, interface.mtu), (MAC, 1417));
        assert!(interface.up && interface.carrier && interface.ethernet);
        assert_eq!(tap.refused(), 0);
        namespace.ip("link set t0 down");
        tap.set_mtu(8917).unwrap();
        let interface = Interface::look_up(tap.name()).unwrap().unwrap();
        assert_eq!((interface.mac, interface.mtu, interface.up), (MAC, 8917, false), "all else stays");
        drop(tap);
        // A process that another test is starting just now has a copy of the descriptor until it executes its program,
        // and the kernel takes the interface away with the last copy.
        wait_for("the interface to be gone", || Interface::look_up("t0").unwrap().is_none().then_some(()));
    });
}

#[test]
fn an_address_that_somebody_added_stays_when_the_one_before_it_is_removed() {
    in_namespace(|namespace| {
        let tap = Tap::create("t0", MAC, 1417).unwrap();
        let own: InterfaceAddress = "10.1.0.3/24".parse().unwrap();
        tap.add_address(own).unwrap();
        namespace.ip("address add 10.1.0.77/24 dev t0");
        tap.remove_address(own).unwrap();
        let left: Vec<_> =
            HeldAddress::all().unwrap().into_iter().filter(|held| held.index == tap.index()).collect();
        let v4: Vec<_> =
            left.iter().map(|held| held.address.to_string()).filter(|text| !text.contains(':')).collect();
        assert_eq!(v4, ["10.1.0.77/24"]);
    });
}

#[test]
fn an_address_of_ipv6_is_had_where_the_machine_has_it_switched_off_at_all_interfaces_that_come() {
    in_namespace(|namespace| {
        let disable = |of: &str| {
            let line = format!("sysctl -qw net.ipv6.conf.{of}.disable_ipv6=1");
            assert!(namespace.command_line(&line).status().unwrap().success());
        };
        disable("default");
        let tap = Tap::create("t0", MAC, 1417).unwrap();
        let own: InterfaceAddress = "fd00::7/64".parse().unwrap();
        tap.add_address(own).unwrap();
        let has_it = || HeldAddress::all().unwrap().iter().any(|held| held.address == own.into());
        assert!(has_it());
        // The address can also be given where somebody has switched IPv6 off later, which takes it away.
        disable("all");
        assert!(!has_it());
        tap.add_address(own).unwrap();
        assert!(has_it());
    });
}

#[test]
fn a_name_that_cannot_be_had_is_refused_with_why() {
    in_namespace(|_| {
        assert!(matches!(Tap::create("lo", MAC, 1417), Err(TapError::NameTaken { .. })));
        assert!(matches!(Tap::create("a/b", MAC, 1417), Err(TapError::BadName { .. })));
        let _owner = Tap::create("t0", MAC, 1417).unwrap();
        assert!(matches!(Tap::create("t0", MAC, 1417), Err(TapError::Busy { .. })));
    });
}
