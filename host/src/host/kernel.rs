//! Users' packets through the kernels: what the driver tells the host of its kernel, and has from it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mapper_fib::probe::{DATAGRAM_BYTES, Datagram};
use mapper_fib::takeover::Target;
use mapper_fib::{Change, NexthopId, Objects};
use mapper_proto::neighbours::Neighbour;
use mapper_proto::{Instant, IpNetworkAddress};

use super::Host;
use crate::event::HostEvent;
use crate::kernel_path::{
    Heard, KernelPath, KernelPathStatus, KernelProbe, KernelStart, PortInterface, needed_by, next_count_after,
};

impl Host {
    /// Has users' packets go through the kernels, as far as these can: see [`KernelPath`]. To be called only
    /// for a host that carries users' frames, as its packets go in frames where no kernel carries them.
    pub fn use_kernel(&mut self, now: Instant, kernel: KernelStart) {
        debug_assert!(self.data.is_some(), "a host without users' frames uses no kernel");
        let KernelStart { seed, tap, left, abilities, agent_port } = kernel;
        let max_hops = self.route_options.max_hops;
        let mut path = KernelPath::new(seed, left.first_free_number(), tap, max_hops);
        path.set_left(now, left);
        let went_by_destination = path.goes_by_destination();
        path.set_abilities(now, abilities, agent_port);
        let goes_by_destination = path.goes_by_destination();
        self.kernel = Some(path);
        self.soundings.use_kernel(seed);
        if !went_by_destination && goes_by_destination {
            self.route_newest();
        }
        let told = abilities.by_destination.told(agent_port.is_some());
        self.services.gossip_mut().set_by_destination(told);
        self.settle(now);
    }

    /// Takes in the interfaces at all ports of the host as they are now, and the neighbours whose hellos are heard there, by port.
    /// To be called now and then even if nothing has changed, as neighbours are given up that have been silent for long. Returns
    /// whether it is news.
    pub fn set_kernel_interfaces(
        &mut self,
        now: Instant,
        interfaces: &[PortInterface],
        heard: &BTreeMap<u8, Neighbour>,
    ) -> bool {
        let Some(kernel) = &mut self.kernel else { return false };
        let is_news = kernel.set_interfaces(now, interfaces, heard);
        if is_news {
            // Frames through the own crossbar may be as long as the port carries that they leave by.
            if let Some(data) = self.data.as_mut().filter(|_| kernel.has_crossbar()) {
                data.set_own_ports(kernel.port_mtus().collect());
            }
            self.settle(now);
        }
        is_news
    }

    /// Takes in what the kernel holds of this program, and returns what it is to hold instead; `None` for a host that does not
    /// use it. To be called now and then, as others may change what is there, and whenever [`Self::poll_kernel_read`] says so.
    pub fn handle_kernel_contents(&mut self, there: &Objects) -> Option<Target> {
        self.kernel.as_mut().map(|kernel| kernel.target(there))
    }

    /// Whether the kernel is to be read at once, as something that an earlier run left there may have to go.
    pub fn poll_kernel_read(&mut self) -> bool {
        self.kernel.as_mut().is_some_and(KernelPath::poll_read)
    }

    /// Says from which address of this host probes of IPv4 are sent, and that those of others are answered there; `None` if they are
    /// neither sent nor answered.
    pub fn set_v4_probes_from(&mut self, now: Instant, from: Option<Ipv4Addr>) {
        if let Some(kernel) = &mut self.kernel {
            kernel.set_v4_probes_from(now, from);
        }
        self.settle(now);
    }

    /// Takes a datagram that came from this address to [`UDP_PORT`](mapper_fib::probe::UDP_PORT), and arrived at
    /// this moment, as far as the kernel told, by its own clock. Returns the answer to be sent back to where it came
    /// from, if it was a question.
    pub fn handle_kernel_datagram(
        &mut self,
        now: Instant,
        from: IpAddr,
        (bytes, arrived_ns): (&[u8], Option<u64>),
    ) -> Option<Vec<u8>> {
        let own = self.own();
        let kernel = self.kernel.as_mut()?;
        match Datagram::read(bytes)? {
            // A question for another host comes from somebody who has an older record of this host's IP address. An answer would prove a
            // way to the other host.
            Datagram::Question { asked: Some(asked), .. } if asked != own => None,
            Datagram::Question { nonce, is_last, asked: _ } => {
                let directory = self.services.gossip().directory();
                let mut is_heard = false;
                directory.host_with(from).for_each(|mac| {
                    kernel.answers(mac, from.is_ipv6());
                    is_heard |= is_last && kernel.hear_farewell(mac);
                });
                // Who asks last would ask no more once it is answered, and be waited for. As long as it is not known whose
                // address that is, it has to ask again.
                if is_last && !is_heard {
                    return None;
                }
                // No answer is longer than its question.
                let answers_v4 = kernel.answers_v4();
                let answer = Datagram::Answer { nonce, arrived_ns, answers_v4 }.to_bytes();
                Some(answer[..bytes.len().min(DATAGRAM_BYTES)].to_vec())
            }
            Datagram::Answer { nonce, arrived_ns, answers_v4 } => {
                kernel.answered(now, nonce, answers_v4);
                self.soundings.answered(now, nonce, arrived_ns);
                self.settle(now);
                None
            }
        }
    }

