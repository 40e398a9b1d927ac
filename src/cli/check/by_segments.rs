//! Proves the routes of segments (SRv6) by which kernels send, as they were read back from these. Where they are others than a
//! kernel was told, that is a fault whether or not they lead to their host.
//!
//! Segments say by number which port to leave each crossbar by, and the agents' tables are not asked. So each list is walked
//! over the map by its numbers alone, from the host's own crossbar, and must end at the host that it is for. Packets by
//! segments queue at the same ports as the agents' frames, so both together must close no circle.
//!
//! What a crossbar obeys segments by, and what goes by destination, was held against what the kernel was told by its agent. Each
//! object that differs is a fault, too.

#[cfg(test)]
mod tests;

use std::net::Ipv6Addr;

use mapper_fabric::wording::counted;
use mapper_fib::segments::{Element, elements};
use mapper_formats::routes::{DifferenceJson, ListedRoutes, ListedSegments, ObjectDiffersJson};
use mapper_proto::map::PortRef;
use mapper_proto::quote;
use mapper_routing::{Attachment, Far, TablesProof, Topology, UnionProof, Violation, walk};

use super::by_destination::Forwarded;
use crate::cli::judgement::Describer;

/// What kernels of a fabric send by segments.
pub(super) struct Senders<'a> {
    topology: &'a Topology,
    max_hops: u8,
    /// How many routes by segments there are.
    routes: u64,
    /// Their dependencies; `None` without any.
    union: Option<UnionProof<'a>>,
    longest: usize,
    loops: u64,
    broken: u64,
    /// The first of them that are wrong.
    faults: Vec<Fault>,
    /// The first of the objects that kernels hold otherwise than they were told, and their hosts.
    objects: Vec<(u32, ObjectDiffersJson)>,
    /// How many kernels were not held against what they were told, and the first of their hosts with why not.
    not_compared: (u64, Option<(u32, String)>),
}

/// What is wrong with a list of segments.
struct Fault {
    from: u32,
    to: u32,
    port: u8,
    segments: Vec<Ipv6Addr>,
    why: Why,
}

/// Why packets by some segments do not get where they shall.
#[derive(Debug, PartialEq, Eq)]
enum Why {
    /// An address is no segment.
    NoSegments,
    /// They are not one port of the sender's, then ports of crossbars, then a delivery.
    NoRoute,
    /// They begin with this port, and the packets are said to leave by another one.
    OtherPort(u8, u8),
    /// The host that they leave has no cable.
    NoCable,
    /// They come to a host, and there are ports left to leave by.
    BehindHost(u32),
    /// They end at another host, or at a crossbar.
    OtherEnd(At),
    /// They do not follow the cables of the map.
    Astray(Violation),
    /// The kernel was not told them.
    NotTold,
    /// The kernel was told them and does not hold them.
    Lacking,
}

/// Where a packet has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Xbar(u32),
    Host(u32),
}

impl<'a> Senders<'a> {
    pub(super) const fn new(topology: &'a Topology, max_hops: u8) -> Self {
        Self {
            topology,
            max_hops,
            routes: 0,
            union: None,
            longest: 0,
            loops: 0,
            broken: 0,
            faults: Vec::new(),
            objects: Vec::new(),
            not_compared: (0, None),
        }
    }

