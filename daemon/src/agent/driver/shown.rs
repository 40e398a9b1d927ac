//! The board and the routes that a running agent shows.

use std::time::Duration;

use mapper_formats::json::map_to_json;
use mapper_host::healing::{DeadCable, LossyCable};
use mapper_host::resolution::{Found, Patience};

use super::names::tag_in_words;
use super::state::Driver;
use crate::agent::status::{
    self, AgentRequest, Board, BoardPort, FrameCount, KernelAsked, KnownLearned, Measure, PathsAsked,
    RoutesAsked, Surroundings, naming_hosts,
};
use crate::xbar::PortTraffic;
use crate::xbar::traffic::rate_mbps;
use mapper_machine::log;
use mapper_machine::status::Client;
use mapper_proto::agent::FrameDrop;
use mapper_proto::{Instant, IpNetworkAddress, Tally};

impl Driver {
    /// The agent's board at this moment.
    pub(super) fn board(&self) -> Board {
        let counters = self.host.data().map(mapper_host::data::DataPath::status).unwrap_or_default();
        let around = Surroundings {
            unit: self.config.unit,
            interface: self.attachment.link.name(),
            host_type: self.config.settings.host_type,
            interface_exists: self.attachment.link.exists(),
            carrier: self.attachment.link.carrier(),
            ports: self.ports_with_rates(),
            cable: self.named_cable(),
            traffic: self.attachment.crossbar.is_none().then(|| {
                let link = &self.attachment.link;
                PortTraffic::of_link(link.name(), &link.counts())
            }),
            directory: self.host.directory(),
            resolution_refused: *self.host.resolution_refused(),
            routes: self.host.table().map_or(0, |table| table.count()),
            routing_failure: self.routing_failure(),
            frames: self.frame_counts(),
            causes: &self.causes,
            dead_cables: self.dead_cables(),
            lossy_cables: self.lossy_cables(),
            left_out_cables: self.host.healing().left_out().count(),
            narrow_cables: self.narrow_cables(),
            map: self.host.newest_map().map(|map| &**map),
            known: &self.known,
            warnings: self.all_warnings(),
            repairs: *self.host.healing().counts(),
            log_lines_lost: log::lines_lost(),
            data_path: self.data_path(),
            tap: self
                .users
                .as_ref()
                .zip(self.host.tap_mtu())
                .map(|(users, mtu)| users.status(mtu.given(), counters)),
            picking: self.picking().map(|network| network.to_string()).collect(),
            address_clashes: self.address_clashes(),
            plan: self.plan.standing().cloned(),
            now: self.now(),
        };
        let mut status = self.host.agent().status();
        status.dropped.add(FrameDrop::Foreign, self.attachment.foreign);
        Board::new(&status, around)
    }

    /// The ports of a node, with how fast they are.
    fn ports_with_rates(&self) -> Vec<BoardPort> {
        let mut ports = self.named_ports();
        ports.iter_mut().for_each(|port| port.traffic.rate_mbps = rate_mbps(&port.interface));
        ports
    }

    fn frame_counts(&self) -> Tally<FrameCount> {
        let mut counts = self.attachment.held_back;
        for (kind, _, number) in self.attachment.link.counts().iter() {
            if let Some(kind) = FrameCount::of_link(kind) {
                counts.add(kind, number);
            }
        }
        counts
    }

    /// Answers a request in a task of its own.
    pub(super) fn answer(&mut self, request: &AgentRequest, client: Client) {
        self.put_off_rest();
        match request {
            AgentRequest::Routes => {
                let asked = self.routes_asked();
                drop(tokio::spawn(client.answer_json(move || asked.to_json())));
            }
            AgentRequest::Paths => {
                let asked = self.paths_asked();
                drop(tokio::spawn(client.answer_json(move || asked.to_json())));
            }
            AgentRequest::Map => {
                let (map, names) = (self.host.newest_map().cloned().unwrap_or_default(), self.names_of_map());
                drop(tokio::spawn(
                    client.answer_json(move || serde_json::to_vec(&map_to_json(&map, &names))),
                ));
            }
            AgentRequest::History => self.tell_history(client),
            AgentRequest::PastMap { unix_ms } => self.tell_past_map(*unix_ms, client),
            AgentRequest::Changed { seen } => self.followers.follow(*seen, client),
            AgentRequest::Trace { host, frame_bytes } => {
                self.measure(host, Measure::Trace { frame_bytes: *frame_bytes }, client);
            }
            AgentRequest::Ping { host, count, interval_ms, frame_bytes } => {
                self.ping(host, *count, (*interval_ms, *frame_bytes), client);
            }
            AgentRequest::Bandwidth { host, trains, packets } => {
                self.bandwidth(host, (*trains, *packets), client);
            }
            AgentRequest::Resolve(wanted) => self.resolve(wanted, client),
            AgentRequest::WhoHas { wanted, timeout_ms, retries } => {
                let timeout = Duration::from_millis((*timeout_ms).into());
                self.who_has(wanted, Patience { timeout, retries: *retries }, client);
            }
            AgentRequest::MoreNames(names) => self.take_more_names(names, client),
            AgentRequest::PathTo(_) => tracing::debug!("paths are asked for at ports of InfiniBand only"),
        }
    }

