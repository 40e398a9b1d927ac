//! Whether two maps are of one fabric.
//!
//! Hosts are the anchors: a host's cable tells which xbar of one map is which of the other, and
//! the cables of an xbar tell its neighbours. So a part with a host (or a tag) needs no search,
//! and time is linear. A part with neither is tried against each part that is left.

use thiserror::Error;

use super::{FarEnd, Host, HostIndex, Map, PortRef, PortsInUse, Xbar, host_type};
use crate::Mac;

/// Where a found map is not isomorphic to the real one. "Found" and "real" are the first and the
/// second map given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Mismatch {
    /// A host that only the real map has.
    #[error("host {0} is missing from the found map")]
    HostMissing(Mac),
    /// A host that only the found map has.
    #[error("host {0} is in the found map and does not exist")]
    HostUnknown(Mac),
    /// A host that stands twice in a map.
    #[error("host {0} stands twice in a map")]
    HostTwice(Mac),
    /// A host's levels differ.
    #[error("host {mac} has level {real}, and {found} in the found map")]
    Level {
        /// Which host.
        mac: Mac,
        /// Its level in the found map.
        found: u8,
        /// Its level in the real map.
        real: u8,
    },
    /// A host's types differ.
    #[error("host {mac} has type {real}, and {found} in the found map")]
    HostType {
        /// Which host.
        mac: Mac,
        /// Its type in the found map.
        found: u8,
        /// Its type in the real map.
        real: u8,
    },
    /// A host that is at an xbar in one map only.
    #[error("host {0} is at a crossbar in one map and not in the other")]
    Place(Mac),
    /// A cable that leads to an xbar that its map does not have.
    #[error("a cable or host is at crossbar {0}, which its map does not have")]
    NoSuchXbar(u32),
    /// Two xbars of the found map are one.
    #[error("crossbars {found} and {other} of the found map are both crossbar {real}")]
    FoundTwice {
        /// One of the two xbars of the found map.
        found: u32,
        /// The other of the two xbars of the found map.
        other: u32,
        /// The xbar of the real map that both are.
        real: u32,
    },
    /// One xbar of the found map is two.
    #[error("crossbar {found} of the found map is both crossbar {real} and crossbar {other}")]
    Merged {
        /// The xbar of the found map.
        found: u32,
        /// One of the two xbars of the real map.
        real: u32,
        /// The other of the two xbars of the real map.
        other: u32,
    },
    /// The ports of an xbar are off by different numbers.
    #[error("ports of crossbar {found} of the found map are off by {offset} and by {other}")]
    Offsets {
        /// Which xbar of the found map.
        found: u32,
        /// By how much some ports are off.
        offset: i16,
        /// By how much others are off.
        other: i16,
    },
    /// The port numbers of an xbar are said to be right and are not.
    #[error("ports of crossbar {found} of the found map are off by {offset} and said to be known")]
    NotKnown {
        /// Which xbar of the found map.
        found: u32,
        /// By how much they are off.
        offset: i16,
    },
    /// Two xbars that must be one have different tags.
    #[error("crossbar {found} of the found map is crossbar {real}, but their tags differ")]
    Tag {
        /// In the found map.
        found: u32,
        /// In the real map.
        real: u32,
    },
    /// Two xbars that must be one have different numbers of ports.
    #[error("crossbar {found} of the found map has {found_ports} ports, but is one of {real_ports}")]
    PortCount {
        /// In the found map.
        found: u32,
        /// Its ports there; the most that it can have, if they are not known.
        found_ports: u8,
        /// Its ports in the real map.
        real_ports: u8,
    },
    /// A port leads elsewhere.
    #[error(
        "port {} of crossbar {} of the found map leads to {found_end}; it is port {} of crossbar {}, \
         which leads to {real_end}",
        .found.port, .found.xbar, .real.port, .real.xbar
    )]
    Port {
        /// The port in the found map.
        found: PortRef,
        /// What is there.
        found_end: FarEnd,
        /// The port in the real map.
        real: PortRef,
        /// What is there.
        real_end: FarEnd,
    },
    /// An xbar of the real map that nothing in the found map can be.
    #[error("crossbar {0} is missing from the found map")]
    XbarMissing(u32),
    /// An xbar of the found map that is nothing in the real map.
    #[error("crossbar {0} of the found map does not exist")]
    XbarUnknown(u32),
}