    /// Adds what the kernel of a host's machine sends by segments, each list proved by itself.
    pub(super) fn add(&mut self, host: &ListedRoutes) {
        for listed in &host.by_segments {
            self.routes += 1;
            match self.follow(host.from, listed) {
                Ok(hops) => {
                    self.longest = self.longest.max(hops.len());
                    let union = self.union.get_or_insert_with(|| UnionProof::new(self.topology));
                    // The route was walked just now, so it can be added.
                    let _walked = union.add_route(host.from, listed.to, &hops);
                }
                Err(why) => self.fault(host.from, listed, why),
            }
        }
        for differ in &host.segments_differ {
            let why = if differ.is_held { Why::NotTold } else { Why::Lacking };
            self.fault(host.from, &differ.segments, why);
        }
        self.broken += host.objects_differ.len() as u64;
        let room = TablesProof::MAX_LISTED.saturating_sub(self.objects.len());
        self.objects.extend(host.objects_differ.iter().take(room).map(|it| (host.from, it.clone())));
        if let Some(why) = &host.segments_not_compared {
            let (count, first) = &mut self.not_compared;
            *count += 1;
            first.get_or_insert_with(|| (host.from, why.clone()));
        }
    }

    fn fault(&mut self, from: u32, listed: &ListedSegments, why: Why) {
        match why {
            Why::Astray(Violation::Loop { .. }) => self.loops += 1,
            _ => self.broken += 1,
        }
        if self.faults.len() < TablesProof::MAX_LISTED {
            let ListedSegments { to, port, ref segments } = *listed;
            self.faults.push(Fault { from, to, port, segments: segments.clone(), why });
        }
    }

    /// The ports that packets by these segments leave by, which lead to the host that they are for.
    fn follow(&self, from: u32, listed: &ListedSegments) -> Result<Vec<PortRef>, Why> {
        let ports = ports(listed)?;
        let mut at = match self.topology.attachment(from) {
            Attachment::Port(port) => At::Xbar(port.xbar),
            Attachment::Host(other) => At::Host(other),
            Attachment::Nothing => return Err(Why::NoCable),
        };
        let mut hops = Vec::with_capacity(ports.len());
        for port in ports {
            let xbar = match at {
                At::Xbar(xbar) => xbar,
                At::Host(host) => return Err(Why::BehindHost(host)),
            };
            let hop = PortRef { xbar, port };
            hops.push(hop);
            at = match self.topology.far(hop) {
                Far::Channel(channel) => At::Xbar(self.topology.head(channel).xbar),
                Far::Host(host) => At::Host(host),
                // Whatever follows, the walk below ends here, too.
                Far::Nothing => break,
            };
        }
        match walk(self.topology, from, listed.to, &hops, self.max_hops.into()) {
            Ok(_) => Ok(hops),
            Err(Violation::WrongEnd { .. }) => Err(Why::OtherEnd(at)),
            Err(violation) => Err(Why::Astray(violation)),
        }
    }

    /// Tells what was proved, together with the agents' own routes if these close no circle by themselves.
    pub(super) fn prove(&self, names: &Describer<'_>, of_agents: Option<&UnionProof<'_>>) -> Forwarded {
        let mut told = Forwarded {
            count: self.routes,
            loops: self.loops,
            broken: self.broken,
            longest: self.longest,
            violations: self.violations(names),
            notes: self.not_compared(names).into_iter().collect(),
            ..Forwarded::default()
        };
        let Some(union) = &self.union else { return told };
        let circle = union.prove_acyclic().err().map(|cycle| ("what kernels send by segments", cycle));
        let circle = circle.or_else(|| {
            let mut union = union.clone();
            union.merge(of_agents?);
            let cycle = union.prove_acyclic().err()?;
            Some(("what kernels send by segments, together with the agents' own routes", cycle))
        });
        if let Some((whose, cycle)) = circle {
            told.cycle = true;
            told.violations.push(format!("{whose}: {}", names.deadlock(0, &cycle)));
        }
        told
    }

    /// Descriptions of the first things that are wrong.
    fn violations(&self, names: &Describer<'_>) -> Vec<String> {
        let object = |(host, ObjectDiffersJson { object, how }): &(u32, ObjectDiffersJson)| {
            let (host, object) = (names.shown.host(*host), quote::visible(object));
            match how {
                DifferenceJson::Missing => {
                    format!("the kernel of {host} lacks {object}, which its agent told it")
                }
                DifferenceJson::Other => {
                    format!("the kernel of {host} has another {object} than its agent told it")
                }
                DifferenceJson::Extra => {
                    format!("the kernel of {host} has {object}, which its agent did not tell it")
                }
            }
        };
        let faults = self.faults.iter().map(|fault| fault.describe(names));
        faults.chain(self.objects.iter().map(object)).take(TablesProof::MAX_LISTED).collect()
    }

