//! Devices and their cables, made a fabric.

use std::collections::BTreeMap;

use mapper_fabric::machine;
use mapper_fabric::names::{Named, Names};
use mapper_proto::map::{Fabric, HostLabel, Xbar, XbarLabel, host_type};

use super::columns::SaidEnd;
use super::{ListedEnd, Malformed, at, ports};
use crate::draft::{Draft, HostNode, ListedKind, ListedNode, tag_xbars};

/// The devices of a list, in the order in which they come.
#[derive(Default)]
pub(super) struct Devices {
    devices: Vec<Device>,
    by_name: BTreeMap<String, usize>,
    cables: Vec<[(usize, ListedEnd); 2]>,
    draft: Draft,
    /// The line of the first cable that does not count.
    first_left_out: Option<usize>,
}

/// Why the cable in a line does not count.
const NOT_COUNTED: &str = "its LinkType is not Data, it is decommissioning, or it is for power or a console";

struct Device {
    line: usize,
    name: String,
    said: Option<bool>,
    cables: usize,
    has_adapters: bool,
}

impl Devices {
    pub(super) fn cable_count(&self) -> usize {
        self.cables.len()
    }

    /// Notes that the cable in a line does not count.
    pub(super) fn leave_out(&mut self, line: usize) {
        self.first_left_out.get_or_insert(line);
        self.draft.leave_out(line, NOT_COUNTED);
    }

    pub(super) fn cable(&mut self, ends: [SaidEnd; 2]) -> Result<(), Malformed> {
        let mut device = |SaidEnd { end, is_xbar }: SaidEnd| {
            let devices = &mut self.devices;
            let index = *self.by_name.entry(end.device.clone()).or_insert_with(|| {
                let (line, name) = (end.line, end.device.clone());
                devices.push(Device { line, name, said: None, cables: 0, has_adapters: false });
                devices.len() - 1
            });
            let here = &mut devices[index];
            if let (Some(known), Some(is_xbar)) = (here.said, is_xbar)
                && known != is_xbar
            {
                let problem = format!("`{}` is a crossbar and a host; it can be one only", here.name);
                return Err(Malformed::at(end.line, problem));
            }
            here.said = here.said.or(is_xbar);
            here.cables += 1;
            here.has_adapters |= ports::is_adapter(&end.port);
            Ok((index, end))
        };
        let [a, b] = ends;
        let cable = [device(a)?, device(b)?];
        self.cables.push(cable);
        Ok(())
    }

    /// The fabric.
    pub(super) fn finish(mut self, found: Option<&Fabric>) -> Result<Fabric, Malformed> {
        if self.cables.is_empty() {
            return Err(match self.first_left_out {
                Some(line) => Malformed::at(
                    line,
                    format!("no cable is left, neither here nor in another line: {NOT_COUNTED}"),
                ),
                None => Malformed::at(1, "there is no cable in it; expected a line for each"),
            });
        }
        let is_xbar = self.xbars(found);
        let numbers = self.numbers(&is_xbar)?;
        let mut ends: Vec<BTreeMap<String, Vec<PlacedEnd>>> = vec![BTreeMap::new(); self.devices.len()];
        for ([a, b], [of_a, of_b]) in self.cables.iter().zip(numbers) {
            for ((device, end), (node, port), peer) in [(a, &of_a, &of_b), (b, &of_b, &of_a)] {
                let end = PlacedEnd { line: end.line, port: *port, peer: peer.clone() };
                ends[*device].entry(node.clone()).or_default().push(end);
            }
        }
        let known_ports = self.xbar_ports(found);
        for (index, nodes) in ends.into_iter().enumerate() {
            for (node, own) in nodes {
                let used = || own.iter().map(|end| end.port);
                let (lowest, highest) = (used().min().unwrap_or(1), used().max().unwrap_or(1));
                let (kind, ports) = if is_xbar[index] {
                    // The list alone tells how many ports a crossbar has that was not found: those up to the highest.
                    let listed = || if lowest == 0 { highest.saturating_add(1) } else { highest };
                    let ports = known_ports[index].map_or_else(listed, |known| known.max(highest).max(1));
                    (xbar(&node, ports), (lowest.min(1), ports))
                } else {
                    (host(&node, lowest, highest), (1, highest))
                };
                let line = self.devices[index].line;
                self.draft.node(ListedNode { line, name: node, ports, kind })?;
                for PlacedEnd { line, port, peer: (peer, peer_port) } in own {
                    self.draft.end(line, port.into(), &peer, peer_port.into())?;
                }
            }
        }
        let mut fabric = self.draft.finish()?;
        tag_xbars(&mut fabric);
        Ok(fabric)
    }

