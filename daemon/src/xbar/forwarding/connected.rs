//! Routes to the networks of the tap interface's own addresses, by which packets go that no route of ours takes.

use std::collections::BTreeSet;

use mapper_fabric::wording::with_causes;
use mapper_fib::RouteKey;
use mapper_machine::kernel::{Connected, Kernel, Notice};
use mapper_machine::link::interface::Interface;
use tracing::warn;

/// The routes to the networks of the addresses that the tap interface has. The kernel makes them with the addresses, and not
/// again when somebody flushes them; without them nobody is reached whose packets the kernels do not carry.
#[derive(Debug, Default)]
pub(super) struct ConnectedRoutes {
    /// The number of the tap interface, once it is known.
    interface: Option<u32>,
    /// The routes of the addresses that it had last.
    keys: BTreeSet<RouteKey>,
}

impl ConnectedRoutes {
    /// Has these of this interface kept from now on.
    pub(super) const fn keep_of(&mut self, interface: u32) {
        self.interface = Some(interface);
    }

    /// Whether one of them may have been touched.
    pub(super) fn are_concerned(&self, notice: &Notice) -> bool {
        matches!(notice, Notice::Route(key) if self.keys.contains(key))
    }

    /// Puts those back that are not there any more. Those of an address that was taken away, too, stay away. Returns how many
    /// were put back, and what keeps others from it.
    pub(super) fn put_right(&mut self, kernel: &mut Kernel) -> (u64, Vec<String>) {
        let Some(interface) = self.interface.filter(|&index| has_such_routes(index)) else {
            return (0, Vec::new());
        };
        let (all, missing) = match kernel.connected(interface) {
            Ok(found) => found,
            Err(error) => return (0, vec![with_causes(&error)]),
        };
        self.keys = all.iter().map(Connected::key).collect();
        let (mut put_back, mut troubles) = (0, Vec::new());
        for connected in missing {
            match kernel.put_connected(&connected) {
                Ok(()) => {
                    warn!("the tap interface's own route to {} was gone: it is there again", connected.to);
                    put_back += 1;
                }
                Err(error) => troubles.push(format!(
                    "the tap interface's own route to {} is gone, so hosts there are not reached unless the kernels carry \
                     their packets, and it cannot be put back: {}",
                    connected.to,
                    with_causes(&error)
                )),
            }
        }
        (put_back, troubles)
    }
}

/// Whether the kernel gives this interface routes in the table `main`: not while it is down, nor as a part of another one.
fn has_such_routes(index: u32) -> bool {
    let is_so =
        |interface: &Interface| interface.index == index && interface.up && interface.master.is_none();
    Interface::all().is_ok_and(|all| all.iter().any(is_so))
}
