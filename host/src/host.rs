//! The type that joins all that runs at one host.

mod carriers;
#[cfg(test)]
mod contract;
mod ending;
#[cfg(test)]
mod face_to_face;
mod heal;
mod kernel;
mod paths;
mod resolution;
mod sounding;
mod tables;
mod tap_mtu;

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use mapper_proto::agent::{Agent, Settings, Transmit};
use mapper_proto::map::{LinkMtu, Map};
use mapper_proto::wire::{Data, FrameKind, Undeliverable};
use mapper_proto::{Instant, IpNetworkAddress, Mac};
use mapper_routing::RouteOptions;

use crate::computation::{Computation, Task};
use crate::data::DataPath;
use crate::directory::{Directory, HostName};
use crate::event::HostEvent;
use crate::examination::Examiner;
use crate::frame_queue::FrameQueue;
use crate::healing::Healing;
use crate::kernel_path::KernelPath;
use crate::picking::Picker;
use crate::routes::RouteTable;
use crate::service::Services;
use crate::sounding::Soundings;
pub use carriers::OwnCrossbar;
use carriers::Seen;
pub use ending::EndOnceMapped;
use ending::Ending;
use paths::Watching;
use resolution::OwnNames;
pub use tap_mtu::TapMtu;

/// What a host needs to carry users' frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserFrames {
    /// The most bytes of a frame on the link, which are its route, its header and the user's frame.
    pub link_mtu: u32,
    /// The key of the tokens in users' frames. Nobody may guess them, so it must be random.
    pub secret: u64,
}

/// A frame for the fabric. The link puts its own header in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// The ports to leave by.
    pub route: &'a [u8],
    /// The frame, without the route.
    pub frame: &'a [u8],
}

/// Everything that runs at one host but its I/O: the agent, the routes that it computed, what it knows of dead
/// cables, the path of users' frames, and the services that ask other hosts.
///
/// It is a deterministic state machine. Time is passed in, and never goes back. The same calls in the same
/// order with the same seed do the same, in a daemon and in a simulator. There are four kinds of methods:
///
/// - `handle_*` tell it what happened: a frame off the fabric, a frame of the user, a datagram through the kernel,
///   carriers, a computation that ended or was lost, a moment that came.
/// - Commands change what it is set to or what it knows of its machine:
///   - the agent and its routes: [`Self::set_settings`], [`Self::set_route_options`], [`Self::begin_anew`],
///     [`Self::forget_routes`], [`Self::share_map`], [`Self::end_once_mapped`];
///   - the machine's interfaces: [`Self::set_mtu`], [`Self::set_own_cables`], [`Self::tap_mtu_was_set`],
///     [`Self::set_rates`], [`Self::set_groups`];
///   - its kernel: [`Self::use_kernel`], [`Self::set_kernel_interfaces`], [`Self::set_v4_probes_from`],
///     [`Self::count_kernel_packets`];
///   - names and addresses: [`Self::set_name`], [`Self::set_addresses`], [`Self::pick_addresses`],
///     [`Self::set_addresses_elsewhere`], [`Self::set_more_names`], [`Self::ask_who_has`];
///   - paths and cables, as somebody beside it knows of them: [`Self::watch_path`], [`Self::cable_down`], and
///     [`Self::sound`], which tries them.
/// - `poll_*`, and [`Self::take_kernel_changes`], say what is to be done about it.
/// - All others look, and change nothing: they take `&self`.
///
/// After each `handle_*` or command, or after a burst of them, poll in this order:
///
/// 1. [`Self::poll_tap_mtu`]: the MTU that the user's interface is to have.
/// 2. [`Self::take_kernel_changes`]: what the kernel is to hold from now on, before any frame leaves that may say
///    so; then [`Self::poll_kernel_read`], for the same reason.
/// 3. [`Self::poll_transmit`] until there is none: frames for the fabric, in the order in which they are to
///    leave.
/// 4. [`Self::poll_user_frame`] until there is none: frames for the user.
/// 5. [`Self::poll_kernel_probe`] until there is none: packets that the kernel is to send.
/// 6. [`Self::poll_event`] until there is none.
/// 7. [`Self::poll_task`] once: routes to be computed, on any thread; [`Self::handle_computed`] takes what
///    comes of it. There is no other task until then.
/// 8. [`Self::poll_timeout`]: when [`Self::handle_timeout`] wants to be called. Every other call may move it.
///
/// For a host that sends no users' packets through its kernel, steps 2 and 5 yield nothing.
///
/// What is not polled is kept, so all must be polled for memory to stay bounded.
pub struct Host {
    own: Mac,
    agent: Agent,
    route_options: RouteOptions,
    /// How many paths in use the agent watches at most.
    liveness_limit: usize,
    /// The way of users' frames, if this host carries any.
    data: Option<DataPath>,
    /// The longest frame that all cables of this machine carry, in bytes; `None` if that was not said, or none has carrier.
    own_cables: Option<u32>,
    /// The MTU of the interface of users' frames, if this host carries any.
    tap_mtu: Option<TapMtu>,
    /// The way of users' packets through the kernels, if this host has one.
    kernel: Option<KernelPath>,
    /// The carriers that the host saw last.
    seen: Seen,
    watching: Watching,
    healing: Healing,
    services: Services,
    own_names: OwnNames,
    picker: Picker,
    soundings: Soundings,
    examiner: Examiner,
    /// The routes in use.
    table: Option<Arc<RouteTable>>,
    /// The newest map, the computation of whose routes may not have ended, and the hosts that the agent
    /// itself needs a route to.
    newest: Option<(Arc<Map>, Vec<Mac>)>,
    computation: Computation,
    /// Why no routes could be computed for the newest map; `None` if they were or may yet be.
    routing_failure: Option<String>,
    /// Users' frames for the fabric.
    outgoing: FrameQueue,
    /// The agent's frame that was handed out last.
    transmit: Option<Transmit>,
    /// Frames for the user.
    delivered: FrameQueue,
    events: VecDeque<HostEvent>,
    /// How far the host is with ending, if it is to end once mapping is complete everywhere.
    ending: Option<Ending>,
}

