//! Measures the ways to other hosts for programs that ask.

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_host::kernel_path::KernelPath;
use mapper_host::routes::RouteTable;
use mapper_host::sounding::{EchoWay, KernelCourse, KernelWay, Sounded};
use mapper_machine::status::Client;
use mapper_proto::Mac;
use mapper_proto::map::PortRef;

use super::state::Driver;
use crate::agent::status::{Answered, Hop, Measure, SoundedHost, SoundingAsked, WayAsked};
use crate::hosts_file::block;

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
    /// Begins to trace the ways to a host, or refuses.
    pub(super) fn trace(&mut self, host: &str, client: Client) {
        self.measure(host, Measure::Trace, client);
    }

    /// Begins to send echoes along the ways to a host, or refuses.
    pub(super) fn ping(&mut self, host: &str, count: u16, interval_ms: u32, client: Client) {
        let interval = Duration::from_millis(interval_ms.into());
        if !(1..=MOST_PINGS).contains(&count) || interval * u32::from(count) > LONGEST {
            let (most, seconds) = (MOST_PINGS, LONGEST.as_secs());
            return refuse(client, format!("from 1 to {most} echoes along each way, and within {seconds} s"));
        }
        self.measure(host, Measure::Ping { count, interval }, client);
    }

    /// Begins to send trains of so many packets along the ways to a host, or refuses.
    pub(super) fn bandwidth(&mut self, host: &str, (trains, packets): (u16, u16), client: Client) {
        if trains == 0 || !(2..=MOST_IN_TRAIN).contains(&packets) {
            return refuse(client, format!("at least one train, of 2 to {MOST_IN_TRAIN} packets"));
        }
        self.measure(host, Measure::Bandwidth { trains, packets }, client);
    }

    fn measure(&mut self, host: &str, measure: Measure, client: Client) {
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
        if let Some((asked, client)) = self.measurements.waiting.remove(&number) {
            drop(tokio::spawn(client.answer_json(move || asked.answer(&sounded))));
        }
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
            WayAsked { by: "agents", in_use: true, hops, longest_bytes }
        });
        let mut ways: Vec<_> = of_agents.collect();
        let kernels = self.host.kernel_path().map_or_else(Vec::new, |path: &KernelPath| path.ways_to(mac));
        ways.extend(kernels.iter().map(|way: &KernelWay| {
            let by = match way.course {
                KernelCourse::Segments(_) => "srv6",
                KernelCourse::Destination => "routes",
            };
            let crossbars = way.hops.iter().enumerate().map(|(at, &hop)| names.hop(hop, way.to_crossbar(at)));
            let hops = crossbars.chain([end(way.to_host())]).collect();
            WayAsked { by, in_use: way.is_proved, hops, longest_bytes: way.mtu as usize }
        }));
        if ways.is_empty() {
            return Err(format!("no route leads to {wanted}"));
        }
        let to = SoundedHost { mac: mac.to_string(), name: names.of_host(mac) };
        Ok(SoundingAsked { to, ways, measure })
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
        let own = self.driver.attachment.crossbar.as_ref().and_then(|_| self.driver.own_tag());
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

    /// What a host is called, if it has said so, or else its address.
    fn of_host(&self, mac: Mac) -> String {
        self.driver.host.directory().name_of(mac).map_or_else(|| mac.to_string(), ToString::to_string)
    }

    /// The crossbar's tag and the hosts that are cabled to it. The crossbar of a node is named by its host
    /// alone.
    fn name(&self, xbar: u32, tag: Option<u64>) -> String {
        let hosts = &self.table.basis().map().hosts;
        let at = hosts.iter().filter(|host| host.at.is_some_and(|at| at.xbar == xbar));
        let mut names: Vec<String> = at.map(|host| self.of_host(host.mac)).collect();
        let tag = tag.map_or_else(|| format!("xbar{xbar}"), |tag| format!("{tag:#018x}"));
        match names.as_slice() {
            [] => format!("crossbar {tag}"),
            [name] => format!("crossbar of {name}"),
            _ => {
                let more = names.len() > Self::MOST;
                names.truncate(Self::MOST);
                let more = if more { " and others" } else { "" };
                format!("crossbar {tag} of {}{more}", names.join(", "))
            }
        }
    }
}

fn refuse(client: Client, why: String) {
    let answer = Answered::<()>::Refused(why);
    drop(tokio::spawn(client.answer_json(move || serde_json::to_vec(&answer))));
}
