//! `mapper lab-plan`: prints a fabric as lines that a shell can read, for `scripts/lab`.
//!
//! Fields are separated by blanks, and names come last on their line:
//! - `xbar SLUG FIRST_PORT PORTS TAG NAME`, TAG `-` for a plain one;
//! - `host SLUG MAC NODE_PORT NAME`;
//! - `node SLUG MAC NODE_PORT NAME`, with `--nodes`: a host and its xbar in one process; a line
//!   `within SLUG NAME` names that xbar, whose cables are the node's;
//! - `cable SLUG INTERFACE SLUG INTERFACE`: port N of an xbar is interface `pN`, a host's is `fab0`.
//!
//! A slug is the name with only letters, digits, `.`, `_` and `-` in it, unique in the fabric.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use mapper_formats as formats;
use mapper_proto::map::{Fabric, PortRef};

use super::{CliError, Format, output};

/// The interface of every host.
const HOST_INTERFACE: &str = "fab0";

/// Options of `mapper lab-plan`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A fabric file, or a generator spec.
    topology: String,
    /// What the xbars understand [default: those with an identity are tagged, others plain].
    #[arg(long, value_enum)]
    xbars: Option<Xbars>,
    /// Make one node of a host and an xbar that has no other host.
    #[arg(long)]
    nodes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Xbars {
    /// None has an identity.
    Plain,
    /// Every xbar has a tag.
    Tagged,
    /// Every other xbar has a tag.
    Mixed,
}

/// Runs `mapper lab-plan`.
///
/// # Errors
/// If the command fails. The error is worded for the user.
pub fn run(args: &Args, _format: Format) -> Result<ExitCode, CliError> {
    let fabric = formats::resolve(&args.topology)?;
    output::print(&plan(&fabric, args.xbars, args.nodes))?;
    Ok(ExitCode::SUCCESS)
}

fn plan(fabric: &Fabric, xbars: Option<Xbars>, nodes: bool) -> String {
    let mut slugs = Slugs::default();
    let mut text = String::new();
    let mut line = |words: std::fmt::Arguments<'_>| {
        // Writing to a String never fails.
        let _infallible = writeln!(text, "{words}");
    };

    let inner_xbars = if nodes { xbars_of_one_host(fabric) } else { BTreeSet::new() };
    let mut xbar_slugs = vec![String::new(); fabric.xbars.len()];
    for (index, (xbar, label)) in fabric.map.xbars.iter().zip(&fabric.xbars).enumerate() {
        if inner_xbars.contains(&(index as u32)) {
            continue;
        }
        let slug = slugs.make(&label.name);
        let used = used_ports(fabric, index as u32);
        let first = used.first().map_or(1, |&port| port.min(1));
        let needed = used.last().map_or(0, |&port| port - first + 1);
        let tag = tag_of(index, xbar.tag, xbars).map_or("-".to_owned(), |tag| format!("{tag:016x}"));
        line(format_args!("xbar {slug} {first} {} {tag} {}", xbar.ports.max(needed), label.name));
        xbar_slugs[index] = slug;
    }
    let mut without_xbar = BTreeMap::new();
    let mut host_cables = Vec::new();
    for (index, (host, label)) in fabric.map.hosts.iter().zip(&fabric.hosts).enumerate() {
        let slug = slugs.make(&label.name);
        let inner_xbar = host.at.map(|at| at.xbar).filter(|xbar| inner_xbars.contains(xbar));
        let kind = if inner_xbar.is_some() { "node" } else { "host" };
        line(format_args!("{kind} {slug} {} {} {}", host.mac, label.node_port, label.name));
        match (inner_xbar, host.at) {
            (Some(xbar), _) => {
                line(format_args!("within {slug} {}", fabric.xbars[xbar as usize].name));
                xbar_slugs[xbar as usize] = slug;
            }
            (None, Some(at)) => host_cables.push((slug, at)),
            (None, None) => drop(without_xbar.insert(index, slug)),
        }
    }
    let port = |at: PortRef| format!("{} p{}", xbar_slugs[at.xbar as usize], at.port);
    for (slug, at) in host_cables {
        line(format_args!("cable {slug} {HOST_INTERFACE} {}", port(at)));
    }
    let pair = fabric.face_to_face().and_then(|[a, b]| Some((without_xbar.get(&a)?, without_xbar.get(&b)?)));
    if let Some((one, other)) = pair {
        line(format_args!("cable {one} {HOST_INTERFACE} {other} {HOST_INTERFACE}"));
    }
    for cable in &fabric.map.cables {
        line(format_args!("cable {} {}", port(cable.a), port(cable.b)));
    }
    text
}

