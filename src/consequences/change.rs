//! Cables that are cut, nodes that are removed, and cables that are added, and the fabric after that.

mod numbering;

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::names::{Named, Names};
use mapper_proto::map::{Cable, Fabric, PortRef};
use thiserror::Error;

/// What is done to a fabric. Nodes and cables are counted as in its map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Change {
    /// Cables between xbars that are cut.
    pub(crate) cables: BTreeSet<u32>,
    /// Hosts whose cable is cut.
    pub(crate) host_cables: BTreeSet<u32>,
    /// Xbars that are removed.
    pub(crate) xbars: BTreeSet<u32>,
    /// Hosts that are removed.
    pub(crate) hosts: BTreeSet<u32>,
    /// Cables that are added once all that is done.
    pub(crate) added: Vec<Added>,
}

/// A cable that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// Between two ports of xbars.
    Xbars(Cable),
    /// From a host to a port of an xbar.
    Host(u32, PortRef),
}

/// A fabric after a change.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    /// The fabric. It has the same hosts; those that are removed have no cable. Xbars that are removed are not in it.
    pub(crate) fabric: Fabric,
    /// The number in it of each xbar of the fabric before; `None` if it is removed.
    pub(crate) xbars: Vec<Option<u32>>,
    /// Which cable each of its cables is: those of the fabric before by their numbers, then those that are added.
    pub(crate) cables: Vec<u32>,
}

