//! Planned and found wiring, cable by cable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mapper_proto::map::{Fabric, HostLabel, PortRef, XbarLabel};
use serde_json::{Value, json};

use super::alike::{self, Side};
use super::numbering;
use crate::formats::identity;
use crate::names::Names;

/// A node: its id, as programs match it, and what people call it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Node {
    id: String,
    name: String,
}

/// The end of a cable: a host, or an xbar and its port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct End {
    node: Node,
    port: Option<i16>,
}

/// By what nodes of two fabrics are taken for the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum MatchedBy {
    /// Ids, addresses and tags.
    #[default]
    Ids,
    /// Descriptions too, for most ids are in one fabric only.
    Descriptions,
    /// What is cabled to what, for most descriptions are in one fabric only, too.
    Structure,
}

impl MatchedBy {
    const fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Descriptions => "descriptions",
            Self::Structure => "structure",
        }
    }
}

/// A cable by its ends, in order.
type Cable = [End; 2];

/// How fabric B differs from fabric A. Ports and names are A's, but for what only B has.
#[derive(Default, Debug)]
pub(super) struct Difference {
    missing: Vec<Cable>,
    added: Vec<Cable>,
    /// Cables that kept one end: from, to.
    moved: Vec<(Cable, Cable)>,
    missing_nodes: Vec<Node>,
    added_nodes: Vec<Node>,
    /// Xbars with another number of ports: before, now.
    resized: Vec<(Node, u8, u8)>,
    matched_by: MatchedBy,
}

/// Compares two fabrics.
///
/// Hosts are matched by id, then by address. Where most hosts are in one fabric only by these, as in a plan and
/// what came of it, nodes are matched by description, and where that tells few, by structure. Xbars are matched by name, then by tag; those
/// left (plain xbars of an explored map have no name) by what they are cabled to, whatever their
/// ports count from. Ports numbered one lower or higher, as in a GM map, are no difference: all
/// tagged xbars of B alike, each plain one by itself. Names that maps and files give by position
/// count only where they leave fewer differences.
pub(super) fn between(a: &Fabric, b: &Fabric) -> Difference {
    let by_all_names = compare(a, b, |_| true);
    if by_all_names.matched_by != MatchedBy::Ids {
        return by_all_names;
    }
    if by_all_names.is_empty() || !a.xbars.iter().chain(&b.xbars).any(|label| is_by_position(&label.name)) {
        return by_all_names;
    }
    let by_given_names = compare(a, b, |name| !is_by_position(name));
    if by_given_names.len() < by_all_names.len() { by_given_names } else { by_all_names }
}

