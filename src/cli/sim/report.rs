//! The report that `mapper sim` prints.

use std::time::Duration;

use mapper_fabric::names::Names;
use mapper_fabric::wording::{SHOWN_NAMES, counted, first_of, plural};
use mapper_proto::agent::Purpose;
use mapper_proto::map::{Fabric, Map};
use mapper_routing::Shape;
use mapper_sim::fabric::PlantNode;
use mapper_sim::world::{FabricCount, FaultEffect, Leader, TrafficReport, World};
use serde_json::{Value, json};

/// The results of a finished run.
pub(super) struct RunReport {
    seed: u64,
    wall_ms: f64,
    virtual_ms: f64,
    /// Whether each part is configured under its own leader.
    each_configured: bool,
    /// Whether each part's map matches the part.
    each_matches: bool,
    why_not: String,
    leader: Option<LeaderReport>,
    parts: usize,
    live_hosts: usize,
    /// The names of live hosts that share an address with another, and so are in no map.
    twins: Vec<String>,
    /// When a live host last completed a map.
    last_map_ms: Option<f64>,
    configured_ms: Option<f64>,
    ports: usize,
    totals: mapper_sim::world::Totals,
    stats: mapper_sim::world::Stats,
    digest: u64,
    traffic: Option<TrafficReport>,
}

/// The global mapper of the largest part.
struct LeaderReport {
    name: String,
    /// The name of the host that made its map.
    mapper: String,
    status: mapper_proto::agent::Status,
    /// The kind of its routes in words, once it has some.
    routing: Option<String>,
    mapped_ms: Option<f64>,
}

impl RunReport {
    /// The report on a world whose run is over.
    pub(super) fn of(world: &mut World, fabric: &Fabric, seed: u64, wall_ms: f64) -> Self {
        let verdict = world.verdict();
        let leader = verdict.leaders.first().and_then(|leader| LeaderReport::of(world, leader, fabric));
        let hosts = 0..world.plant().hosts() as u32;
        Self {
            seed,
            wall_ms,
            virtual_ms: world.now().as_millis_f64(),
            each_configured: verdict.configured,
            each_matches: verdict.map_matches_fabric,
            why_not: verdict.why_not,
            leader,
            parts: verdict.parts,
            live_hosts: hosts.clone().filter(|&host| world.is_live(host)).count(),
            twins: hosts
                .filter(|&host| world.is_live(host) && world.has_twin(host))
                .map(|host| world.plant().name(PlantNode::Host(host)).to_string())
                .collect(),
            last_map_ms: last_map(world),
            configured_ms: world.configured_at().map(mapper_proto::Instant::as_millis_f64),
            ports: world.plant().ends().filter(|end| matches!(end.node, PlantNode::Xbar(_))).count(),
            totals: world.totals(),
            stats: world.stats(),
            digest: world.digest(),
            traffic: world.traffic(),
        }
    }

    /// What became of users' frames, if users sent any.
    pub(super) fn traffic(&self) -> Option<&TrafficReport> {
        self.traffic.as_ref()
    }

    /// Why not all live hosts hold one map that matches the fabric; empty if they do.
    fn why_not_one(&self) -> String {
        match self.parts {
            0 | 1 => self.why_not.clone(),
            parts if self.each_configured && self.each_matches => {
                format!("the fabric is in {parts} parts, each configured under its own leader")
            }
            parts => format!("the fabric is in {parts} parts, and {}", self.why_not),
        }
    }

    /// The JSON `mapper.sim/1`.
    pub(super) fn json(&self) -> Value {
        let leader = self.leader.as_ref();
        let cost = leader.and_then(|leader| leader.status.mapping);
        let mut report = json!({
            "schema": "mapper.sim/1",
            "configured": self.each_configured && self.parts == 1,
            "map_matches_fabric": self.each_matches && self.parts == 1,
            "why_not": self.why_not_one(),
            "hosts": leader.map_or(0, |leader| leader.status.hosts),
            "xbars": leader.map_or(0, |leader| leader.status.xbars),
            "cables": leader.map_or(0, |leader| leader.status.cables),
            "parts": self.parts,
            "live_hosts": self.live_hosts,
            "leader": leader.map(|leader| leader.status.rank.mac.to_string()),
            "map_version": leader.map(|leader| json!({
                "mac": leader.status.version.mac.to_string(),
                "counter": leader.status.version.counter,
            })),
            "routing": leader.and_then(|leader| leader.routing.clone()),
            "virtual_ms": {
                "mapped": leader.and_then(|leader| leader.mapped_ms),
                "configured": self.configured_ms,
                "end": self.virtual_ms,
            },
            "wall_ms": self.wall_ms,
            "mapping": cost.map(|cost| json!({
                "switch_probes": cost.switch_probes,
                "scouts": cost.scouts,
                "compares": cost.compares,
                "virtual_ms": cost.ended.since(cost.began).as_secs_f64() * 1e3,
                "probes_per_port": self.probes_per_port(),
            })),
            "messages": self.messages(),
            "frames": self.frames(),
            "seed": self.seed,
            "digest": format!("{:016x}", self.digest),
        });
        if let Some(traffic) = &self.traffic {
            report["traffic"] = traffic_json(traffic, self.stats.by_kernel);
        }
        report
    }