    /// Which devices are crossbars.
    fn xbars(&self, found: Option<&Fabric>) -> Vec<bool> {
        let names = found.map(Names::of).unwrap_or_default();
        let known = known_kinds(found, &names);
        let is_xbar = |device: &Device| {
            let by_found = || known.get(device.name.to_ascii_lowercase().as_str()).copied();
            let by_ports = || device.has_adapters.then_some(false);
            let by_name = || ports::is_name_of_xbar(&device.name).then_some(true);
            device.said.or_else(by_found).or_else(by_ports).or_else(by_name).unwrap_or(device.cables > 2)
        };
        self.devices.iter().map(is_xbar).collect()
    }

    /// How many ports each device has, if it is a crossbar that was found.
    fn xbar_ports(&self, found: Option<&Fabric>) -> Vec<Option<u8>> {
        let mut ports: BTreeMap<String, u8> = BTreeMap::new();
        for (label, xbar) in found.iter().flat_map(|found| found.xbars.iter().zip(&found.map.xbars)) {
            if xbar.ports_known {
                ports.extend(names_of_xbar(label).map(|name| (name, xbar.ports)));
            }
        }
        let of_device = |device: &Device| ports.get(&device.name.to_ascii_lowercase()).copied();
        self.devices.iter().map(of_device).collect()
    }

    /// The node and the number of the port of both ends of each cable.
    fn numbers(&self, is_xbar: &[bool]) -> Result<Vec<[Place; 2]>, Malformed> {
        // What stands before the number must be the same for all ports of a crossbar, or two might be one.
        let mut fronts: Vec<Option<(String, usize)>> = vec![None; self.devices.len()];
        let mut number = |(device, end): &(usize, ListedEnd)| -> Result<Place, Malformed> {
            let name = &self.devices[*device].name;
            if !is_xbar[*device] {
                return host_port(name, end);
            }
            let wrong = |problem: String| Malformed::within(at(end.line, &end.column), problem);
            let (front, number) = ports::numbered(&end.port)
                .ok_or_else(|| wrong(format!("port `{}` has no number at its end", end.port)))?;
            let port = u8::try_from(number)
                .ok()
                .filter(|&port| port < u8::MAX)
                .ok_or_else(|| wrong(format!("port `{}` is none of 0 to 254", end.port)))?;
            let front = front.trim().to_ascii_lowercase();
            let (first, line) = fronts[*device].get_or_insert_with(|| (front.clone(), end.line));
            if *first != front {
                return Err(wrong(format!(
                    "port `{}` of `{name}` is named otherwise than the one at line {line}, `{first}` and a number: \
                     list each board of a device as a device of its own",
                    end.port
                )));
            }
            Ok((name.clone(), port))
        };
        self.cables.iter().map(|[a, b]| Ok([number(a)?, number(b)?])).collect()
    }
}

/// A node of the fabric and its port.
type Place = (String, u8);

/// The node and the port of a host: a number is one of its ports, any other name that of an adapter.
fn host_port(name: &str, end: &ListedEnd) -> Result<Place, Malformed> {
    let Some(number) = ports::plain_number(&end.port) else { return Ok((format!("{name} {}", end.port), 1)) };
    let port = u8::try_from(number).ok().filter(|&port| port > 0).ok_or_else(|| {
        let problem = format!("`{}` is no port of a host; expected 1 to 255", end.port);
        Malformed::within(at(end.line, &end.column), problem)
    })?;
    Ok((name.to_owned(), port))
}

/// An end of a cable at a node of the fabric.
#[derive(Clone)]
struct PlacedEnd {
    line: usize,
    port: u8,
    peer: Place,
}

fn xbar(name: &str, ports: u8) -> ListedKind {
    let label = XbarLabel { description: name.to_owned(), ..XbarLabel::default() };
    ListedKind::Xbar(label, Xbar { ports, tag: None, ports_known: true })
}

fn host(name: &str, node_port: u8, node_ports: u8) -> ListedKind {
    let label = HostLabel { description: name.to_owned(), node_port, node_ports, ..HostLabel::default() };
    let host_type = host_type::INFINIBAND;
    ListedKind::Host(HostNode { label, host_type, mac: None, interfaces: BTreeMap::new() })
}

/// Whether nodes of a fabric are crossbars, by all that they may be called in small letters.
fn known_kinds(found: Option<&Fabric>, names: &Names) -> BTreeMap<String, bool> {
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let by_names = names.nodes().into_iter();
    known.extend(by_names.map(|(name, node)| (name.to_ascii_lowercase(), matches!(node, Named::Xbar(_)))));
    if let Some(found) = found {
        known.extend(found.hosts.iter().map(|label| (machine::interface(label).machine, false)));
        known.extend(found.xbars.iter().flat_map(names_of_xbar).map(|name| (name, true)));
    }
    known
}

/// What an xbar is called in small letters: by its id, and by its description.
fn names_of_xbar(label: &XbarLabel) -> [String; 2] {
    [label.name.to_ascii_lowercase(), machine::xbar(label)]
}