    /// All that is needed to answer a request for the routes in use.
    fn routes_asked(&mut self) -> RoutesAsked {
        // The kernel is told first what it is to be held against.
        self.serve_kernel();
        RoutesAsked {
            host: self.host.own(),
            table: self.host.table().cloned(),
            map: self.host.newest_map().cloned(),
            names: self.names_of_map(),
            neighbours: self.host.neighbours().to_vec(),
            carried: self.carried_routes(),
            kernel: self.kernel_asked(),
            uses: self.host.data().map_or_else(Vec::new, |data| data.uses(self.now())),
        }
    }

    /// What it takes to read back by which segments the kernel sends; `None` if it is not used.
    fn kernel_asked(&self) -> Option<KernelAsked> {
        let (Ok(side), Some(path)) = (&self.kernel, self.host.kernel_path()) else { return None };
        Some(KernelAsked {
            told: path.segments_told(),
            read_back: side.forwarding.read_back(path.may_hold_left()),
        })
    }

    /// All that is needed to answer a request for the hosts and the paths to them.
    fn paths_asked(&self) -> PathsAsked {
        let (directory, attachment) = (self.host.directory(), &self.attachment);
        let told = |mac| {
            let addresses = directory.addresses_of(mac).iter().map(IpNetworkAddress::ip).collect();
            (mac, (directory.name_of(mac).map(ToString::to_string), addresses))
        };
        PathsAsked {
            unit: self.config.unit,
            interface: attachment.link.name().to_owned(),
            host: self.host.own(),
            paths_number: self.followers.paths_number(),
            table: self.host.table().cloned(),
            map: self.host.newest_map().cloned(),
            has_failed: self.host.routing_failure().is_some(),
            rates: directory
                .hosts()
                .chain([self.host.own()])
                .map(|mac| (mac, directory.rates_of(mac)))
                .collect(),
            learned: self.learned_shown(),
            told: directory.hosts().chain([self.host.own()]).map(told).collect(),
            link_mtu: self.host.least_cable().unwrap_or(attachment.mtu),
            max_hops: self.config.route_options().max_hops,
        }
    }

    /// Why no routes could be computed for the newest map, with hosts called by their names.
    pub(super) fn routing_failure(&self) -> Option<&str> {
        let why = self.host.routing_failure()?;
        Some(self.failed.as_ref().filter(|failed| failed.why == why).map_or(why, |failed| &failed.in_words))
    }

    /// What was learned of names and addresses that are not announced.
    fn learned_shown(&self) -> Vec<KnownLearned> {
        let shown = |found: Found| KnownLearned {
            wanted: found.wanted.to_string(),
            owners: found.owners.iter().map(|owner| self.known_owner(owner)).collect(),
        };
        self.host.learned(self.now()).into_iter().map(shown).collect()
    }

    /// Tells the tag of an xbar of the map in use, in words, and the address of the host that it is called by.
    fn xbars_shown(&self) -> impl Fn(u32) -> (Option<String>, Option<String>) + '_ {
        let table = self.host.table();
        let naming = table.map(|table| naming_hosts(table.basis().map())).unwrap_or_default();
        move |xbar| {
            let tag = table.and_then(|table| table.tag(xbar));
            let host = naming.get(xbar as usize).copied().flatten();
            (tag.map(tag_in_words), host.map(|mac| mac.to_string()))
        }
    }

    /// The cables that are held for dead, as the board shows them.
    fn dead_cables(&self) -> Vec<status::DeadCable> {
        let xbar_shown = self.xbars_shown();
        let shown = |DeadCable { at, since, cause }: DeadCable| {
            let (tag, host) = xbar_shown(at.xbar);
            let (since_ms, why) = (self.ms_since(since), cause.to_string());
            status::DeadCable { xbar: at.xbar, tag, host, port: at.port, since_ms, why }
        };
        self.host.healing().dead_cables().map(shown).collect()
    }

    /// The cables that lose frames, as the board shows them.
    fn lossy_cables(&self) -> Vec<status::LossyCable> {
        let xbar_shown = self.xbars_shown();
        let shown = |LossyCable { at, since, lost_percent, is_avoided, is_left_out }: LossyCable| {
            let (tag, host) = xbar_shown(at.xbar);
            let (port, since_ms) = (at.port, self.ms_since(since));
            status::LossyCable {
                xbar: at.xbar,
                tag,
                host,
                port,
                since_ms,
                lost_percent,
                is_avoided,
                is_left_out,
            }
        };
        self.host.healing().lossy_cables().map(shown).collect()
    }

    fn ms_since(&self, then: Instant) -> u64 {
        self.now().since(then).as_millis().try_into().unwrap_or(u64::MAX)
    }
}