impl Host {
    /// A host whose agent starts now. It carries users' frames if `users` says how.
    pub fn new(
        settings: Settings,
        route_options: RouteOptions,
        users: Option<UserFrames>,
        seed: u64,
        now: Instant,
    ) -> Self {
        let own = settings.mac;
        Self {
            own,
            route_options,
            liveness_limit: settings.liveness_limit,
            data: users.map(|users| DataPath::new(own, users.link_mtu, users.secret)),
            own_cables: None,
            tap_mtu: users.map(|users| TapMtu::new(users.link_mtu, route_options.max_hops)),
            kernel: None,
            seen: Seen::default(),
            watching: Watching::default(),
            healing: Healing::new(),
            services: Services::new(own, seed),
            own_names: OwnNames::default(),
            picker: Picker::new(own),
            soundings: Soundings::new(),
            examiner: Examiner::default(),
            table: None,
            newest: None,
            computation: Computation::default(),
            routing_failure: None,
            outgoing: FrameQueue::default(),
            transmit: None,
            delivered: FrameQueue::default(),
            events: VecDeque::new(),
            ending: None,
            agent: Agent::new(settings, seed, now),
        }
    }

    /// Takes a frame that came off the fabric. `payload` is what is left of its route and all behind it.
    pub fn handle_frame(&mut self, now: Instant, payload: &[u8]) {
        if !self.take_users(now, payload) {
            self.agent.handle_frame(now, payload);
            self.settle(now);
        }
    }

    /// Takes the frame if it carries a user's frame, or is a notice about one. Returns whether it did.
    fn take_users(&mut self, now: Instant, payload: &[u8]) -> bool {
        let Some(data) = &mut self.data else { return false };
        match FrameKind::of(payload) {
            // The agent checks paths with frames that look like data; these are for the agent.
            Ok(FrameKind::Data) if Data::is_check(payload) => false,
            Ok(FrameKind::Data) => {
                if let Ok(ethernet) = data.inbound(now, payload) {
                    self.delivered.push(&[], ethernet);
                }
                true
            }
            Ok(FrameKind::Undeliverable) if let Some(notice) = notice_about_check(payload) => {
                self.check_is_undeliverable(now, notice);
                true
            }
            Ok(FrameKind::Undeliverable) => {
                let outgoing = &mut self.outgoing;
                let dead = data.undeliverable(now, payload, &mut |route, frame| outgoing.push(route, frame));
                if let Some(dead) = dead {
                    self.healing.notice(now, dead.tag, dead.at.port);
                    self.settle(now);
                }
                true
            }
            Ok(FrameKind::Mapper | FrameKind::Hello | FrameKind::Unknown(_)) | Err(_) => false,
        }
    }

