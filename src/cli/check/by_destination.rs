//! Proves what the kernels of nodes forward by the destination alone, all of them together.
//!
//! A kernel looks at the destination and at nothing else, so each destination is proved by itself: whichever of their
//! ports kernels choose, a packet must get there, and pass none of them twice. Then all of them together must close no
//! circle in which packets wait for each other, as of other tables.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::wording::counted;
use mapper_formats::routes::ListedRoutes;
use mapper_host::kernel_path::CABLE;
use mapper_proto::PortSet;
use mapper_proto::crossbar_tag;
use mapper_proto::map::{Fabric, PortRef};
use mapper_routing::{Attachment, Far, TablesProof, Topology, UnionProof};

use crate::cli::judgement::Describer;

/// By which ports the kernel at each xbar has packets to a host leave.
type Ports = BTreeMap<u32, PortSet>;

/// What the kernels of a fabric forward.
pub(super) struct Kernels<'a> {
    topology: &'a Topology,
    /// For each xbar the host whose node it is, where that is known.
    nodes: Vec<Option<u32>>,
    /// For each destination, by which ports packets to it leave each xbar.
    towards: BTreeMap<u32, Ports>,
    /// For each destination, the xbars that hosts without a crossbar hand packets to.
    handed_to: BTreeMap<u32, BTreeSet<u32>>,
    /// The xbars of nodes whose file was read.
    told: BTreeSet<u32>,
    /// How many pairs of hosts there are.
    pairs: u64,
}

/// What was proved of what kernels forward by the destination, or send by segments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Forwarded {
    /// For how many pairs of hosts kernels forward so, or along how many routes of segments they send.
    pub(super) count: u64,
    /// To how many hosts packets can go in a circle, or along how many routes.
    pub(super) loops: u64,
    /// How many ports or routes lead nowhere, or to another host, or are others than kernels were told.
    pub(super) broken: u64,
    /// Whether packets to several hosts can wait for each other in a circle.
    pub(super) cycle: bool,
    /// How many xbars a packet leaves at most.
    pub(super) longest: usize,
    /// Descriptions of the first things that are wrong.
    pub(super) violations: Vec<String>,
    /// What a user should know beside.
    pub(super) notes: Vec<String>,
}

/// What is known of an xbar while one destination is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The xbar is on the way that is being followed.
    OnTheWay,
    /// All ways from the xbar have been followed. A packet on them leaves at most this many xbars.
    Done(usize),
}

/// The ways to one destination.
struct Search<'a> {
    topology: &'a Topology,
    ports: &'a Ports,
    home: u32,
    state: BTreeMap<u32, State>,
    /// The first circle, by the ports that a packet leaves by.
    circle: Option<Vec<PortRef>>,
    /// Ports that lead to no other xbar.
    broken: Vec<PortRef>,
    /// Xbars that packets come to whose kernels have no such route there.
    ends: BTreeSet<u32>,
    /// Whether packets come to the xbar that the host is cabled to.
    comes_home: bool,
}

/// A port, and the channel that it leads to, if it leads to an xbar.
type Out = (PortRef, Option<u32>);

impl<'a> Kernels<'a> {
    pub(super) fn new(fabric: &Fabric, topology: &'a Topology) -> Self {
        Self {
            topology,
            nodes: (0..).zip(&fabric.map.xbars).map(|(xbar, of)| node_of(topology, xbar, of.tag)).collect(),
            towards: BTreeMap::new(),
            handed_to: BTreeMap::new(),
            told: BTreeSet::new(),
            pairs: 0,
        }
    }

    /// Adds what the kernel of a host's machine forwards.
    pub(super) fn add(&mut self, host: &ListedRoutes) {
        let Attachment::Port(home) = self.topology.attachment(host.from) else { return };
        self.pairs += host.by_destination.len() as u64;
        for (&to, ports) in &host.by_destination {
            let at_xbars = self.towards.entry(to).or_default();
            if ports.contains(&CABLE) {
                self.handed_to.entry(to).or_default().insert(home.xbar);
            } else {
                let out = at_xbars.entry(home.xbar).or_default();
                ports.iter().for_each(|&port| out.insert(port));
                // Where the tag does not tell whose node it is, only a node can have such ports.
                if let Some(node) = self.nodes.get_mut(home.xbar as usize) {
                    node.get_or_insert(host.from);
                }
            }
        }
        if self.node(home.xbar) == Some(host.from) {
            self.told.insert(home.xbar);
        }
    }

