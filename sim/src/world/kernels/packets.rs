//! IP packets on their way through the kernels.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use mapper_fib::model::{Machine, Packet, Step};
use mapper_fib::probe::DatagramEnds;
use mapper_fib::segments::overhead_bytes;
use mapper_fib::{GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Table};
use mapper_host::kernel_path::{KernelPort, KernelProbe};
use mapper_proto::{Instant, Mac};
use rand::RngExt;

use super::super::World;
use super::super::counts::FabricCount;
use super::super::queue::What;
use super::super::traffic::{Leg, UserFrame, goes_in_a_circle};
use super::neighbours::{FIRST_INTERFACE, interface_name, link_address};
use super::tap_datagram::{self, headers_bytes};
use super::{Firewall, Kernel};
use crate::fabric::{PlantNode, PlantPort};

/// What a packet carries.
#[derive(Debug, Clone)]
enum Carried {
    User(UserFrame),
    /// A user's frame at a kernel on its way that has no table for its destination, so that it goes on by the
    /// tap interface.
    Relayed(UserFrame),
    /// A datagram of a probe, from this address.
    Datagram {
        bytes: Vec<u8>,
        from: IpAddr,
    },
}

/// Packets that will arrive, and at which host.
#[derive(Debug, Default)]
pub(super) struct Packets {
    next: u32,
    under_way: BTreeMap<u32, (u32, Carried)>,
}

/// How a packet leaves its sender.
#[derive(Debug, Clone, Copy)]
pub(super) enum Leaves {
    /// As the sender's kernel routes it.
    AsRouted,
    /// By this port, whatever the routes say.
    By(u8),
}

/// How far a packet gets.
#[derive(Debug, Default)]
pub(in crate::world) struct Followed {
    /// The channels that it leaves crossbars by.
    pub(in crate::world) channels: Vec<u32>,
    /// Where it is delivered, if it is.
    pub(super) delivered: Option<u32>,
    /// The hosts that it passes, going by its destination alone.
    passed: Vec<u32>,
    /// The host on its way whose kernel has no table for its destination, if the packet goes by its
    /// destination alone.
    pub(super) relayed: Option<u32>,
}

impl World {
    /// Sends a user's packet through the kernel of its host, if the kernel has a route to the destination.
    /// Returns whether it has one.
    pub(in crate::world) fn send_by_kernel(&mut self, frame: UserFrame, flow: u64, bytes: usize) -> bool {
        let Some(kernel) = self.kernels.hosts.get(frame.from as usize) else { return false };
        let ips = &self.kernels.hosts[frame.to as usize].ips;
        let hash = flow.wrapping_add(u64::from(frame.to)) as usize;
        let to = ips.get(hash % ips.len().max(1));
        let Some((&to, mtu)) = to.and_then(|to| Some((to, kernel.mtu_towards(*to)?))) else { return false };
        // Users learn of the route's MTU from their kernel, and send no longer packets.
        let bytes = bytes.min(mtu as usize);
        let packet = Packet::new(to, Vec::new());
        self.trace.frame(self.now, frame.from, &frame.number.to_be_bytes());
        self.forward(frame.from, Leaves::AsRouted, packet, (bytes, hash), Carried::User(frame));
        true
    }