/// Whether `found` is a map of the fabric that `real` describes.
///
/// Hosts are matched by address, and their level and type must be equal; phantoms are left out.
/// Xbars are matched one to one, so that cables and places of hosts are equal. Tagged xbars must
/// have equal tags, port numbers and port counts. The port numbers of a plain xbar are equal up
/// to one offset; where the found map says that it knows them, its ports in use must span the
/// xbar, or the offset be 0, and the port count be equal. Otherwise the found count is the most
/// that the xbar can have.
///
/// Parts with neither host nor tag are matched with the first that fits. So where several of
/// them are wired alike and differ only in what is known of their port counts, a match may be
/// missed. A map that was explored has no such parts: exploration begins at a host.
///
/// # Errors
/// The first difference found.
pub fn is_isomorphic(found: &Map, real: &Map) -> Result<(), Mismatch> {
    let mut matcher = Matcher::new(found, real)?;
    let anchors = match_hosts(found, real)?;
    for (at_found, at_real) in anchors {
        matcher.same_port(at_found, at_real)?;
    }
    matcher.anchor_tags()?;
    matcher.follow(0)?;
    matcher.match_unanchored()
}

/// Compares hosts by address, and pairs the ports that they are at.
fn match_hosts(found: &Map, real: &Map) -> Result<Vec<(PortRef, PortRef)>, Mismatch> {
    let (in_found, in_real) = (HostIndex::new(found), HostIndex::new(real));
    if let Some(mac) = in_found.duplicates().chain(in_real.duplicates()).next() {
        return Err(Mismatch::HostTwice(mac));
    }
    let exists = |host: &&Host| host.host_type != host_type::PHANTOM;
    let twin = |index: &HostIndex, map: &Map, mac| {
        index.find(mac).map(|at| map.hosts[at as usize]).filter(|host| exists(&host))
    };
    if let Some(host) =
        real.hosts.iter().filter(exists).find(|host| twin(&in_found, found, host.mac).is_none())
    {
        return Err(Mismatch::HostMissing(host.mac));
    }
    let mut anchors = Vec::with_capacity(found.hosts.len());
    for host in found.hosts.iter().filter(exists) {
        let mac = host.mac;
        let twin = twin(&in_real, real, mac).ok_or(Mismatch::HostUnknown(mac))?;
        if host.level != twin.level {
            return Err(Mismatch::Level { mac, found: host.level, real: twin.level });
        }
        if host.host_type != twin.host_type {
            return Err(Mismatch::HostType { mac, found: host.host_type, real: twin.host_type });
        }
        match (host.at, twin.at) {
            (Some(at_found), Some(at_real)) => anchors.push((at_found, at_real)),
            (None, None) => {}
            _ => return Err(Mismatch::Place(mac)),
        }
    }
    Ok(anchors)
}

/// What an xbar of the found map is: an xbar of the real one, and by how much its ports are off
/// (real port less found port).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Matched {
    real: u32,
    offset: i16,
}

struct Matcher<'a> {
    found: &'a Map,
    real: &'a Map,
    found_ports: PortsInUse,
    real_ports: PortsInUse,
    /// By xbar of the found map.
    twins: Vec<Option<Matched>>,
    /// By xbar of the real map.
    taken_by: Vec<Option<u32>>,
    /// The xbars of the found map that have a twin, in the order in which they got it.
    matched: Vec<u32>,
}