    /// The host whose node an xbar is, if that is known.
    fn node(&self, xbar: u32) -> Option<u32> {
        self.nodes.get(xbar as usize).copied().flatten()
    }

    /// The node that a host without a crossbar is cabled to, if packets come there for the host and its kernel is known to have no route to it.
    /// Where there is no file of that node, its xbar is added to the ends of the ways.
    fn stops_before(&self, to: u32, search: &mut Search<'_>) -> Option<u32> {
        let home = search.home;
        if !search.comes_home || self.node(home) == Some(to) || search.ports.contains_key(&home) {
            return None;
        }
        if self.told.contains(&home) {
            return self.node(home);
        }
        search.ends.insert(home);
        None
    }

    /// Proves all that was added.
    pub(super) fn prove(&self, names: &Describer<'_>) -> Forwarded {
        let mut forwarded = Forwarded { count: self.pairs, ..Forwarded::default() };
        let mut turns = BTreeSet::new();
        let (mut handed_over, mut unknown) = (0u64, BTreeSet::new());
        for (&to, ports) in &self.towards {
            let Attachment::Port(home) = self.topology.attachment(to) else { continue };
            let handed_to = self.handed_to.get(&to).into_iter().flatten().copied();
            let mut search = Search::run(self.topology, ports, home, handed_to);
            let host = names.shown.host(to);
            if let Some(circle) = &search.circle {
                forwarded.loops += 1;
                let ports = circle.iter().chain(circle.first()).map(|&at| names.port(at));
                let ports = ports.collect::<Vec<_>>().join(", then ");
                forwarded.tell(format!(
                    "packets to {host} can go in a circle, as kernels forward them: out of {ports}"
                ));
            }
            for &at in &search.broken {
                forwarded.broken += 1;
                forwarded.tell(format!(
                    "packets to {host} leave {} as kernels forward them, and no cable leads on from there",
                    names.port(at)
                ));
            }
            if let Some(node) = self.stops_before(to, &mut search) {
                forwarded.broken += 1;
                let node = names.shown.host(node);
                forwarded.tell(format!(
                    "packets to {host} come to {node}, the node that it is cabled to, whose kernel has no route to it"
                ));
            }
            let depth = search.state.values().filter_map(|state| match state {
                State::Done(steps) => Some(*steps),
                State::OnTheWay => None,
            });
            // The last xbar is left, too, to the host itself.
            forwarded.longest = forwarded.longest.max(depth.max().map_or(0, |steps| steps + 1));
            let (known, silent): (Vec<u32>, Vec<u32>) =
                search.ends.iter().partition(|xbar| self.told.contains(xbar));
            handed_over += u64::from(!known.is_empty());
            unknown.extend(silent);
            turns.extend(search.turns());
        }
        let mut union = UnionProof::new(self.topology);
        union.add_turns(|one, other| turns.contains(&(one, other)));
        if let Err(cycle) = union.prove_acyclic() {
            forwarded.cycle = true;
            let told = names.deadlock(0, &cycle);
            forwarded.violations.push(format!("what kernels forward by the destination: {told}"));
        }
        forwarded.notes.extend(notes(handed_over, &unknown, names));
        forwarded
    }
}

/// The host whose node an xbar is, by the xbar's tag. One that has none may be shared by hosts, unless it has only one.
fn node_of(topology: &Topology, xbar: u32, tag: Option<u64>) -> Option<u32> {
    let hosts = topology.hosts_of(xbar);
    match (tag, hosts) {
        (Some(tag), _) => hosts.iter().copied().find(|&host| crossbar_tag::is_of(tag, topology.mac(host))),
        (None, &[only]) => Some(only),
        (None, _) => None,
    }
}

/// What a user should know: to how many hosts packets leave the kernels on their way, and of which xbars it is
/// not known what their kernels do.
fn notes(handed_over: u64, unknown: &BTreeSet<u32>, names: &Describer<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if handed_over > 0 {
        notes.push(counted(
            handed_over,
            "host is reached by a kernel that has no route there of its own: packets go on by the tap interface",
            "hosts are reached by kernels that have no route there of their own: packets go on by the tap interface",
        ));
    }
    if let Some(&first) = unknown.first() {
        let xbars = counted(
            unknown.len() as u64,
            "kernel that others forward to by the destination has no file, so its part is not proved",
            "kernels that others forward to by the destination have no file, so their part is not proved",
        );
        notes.push(format!("{xbars}: that of {}", names.shown.xbar(first)));
    }
    notes
}

