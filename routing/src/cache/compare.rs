//! Compares a fabric with the one that was routed, to find out whether the cache's rules let its tables stay.

use std::collections::{BTreeMap, BTreeSet};

use mapper_proto::map::Fabric;
use thiserror::Error;

use super::held::{Cable, Held, Identity, cables, lid_of_host, lid_of_xbar};
use super::place;
use crate::Subnet;
use crate::tables::SlotEnd;
use mapper_fabric::names::Named;

/// Why cached tables cannot stay.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WhyNot {
    /// Other engines or settings are asked for, or tables are to be read from a file.
    #[error("other engines or settings are asked for than the tables were computed by")]
    OtherSettings,
    /// Hosts have more or fewer addresses.
    #[error("the LMC changed from {was} to {is}")]
    OtherMask {
        /// The LID mask control of the held fabric.
        was: u8,
        /// The LID mask control of the fabric as it is.
        is: u8,
    },
    /// A node was not there before, or has taken the place of another one.
    #[error("{name} is new")]
    NewNode {
        /// The node.
        name: String,
    },
    /// An xbar with more or fewer ports.
    #[error("{name} had {was} ports and has {is}")]
    OtherPorts {
        /// The xbar.
        name: String,
        /// How many ports it had when it was held.
        was: u8,
        /// How many ports it has now.
        is: u8,
    },
    /// A cable where none was.
    #[error("the cable in {port} is new")]
    NewCable {
        /// The port at one end of the cable.
        port: String,
    },
    /// A cable from a port that had another one, or of a host that was elsewhere.
    #[error("the cable in {port} was moved")]
    MovedCable {
        /// The port at one end of the cable.
        port: String,
    },
    /// An address changed.
    #[error("{name} had {} and has {}", lid(.was), lid(.is))]
    ChangedLid {
        /// The node.
        name: String,
        /// The LID that it had, if its file said one.
        was: Option<u16>,
        /// The LID that it has now, if its file says one.
        is: Option<u16>,
    },
    /// An xbar without hosts is gone.
    #[error("{name} is gone, which is no leaf")]
    LostXbar {
        /// The xbar.
        name: String,
    },
    /// A cable between two xbars with hosts is gone.
    #[error("the cable in {port} is gone, which joined leaves")]
    LostLeafCable {
        /// The port at one end of the cable.
        port: String,
    },
    /// A cable is gone, and the xbars at its ends are not.
    #[error("the cable in {port} is gone, though both its xbars are there")]
    LostCable {
        /// The port at one end of the cable.
        port: String,
    },
}

fn lid(lid: &Option<u16>) -> String {
    lid.map_or_else(|| "no LID".to_owned(), |lid| format!("LID {lid}"))
}

/// Which held node each node is, if the rules let the tables stay.
#[derive(Debug, Clone)]
pub(super) struct Correspondence {
    /// The held xbar of each xbar of the fabric as it is.
    pub(super) xbars: Vec<u32>,
    /// The held host of each host of the fabric as it is.
    pub(super) hosts: Vec<u32>,
    xbar_is_there: Vec<bool>,
    host_is_there: Vec<bool>,
}

impl Correspondence {
    pub(super) fn of(held: &Held, fabric: &Fabric, subnet: &Subnet) -> Result<Self, WhyNot> {
        let (was, is) = (held.lmc, subnet.destinations.lmc());
        if was != is {
            return Err(WhyNot::OtherMask { was, is });
        }
        let rules = Rules { held, fabric, subnet };
        let mut same = rules.nodes()?;
        rules.check_xbars(&same)?;
        rules.check_hosts(&same)?;
        rules.check_cables(&same)?;
        // A host whose cable is out counts as gone.
        for (host, &held) in (0..).zip(&same.hosts) {
            same.host_is_there[held as usize] = place(subnet, host).is_some();
        }
        Ok(same)
    }

    /// Whether an xbar of those held is there.
    pub(super) fn has_xbar(&self, held: u32) -> bool {
        self.xbar_is_there.get(held as usize).copied().unwrap_or_default()
    }

    /// Whether a host of those held is there.
    pub(super) fn has_host(&self, held: u32) -> bool {
        self.host_is_there.get(held as usize).copied().unwrap_or_default()
    }

    /// The held slot of each slot.
    pub(super) fn slots(&self, held: &Held, subnet: &Subnet) -> Vec<u32> {
        let slot = |slot: u32| match subnet.destinations.end(slot) {
            SlotEnd::Xbar(xbar) => held.xbars[self.xbars[xbar as usize] as usize].slot,
            SlotEnd::Host { host, path } => {
                let at = held.hosts[self.hosts[host as usize] as usize].at;
                // A host with a slot is cabled now, and so it was: the rules say so.
                at.map_or(0, |at| at.slot + u32::from(path))
            }
        };
        (0..subnet.destinations.slot_count() as u32).map(slot).collect()
    }
}

struct Rules<'a> {
    held: &'a Held,
    fabric: &'a Fabric,
    subnet: &'a Subnet,
}

