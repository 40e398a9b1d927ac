//! Matches the nodes of two fabrics with each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::identity;
use mapper_proto::map::{Fabric, HostLabel, PortRef, XbarLabel};

use super::alike::{self, Side};
use super::{Cable, MatchedBy, NodeName, NodePort, is_by_position, numbering};
use mapper_fabric::machine;
use mapper_fabric::names::Names;

/// For each node of two fabrics A and B, the node of the other that it is matched with.
#[derive(Debug)]
pub struct Matching<'a> {
    /// The fabric whose names and port numbers count: the plan, or what was before.
    pub(crate) a: &'a Fabric,
    /// The fabric that is compared with it.
    pub(crate) b: &'a Fabric,
    /// For each host of A, the host of B.
    pub host_in_b: Vec<Option<usize>>,
    /// For each host of B, the host of A.
    pub host_in_a: Vec<Option<usize>>,
    /// For each xbar of A, the xbar of B.
    pub xbar_in_b: Vec<Option<usize>>,
    /// For each xbar of B, the xbar of A.
    pub xbar_in_a: Vec<Option<usize>>,
    /// For each xbar of B, the number that must be added to its ports to get A's.
    pub(crate) offset: Vec<i16>,
    /// What xbars were matched by.
    pub by: MatchedBy,
    /// Which xbars of A were matched by what they are called, and not by their cables.
    pub(crate) named_xbars: Vec<bool>,
    names_a: Names,
    names_b: Names,
    /// All names in A. A node that only B has must not be shown by one of them.
    taken: BTreeSet<String>,
}

/// A guess that an xbar of A matches one of B, and the number that must be added to the latter's ports to get
/// A's.
type Guess = (usize, usize, i16);

impl<'a> Matching<'a> {
    /// Matches two fabrics. `counts` says which ids of xbars mean the same xbar in both. Where ports of most xbars fit if all are
    /// one higher or lower, the fabrics are taken to number them so, from 0 and from 1.
    pub fn new(a: &'a Fabric, b: &'a Fabric, counts: fn(&str) -> bool) -> Self {
        Self::with_offsets(a, b, counts, numbering::offsets)
    }

    /// As [`Self::new`], of two fabrics that number ports alike.
    pub(crate) fn numbered_alike(a: &'a Fabric, b: &'a Fabric, counts: fn(&str) -> bool) -> Self {
        Self::with_offsets(a, b, counts, |_, b, _, _| (vec![0; b.xbars.len()], 0))
    }

    /// Whether the fabrics number ports of some xbar otherwise.
    pub(crate) fn is_numbered_otherwise(&self) -> bool {
        self.offset.iter().any(|&offset| offset != 0)
    }

    fn with_offsets(
        a: &'a Fabric,
        b: &'a Fabric,
        counts: fn(&str) -> bool,
        offsets: impl Fn(&Fabric, &Fabric, &[Option<usize>], &[(PortRef, PortRef)]) -> (Vec<i16>, i16),
    ) -> Self {
        let mut matching = Self {
            a,
            b,
            host_in_b: vec![None; a.hosts.len()],
            host_in_a: vec![None; b.hosts.len()],
            xbar_in_b: vec![None; a.xbars.len()],
            xbar_in_a: vec![None; b.xbars.len()],
            offset: vec![0; b.xbars.len()],
            by: MatchedBy::Ids,
            named_xbars: Vec::new(),
            names_a: Names::of(a),
            names_b: Names::of(b),
            taken: BTreeSet::new(),
        };
        let names = &matching.names_a;
        matching.taken = names.hosts.iter().chain(&names.xbars).cloned().collect();
        let by_name = |fabric: &'a Fabric| fabric.hosts.iter().map(|label| Some(label.name.clone()));
        pair(by_name(a), by_name(b), &mut matching.host_in_b, &mut matching.host_in_a);
        let by_mac = |fabric: &'a Fabric| fabric.map.hosts.iter().map(|host| Some(host.mac));
        pair(by_mac(a), by_mac(b), &mut matching.host_in_b, &mut matching.host_in_a);
        let given = |name: &String| Some(name.clone()).filter(|name| counts(name));
        let by_name = |fabric: &'a Fabric| fabric.xbars.iter().map(move |label| given(&label.name));
        pair(by_name(a), by_name(b), &mut matching.xbar_in_b, &mut matching.xbar_in_a);
        let by_tag = |fabric: &'a Fabric| fabric.map.xbars.iter().map(identity);
        pair(by_tag(a), by_tag(b), &mut matching.xbar_in_b, &mut matching.xbar_in_a);
        if !matching.is_telling() {
            matching.by = MatchedBy::Descriptions;
            matching.match_by_descriptions();
        }
        if !matching.is_telling() {
            matching.by = MatchedBy::Structure;
        }
        matching.named_xbars = matching.xbar_in_b.iter().map(Option::is_some).collect();
        let (offset, numbering) = offsets(a, b, &matching.xbar_in_b, &matching.common_hosts());
        matching.offset = offset;
        while matching.match_by_cables(numbering) {}
        if matching.by == MatchedBy::Structure {
            let numbering = i16::from(alike::first_port(a)) - i16::from(alike::first_port(b));
            matching.match_by_structure(numbering);
        }
        matching
    }

