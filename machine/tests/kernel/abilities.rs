//! What the kernel can is found without leaving anything behind.

use mapper_fib::Change;
use mapper_machine::kernel::{Abilities, Kernel, KernelError};

use crate::can_make_namespaces;
use crate::machines::{Machine, settled};
use crate::namespace::Namespace;
use crate::read_back::printed;

#[test]
fn trying_what_the_kernel_can_leaves_nothing_behind() {
    if !can_make_namespaces() {
        return;
    }
    let mut machine = Machine::new(1);
    settled(&machine);
    let before = printed(&machine);
    let namespace = &machine.namespace;
    let abilities = namespace.enter(|| Abilities::try_out(&mut machine.kernel, true).unwrap());
    assert_eq!(printed(&machine), before);
    // The second trial finds the same, also where objects of ours are there.
    let again = machine.namespace.enter(|| Abilities::try_out(&mut machine.kernel, true).unwrap());
    assert_eq!(again, abilities);
    assert!(abilities.nexthops || !abilities.segments, "{abilities:?}");
}

#[test]
fn trying_what_the_kernel_can_makes_no_rule_of_ipv4_that_would_slow_all_its_packets() {
    if !can_make_namespaces() {
        return;
    }
    let mut machine = Machine::new(1);
    settled(&machine);
    let Machine { namespace, kernel, .. } = &mut machine;
    // Until there is a rule, the kernel keeps the machine's own addresses and all other routes of IPv4 in one table.
    let is_one_table = || {
        let all = namespace.command_line("cat /proc/net/fib_trie").output().unwrap().stdout;
        let all = String::from_utf8(all).unwrap();
        let (main, _) = all.split_once("Local:").unwrap();
        main.contains("host LOCAL")
    };
    let abilities = namespace.enter(|| Abilities::try_out(kernel, false).unwrap());
    assert!(!abilities.segments && !abilities.marks, "{abilities:?}");
    assert!(is_one_table());
    let abilities = namespace.enter(|| Abilities::try_out(kernel, true).unwrap());
    assert!(is_one_table(), "{abilities:?}");
    namespace.ip("-4 rule add fwmark 7 lookup 77");
    assert!(!is_one_table(), "a rule parts them");
}

#[test]
fn without_an_interface_to_try_it_on_the_error_says_what_to_do() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    let error = namespace.enter(|| Abilities::try_out(&mut Kernel::open().unwrap(), true).unwrap_err());
    assert!(matches!(error, KernelError::NoInterface { source: None }), "{error}");
}

#[test]
fn a_second_daemon_is_told_that_another_has_the_kernel() {
    if !can_make_namespaces() {
        return;
    }
    let (mut machine, other) = (Machine::new(1), Machine::new(2));
    machine.cable("e0", &other, "e0");
    let refused = machine.kernel.apply(&[Change::PutMark(1380)]);
    assert!(refused.is_empty(), "{refused:?}");
    let try_out = || Abilities::try_out(&mut Kernel::open().unwrap(), true);
    let error = machine.namespace.enter(|| try_out().unwrap_err());
    assert!(matches!(error, KernelError::Owned { .. }), "{error}");
    machine.kernel.apply(&[Change::RemoveMark]);
    assert!(machine.namespace.enter(|| try_out().is_ok()));
}
