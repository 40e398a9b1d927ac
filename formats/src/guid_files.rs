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

mod line;
mod nodes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use mapper_proto::map::PortRef;

use super::blocks::quoted;
use super::{FormatError, Loaded, read_bounded};
use mapper_fabric::wording::counted;
use mapper_routing::engines::SubnetNode;
use mapper_routing::{Attachment, Subnet};

use line::{Line, Problem};
use nodes::Nodes;

/// Xbars by a list of GUIDs, in its order; a host's GUID means the xbar that it is cabled to.
///
/// # Errors
/// If the file cannot be read.
pub fn roots(path: &Path, subnet: &Subnet) -> Result<Loaded<Vec<u32>>, FormatError> {
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
    Ok(Loaded { found: roots, notes })
}

/// Hosts by a list of their ports' GUIDs: compute nodes, or I/O nodes.
///
/// # Errors
/// If the file cannot be read.
pub fn hosts(path: &Path, subnet: &Subnet) -> Result<Loaded<BTreeSet<u32>>, FormatError> {
    let mut hosts = BTreeSet::new();
    let notes = read(path, subnet, |line| {
        let SubnetNode::Host(host) = line.node()? else { return Err(Problem::NoHost) };
        line.end()?;
        hosts.insert(host);
        Ok(())
    })?;
    Ok(Loaded { found: hosts, notes })
}

/// Destinations by a list of GUIDs, in its order.
///
/// # Errors
/// If the file cannot be read.
pub fn routing_order(path: &Path, subnet: &Subnet) -> Result<Loaded<Vec<SubnetNode>>, FormatError> {
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
    Ok(Loaded { found: order, notes })
}

/// The ids of xbars.
///
/// # Errors
/// If the file cannot be read.
pub fn ids(path: &Path, subnet: &Subnet) -> Result<Loaded<BTreeMap<u32, u64>>, FormatError> {
    let mut ids = BTreeMap::new();
    let notes = read(path, subnet, |line| {
        let xbar = line.xbar()?;
        let id = line.number("an id: a number", u64::MAX)?;
        line.end()?;
        ids.insert(xbar, id);
        Ok(())
    })?;
    Ok(Loaded { found: ids, notes })
}

/// Ports that do not count when loads are balanced. A host's GUID means the xbar's port that it is cabled
/// to.
///
/// # Errors
/// If the file cannot be read.
pub fn uncounted_ports(path: &Path, subnet: &Subnet) -> Result<Loaded<BTreeSet<PortRef>>, FormatError> {
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
    Ok(Loaded { found: ports, notes })
}

/// For single xbars, the order in which ports are tried. A second line for an xbar is discarded, and a line
/// with a port that the xbar does not have, or twice.
///
/// # Errors
/// If the file cannot be read.
pub fn port_order(path: &Path, subnet: &Subnet) -> Result<Loaded<BTreeMap<u32, Vec<u8>>>, FormatError> {
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
    Ok(Loaded { found: orders, notes })
}

/// What a step out of single ports counts.
///
/// # Errors
/// If the file cannot be read.
pub fn hop_weights(path: &Path, subnet: &Subnet) -> Result<Loaded<BTreeMap<PortRef, u8>>, FormatError> {
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
    Ok(Loaded { found: weights, notes })
}

/// Reads a file line by line; the notes say how many lines say nothing, and what is wrong with the first.
fn read(
    path: &Path,
    subnet: &Subnet,
    mut take: impl FnMut(&mut Line<'_>) -> Result<(), Problem>,
) -> Result<Vec<String>, FormatError> {
    let nodes = Nodes::of(subnet);
    let bytes = read_bounded(path)?;
    let (mut discarded, mut passed_over) = (Count::default(), Count::default());
    for (number, line) in (1..).zip(bytes.split(|&byte| byte == b'\n')) {
        let text = String::from_utf8_lossy(line);
        let mut line = Line::new(&text, &nodes);
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
mod tests;