/// A change that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ChangeError {
    /// Nothing in the fabric has this name.
    #[error(
        "{option} {asked}: nothing in the fabric is called `{name}`; `mapper topology show` tells all names"
    )]
    NoSuchNode { option: &'static str, asked: String, name: String },
    /// What should be a port is none.
    #[error(
        "{option} {asked}: `{end}` is no port of an xbar; name one as NODE:PORT, with a port from 0 to 254"
    )]
    NoPort { option: &'static str, asked: String, end: String },
    /// The option names no two ends.
    #[error("{option} {asked}: name both ends of the cable, as in A:1,B:2 or h1,B:2")]
    NoTwoEnds { option: &'static str, asked: String },
    /// No cable is there to be cut.
    #[error("{option} {asked}: no cable is in {end}")]
    NoCable { option: &'static str, asked: String, end: String },
    /// A cable is there already.
    #[error("{option} {asked}: a cable is in {end} already; cut it first with --cut")]
    Taken { option: &'static str, asked: String, end: String },
    /// The node is removed by the same change.
    #[error("{option} {asked}: {end} is removed")]
    Removed { option: &'static str, asked: String, end: String },
    /// The xbar has no such port.
    #[error("{option} {asked}: {end} is not there; the xbar has {ports} ports")]
    TooFewPorts { option: &'static str, asked: String, end: String, ports: u8 },
    /// The xbar's ports count from another number.
    #[error("{option} {asked}: {end} is not there; the ports of the xbar count from {first} to {last}")]
    OtherNumbers { option: &'static str, asked: String, end: String, first: u8, last: u8 },
    /// The host is another port of its machine.
    #[error(
        "{option} {asked}: {end} is port {port} of its machine; any other port that has a cable has a name of its own, \
         which `mapper topology show` tells"
    )]
    OtherInterface { option: &'static str, asked: String, end: String, port: u8 },
    /// A cable has both ends in one port.
    #[error("{option} {asked}: both ends are {end}; name two ports")]
    SamePort { option: &'static str, asked: String, end: String },
    /// Two hosts cannot be joined without an xbar.
    #[error("{option} {asked}: at least one end must be a port of an xbar")]
    TwoHosts { option: &'static str, asked: String },
}

/// An end of a cable as a user names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedEnd {
    Host(u32),
    Port(PortRef),
}

impl Change {
    /// The change that options ask for. Nodes are named by their ids or by what people call them.
    ///
    /// # Errors
    /// If something is named that is not there, or a cable cannot be where it is wanted.
    pub(crate) fn of_options(
        fabric: &Fabric,
        cut: &[String],
        remove: &[String],
        add: &[String],
    ) -> Result<Self, ChangeError> {
        let names = Names::of(fabric);
        let asked = Asked { fabric, nodes: names.nodes(), names: &names };
        let mut change = Self::default();
        cut.iter().try_for_each(|end| asked.cut(end, &mut change))?;
        remove.iter().try_for_each(|node| asked.remove(node, &mut change))?;
        add.iter().try_for_each(|ends| asked.add(ends, &mut change))?;
        Ok(change)
    }

    /// Whether nothing is changed.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The fabric after the change.
    pub(crate) fn apply(&self, fabric: &Fabric) -> Changed {
        let mut next = 0;
        let number = |xbar: u32| {
            let stays = !self.xbars.contains(&xbar);
            next += u32::from(stays);
            stays.then(|| next - 1)
        };
        let xbars: Vec<Option<u32>> = (0..fabric.map.xbars.len() as u32).map(number).collect();
        let moved = |at: PortRef| {
            let xbar = xbars.get(at.xbar as usize).copied().flatten()?;
            Some(PortRef { xbar, port: at.port })
        };
        let mut cables: Vec<(Cable, u32)> = (0..)
            .zip(&fabric.map.cables)
            .filter(|(number, _)| !self.cables.contains(number))
            .filter_map(|(number, cable)| Some((Cable::new(moved(cable.a)?, moved(cable.b)?), number)))
            .collect();
        let mut after = fabric.clone();
        for (index, host) in (0..).zip(&mut after.map.hosts) {
            let loses = self.host_cables.contains(&index) || self.hosts.contains(&index);
            let at = host.at.filter(|_| !loses).and_then(moved);
            // Two hosts that lost their xbar are not cabled to each other.
            if let (true, Some(label)) = (at != host.at && at.is_none(), after.hosts.get_mut(index as usize))
            {
                label.uncabled = true;
            }
            host.at = at;
        }
        let mut number = fabric.map.cables.len() as u32;
        for added in &self.added {
            match *added {
                Added::Xbars(cable) => {
                    if let (Some(a), Some(b)) = (moved(cable.a), moved(cable.b)) {
                        cables.push((Cable::new(a, b), number));
                    }
                    number += 1;
                }
                Added::Host(host, at) => {
                    if let Some(host) = after.map.hosts.get_mut(host as usize) {
                        host.at = moved(at);
                    }
                    if let Some(label) = after.hosts.get_mut(host as usize) {
                        label.uncabled = false;
                    }
                }
            }
        }
        cables.sort_unstable();
        after.map.cables = cables.iter().map(|&(cable, _)| cable).collect();
        let stays = |xbar: usize| xbars.get(xbar).is_none_or(Option::is_some);
        after.map.xbars = kept(&fabric.map.xbars, stays);
        after.xbars = kept(&fabric.xbars, stays);
        after.link_speeds =
            fabric.link_speeds.iter().filter_map(|(&at, &speed)| Some((moved(at)?, speed))).collect();
        for contested in std::mem::take(&mut after.map.contested) {
            after.map.contested.extend(moved(contested.at).map(|at| {
                let mut contested = contested;
                contested.at = at;
                contested
            }));
        }
        Changed { fabric: after, cables: cables.into_iter().map(|(_, number)| number).collect(), xbars }
    }
}

/// Those of a list whose numbers stay.
fn kept<T: Clone>(all: &[T], stays: impl Fn(usize) -> bool) -> Vec<T> {
    all.iter().enumerate().filter(|&(at, _)| stays(at)).map(|(_, one)| one.clone()).collect()
}

/// A fabric in which a user names nodes and ports.
struct Asked<'a> {
    fabric: &'a Fabric,
    names: &'a Names,
    nodes: BTreeMap<&'a str, Named>,
}

const CUT: &str = "--cut";
const REMOVE: &str = "--remove";
const ADD: &str = "--add";

impl Asked<'_> {
    fn cut(&self, asked: &str, change: &mut Change) -> Result<(), ChangeError> {
        let end = self.end(CUT, asked, asked)?;
        let none = || ChangeError::NoCable { option: CUT, asked: asked.to_owned(), end: self.said(end) };
        let hosts = &self.fabric.map.hosts;
        let host = match end {
            NamedEnd::Host(host) => hosts[host as usize].at.map(|_| host),
            NamedEnd::Port(at) => hosts.iter().position(|host| host.at == Some(at)).map(|host| host as u32),
        };
        if let Some(host) = host {
            change.host_cables.insert(host);
            return Ok(());
        }
        let NamedEnd::Port(at) = end else { return Err(none()) };
        let cables = &self.fabric.map.cables;
        let cable = cables.iter().position(|cable| cable.a == at || cable.b == at).ok_or_else(none)?;
        change.cables.insert(cable as u32);
        Ok(())
    }

    fn remove(&self, asked: &str, change: &mut Change) -> Result<(), ChangeError> {
        match self.nodes.get(asked) {
            Some(&Named::Host(host)) => change.hosts.insert(host),
            Some(&Named::Xbar(xbar)) => change.xbars.insert(xbar),
            None => return Err(no_such_node(REMOVE, asked, asked)),
        };
        Ok(())
    }

    fn add(&self, asked: &str, change: &mut Change) -> Result<(), ChangeError> {
        let split = |(at, _): (usize, &str)| (&asked[..at], &asked[at + 1..]);
        let mut pairs = asked.match_indices(',').map(split).peekable();
        if pairs.peek().is_none() {
            return Err(ChangeError::NoTwoEnds { option: ADD, asked: asked.to_owned() });
        }
        // Names may have commas in them, so every comma may be the one between the ends.
        let mut first_wrong = None;
        for (one, other) in pairs {
            match self.end(ADD, asked, one).and_then(|one| Ok((one, self.end(ADD, asked, other)?))) {
                Ok((one, other)) => return self.join(asked, one, other, change),
                Err(wrong) => first_wrong = first_wrong.or(Some(wrong)),
            }
        }
        Err(first_wrong.unwrap_or_else(|| ChangeError::NoTwoEnds { option: ADD, asked: asked.to_owned() }))
    }

    fn join(
        &self,
        asked: &str,
        one: NamedEnd,
        other: NamedEnd,
        change: &mut Change,
    ) -> Result<(), ChangeError> {
        let added = match (one, other) {
            (NamedEnd::Port(one), NamedEnd::Port(other)) if one == other => {
                let (asked, end) = (asked.to_owned(), self.names.port(one));
                return Err(ChangeError::SamePort { option: ADD, asked, end });
            }
            (NamedEnd::Port(one), NamedEnd::Port(other)) => Added::Xbars(Cable::new(one, other)),
            (NamedEnd::Host(host), NamedEnd::Port(at)) | (NamedEnd::Port(at), NamedEnd::Host(host)) => {
                Added::Host(host, at)
            }
            (NamedEnd::Host(_), NamedEnd::Host(_)) => {
                return Err(ChangeError::TwoHosts { option: ADD, asked: asked.to_owned() });
            }
        };
        for at in numbering::ends(&added) {
            let beside = numbering::ends(&added).filter(|&end| end != at);
            self.check_port(asked, at, change.added.iter().flat_map(numbering::ends).chain(beside))?;
        }
        self.check_free(asked, one, change)?;
        self.check_free(asked, other, change)?;
        change.added.push(added);
        Ok(())
    }

    /// Refuses a port that an xbar does not have, or not if its ports count from where cables show. `beside` are the ports of
    /// other cables that are added.
    fn check_port(
        &self,
        asked: &str,
        at: PortRef,
        beside: impl Iterator<Item = PortRef>,
    ) -> Result<(), ChangeError> {
        let (option, asked, end) = (ADD, asked.to_owned(), self.names.port(at));
        let ports = self.fabric.map.xbars[at.xbar as usize].ports;
        if at.port > ports {
            return Err(ChangeError::TooFewPorts { option, asked, end, ports });
        }
        match numbering::first_port(self.fabric, beside, at.xbar) {
            Some(1) if at.port == 0 => {
                Err(ChangeError::OtherNumbers { option, asked, end, first: 1, last: ports })
            }
            Some(0) if at.port == ports => {
                Err(ChangeError::OtherNumbers { option, asked, end, first: 0, last: ports.saturating_sub(1) })
            }
            _ => Ok(()),
        }
    }

    /// Refuses an end at which a cable is left after all cuts and removals, before a new one is added there.
    fn check_free(&self, asked: &str, end: NamedEnd, change: &Change) -> Result<(), ChangeError> {
        let (option, asked, said) = (ADD, asked.to_owned(), self.said(end));
        let map = &self.fabric.map;
        let host_has_cable = |host: u32| {
            let gone = change.host_cables.contains(&host) || change.hosts.contains(&host);
            let at = map.hosts[host as usize].at;
            !gone && at.is_some_and(|at| !change.xbars.contains(&at.xbar))
        };
        let (is_removed, is_taken) = match end {
            NamedEnd::Host(host) => {
                let is_added =
                    change.added.iter().any(|it| matches!(it, Added::Host(known, _) if *known == host));
                (change.hosts.contains(&host), is_added || host_has_cable(host))
            }
            NamedEnd::Port(at) => {
                let by_host =
                    (0..).zip(&map.hosts).any(|(host, it)| it.at == Some(at) && host_has_cable(host));
                let stays = |number: u32, cable: &Cable| {
                    !change.cables.contains(&number)
                        && [cable.a, cable.b].iter().all(|end| !change.xbars.contains(&end.xbar))
                };
                let by_cable = (0..)
                    .zip(&map.cables)
                    .any(|(number, cable)| (cable.a == at || cable.b == at) && stays(number, cable));
                let by_added = change.added.iter().flat_map(numbering::ends).any(|known| known == at);
                (change.xbars.contains(&at.xbar), by_host || by_cable || by_added)
            }
        };
        match (is_removed, is_taken) {
            (true, _) => Err(ChangeError::Removed { option, asked, end: said }),
            (false, true) => Err(ChangeError::Taken { option, asked, end: said }),
            (false, false) => Ok(()),
        }
    }

    /// The end that `text` names: a host by its name, or a port of an xbar as NODE:PORT. A host may have its port named too.
    fn end(&self, option: &'static str, asked: &str, text: &str) -> Result<NamedEnd, ChangeError> {
        let no_port = || ChangeError::NoPort { option, asked: asked.to_owned(), end: text.to_owned() };
        match self.nodes.get(text) {
            Some(&Named::Host(host)) => return Ok(NamedEnd::Host(host)),
            Some(Named::Xbar(_)) => return Err(no_port()),
            None => {}
        }
        let Some((name, port)) = text.rsplit_once(':') else { return Err(no_such_node(option, asked, text)) };
        let port = port.parse::<u8>().ok().filter(|&port| port < u8::MAX);
        match (self.nodes.get(name), port) {
            (None, _) => Err(no_such_node(option, asked, name)),
            (_, None) => Err(no_port()),
            (Some(&Named::Host(host)), Some(port)) => {
                // Hosts of agents' maps have no number of a port.
                let own = self.fabric.hosts.get(host as usize).map_or(1, |label| label.node_port.max(1));
                let (asked, end) = (asked.to_owned(), name.to_owned());
                let other = ChangeError::OtherInterface { option, asked, end, port: own };
                if port == own { Ok(NamedEnd::Host(host)) } else { Err(other) }
            }
            (Some(&Named::Xbar(xbar)), Some(port)) => Ok(NamedEnd::Port(PortRef { xbar, port })),
        }
    }

    fn said(&self, end: NamedEnd) -> String {
        match end {
            NamedEnd::Host(host) => self.names.host(host),
            NamedEnd::Port(at) => self.names.port(at),
        }
    }
}

fn no_such_node(option: &'static str, asked: &str, name: &str) -> ChangeError {
    ChangeError::NoSuchNode { option, asked: asked.to_owned(), name: name.to_owned() }
}

#[cfg(test)]
mod tests;
