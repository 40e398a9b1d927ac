//! The small files of OpenSM's settings: a GUID a line, and what is said of it.
//!
//! | file | line |
//! |---|---|
//! | roots, compute nodes, I/O nodes | `guid` |
//! | routing order | `guid`, in the order in which destinations are served |
//! | ids | `guid id` |
//! | ports that do not count | `guid port` of an xbar, or a host's `guid` alone |
//! | port search order | `guid port port ..` |
//! | hop weights | `guid port weight` |
//!
//! GUIDs are hexadecimal after `0x`, or 16 hexadecimal digits, or decimal. The name of a node, its id or its
//! description, may stand for its GUID; one with blanks in double quotes. What follows a `#` is a comment.
//! Lines with an invalid format are discarded, and those whose GUID is of no node here are passed over; the
//! notes count both. (OpenSM reads nothing after the first such line.)

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mapper_proto::map::PortRef;

use super::blocks::quoted;
use super::{FormatError, read_bounded};
use mapper_fabric::names::Named;
use mapper_fabric::wording::counted;
use mapper_routing::engines::SubnetNode;
use mapper_routing::{Attachment, Subnet};

/// What a file says of a subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// What its lines say.
    pub found: T,
    /// What a user should know: lines that were discarded or passed over.
    pub notes: Vec<String>,
}

/// Xbars by a list of GUIDs, in its order; a host's GUID means the xbar that it is cabled to.
///
/// # Errors
/// If the file cannot be read.
pub fn roots(path: &Path, subnet: &Subnet) -> Result<Listed<Vec<u32>>, FormatError> {
    let mut roots = Vec::new();
    let notes = read(path, subnet, |line| {
        let xbar = match line.node()? {
            SubnetNode::Xbar(xbar) => xbar,
            SubnetNode::Host(host) => subnet.xbar_of_host(host).ok_or(Problem::Uncabled)?,
        };
        line.end()?;
        if !roots.contains(&xbar) {
            roots.push(xbar);
        }
        Ok(())
    })?;
    Ok(Listed { found: roots, notes })
}

/// Hosts by a list of their ports' GUIDs: compute nodes, or I/O nodes.
///
/// # Errors
/// If the file cannot be read.
pub fn hosts(path: &Path, subnet: &Subnet) -> Result<Listed<BTreeSet<u32>>, FormatError> {
    let mut hosts = BTreeSet::new();
    let notes = read(path, subnet, |line| {
        let SubnetNode::Host(host) = line.node()? else { return Err(Problem::NoHost) };
        line.end()?;
        hosts.insert(host);
        Ok(())
    })?;
    Ok(Listed { found: hosts, notes })
}

/// Destinations by a list of GUIDs, in its order.
///
/// # Errors
/// If the file cannot be read.
pub fn routing_order(path: &Path, subnet: &Subnet) -> Result<Listed<Vec<SubnetNode>>, FormatError> {
    let mut order = Vec::new();
    let mut placed = BTreeSet::new();
    let notes = read(path, subnet, |line| {
        let node = line.node()?;
        line.end()?;
        if !placed.insert(node) {
            return Err(Problem::Twice);
        }
        order.push(node);
        Ok(())
    })?;
    Ok(Listed { found: order, notes })
}

/// The ids of xbars.
///
/// # Errors
/// If the file cannot be read.
pub fn ids(path: &Path, subnet: &Subnet) -> Result<Listed<BTreeMap<u32, u64>>, FormatError> {
    let mut ids = BTreeMap::new();
    let notes = read(path, subnet, |line| {
        let xbar = line.xbar()?;
        let id = line.number("an id: a number", u64::MAX)?;
        line.end()?;
        ids.insert(xbar, id);
        Ok(())
    })?;
    Ok(Listed { found: ids, notes })
}