    /// Whether at least half of the hosts that could be matched are matched. If a fabric has no hosts, xbars
    /// count instead.
    fn is_telling(&self) -> bool {
        let most = |one: &[Option<usize>], other: &[Option<usize>]| {
            2 * one.iter().flatten().count() >= one.len().min(other.len())
        };
        if self.host_in_a.is_empty() || self.host_in_b.is_empty() {
            most(&self.xbar_in_a, &self.xbar_in_b)
        } else {
            most(&self.host_in_a, &self.host_in_b)
        }
    }

    /// Matches hosts, and xbars, that have the same description, or id if there is none. It must be unique in
    /// its fabric; the ports of one machine have one description, so for hosts the port counts too.
    fn match_by_descriptions(&mut self) {
        let hosts = |fabric: &Fabric| {
            let label = |label: &HostLabel| (described(&label.name, &label.description), label.node_port);
            unique(&fabric.hosts.iter().map(label).collect::<Vec<_>>())
        };
        let (in_a, in_b) = (hosts(self.a), hosts(self.b));
        pair(in_a.into_iter(), in_b.into_iter(), &mut self.host_in_b, &mut self.host_in_a);
        let xbars = |fabric: &Fabric| {
            let label = |label: &XbarLabel| described(&label.name, &label.description);
            unique(&fabric.xbars.iter().map(label).collect::<Vec<_>>())
        };
        let (in_a, in_b) = (xbars(self.a), xbars(self.b));
        pair(in_a.into_iter(), in_b.into_iter(), &mut self.xbar_in_b, &mut self.xbar_in_a);
        self.match_by_machines();
    }

    /// Matches what is left by the names of machines and switches as people gave them: interfaces by adapter and
    /// port, or by their order where both fabrics know as many of the machine.
    fn match_by_machines(&mut self) {
        let hosts = |fabric: &Fabric| {
            unique(&machine::rails(fabric).into_iter().map(|(interface, ..)| interface).collect::<Vec<_>>())
        };
        let (in_a, in_b) = (hosts(self.a), hosts(self.b));
        pair(in_a.into_iter(), in_b.into_iter(), &mut self.host_in_b, &mut self.host_in_a);
        let rails = |fabric: &Fabric| {
            let rail = |(interface, place, of): (machine::MachineInterface, usize, usize)| {
                (interface.machine, place, of)
            };
            unique(&machine::rails(fabric).into_iter().map(rail).collect::<Vec<_>>())
        };
        let (in_a, in_b) = (rails(self.a), rails(self.b));
        pair(in_a.into_iter(), in_b.into_iter(), &mut self.host_in_b, &mut self.host_in_a);
        let xbars = |fabric: &Fabric| unique(&fabric.xbars.iter().map(machine::xbar).collect::<Vec<_>>());
        let (in_a, in_b) = (xbars(self.a), xbars(self.b));
        pair(in_a.into_iter(), in_b.into_iter(), &mut self.xbar_in_b, &mut self.xbar_in_a);
    }