impl<'a> Matcher<'a> {
    fn new(found: &'a Map, real: &'a Map) -> Result<Self, Mismatch> {
        for map in [found, real] {
            let places = map.hosts.iter().filter_map(|host| host.at);
            let mut ends = places.chain(map.cables.iter().flat_map(|cable| [cable.a, cable.b]));
            if let Some(end) = ends.find(|end| end.xbar as usize >= map.xbars.len()) {
                return Err(Mismatch::NoSuchXbar(end.xbar));
            }
        }
        Ok(Self {
            found,
            real,
            found_ports: PortsInUse::new(found),
            real_ports: PortsInUse::new(real),
            twins: vec![None; found.xbars.len()],
            taken_by: vec![None; real.xbars.len()],
            matched: Vec::with_capacity(found.xbars.len()),
        })
    }

    /// Takes two ports for one, and so their xbars.
    fn same_port(&mut self, found: PortRef, real: PortRef) -> Result<(), Mismatch> {
        let offset = i16::from(real.port) - i16::from(found.port);
        self.same_xbar(found.xbar, Matched { real: real.xbar, offset })
    }

    fn same_xbar(&mut self, found: u32, twin: Matched) -> Result<(), Mismatch> {
        let Matched { real, offset } = twin;
        if let Some(known) = self.twins[found as usize] {
            return if known.real != real {
                Err(Mismatch::Merged { found, real: known.real, other: real })
            } else if known.offset != offset {
                Err(Mismatch::Offsets { found, offset: known.offset, other: offset })
            } else {
                Ok(())
            };
        }
        if let Some(other) = self.taken_by[real as usize] {
            return Err(Mismatch::FoundTwice { found: other, other: found, real });
        }
        self.check_xbar(found, twin)?;
        self.twins[found as usize] = Some(twin);
        self.taken_by[real as usize] = Some(found);
        self.matched.push(found);
        Ok(())
    }

    /// What two xbars say of themselves must agree.
    fn check_xbar(&self, found: u32, Matched { real, offset }: Matched) -> Result<(), Mismatch> {
        let (f, r): (&Xbar, &Xbar) = (&self.found.xbars[found as usize], &self.real.xbars[real as usize]);
        if f.tag != r.tag {
            return Err(Mismatch::Tag { found, real });
        }
        let known = f.tag.is_some() || f.ports_known;
        if (known && f.ports != r.ports) || f.ports < r.ports {
            return Err(Mismatch::PortCount { found, found_ports: f.ports, real_ports: r.ports });
        }
        let may_be_off = f.tag.is_none() && (!known || self.is_spanned(found, f.ports));
        if offset != 0 && !may_be_off {
            return Err(Mismatch::NotKnown { found, offset });
        }
        Ok(())
    }

    /// Whether the ports in use of an xbar of the found map reach from its first to its last.
    fn is_spanned(&self, found: u32, ports: u8) -> bool {
        let row = self.found_ports.of_xbar(found);
        match (row.first(), row.last()) {
            (Some(first), Some(last)) => u16::from(last.0 - first.0) + 1 == u16::from(ports),
            _ => false,
        }
    }

    /// Takes xbars with one tag for one, as far as tags are unique.
    fn anchor_tags(&mut self) -> Result<(), Mismatch> {
        let (found, real) = (unique_tags(self.found), unique_tags(self.real));
        for (tag, index) in found {
            if let Ok(at) = real.binary_search_by_key(&tag, |&(tag, _)| tag) {
                self.same_xbar(index, Matched { real: real[at].1, offset: 0 })?;
            }
        }
        Ok(())
    }

    /// Compares all ports of the xbars matched from the `next`-th on, and of those that are
    /// matched thereby.
    fn follow(&mut self, mut next: usize) -> Result<(), Mismatch> {
        while let Some(&found) = self.matched.get(next) {
            next += 1;
            let Some(twin) = self.twins[found as usize] else { continue };
            for (found_far, real_far) in self.compare_ports(found, twin)? {
                self.same_port(found_far, real_far)?;
            }
        }
        Ok(())
    }