    /// The report as text for a person.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![("configured", self.configured_words())];
        if let Some(LeaderReport { name, status, mapper, .. }) = &self.leader {
            let version = format!("{} of {mapper}", status.version.counter);
            let (hosts, xbars, cables) = (status.hosts, status.xbars, status.cables);
            lines.push(("map", format!("{hosts} hosts, {xbars} xbars, {cables} cables; {version}")));
            lines.push(("leader", format!("{name}, {} level {}", status.rank.mac, status.rank.level)));
            lines.extend(self.leader.iter().filter_map(|leader| Some(("routes", leader.routing.clone()?))));
            if self.parts > 1 {
                lines.push(("parts", format!("{}; the above is the largest", self.parts)));
            }
        }
        lines.push(("times", self.times_words()));
        if let Some(cost) = self.leader.as_ref().and_then(|leader| leader.status.mapping) {
            let took = cost.ended.since(cost.began).as_secs_f64() * 1e3;
            lines.push((
                "last mapping",
                format!(
                    "{}, {}, {} in {took:.3} ms: {:.2} a port",
                    plural(cost.switch_probes, "switch probe"),
                    plural(cost.scouts, "scout"),
                    plural(cost.compares, "compare"),
                    self.probes_per_port().unwrap_or_default(),
                ),
            ));
        }
        let stats = &self.stats;
        lines.push((
            "frames",
            format!(
                "{} sent, {} received; lost: {} on dead cables, {} at random, {} misrouted, {} to full queues",
                stats.frames[FabricCount::Sent],
                stats.frames[FabricCount::Received],
                stats.frames[FabricCount::LostOnDeadCables],
                stats.frames[FabricCount::LostToNoise],
                stats.frames[FabricCount::Misrouted],
                stats.frames[FabricCount::Overflowed]
            ),
        ));
        if let Some(traffic) = &self.traffic {
            lines.push(("users", traffic_words(traffic, self.stats.by_kernel)));
            lines.extend(traffic.faults.iter().map(|effect| ("fault", effect_words(effect))));
        }
        lines.push(("seed", self.seed.to_string()));
        lines.iter().map(|(name, words)| format!("{name:<13} {words}\n")).collect()
    }

    fn configured_words(&self) -> String {
        let (parts, hosts) = (self.parts, self.live_hosts);
        match (self.each_configured, self.each_matches) {
            (true, true) if parts > 1 => {
                format!("{parts} parts, each configured under its own leader; {hosts} live hosts in all")
            }
            (true, true) if !self.twins.is_empty() => format!(
                "yes, all {} live hosts whose address is their own; the map is that of the fabric without {}, \
                 which share addresses",
                hosts - self.twins.len(),
                self.twins.join(", ")
            ),
            (true, true) => format!("yes, all {hosts} live hosts; the map is that of the fabric"),
            (true, false) => format!("yes, but {}", self.why_not),
            (false, _) => format!("no: {}", self.why_not),
        }
    }

    fn times_words(&self) -> String {
        let ms =
            |ms: Option<f64>| ms.map_or_else(|| "not by the end".to_owned(), |ms| format!("at {ms:.3} ms"));
        // Hosts that do not agree on a leader may still hold maps, so the time of the last one is shown.
        let mapped = ms(self.leader.as_ref().and_then(|leader| leader.mapped_ms).or(self.last_map_ms));
        let configured = ms(self.configured_ms);
        let wall = self.wall_ms / 1e3;
        format!("mapped {mapped}, configured {configured} of virtual time; {wall:.2} s of wall time")
    }

    /// What became of frames.
    fn frames(&self) -> Value {
        let counts = self.stats.frames.iter();
        let mut frames: serde_json::Map<String, Value> =
            counts.map(|(_, name, number)| (name.to_owned(), number.into())).collect();
        frames.insert("peak_receive_queue".to_owned(), self.stats.peak_receive_queue.into());
        frames.insert("peak_in_flight".to_owned(), self.stats.peak_in_flight.into());
        frames.into()
    }

    /// How many messages all agents sent for each purpose. A message that was sent again counts once.
    fn messages(&self) -> Value {
        let sent = self.totals.sent.iter().filter(|(purpose, ..)| *purpose != Purpose::Retry);
        let mut messages: serde_json::Map<String, Value> =
            sent.map(|(_, name, number)| (name.to_owned(), number.into())).collect();
        messages.insert("dropped".to_owned(), self.totals.dropped.into());
        messages.insert("total".to_owned(), self.stats.frames[FabricCount::Sent].into());
        messages.into()
    }

    /// The number of probe frames of the leader's last mapping, divided by the number of ports of all xbars.
    fn probes_per_port(&self) -> Option<f64> {
        let cost = self.leader.as_ref()?.status.mapping?;
        let frames = cost.switch_probes + cost.scouts + cost.compares;
        (self.ports > 0).then(|| frames as f64 / self.ports as f64)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn traffic_json(traffic: &TrafficReport, by_kernel: u64) -> Value {
    let effect = |effect: &FaultEffect| {
        json!({
            "at_ms": effect.at.as_millis_f64(),
            "what": effect.what,
            "pairs": effect.pairs,
            "longest_gap_ms": ms(effect.longest_gap),
            "routes_after_ms": ms(effect.routes_after),
            "still_without": effect.still_without,
            "new_map_after_ms": effect.new_map_after.map(ms),
        })
    };
    json!({
        "sent": traffic.sent,
        "delivered": traffic.delivered,
        "lost": traffic.lost,
        "out_of_reach": traffic.out_of_reach,
        "undecided": traffic.undecided,
        "duplicated": traffic.duplicated,
        "late": traffic.late,
        "reordered": traffic.reordered,
        "by_kernel": by_kernel,
        "longest_gap_ms": ms(traffic.longest_gap),
        "faults": traffic.faults.iter().map(effect).collect::<Vec<_>>(),
    })
}

fn traffic_words(traffic: &TrafficReport, by_kernel: u64) -> String {
    let TrafficReport { sent, delivered, lost, out_of_reach, undecided, duplicated, reordered, late, .. } =
        traffic;
    let late = match late {
        0 => String::new(),
        _ => format!(", {late} late"),
    };
    let why_lost = match out_of_reach {
        0 => String::new(),
        _ => format!(" ({out_of_reach} of them to hosts that no cables led to, or where no agent ran)"),
    };
    let undecided = match undecided {
        0 => String::new(),
        _ => format!(", {undecided} sent too late to tell"),
    };
    let by_kernel = match by_kernel {
        0 => String::new(),
        _ => format!(" ({by_kernel} through kernels)"),
    };
    format!(
        "{sent} frames sent, {delivered} delivered{by_kernel}, {lost} lost{why_lost}{undecided}, {duplicated} duplicated, \
         {reordered} reordered{late}; the longest gap of a pair that cables joined {:.1} ms",
        ms(traffic.longest_gap)
    )
}

/// Describes what a fault cost users.
fn effect_words(effect: &FaultEffect) -> String {
    let lost = match effect.pairs {
        0 => "no pair of hosts that cables joined lost frames".to_owned(),
        pairs => {
            let without = match effect.still_without {
                0 => format!("all had a route again after {:.1} ms", ms(effect.routes_after)),
                still => format!("{still} of them are without a route still"),
            };
            let gap = ms(effect.longest_gap);
            format!(
                "{} lost frames, for {gap:.1} ms at most; {without}",
                counted(pairs, "pair of hosts", "pairs of hosts")
            )
        }
    };
    let map = match effect.new_map_after {
        Some(after) => format!("a new map everywhere after {:.1} ms", ms(after)),
        None => "no new map everywhere before the next fault or the end".to_owned(),
    };
    format!("{} at {:.1} ms: {lost}; {map}", effect.what, effect.at.as_millis_f64())
}

/// When a live host last completed a map, in virtual milliseconds.
fn last_map(world: &World) -> Option<f64> {
    let hosts = (0..world.plant().hosts() as u32).filter(|&host| world.is_live(host));
    let ended = hosts.filter_map(|host| Some(world.status(host)?.mapping?.ended));
    ended.max().map(mapper_proto::Instant::as_millis_f64)
}

/// The kind of routes in words, with the roots called by their names in the fabric.
fn routing_words(shape: &Shape, map: &Map, fabric: &Fabric, names: &Names) -> String {
    let Shape::UpDown { roots } = shape else { return shape.to_string() };
    let name = |&root: &u32| {
        let tag = map.xbars.get(root as usize)?.tag?;
        let xbar = fabric.map.xbars.iter().position(|xbar| xbar.tag == Some(tag))?;
        Some(names.xbar(xbar as u32))
    };
    // An xbar without a tag cannot be found in the fabric by its number in the map, so it has no name.
    match roots.iter().take(SHOWN_NAMES).map(name).collect::<Option<Vec<_>>>() {
        Some(shown) if !shown.is_empty() => format!("up*/down* from {}", first_of(&shown, roots.len())),
        _ => shape.to_string(),
    }
}

impl LeaderReport {
    fn of(world: &World, leader: &Leader, fabric: &Fabric) -> Option<Self> {
        let names = Names::of(fabric);
        let routing = world.table(leader.host);
        let status = world.status(leader.host)?;
        let mapper = fabric.map.hosts.iter().position(|host| host.mac == status.version.mac);
        Some(Self {
            name: names.host(leader.host),
            mapper: mapper.map_or_else(|| status.version.mac.to_string(), |host| names.host(host as u32)),
            status,
            routing: routing.map(|table| routing_words(table.shape(), table.basis().map(), fabric, &names)),
            mapped_ms: leader.mapped_at.map(mapper_proto::Instant::as_millis_f64),
        })
    }
}
