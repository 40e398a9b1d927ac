//! Slurm's `topology.conf` for its tree plugin. It is written only.
//!
//! Each xbar that has hosts is a switch with nodes. Above them stands a switch for what cables really join: at each tier one for
//! the xbars below that its xbars join, so that a fat tree's pods are branches, and each part of the fabric has one root.
//! These switches are none that one could touch, as Slurm wants a tree, and a fabric has many spines: each is called by its tier
//! and its first leaf. So names depend on names alone, and not on how a fabric's nodes are numbered or which spines it has.
//!
//! A node is a machine, by its short name. A machine with several interfaces stands at the leaf of the first that has a
//! cable, as Slurm's tree has a node once: of several rails the first is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use mapper_fabric::machine::{self, Natural};
use mapper_proto::map::Fabric;

use super::tiers::tiers;

/// The fabric as a `topology.conf`.
pub(super) fn write(fabric: &Fabric) -> String {
    let names = xbar_names(fabric);
    let (nodes, without) = nodes(fabric);
    let mut text = String::from("# The tree of Slurm's topology plugin, as written by mapper.\n");
    if !without.is_empty() {
        let _infallible = writeln!(text, "# Without a cable: {}", hostlist(&without));
    }
    let mut lines = Vec::new();
    for (&xbar, nodes) in &nodes {
        lines.push((names[xbar].clone(), format!("SwitchName={} Nodes={}\n", names[xbar], hostlist(nodes))));
    }
    sort_by_name(&mut lines);
    lines.extend(groups(fabric, &names, nodes.keys().copied()));
    lines.into_iter().for_each(|(_, line)| text += &line);
    text
}

/// The nodes at each xbar that has some, and those without a cable.
fn nodes(fabric: &Fabric) -> (BTreeMap<usize, BTreeSet<String>>, BTreeSet<String>) {
    let mut first: BTreeMap<String, (bool, usize, Option<u32>)> = BTreeMap::new();
    for (host, (interface, place, _)) in fabric.map.hosts.iter().zip(machine::rails(fabric)) {
        let xbar = host.at.map(|at| at.xbar);
        let found = (xbar.is_none(), place, xbar);
        let known = first.entry(clean(&interface.machine)).or_insert(found);
        *known = (*known).min(found);
    }
    let (mut nodes, mut without) = (BTreeMap::<usize, BTreeSet<String>>::new(), BTreeSet::new());
    for (name, (_, _, xbar)) in first {
        match xbar {
            Some(xbar) => nodes.entry(xbar as usize).or_default().insert(name),
            None => without.insert(name),
        };
    }
    (nodes, without)
}

/// The switches above those with nodes, the lower ones first, each with its line.
fn groups(fabric: &Fabric, names: &[String], leaves: impl Iterator<Item = usize>) -> Vec<(String, String)> {
    let mut taken: BTreeSet<String> = names.iter().cloned().collect();
    let mut parts = Parts::new(fabric.map.xbars.len());
    // The switch that stands for each part so far, if it has nodes, and the first of its leaves.
    let mut tops: BTreeMap<usize, (String, String)> =
        leaves.map(|xbar| (xbar, (names[xbar].clone(), names[xbar].clone()))).collect();
    let mut lines = Vec::new();
    let mut reached = vec![false; fabric.map.xbars.len()];
    for (tier, row) in tiers(&fabric.map).into_iter().enumerate() {
        row.into_iter().for_each(|xbar| reached[xbar] = true);
        for cable in &fabric.map.cables {
            let (a, b) = (cable.a.xbar as usize, cable.b.xbar as usize);
            if reached[a] && reached[b] {
                parts.join(a, b);
            }
        }
        let mut joined: BTreeMap<usize, Vec<(String, String)>> = BTreeMap::new();
        for (xbar, top) in std::mem::take(&mut tops) {
            joined.entry(parts.part(xbar)).or_default().push(top);
        }
        let mut of_tier = Vec::new();
        for (part, mut below) in joined {
            below.sort_by_cached_key(|(_, leaf)| (Natural::of(leaf), leaf.clone()));
            let Some((_, leaf)) = below.first().cloned() else { continue };
            if let [(only, _)] = &below[..] {
                tops.insert(part, (only.clone(), leaf));
                continue;
            }
            let mut name = format!("tier{}-{leaf}", tier.max(1));
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            let switches = hostlist(&below.into_iter().map(|(switch, _)| switch).collect());
            of_tier.push((name.clone(), format!("SwitchName={name} Switches={switches}\n")));
            tops.insert(part, (name, leaf));
        }
        sort_by_name(&mut of_tier);
        lines.extend(of_tier);
    }
    lines
}

