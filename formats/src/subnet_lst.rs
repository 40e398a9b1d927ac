//! `opensm-subnet.lst`, and the `.lst` of ibdiagnet: a line for each end of a cable.
//!
//! `{ SW Ports:04 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. DevID:.. Rev:.. {leaf1} LID:0002 PN:01 } { CA ..
//! } PHY=4x LOG=ACT SPD=2.5`: both ends in braces, numbers hexadecimal but for the width and what a lane signals
//! in Gb/s. OpenSM marks the adapter that it runs at `CA-SM`.

use mapper_proto::map::{Fabric, LaneRate, LinkSpeed};

use super::draft::Draft;
use super::link_list::{LinkList, ListedPort, Role};
use super::{Malformed, diagnostics};

/// Whether a line is one of a cable.
pub(super) fn begins(line: &str) -> bool {
    let inside = line.strip_prefix('{').and_then(|rest| rest.split_ascii_whitespace().next());
    inside.and_then(Role::of_name).is_some()
}

/// The fabric in a text.
pub(super) fn parse(text: &str) -> Result<Fabric, Malformed> {
    let mut draft = Draft::default();
    let mut list = LinkList::default();
    for (line, content) in diagnostics::taken_out(text, &mut draft) {
        let content = content.trim();
        if !content.is_empty() && !content.starts_with('#') {
            cable(&mut list, &mut draft, line, content)?;
        }
    }
    list.finish(draft)
}

fn cable(list: &mut LinkList, draft: &mut Draft, line: usize, content: &str) -> Result<(), Malformed> {
    let expected = || {
        let example = "`{ SW Ports:24 .. NodeGUID:.. PortGUID:.. {description} LID:0002 PN:01 } { CA .. } PHY=4x LOG=ACT SPD=5`";
        Malformed::at(line, format!("expected a cable: {example}"))
    };
    let (from, rest) = end(content).ok_or_else(expected)?;
    let (to, facts) = end(rest).ok_or_else(expected)?;
    let fact = |key: &str| facts.split_ascii_whitespace().find_map(|word| word.strip_prefix(key));
    if fact("LOG=") == Some("DWN") {
        list.port(line, &from)?;
        list.port(line, &to)?;
        draft.leave_out(line, "a cable that is down (LOG=DWN)");
        return Ok(());
    }
    let rate = fact("SPD=").and_then(|rate| LaneRate::of_signalled_gbps(rate).or(LaneRate::of_name(rate)));
    let speed = rate.and_then(|rate| LinkSpeed::of_lanes(fact("PHY=")?, rate));
    list.link(line, [&from, &to], speed)
}

/// One end in its braces, and what stands behind it.
///
/// The description stands in braces of its own and may hold braces: it ends where a LID and a port follow.
fn end(text: &str) -> Option<(ListedPort<'_>, &str)> {
    let inside = text.trim_start().strip_prefix('{')?;
    let (facts, rest) = inside.split_once('{')?;
    let (description, rest) = rest.split_once("} LID:")?;
    let (lid, rest) = rest.split_once(" PN:")?;
    let (port, rest) = rest.split_once('}')?;
    let fact = |key: &str| facts.split_ascii_whitespace().find_map(|word| word.strip_prefix(key));
    let guid = |key: &str| u64::from_str_radix(fact(key)?, 16).ok();
    let role = Role::of_name(facts.split_ascii_whitespace().next()?)?;
    let node_guid = guid("NodeGUID:")?;
    let listed = ListedPort {
        role,
        key: node_guid,
        node_guid: Some(node_guid),
        port_guid: guid("PortGUID:").filter(|_| role != Role::Switch),
        system_guid: guid("SystemGUID:").filter(|&guid| guid != 0),
        ports: Some(u8::from_str_radix(fact("Ports:")?, 16).ok()?),
        port: u8::from_str_radix(port.trim(), 16).ok()?,
        lid: u16::from_str_radix(lid.trim(), 16).ok()?,
        description,
    };
    Some((listed, rest))
}
