//! What ibnetdiscover prints and ibsim reads.
//!
//! A node is a header (`Switch 36 "id" # "description" base port 0 lid 4 lmc 0`; `Ca`, `Hca` and
//! `Rt` are machines), after lines with its GUIDs and before a line for each cabled port
//! (`[1](guid) "peer"[2] # ..`). Routers end routes in a subnet, so they are hosts here.
//!
//! Who wrote standard error into the file as well has its lines in between; they are passed over and told.

mod write;

pub(super) use write::write;

use std::collections::BTreeMap;

use mapper_proto::Mac;
use mapper_proto::map::{Fabric, HostLabel, LinkSpeed, Xbar, XbarLabel, host_type};

use super::draft::{Draft, HostNode, ListedInterface, ListedKind, ListedNode, tag_xbars};
use super::{Malformed, diagnostics};
use mapper_routing::tables::MAX_LMC;

/// GUIDs that stand before the node that they belong to.
#[derive(Clone, Copy, Default)]
struct Guids {
    node: Option<u64>,
    system: Option<u64>,
}

/// The fabric in a text.
pub(super) fn parse(text: &str) -> Result<Fabric, Malformed> {
    let mut draft = Draft::default();
    let mut guids = Guids::default();
    let lines = diagnostics::taken_out(text, &mut draft);
    for (line, content) in &lines {
        let (line, content) = (*line, content.trim());
        // `@` begins an alias of ibsim's, which names no cable.
        if content.is_empty() || content.starts_with(['#', '@']) || is_chassis(content) {
            continue;
        }
        if content.starts_with('[') {
            port(&mut draft, line, content)?;
        } else if content.contains('"') {
            draft.node(node(line, content, std::mem::take(&mut guids))?)?;
        } else if !assignment(&mut guids, line, content)? {
            return Err(Malformed::at(
                line,
                "expected a node (`Switch 36 \"id\"`, `Ca 1 \"id\"`), a port (`[1] \"id\"[2]`), \
                 `key=value`, or a comment",
            ));
        }
    }
    if draft.last().is_none() {
        return Err(Malformed::at(1, "there is no node in it; expected a fabric"));
    }
    draft.check_guids()?;
    let mut fabric = draft.finish()?;
    tag_xbars(&mut fabric);
    Ok(fabric)
}

/// Whether a line only groups nodes by chassis.
fn is_chassis(content: &str) -> bool {
    content.starts_with("Chassis ") || content.starts_with("Non-Chassis ")
}

/// Reads a line `key=value`, or ibsim's `key+offset`; false if it is neither. Keys without a
/// meaning here, and offsets, are passed over.
fn assignment(guids: &mut Guids, line: usize, content: &str) -> Result<bool, Malformed> {
    let Some((key, value)) = content.split_once(['=', '+']) else { return Ok(false) };
    let key = key.trim();
    if !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Ok(false);
    }
    let slot = match key {
        "switchguid" | "caguid" | "hcaguid" | "rtguid" => &mut guids.node,
        "sysimgguid" => &mut guids.system,
        _ => return Ok(true),
    };
    if content.contains('=') {
        let digits = value.split(['(', '#']).next().unwrap_or_default().trim();
        *slot = Some(guid(digits).ok_or_else(|| {
            let expected = "expected up to 16 hexadecimal digits after 0x";
            Malformed::at(line, format!("`{digits}` is no GUID; {expected}"))
        })?);
    }
    Ok(true)
}

fn guid(digits: &str) -> Option<u64> {
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let valid = digits.len() <= 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| valid)
}

/// A node's header.
fn node(line: usize, content: &str, guids: Guids) -> Result<ListedNode, Malformed> {
    let expected =
        || Malformed::at(line, "expected `Switch`, `Ca` or `Rt`, a number of ports, and an id in quotes");
    let (front, rest) = content.split_once('"').ok_or_else(expected)?;
    let (id, rest) = rest.split_once('"').ok_or_else(expected)?;
    let mut words = front.split_ascii_whitespace();
    let (Some(kind), Some(count), None) = (words.next(), words.next(), words.next()) else {
        return Err(expected());
    };
    let is_switch = match kind.to_ascii_lowercase().as_str() {
        "switch" => true,
        "ca" | "hca" | "rt" | "router" => false,
        _ => return Err(expected()),
    };
    let ports = count.parse::<u8>().ok().filter(|&ports| ports > 0).ok_or_else(|| {
        Malformed::at(line, format!("`{count}` is no number of ports; expected a number from 1 to 255"))
    })?;
    let comment = rest.split_once('#').map_or("", |(_, comment)| comment.trim());
    let (description, facts) = split_description(comment);
    // The id that ibnetdiscover makes is the GUID.
    let in_id = || id.split_once('-').filter(|(_, hex)| hex.len() == 16).and_then(|(_, hex)| guid(hex));
    let guid = guids.node.or_else(in_id);
    let node_kind = if is_switch {
        lmc(line, facts)?;
        let label = XbarLabel {
            description: description.to_owned(),
            guid,
            system_guid: guids.system,
            lid: lid(line, facts)?,
            ..Default::default()
        };
        ListedKind::Xbar(label, Xbar { ports, tag: None, ports_known: true })
    } else {
        let label = HostLabel {
            description: description.to_owned(),
            guid,
            system_guid: guids.system,
            node_port: 1,
            node_ports: ports,
            ..Default::default()
        };
        let host_type = host_type::INFINIBAND;
        ListedKind::Host(HostNode {
            label,
            host_type,
            mac: guid.map(Mac::from_u64),
            interfaces: BTreeMap::new(),
        })
    };
    Ok(ListedNode { line, name: id.to_owned(), ports: (1, ports), kind: node_kind })
}

