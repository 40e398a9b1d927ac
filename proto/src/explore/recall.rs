//! What of an earlier map is still trusted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::knowledge::{At, Far};
use super::xbar::{Stage, Tag, XbarState};
use super::{ExploreError, Explorer, Met};
use crate::Mac;
use crate::map::{Host, Map, PortRef};

/// The ends of an earlier map's cables, but for those that touch a suspect port.
struct Trusted {
    cables: BTreeMap<PortRef, PortRef>,
    hosts: BTreeMap<PortRef, Host>,
    suspects: BTreeSet<PortRef>,
}

impl Trusted {
    fn new(previous: &Map, suspects: &[PortRef]) -> Self {
        let mut suspects: BTreeSet<PortRef> = suspects.iter().copied().collect();
        let mut cables = BTreeMap::new();
        for cable in &previous.cables {
            if suspects.contains(&cable.a) || suspects.contains(&cable.b) {
                suspects.extend([cable.a, cable.b]);
            } else {
                cables.insert(cable.a, cable.b);
                cables.insert(cable.b, cable.a);
            }
        }
        let hosts = previous.hosts.iter().filter_map(|&host| Some((host.at?, host)));
        let hosts = hosts.filter(|(at, _)| !suspects.contains(at)).collect();
        Self { cables, hosts, suspects }
    }

    /// The entries of `ends` whose port is one of `xbar`.
    fn of<T>(ends: &BTreeMap<PortRef, T>, xbar: u32) -> impl Iterator<Item = (PortRef, &T)> {
        let ports = PortRef { xbar, port: 0 }..=PortRef { xbar, port: u8::MAX };
        ends.range(ports).map(|(&at, end)| (at, end))
    }
}

impl Explorer {
    /// Takes over what `previous` says, but for the cables of `suspects` and what can be reached
    /// only by them, and lists the suspect ports to be probed.
    pub(super) fn recall(
        &mut self,
        previous: &Map,
        sessions: &BTreeMap<Mac, u32>,
        suspects: &[PortRef],
    ) -> Result<(), ExploreError> {
        const STALE: ExploreError = ExploreError::Contradiction("the earlier map does not hold");
        let trusted = Trusted::new(previous, suspects);
        let own = self.known.hosts()[0].host.mac;
        let entry = trusted.hosts.iter().find(|(_, host)| host.mac == own).map(|(&at, _)| at).ok_or(STALE)?;

        // The node of each xbar reached, and the port by which the way there enters.
        let mut reached: BTreeMap<u32, (u32, PortRef)> = BTreeMap::new();
        let mut walk = VecDeque::from([(None, entry)]);
        while let Some((parent, entry)) = walk.pop_front() {
            if let Some(&(node, known_entry)) = reached.get(&entry.xbar) {
                let at = At { node, delta: i16::from(entry.port) - i16::from(known_entry.port) };
                if let Some(parent) = parent {
                    self.known.learn(at, Far::Xbar(parent))?;
                }
                continue;
            }
            let node = self.recall_xbar(previous, parent, entry).ok_or(STALE)??;
            reached.insert(entry.xbar, (node, entry));
            let here = |at: PortRef| At { node, delta: i16::from(at.port) - i16::from(entry.port) };
            for (at, &host) in Trusted::of(&trusted.hosts, entry.xbar) {
                let session = sessions.get(&host.mac).copied().unwrap_or_default();
                let met = Met { session, ..host.into() };
                let index = if host.mac == own { 0 } else { self.known.meet(met)? };
                self.known.learn(here(at), Far::Host(index))?;
            }
            for (at, &far) in Trusted::of(&trusted.cables, entry.xbar) {
                walk.push_back((Some(here(at)), far));
            }
        }
        self.first_found = self.known.roots().last().map_or(0, |node| node + 1);
        let plain_ports = i16::from(self.settings.plain_ports);
        for suspect in trusted.suspects {
            if let Some(&(node, entry)) = reached.get(&suspect.xbar) {
                let delta = i16::from(suspect.port) - i16::from(entry.port);
                let xbar = self.known.xbar_mut(node);
                if xbar.is_feasible(delta, plain_ports) {
                    xbar.port_mut(delta);
                } else {
                    // The suspect is some empty port of a plain xbar whose numbers are not known, so all
                    // empty ports are.
                    xbar.listed_only = false;
                }
            }
        }
        Ok(())
    }

    /// Whether a plain xbar without a host was found anew. It may be a known one seen from another
    /// side: the ports that would tell are trusted, and so were not probed.
    pub(super) fn found_doubtful_xbar(&self) -> bool {
        let doubtful = |xbar: &XbarState| xbar.tag.is_none() && !xbar.hosted && !xbar.listed_only;
        self.known.roots().any(|node| node >= self.first_found && doubtful(self.known.xbar(node)))
    }

    /// Takes over an xbar of an earlier map, entered by the port `entry`, and returns its node. `None` if the
    /// map has no such xbar.
    fn recall_xbar(
        &mut self,
        previous: &Map,
        parent: Option<At>,
        entry: PortRef,
    ) -> Option<Result<u32, ExploreError>> {
        let xbar = previous.xbars.get(entry.xbar as usize)?;
        let tries = self.settings.probe_tries;
        let recall = |explorer: &mut Self| {
            let node = explorer.known.add_node(parent)?;
            let state = explorer.known.xbar_mut(node);
            state.stage = Stage::Resolved;
            state.listed_only = true;
            state.identify_sent = tries;
            if let Some(tag) = xbar.tag {
                let tag = Tag { tag, ports: xbar.ports, base: i16::from(entry.port) };
                explorer.known.recall_tag(node, tag)?;
                explorer.tags_seen = true;
            }
            Ok(node)
        };
        Some(recall(self))
    }
}