    /// Sends all probes that a host has for its kernel.
    pub(in crate::world) fn send_probes(&mut self, host: u32) {
        if !self.kernels.are_there() {
            return;
        }
        while let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut())
            && let Some(probe) = real.poll_kernel_probe()
        {
            self.send_probe(host, probe);
        }
    }

    fn send_probe(&mut self, host: u32, probe: KernelProbe) {
        let bytes = probe.question().to_bytes().to_vec();
        let KernelProbe { towards, segments, ends, inner_bytes, .. } = probe;
        self.trace.frame(self.now, host, &bytes);
        // A probe without segments leaves by the port that it names, whatever the kernel's other routes say.
        let leaves = match self.port_towards(host, towards) {
            Some(port) if segments.is_empty() => Leaves::By(port),
            Some(_) => Leaves::AsRouted,
            None => return,
        };
        let (from, to): (IpAddr, IpAddr) = match ends {
            DatagramEnds::V4 { source, destination } => (source.into(), destination.into()),
            DatagramEnds::V6 { source, destination } => (source.into(), destination.into()),
        };
        let length = inner_bytes.max(headers_bytes(from) + bytes.len());
        let packet = Packet::new(to, segments);
        self.forward(host, leaves, packet, (length, 0), Carried::Datagram { bytes, from });
    }

    /// Whether all live ones of these hosts whose kernels lead packets for an address somewhere know of the same hosts of their maps
    /// that have it.
    fn agree_who_has(&self, ip: IpAddr, hosts: &BTreeSet<u32>) -> bool {
        let leads = |host: &u32| {
            let mut routes = self.kernels.hosts[*host as usize].objects.routes.keys();
            self.is_live(*host) && routes.any(|key| key.to.contains(ip))
        };
        let owners = |host| Some(self.directory(host)?.host_with(ip).collect::<Vec<_>>());
        let mut known = hosts.iter().copied().filter(leads).filter_map(owners);
        let first = known.next();
        known.all(|owners| Some(owners) == first)
    }

    /// Whether that holds of all addresses of hosts. An address may be another host's now, as of one that started with another
    /// address of its interface. Until all have heard of that, kernels lead packets for it to where either of the two is or was.
    pub(in crate::world) fn agree_on_addresses(&self, hosts: &BTreeSet<u32>) -> bool {
        let ips: BTreeSet<IpAddr> =
            self.kernels.hosts.iter().flat_map(|kernel| kernel.ips.iter().copied()).collect();
        ips.into_iter().all(|ip| self.agree_who_has(ip, hosts))
    }

    /// The port by which a host's kernel sends to this address.
    fn port_towards(&self, host: u32, towards: IpAddr) -> Option<u8> {
        let routes = self.kernels.hosts[host as usize].objects.routes.iter();
        let mut found = routes.filter(|(key, _)| key.table == Table::Main && key.to.contains(towards));
        match found.next()?.1 {
            Route::Gateway { interface, .. } => u8::try_from(interface - FIRST_INTERFACE).ok(),
            _ => None,
        }
    }

    /// Sends a packet as far as the kernels forward it, and books its arrival.
    fn forward(
        &mut self,
        from: u32,
        leaves: Leaves,
        packet: Packet,
        (bytes, flow): (usize, usize),
        carried: Carried,
    ) {
        let meant = packet.inner;
        // A probe with segments finds out whether kernels obey them. A kernel that knows no compressed
        // elements passes over all elements of an address and goes on with the next address, so the probe may
        // cross a cable again. It does not circle for ever, as its segments come to an end.
        let finds_out = !packet.segments.is_empty();
        let followed = self.follow(from, leaves, packet, bytes, flow);
        if let Carried::User(frame) = &carried {
            self.note_leg(*frame, &Leg::Packet { channels: followed.channels.clone() });
        }
        if !finds_out && matches!(leaves, Leaves::AsRouted) {
            self.count_packet(from, (meant, flow), &followed.passed, &carried);
        }
        if !finds_out
            && goes_in_a_circle(&followed.channels)
            && let Some(&first) = followed.channels.first()
        {
            let senders = self.senders_to(self.plant.end_of(first).node);
            if self.agree_who_has(meant, &senders) {
                self.note_circle(from, &followed.channels);
            }
        }
        let lost = self.noise.loss + self.noise.corrupt;
        for &channel in &followed.channels {
            let lost = lost + self.plant.loss_at(channel);
            if lost > 0.0 && self.rng.random_bool(lost.min(1.0)) {
                self.stats.frames.count(FabricCount::LostToNoise);
                return;
            }
        }
        if let (Some(host), Carried::User(frame)) = (followed.relayed, &carried) {
            return self.book_packet(self.now, host, Carried::Relayed(*frame));
        }
        let Some(host) = followed.delivered else { return };
        if !self.kernels.hosts[host as usize].ips.contains(&meant) {
            // Probes may arrive elsewhere, as they find out where ways lead that are not in use. Old ways to
            // a host that no map lists any more also stay for a while.
            if let Carried::User(frame) = carried
                && self.joined_hosts()(from, frame.to)
            {
                self.note_astray(from, host, meant, &followed.channels);
            }
            return;
        }
        let timing = &self.options.timing;
        let hop = timing.cable + timing.xbar;
        let arrival =
            self.now + timing.host_send + hop * followed.channels.len() as u32 + timing.host_receive;
        if self.noise.duplicate > 0.0 && self.rng.random_bool(self.noise.duplicate) {
            self.book_packet(arrival + self.options.timing.host_receive, host, carried.clone());
        }
        self.book_packet(arrival, host, carried);
    }

    /// Has the kernels count a packet to an address that look up where it goes: that of the host which sends it, and those which
    /// it passes by its destination.
    fn count_packet(&mut self, from: u32, (to, flow): (IpAddr, usize), passed: &[u32], carried: &Carried) {
        let is_users = matches!(carried, Carried::User(_) | Carried::Relayed(_));
        let Kernel { counts, objects, .. } = &mut self.kernels.hosts[from as usize];
        if is_users {
            counts.sent(objects, to, flow);
        } else {
            counts.answered(objects, to);
        }
        for &host in passed.iter().filter(|_| is_users) {
            let Kernel { counts, objects, .. } = &mut self.kernels.hosts[host as usize];
            counts.passed(objects, to, flow);
        }
    }

    fn book_packet(&mut self, at: Instant, host: u32, carried: Carried) {
        let jitter = self.options.timing.jitter;
        let at = if jitter.is_zero() { at } else { at + self.rng.random_range(jitter / 1000..=jitter) };
        let packets = &mut self.kernels.packets;
        let number = packets.next;
        packets.next = packets.next.wrapping_add(1);
        packets.under_way.insert(number, (host, carried));
        self.queue.push(at, What::Packet { number });
    }

    /// Takes in that a packet reaches the host that it is for.
    pub(in crate::world) fn take_packet(&mut self, number: u32) {
        let Some((host, carried)) = self.kernels.packets.under_way.remove(&number) else { return };
        match carried {
            Carried::User(frame) => {
                self.stats.by_kernel += 1;
                let address = |host: u32| Some(self.hosts.get(host as usize)?.settings.mac);
                let addresses = address(frame.to).zip(address(frame.from));
                self.give_to_user(host, frame, addresses);
            }
            Carried::Relayed(frame) => self.relay_user_frame(host, frame),
            Carried::Datagram { bytes, from } => self.take_datagram(host, from, &bytes),
        }
    }

    /// Takes in that a datagram of a probe reaches a host, which may answer it by whatever way its kernel
    /// takes.
    fn take_datagram(&mut self, host: u32, from: IpAddr, bytes: &[u8]) {
        let now = self.now;
        // An answer comes from an address of the question's version.
        let own = &self.kernels.hosts[host as usize].ips;
        let own = own.iter().find(|own| own.is_ipv6() == from.is_ipv6()).copied();
        let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) else {
            return;
        };
        let answer = real.handle_kernel_datagram(now, from, (bytes, Some(now.as_nanos())));
        if let Some((answer, own)) = answer.zip(own) {
            self.answer(host, own, from, answer);
        }
        self.drain(host);
    }

    fn answer(&mut self, host: u32, own: IpAddr, to: IpAddr, bytes: Vec<u8>) {
        let kernel = &self.kernels.hosts[host as usize];
        if kernel.ips.contains(&to) || kernel.mtu_towards(to).is_some() {
            let length = headers_bytes(own) + bytes.len();
            let carried = Carried::Datagram { bytes, from: own };
            self.forward(host, Leaves::AsRouted, Packet::new(to, Vec::new()), (length, 0), carried);
            return;
        }
        let Some(other) = self.kernels.hosts.iter().position(|other| other.ips.contains(&to)) else { return };
        let ends = [self.mac(other as u32), self.mac(host)];
        let Some(frame) = tap_datagram::frame(ends, (own, to), &bytes) else { return };
        let now = self.now;
        if let Some(real) = self.hosts[host as usize].node.as_mut().and_then(|node| node.host_mut()) {
            real.handle_user_frame(now, &frame);
        }
    }

    /// Takes a frame that came by a host's tap interface, if it carries a datagram of a probe. Returns
    /// whether it does.
    pub(in crate::world) fn take_tap_datagram(&mut self, host: u32, frame: &[u8]) {
        if !self.kernels.are_there() {
            return;
        }
        let Some((from, bytes)) = tap_datagram::read(frame) else { return };
        let carried = Carried::Datagram { bytes: bytes.to_vec(), from };
        // The host is being polled, so it gets the datagram when that is over.
        self.book_packet(self.now, host, carried);
    }

    /// Follows a packet through the kernels as they are now.
    pub(super) fn follow(
        &self,
        from: u32,
        leaves: Leaves,
        packet: Packet,
        bytes: usize,
        flow: usize,
    ) -> Followed {
        let mut followed = Followed::default();
        let (mut at, mut arrival, mut packet) = (from, None, packet);
        let mut by = match leaves {
            Leaves::AsRouted => None,
            Leaves::By(port) => Some(port),
        };
        // A packet has a hop limit, and each step takes one off it.
        loop {
            let kernel = &self.kernels.hosts[at as usize];
            let drops_v4 = arrival.is_some() && kernel.firewall == Firewall::DropsV4;
            if drops_v4 && packet.segments.is_empty() && packet.inner.is_ipv4() {
                return followed;
            }
            // A packet that no route of the kernel to a single host fits goes out by the tap interface.
            let takes_tap =
                arrival.is_some() && packet.segments.is_empty() && kernel.mtu_towards(packet.inner).is_none();
            if arrival.is_some() && packet.segments.is_empty() {
                followed.passed.push(at);
            }
            let machine = Machine { objects: &kernel.objects, addresses: &kernel.ips };
            let step = match by.take() {
                None => machine.step(arrival.map(interface_name).as_deref(), packet, flow),
                Some(port) => match self.known_port(at, port) {
                    Some(known) => {
                        let (interface, to) = (known.cabled.interface, known.cabled.neighbour);
                        Step::Leaves { interface, to, packet }
                    }
                    None => return followed,
                },
            };
            match step {
                // What is for the machine itself passes its firewall once it is unwrapped.
                Step::Delivered { inner } if drops_v4 && inner.is_ipv4() => return followed,
                Step::Dropped(_) => {
                    followed.relayed = takes_tap.then_some(at);
                    return followed;
                }
                Step::Delivered { .. } => {
                    followed.delivered = Some(at);
                    return followed;
                }
                Step::Leaves { interface, to, packet: left } => {
                    let outer =
                        if left.segments.is_empty() { 0 } else { overhead_bytes(left.segments.len()) };
                    let Some(crossed) = self.cross(at, interface, to, bytes + outer as usize, &mut followed)
                    else {
                        return followed;
                    };
                    (at, arrival, packet) = (crossed.0, Some(crossed.1), left);
                }
            }
        }
    }

    /// A port of a host as the host knows it, if somebody is at the other end.
    fn known_port(&self, host: u32, port: u8) -> Option<&KernelPort> {
        self.hosts[host as usize].node.as_ref()?.host()?.kernel_path()?.port(port)
    }

    /// Has a packet of so many bytes leave a kernel by an interface, for the neighbour with this link
    /// address. Returns the host whose kernel gets it, and the port that it comes in by.
    fn cross(
        &self,
        at: u32,
        interface: u32,
        to: Mac,
        bytes: usize,
        followed: &mut Followed,
    ) -> Option<(u32, u8)> {
        let own = self.home_of(at)?;
        let near =
            PlantPort { node: own.node, port: u8::try_from(interface.checked_sub(FIRST_INTERFACE)?).ok()? };
        followed.channels.push(self.plant.channel(near)?);
        let far = self.plant.peer(near).filter(|_| self.plant.carries(near))?;
        let PlantNode::Xbar(xbar) = far.node else { return None };
        let is_open = |next: &u32| self.kernels.hosts[*next as usize].firewall != Firewall::DropsAll;
        let next = self.kernel_at(xbar).filter(is_open)?;
        // A packet crosses a cable if the interfaces at both ends carry it.
        let fits = [at, next].iter().all(|&end| bytes <= usize::from(self.hosts[end as usize].mtu_bytes));
        (fits && link_address(xbar, far.port) == to).then_some((next, far.port))
    }

    /// The turns of all packets that the kernel of a host sends, whatever their flow is: pairs of a channel
    /// and the channel that follows it. A nexthop that no route leads to any more, as one that an earlier run has left, sends
    /// none.
    pub(in crate::world) fn kernel_turns_of(&self, host: u32) -> BTreeSet<(u32, u32)> {
        let mut turns = BTreeSet::new();
        let Some(kernel) = self.kernels.hosts.get(host as usize) else { return turns };
        let Objects { routes, groups, nexthops, .. } = &kernel.objects;
        let routed: BTreeSet<GroupId> = routes
            .values()
            .filter_map(|route| match route {
                Route::Group { group, .. } => Some(*group),
                _ => None,
            })
            .collect();
        let members: BTreeSet<NexthopId> =
            routed.iter().filter_map(|group| groups.get(group)).flatten().copied().collect();
        for nexthop in members.iter().filter_map(|member| nexthops.get(member)) {
            let Nexthop::Segments { segments, .. } = nexthop else { continue };
            let packet = Packet::new(Ipv6Addr::UNSPECIFIED.into(), segments.clone());
            let followed = self.follow(host, Leaves::AsRouted, packet, 0, 0);
            turns.extend(followed.channels.windows(2).map(|pair| (pair[0], pair[1])));
        }
        turns
    }

    /// The turns of a host's packets that go by their destination alone, whatever their flow is: pairs of a
    /// channel and the channel that follows it.
    pub(in crate::world) fn turns_by_destination_of(&self, host: u32) -> BTreeSet<(u32, u32)> {
        let mut turns = BTreeSet::new();
        let Some(kernel) = self.kernels.hosts.get(host as usize).filter(|_| self.is_live(host)) else {
            return turns;
        };
        for (key, route) in &kernel.objects.routes {
            if key.table == Table::Main && matches!(route, Route::Group { .. }) {
                self.spread(host, key.to.ip, &mut turns);
            }
        }
        turns
    }

    /// Adds the turns that packets from a host to this address may take.
    fn spread(&self, from: u32, to: IpAddr, turns: &mut BTreeSet<(u32, u32)>) {
        let [own, passing] =
            [Table::Main, Table::Passing].map(|table| RouteKey { table, to: IpPrefix::host(to) });
        let (mut known, mut open) = (BTreeSet::new(), vec![(from, None)]);
        while let Some((at, arrived_by)) = open.pop() {
            let kernel = &self.kernels.hosts[at as usize];
            let routes = &kernel.objects.routes;
            let of_passing = arrived_by.and_then(|_: u32| routes.get(&passing));
            let Some(Route::Group { group, .. }) = of_passing.or_else(|| routes.get(&own)) else { continue };
            for member in kernel.objects.groups.get(group).into_iter().flatten() {
                let Some(&Nexthop::Gateway { interface, gateway }) = kernel.objects.nexthops.get(member)
                else {
                    continue;
                };
                let Some(&neighbour) = kernel.objects.neighbours.get(&(interface, gateway)) else { continue };
                let mut followed = Followed::default();
                let crossed = self.cross(at, interface, neighbour, 0, &mut followed);
                let Some(&leaves_by) = followed.channels.first() else { continue };
                turns.extend(arrived_by.map(|arrived_by| (arrived_by, leaves_by)));
                if let Some((next, _)) = crossed
                    && known.insert((next, leaves_by))
                {
                    open.push((next, Some(leaves_by)));
                }
            }
        }
    }
}
