//! Violations in words.

use std::fmt;

use mapper_proto::map::PortRef;

use super::{Cycle, DeadEnd, TableViolation};
use crate::engines::Settings;
use crate::tables::SlotEnd;
use crate::{Far, Subnet};
use mapper_fabric::wording::{counted, plural};

/// What people call things.
trait Names {
    fn xbar(&self, xbar: u32) -> String;
    fn host(&self, host: u32) -> String;
    /// The place where frames for a slot begin.
    fn source(&self, xbar: u32, slot: u32) -> String;
    /// Where a slot leads.
    fn end(&self, slot: u32) -> String;
    /// A slot as a table names it.
    fn address(&self, slot: u32) -> String;
    /// Where a port's cable ends, if that is at an xbar.
    fn far(&self, port: PortRef) -> Option<PortRef>;
    /// Where a slot leads, and how a table names it.
    fn addressed(&self, slot: u32) -> String {
        format!("{} ({})", self.end(slot), self.address(slot))
    }
}

/// Names by number.
struct NumbersForNames;

impl Names for NumbersForNames {
    fn xbar(&self, xbar: u32) -> String {
        format!("xbar {xbar}")
    }

    fn host(&self, host: u32) -> String {
        format!("host {host}")
    }

    fn source(&self, xbar: u32, _slot: u32) -> String {
        format!("xbar {xbar}")
    }

    fn end(&self, slot: u32) -> String {
        format!("slot {slot}")
    }

    fn address(&self, slot: u32) -> String {
        format!("slot {slot}")
    }

    fn addressed(&self, slot: u32) -> String {
        format!("slot {slot}")
    }

    fn far(&self, _port: PortRef) -> Option<PortRef> {
        None
    }
}

/// Names by the labels of a fabric.
struct Labels<'a> {
    subnet: &'a Subnet,
}

impl Names for Labels<'_> {
    fn xbar(&self, xbar: u32) -> String {
        self.subnet.names.xbar(xbar)
    }

    fn host(&self, host: u32) -> String {
        self.subnet.names.host(host)
    }

    fn source(&self, xbar: u32, slot: u32) -> String {
        let to = match self.subnet.destinations.end(slot) {
            SlotEnd::Host { host, .. } => Some(host),
            SlotEnd::Xbar(_) => None,
        };
        let hosts = self.subnet.topology.hosts_of(xbar);
        let from = hosts.iter().copied().find(|&host| Some(host) != to);
        from.map_or_else(|| self.xbar(xbar), |host| self.host(host))
    }

    fn end(&self, slot: u32) -> String {
        match self.subnet.destinations.end(slot) {
            SlotEnd::Host { host, .. } => self.host(host),
            SlotEnd::Xbar(xbar) => self.xbar(xbar),
        }
    }

    fn address(&self, slot: u32) -> String {
        format!("LID {:#06x}", self.subnet.destinations.lid(slot))
    }

    fn far(&self, port: PortRef) -> Option<PortRef> {
        match self.subnet.topology.far(port) {
            Far::Channel(channel) => Some(self.subnet.topology.head(channel)),
            Far::Host(_) | Far::Nothing => None,
        }
    }
}

impl TableViolation {
    /// Says what is wrong, by the names of the subnet's nodes: where to look, and for what.
    pub fn describe(&self, subnet: &Subnet) -> String {
        self.told(&Labels { subnet })
    }

    fn told(&self, names: &dyn Names) -> String {
        match self {
            Self::OtherFabric { xbars, slots } => format!(
                "the tables are another fabric's: {} with {} each, or layers of another size",
                plural(*xbars, "table"),
                plural(*slots, "destination")
            ),
            Self::NoRoute { from, slot, at, why, entries, routes } => {
                let (from, to) = (names.source(*from, *slot), names.end(*slot));
                let (at, address) = (names.xbar(*at), names.address(*slot));
                let why = match *why {
                    DeadEnd::NoEntry => format!("{at} has no entry for {address}"),
                    DeadEnd::NoCable { port } => {
                        format!("{at} sends {address} out of port {port}, where no cable leads on")
                    }
                    DeadEnd::WrongHost { port, host } => {
                        format!("{at} sends {address} out of port {port}, to {}", names.host(host))
                    }
                };
                let wrong = match entries.saturating_sub(1) {
                    0 => String::new(),
                    more => {
                        format!(" (and {} of it)", counted(more, "more wrong entry", "more wrong entries"))
                    }
                };
                let nor = match routes.saturating_sub(1) {
                    0 => String::new(),
                    1 => ", nor does 1 more route arrive".to_owned(),
                    more => format!(", nor do {more} more routes arrive"),
                };
                format!("{why}{wrong}: {from} cannot reach {to}{nor}")
            }
            Self::Loop { from, slot, xbars } => {
                let circle = xbars.iter().chain(xbars.first()).map(|&xbar| names.xbar(xbar));
                format!(
                    "frames from {} for {} go round in a loop: {}",
                    names.source(*from, *slot),
                    names.addressed(*slot),
                    circle.collect::<Vec<_>>().join(", ")
                )
            }
            Self::TooLong { from, slot, hops } => {
                let (from, to) = (names.source(*from, *slot), names.end(*slot));
                format!("the route from {from} to {to} is too long: it passes {}", plural(*hops, "xbar"))
            }
            Self::TooFar { from, slot, hops, max_hops } => {
                let (from, to) = (names.source(*from, *slot), names.end(*slot));
                let passes = plural(*hops, "xbar");
                let allowed = match *max_hops >= Settings::MAX_HOPS {
                    true => "are allowed, the most that --max-hops takes",
                    false => "are allowed (--max-hops)",
                };
                format!(
                    "{from} and {to} are too far apart: even the shortest way between them passes {passes}, and \
                     at most {max_hops} {allowed}"
                )
            }
            Self::NoSuchLayer { from, to, layer } => {
                let (from, to) = (names.xbar(*from), names.xbar(*to));
                format!("frames from {from} to {to} are in layer {layer}; there are layers 0 to 15 only")
            }
            Self::Deadlock { layer, cycle } => {
                format!(
                    "layer {layer} can deadlock: frames wait in a circle to leave {}",
                    ports(cycle, names)
                )
            }
        }
    }
}

/// The ports of a circle, each with the one at the other end of its cable.
fn ports(cycle: &Cycle, names: &dyn Names) -> String {
    let port = |at: PortRef| format!("{} port {}", names.xbar(at.xbar), at.port);
    let cable = |&at: &PortRef| match names.far(at) {
        Some(far) => format!("{} (to {})", port(at), port(far)),
        None => port(at),
    };
    cycle.ports.iter().chain(cycle.ports.first()).map(cable).collect::<Vec<_>>().join(", then ")
}

impl fmt::Display for TableViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&NumbersForNames))
    }
}
