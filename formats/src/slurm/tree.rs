//! The tree that Slurm sees in a fabric: machines, leaves, and what joins these.

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::machine::{self, Natural};
use mapper_fabric::parts::Parts;
use mapper_proto::map::Fabric;
use sha2::{Digest, Sha256};

use super::hostlist::clean;
use crate::tiers::tiers;

/// The most letters of a switch's name: 64 by topology.yaml(5), less a few by which names that are alike are told apart.
const MOST_LETTERS: usize = 60;

/// What stands below a switch, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Below {
    Nodes(BTreeSet<String>),
    Switches(BTreeSet<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) name: String,
    pub(super) below: Below,
}

/// Switches, those with nodes first and roots last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) switches: Vec<Switch>,
    /// Nodes that have no cable.
    pub(super) without: BTreeSet<String>,
}

/// Which interfaces of machines stand for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rail {
    /// The first that has a cable.
    First,
    /// Those at this place among the interfaces of their machine, from 0; machines that have fewer are in no tree of this rail.
    At(usize),
}

/// How many rails there are: as many as the machine with the most interfaces has.
pub(super) fn rails(fabric: &Fabric) -> usize {
    interfaces(fabric).map(|(_, place, _)| place + 1).max().unwrap_or(1)
}

/// Interfaces of machines: the machine, the place among its interfaces, and the xbar. Service adapters are in no machine.
fn interfaces(fabric: &Fabric) -> impl Iterator<Item = (String, usize, Option<u32>)> {
    let all = fabric.map.hosts.iter().zip(&fabric.hosts).zip(machine::rails(fabric));
    all.filter(|((_, label), _)| !machine::is_service_adapter(label)).map(
        |((host, _), (interface, place, _))| (clean(&interface.machine), place, host.at.map(|at| at.xbar)),
    )
}

impl Tree {
    pub(super) fn of(fabric: &Fabric, rail: Rail) -> Self {
        let names = xbar_names(fabric);
        let (nodes, without) = nodes(fabric, rail);
        let leaf = |(&xbar, nodes): (&usize, &BTreeSet<String>)| Switch {
            name: names[xbar].clone(),
            below: Below::Nodes(nodes.clone()),
        };
        let mut switches: Vec<Switch> = nodes.iter().map(leaf).collect();
        sort_by_name(&mut switches);
        switches.extend(groups(fabric, &names, nodes.keys().copied()));
        Self { switches, without }
    }
}

/// The nodes at each xbar that has some, and those without a cable.
fn nodes(fabric: &Fabric, rail: Rail) -> (BTreeMap<usize, BTreeSet<String>>, BTreeSet<String>) {
    let mut first: BTreeMap<String, (bool, usize, Option<u32>)> = BTreeMap::new();
    for (machine, place, xbar) in interfaces(fabric) {
        if matches!(rail, Rail::At(wanted) if wanted != place) {
            continue;
        }
        let found = (xbar.is_none(), place, xbar);
        let known = first.entry(machine).or_insert(found);
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

/// The switches above those with nodes, the lower ones first.
fn groups(fabric: &Fabric, names: &[String], leaves: impl Iterator<Item = usize>) -> Vec<Switch> {
    let mut taken: BTreeSet<String> = names.iter().cloned().collect();
    let mut parts = Parts::new(fabric.map.xbars.len());
    // The switch that stands for each part so far, if it has nodes, and the first of its leaves.
    let mut tops: BTreeMap<usize, (String, String)> =
        leaves.map(|xbar| (xbar, (names[xbar].clone(), names[xbar].clone()))).collect();
    let mut switches = Vec::new();
    let mut reached = vec![false; fabric.map.xbars.len()];
    for (tier, row) in tiers(&fabric.map).into_iter().enumerate() {
        row.into_iter().for_each(|xbar| reached[xbar] = true);
        for cable in &fabric.map.cables {
            let (a, b) = (cable.a.xbar, cable.b.xbar);
            if reached[a as usize] && reached[b as usize] {
                parts.join(a, b);
            }
        }
        let mut joined: BTreeMap<usize, Vec<(String, String)>> = BTreeMap::new();
        for (xbar, top) in std::mem::take(&mut tops) {
            joined.entry(parts.of(xbar as u32) as usize).or_default().push(top);
        }
        let mut of_tier = Vec::new();
        for (part, mut below) in joined {
            below.sort_by_cached_key(|(_, leaf)| (Natural::of(leaf), leaf.clone()));
            let Some((_, leaf)) = below.first().cloned() else { continue };
            if let [(only, _)] = &below[..] {
                tops.insert(part, (only.clone(), leaf));
                continue;
            }
            let mut name = short(format!("tier{}-{leaf}", tier.max(1)));
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            let switches = below.into_iter().map(|(switch, _)| switch).collect();
            of_tier.push(Switch { name: name.clone(), below: Below::Switches(switches) });
            tops.insert(part, (name, leaf));
        }
        sort_by_name(&mut of_tier);
        switches.extend(of_tier);
    }
    switches
}

fn sort_by_name(switches: &mut [Switch]) {
    switches.sort_by_cached_key(|switch| (Natural::of(&switch.name), switch.name.clone()));
}

/// A name as long as Slurm takes them. What is left out of a longer one is told by its digest. The name is of ASCII.
fn short(name: String) -> String {
    if name.len() <= MOST_LETTERS {
        return name;
    }
    let digest = Sha256::digest(name.as_bytes());
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{digest}", &name[..MOST_LETTERS - 1 - digest.len()])
}

/// What each xbar is called: as on its box, or by its id where others are called the same.
fn xbar_names(fabric: &Fabric) -> Vec<String> {
    let shown: Vec<String> = fabric.xbars.iter().map(|label| short(clean(&machine::xbar(label)))).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    shown.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let is_alone = |name: &str| counts.get(name) == Some(&1);
    taken.extend(shown.iter().filter(|name| is_alone(name)).cloned());
    let unique = |(name, label): (&String, &mapper_proto::map::XbarLabel)| {
        if is_alone(name) {
            return name.clone();
        }
        let mut id = short(clean(&label.name));
        while !taken.insert(id.clone()) {
            id.push('_');
        }
        id
    };
    shown.iter().zip(&fabric.xbars).map(unique).collect()
}