impl Forwarded {
    fn tell(&mut self, violation: String) {
        if self.violations.len() < TablesProof::MAX_LISTED {
            self.violations.push(violation);
        }
    }
}

impl<'a> Search<'a> {
    /// Follows all ways to a host that is cabled to the port `home`. Hosts without a crossbar hand packets to the xbars `handed_to`.
    fn run(
        topology: &'a Topology,
        ports: &'a Ports,
        home: PortRef,
        handed_to: impl Iterator<Item = u32>,
    ) -> Self {
        // The kernel of the host's own machine has no such ports, and where it is another's, only the host's is right.
        let at_home = ports.get(&home.xbar).into_iter().flat_map(PortSet::iter);
        let broken = at_home.filter(|&port| port != home.port).map(|port| PortRef { port, ..home }).collect();
        let home = home.xbar;
        let (at_home, elsewhere): (Vec<u32>, Vec<u32>) = handed_to.partition(|&xbar| xbar == home);
        let mut search = Self {
            topology,
            ports,
            home,
            state: BTreeMap::new(),
            circle: None,
            broken,
            ends: elsewhere.into_iter().filter(|xbar| !ports.contains_key(xbar)).collect(),
            comes_home: !at_home.is_empty(),
        };
        for &xbar in ports.keys() {
            search.follow(xbar);
        }
        search
    }

    /// The ports by which packets leave an xbar.
    fn out(&self, xbar: u32) -> Vec<Out> {
        let ports = self.ports.get(&xbar).filter(|_| xbar != self.home).into_iter().flat_map(PortSet::iter);
        let leads = |port: u8| {
            let at = PortRef { xbar, port };
            match self.topology.far(at) {
                Far::Channel(channel) => (at, Some(channel)),
                Far::Host(_) | Far::Nothing => (at, None),
            }
        };
        ports.map(leads).collect()
    }

    /// Follows all that leaves an xbar, depth first.
    fn follow(&mut self, start: u32) {
        if self.state.contains_key(&start) {
            return;
        }
        self.state.insert(start, State::OnTheWay);
        // Xbars on the way, each with its ports and how many of these are followed.
        let mut way: Vec<(u32, Vec<Out>, usize)> = vec![(start, self.out(start), 0)];
        while let Some((xbar, out, next)) = way.last_mut() {
            let Some(&(at, channel)) = out.get(*next) else {
                let steps = self.steps(out);
                self.state.insert(*xbar, State::Done(steps));
                way.pop();
                continue;
            };
            *next += 1;
            let Some(channel) = channel else {
                self.broken.push(at);
                continue;
            };
            let head = self.topology.head(channel).xbar;
            self.comes_home |= head == self.home;
            match self.state.get(&head) {
                Some(State::Done(_)) => {}
                Some(State::OnTheWay) => {
                    let circle = way.iter().skip_while(|(xbar, ..)| *xbar != head);
                    let left_by = circle.filter_map(|(_, out, next)| Some(out.get(next.checked_sub(1)?)?.0));
                    let circle = left_by.collect();
                    self.circle.get_or_insert(circle);
                }
                None if head == self.home => {}
                None if self.ports.contains_key(&head) => {
                    self.state.insert(head, State::OnTheWay);
                    way.push((head, self.out(head), 0));
                }
                None => {
                    self.ends.insert(head);
                }
            }
        }
    }

    /// How many xbars a packet leaves at most that leaves one by these ports, all of which are followed.
    fn steps(&self, out: &[Out]) -> usize {
        let behind = |&(_, channel): &Out| match self.state.get(&self.topology.head(channel?).xbar) {
            Some(State::Done(steps)) => Some(*steps),
            Some(State::OnTheWay) | None => Some(0),
        };
        out.iter().filter_map(behind).max().map_or(0, |steps| steps + 1)
    }

    /// From which channel to which packets go on.
    fn turns(&self) -> impl Iterator<Item = (u32, u32)> {
        let first = self.ports.keys().flat_map(|&xbar| self.out(xbar)).filter_map(|(_, channel)| channel);
        first.flat_map(|one| {
            let onward = self.out(self.topology.head(one).xbar).into_iter();
            onward.filter_map(move |(_, other)| Some((one, other?)))
        })
    }
}