    /// Compares what is at the ports of two xbars, and pairs the far ports of their cables.
    fn compare_ports(&self, found: u32, twin: Matched) -> Result<Vec<(PortRef, PortRef)>, Mismatch> {
        let row = self.found_ports.of_xbar(found);
        let real_row = self.real_ports.of_xbar(twin.real);
        let mut pairs = Vec::with_capacity(row.len());
        for nth in 0..row.len().max(real_row.len()) {
            let (f, r) = (row.get(nth), real_row.get(nth));
            // The lower of the two ports, where they differ: it is empty in the other map.
            let port_f = f.map(|f| i16::from(f.0));
            let port_r = r.map(|r| i16::from(r.0) - twin.offset);
            let port = port_f.into_iter().chain(port_r).min().unwrap_or_default();
            let found_end =
                f.filter(|_| port_f == Some(port)).map_or(FarEnd::Nothing, |f| f.1.end(self.found));
            let real_end = r.filter(|_| port_r == Some(port)).map_or(FarEnd::Nothing, |r| r.1.end(self.real));
            match (found_end, real_end) {
                (FarEnd::Host(one), FarEnd::Host(other)) if one == other => {}
                (FarEnd::Port(one), FarEnd::Port(other)) => pairs.push((one, other)),
                _ => {
                    let found = PortRef { xbar: found, port: port.clamp(0, 255) as u8 };
                    let real = PortRef { xbar: twin.real, port: (port + twin.offset).clamp(0, 255) as u8 };
                    return Err(Mismatch::Port { found, found_end, real, real_end });
                }
            }
        }
        Ok(pairs)
    }

    /// Matches the parts with neither host nor tag, each with the first that fits. Those that fit
    /// least go first: port counts that are known, then low bounds.
    fn match_unanchored(&mut self) -> Result<(), Mismatch> {
        let mut order: Vec<u32> = (0..self.twins.len() as u32).collect();
        order.sort_by_key(|&found| {
            let xbar = &self.found.xbars[found as usize];
            (!xbar.ports_known, xbar.ports)
        });
        for found in order {
            if self.twins[found as usize].is_none() && !self.match_somewhere(found) {
                return Err(Mismatch::XbarUnknown(found));
            }
        }
        match self.taken_by.iter().position(Option::is_none) {
            Some(real) => Err(Mismatch::XbarMissing(real as u32)),
            None => Ok(()),
        }
    }

    fn match_somewhere(&mut self, found: u32) -> bool {
        let first = |ports: &PortsInUse, xbar| ports.of_xbar(xbar).first().map(|&(port, _)| port);
        for real in 0..self.taken_by.len() as u32 {
            let firsts = (first(&self.found_ports, found), first(&self.real_ports, real));
            let offset = match firsts {
                (Some(f), Some(r)) => i16::from(r) - i16::from(f),
                (None, None) => 0,
                _ => continue,
            };
            let before = self.matched.len();
            let fits = self.same_xbar(found, Matched { real, offset }).and_then(|()| self.follow(before));
            if fits.is_ok() {
                return true;
            }
            self.undo(before);
        }
        false
    }

    /// Takes back all matches but the first `keep`.
    fn undo(&mut self, keep: usize) {
        for found in self.matched.drain(keep..) {
            if let Some(twin) = self.twins[found as usize].take() {
                self.taken_by[twin.real as usize] = None;
            }
        }
    }
}

/// The tags that stand once in a map, in rising order, and their xbars.
fn unique_tags(map: &Map) -> Vec<(u64, u32)> {
    let mut tags: Vec<_> =
        (0..).zip(&map.xbars).filter_map(|(index, xbar)| xbar.tag.map(|tag| (tag, index))).collect();
    tags.sort_unstable();
    let alone = tags.chunk_by(|x, y| x.0 == y.0).filter(|same| same.len() == 1);
    alone.flatten().copied().collect()
}

#[cfg(test)]
mod tests;
