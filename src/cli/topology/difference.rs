//! Planned and found wiring, cable by cable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mapper_proto::map::{Fabric, PortRef};
use serde_json::{Value, json};

use super::numbering;
use crate::formats::identity;

/// The end of a cable: the name of a host, or of an xbar and its port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct End {
    node: String,
    port: Option<i16>,
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
    missing_nodes: Vec<String>,
    added_nodes: Vec<String>,
    /// Xbars with another number of ports: before, now.
    resized: Vec<(String, u8, u8)>,
}

/// Compares two fabrics.
///
/// Hosts are matched by name, then by address. Xbars are matched by name, then by tag; those
/// left (plain xbars of an explored map have no name) by what they are cabled to, whatever their
/// ports count from. Ports numbered one lower or higher, as in a GM map, are no difference: all
/// tagged xbars of B alike, each plain one by itself. Names that maps and files give by position
/// count only where they leave fewer differences.
pub(super) fn between(a: &Fabric, b: &Fabric) -> Difference {
    let by_all_names = compare(a, b, |_| true);
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
    let mut difference = Difference::default();
    for (index, label) in a.xbars.iter().enumerate() {
        match matching.xbar_in_b[index] {
            None => difference.missing_nodes.push(label.name.clone()),
            Some(in_b) => {
                let (was, is) = (a.map.xbars[index], b.map.xbars[in_b]);
                // What an explored map says of a plain xbar is only the most that it can be.
                let identified =
                    identity(&was).is_some() && was.tag == is.tag || label.name == b.xbars[in_b].name;
                if was.ports != is.ports && identified {
                    difference.resized.push((label.name.clone(), was.ports, is.ports));
                }
            }
        }
    }
    let unmatched = b.xbars.iter().zip(&matching.xbar_in_a).filter(|(_, in_a)| in_a.is_none());
    difference.added_nodes.extend(unmatched.map(|(label, _)| label.name.clone()));
    let unmatched = a.hosts.iter().zip(&matching.host_in_b).filter(|(_, in_b)| in_b.is_none());
    difference.missing_nodes.extend(unmatched.map(|(label, _)| label.name.clone()));
    let unmatched = b.hosts.iter().zip(&matching.host_in_a).filter(|(_, in_a)| in_a.is_none());
    difference.added_nodes.extend(unmatched.map(|(label, _)| label.name.clone()));

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
        let end = |end: &End| json!([end.node, end.port]);
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
            "missing_nodes": self.missing_nodes,
            "added_nodes": self.added_nodes,
            "resized_xbars": resized
                .map(|(id, was, is)| json!({ "id": id, "ports_before": was, "ports": is }))
                .collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.node),
            None => f.write_str(&self.node),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.missing_nodes {
            writeln!(f, "missing node   {name}")?;
        }
        for name in &self.added_nodes {
            writeln!(f, "added node     {name}")?;
        }
        for (name, was, is) in &self.resized {
            writeln!(f, "resized xbar   {name}: {was} ports before, {is} now")?;
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
        };
        let by_name = |fabric: &'a Fabric| fabric.hosts.iter().map(|label| Some(label.name.clone()));
        pair(by_name(a), by_name(b), &mut matching.host_in_b, &mut matching.host_in_a);
        let by_mac = |fabric: &'a Fabric| fabric.map.hosts.iter().map(|host| Some(host.mac));
        pair(by_mac(a), by_mac(b), &mut matching.host_in_b, &mut matching.host_in_a);
        let given = |name: &String| Some(name.clone()).filter(|name| counts(name));
        let by_name = |fabric: &'a Fabric| fabric.xbars.iter().map(move |label| given(&label.name));
        pair(by_name(a), by_name(b), &mut matching.xbar_in_b, &mut matching.xbar_in_a);
        let by_tag = |fabric: &'a Fabric| fabric.map.xbars.iter().map(identity);
        pair(by_tag(a), by_tag(b), &mut matching.xbar_in_b, &mut matching.xbar_in_a);
        let (offset, numbering) = numbering::offsets(a, b, &matching.xbar_in_b, &matching.common_hosts());
        matching.offset = offset;
        while matching.match_by_cables(numbering) {}
        matching
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
        let end = |end: PortRef| End {
            node: self.a.xbars[end.xbar as usize].name.clone(),
            port: Some(i16::from(end.port)),
        };
        cables(self.a, |host| self.a.hosts[host].name.clone(), end)
    }

    /// The cables of B in A's names and ports.
    fn cables_of_b(&self) -> BTreeSet<Cable> {
        let host = |host: usize| match self.host_in_a[host] {
            Some(in_a) => self.a.hosts[in_a].name.clone(),
            None => self.b.hosts[host].name.clone(),
        };
        let end = |end: PortRef| {
            let xbar = end.xbar as usize;
            let label = self.xbar_in_a[xbar].map_or(&self.b.xbars[xbar], |in_a| &self.a.xbars[in_a]);
            End { node: label.name.clone(), port: Some(i16::from(end.port) + self.offset[xbar]) }
        };
        cables(self.b, host, end)
    }
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
fn cables(fabric: &Fabric, host: impl Fn(usize) -> String, end: impl Fn(PortRef) -> End) -> BTreeSet<Cable> {
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
    use crate::formats::json::Names;
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
        Names::default().label(&map)
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
            "missing node   h8\nadded node     new\nresized xbar   spine2: 4 ports before, 8 now\n\
             moved cable    h8 - leaf4:2, now new - leaf4:2\n"
        );
        let json = difference.json();
        assert_eq!((json["schema"].as_str(), json["same"].as_bool()), (Some("mapper.diff/1"), Some(false)));
        assert_eq!(json["moved"][0]["to"]["a"], json!(["new", null]));
    }
}