    /// Takes in that the kernel with this address says that the hop limit of a probe with this nonce ended there.
    pub fn handle_kernel_hop_limit(&mut self, now: Instant, nonce: u64, at: Ipv6Addr) {
        self.soundings.ended(now, nonce, at);
        self.settle(now);
    }

    /// Takes in how many packets each nexthop of the kernel has taken since it was installed, or since its group was put in
    /// the place of itself, which the changes that follow may ask for. `counts` is empty if the kernel does not count. Paths
    /// that carry packets are watched. Returns when they are to be counted next.
    pub fn count_kernel_packets(&mut self, now: Instant, counts: &BTreeMap<NexthopId, u64>) -> Instant {
        let mut any_is_used = false;
        if let Some(kernel) = &mut self.kernel {
            any_is_used = kernel.count(now, counts);
            self.watching.look_at_kernel(now);
        }
        self.settle(now);
        now + next_count_after(any_is_used, counts.len())
    }

    /// What is to change in the kernel's tables, in this order. To be carried out before anything is sent that is
    /// polled afterwards.
    pub fn take_kernel_changes(&mut self) -> Vec<Change> {
        self.kernel.as_mut().map_or_else(Vec::new, KernelPath::take_changes)
    }

    /// The next probe to be sent through the kernel.
    pub fn poll_kernel_probe(&mut self) -> Option<KernelProbe> {
        self.kernel.as_mut()?.poll_probe().or_else(|| self.soundings.poll_probe())
    }

    /// The path of users' packets through the kernels, if this host has one.
    pub fn kernel_path(&self) -> Option<&KernelPath> {
        self.kernel.as_ref()
    }

    /// What the kernel carries now, if this host uses it.
    pub fn kernel_status(&self) -> Option<KernelPathStatus> {
        let directory = self.services.gossip().directory();
        let kernel = self.kernel.as_ref()?;
        let status = kernel.status().awaiting(|mac| directory.revision_of(mac).is_some());
        Some(match kernel.goes_by_destination() {
            true => status,
            false => status.naming_those_without_segments(|mac| directory.by_destination_of(mac)),
        })
    }

    /// Tells the kernel path which addresses the hosts have. Those that several hosts claim lead to none of them.
    pub(super) fn tell_kernel_addresses(&mut self, now: Instant) {
        let Some(kernel) = &mut self.kernel else { return };
        let directory = self.services.gossip().directory();
        let map = self.table.as_ref().map(|table| table.basis().map());
        let whom = map.and_then(|map| needed_by(map, |mac| directory.by_destination_of(mac)));
        let is_switched_on = kernel.keep_company(now, whom);
        let of_tap = self.own_names.of_tap.clone();
        kernel.set_own_addresses(now, directory.addresses_of(self.own).to_vec(), of_tap);
        kernel.set_addresses(now, |mac| {
            let all = directory.addresses_of(mac).iter().map(IpNetworkAddress::ip);
            all.filter(|&ip| directory.host_with(ip).eq([mac])).collect()
        });
        // The table in use has no next hops by destination yet.
        if is_switched_on {
            self.route_newest();
        }
    }

    /// Does what is due of the kernel path, and has the paths watched that the kernel sends packets along.
    pub(super) fn settle_kernel(&mut self, now: Instant) {
        let (Some(kernel), Some(data)) = (&mut self.kernel, &mut self.data) else { return };
        kernel.handle_timeout(now, |mac| Heard {
            is_listened_for: self.agent.watches_path_to(mac),
            at: self.agent.path_answered_at(mac),
        });
        // Lengths that no longer pass in packets of the kernels pass no longer in frames of users either.
        if let Some(shortened) = kernel.take_shortened() {
            data.set_shortened(shortened);
            self.events.push_back(HostEvent::LengthsChanged);
        }
        if self.watching.is_due_for_kernel(now) {
            for mac in kernel.used(now) {
                data.use_paths_to(now, mac);
            }
            self.watching.see(now, data);
        }
    }
}
