//! A line of such a file, read word by word.

use mapper_proto::map::PortRef;
use mapper_routing::Subnet;
use mapper_routing::engines::SubnetNode;

use super::nodes::Nodes;

/// Why a line says nothing.
pub(super) enum Problem {
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
    pub(super) fn describe(&self) -> String {
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
pub(super) struct Line<'a> {
    words: std::iter::Peekable<std::vec::IntoIter<&'a str>>,
    nodes: &'a Nodes<'a>,
}

impl<'a> Line<'a> {
    /// The line with this text, whose nodes are looked up among `nodes`.
    pub(super) fn new(text: &'a str, nodes: &'a Nodes<'a>) -> Self {
        Self { words: words(text).into_iter().peekable(), nodes }
    }

    /// Whether no word is left.
    pub(super) fn is_empty(&mut self) -> bool {
        self.words.peek().is_none()
    }

    /// Makes sure that no word is left.
    pub(super) fn end(&mut self) -> Result<(), Problem> {
        if self.is_empty() { Ok(()) } else { Err(Problem::Expected("nothing more on the line")) }
    }

    /// The node that the next word names, by its GUID or by name.
    pub(super) fn node(&mut self) -> Result<SubnetNode, Problem> {
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

    /// The xbar that the next word names.
    pub(super) fn xbar(&mut self) -> Result<u32, Problem> {
        match self.node()? {
            SubnetNode::Xbar(xbar) => Ok(xbar),
            SubnetNode::Host(_) => Err(Problem::NoXbar),
        }
    }

    /// The number that the next word is, which is at most `most`. `expected` says in the error what was expected.
    pub(super) fn number(&mut self, expected: &'static str, most: u64) -> Result<u64, Problem> {
        let word = self.words.next().and_then(number).filter(|&number| number <= most);
        word.ok_or(Problem::Expected(expected))
    }

    /// The port of an xbar whose number the next word is.
    pub(super) fn port(&mut self, subnet: &Subnet, xbar: u32) -> Result<PortRef, Problem> {
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
