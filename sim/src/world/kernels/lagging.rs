//! Kernels that nobody tells of what changes at their ports.

use mapper_fib::crossbar::CabledPort;
use mapper_fib::segments::NEIGHBOUR;

use super::super::World;

impl World {
    /// Whether a cable carries that leads from a crossbar whose node has no agent, and that the node's kernel was not told
    /// of, so that it forwards nothing there. An agent that runs tells its kernel at once.
    pub(in crate::world) fn some_kernel_lags(&self) -> bool {
        let lags = |host: &u32| {
            let neighbours = &self.kernels.hosts[*host as usize].objects.neighbours;
            let is_known = |CabledPort { interface, neighbour, .. }: &CabledPort| {
                neighbours.get(&(*interface, NEIGHBOUR)) == Some(neighbour)
            };
            self.kernel_ports(*host).iter().any(|port| !is_known(&port.cabled))
        };
        (0..self.kernels.hosts.len() as u32).filter(|&host| !self.is_live(host)).any(|host| lags(&host))
    }
}