/// The description, in quotes or not, and what follows it.
fn split_description(comment: &str) -> (&str, &str) {
    if let Some(rest) = comment.strip_prefix('"') {
        return rest.rsplit_once('"').unwrap_or((rest, ""));
    }
    let ends = [" enhanced port ", " base port ", " lid ", " lmc "];
    let end = ends.iter().filter_map(|end| comment.find(end)).min().unwrap_or(comment.len());
    comment.split_at(end)
}

/// What stands behind a word.
fn after<'a>(facts: &'a str, word: &str) -> Option<&'a str> {
    facts.split_ascii_whitespace().skip_while(|&found| found != word).nth(1)
}

/// The LID; 0 means none.
fn lid(line: usize, facts: &str) -> Result<Option<u16>, Malformed> {
    let Some(found) = after(facts, "lid") else { return Ok(None) };
    let expected = "expected one from 1 to 65535, or 0 for none";
    let lid: u16 =
        found.parse().map_err(|_| Malformed::at(line, format!("a LID of `{found}`; {expected}")))?;
    Ok(Some(lid).filter(|&lid| lid != 0))
}

/// The LID mask control; 0 where nothing is said of it.
fn lmc(line: usize, facts: &str) -> Result<u8, Malformed> {
    let Some(found) = after(facts, "lmc") else { return Ok(0) };
    found.parse().ok().filter(|&lmc| lmc <= MAX_LMC).ok_or_else(|| {
        let expected = format!("expected 0 to {MAX_LMC}, for 2^LMC addresses");
        Malformed::at(line, format!("an LMC of `{found}`; {expected}"))
    })
}

/// A port's line: `[1](guid) "peer"[2](guid) # lid 5 lmc 0 "description" lid 4 4xQDR`.
fn port(draft: &mut Draft, line: usize, content: &str) -> Result<(), Malformed> {
    let expected = || Malformed::at(line, "expected a port: `[1] \"id\"[2]`");
    let (front, rest) = content.split_once('"').ok_or_else(expected)?;
    let (peer, rest) = rest.split_once('"').ok_or_else(expected)?;
    let number = |text: &str| text.strip_prefix('[')?.split_once(']')?.0.trim().parse::<u64>().ok();
    let port = number(front).ok_or_else(expected)?;
    let rest = rest.trim_start();
    // ibsim takes a peer without a port to mean its port 1.
    let peer_port = if rest.starts_with('[') { number(rest).ok_or_else(expected)? } else { 1 };
    let port = draft.end(line, port, peer, peer_port)?;
    // The speed stands behind the description, which may hold anything.
    let facts = rest.rsplit_once('"').map_or(rest, |(_, facts)| facts);
    if let Some(speed) = facts.split_ascii_whitespace().find_map(|word| word.parse::<LinkSpeed>().ok()) {
        draft.link_speed(speed);
    }
    if let Some(ListedNode { kind: ListedKind::Host(host), .. }) = draft.last() {
        let own_guid = front.split_once('(').and_then(|(_, rest)| guid(rest.split_once(')')?.0.trim()));
        // The peer's LID and the cable's speed stand behind the quoted description.
        let comment = rest.split_once('#').map_or("", |(_, comment)| comment);
        let facts = comment.split('"').next().unwrap_or_default();
        let lmc = lmc(line, facts)?;
        // Without a quoted description the one LID may be that of the peer.
        let lid = if facts.contains("lmc") { lid(line, facts)? } else { None };
        host.interfaces.insert(port, ListedInterface { line, guid: own_guid, lid, lmc });
    }
    Ok(())
}
