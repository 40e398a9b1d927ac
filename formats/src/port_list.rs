//! What `ibnetdiscover -p` prints: a line for each port, with what it is cabled to.
//!
//! `SW     2  1 0x0200000000000001 4x SDR - CA     1  1 0x0000020000000002 ( 'leaf1' - 'h1' )`: kind, LID, port
//! and the port's GUID, width and speed, the same of the other end, and both descriptions. A port without a cable
//! ends after its speed, with one description. Adapters go by their ports' GUIDs, as nothing tells which ports
//! are one adapter's.

use mapper_proto::map::{Fabric, LaneRate, LinkSpeed};

use super::draft::Draft;
use super::link_list::{LinkList, ListedPort, Role};
use super::{Malformed, diagnostics};

/// Whether a line is one of a port.
pub(super) fn begins(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next().and_then(Role::of_name).is_some()
        && words.next().is_some_and(is_number)
        && words.next().is_some_and(is_number)
        && words.next().is_some_and(|word| word.starts_with("0x"))
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit())
}

/// The fabric in a text.
pub(super) fn parse(text: &str) -> Result<Fabric, Malformed> {
    let mut draft = Draft::default();
    let mut list = LinkList::default();
    for (line, content) in diagnostics::taken_out(text, &mut draft) {
        let content = content.trim();
        if !content.is_empty() && !content.starts_with('#') {
            port(&mut list, line, content)?;
        }
    }
    list.finish(draft)
}

fn port(list: &mut LinkList, line: usize, content: &str) -> Result<(), Malformed> {
    let expected = || {
        let example = "`SW 2 1 0x0200000000000001 4x SDR - CA 1 1 0x0000020000000002 ( 'leaf1' - 'h1' )`";
        Malformed::at(line, format!("expected a port as ibnetdiscover -p prints it: {example}"))
    };
    let (facts, descriptions) = content.split_at(content.find(['(', '\'']).unwrap_or(content.len()));
    let mut words = facts.split_ascii_whitespace();
    let from = end(&mut words).ok_or_else(expected)?;
    let (lanes, rate) = (words.next().ok_or_else(expected)?, words.next().ok_or_else(expected)?);
    let speed = LaneRate::of_name(rate).and_then(|rate| LinkSpeed::of_lanes(lanes, rate));
    if words.next().is_none() {
        let description = descriptions.trim_matches('\'');
        list.port(line, &ListedPort { description, ..from })?;
        return Ok(());
    }
    let to = end(&mut words).ok_or_else(expected)?;
    let descriptions = descriptions.trim_start_matches(['(', ' ']).trim_end_matches([')', ' ']);
    let (here, there) = descriptions.split_once("' - '").unwrap_or((descriptions, ""));
    let from = ListedPort { description: here.strip_prefix('\'').unwrap_or(here), ..from };
    let to = ListedPort { description: there.strip_suffix('\'').unwrap_or(there), ..to };
    list.link(line, [&from, &to], speed)
}

/// Kind, LID, port and GUID.
fn end<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<ListedPort<'static>> {
    let role = Role::of_name(words.next()?)?;
    let lid = words.next()?.parse().ok()?;
    let port = words.next()?.parse().ok()?;
    let guid = words.next()?.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())?;
    let is_switch = role == Role::Switch;
    Some(ListedPort {
        role,
        key: guid,
        node_guid: is_switch.then_some(guid),
        port_guid: (!is_switch).then_some(guid),
        system_guid: None,
        ports: None,
        port,
        lid,
        description: "",
    })
}
