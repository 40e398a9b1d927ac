//! Measures the ways to other hosts for programs that ask.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use mapper_host::kernel_path::KernelPath;
use mapper_host::routes::{RouteTable, WayByDestination};
use mapper_host::sounding::{EchoWay, KernelCourse, KernelWay, Sounded};
use mapper_machine::status::Client;
use mapper_proto::Mac;
use mapper_proto::map::PortRef;

use super::state::Driver;
use crate::agent::status::{Answered, BY_ROUTES, Hop, Measure, SoundedHost, SoundingAsked, WayAsked};
use crate::hosts_file::block;
use mapper_proto::crossbar_tag;

/// The most echoes along one way.
const MOST_PINGS: u16 = 1000;
const LONGEST: Duration = Duration::from_secs(60);
/// The most packets of a train. More would not fit into the queues that they wait in, and would delay the
/// agents' own frames until agents take each other for dead.
const MOST_IN_TRAIN: u16 = 200;
/// The MTU that is assumed for a port whose MTU is not known.
const UNKNOWN_MTU: u32 = 1500;

/// What is being measured, and who waits for it.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    waiting: BTreeMap<u32, (SoundingAsked, Client)>,
    next: u32,
}

impl Driver {
    /// Begins to send echoes along the ways to a host, or refuses.
    pub(super) fn ping(
        &mut self,
        host: &str,
        count: u16,
        (interval_ms, frame_bytes): (u32, u16),
        client: Client,
    ) {
        let interval = Duration::from_millis(interval_ms.into());
        if !(1..=MOST_PINGS).contains(&count) || interval * u32::from(count) > LONGEST {
            let (most, seconds) = (MOST_PINGS, LONGEST.as_secs());
            return refuse(client, format!("from 1 to {most} echoes along each way, and within {seconds} s"));
        }
        self.measure(host, Measure::Ping { count, interval, frame_bytes }, client);
    }

    /// Begins to send trains of so many packets along the ways to a host, or refuses.
    pub(super) fn bandwidth(&mut self, host: &str, (trains, packets): (u16, u16), client: Client) {
        if trains == 0 || !(2..=MOST_IN_TRAIN).contains(&packets) {
            return refuse(client, format!("at least one train, of 2 to {MOST_IN_TRAIN} packets"));
        }
        self.measure(host, Measure::Bandwidth { trains, packets }, client);
    }

    /// Begins to measure the ways to a host, or refuses.
    pub(super) fn measure(&mut self, host: &str, measure: Measure, client: Client) {
        let asked = match self.ways_to(host, measure) {
            Ok(asked) => asked,
            Err(why) => return refuse(client, why),
        };
        let number = self.measurements.next;
        let (now, plan) = (self.now(), asked.plan());
        if plan.lasts() > LONGEST {
            let (ways, seconds) = (asked.ways.len(), LONGEST.as_secs());
            return refuse(client, format!("{ways} ways would take longer than {seconds} s; ask for less"));
        }
        if let Err(why) = self.host.sound(now, number, plan) {
            return refuse(client, why.to_string());
        }
        self.measurements.next = number.wrapping_add(1);
        self.measurements.waiting.insert(number, (asked, client));
    }

    /// Answers the program that waits for a measurement.
    pub(super) fn answer_sounding(&mut self, number: u32, sounded: Sounded) {
        if let Some((mut asked, client)) = self.measurements.waiting.remove(&number) {
            asked.called = self.called_where_hops_ended(&sounded);
            drop(tokio::spawn(client.answer_json(move || asked.answer(&sounded))));
        }
    }

    /// What the crossbars are called whose kernels said that hop limits ended there.
    fn called_where_hops_ended(&self, sounded: &Sounded) -> BTreeMap<Ipv6Addr, String> {
        let Some(table) = self.host.table() else { return BTreeMap::new() };
        let names = HopNames { driver: self, table };
        let ended = sounded.iter().flatten().flatten().filter_map(|back| back.ended_at);
        let called = ended.filter_map(|ip| {
            let mut whose = self.host.directory().host_with(IpAddr::V6(ip));
            let (Some(mac), None) = (whose.next(), whose.next()) else { return None };
            Some((ip, names.of_crossbar_of(mac)))
        });
        called.collect()
    }