/// Whether a name is one that an explored map gives to an xbar that has none.
fn is_by_position(name: &str) -> bool {
    let digits = name.strip_prefix('x').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Compares two fabrics, whose xbars may be matched by those names that `counts` takes.
fn compare(a: &Fabric, b: &Fabric, counts: fn(&str) -> bool) -> Difference {
    let matching = Matching::new(a, b, counts);
    let mut difference = Difference { matched_by: matching.by, ..Difference::default() };
    for index in 0..a.xbars.len() {
        match matching.xbar_in_b[index] {
            None => difference.missing_nodes.push(matching.xbar_of_a(index)),
            Some(in_b) => {
                let (was, is) = (a.map.xbars[index], b.map.xbars[in_b]);
                // What an explored map says of a plain xbar is only the most that it can be.
                let identified = matching.by != MatchedBy::Ids && is.ports_known
                    || identity(&was).is_some() && was.tag == is.tag
                    || a.xbars[index].name == b.xbars[in_b].name;
                if was.ports != is.ports && identified {
                    difference.resized.push((matching.xbar_of_a(index), was.ports, is.ports));
                }
            }
        }
    }
    let unmatched = |twins: &[Option<usize>]| {
        let all = twins.iter().enumerate();
        all.filter(|(_, twin)| twin.is_none()).map(|(index, _)| index).collect::<Vec<_>>()
    };
    let xbars = unmatched(&matching.xbar_in_a).into_iter().map(|index| matching.xbar_of_b(index));
    let hosts = unmatched(&matching.host_in_a).into_iter().map(|index| matching.host_of_b(index));
    difference.added_nodes.extend(xbars.chain(hosts));
    let hosts = unmatched(&matching.host_in_b).into_iter();
    difference.missing_nodes.extend(hosts.map(|index| matching.host_of_a(index)));

    let (before, now) = (matching.cables_of_a(), matching.cables_of_b());
    difference.missing = before.difference(&now).cloned().collect();
    difference.added = now.difference(&before).cloned().collect();
    difference.find_moved();
    difference
}

impl Difference {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many differences there are.
    fn len(&self) -> usize {
        let cables = self.missing.len() + self.added.len() + self.moved.len();
        cables + self.missing_nodes.len() + self.added_nodes.len() + self.resized.len()
    }

    /// Takes a missing and an added cable with an end in common for one that was moved.
    fn find_moved(&mut self) {
        let mut by_end: BTreeMap<&End, usize> = BTreeMap::new();
        for (index, cable) in self.added.iter().enumerate() {
            by_end.extend(cable.iter().map(|end| (end, index)));
        }
        let mut taken = BTreeSet::new();
        let (mut missing, mut moved) = (Vec::new(), Vec::new());
        for cable in &self.missing {
            let kept = cable.iter().filter_map(|end| by_end.get(end)).find(|&&index| taken.insert(index));
            match kept {
                Some(&index) => moved.push((cable.clone(), self.added[index].clone())),
                None => missing.push(cable.clone()),
            }
        }
        let added = self.added.iter().enumerate().filter(|(index, _)| !taken.contains(index));
        self.added = added.map(|(_, cable)| cable.clone()).collect();
        (self.missing, self.moved) = (missing, moved);
    }

    /// As `mapper.diff/1`.
    pub(super) fn json(&self) -> Value {
        let end = |end: &End| json!([end.node.id, end.port]);
        let ids = |nodes: &[Node]| nodes.iter().map(|node| node.id.clone()).collect::<Vec<_>>();
        let cable = |[a, b]: &Cable| json!({ "a": end(a), "b": end(b) });
        let cables = |list: &[Cable]| list.iter().map(cable).collect::<Vec<_>>();
        let moved = self.moved.iter().map(|(from, to)| json!({ "from": cable(from), "to": cable(to) }));
        let resized = self.resized.iter();
        json!({
            "schema": "mapper.diff/1",
            "same": self.is_empty(),
            "missing": cables(&self.missing),
            "added": cables(&self.added),
            "moved": moved.collect::<Vec<_>>(),
            "matched_by": self.matched_by.name(),
            "missing_nodes": ids(&self.missing_nodes),
            "added_nodes": ids(&self.added_nodes),
            "resized_xbars": resized
                .map(|(xbar, was, is)| json!({ "id": xbar.id, "ports_before": was, "ports": is }))
                .collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.node.name),
            None => f.write_str(&self.node.name),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.matched_by != MatchedBy::Ids {
            writeln!(f, "matched by {}: ids of the one are not in the other", self.matched_by.name())?;
        }
        for node in &self.missing_nodes {
            writeln!(f, "missing node   {}", node.name)?;
        }
        for node in &self.added_nodes {
            writeln!(f, "added node     {}", node.name)?;
        }
        for (xbar, was, is) in &self.resized {
            writeln!(f, "resized xbar   {}: {was} ports before, {is} now", xbar.name)?;
        }
        for [a, b] in &self.missing {
            writeln!(f, "missing cable  {a} - {b}")?;
        }
        for [a, b] in &self.added {
            writeln!(f, "added cable    {a} - {b}")?;
        }
        for ([a, b], [c, d]) in &self.moved {
            writeln!(f, "moved cable    {a} - {b}, now {c} - {d}")?;
        }
        if self.is_empty() { writeln!(f, "no difference") } else { Ok(()) }
    }
}

/// Which node of one fabric is which of the other.
struct Matching<'a> {
    a: &'a Fabric,
    b: &'a Fabric,
    host_in_b: Vec<Option<usize>>,
    host_in_a: Vec<Option<usize>>,
    xbar_in_b: Vec<Option<usize>>,
    xbar_in_a: Vec<Option<usize>>,
    /// What a port of each of B's xbars must grow by to be A's.
    offset: Vec<i16>,
    by: MatchedBy,
    names_a: Names,
    names_b: Names,
    /// All names in A: what only B has must not be called by one of them.
    taken: BTreeSet<String>,
}

/// A guess that an xbar of A is one of B, whose ports must grow so much to be A's.
type Guess = (usize, usize, i16);

impl<'a> Matching<'a> {
    fn new(a: &'a Fabric, b: &'a Fabric, counts: fn(&str) -> bool) -> Self {
        let mut matching = Self {
            a,
            b,
            host_in_b: vec![None; a.hosts.len()],
            host_in_a: vec![None; b.hosts.len()],
            xbar_in_b: vec![None; a.xbars.len()],
            xbar_in_a: vec![None; b.xbars.len()],
            offset: vec![0; b.xbars.len()],
            by: MatchedBy::Ids,
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
        let (offset, numbering) = numbering::offsets(a, b, &matching.xbar_in_b, &matching.common_hosts());
        matching.offset = offset;
        while matching.match_by_cables(numbering) {}
        if matching.by == MatchedBy::Structure {
            let numbering = i16::from(alike::first_port(a)) - i16::from(alike::first_port(b));
            matching.match_by_structure(numbering);
        }
        matching
    }

    /// Whether at least half of the nodes that can be matched are: of hosts, or of xbars where a fabric has
    /// no hosts.
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

    /// Matches hosts, and xbars, of one description (or id, where there is none), if nothing else of its
    /// fabric has it. The ports of one machine have one description.
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
    }

    /// Matches xbars that stand alike, then hosts at the same ports, then hosts at the same xbars.
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
        // Those that are left at an xbar, in the order of their ports.
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

    fn host_of_a(&self, host: usize) -> Node {
        Node { id: self.a.hosts[host].name.clone(), name: self.names_a.hosts[host].clone() }
    }

    fn xbar_of_a(&self, xbar: usize) -> Node {
        Node { id: self.a.xbars[xbar].name.clone(), name: self.names_a.xbars[xbar].clone() }
    }

    /// A host of B, as A calls it if it has it.
    fn host_of_b(&self, host: usize) -> Node {
        match self.host_in_a[host] {
            Some(in_a) => self.host_of_a(in_a),
            None => self.only_in_b(&self.b.hosts[host].name, &self.names_b.hosts[host]),
        }
    }

    /// An xbar of B, as A calls it if it has it.
    fn xbar_of_b(&self, xbar: usize) -> Node {
        match self.xbar_in_a[xbar] {
            Some(in_a) => self.xbar_of_a(in_a),
            None => self.only_in_b(&self.b.xbars[xbar].name, &self.names_b.xbars[xbar]),
        }
    }

    fn only_in_b(&self, id: &str, name: &str) -> Node {
        let is_told = name == id || !self.taken.contains(name);
        let name = if is_told { name.to_owned() } else { format!("{name} ({id})") };
        Node { id: id.to_owned(), name }
    }

    /// Matches xbars that are cabled to the same hosts and matched xbars, those with the most
    /// such cables first. False if there are none left.
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

    /// Ports of A and of B that are cabled to the same host.
    fn common_hosts(&self) -> Vec<(PortRef, PortRef)> {
        let hosts = self.a.map.hosts.iter().zip(&self.host_in_b);
        hosts.filter_map(|(host, in_b)| Some((host.at?, self.b.map.hosts[(*in_b)?].at?))).collect()
    }

    /// Ports of A and of B that are cabled to the same host or the same port.
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

    fn cables_of_a(&self) -> BTreeSet<Cable> {
        let end =
            |end: PortRef| End { node: self.xbar_of_a(end.xbar as usize), port: Some(i16::from(end.port)) };
        cables(self.a, |host| self.host_of_a(host), end)
    }

    /// The cables of B in A's names and ports.
    fn cables_of_b(&self) -> BTreeSet<Cable> {
        let end = |end: PortRef| {
            let xbar = end.xbar as usize;
            End { node: self.xbar_of_b(xbar), port: Some(i16::from(end.port) + self.offset[xbar]) }
        };
        cables(self.b, |host| self.host_of_b(host), end)
    }
}

/// Most times that structure is looked at again. A connected fabric in the ports of its plan takes one.
const MOST_GUESSES: usize = 256;

/// What a node is described as: by its id, where it is not.
fn described(id: &str, description: &str) -> String {
    let description = description.trim();
    if description.is_empty() { id.to_owned() } else { description.to_owned() }
}

/// The keys that stand once.
fn unique<K: Ord + Clone>(keys: &[K]) -> Vec<Option<K>> {
    let mut count: BTreeMap<&K, usize> = BTreeMap::new();
    for key in keys {
        *count.entry(key).or_default() += 1;
    }
    keys.iter().map(|key| (count[key] == 1).then(|| key.clone())).collect()
}

/// Pairs what is not paired yet and has the same key, once in each list.
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

/// All cables of a fabric, hosts' included.
fn cables(fabric: &Fabric, host: impl Fn(usize) -> Node, end: impl Fn(PortRef) -> End) -> BTreeSet<Cable> {
    let ordered = |x: End, y: End| if x <= y { [x, y] } else { [y, x] };
    let hosts = fabric.map.hosts.iter().enumerate();
    let hosts = hosts.filter_map(|(index, at)| Some([End { node: host(index), port: None }, end(at.at?)]));
    let cables = fabric.map.cables.iter().map(|cable| ordered(end(cable.a), end(cable.b)));
    hosts.chain(cables).collect()
}

#[cfg(test)]
mod tests {
    use mapper_proto::Mac;
    use mapper_sim::topology::generate;

    use super::*;
    use crate::formats::json;
    use crate::formats::{FileFormat, parse, write};

    fn clos() -> Fabric {
        generate("clos:hosts=8,ports=4").unwrap()
    }

    /// The map as an agent would find it: no names, hosts in another order, plain xbars in
    /// another order and their ports known up to an offset.
    fn explored(fabric: &Fabric) -> Fabric {
        let mut map = fabric.map.clone();
        let last = map.xbars.len() as u32 - 1;
        let turn = |end: &mut PortRef| {
            *end = PortRef { xbar: last - end.xbar, port: end.port + (end.xbar % 3) as u8 }
        };
        map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(turn);
        for cable in &mut map.cables {
            turn(&mut cable.a);
            turn(&mut cable.b);
            *cable = mapper_proto::map::Cable::new(cable.a, cable.b);
        }
        map.cables.sort_unstable();
        map.hosts.reverse();
        for xbar in &mut map.xbars {
            (xbar.tag, xbar.ports_known) = (None, false);
        }
        json::Names::default().label(&map)
    }

    #[test]
    fn a_fabric_is_like_itself_in_any_guise() {
        assert_eq!(between(&clos(), &clos()).to_string(), "no difference\n");
        let gm = parse("gm", &write(&clos(), FileFormat::GmMap)).unwrap();
        assert_eq!(between(&clos(), &gm).to_string(), "no difference\n", "ports count from 0");
        assert_eq!(between(&gm, &clos()).to_string(), "no difference\n", "ports count from 1");
        for spec in ["clos:hosts=8,ports=4", "torus:x=3,y=4,hosts=1", "clos:hosts=128,ports=16"] {
            let planned = generate(spec).unwrap();
            assert_eq!(between(&planned, &explored(&planned)).to_string(), "no difference\n", "{spec}");
        }
    }

    #[test]
    fn an_explored_map_is_the_same_in_every_format() {
        for (spec, tagged) in [("clos:hosts=8,ports=4", 0), ("now:subclusters=1", 2), ("torus:x=3,y=4", 3)] {
            let planned = generate(spec).unwrap();
            // Plain xbars count from 0, others keep their names, tags and ports.
            let mut found = planned.clone();
            let plain = |xbar: u32| tagged == 0 || !xbar.is_multiple_of(tagged);
            let lower = |end: &mut PortRef| end.port -= u8::from(plain(end.xbar));
            found.map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(lower);
            for cable in &mut found.map.cables {
                lower(&mut cable.a);
                lower(&mut cable.b);
            }
            for (xbar, body) in (0..).zip(&mut found.map.xbars).filter(|(xbar, _)| plain(*xbar)) {
                body.tag = None;
                found.xbars[xbar as usize].name = format!("x{}", xbar + 1);
            }
            for format in [FileFormat::Ibnetdiscover, FileFormat::GmMap, FileFormat::Json] {
                let written = parse("file", &write(&found, format)).unwrap();
                for before in [&planned, &found] {
                    let text = between(before, &written).to_string();
                    assert_eq!(text, "no difference\n", "{spec} {format:?}");
                }
                let mut cut = written;
                cut.map.cables.remove(1);
                assert_eq!(between(&planned, &cut).to_string().lines().count(), 1, "{spec} {format:?}");
            }
        }
    }

    #[test]
    fn each_cable_that_is_missing_added_or_moved_is_named() {
        let mut found = clos();
        found.map.cables.remove(0);
        assert_eq!(between(&clos(), &found).to_string(), "missing cable  leaf1:3 - spine1:1\n");
        assert_eq!(between(&found, &clos()).to_string(), "added cable    leaf1:3 - spine1:1\n");
        let mut found = clos();
        found.map.hosts.swap(1, 2);
        found.hosts.swap(1, 2);
        assert!(between(&clos(), &found).is_empty(), "order is no difference");
    }

    #[test]
    fn what_moved_is_told_by_what_stayed() {
        let planned = generate("clos:hosts=128,ports=16").unwrap();
        let mut found = planned.clone();
        (found.map.hosts[0].at, found.map.hosts[127].at) = (found.map.hosts[127].at, found.map.hosts[0].at);
        found.map.cables.remove(0);
        let expected = "missing cable  leaf1:9 - spine1:1\n\
                        moved cable    h1 - leaf1:1, now h1 - leaf16:8\n\
                        moved cable    h128 - leaf16:8, now h128 - leaf1:1\n";
        assert_eq!(between(&planned, &found).to_string(), expected);
        assert_eq!(between(&planned, &explored(&found)).to_string(), expected);
    }

    #[test]
    fn nodes_that_come_go_or_change_are_named() {
        let mut found = clos();
        found.hosts[7].name = "new".to_owned();
        found.map.hosts[7].mac = Mac::from_position(99);
        found.map.xbars[5].ports = 8;
        let difference = between(&clos(), &found);
        assert_eq!(
            difference.to_string(),
            "missing node   h8\nadded node     h8 (new)\nresized xbar   spine2: 4 ports before, 8 now\n\
             moved cable    h8 - leaf4:2, now h8 (new) - leaf4:2\n",
            "a host of the same description is another one"
        );
        let json = difference.json();
        assert_eq!((json["schema"].as_str(), json["same"].as_bool()), (Some("mapper.diff/1"), Some(false)));
        assert_eq!(json["moved"][0]["to"]["a"], json!(["new", null]));
    }
    /// The fabric as ibnetdiscover would find it: all ids and addresses others, nodes in another order; also
    /// other descriptions if told so.
    fn built(planned: &Fabric, described: bool) -> Fabric {
        let mut found = planned.clone();
        let count = found.map.xbars.len() as u32;
        let turn = |end: &mut PortRef| end.xbar = (end.xbar + count / 3) % count;
        found.map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(turn);
        for cable in &mut found.map.cables {
            turn(&mut cable.a);
            turn(&mut cable.b);
            *cable = mapper_proto::map::Cable::new(cable.a, cable.b);
        }
        found.map.xbars.rotate_right(count as usize / 3);
        found.xbars.rotate_right(count as usize / 3);
        found.map.hosts.reverse();
        found.hosts.reverse();
        for (index, (label, xbar)) in found.xbars.iter_mut().zip(&mut found.map.xbars).enumerate() {
            label.name = format!("S-{index:016x}");
            xbar.tag = Some(0xe41d_2d03_0000_0000 + index as u64);
            if !described {
                label.description = "SwitchX".to_owned();
            }
        }
        for (index, (label, host)) in found.hosts.iter_mut().zip(&mut found.map.hosts).enumerate() {
            label.name = format!("H-{index:016x}");
            host.mac = Mac::from_position(0x10_0000 + index as u32);
            if !described {
                label.description = format!("node{index:03} HCA-1");
            }
        }
        found
    }

    const SPECS: [&str; 5] = [
        "clos:hosts=32,ports=8",
        "ring:n=5,hosts=2",
        "torus:x=4,y=3,z=3,hosts=1",
        "dragonfly:a=4,p=2,h=2",
        "now",
    ];

    #[test]
    fn a_plan_and_what_was_built_of_it_match_whatever_the_ids() {
        for spec in SPECS {
            let planned = generate(spec).unwrap();
            for (described, by) in [(true, "descriptions"), (false, "structure")] {
                let difference = between(&planned, &built(&planned, described));
                assert_eq!((difference.len(), difference.matched_by.name()), (0, by), "{spec}: {difference}");
            }
        }
    }

    #[test]
    fn one_cable_that_is_not_as_planned_is_one_difference_whatever_the_ids() {
        for spec in SPECS {
            let planned = generate(spec).unwrap();
            for described in [true, false] {
                let mut cut = planned.clone();
                let lost = cut.map.cables.remove(planned.map.cables.len() / 2);
                let difference = between(&planned, &built(&cut, described));
                assert_eq!((difference.len(), difference.missing.len()), (1, 1), "{spec}: {difference}");
                if described {
                    let end =
                        |end: PortRef| format!("{}:{}", planned.xbars[end.xbar as usize].name, end.port);
                    let text = difference.to_string();
                    assert!(text.contains(&end(lost.a)) && text.contains(&end(lost.b)), "{text}");
                }
                let difference = between(&cut, &built(&planned, described));
                assert_eq!((difference.len(), difference.added.len()), (1, 1), "{spec}: {difference}");
            }
        }
    }

    #[test]
    fn what_is_only_there_is_called_by_its_description() {
        let planned = clos();
        let mut found = built(&planned, true);
        let host = found.hosts.iter().position(|label| label.description == "h8").unwrap();
        found.hosts[host].description = "guest".to_owned();
        let difference = between(&planned, &found);
        let id = found.hosts[host].name.clone();
        assert_eq!(
            difference.to_string(),
            "matched by descriptions: ids of the one are not in the other\n\
             missing node   h8\nadded node     guest\nmoved cable    h8 - leaf4:2, now guest - leaf4:2\n"
        );
        let json = difference.json();
        assert_eq!((&json["added_nodes"], &json["matched_by"]), (&json!([id]), &json!("descriptions")));
        assert_eq!(json["moved"][0]["to"]["a"], json!([id, null]));
    }
}
