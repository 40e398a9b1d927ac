//! Compares two fabrics cable by cable, such as the planned and the found wiring.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mapper_proto::map::Fabric;
use serde_json::{Value, json};

use mapper_fabric::identity;
use mapper_wiring::matching::Matching;
use mapper_wiring::{Cable, MatchedBy, NodeName, NodePort, is_by_position};

/// How fabric B differs from fabric A. Ports and names are those of A, except of nodes that only B has.
#[derive(Default, Debug)]
pub(super) struct Difference {
    missing: Vec<Cable>,
    added: Vec<Cable>,
    /// Cables that kept one end, each as it is in A and as it is in B.
    moved: Vec<(Cable, Cable)>,
    missing_nodes: Vec<NodeName>,
    added_nodes: Vec<NodeName>,
    /// Xbars whose number of ports differs, with the numbers in A and in B.
    resized: Vec<(NodeName, u8, u8)>,
    matched_by: MatchedBy,
}

/// Compares two fabrics.
///
/// Hosts are matched by id, then by address. If that leaves most hosts without a match, as between a plan and
/// what was built, nodes are matched by description too, and if that does not suffice, by structure. Xbars
/// are matched by id, then by tag. Those that are left (plain xbars of an explored map have no id of their
/// own) are matched by what they are cabled to, whatever their ports count from. Ports that are numbered one
/// lower or higher, as in a GM map, are no difference; that is decided for all tagged xbars of B together,
/// and for each plain one by itself. Ids that maps and files give by position count only if they leave fewer
/// differences.
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

/// Compares two fabrics. Their xbars may be matched by the ids for which `counts` is true.
fn compare(a: &Fabric, b: &Fabric, counts: fn(&str) -> bool) -> Difference {
    let matching = Matching::new(a, b, counts);
    let mut difference = Difference { matched_by: matching.by, ..Difference::default() };
    for index in 0..a.xbars.len() {
        match matching.xbar_in_b[index] {
            None => difference.missing_nodes.push(matching.xbar_of_a(index)),
            Some(in_b) => {
                let (was, is) = (a.map.xbars[index], b.map.xbars[in_b]);
                // The port count of a plain xbar in an explored map is only an upper bound.
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

    /// Replaces each missing and added cable that have an end in common by one that was moved.
    fn find_moved(&mut self) {
        let mut by_end: BTreeMap<&NodePort, usize> = BTreeMap::new();
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

    /// The JSON `mapper.diff/1`.
    pub(super) fn json(&self) -> Value {
        let end = |end: &NodePort| json!([end.node.id, end.port]);
        let ids = |nodes: &[NodeName]| nodes.iter().map(|node| node.id.clone()).collect::<Vec<_>>();
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