    /// The ways to the host that a name or address stands for.
    fn ways_to(&self, wanted: &str, measure: Measure) -> Result<SoundingAsked, String> {
        let mac = self.host_of(wanted)?;
        if mac == self.host.own() {
            return Err(format!("{wanted} is this host itself"));
        }
        let table =
            self.host.table().ok_or("this host has no routes in force; `mapper board-info` says why")?;
        let host = table.host(mac).ok_or_else(|| format!("the map in force does not list {wanted}"))?;
        let names = HopNames { driver: self, table };
        let end = |echo| Hop { name: names.of_host(mac), leaves_by: None, echo };
        let narrow = table.basis().map().narrow_ports();
        let link_mtu = self.attachment.link.mtu().unwrap_or(UNKNOWN_MTU) as usize;
        let of_agents = table.paths_to(host).map(|path| {
            let echo = |turn| Some(EchoWay::Agents { way: path.way.clone(), to: mac, turn });
            let crossbars = path.hops.iter().enumerate().map(|(at, &hop)| names.hop(hop, echo(Some(at + 1))));
            let least = path.hops.iter().filter_map(|hop| narrow.get(hop)).min();
            let longest_bytes = least.map_or(link_mtu, |&least| link_mtu.min(least.into()));
            let hops = crossbars.chain([end(echo(None))]).collect();
            WayAsked { by: "agents", in_use: true, hops, longest_bytes, forks_at: None }
        });
        let mut ways: Vec<_> = of_agents.collect();
        let kernels = self.host.kernel_path().map_or_else(Vec::new, |path: &KernelPath| path.ways_to(mac));
        ways.extend(kernels.iter().map(|way: &KernelWay| {
            let (by, crossbars, forks_at) = match way.course {
                KernelCourse::Segments(_) => ("srv6", names.along(way), None),
                KernelCourse::Destination => {
                    let (crossbars, forks_at) = names.along_tables(way, (mac, host));
                    (BY_ROUTES, crossbars, forks_at)
                }
            };
            let hops = crossbars.into_iter().chain([end(way.to_host())]).collect();
            WayAsked { by, in_use: way.is_proved, hops, longest_bytes: way.mtu as usize, forks_at }
        }));
        if ways.is_empty() {
            return Err(format!("no route leads to {wanted}"));
        }
        let to = SoundedHost { mac: mac.to_string(), name: names.of_host(mac) };
        Ok(SoundingAsked { to, ways, measure, called: BTreeMap::new() })
    }

    /// The only host that a name, a MAC or an address of IP stands for.
    fn host_of(&self, wanted: &str) -> Result<Mac, String> {
        let directory = self.host.directory();
        let found: Vec<Mac> = match (wanted.parse(), wanted.parse()) {
            (Ok(mac), _) => vec![mac],
            (_, Ok(ip)) => directory.host_with(ip).collect(),
            _ => match directory.hosts_called(wanted).take(2).collect::<Vec<_>>() {
                found if found.is_empty() => directory.hosts_called(block::base(wanted)).take(2).collect(),
                found => found,
            },
        };
        match found.as_slice() {
            [mac] => Ok(*mac),
            [] => Err(format!(
                "{wanted}: no host of the map is called so, or has that address; `mapper board-info` names those that are \
                 missing"
            )),
            _ => Err(format!(
                "{wanted}: several hosts have that; name one by its MAC (`mapper resolve {wanted}`)"
            )),
        }
    }
}

/// What crossbars and their ports are called.
struct HopNames<'a> {
    driver: &'a Driver,
    table: &'a RouteTable,
}