fn sort_by_name(lines: &mut [(String, String)]) {
    lines.sort_by_cached_key(|(name, _)| (Natural::of(name), name.clone()));
}

/// Which xbars are joined.
struct Parts(Vec<usize>);

impl Parts {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn part(&mut self, xbar: usize) -> usize {
        let mut at = xbar;
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.part(one), self.part(other));
        self.0[one.max(other)] = one.min(other);
    }
}

/// What each xbar is called: as on its box, or by its id where others are called the same.
fn xbar_names(fabric: &Fabric) -> Vec<String> {
    let shown: Vec<String> = fabric.xbars.iter().map(|label| clean(&machine::xbar(label))).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    shown.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let is_alone = |name: &str| counts.get(name) == Some(&1);
    taken.extend(shown.iter().filter(|name| is_alone(name)).cloned());
    let unique = |(name, label): (&String, &mapper_proto::map::XbarLabel)| {
        if is_alone(name) {
            return name.clone();
        }
        let mut id = clean(&label.name);
        while !taken.insert(id.clone()) {
            id.push('_');
        }
        id
    };
    shown.iter().zip(&fabric.xbars).map(unique).collect()
}

/// A name without what has a meaning in Slurm's files.
fn clean(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    if name.is_empty() { "_".to_owned() } else { name.chars().map(allowed).collect() }
}

/// The most digits of a number in brackets.
const MOST_DIGITS: usize = 9;

/// Names as Slurm shortens them: `n[1-3,7]`, and `n[08-12]` where numbers are padded.
fn hostlist(names: &BTreeSet<String>) -> String {
    let split =
        |name: &str| name.len() - name.bytes().rev().take(MOST_DIGITS).take_while(u8::is_ascii_digit).count();
    let padded: BTreeSet<(&str, usize)> = names
        .iter()
        .map(|name| name.split_at(split(name)))
        .filter(|(_, digits)| digits.len() > 1 && digits.starts_with('0'))
        .map(|(prefix, digits)| (prefix, digits.len()))
        .collect();
    let mut all: BTreeMap<(&str, usize), BTreeSet<u32>> = BTreeMap::new();
    let mut plain = Vec::new();
    for name in names {
        let (prefix, digits) = name.split_at(split(name));
        match digits.parse::<u32>() {
            Ok(number) if !prefix.ends_with(|c: char| c.is_ascii_digit()) => {
                let width = if padded.contains(&(prefix, digits.len())) { digits.len() } else { 0 };
                all.entry((prefix, width)).or_default().insert(number);
            }
            _ => plain.push(name.clone()),
        }
    }
    let mut said: Vec<String> =
        all.iter().map(|(&(prefix, width), numbers)| ranges(prefix, width, numbers)).collect();
    said.append(&mut plain);
    said.sort_by_cached_key(|name| (Natural::of(name), name.clone()));
    said.join(",")
}

