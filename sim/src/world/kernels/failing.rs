//! Which kernels do not forward packets though maps and hellos say nothing of it.

use std::time::Duration;

use mapper_host::kernel_path::{V4_LEFT_WITHIN, WAY_LEFT_WITHIN};

use super::{Firewall, Kernel};
use crate::world::World;

impl World {
    /// How long it may take until hosts find by probes, which are not answered, that some kernel does not forward now, or no packets
    /// of IPv4: one behind a firewall, one of which somebody has emptied the tables, as long as its host has not put that
    /// right, that of a node whose host is cabled to another crossbar than when it started, and, once there was such a node, one
    /// that goes by what an earlier run has left until its host has tried its own ways. Zero if there is none. As long
    /// as there is one, each change of routes may lead there again.
    pub fn kernels_are_left_within(&self) -> Duration {
        let of_host = |host: u32| {
            let kernel = &self.kernels.hosts[host as usize];
            let is_away = kernel.home != self.plant.own_xbar(host);
            // What an earlier run left may lead to where a node was before.
            let is_of_before = kernel.has_left && self.kernels.was_one_away;
            let of_ways =
                if is_away || kernel.is_emptied || is_of_before { WAY_LEFT_WITHIN } else { Duration::ZERO };
            let of_firewall = match kernel.firewall {
                Firewall::DropsAll => WAY_LEFT_WITHIN,
                // Users' packets are of IPv4.
                Firewall::DropsV4 => V4_LEFT_WITHIN,
                Firewall::Open => Duration::ZERO,
            };
            of_ways.max(of_firewall)
        };
        // Nothing comes to a kernel whose crossbar has ended, and all see that.
        let running = (0..self.kernels.hosts.len() as u32).filter(|&host| self.runs_crossbar(host));
        running.map(of_host).max().unwrap_or_default()
    }

    /// Notes, after a fault, whether some host is cabled to another crossbar than when it started.
    pub(in crate::world) fn note_kernels_away(&mut self) {
        let is_away = |(host, kernel): (u32, &Kernel)| {
            kernel.home.is_some_and(|home| self.plant.own_xbar(host) != Some(home))
        };
        let is_one_away = (0..).zip(&self.kernels.hosts).any(is_away);
        self.kernels.was_one_away |= is_one_away;
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use mapper_proto::Instant;

    use super::*;
    use crate::fabric::Xbars;
    use crate::setup::{FaultFile, Setup, UserSetup};
    use crate::world::Until;

    #[test]
    fn time_is_given_as_long_as_a_kernel_does_not_forward() {
        let users = UserSetup { rate: 40.0, partners: 2, from: None, flows: 1, broadcasts: false };
        let fabric = generate("ring:n=3,hosts=1,ports=5").unwrap();
        let elsewhere = format!("at 1800ms move h1 to {}:5", fabric.xbars[1].name);
        let lines = [
            "at 1100ms firewall h1",
            "at 1200ms firewall-v4 h2",
            "at 1300ms open h1",
            "at 1400ms open h2",
            "at 1500ms flush h1",
            &elsewhere,
            "at 1900ms restart h1",
            "at 2000ms firewall h2",
            "at 2100ms kill h2",
        ];
        let faults = FaultFile { name: "faults".to_owned(), text: lines.join("\n") };
        let setup = Setup {
            xbars: Xbars::Tagged,
            nodes: true,
            kernels: true,
            users: Some(users),
            faults,
            ..Setup::default()
        };
        let mut world = setup.world(&fabric).unwrap();
        let mut within = |ms: u64| {
            let time = Duration::from_millis(ms);
            world.run(Until::After(time), Instant::ZERO + time).unwrap();
            world.kernels_are_left_within()
        };
        assert_eq!([1050, 1150].map(&mut within), [Duration::ZERO, WAY_LEFT_WITHIN]);
        assert_eq!([1250, 1350].map(&mut within), [V4_LEFT_WITHIN.max(WAY_LEFT_WITHIN), V4_LEFT_WITHIN]);
        assert_eq!(within(1450), Duration::ZERO);
        assert_eq!(
            [1500, 1650].map(&mut within),
            [WAY_LEFT_WITHIN, Duration::ZERO],
            "its host puts that right"
        );
        assert_eq!([1850, 1950].map(&mut within), [WAY_LEFT_WITHIN, Duration::ZERO], "it has another home");
        assert_eq!([2050, 2150].map(&mut within), [WAY_LEFT_WITHIN, Duration::ZERO], "its crossbar ended");
    }
}
