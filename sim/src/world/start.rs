//! How the software of a host starts, and takes the place of what ran there before.

use mapper_host::{EndOnceMapped, UserFrames};
use mapper_proto::agent::Settings;

use super::World;
use super::options::derive_seed;
use crate::node::{SimulatedHost, Start};

/// Names the stream of seeds for agents.
const AGENTS: u64 = 1;
/// Names the stream of seeds for the tokens of users' frames.
const SECRETS: u64 = 5;

impl World {
    /// Starts the first agent of a host. Where a crossbar starts with it, this may join users of other hosts; where
    /// another has its address, users can reach neither from now on.
    pub(super) fn power_on(&mut self, host: u32) {
        self.start(host);
        let mac = self.mac(host);
        let is_shared = || (0..self.hosts.len() as u32).any(|other| other != host && self.mac(other) == mac);
        if self.hosts[host as usize].own_crossbar.is_some() || is_shared() {
            self.part_users();
            self.note_disturbances();
        }
    }

    /// Starts an honest agent at a host, in place of what is there.
    pub(super) fn start(&mut self, host: u32) {
        self.renew_users_of(host);
        let seed = self.next_seed(host);
        let settings = self.settings_at_start(host, seed);
        let secret = derive_seed(seed, SECRETS, 0);
        let name = self.announced_name(host);
        let slot = &mut self.hosts[host as usize];
        let link_mtu = slot.mtu_bytes;
        slot.mtu_at_start_bytes = link_mtu;
        let users = self.options.traffic.map(|_| UserFrames { link_mtu: link_mtu.into(), secret });
        let start = Start { host, settings, routes: slot.routes, users, name, seed, now: self.now };
        let node = self.spawn.spawn(start);
        self.occupy(host, Some(node));
        if !self.hosts[host as usize].more_names.is_empty() {
            self.say_names(host);
        }
        self.show_carriers(host);
        self.tell_own_cables(host);
        self.begin_with_kernel(host, seed);
    }

    /// The seed of the agent that starts now at a host.
    pub(super) fn next_seed(&mut self, host: u32) -> u64 {
        let slot = &mut self.hosts[host as usize];
        let seed = derive_seed(derive_seed(self.options.seed, AGENTS, u64::from(host)), slot.starts, 0);
        slot.starts += 1;
        seed
    }

    /// The settings of an agent that starts at a host now with this seed.
    pub(super) fn settings_at_start(&self, host: u32, seed: u64) -> Settings {
        let mut settings = self.settings_of(host, seed);
        if self.options.traffic.is_some() {
            settings.mtu = self.link_mtu(host);
        }
        settings
    }

    /// Has all hosts that run end once mapping is complete everywhere, as [`EndOnceMapped`] says.
    pub fn end_once_mapped(&mut self, how: EndOnceMapped) {
        self.keeps_kernel_routes = how.keeps_kernel_routes;
        for host in &mut self.hosts {
            if let Some(real) = host.node.as_mut().and_then(|node| node.host_mut()) {
                real.end_once_mapped(self.now, how);
            }
        }
    }

    /// Ends the agent of a host that has mapped once.
    pub(super) fn end_agent(&mut self, host: u32) {
        if !self.keeps_kernel_routes {
            self.flush_kernel(host);
        }
        self.occupy(host, None);
    }

    /// Puts another agent, or none, in place of the one at a host. Its routes go with it.
    pub(super) fn occupy(&mut self, host: u32, node: Option<Box<dyn SimulatedHost>>) {
        let slot = &mut self.hosts[host as usize];
        if let Some(status) = slot.node.as_ref().and_then(|node| node.status()) {
            self.retired.add(&status);
        }
        let (xbar, runs) = (slot.own_crossbar, node.as_ref().is_some_and(|node| node.runs_crossbar()));
        slot.node = node;
        self.waiting_for_power -= usize::from(!slot.powered_on);
        slot.powered_on = true;
        slot.pending = None;
        slot.configured = None;
        slot.mapped = None;
        slot.timeouts_now = 0;
        for flight in slot.waiting.drain(..) {
            if let Some(flight) = self.flights.take(flight) {
                self.flights.recycle(flight.payload);
            }
        }
        self.matches.occupancy += 1;
        if let Some(xbar) = xbar {
            self.plant.set_running(xbar, runs);
        }
        self.worth_checking = true;
        self.drain(host);
    }
}
