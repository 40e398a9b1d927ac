//! Whether all is as it should be.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::map::{Host, Map, MapVersion, is_isomorphic};
use mapper_proto::wire::AgentState;
use mapper_proto::{Instant, Mac};

use super::World;
use crate::fabric::{Noise, Parts, PlantNode};

/// The global mapper of a connected part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leader {
    /// Which host.
    pub host: u32,
    /// Its map, which all hosts of the part hold.
    pub version: MapVersion,
    /// When it finished that map.
    pub mapped_at: Option<Instant>,
    /// How many live hosts the part has.
    pub hosts: usize,
}

/// How a run stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// There are live hosts, and every one holds its part's map and proved routes made from it.
    pub configured: bool,
    /// How many connected parts have live hosts.
    pub parts: usize,
    /// Each part's map is that of the fabric as it is now.
    pub map_matches_fabric: bool,
    /// The leader of each part, the largest part first; a lone host leads itself. None until all
    /// are configured.
    pub leaders: Vec<Leader>,
    /// What is wrong, in words; empty if nothing is.
    pub why_not: String,
}

/// What was found of a state of the fabric, until it changes.
#[derive(Debug, Default)]
pub(super) struct MatchCache {
    /// A number that grows when agents come and go.
    pub(super) occupancy: u64,
    found_for: (u64, u64),
    parts: Option<Parts>,
    /// Addresses that several hosts have.
    shared: BTreeSet<Mac>,
    /// For each part: which map was compared with the fabric, and what is wrong with it.
    compared: BTreeMap<u32, (MapVersion, Result<(), String>)>,
    /// A host that was not configured when last looked: the first to look at next time.
    laggard: u32,
    /// When to look next. Agents that are alone change without an event, so there is a look now and then.
    next_look: Instant,
}

/// Live hosts of one connected part.
pub(super) struct Part {
    pub(super) part: u32,
    pub(super) hosts: Vec<u32>,
}

impl World {
    /// How often the world looks while nothing is reported.
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(20);

    /// Whether [`Until::Configured`](super::Until::Configured) is reached.
    pub(super) fn is_done(&mut self) -> bool {
        if self.faults_left > 0 || !self.is_time_to_look() {
            return false;
        }
        if !self.all_report_configured() {
            return false;
        }
        let done =
            self.find_unconfigured().is_none() && (!self.is_disturbed() || self.find_mismatch().is_none());
        if done {
            self.configured_at.get_or_insert(self.now);
        }
        done
    }

    /// Notes since when all have been configured, if they are, in a run that ends at a given moment.
    pub(super) fn note_configured(&mut self) {
        if !self.is_time_to_look() {
            return;
        }
        if self.all_report_configured() && self.find_unconfigured().is_none() {
            self.configured_at.get_or_insert(self.now);
        } else {
            self.configured_at = None;
        }
    }

    /// Whether every live host is configured, with a map of the fabric as it is now.
    pub(super) fn is_configured_with_the_truth(&mut self) -> bool {
        self.all_report_configured() && self.find_unconfigured().is_none() && self.find_mismatch().is_none()
    }

    /// Whether all hosts whose frames or packets cables may lead to this node use routes of one map, which is that of their part of
    /// the fabric as it is now. A host that has the address of another is in no such map, and goes on with its routes until
    /// it hears of that other.
    pub(super) fn is_of_one_true_map(&mut self, at: PlantNode) -> bool {
        let senders = self.senders_to(at);
        let shares = |&host: &u32| self.is_live(host) && self.has_twin(host) && self.table(host).is_some();
        if senders.iter().any(shares) {
            return false;
        }
        let parts: BTreeSet<u32> = senders.iter().map(|&host| self.part_of(PlantNode::Host(host))).collect();
        let parts: Vec<Part> =
            self.live_parts().into_iter().filter(|part| parts.contains(&part.part)).collect();
        parts.iter().all(|part| {
            let version = |&host: &u32| self.table(host).map(|table| table.version());
            let held = |&host: &u32| self.status(host).map(|status| status.version);
            let first = part.hosts.first().and_then(version);
            part.hosts.iter().all(|host| version(host) == first && held(host) == first)
        }) && parts.iter().all(|part| self.mismatch_of(part).is_none())
    }