    /// Matches xbars that are cabled alike, then hosts at the same ports, then hosts at the same xbars.
    fn match_by_structure(&mut self, numbering: i16) {
        for _ in 0..MOST_GUESSES {
            let known_a: Vec<_> =
                self.xbar_in_b.iter().enumerate().map(|(xbar, twin)| twin.map(|_| xbar)).collect();
            let side_a = Side { fabric: self.a, known: known_a };
            let side_b = Side { fabric: self.b, known: self.xbar_in_a.clone() };
            let found = alike::pairs(&side_a, &side_b);
            if found.is_empty() {
                break;
            }
            for (in_a, in_b) in found {
                self.xbar_in_b[in_a] = Some(in_b);
                self.xbar_in_a[in_b] = Some(in_a);
                self.offset[in_b] = numbering;
            }
            while self.match_by_cables(numbering) {}
        }
        let place_in_a = |matching: &Self, host: usize| {
            let at = matching.b.map.hosts[host].at?;
            let xbar = matching.xbar_in_a[at.xbar as usize]?;
            Some((xbar, i16::from(at.port) + matching.offset[at.xbar as usize]))
        };
        let hosts_a: Vec<_> = self.a.map.hosts.iter().map(|host| host.at).collect();
        let by_port: Vec<_> =
            hosts_a.iter().map(|at| at.map(|at| (at.xbar as usize, i16::from(at.port)))).collect();
        let in_b: Vec<_> = (0..self.b.hosts.len()).map(|host| place_in_a(self, host)).collect();
        pair(by_port.into_iter(), in_b.into_iter(), &mut self.host_in_b, &mut self.host_in_a);
        // At each xbar, the hosts of A that are left are matched with those of B in the order of their ports.
        let mut left: BTreeMap<usize, Vec<(u8, usize)>> = BTreeMap::new();
        for (host, at) in hosts_a.iter().enumerate().filter(|&(host, _)| self.host_in_b[host].is_none()) {
            if let Some(at) = at {
                left.entry(at.xbar as usize).or_default().push((at.port, host));
            }
        }
        left.values_mut().for_each(|hosts| hosts.sort_unstable_by_key(|&host| Reverse(host)));
        for in_b in 0..self.b.hosts.len() {
            let place = place_in_a(self, in_b).filter(|_| self.host_in_a[in_b].is_none());
            let host = place.and_then(|(xbar, _)| left.get_mut(&xbar)?.pop());
            if let Some((_, in_a)) = host {
                self.host_in_b[in_a] = Some(in_b);
                self.host_in_a[in_b] = Some(in_a);
            }
        }
    }

    /// A host of A by its names there.
    pub fn host_of_a(&self, host: usize) -> NodeName {
        NodeName { id: self.a.hosts[host].name.clone(), name: self.names_a.hosts[host].clone() }
    }

    /// An xbar of A by its names there.
    pub fn xbar_of_a(&self, xbar: usize) -> NodeName {
        NodeName { id: self.a.xbars[xbar].name.clone(), name: self.names_a.xbars[xbar].clone() }
    }

    /// A host of B, called as in A if A has it.
    pub fn host_of_b(&self, host: usize) -> NodeName {
        match self.host_in_a[host] {
            Some(in_a) => self.host_of_a(in_a),
            None => self.only_in_b(&self.b.hosts[host].name, &self.names_b.hosts[host]),
        }
    }

    /// An xbar of B, called as in A if A has it.
    pub fn xbar_of_b(&self, xbar: usize) -> NodeName {
        match self.xbar_in_a[xbar] {
            Some(in_a) => self.xbar_of_a(in_a),
            None => self.only_in_b(&self.b.xbars[xbar].name, &self.names_b.xbars[xbar]),
        }
    }

    /// What an xbar is called in B, if it was recognised by its cables alone and B says another name of its own.
    /// Names tell nothing where most xbars are recognised by their cables.
    pub fn other_name(&self, in_a: usize, in_b: usize) -> Option<String> {
        let named = self.named_xbars.iter().filter(|&&named| named).count();
        let label = &self.b.xbars[in_b];
        let has_name = !is_by_position(&label.name) || !label.description.trim().is_empty();
        let tells = !self.named_xbars[in_a] && 2 * named > self.named_xbars.len() && has_name;
        tells.then(|| self.names_b.xbars[in_b].clone())
    }

    fn only_in_b(&self, id: &str, name: &str) -> NodeName {
        let is_told = name == id || !self.taken.contains(name);
        let name = if is_told { name.to_owned() } else { format!("{name} ({id})") };
        NodeName { id: id.to_owned(), name }
    }

    /// Matches xbars that are cabled to the same hosts and matched xbars, those with the most such cables
    /// first. Returns false if no more xbars could be matched.
    fn match_by_cables(&mut self, numbering: i16) -> bool {
        let mut votes: BTreeMap<Guess, usize> = BTreeMap::new();
        for (x, y) in self.common_ends() {
            let (in_a, in_b) = (x.xbar as usize, y.xbar as usize);
            let offset = i16::from(x.port) - i16::from(y.port);
            if self.xbar_in_b[in_a].is_none() && self.xbar_in_a[in_b].is_none() {
                *votes.entry((in_a, in_b, offset)).or_default() += 1;
            }
        }
        let mut guesses: Vec<_> = votes.into_iter().collect();
        guesses.sort_by_key(|&(guess, votes)| (Reverse(votes), guess.2 != numbering, guess));
        let mut found = false;
        for ((in_a, in_b, offset), _) in guesses {
            if self.xbar_in_b[in_a].is_none() && self.xbar_in_a[in_b].is_none() {
                self.xbar_in_b[in_a] = Some(in_b);
                self.xbar_in_a[in_b] = Some(in_a);
                self.offset[in_b] = offset;
                found = true;
            }
        }
        found
    }

