//! What of a map hangs together with one of its hosts: what an exploration from there can know at all.

use std::collections::BTreeSet;

use mapper_proto::map::{Cable, Contested, Host, Map, PortRef, host_type};

/// All that is connected to the host with this index, as a map of its own. A phantom is connected to nothing.
///
/// # Panics
/// If there is no such host.
pub(crate) fn component_of(map: &Map, host: usize) -> Map {
    let start = &map.hosts[host];
    let Some(at) = start.at else {
        let is_phantom = |host: &Host| host.host_type == host_type::PHANTOM;
        let is_face_to_face = map.xbars.is_empty() && !is_phantom(start);
        let others = |other: &Host| is_face_to_face && !is_phantom(other);
        let hosts = (0..).zip(&map.hosts).filter(|&(index, other)| index == host || others(other));
        let hosts = hosts.filter(|(_, other)| other.at.is_none()).map(|(_, other)| *other).collect();
        return Map { version: map.version, hosts, ..Map::default() };
    };
    let xbars: Vec<u32> = xbars_with(map, at.xbar).into_iter().collect();
    let moved = |port: PortRef| {
        let xbar = xbars.binary_search(&port.xbar).ok()? as u32;
        Some(PortRef { xbar, ..port })
    };
    let hosts = map.hosts.iter().filter_map(|host| Some(Host { at: Some(moved(host.at?)?), ..*host }));
    let cables = map.cables.iter().filter_map(|cable| Some(Cable::new(moved(cable.a)?, moved(cable.b)?)));
    let contested = map.contested.iter().filter_map(|it| Some(Contested { at: moved(it.at)?, ..*it }));
    Map {
        version: map.version,
        hosts: hosts.collect(),
        cables: cables.collect(),
        contested: contested.collect(),
        xbars: xbars.iter().map(|&xbar| map.xbars[xbar as usize]).collect(),
        ..Map::default()
    }
}

/// The xbars that cables join with this one, and itself.
fn xbars_with(map: &Map, start: u32) -> BTreeSet<u32> {
    let mut neighbours = vec![Vec::new(); map.xbars.len()];
    for Cable { a, b } in &map.cables {
        neighbours[a.xbar as usize].push(b.xbar);
        neighbours[b.xbar as usize].push(a.xbar);
    }
    let (mut found, mut to_visit) = (BTreeSet::new(), vec![start]);
    while let Some(xbar) = to_visit.pop() {
        if found.insert(xbar) {
            to_visit.extend(&neighbours[xbar as usize]);
        }
    }
    found
}
