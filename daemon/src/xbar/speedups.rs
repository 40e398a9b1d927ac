//! What makes packets by segments faster and changes nothing else of them: they go on at the ports before routes are
//! looked up, and their outer headers come from an address that the kernel need not choose for each.

use std::net::Ipv6Addr;

use mapper_fabric::wording::with_causes;
use mapper_fib::shortcuts::Shortcuts;
use mapper_fib::{Change, Objects, Table};
use mapper_machine::kernel::{Kernel, KernelError};
use tracing::debug;

/// What is done so that packets by segments are faster. Where the kernel refuses it, they go all the same.
#[derive(Debug, Default)]
pub(super) struct Speedups {
    /// What the kernel holds for packets that go on by segments, if shortcuts may be made of it.
    crossbar: Option<Objects>,
    /// The address that outer headers are to come from, once it is known.
    outer_source: Option<Ipv6Addr>,
}

impl Speedups {
    /// None yet. `shortcuts` says whether there may be some.
    pub(super) fn new(shortcuts: bool) -> Self {
        Self { crossbar: shortcuts.then(Objects::default), outer_source: None }
    }

    /// Takes in changes that were carried out.
    pub(super) fn follow(&mut self, kernel: &mut Kernel, changes: &[Change]) {
        let Some(crossbar) = &mut self.crossbar else { return };
        let mut is_other = false;
        for change in changes.iter().filter(|change| is_of_crossbar(change)) {
            crossbar.apply(change);
            is_other = true;
        }
        if is_other {
            self.set_shortcuts(kernel);
        }
    }

    /// Has outer headers come from this address of the machine, unless somebody else has set one.
    pub(super) fn keep_outer_source(&mut self, kernel: &mut Kernel, own: Ipv6Addr) {
        if self.outer_source != Some(own) {
            self.release_outer_source(kernel);
            self.outer_source = Some(own);
            self.set_outer_source(kernel);
        }
    }

    /// Has all as it was to be, whoever changed it: a firewall that came ends the shortcuts.
    pub(super) fn recheck(&mut self, kernel: &mut Kernel) {
        self.set_outer_source(kernel);
        self.set_shortcuts(kernel);
    }

    /// Has the kernel choose the address again, if it is this one's.
    pub(super) fn release_outer_source(&mut self, kernel: &mut Kernel) {
        tell(self.outer_source.take().map(|own| kernel.release_outer_source(own)));
    }

    fn set_outer_source(&self, kernel: &mut Kernel) {
        tell(self.outer_source.map(|own| kernel.keep_outer_source(own)));
    }

    fn set_shortcuts(&self, kernel: &mut Kernel) {
        tell(self.crossbar.as_ref().map(|crossbar| kernel.set_shortcuts(&Shortcuts::of(crossbar))));
    }
}

/// Nobody needs to do anything about a refusal.
fn tell(done: Option<Result<(), KernelError>>) {
    if let Some(Err(error)) = done {
        debug!("packets by segments are slower than they could be: {}", with_causes(&error));
    }
}

/// Whether a change is about how packets by segments go on.
const fn is_of_crossbar(change: &Change) -> bool {
    match change {
        Change::PutNeighbour { .. }
        | Change::RemoveNeighbour { .. }
        | Change::PutRule(_)
        | Change::RemoveRule(_) => true,
        Change::PutRoute(key, _) | Change::RemoveRoute(key) => matches!(key.table, Table::Segments),
        _ => false,
    }
}