    /// Pairs of a port of A and a port of B that are cabled to the same host.
    fn common_hosts(&self) -> Vec<(PortRef, PortRef)> {
        let hosts = self.a.map.hosts.iter().zip(&self.host_in_b);
        hosts.filter_map(|(host, in_b)| Some((host.at?, self.b.map.hosts[(*in_b)?].at?))).collect()
    }

    /// Pairs of a port of A and a port of B that are cabled to the same host or to the same port.
    fn common_ends(&self) -> Vec<(PortRef, PortRef)> {
        let mut far_in_b = BTreeMap::new();
        for cable in &self.b.map.cables {
            for (near, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
                if let Some(in_a) = self.xbar_in_a[near.xbar as usize] {
                    far_in_b.insert((in_a, i16::from(near.port) + self.offset[near.xbar as usize]), far);
                }
            }
        }
        let cables = self.a.map.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]);
        let at_xbars = cables.filter_map(|(near, far)| {
            let far_in_b = far_in_b.get(&(near.xbar as usize, i16::from(near.port)))?;
            Some((far, *far_in_b))
        });
        self.common_hosts().into_iter().chain(at_xbars).collect()
    }

    /// The cables of A, those of hosts among them.
    pub fn cables_of_a(&self) -> BTreeSet<Cable> {
        let end = |end: PortRef| NodePort {
            node: self.xbar_of_a(end.xbar as usize),
            port: Some(i16::from(end.port)),
        };
        cables(self.a, |host| self.host_of_a(host), end)
    }

    /// The cables of B with the names and ports of A.
    pub fn cables_of_b(&self) -> BTreeSet<Cable> {
        let end = |end: PortRef| {
            let xbar = end.xbar as usize;
            NodePort { node: self.xbar_of_b(xbar), port: Some(i16::from(end.port) + self.offset[xbar]) }
        };
        cables(self.b, |host| self.host_of_b(host), end)
    }
}

/// How many times structure is looked at, at most. For a connected fabric that is cabled as its plan says,
/// once is enough.
const MOST_GUESSES: usize = 256;

/// A node's description, or its id if it has none.
fn described(id: &str, description: &str) -> String {
    let description = description.trim();
    if description.is_empty() { id.to_owned() } else { description.to_owned() }
}

/// The keys that occur only once; `None` in the place of all others.
fn unique<K: Ord + Clone>(keys: &[K]) -> Vec<Option<K>> {
    let mut count: BTreeMap<&K, usize> = BTreeMap::new();
    for key in keys {
        *count.entry(key).or_default() += 1;
    }
    keys.iter().map(|key| (count[key] == 1).then(|| key.clone())).collect()
}

/// Pairs nodes of A and B that have the same key and are not paired yet.
fn pair<K: Ord>(
    a: impl Iterator<Item = Option<K>>,
    b: impl Iterator<Item = Option<K>>,
    in_b: &mut [Option<usize>],
    in_a: &mut [Option<usize>],
) {
    let free = b.enumerate().filter(|&(index, _)| in_a[index].is_none());
    let mut by_key: BTreeMap<K, usize> = free.filter_map(|(index, key)| Some((key?, index))).collect();
    for (index, key) in a.enumerate() {
        if in_b[index].is_none()
            && let Some(other) = key.and_then(|key| by_key.remove(&key))
        {
            in_b[index] = Some(other);
            in_a[other] = Some(index);
        }
    }
}

/// All cables of a fabric, including those of hosts.
fn cables(
    fabric: &Fabric,
    host: impl Fn(usize) -> NodeName,
    end: impl Fn(PortRef) -> NodePort,
) -> BTreeSet<Cable> {
    let ordered = |x: NodePort, y: NodePort| if x <= y { [x, y] } else { [y, x] };
    let hosts = fabric.map.hosts.iter().enumerate();
    let hosts =
        hosts.filter_map(|(index, at)| Some([NodePort { node: host(index), port: None }, end(at.at?)]));
    let cables = fabric.map.cables.iter().map(|cable| ordered(end(cable.a), end(cable.b)));
    let pair = fabric.face_to_face().into_iter();
    let pair = pair.map(|pair| pair.map(|index| NodePort { node: host(index), port: None }));
    hosts.chain(cables).chain(pair.map(|[a, b]| ordered(a, b))).collect()
}