/// Ports that do not count when loads are balanced. A host's GUID means the xbar's port that it is cabled
/// to.
///
/// # Errors
/// If the file cannot be read.
pub fn uncounted_ports(path: &Path, subnet: &Subnet) -> Result<Listed<BTreeSet<PortRef>>, FormatError> {
    let mut ports = BTreeSet::new();
    let mut hosts = 0;
    let mut notes = read(path, subnet, |line| {
        let port = match line.node()? {
            SubnetNode::Xbar(xbar) => line.port(subnet, xbar)?,
            SubnetNode::Host(host) => match subnet.topology.attachment(host) {
                Attachment::Port(port) => {
                    hosts += 1;
                    port
                }
                Attachment::Host(_) | Attachment::Nothing => return Err(Problem::Uncabled),
            },
        };
        line.end()?;
        ports.insert(port);
        Ok(())
    })?;
    notes.extend((hosts > 0).then(|| {
        format!(
            "{} of hosts: no effect, as all that comes for a host leaves by its own port; name ports of switches that \
             lead to switches",
            counted(hosts, "line", "lines")
        )
    }));
    Ok(Listed { found: ports, notes })
}

/// For single xbars, the order in which ports are tried. A second line for an xbar is discarded, and a line
/// with a port that the xbar does not have, or twice.
///
/// # Errors
/// If the file cannot be read.
pub fn port_order(path: &Path, subnet: &Subnet) -> Result<Listed<BTreeMap<u32, Vec<u8>>>, FormatError> {
    let mut orders = BTreeMap::new();
    let notes = read(path, subnet, |line| {
        let xbar = line.xbar()?;
        let mut order = Vec::new();
        while !line.is_empty() {
            let port = line.port(subnet, xbar)?.port;
            if order.contains(&port) {
                return Err(Problem::Twice);
            }
            order.push(port);
        }
        if order.is_empty() {
            return Err(Problem::Expected("ports after the GUID"));
        }
        if orders.contains_key(&xbar) {
            return Err(Problem::Twice);
        }
        orders.insert(xbar, order);
        Ok(())
    })?;
    Ok(Listed { found: orders, notes })
}

/// What a step out of single ports counts.
///
/// # Errors
/// If the file cannot be read.
pub fn hop_weights(path: &Path, subnet: &Subnet) -> Result<Listed<BTreeMap<PortRef, u8>>, FormatError> {
    let mut weights = BTreeMap::new();
    let notes = read(path, subnet, |line| {
        let xbar = line.xbar()?;
        let port = line.port(subnet, xbar)?;
        let expected = "a weight from 1 to 255";
        let weight = u8::try_from(line.number(expected, 255)?).map_err(|_| Problem::Expected(expected))?;
        if weight == 0 {
            return Err(Problem::Expected(expected));
        }
        line.end()?;
        weights.insert(port, weight);
        Ok(())
    })?;
    Ok(Listed { found: weights, notes })
}

/// Why a line says nothing.
enum Problem {
    /// Its format is invalid; what was expected.
    Expected(&'static str),
    /// The node or port that it names was named before.
    Twice,
    /// It names no port of the xbar.
    NoPort,
    /// Its GUID is of no node here.
    NoNode,
    /// Its GUID is an xbar's where a host's belongs.
    NoHost,
    /// Its GUID is a host's where an xbar's belongs.
    NoXbar,
    /// Its GUID is of a host that is not cabled to an xbar.
    Uncabled,
}

impl Problem {
    fn describe(&self) -> String {
        match self {
            Self::Expected(what) => format!("expected {what}"),
            Self::Twice => "it was named before".to_owned(),
            Self::NoPort => "its xbar has no such port".to_owned(),
            Self::NoNode => "no node here has this GUID".to_owned(),
            Self::NoHost => "this GUID is an xbar's; expected a host's".to_owned(),
            Self::NoXbar => "this GUID is a host's; expected an xbar's".to_owned(),
            Self::Uncabled => "this host is not cabled to an xbar".to_owned(),
        }
    }
}

/// A line, read word by word.
struct Line<'a> {
    words: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
    nodes: &'a Nodes<'a>,
}