impl Rules<'_> {
    /// Finds each node among those held.
    fn nodes(&self) -> Result<Correspondence, WhyNot> {
        let topology = &self.subnet.topology;
        let names = &self.subnet.names;
        let find = |known: &BTreeMap<&str, (u32, &Identity)>, identity: &Identity, node: Named| {
            let found = known.get(identity.name.as_str()).filter(|(_, held)| *held == identity);
            found.map(|&(at, _)| at).ok_or_else(|| WhyNot::NewNode { name: names.node(node) })
        };
        let held_xbars = by_name(self.held.xbars.iter().map(|xbar| &xbar.identity));
        let held_hosts = by_name(self.held.hosts.iter().map(|host| &host.identity));
        let xbars = (0..topology.xbar_count() as u32)
            .map(|xbar| find(&held_xbars, &Identity::of_xbar(self.fabric, xbar), Named::Xbar(xbar)))
            .collect::<Result<Vec<u32>, _>>()?;
        let hosts = (0..topology.host_count() as u32)
            .map(|host| find(&held_hosts, &Identity::of_host(self.fabric, host), Named::Host(host)))
            .collect::<Result<Vec<u32>, _>>()?;
        let mut xbar_is_there = vec![false; self.held.xbars.len()];
        xbars.iter().for_each(|&held| xbar_is_there[held as usize] = true);
        let host_is_there = vec![false; self.held.hosts.len()];
        Ok(Correspondence { xbars, hosts, xbar_is_there, host_is_there })
    }

    /// Checks that xbars have the ports and LIDs that they had, and that only leaves are gone.
    fn check_xbars(&self, same: &Correspondence) -> Result<(), WhyNot> {
        for (xbar, &held) in (0..).zip(&same.xbars) {
            let held = &self.held.xbars[held as usize];
            let name = || self.subnet.names.xbar(xbar);
            let ports = self.subnet.xbar_ports[xbar as usize];
            if ports != held.ports {
                return Err(WhyNot::OtherPorts { name: name(), was: held.ports, is: ports });
            }
            let (was, is) = (held.lid, lid_of_xbar(self.fabric, xbar));
            if was != is {
                return Err(WhyNot::ChangedLid { name: name(), was, is });
            }
        }
        let leaves = self.held.leaves();
        let gone = (0..self.held.xbars.len()).find(|&xbar| !same.xbar_is_there[xbar] && !leaves[xbar]);
        gone.map_or(Ok(()), |xbar| Err(WhyNot::LostXbar { name: self.held.xbars[xbar].name().to_owned() }))
    }

    /// Checks that each host is where it was, with the LIDs that it had, or is gone.
    fn check_hosts(&self, same: &Correspondence) -> Result<(), WhyNot> {
        for (host, &held) in (0..).zip(&same.hosts) {
            let Some((xbar, port)) = place(self.subnet, host) else { continue };
            let at = |xbar: u32| self.port_name(same.xbars[xbar as usize], port);
            let held = &self.held.hosts[held as usize];
            let Some(place) = held.at else { return Err(WhyNot::NewCable { port: at(xbar) }) };
            if (place.xbar, place.port) != (same.xbars[xbar as usize], port) {
                return Err(WhyNot::MovedCable { port: at(xbar) });
            }
            let (was, is) = (held.lid, lid_of_host(self.fabric, host));
            if was != is {
                return Err(WhyNot::ChangedLid { name: self.subnet.names.host(host), was, is });
            }
        }
        Ok(())
    }

    /// Checks that no cable is new, and that each cable that is gone went with a leaf on which no other xbar
    /// depended.
    fn check_cables(&self, same: &Correspondence) -> Result<(), WhyNot> {
        let now: BTreeSet<Cable> = cables(self.subnet)
            .into_iter()
            .map(|(a, port_a, b, port_b)| {
                let a = (same.xbars[a as usize], port_a);
                let b = (same.xbars[b as usize], port_b);
                let (a, b) = (a.min(b), a.max(b));
                (a.0, a.1, b.0, b.1)
            })
            .collect();
        let held: BTreeSet<Cable> = self.held.cables.iter().copied().collect();
        if let Some(&(a, port_a, b, port_b)) = now.difference(&held).next() {
            let port = self.port_name(a, port_a);
            let moved = self.was_cabled((a, port_a)) || self.was_cabled((b, port_b));
            return Err(if moved { WhyNot::MovedCable { port } } else { WhyNot::NewCable { port } });
        }
        let leaves = self.held.leaves();
        for &(a, port_a, b, _) in held.difference(&now) {
            let port = self.port_name(a, port_a);
            if leaves[a as usize] && leaves[b as usize] {
                return Err(WhyNot::LostLeafCable { port });
            }
            if same.has_xbar(a) && same.has_xbar(b) {
                return Err(WhyNot::LostCable { port });
            }
        }
        Ok(())
    }

    /// Whether a port of a held xbar had a cable.
    fn was_cabled(&self, end: (u32, u8)) -> bool {
        let cables = self.held.cables.iter();
        let hosts = self.held.hosts.iter().filter_map(|host| host.at);
        cables.flat_map(|&(a, port_a, b, port_b)| [(a, port_a), (b, port_b)]).any(|held| held == end)
            || hosts.map(|at| (at.xbar, at.port)).any(|held| held == end)
    }

    /// A port of a held xbar, as a person finds it.
    fn port_name(&self, xbar: u32, port: u8) -> String {
        format!("{} port {port}", self.held.xbars[xbar as usize].name())
    }
}

/// All nodes, by their names.
fn by_name<'a>(identities: impl Iterator<Item = &'a Identity>) -> BTreeMap<&'a str, (u32, &'a Identity)> {
    (0..).zip(identities).map(|(at, identity)| (identity.name.as_str(), (at, identity))).collect()
}