    /// A note on kernels that were not held against what they were told.
    fn not_compared(&self, names: &Describer<'_>) -> Option<String> {
        let (count, first) = &self.not_compared;
        let (host, why) = first.as_ref()?;
        let kernels = counted(
            *count,
            "kernel's routes were not held against what it was told",
            "kernels' routes were not held against what they were told",
        );
        let first = if *count == 1 { "" } else { "the first is " };
        Some(format!("{kernels}: {first}that of {}: {}", names.shown.host(*host), quote::visible(why)))
    }
}

/// The ports of crossbars that segments name.
fn ports(listed: &ListedSegments) -> Result<Vec<u8>, Why> {
    let elements = elements(&listed.segments).ok_or(Why::NoSegments)?;
    let [Element::FirstPort(first), rest @ .., Element::DeliverV4 | Element::DeliverV6] = elements.as_slice()
    else {
        return Err(Why::NoRoute);
    };
    if *first != listed.port {
        return Err(Why::OtherPort(*first, listed.port));
    }
    // The ports of a node's own crossbar are numbered from 1. An agent alone has port 0, and no crossbar of its own.
    let own = Some(Ok(*first)).filter(|_| *first != 0);
    let others = rest.iter().map(|element| match element {
        Element::Port(port) => Ok(*port),
        Element::FirstPort(_) | Element::DeliverV4 | Element::DeliverV6 => Err(Why::NoRoute),
    });
    own.into_iter().chain(others).collect()
}

impl Fault {
    /// Describes it with the names of a fabric.
    fn describe(&self, names: &Describer<'_>) -> String {
        let shown = names.shown;
        let why = match &self.why {
            Why::NoSegments => "are no segments that crossbars obey".to_owned(),
            Why::NoRoute => {
                "are no route: that is a port of the sender's, ports of crossbars, and a delivery".to_owned()
            }
            Why::OtherPort(first, port) => {
                format!("begin with port {first}, though the packets leave by port {port}")
            }
            Why::NoCable => "leave a host without a cable".to_owned(),
            Why::BehindHost(host) => format!("go on behind {}, which is a host", shown.host(*host)),
            Why::OtherEnd(At::Host(host)) => format!("lead to {}", shown.host(*host)),
            Why::OtherEnd(At::Xbar(xbar)) => format!("end at {} and at no host", shown.xbar(*xbar)),
            Why::Astray(Violation::Broken { hop, .. }) => {
                format!("cannot leave {}: no cable leads on from there", names.port(*hop))
            }
            Why::Astray(Violation::Loop { xbar, .. }) => format!("pass {} twice", shown.xbar(*xbar)),
            Why::Astray(Violation::TooLong { hops, max_hops, .. }) => {
                format!("have {hops} hops, but at most {max_hops} are allowed")
            }
            Why::Astray(violation) => format!("are wrong: {}", names.violation(violation)),
            Why::NotTold => format!("leave by port {} and are none that its agent told it", self.port),
            Why::Lacking => String::new(),
        };
        let segments: Vec<_> = self.segments.iter().map(ToString::to_string).collect();
        let segments = segments.join(" ");
        let (from, to, port) = (shown.host(self.from), shown.host(self.to), self.port);
        match self.why {
            Why::Lacking => format!(
                "the kernel of {from} does not send packets to {to} by the segments {segments} out of port {port}, \
                 as its agent told it"
            ),
            _ => {
                format!("the kernel of {from} sends packets to {to} by the segments {segments}, which {why}")
            }
        }
    }
}
