//! Files of Slurm's topology plugins: `topology.conf` for its tree, and `topology.yaml` for trees and blocks. They are written only.
//!
//! Each xbar that has hosts is a switch with nodes. Above them stands a switch for what cables really join: at each tier one for
//! the xbars below that its xbars join, so that a fat tree's pods are branches, and each part of the fabric has one root.
//! These switches are none that one could touch, as Slurm wants a tree, and a fabric has many spines: each is called by its tier
//! and its first leaf. So names depend on names alone, and not on how a fabric's nodes are numbered or which spines it has.
//!
//! A node is a machine, by its short name. Service adapters, which switches have in themselves, are no machines. A machine with
//! several interfaces stands at the leaf of the first that has a cable in a `topology.conf`, as Slurm's tree has a node once; in a
//! `topology.yaml` each rail has a topology of its own, which partitions choose by name.

mod hostlist;
mod tree;
mod yaml;

use std::fmt::Write;

use mapper_proto::map::Fabric;

use hostlist::hostlist;
use tree::{Below, Rail, Tree};

pub(super) use yaml::write as write_yaml;

/// The fabric as a `topology.conf`.
pub(super) fn write(fabric: &Fabric) -> String {
    let tree = Tree::of(fabric, Rail::First);
    let mut text = String::from("# The tree of Slurm's topology plugin, as written by mapper.\n");
    if !tree.without.is_empty() {
        let _infallible = writeln!(text, "# Without a cable: {}", hostlist(&tree.without));
    }
    for switch in &tree.switches {
        let (key, names) = match &switch.below {
            Below::Nodes(nodes) => ("Nodes", nodes),
            Below::Switches(switches) => ("Switches", switches),
        };
        let _infallible = writeln!(text, "SwitchName={} {key}={}", switch.name, hostlist(names));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use mapper_fabric::{generate, machine};

    use super::hostlist::tests::expand;
    use super::*;

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
    fn service_adapters_are_no_machine() {
        let mut fabric = generate("cluster:leaves=4,spines=2,hosts=20,service=every").unwrap();
        let text = write(&fabric);
        assert!(!text.contains("ggregation"), "{text}");
        let nodes: usize =
            switches(&text).values().filter(|(key, _)| key == "Nodes").map(|(_, list)| list.len()).sum();
        assert_eq!(nodes, 20, "{text}");
        // Adapters whose driver knows no name of the machine all say the same of themselves.
        for label in &mut fabric.hosts {
            label.description = "MT4123 ConnectX6   Mellanox Technologies".to_owned();
        }
        let all = write(&fabric);
        let nodes: usize =
            switches(&all).values().filter(|(key, _)| key == "Nodes").map(|(_, list)| list.len()).sum();
        assert_eq!(nodes, fabric.map.hosts.iter().filter(|host| host.at.is_some()).count(), "{all}");
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
