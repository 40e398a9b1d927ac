//! What the kernel can is found without leaving anything behind.

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
    let abilities = namespace.enter(|| Abilities::try_out(&mut machine.kernel).unwrap());
    assert_eq!(printed(&machine), before);
    // The second trial finds the same, also where objects of ours are there.
    let again = machine.namespace.enter(|| Abilities::try_out(&mut machine.kernel).unwrap());
    assert_eq!(again, abilities);
    assert!(abilities.nexthops || !abilities.segments, "{abilities:?}");
}

#[test]
fn without_an_interface_to_try_it_on_the_error_says_what_to_do() {
    if !can_make_namespaces() {
        return;
    }
    let namespace = Namespace::new();
    let error = namespace.enter(|| Abilities::try_out(&mut Kernel::open().unwrap()).unwrap_err());
    assert!(matches!(error, KernelError::NoInterface { source: None }), "{error}");
}