    /// Takes a frame that the user sends, from its destination address on. What cannot be sent is counted.
    pub fn handle_user_frame(&mut self, now: Instant, ethernet: &[u8]) {
        let Some(data) = &mut self.data else { return };
        let outgoing = &mut self.outgoing;
        data.outbound(now, ethernet, &mut |route, frame| outgoing.push(route, frame));
        if let Some(answer) = data.take_answer() {
            self.delivered.push(&[], &answer);
        }
        self.watching.see(now, data);
    }

    /// Does what is due by now. To be called at [`Self::poll_timeout`]; other moments do no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.agent.poll_timeout().is_some_and(|at| at <= now) {
            self.agent.handle_timeout(now);
        }
        self.settle(now);
    }

    /// Takes in how long frames may now be at this host: see [`Agent::set_mtu`]. Users' frames are as long at once.
    pub fn set_mtu(&mut self, now: Instant, mtu: LinkMtu) {
        if let Some(data) = self.data.as_mut().filter(|_| mtu.bytes > 0) {
            data.set_link_mtu(mtu.bytes.into());
        }
        self.agent.set_mtu(now, mtu);
        self.settle(now);
    }

    /// Gives the agent other settings. Another address, level or host type takes a new agent instead: see
    /// [`Self::begin_anew`].
    pub fn set_settings(&mut self, now: Instant, settings: &Settings) {
        self.liveness_limit = settings.liveness_limit;
        self.agent.set_settings(settings);
        self.agent.follow_settings(now);
        self.agent.set_keys(settings.keys.clone());
        self.settle(now);
    }

    /// Replaces the agent by a new one; the routes in use stay. A host that carries users' frames keeps its
    /// address, as others know it by that.
    pub fn begin_anew(&mut self, now: Instant, settings: Settings, seed: u64) {
        debug_assert!(
            self.data.is_none() || settings.mac == self.own,
            "the user's interface keeps its address"
        );
        if settings.mac != self.own {
            // A host without users' frames has no interface to which it could give an address, so it picks none.
            self.services = Services::new(settings.mac, seed);
        }
        self.own = settings.mac;
        self.liveness_limit = settings.liveness_limit;
        self.agent = Agent::new(settings, seed, now);
        if self.data.is_some() {
            // The new agent is told at once which paths are in use. Only its checks of paths tell a kernel
            // that drops packets from a host that is gone.
            self.watching.tell_anew(now);
        }
        self.services.lose_questions(now);
        self.services.loss_reports_mut().tell_anew();
        self.settle(now);
    }

    /// The next frame for the fabric.
    pub fn poll_transmit(&mut self) -> Option<Outgoing<'_>> {
        if self.outgoing.is_empty() {
            self.transmit = self.agent.poll_transmit();
            let Transmit { route, frame } = self.transmit.as_ref()?;
            return Some(Outgoing { route: route.as_bytes(), frame });
        }
        let (route, frame) = self.outgoing.pop()?;
        Some(Outgoing { route, frame })
    }

    /// The next frame for the user, from its destination address on.
    pub fn poll_user_frame(&mut self) -> Option<&[u8]> {
        self.delivered.pop().map(|(_, ethernet)| ethernet)
    }

    /// The next event that the driver has not seen.
    pub fn poll_event(&mut self) -> Option<HostEvent> {
        self.events.pop_front()
    }

    /// Routes to be computed, unless some are being computed.
    pub fn poll_task(&mut self) -> Option<Task> {
        self.computation.poll()
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let all = [
            self.agent.poll_timeout(),
            self.healing.poll_timeout(),
            self.watching.poll_timeout(),
            self.kernel.as_ref().and_then(KernelPath::poll_timeout),
            self.services.poll_timeout(),
            self.picker.poll_timeout(self.services.gossip()),
            self.soundings.poll_timeout(),
            self.ending.as_ref().and_then(Ending::poll_timeout),
        ];
        all.into_iter().flatten().min()
    }

    /// Says what this host is called. `revision` must be higher than when the host last started, or the others
    /// keep the name that it had: the seconds since 1970 will do.
    pub fn set_name(&mut self, now: Instant, name: HostName, revision: u32) {
        self.services.gossip_mut().set_name(name, revision);
        self.tell_resolver(now);
        self.settle(now);
    }

    /// Says which IP addresses this host has, all of them: those of its tap interface, and those that its ports have of their own.
    /// Others are told at most [`Directory::MOST_ADDRESSES`]: the first of those that others can use. To a host that asks for
    /// one of the rest it says that the address is its own.
    pub fn set_addresses(
        &mut self,
        now: Instant,
        of_tap: Vec<IpNetworkAddress>,
        of_ports: &[IpNetworkAddress],
    ) {
        let Self { services, picker, own_names, .. } = self;
        let addresses = [&of_tap, of_ports].concat();
        own_names.of_tap = of_tap;
        own_names.addresses =
            addresses.iter().filter(|it| it.is_of_host()).map(IpNetworkAddress::ip).collect();
        services.gossip_mut().set_addresses(addresses, |ip| picker.has_picked(ip));
        self.tell_resolver(now);
        self.settle(now);
    }

    /// Has this host pick an address for itself out of each of these networks of IPv4, which are named by
    /// their own addresses, as 10.1.0.0/24. [`HostEvent::AddressPicked`] says which. The driver is to give
    /// them to the user's interface, and to say by [`Self::set_addresses`] that it has them: no other host
    /// knows of them before. Those of `before`, which this host picked in an earlier run, are tried first.
    pub fn pick_addresses(
        &mut self,
        now: Instant,
        networks: &[IpNetworkAddress],
        before: &[IpNetworkAddress],
    ) {
        self.picker.set_networks(networks, before);
        self.settle(now);
    }

    /// Says which addresses this machine has at interfaces that are not the fabric's, so that none of these is
    /// picked.
    pub fn set_addresses_elsewhere(&mut self, now: Instant, addresses: BTreeSet<IpAddr>) {
        self.picker.set_elsewhere(addresses);
        self.settle(now);
    }

    /// What the hosts of the map are called, and which addresses they have.
    pub fn directory(&self) -> &Directory {
        self.services.gossip().directory()
    }

    /// This host's address.
    pub fn own(&self) -> Mac {
        self.own
    }

    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// What is known of dead cables.
    pub fn healing(&self) -> &Healing {
        &self.healing
    }

    /// The way of users' frames, if this host carries any.
    pub fn data(&self) -> Option<&DataPath> {
        self.data.as_ref()
    }

    /// Does what follows from what was just taken in, until nothing more follows.
    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(event) = self.agent.poll_event() {
                self.take_event(now, event);
            }
            self.heal(now);
            self.settle_kernel(now);
            self.settle_soundings(now);
            self.settle_losses(now);
            self.services.end_questions(now);
            self.services.ask(now, &mut self.agent, self.table.as_deref());
            if let Some(data) = &mut self.data {
                self.watching.tell(now, data, &mut self.agent, self.liveness_limit);
            }
            let Some(event) = self.agent.poll_event() else { break };
            self.take_event(now, event);
        }
        self.settle_ending(now);
        let picked = self.picker.look(now, self.services.gossip());
        self.events.extend(picked.into_iter().map(HostEvent::AddressPicked));
        self.settle_resolution();
        let changed = self.services.gossip_mut().take_changed();
        if changed {
            self.tell_kernel_addresses(now);
        }
        let changed = changed | self.services.resolver_mut().take_changed();
        if changed && self.events.back() != Some(&HostEvent::DirectoryChanged) {
            self.events.push_back(HostEvent::DirectoryChanged);
        }
    }
}

/// The notice in a frame, if it is about a check of a path and not about a user's frame.
fn notice_about_check(frame: &[u8]) -> Option<Undeliverable> {
    Undeliverable::decode(frame).ok().filter(|notice| Data::is_check_token(notice.token))
}
