//! GM's `.map`: what its mapper stored and its tools read.
//!
//! The first line is the numbers of hosts and switches. Each node is a block: a header
//! (`s 16 "name"` or `h - "name"`), the number of its links, a line for each
//! (`<port> <s|h> <subtype> "peer" <peer port>`), and lines of options. Blank lines divide
//! blocks; `#` and `;` begin comments. Ports count from 0. Switches are plain xbars.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, HostLabel, PortRef, Xbar, XbarLabel, host_type};

use super::draft::{Draft, HostNode, ListedKind, ListedNode};
use super::{Malformed, port_shifts};

/// What must come next in a text.
enum Expected {
    /// A block's header, or an option of the block before.
    Header,
    /// The number of links of a block.
    LinkCount,
    /// As many lines of links as the number says.
    Links(u64),
}

/// The fabric in a text.
pub(super) fn parse(text: &str) -> Result<Fabric, Malformed> {
    let is_text = |&(_, line): &(usize, &str)| !line.is_empty() && !line.starts_with(['#', ';']);
    let mut lines = (1..).zip(text.lines().map(str::trim)).filter(is_text);
    let (hosts, switches) = counts(lines.next())?;
    let mut addresses = BTreeMap::new();
    let mut draft = Draft::default();
    let mut expected = Expected::Header;
    let mut last_line = 1;
    for (line, content) in lines {
        last_line = line;
        expected = match expected {
            Expected::LinkCount => match number(content) {
                Some(0) => Expected::Header,
                Some(links) => Expected::Links(links),
                None => return Err(Malformed::at(line, "expected the number of links of the node")),
            },
            Expected::Links(links) => {
                link(&mut draft, line, content)?;
                if links > 1 { Expected::Links(links - 1) } else { Expected::Header }
            }
            Expected::Header if content.starts_with("s ") || content.starts_with("h ") => {
                draft.node(node(line, content)?)?;
                Expected::LinkCount
            }
            Expected::Header => {
                option(&mut draft, &mut addresses, line, content)?;
                Expected::Header
            }
        };
    }
    match expected {
        Expected::Header => {}
        Expected::LinkCount => return Err(Malformed::at(last_line, "the number of links is missing")),
        Expected::Links(links) => {
            return Err(Malformed::at(last_line, format!("{links} more links were announced")));
        }
    }
    let fabric = draft.finish()?;
    let found = (fabric.map.hosts.len() as u64, fabric.map.xbars.len() as u64);
    if found != (hosts, switches) {
        return Err(Malformed::at(
            last_line,
            format!(
                "the first line announces {hosts} hosts and {switches} switches, but there are {} and {}",
                found.0, found.1
            ),
        ));
    }
    Ok(fabric)
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// The first line: hosts and switches.
fn counts(line: Option<(usize, &str)>) -> Result<(u64, u64), Malformed> {
    let (line, content) = line.unwrap_or((1, ""));
    let mut words = content.split_ascii_whitespace().map(number);
    match (words.next(), words.next(), words.next()) {
        (Some(Some(hosts)), Some(Some(switches)), None) => Ok((hosts, switches)),
        _ => Err(Malformed::at(line, "expected the numbers of hosts and of switches")),
    }
}

/// The text in quotes, and what stands before and behind it.
fn quoted(content: &str) -> Option<(&str, &str, &str)> {
    let (front, rest) = content.split_once('"')?;
    let (name, back) = rest.split_once('"')?;
    Some((front, name, back))
}

/// A block's header.
fn node(line: usize, content: &str) -> Result<ListedNode, Malformed> {
    let expected = || Malformed::at(line, "expected a node: `s 16 \"name\"` or `h - \"name\"`");
    let (front, name, _) = quoted(content).ok_or_else(expected)?;
    let name = name.to_owned();
    let mut words = front.split_ascii_whitespace();
    let (Some(kind), Some(subtype), None) = (words.next(), words.next(), words.next()) else {
        return Err(expected());
    };
    if kind == "h" {
        let label = HostLabel { node_port: 1, node_ports: 1, ..Default::default() };
        let host = HostNode { label, host_type: host_type::GM, mac: None, interfaces: BTreeMap::new() };
        return Ok(ListedNode { line, name, ports: (0, u8::MAX - 1), kind: ListedKind::Host(host) });
    }
    let ports = subtype.parse().ok().filter(|&ports: &u8| ports > 0).ok_or_else(|| {
        Malformed::at(line, format!("`{subtype}` is no number of ports; expected a number from 1 to 255"))
    })?;
    let xbar = Xbar { ports, tag: None, ports_known: true };
    Ok(ListedNode { line, name, ports: (0, ports - 1), kind: ListedKind::Xbar(XbarLabel::default(), xbar) })
}

/// A link: `<port> <s|h> <subtype> "peer" <peer port>`.
fn link(draft: &mut Draft, line: usize, content: &str) -> Result<(), Malformed> {
    let expected = || Malformed::at(line, "expected a link: `<port> <s|h> <subtype> \"peer\" <peer port>`");
    let (front, peer, back) = quoted(content).ok_or_else(expected)?;
    let words: Vec<_> = front.split_ascii_whitespace().collect();
    let [port, "s" | "h", _] = words[..] else { return Err(expected()) };
    let port = number(port).ok_or_else(expected)?;
    let peer_port = number(back.trim()).ok_or_else(expected)?;
    draft.end(line, port, peer, peer_port).map(|_| ())
}

/// An option of the block before. Those without a meaning here are passed over. `addresses` are those
/// seen so far, and their lines.
fn option(
    draft: &mut Draft,
    addresses: &mut BTreeMap<Mac, usize>,
    line: usize,
    content: &str,
) -> Result<(), Malformed> {
    let (key, value) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
    let value = value.trim();
    let Some(node) = draft.last().filter(|_| key.starts_with(|c: char| c.is_ascii_alphabetic())) else {
        return Err(Malformed::at(line, "expected a node: `s 16 \"name\"` or `h - \"name\"`"));
    };
    match (key, &mut node.kind) {
        ("address", ListedKind::Host(host)) => {
            let mac: Mac = value
                .parse()
                .map_err(|error: mapper_proto::mac::ParseMacError| Malformed::at(line, error.to_string()))?;
            if let Some(first) = addresses.insert(mac, line) {
                return Err(Malformed::at(line, format!("address {mac} is that of line {first} already")));
            }
            host.mac = Some(mac);
        }
        ("hostType", ListedKind::Host(host)) => {
            host.host_type = value.parse().map_err(|_| {
                Malformed::at(line, format!("`{value}` is no host type; expected a number from 0 to 255"))
            })?;
        }
        ("label", ListedKind::Host(host)) => host.label.description = unquoted(value),
        ("label", ListedKind::Xbar(label, _)) => label.description = unquoted(value),
        _ => {}
    }
    Ok(())
}

fn unquoted(value: &str) -> String {
    quoted(value).map_or(value, |(_, text, _)| text).to_owned()
}

/// The fabric as text. If its ports count from 1, which a port numbered as high as the number
/// of ports gives away, all are moved to count from 0.
pub(super) fn write(fabric: &Fabric) -> String {
    let map = &fabric.map;
    let shifts = port_shifts(fabric, 0);
    let mut links = vec![BTreeMap::new(); map.xbars.len()];
    let xbar_end = |end: PortRef| {
        let xbar = end.xbar as usize;
        format!(
            "s {} \"{}\" {}",
            map.xbars[xbar].ports,
            fabric.xbars[xbar].name,
            i16::from(end.port) + shifts[xbar]
        )
    };
    for cable in &map.cables {
        links[cable.a.xbar as usize].insert(cable.a.port, xbar_end(cable.b));
        links[cable.b.xbar as usize].insert(cable.b.port, xbar_end(cable.a));
    }
    for (host, label) in map.hosts.iter().zip(&fabric.hosts) {
        if let Some(at) = host.at {
            links[at.xbar as usize].insert(at.port, format!("h - \"{}\" 0", label.name));
        }
    }
    let mut text = format!("{} {}\n", map.hosts.len(), map.xbars.len());
    for (index, (label, links)) in fabric.xbars.iter().zip(&links).enumerate() {
        let ports = map.xbars[index].ports;
        let _ = writeln!(text, "\ns {} \"{}\"\n{}", ports, label.name, links.len());
        for (&number, link) in links {
            let _ = writeln!(text, "{} {link}", i16::from(number) + shifts[index]);
        }
        text += &label_line(&label.description);
    }
    let pair = fabric.face_to_face();
    let other = |host: usize| {
        let [a, b] = pair?;
        [(a, b), (b, a)].into_iter().find(|&(one, _)| one == host).map(|(_, other)| other)
    };
    for (index, (host, label)) in map.hosts.iter().zip(&fabric.hosts).enumerate() {
        let _ = writeln!(text, "\nh - \"{}\"", label.name);
        let _ = match host.at {
            Some(at) => writeln!(text, "1\n0 {}", xbar_end(at)),
            None => match other(index) {
                Some(other) => writeln!(text, "1\n0 h - \"{}\" 0", fabric.hosts[other].name),
                None => writeln!(text, "0"),
            },
        };
        let address: String = host.mac.to_string().split(':').collect();
        let _ = writeln!(text, "address {address}\ngmId {}\nhostType {}", index + 1, host.host_type);
        text += &label_line(&label.description);
    }
    text
}

/// The option that says what a node is in words.
fn label_line(description: &str) -> String {
    let text: String = description.chars().filter(|&c| c != '"' && !c.is_control()).collect();
    if text.is_empty() { text } else { format!("label \"{text}\"\n") }
}