    /// The hosts whose frames, or the packets of whose kernels, may reach a node: cables join either the host or the crossbar that
    /// it is cabled to with the node. A kernel goes on where no cable leads from its host any more.
    pub(super) fn senders_to(&mut self, at: PlantNode) -> BTreeSet<u32> {
        let part = self.part_of(at);
        let mut senders = BTreeSet::new();
        for host in 0..self.hosts.len() as u32 {
            let own = self.plant.own_xbar(host).map(|own| own.node);
            let mut nodes = [Some(PlantNode::Host(host)), own].into_iter().flatten();
            if nodes.any(|node| self.part_of(node) == part) {
                senders.insert(host);
            }
        }
        senders
    }

    /// Tells whether two hosts are live, and cables lead from one to the other.
    pub(super) fn joined_hosts(&mut self) -> impl Fn(u32, u32) -> bool + use<> {
        let parts = self.live_parts();
        let mut part_of = vec![None; self.hosts.len()];
        for part in parts {
            part.hosts.iter().for_each(|&host| part_of[host as usize] = Some(part.part));
        }
        move |one, other| part_of[one as usize].is_some() && part_of[one as usize] == part_of[other as usize]
    }

    /// The connected part that a node is in: the same number for nodes that cables join.
    pub(super) fn part_of(&mut self, node: PlantNode) -> u32 {
        self.refresh();
        self.matches.parts.as_ref().map_or(0, |parts| parts.part(node))
    }

    /// Whether anything may have changed since the last look.
    fn is_time_to_look(&mut self) -> bool {
        let worth_it = std::mem::take(&mut self.worth_checking) || self.now >= self.matches.next_look;
        if worth_it {
            self.matches.next_look = self.now + Self::LOOK_EVERY;
        }
        worth_it
    }

    /// Whether agents may agree on a map that is wrong and will be replaced: before they notice a
    /// fault, or where noise swallowed the probes that would have found more.
    fn is_disturbed(&self) -> bool {
        !self.faults.is_empty()
            || self.options.noise != Noise::default()
            || self.options.timing.jitter != std::time::Duration::ZERO
    }

    /// When [`Until::Configured`](super::Until::Configured) was first reached. In a run that ends at a given
    /// moment, it is since when all have been configured; `None` if they are not.
    pub fn configured_at(&self) -> Option<Instant> {
        self.configured_at
    }

    /// How the run stands, by a full look at everything.
    pub fn verdict(&mut self) -> Verdict {
        let unconfigured = self.find_unconfigured();
        let mismatch = self.find_mismatch();
        let leaders = if unconfigured.is_none() { self.leaders() } else { Vec::new() };
        Verdict {
            configured: unconfigured.is_none(),
            parts: self.live_parts().len(),
            map_matches_fabric: mismatch.is_none(),
            leaders,
            why_not: unconfigured.or(mismatch).unwrap_or_default(),
        }
    }

    /// Whether a host has an honest agent that runs, and its interface.
    pub fn is_live(&self, host: u32) -> bool {
        let slot = &self.hosts[host as usize];
        self.plant.is_present(host) && slot.node.as_ref().is_some_and(|node| node.is_honest())
    }

    /// Whether all hosts say that they are configured, by their events alone. The host that was behind last
    /// time is the first one that is looked at.
    fn all_report_configured(&mut self) -> bool {
        // There is no look before all are powered on: each host that is powered on changes the parts, which
        // take long to find in a large fabric.
        if self.waiting_for_power > 0 {
            return false;
        }
        self.refresh();
        let count = self.hosts.len() as u32;
        let first = self.matches.laggard;
        for i in (first..count).chain(0..first.min(count)) {
            let slot = &self.hosts[i as usize];
            let must_be = self.is_live(i) && !self.is_alone(i) && !self.has_twin(i);
            if must_be && slot.configured.is_none() {
                self.matches.laggard = i;
                return false;
            }
        }
        true
    }