/// Numbers behind a prefix, in so many digits at least.
fn ranges(prefix: &str, width: usize, numbers: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    if let [(one, other)] = ranges[..]
        && one == other
    {
        return format!("{prefix}{one:0width$}");
    }
    let range = |&(first, last): &(u32, u32)| match first == last {
        true => format!("{first:0width$}"),
        false => format!("{first:0width$}-{last:0width$}"),
    };
    format!("{prefix}[{}]", ranges.iter().map(range).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;
    use proptest::prelude::*;

    use super::*;

    /// The names that a list stands for.
    fn expand(list: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut depth = 0;
        let parts = list.split(|c: char| {
            depth += i32::from(c == '[') - i32::from(c == ']');
            c == ',' && depth == 0
        });
        for part in parts.filter(|part| !part.is_empty()) {
            let Some((prefix, rest)) = part.split_once('[') else {
                names.insert(part.to_owned());
                continue;
            };
            for range in rest.trim_end_matches(']').split(',') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let width = first.len();
                for number in first.parse::<u32>().unwrap()..=last.parse().unwrap() {
                    names.insert(format!("{prefix}{number:0width$}"));
                }
            }
        }
        names
    }

    /// The lines of switches: name, key, list.
    fn switches(text: &str) -> BTreeMap<String, (String, BTreeSet<String>)> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let switch = |line: &str| {
            let (name, rest) = line.strip_prefix("SwitchName=").unwrap().split_once(' ').unwrap();
            let (key, list) = rest.split_once('=').unwrap();
            (name.to_owned(), (key.to_owned(), expand(list)))
        };
        lines.map(switch).collect()
    }

    proptest! {
        #[test]
        fn a_list_stands_for_the_names_that_it_is_of(
            names in prop::collection::btree_set("[a-c]{0,2}[0-9]{1,3}|[a-c]{1,2}|a-0[0-9]{9}", 1..30)
        ) {
            prop_assert_eq!(expand(&hostlist(&names)), names);
        }
    }

    #[test]
    fn every_node_stands_once_below_one_root_a_part() {
        for (spec, roots) in [
            ("clos:hosts=128,ports=8", 1),
            ("torus:x=4,y=4,hosts=2", 1),
            ("clos:hosts=4,ports=4", 1),
            ("dragonfly:a=4,p=2,h=2", 1),
            ("cluster:leaves=6,spines=4,hosts=40,rails=2", 2),
        ] {
            let fabric = generate(spec).unwrap();
            let text = write(&fabric);
            let switches = switches(&text);
            let of = |kind: &str| {
                switches
                    .values()
                    .filter(|(key, _)| key == kind)
                    .flat_map(|(_, list)| list)
                    .collect::<Vec<_>>()
            };
            let (nodes, below) = (of("Nodes"), of("Switches"));
            let machines: BTreeSet<String> =
                machine::rails(&fabric).into_iter().map(|(interface, ..)| interface.machine).collect();
            assert_eq!(nodes.iter().copied().collect::<BTreeSet<_>>().len(), nodes.len(), "{spec}: {text}");
            assert_eq!(nodes.len(), machines.len(), "{spec}: {text}");
            assert!(below.iter().all(|name| switches.contains_key(*name)), "{spec}: {text}");
            assert_eq!(below.iter().collect::<BTreeSet<_>>().len(), below.len(), "{spec}: {text}");
            assert_eq!(switches.len() - below.len(), roots, "{spec}: {text}");
        }
    }

    #[test]
    fn of_several_rails_the_first_is_written() {
        let mut fabric = generate("cluster:leaves=6,spines=4,hosts=40,rails=2").unwrap();
        for (host, label) in fabric.hosts.iter_mut().enumerate() {
            label.description = format!("node{:02} HCA-{}", host % 40 + 1, host / 40 + 1);
        }
        let text = write(&fabric);
        assert!(!text.contains("rail2") && text.contains(" Nodes=node[35-40]\n"), "{text}");
    }

    #[test]
    fn pods_are_branches_and_numbering_changes_nothing() {
        let fabric = generate("clos:hosts=128,ports=8").unwrap();
        let text = write(&fabric);
        assert!(text.contains("SwitchName=tier1-"), "{text}");
        assert!(text.lines().last().unwrap().starts_with("SwitchName=tier2-"), "{text}");
        let mut other = fabric;
        other.map.cables.reverse();
        let spine = other.map.cables[0].b.xbar;
        other.map.cables.retain(|cable| cable.b.xbar != spine || cable.a.xbar % 2 == 0);
        assert_eq!(write(&other), text, "a spine that loses cables joins no less");
    }

    #[test]
    fn names_that_mean_something_to_slurm_are_made_plain_and_stay_apart() {
        let mut fabric = generate("ring:n=3,hosts=1").unwrap();
        fabric.xbars[0].description = "MF0;leaf 1:MSB7700/U1".to_owned();
        fabric.xbars[1].description = "spare".to_owned();
        fabric.xbars[2].description = "spare".to_owned();
        fabric.hosts[0].description = "Node1.example.org HCA-1".to_owned();
        let text = write(&fabric);
        assert!(text.contains("SwitchName=leaf_1 Nodes=node1\n"), "{text}");
        assert!(text.contains("SwitchName=xbar2 Nodes=h2\n"), "{text}");
        assert!(text.contains("SwitchName=tier1-leaf_1 Switches=leaf_1,xbar[2-3]\n"), "{text}");
    }
}
