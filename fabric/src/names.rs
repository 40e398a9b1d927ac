//! What people call the nodes of a fabric.
//!
//! Programs match nodes by their ids, in JSON and in files of tables and routes. A person looks for what is
//! written on the box, which is the description.

use std::collections::BTreeMap;

use mapper_proto::map::{Fabric, PortRef};
use mapper_proto::quote;

/// Most bytes of a description that are shown; InfiniBand's have 64 at most.
const MAX_DESCRIPTION_BYTES: usize = 64;

/// What each node of a fabric is called wherever people read. It is the node's description, followed by its
/// id where another node is called the same, or the id alone where the node has no description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// The name of each host, in the order of the map.
    pub hosts: Vec<String>,
    /// The name of each xbar, in the order of the map.
    pub xbars: Vec<String>,
    /// The ids of hosts.
    host_ids: Vec<String>,
    /// The ids of xbars.
    xbar_ids: Vec<String>,
}

/// A node of a fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// A host.
    Host(u32),
    /// An xbar.
    Xbar(u32),
}

impl Names {
    /// The names of a fabric's nodes. No two are alike.
    pub fn of(fabric: &Fabric) -> Self {
        let hosts = fabric.hosts.iter().map(|label| NamedNode::new(&label.name, &label.description));
        let xbars = fabric.xbars.iter().map(|label| NamedNode::new(&label.name, &label.description));
        let nodes: Vec<NamedNode<'_>> = hosts.chain(xbars).collect();
        // A node that is shown by its description keeps its id taken as well: no other node is shown by
        // that id alone.
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for node in &nodes {
            *taken.entry(&node.shown).or_default() += 1;
            if node.shown != node.id {
                *taken.entry(node.id).or_default() += 1;
            }
        }
        let name = |node: &NamedNode<'_>| match taken.get(node.shown.as_str()) {
            Some(..=1) | None => node.shown.clone(),
            Some(_) if node.shown == node.id => node.shown.clone(),
            Some(_) => format!("{} ({})", node.shown, node.id),
        };
        let mut hosts: Vec<String> = nodes.iter().map(name).collect();
        let xbars = hosts.split_off(fabric.hosts.len());
        let host_ids = fabric.hosts.iter().map(|label| label.name.clone()).collect();
        let xbar_ids = fabric.xbars.iter().map(|label| label.name.clone()).collect();
        Self { hosts, xbars, host_ids, xbar_ids }
    }

    /// All nodes by what a person may call them: by their ids, and by their names where these are not
    /// another's id.
    pub fn nodes(&self) -> BTreeMap<&str, Named> {
        let hosts = |names: &'_ Vec<String>| (0..names.len() as u32).map(Named::Host).collect::<Vec<_>>();
        let xbars = |names: &'_ Vec<String>| (0..names.len() as u32).map(Named::Xbar).collect::<Vec<_>>();
        let mut all = BTreeMap::new();
        for (names, nodes) in [
            (&self.host_ids, hosts(&self.host_ids)),
            (&self.xbar_ids, xbars(&self.xbar_ids)),
            (&self.hosts, hosts(&self.hosts)),
            (&self.xbars, xbars(&self.xbars)),
        ] {
            for (name, node) in names.iter().zip(nodes) {
                all.entry(name.as_str()).or_insert(node);
            }
        }
        all
    }

    /// A host's name, or its number where the fabric says nothing of it.
    pub fn host(&self, host: u32) -> String {
        self.hosts.get(host as usize).map_or_else(|| format!("host {host}"), String::clone)
    }

    /// An xbar's name, or its number where the fabric says nothing of it.
    pub fn xbar(&self, xbar: u32) -> String {
        self.xbars.get(xbar as usize).map_or_else(|| format!("xbar {xbar}"), String::clone)
    }
}

impl Names {
    /// A node's name.
    pub fn node(&self, node: Named) -> String {
        match node {
            Named::Host(host) => self.host(host),
            Named::Xbar(xbar) => self.xbar(xbar),
        }
    }

    /// A port of an xbar, as a person finds it.
    pub fn port(&self, at: PortRef) -> String {
        format!("{} port {}", self.xbar(at.xbar), at.port)
    }

    /// A cable by its ends, as in `from leaf 1 port 3 to spine 2 port 1`.
    pub fn cable(&self, [from, to]: [PortRef; 2]) -> String {
        format!("from {} to {}", self.port(from), self.port(to))
    }
}

struct NamedNode<'a> {
    id: &'a str,
    /// The description, or the id if there is none.
    shown: String,
}

impl<'a> NamedNode<'a> {
    fn new(id: &'a str, description: &str) -> Self {
        let shown = quote::harmless(description.trim(), MAX_DESCRIPTION_BYTES);
        Self { id, shown: if shown.is_empty() { id.to_owned() } else { shown } }
    }
}

#[cfg(test)]
mod tests {
    use crate::generate;

    use super::*;

    #[test]
    fn descriptions_are_shown_and_ids_tell_equal_ones() {
        let mut fabric = generate("ring:n=3").unwrap();
        assert_eq!(Names::of(&fabric).xbars, ["xbar1", "xbar2", "xbar3"]);
        fabric.xbars[0].description = " rack\u{1b} 4 ".to_owned();
        fabric.xbars[1].description = "spare".to_owned();
        fabric.xbars[2].description = "spare".to_owned();
        fabric.hosts[0].description = String::new();
        // The second host is described by the third one's id, which alone would name the wrong host.
        fabric.hosts[1].description = "h3".to_owned();
        fabric.hosts[2].description = "x".repeat(1000);
        let names = Names::of(&fabric);
        assert_eq!(names.xbars, ["rack\u{fffd} 4", "spare (xbar2)", "spare (xbar3)"]);
        assert_eq!(names.hosts[..2], ["h1", "h3 (h2)"]);
        assert_eq!(names.hosts[2], format!("{}..", "x".repeat(64)));
        let ends = [PortRef { xbar: 0, port: 1 }, PortRef { xbar: 9, port: 2 }];
        assert_eq!(names.cable(ends), "from rack\u{fffd} 4 port 1 to xbar 9 port 2");
        assert_eq!((names.host(9), names.xbar(9)), ("host 9".to_owned(), "xbar 9".to_owned()));
    }
}
