//! The part of a map that exploration must find.

use super::{Attached, Cable, Contested, Host, Map, PortRef, PortsInUse};

/// A part of a map, and where its hosts and xbars stand in the whole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Part {
    /// The part as a map of its own, with the version of the whole.
    pub map: Map,
    /// For each of the part's hosts, its index in the whole.
    pub hosts: Vec<u32>,
    /// For each of the part's xbars, its index in the whole.
    pub xbars: Vec<u32>,
}

impl Map {
    /// The map without what exploration need not find: all xbars that a single cable, or nothing
    /// at all, connects to any host.
    ///
    /// In the words of Mainwaring, Chun, Schleimer and Wilkerson ("System Area Network Mapping",
    /// 1997): the network less what a switch-bridge separates from every host.
    pub fn reachable_core(&self) -> Part {
        let ports = PortsInUse::new(self);
        let mut search = BridgeSearch::new(self, &ports);
        for host in &self.hosts {
            if let Some(at) = host.at.filter(|at| (at.xbar as usize) < self.xbars.len()) {
                search.visit_all_from(at.xbar);
            }
        }
        let keep = search.kept();
        self.part(&keep, |host| host.at.is_none_or(|at| keep.get(at.xbar as usize) == Some(&true)))
    }

    /// The part with the xbars marked in `keep` and, of the hosts there or nowhere, those that
    /// pass.
    fn part(&self, keep: &[bool], passes: impl Fn(&Host) -> bool) -> Part {
        let xbars: Vec<u32> =
            (0..self.xbars.len() as u32).filter(|&x| keep.get(x as usize) == Some(&true)).collect();
        let moved = |port: PortRef| {
            let xbar = xbars.binary_search(&port.xbar).ok()?;
            Some(PortRef { xbar: xbar as u32, ..port })
        };
        let mut part = Part { map: Map { version: self.version, ..Map::default() }, ..Part::default() };
        for (index, host) in self.hosts.iter().enumerate() {
            let at = host.at.and_then(moved);
            if at.is_some() == host.at.is_some() && passes(host) {
                part.hosts.push(index as u32);
                part.map.hosts.push(Host { at, ..*host });
            }
        }
        let cables = self.cables.iter();
        part.map.cables = cables.filter_map(|c| Some(Cable::new(moved(c.a)?, moved(c.b)?))).collect();
        let contested = self.contested.iter();
        part.map.contested = contested.filter_map(|c| Some(Contested { at: moved(c.at)?, ..*c })).collect();
        part.map.xbars = xbars.iter().map(|&xbar| self.xbars[xbar as usize]).collect();
        part.xbars = xbars;
        part
    }
}

/// A depth-first search for bridges (Tarjan 1974), without recursion. It begins at an xbar with a
/// host, so what hangs below a bridge is separated from every host if there is no host below.
struct BridgeSearch<'a> {
    ports: &'a PortsInUse,
    /// When each xbar was first seen, counted from 1; 0 for not yet.
    seen: Vec<u32>,
    /// The earliest xbar that each xbar or one below it reaches by a cable off the tree.
    low: Vec<u32>,
    /// Hosts at each xbar and, once it is done, below it.
    hosts: Vec<u32>,
    /// How each xbar was reached: the port on its own side. `None` for a root.
    entry: Vec<Option<PortRef>>,
    /// The xbars in the order in which they were seen.
    order: Vec<u32>,
    /// The xbar above each one in the tree.
    parent: Vec<u32>,
}

impl<'a> BridgeSearch<'a> {
    fn new(map: &Map, ports: &'a PortsInUse) -> Self {
        let count = map.xbars.len();
        let mut hosts = vec![0; count];
        for at in map.hosts.iter().filter_map(|host| host.at) {
            if let Some(hosts) = hosts.get_mut(at.xbar as usize) {
                *hosts += 1;
            }
        }
        Self {
            ports,
            seen: vec![0; count],
            low: vec![0; count],
            hosts,
            entry: vec![None; count],
            order: Vec::with_capacity(count),
            parent: vec![0; count],
        }
    }

    fn visit_all_from(&mut self, root: u32) {
        if self.seen[root as usize] != 0 {
            return;
        }
        self.see(root, root, None);
        // An xbar, and how many of its ports are done.
        let mut path = vec![(root, 0)];
        while let Some((xbar, done)) = path.last_mut() {
            let here = *xbar;
            let Some(&(port, attached)) = self.ports.of_xbar(here).get(*done) else {
                path.pop();
                self.leave(here);
                continue;
            };
            *done += 1;
            let Attached::Xbar(far) = attached else { continue };
            if self.seen[far.xbar as usize] == 0 {
                self.see(far.xbar, here, Some(far));
                path.push((far.xbar, 0));
            } else if self.entry[here as usize] != Some(PortRef { xbar: here, port }) {
                self.low[here as usize] = self.low[here as usize].min(self.seen[far.xbar as usize]);
            }
        }
    }

    fn see(&mut self, xbar: u32, parent: u32, entry: Option<PortRef>) {
        self.order.push(xbar);
        let now = self.order.len() as u32;
        (self.seen[xbar as usize], self.low[xbar as usize]) = (now, now);
        (self.parent[xbar as usize], self.entry[xbar as usize]) = (parent, entry);
    }

    /// Tells the xbar above what was learnt of this one and those below it.
    fn leave(&mut self, xbar: u32) {
        let parent = self.parent[xbar as usize] as usize;
        if parent != xbar as usize {
            self.hosts[parent] += self.hosts[xbar as usize];
            self.low[parent] = self.low[parent].min(self.low[xbar as usize]);
        }
    }

    /// Which xbars no bridge separates from every host.
    fn kept(&self) -> Vec<bool> {
        let mut keep = vec![false; self.seen.len()];
        for &xbar in &self.order {
            let at = xbar as usize;
            let is_root = self.entry[at].is_none();
            let bridge_above = self.low[at] == self.seen[at];
            let cut_off = bridge_above && self.hosts[at] == 0;
            keep[at] = is_root || (keep[self.parent[at] as usize] && !cut_off);
        }
        keep
    }
}

#[cfg(test)]
mod tests;
