//! `topology.yaml`, which Slurm reads since 25.05.

use std::collections::BTreeSet;
use std::fmt::Write;

use mapper_proto::map::Fabric;

use super::hostlist::hostlist;
use super::tree::{Below, Rail, Switch, Tree, rails};

/// The fabric as a `topology.yaml`: for each rail a tree, and a block topology whose blocks are the leaves. Partitions choose one by
/// its name; the first tree is everybody's who chooses none.
pub(crate) fn write(fabric: &Fabric) -> String {
    let rails = rails(fabric);
    let mut text = String::from("# Slurm's topologies, as written by mapper.\n---\n");
    let mut is_default = true;
    for rail in 0..rails {
        let prefix = if rails == 1 { String::new() } else { format!("rail{}-", rail + 1) };
        let tree = Tree::of(fabric, Rail::At(rail));
        if !tree.without.is_empty() {
            line(&mut text, 0, &format!("# Without a cable: {}", hostlist(&tree.without)));
        }
        if tree.switches.is_empty() {
            continue;
        }
        add_tree(&mut text, &format!("{prefix}tree"), is_default, &tree);
        add_blocks(&mut text, &format!("{prefix}block"), &tree);
        is_default = false;
    }
    text
}

fn line(text: &mut String, depth: usize, words: &str) {
    let _infallible = writeln!(text, "{:1$}{words}", "", 2 * depth);
}

fn begin(text: &mut String, name: &str, is_default: bool) {
    line(text, 0, &format!("- topology: {name}"));
    line(text, 1, &format!("cluster_default: {is_default}"));
}

fn add_tree(text: &mut String, name: &str, is_default: bool, tree: &Tree) {
    begin(text, name, is_default);
    line(text, 1, "tree:");
    line(text, 2, "switches:");
    for Switch { name, below } in &tree.switches {
        let (key, names) = match below {
            Below::Nodes(nodes) => ("nodes", nodes),
            Below::Switches(switches) => ("children", switches),
        };
        // Names stand in quotes, as they may be words or numbers of YAML.
        line(text, 3, &format!("- switch: \"{name}\""));
        line(text, 4, &format!("{key}: \"{}\"", hostlist(names)));
    }
}

/// A block may have no fewer nodes than Slurm plans by, so this is the size of the smallest.
fn add_blocks(text: &mut String, name: &str, tree: &Tree) {
    let leaf = |switch: &'_ Switch| match &switch.below {
        Below::Nodes(nodes) => Some((switch.name.clone(), nodes.clone())),
        Below::Switches(_) => None,
    };
    let leaves: Vec<(String, BTreeSet<String>)> = tree.switches.iter().filter_map(leaf).collect();
    begin(text, name, false);
    line(text, 1, "block:");
    line(text, 2, "block_sizes:");
    line(text, 3, &format!("- {}", leaves.iter().map(|(_, nodes)| nodes.len()).min().unwrap_or(1)));
    line(text, 2, "blocks:");
    for (name, nodes) in leaves {
        line(text, 3, &format!("- block: \"{name}\""));
        line(text, 4, &format!("nodes: \"{}\"", hostlist(&nodes)));
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn one_rail_has_a_tree_and_blocks() {
        let expected = "\
# Slurm's topologies, as written by mapper.
---
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: \"leaf1\"
        nodes: \"h[1-2]\"
      - switch: \"leaf2\"
        nodes: \"h[3-4]\"
      - switch: \"tier1-leaf1\"
        children: \"leaf[1-2]\"
- topology: block
  cluster_default: false
  block:
    block_sizes:
      - 2
    blocks:
      - block: \"leaf1\"
        nodes: \"h[1-2]\"
      - block: \"leaf2\"
        nodes: \"h[3-4]\"
";
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        fabric.map.hosts.truncate(4);
        fabric.hosts.truncate(4);
        assert_eq!(write(&fabric), expected);
    }

    #[test]
    fn each_rail_has_topologies_of_its_own() {
        let mut fabric = generate("cluster:leaves=6,spines=4,hosts=40,rails=2").unwrap();
        for (host, label) in fabric.hosts.iter_mut().enumerate() {
            label.description = format!("node{:02} mlx5_{}", host % 40 + 1, host / 40);
        }
        let text = write(&fabric);
        let topologies: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("- topology: ")).collect();
        assert_eq!(topologies, ["rail1-tree", "rail1-block", "rail2-tree", "rail2-block"], "{text}");
        assert_eq!(text.matches("cluster_default: true").count(), 1, "{text}");
        let of = |rail: &str| {
            text.split(&format!("- topology: {rail}\n"))
                .nth(1)
                .unwrap()
                .split("- topology")
                .next()
                .unwrap()
                .to_owned()
        };
        assert!(of("rail1-tree").contains("rail1-leaf1") && !of("rail1-tree").contains("rail2"), "{text}");
        assert!(of("rail2-tree").contains("rail2-leaf1") && !of("rail2-tree").contains("rail1"), "{text}");
    }
}