impl Line<'_> {
    fn is_empty(&mut self) -> bool {
        self.words.peek().is_none()
    }

    fn end(&mut self) -> Result<(), Problem> {
        if self.is_empty() { Ok(()) } else { Err(Problem::Expected("nothing more on the line")) }
    }

    fn node(&mut self) -> Result<SubnetNode, Problem> {
        let word = self.words.next().unwrap_or_default();
        let by_guid = guid(word).and_then(|guid| self.nodes.by_guid.get(&guid));
        if let Some(&node) = by_guid.or_else(|| self.nodes.by_name.get(word)) {
            return Ok(node);
        }
        Err(if guid(word).is_some() {
            Problem::NoNode
        } else {
            Problem::Expected("a GUID, as in 0x2c90200001234, or the name of a node here")
        })
    }

    fn xbar(&mut self) -> Result<u32, Problem> {
        match self.node()? {
            SubnetNode::Xbar(xbar) => Ok(xbar),
            SubnetNode::Host(_) => Err(Problem::NoXbar),
        }
    }

    fn number(&mut self, expected: &'static str, most: u64) -> Result<u64, Problem> {
        let word = self.words.next().and_then(number).filter(|&number| number <= most);
        word.ok_or(Problem::Expected(expected))
    }

    fn port(&mut self, subnet: &Subnet, xbar: u32) -> Result<PortRef, Problem> {
        let port = self.number("a port after the GUID", u64::MAX)?;
        let last = subnet.xbar_ports[xbar as usize];
        let port = u8::try_from(port).ok().filter(|port| (1..=last).contains(port));
        port.map(|port| PortRef { xbar, port }).ok_or(Problem::NoPort)
    }
}

/// A number as C reads it, but for octal ones.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        None if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().ok(),
        _ => None,
    }
}

fn guid(word: &str) -> Option<u64> {
    let is_bare = word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_bare { u64::from_str_radix(word, 16).ok() } else { number(word) }
}

/// The nodes of a subnet.
struct Nodes<'a> {
    /// Xbars, then hosts' ports, then hosts' nodes, if two have the same GUID.
    by_guid: BTreeMap<u64, SubnetNode>,
    by_name: BTreeMap<&'a str, SubnetNode>,
}

fn nodes(subnet: &Subnet) -> Nodes<'_> {
    let mut nodes = BTreeMap::new();
    let xbars = (0..).zip(&subnet.xbar_guids).map(|(xbar, &guid)| (guid, SubnetNode::Xbar(xbar)));
    let hosts = |guids| (0..).zip(guids).map(|(host, &guid): (u32, &u64)| (guid, SubnetNode::Host(host)));
    for (guid, node) in xbars.chain(hosts(&subnet.host_port_guids)).chain(hosts(&subnet.host_guids)) {
        nodes.entry(guid).or_insert(node);
    }
    let named = |named: Named| match named {
        Named::Host(host) => SubnetNode::Host(host),
        Named::Xbar(xbar) => SubnetNode::Xbar(xbar),
    };
    let by_name = subnet.names.nodes().into_iter().map(|(name, node)| (name, named(node))).collect();
    Nodes { by_guid: nodes, by_name }
}

/// The words of a line, less its comment. A name in double quotes is one word.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (word, behind) = quoted.unwrap_or_else(|| {
            let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '#').unwrap_or(rest.len());
            rest.split_at(end)
        });
        words.push(word);
        rest = behind.trim_ascii_start();
    }
    words
}

/// Reads a file line by line; the notes say how many lines say nothing, and what is wrong with the first.
fn read(
    path: &Path,
    subnet: &Subnet,
    mut take: impl FnMut(&mut Line<'_>) -> Result<(), Problem>,
) -> Result<Vec<String>, FormatError> {
    let nodes = nodes(subnet);
    let bytes = read_bounded(path)?;
    let (mut discarded, mut passed_over) = (Count::default(), Count::default());
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let text = String::from_utf8_lossy(line);
        let mut line = Line { words: words(&text).into_iter().peekable(), nodes: &nodes };
        if line.is_empty() {
            continue;
        }
        match take(&mut line) {
            Ok(()) => {}
            Err(problem @ Problem::NoNode) => passed_over.add(number, &text, &problem),
            Err(problem) => discarded.add(number, &text, &problem),
        }
    }
    Ok([discarded.note("discarded"), passed_over.note("passed over")].into_iter().flatten().collect())
}

/// Lines that say nothing.
#[derive(Default)]
struct Count {
    lines: usize,
    first: String,
}

impl Count {
    fn add(&mut self, number: usize, line: &str, problem: &Problem) {
        if self.lines == 0 {
            self.first =
                format!("line {number} ({}): {}", quoted(line.trim().as_bytes()), problem.describe());
        }
        self.lines += 1;
    }