    fn refresh(&mut self) {
        let current = (self.plant.generation(), self.matches.occupancy);
        if self.matches.parts.is_none() || self.matches.found_for != current {
            self.matches.parts = Some(Parts::of(&self.plant));
            self.matches.shared = self.shared_addresses();
            self.matches.compared.clear();
            self.matches.found_for = current;
        }
    }

    fn is_alone(&self, host: u32) -> bool {
        let Some(parts) = &self.matches.parts else { return false };
        let part = parts.part(PlantNode::Host(host));
        let others = (0..self.hosts.len() as u32).filter(|&other| other != host);
        !others.into_iter().any(|other| parts.part(PlantNode::Host(other)) == part && self.is_live(other))
    }

    fn shared_addresses(&self) -> BTreeSet<Mac> {
        let mut macs: Vec<Mac> = self.hosts.iter().map(|slot| slot.settings.mac).collect();
        macs.sort_unstable();
        macs.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }

    /// Whether several hosts had one address at the last look.
    pub(super) fn has_twins(&self) -> bool {
        !self.matches.shared.is_empty()
    }

    /// Whether no other live host that cables lead to has its address.
    pub(super) fn has_its_address_alone(&mut self, host: u32) -> bool {
        self.refresh();
        !self.has_twin(host)
    }

    /// Whether another live host of its part had its address at the last look.
    pub fn has_twin(&self, host: u32) -> bool {
        let Some(parts) =
            self.matches.parts.as_ref().filter(|_| self.matches.shared.contains(&self.mac(host)))
        else {
            return false;
        };
        let part = parts.part(PlantNode::Host(host));
        let is_twin = |&other: &u32| {
            other != host
                && self.mac(other) == self.mac(host)
                && self.is_live(other)
                && parts.part(PlantNode::Host(other)) == part
        };
        (0..self.hosts.len() as u32).any(|other| is_twin(&other))
    }