/// The xbars that can be one node with their host: they have exactly one host, and a cable to another xbar.
fn xbars_of_one_host(fabric: &Fabric) -> BTreeSet<u32> {
    let mut hosts = vec![0; fabric.xbars.len()];
    for at in fabric.map.hosts.iter().filter_map(|host| host.at) {
        hosts[at.xbar as usize] += 1;
    }
    let cabled = fabric.map.cables.iter().flat_map(|cable| [cable.a.xbar, cable.b.xbar]);
    cabled.filter(|&xbar| hosts[xbar as usize] == 1).collect()
}

fn tag_of(index: usize, tag: Option<u64>, xbars: Option<Xbars>) -> Option<u64> {
    // An xbar without an identity gets one that no GUID can be, as no GUID begins with zeros.
    let made_up = || tag.or(Some(index as u64 + 1));
    match xbars {
        None => tag,
        Some(Xbars::Plain) => None,
        Some(Xbars::Tagged) => made_up(),
        Some(Xbars::Mixed) => index.is_multiple_of(2).then(made_up).flatten(),
    }
}

fn used_ports(fabric: &Fabric, xbar: u32) -> Vec<u8> {
    let hosts = fabric.map.hosts.iter().filter_map(|host| host.at);
    let cables = fabric.map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let mut ports: Vec<u8> = hosts.chain(cables).filter(|at| at.xbar == xbar).map(|at| at.port).collect();
    ports.sort_unstable();
    ports
}

/// Makes unique names that are safe in shells and file systems.
#[derive(Debug, Default)]
struct Slugs {
    taken: BTreeSet<String>,
}

impl Slugs {
    fn make(&mut self, name: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let plain: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
        let mut slug = plain.clone();
        let mut nth = 1;
        while slug.is_empty() || !self.taken.insert(slug.clone()) {
            nth += 1;
            slug = format!("{plain}_{nth}");
        }
        slug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_and_cable_is_in_the_plan() {
        let fabric = formats::resolve("clos:hosts=8,ports=4").unwrap();
        let text = plan(&fabric, Some(Xbars::Mixed), false);
        let count = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).count();
        assert_eq!((count("host "), count("xbar ")), (8, 6));
        assert_eq!(count("cable "), 8 + fabric.map.cables.len());
        let tags: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("xbar "))
            .filter_map(|line| Some(line.split(' ').nth(4)? == "-"))
            .collect();
        assert_eq!(tags, [false, true, false, true, false, true]);
    }

    #[test]
    fn a_host_and_the_xbar_that_it_has_for_itself_become_a_node() {
        let ring = plan(&formats::resolve("ring:n=3,hosts=1").unwrap(), None, true);
        let expected = "node h1 02:00:00:00:00:01 1 h1\nwithin h1 xbar1\n\
                        node h2 02:00:00:00:00:02 1 h2\nwithin h2 xbar2\n\
                        node h3 02:00:00:00:00:03 1 h3\nwithin h3 xbar3\n\
                        cable h1 p1 h2 p2\ncable h1 p2 h3 p1\ncable h2 p1 h3 p2\n";
        assert_eq!(ring, expected);
        let clos = plan(&formats::resolve("clos:hosts=8,ports=4").unwrap(), None, true);
        assert!(!clos.contains("node"), "each leaf has two hosts:\n{clos}");
    }

    #[test]
    fn slugs_are_harmless_and_unique() {
        let mut slugs = Slugs::default();
        let made = ["a b", "a/b", "a_b", "", "S-0002c9"].map(|name| slugs.make(name));
        assert_eq!(made, ["a_b", "a_b_2", "a_b_3", "_2", "S-0002c9"]);
    }
}