    fn note(&self, what: &str) -> Option<String> {
        match self.lines {
            0 => None,
            1 => Some(format!("{what}: {}", self.first)),
            lines => Some(format!("{lines} lines {what}, the first is {}", self.first)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;
    use std::io::Write as _;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    /// Xbars have GUIDs 0x200000000000001 and so on, hosts' ports their own.
    fn subnet() -> Subnet {
        Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap()
    }

    #[test]
    fn a_hosts_guid_means_its_xbar_among_roots() {
        let subnet = subnet();
        let (spine, host) = (subnet.xbar_guids[4], subnet.host_port_guids[7]);
        let file = file(&format!("# roots\n{spine:#x}\n\n{host:#x} # by a host\n{spine:016x}\n"));
        let listed = roots(file.path(), &subnet).unwrap();
        assert_eq!(listed, Listed { found: vec![4, 3], notes: Vec::new() });
    }

    #[test]
    fn bad_lines_are_discarded_and_told() {
        let subnet = subnet();
        let guid = subnet.host_port_guids[2];
        let file = file(&format!("0xno\n{guid:#x}\n{:#x}\n0x77\nmore \u{1b}[31m\n", subnet.xbar_guids[0]));
        let listed = hosts(file.path(), &subnet).unwrap();
        assert_eq!(listed.found, BTreeSet::from([2]));
        assert_eq!(
            listed.notes,
            [
                "3 lines discarded, the first is line 1 (`0xno`): expected a GUID, as in 0x2c90200001234, or the name of a node here",
                "passed over: line 4 (`0x77`): no node here has this GUID",
            ]
        );
    }

    #[test]
    fn ports_must_be_there_and_once() {
        let subnet = subnet();
        let [a, b] = [subnet.xbar_guids[0], subnet.xbar_guids[1]];
        let orders = file(&format!("{a:#x} 4 0x3\n{a:#x} 1\n{b:#x} 1 1\n{b:#x} 5\n{b:#x}\n"));
        let listed = port_order(orders.path(), &subnet).unwrap();
        assert_eq!(listed.found, BTreeMap::from([(0, vec![4, 3])]));
        assert!(listed.notes[0].starts_with("4 lines discarded, the first is line 2 "), "{:?}", listed.notes);
        let weights = file(&format!("{a:#x} 3 7\n{a:#x} 4 0\n{a:#x} 4 256\n{a:#x} 0 1\n"));
        let listed = hop_weights(weights.path(), &subnet).unwrap();
        assert_eq!(listed.found, BTreeMap::from([(PortRef { xbar: 0, port: 3 }, 7)]));
        let ignored = file(&format!("{a:#x} 3\n{:#x}\n{b:#x}\n", subnet.host_port_guids[2]));
        let listed = uncounted_ports(ignored.path(), &subnet).unwrap();
        assert_eq!(
            listed.found,
            BTreeSet::from([PortRef { xbar: 0, port: 3 }, PortRef { xbar: 1, port: 1 }])
        );
        assert!(
            listed.notes.iter().any(|note| note.starts_with("1 line of hosts: no effect, ")),
            "{:?}",
            listed.notes
        );
    }

    #[test]
    fn orders_and_ids_keep_what_is_said() {
        let subnet = subnet();
        let (xbar, host) = (subnet.xbar_guids[5], subnet.host_port_guids[3]);
        let order = file(&format!("{host:#x}\n{xbar:#x}\n{host:#x}\n"));
        let listed = routing_order(order.path(), &subnet).unwrap();
        assert_eq!(listed.found, [SubnetNode::Host(3), SubnetNode::Xbar(5)]);
        assert_eq!(listed.notes.len(), 1);
        let file = file(&format!("{xbar:#x} 17\n{host:#x} 3\n"));
        let listed = ids(file.path(), &subnet).unwrap();
        assert_eq!((listed.found, listed.notes.len()), (BTreeMap::from([(5, 17)]), 1));
    }
    #[test]
    fn names_stand_for_guids() {
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        fabric.xbars[4].description = "rack 4 # top".to_owned();
        let subnet = Subnet::new(&fabric, None).unwrap();
        let named = file("\"rack 4 # top\" # by description\nspine2\nh8 # by a host\nspine1\n");
        let listed = roots(named.path(), &subnet).unwrap();
        assert_eq!(listed, Listed { found: vec![4, 5, 3], notes: Vec::new() });
        let named = file("leaf2 3 7\nleaf2:3 1\n");
        let listed = hop_weights(named.path(), &subnet).unwrap();
        assert_eq!(
            (listed.found, listed.notes.len()),
            (BTreeMap::from([(PortRef { xbar: 1, port: 3 }, 7)]), 1)
        );
    }
}