    /// The connected parts and their live hosts, without those whose address another has.
    pub(super) fn live_parts(&mut self) -> Vec<Part> {
        self.refresh();
        let Some(parts) = &self.matches.parts else { return Vec::new() };
        let mut by_part: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let live = (0..self.hosts.len() as u32).filter(|&host| self.is_live(host) && !self.has_twin(host));
        for host in live {
            by_part.entry(parts.part(PlantNode::Host(host))).or_default().push(host);
        }
        let mut parts: Vec<Part> = by_part.into_iter().map(|(part, hosts)| Part { part, hosts }).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.hosts.len()));
        parts
    }

    /// A live host that is not configured like the others of its part, in words.
    fn find_unconfigured(&mut self) -> Option<String> {
        let parts = self.live_parts();
        for part in &parts {
            let alone = part.hosts.len() == 1;
            let mut first = None;
            for &host in &part.hosts {
                if let Err(why) = self.look_at(host, alone, &mut first) {
                    let name = self.plant.name(PlantNode::Host(host));
                    return Some(format!("{name} {why}{}", self.first_routing_failure()));
                }
            }
        }
        if let Some(waiting) = self.hosts.iter().position(|slot| !slot.powered_on) {
            return Some(format!(
                "{} is not powered on yet",
                self.plant.name(PlantNode::Host(waiting as u32))
            ));
        }
        match (self.hosts.is_empty(), parts.is_empty()) {
            (true, _) => Some("the fabric has no hosts".to_owned()),
            (false, true) => Some("no live hosts".to_owned()),
            (false, false) => None,
        }
    }

    /// Why some host has no routes, which keeps the others from being configured; empty if all have them.
    fn first_routing_failure(&self) -> String {
        let live = (0..self.hosts.len() as u32).filter(|&host| self.is_live(host));
        let mut failed = live.filter_map(|host| {
            let failure = self.hosts[host as usize].node.as_ref()?.host()?.routing_failure()?;
            Some(format!("; {}: {failure}", self.plant.name(PlantNode::Host(host))))
        });
        failed.next().unwrap_or_default()
    }

    /// Looks at the state of one host, and compares its map and routes with those of the first host of its
    /// part.
    fn look_at(
        &self,
        host: u32,
        alone: bool,
        first: &mut Option<(MapVersion, Option<u64>)>,
    ) -> Result<(), String> {
        let slot = &self.hosts[host as usize];
        let (Some(node), Some(status)) = (&slot.node, self.status(host)) else {
            return Err("has no agent".to_owned());
        };
        match status.state {
            AgentState::Isolated if alone => {}
            AgentState::Configured if alone && status.hosts != 1 => {
                return Err("is alone and does not know it".to_owned());
            }
            AgentState::Configured => {}
            state => return Err(format!("is {state}")),
        }
        let routes = self.table(host).map(|table| table.version());
        if routes != Some(status.version) {
            let routes = routes.unwrap_or(MapVersion::NONE);
            return Err(format!("holds map {} and routes of map {routes}", status.version));
        }
        let map = (status.version, node.map_digest());
        match *first.get_or_insert(map) {
            other if other == map => Ok(()),
            (version, _) => Err(format!("holds map {}, others of its part {version}", map.0)),
        }
    }

    /// A part whose map is not that of the fabric, in words.
    fn find_mismatch(&mut self) -> Option<String> {
        self.live_parts().iter().find_map(|part| self.mismatch_of(part))
    }

    /// What is wrong with the map of a part, in words; `None` if it is that of the fabric.
    fn mismatch_of(&mut self, part: &Part) -> Option<String> {
        let &first = part.hosts.first()?;
        let version = self.status(first)?.version;
        if self.matches.compared.get(&part.part).is_none_or(|(compared, _)| *compared != version) {
            let result = self.compare_part(part, first);
            self.matches.compared.insert(part.part, (version, result));
        }
        self.matches.compared.get(&part.part)?.1.clone().err()
    }

    fn compare_part(&self, part: &Part, witness: u32) -> Result<(), String> {
        let name = self.plant.name(PlantNode::Host(witness));
        let map = self.hosts[witness as usize].node.as_ref().and_then(|node| node.map());
        let map = map.ok_or_else(|| format!("{name} holds no map"))?;
        let expected = self.expected_map(part).ok_or("the fabric is in no known state")?;
        let leader = expected.hosts.first().map(|host| host.mac);
        if leader != Some(map.version.mac) {
            return Err(format!("{name} holds map {}, which is not the highest mapper's", map.version));
        }
        // A map may have or lack what a single cable separates from every host.
        let whole = is_isomorphic(&map, &expected);
        whole
            .or_else(|_| is_isomorphic(&map, &expected.reachable_core().map))
            .map_err(|mismatch| format!("the map at {name} is not that of the fabric: {mismatch}"))
    }

    fn expected_map(&self, part: &Part) -> Option<Map> {
        let in_map = |&host: &u32| {
            let settings = &self.hosts[host as usize].settings;
            let (mac, level, host_type) = (settings.mac, settings.level, settings.host_type);
            (host, Host { mac, level, host_type, at: None })
        };
        let hosts: Vec<(u32, Host)> = part.hosts.iter().map(in_map).collect();
        Some(self.plant.map_of_part(self.matches.parts.as_ref()?, part.part, &hosts))
    }

    /// The leaders of all parts, the largest part first.
    fn leaders(&mut self) -> Vec<Leader> {
        let mut leaders = Vec::new();
        for part in self.live_parts() {
            let [first, ..] = part.hosts[..] else { continue };
            let Some(version) = self.status(first).map(|status| status.version) else { continue };
            for host in part.hosts.iter().copied().filter(|&host| self.mac(host) == version.mac) {
                let mapped = self.hosts[host as usize].mapped.filter(|mapped| mapped.0 == version);
                let mapped_at = mapped.map(|mapped| mapped.1);
                leaders.push(Leader { host, version, mapped_at, hosts: part.hosts.len() });
            }
        }
        leaders
    }
}