impl HopNames<'_> {
    /// How many hosts of a crossbar are named.
    const MOST: usize = 3;

    fn hop(&self, PortRef { xbar, port }: PortRef, echo: Option<EchoWay>) -> Hop {
        let tag = self.table.tag(xbar);
        let own = self.driver.attachment.tag();
        let interface = (tag.is_some() && tag == own).then(|| {
            let ports = self.driver.attachment.outer_ports();
            ports.into_iter().find(|it| it.port == port).map(|it| it.interface)
        });
        let leaves_by = match interface.flatten() {
            Some(interface) => format!("port {port} ({interface})"),
            None => format!("port {port}"),
        };
        Hop { name: self.name(xbar, tag), leaves_by: Some(leaves_by), echo }
    }

    /// The crossbars of a way whose hops are all known, and the echoes that turn there.
    fn along(&self, way: &KernelWay) -> Vec<Hop> {
        way.hops.iter().enumerate().map(|(at, &hop)| self.hop(hop, way.to_crossbar(at))).collect()
    }

    /// The crossbars of a way to a host, by its number, as tables by destination have it, and the echoes whose hop limit ends there;
    /// and the place of the first that has several ports as near.
    fn along_tables(&self, way: &KernelWay, (mac, host): (Mac, u32)) -> (Vec<Hop>, Option<usize>) {
        let WayByDestination { mut hops, forks_at } = match way.hops.first() {
            Some(&first) => self.table.way_by_destination(first, host),
            None => self.table.way_by_cable(host),
        };
        // The kernel of a node's crossbar is that of its host, which answers for itself.
        let is_elsewhere = hops.len() > way.hops.len();
        if is_elsewhere && hops.last().is_some_and(|home| self.is_node_at(mac, home.xbar)) {
            let _home = hops.pop();
        }
        let hop = |(at, &hop): (usize, &PortRef)| {
            let mut hop = self.hop(hop, way.to_crossbar_by_destination(at));
            // The kernel chooses flow by flow.
            if forks_at.is_some_and(|forks_at| at >= forks_at) {
                hop.leaves_by = None;
            }
            hop
        };
        (hops.iter().enumerate().map(hop).collect(), forks_at)
    }

    /// Whether a crossbar is that of a host's own machine, a node.
    fn is_node_at(&self, mac: Mac, xbar: u32) -> bool {
        self.table.tag(xbar).is_some_and(|tag| crossbar_tag::is_of(tag, mac))
    }

    /// The hosts that are cabled to a crossbar.
    fn hosts_at(&self, xbar: u32) -> impl Iterator<Item = Mac> + '_ {
        let hosts = &self.table.basis().map().hosts;
        hosts.iter().filter(move |host| host.at.is_some_and(|at| at.xbar == xbar)).map(|host| host.mac)
    }

    /// What the crossbar that a host is cabled to is called, or else the host.
    fn of_crossbar_of(&self, mac: Mac) -> String {
        let home =
            self.table.host(mac).and_then(|host| self.table.basis().map().hosts.get(host as usize)?.at);
        home.map_or_else(|| self.of_host(mac), |at| self.name(at.xbar, self.table.tag(at.xbar)))
    }

    /// What a host is called, if it has said so, or else its address.
    fn of_host(&self, mac: Mac) -> String {
        self.driver.host.directory().name_of(mac).map_or_else(|| mac.to_string(), ToString::to_string)
    }

    /// The host whose node the crossbar is, or else its tag and the hosts that are cabled to it.
    fn name(&self, xbar: u32, tag: Option<u64>) -> String {
        if let Some(node) = self.hosts_at(xbar).find(|&mac| self.is_node_at(mac, xbar)) {
            return format!("crossbar of {}", self.of_host(node));
        }
        let tag = tag.map_or_else(|| format!("xbar{xbar}"), |tag| format!("{tag:#018x}"));
        let mut names: Vec<String> = self.hosts_at(xbar).map(|mac| self.of_host(mac)).collect();
        if names.is_empty() {
            return format!("crossbar {tag}");
        }
        let more = if names.len() > Self::MOST { " and others" } else { "" };
        names.truncate(Self::MOST);
        format!("crossbar {tag} of {}{more}", names.join(", "))
    }
}

fn refuse(client: Client, why: String) {
    let answer = Answered::<()>::Refused(why);
    drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&answer))));
}
