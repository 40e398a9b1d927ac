//! Which port of a draft is cabled to which, and which cables are left out.

use std::collections::BTreeMap;

use mapper_proto::map::{LinkSpeed, PortRef, Xbar, host_type};

use super::{Draft, ListedEnd, ListedKind, ListedNode, Port};
use crate::Malformed;

/// What each cabled port is cabled to, and the line that says so.
pub(super) type Links = BTreeMap<Port, (Port, usize)>;

impl Draft {
    /// Which port each port is cabled to, and the line that says so. It is enough that one end
    /// lists the cable. A port cabled to itself (a loopback plug) is left out, and so is a cable to a node that the file
    /// does not describe.
    pub(super) fn links(&mut self) -> Result<Links, Malformed> {
        let mut links = BTreeMap::new();
        let mut left_out: BTreeMap<Port, (usize, &'static str)> = BTreeMap::new();
        for end in &self.ends {
            let here = (end.node, end.port);
            let Some(&peer) = self.by_name.get(&end.peer) else {
                left_out.entry(here).or_insert((end.line, "there is no such node in the file"));
                continue;
            };
            let there = (peer, self.port(end.line, peer, end.peer_port)?);
            if here == there {
                left_out.entry(here).or_insert((end.line, "it leads back to the same port"));
                continue;
            }
            for (from, to) in [(here, there), (there, here)] {
                if let Some(&(known, line)) = links.get(&from)
                    && known != to
                {
                    let name = |(node, port): Port| format!("`{}` port {port}", self.nodes[node].name);
                    return Err(Malformed::at(
                        end.line,
                        format!(
                            "{} is cabled to {} here, but to {} at line {line}; a port has one cable",
                            name(from),
                            name(to),
                            name(known)
                        ),
                    ));
                }
                links.entry(from).or_insert((to, end.line));
            }
        }
        self.leave_out_dead_ends(left_out);
        Ok(links)
    }

    /// Refuses a crossbar with a cable in port 0 and in the port of its number of ports: its ports count from 0, or from 1.
    pub(super) fn check_first_ports(&self, links: &Links) -> Result<(), Malformed> {
        for (index, node) in self.nodes.iter().enumerate() {
            let ListedKind::Xbar(_, Xbar { ports, .. }) = node.kind else { continue };
            if let (Some((_, one)), Some((_, other))) = (links.get(&(index, 0)), links.get(&(index, ports))) {
                let problem = format!(
                    "`{}` uses ports 0 and {ports} and has {ports} ports; expected ports that count from 0, or from 1",
                    node.name
                );
                return Err(Malformed::at(*one.max(other), problem));
            }
        }
        Ok(())
    }

    /// Tells of cables that lead to no other node of the file: by the port and the line of each, and why.
    fn leave_out_dead_ends(&mut self, mut dead_ends: BTreeMap<Port, (usize, &'static str)>) {
        let mut told: Vec<(usize, String)> = Vec::new();
        for end in &self.ends {
            if let Some((line, why)) = dead_ends.remove(&(end.node, end.port)) {
                let here = format!("`{}` port {}", self.nodes[end.node].name, end.port);
                told.push((
                    line,
                    format!("the cable from {here} to `{}` port {}: {why}", end.peer, end.peer_port),
                ));
            }
        }
        told.sort_unstable();
        told.into_iter().for_each(|(line, what)| self.leave_out(line, what));
    }

    /// Whether there is one cable, between these two hosts, and nothing else but phantoms: no map tells of
    /// any other cable from host to host.
    fn is_alone(&self, pair: [usize; 2], links: &Links) -> bool {
        let is_phantom = |node: &ListedNode| matches!(&node.kind, ListedKind::Host(host) if host.host_type == host_type::PHANTOM);
        let mut nodes = self.nodes.iter().enumerate();
        links.len() == 2 && nodes.all(|(index, node)| pair.contains(&index) || is_phantom(node))
    }

    /// Takes out cables that join two hosts beside a fabric, as no map tells of them.
    pub(super) fn leave_out_host_to_host(&mut self, links: &mut Links) {
        let is_host = |(node, _): Port| matches!(self.nodes[node].kind, ListedKind::Host(_));
        let between = links.iter().filter(|&(&from, &(to, _))| from < to && is_host(from) && is_host(to));
        let between = between.map(|(&from, &(to, line))| (from, to, line));
        let between: Vec<(Port, Port, usize)> =
            between.filter(|(from, to, _)| !self.is_alone([from.0, to.0], links)).collect();
        for (from, to, line) in between {
            links.remove(&from);
            links.remove(&to);
            let name = |(node, port): Port| format!("`{}` port {port}", self.nodes[node].name);
            let what = format!(
                "the cable from {} to {}: it joins hosts without a switch, and there is more in the file",
                name(from),
                name(to)
            );
            self.leave_out(line, what);
        }
    }

    /// How fast the cable in each xbar's port is: as fast as its slower end says.
    pub(super) fn link_speeds(
        &self,
        links: &Links,
        port_ref: impl Fn(Port) -> Option<PortRef>,
    ) -> BTreeMap<PortRef, LinkSpeed> {
        let said = |end: &ListedEnd| Some(((end.node, end.port), end.speed?));
        let own: BTreeMap<Port, LinkSpeed> = self.ends.iter().filter_map(said).collect();
        let speed = |(from, (to, _)): (&Port, &(Port, usize))| {
            let slower =
                [own.get(from), own.get(to)].into_iter().flatten().min_by_key(|speed| speed.data_mbps());
            Some((port_ref(*from)?, *slower?))
        };
        links.iter().filter_map(speed).collect()
    }
}
