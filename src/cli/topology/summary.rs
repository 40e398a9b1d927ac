//! Describes a fabric as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::{Fabric, PortRef};
use serde_json::{Value, json};

use mapper_fabric::names::Names;
use mapper_fabric::shape;
use mapper_fabric::wording::{first_of, plural};
use mapper_formats::tiers::tiers;

/// How wide a table may be, in characters.
pub(super) const WIDTH: usize = 110;

/// The numbers of hosts, xbars and cables, as a phrase.
pub(super) fn counts(fabric: &Fabric) -> String {
    let map = &fabric.map;
    format!(
        "{}, {}, {} between xbars ({} with hosts')",
        plural(map.hosts.len(), "host"),
        plural(map.xbars.len(), "xbar"),
        plural(map.cables.len(), "cable"),
        map.cables.len() + host_cables(fabric)
    )
}

/// How many cables have a host at one end or at both.
fn host_cables(fabric: &Fabric) -> usize {
    host_ports(fabric) + usize::from(fabric.face_to_face().is_some())
}

/// How many ports of xbars hosts are cabled to.
fn host_ports(fabric: &Fabric) -> usize {
    fabric.map.hosts.iter().filter(|host| host.at.is_some()).count()
}

fn ports(fabric: &Fabric) -> usize {
    fabric.map.xbars.iter().map(|xbar| usize::from(xbar.ports)).sum()
}

fn ports_in_use(fabric: &Fabric) -> usize {
    2 * fabric.map.cables.len() + host_ports(fabric)
}

/// The JSON `mapper.topology/1`.
pub(super) fn json(name: &str, fabric: &Fabric) -> Value {
    let map = &fabric.map;
    json!({
        "schema": "mapper.topology/1",
        "topology": name,
        "hosts": map.hosts.len(),
        "xbars": map.xbars.len(),
        "cables": map.cables.len(),
        "host_cables": host_cables(fabric),
        "ports": ports(fabric),
        "ports_in_use": ports_in_use(fabric),
        "tiers": tiers(map).iter().map(Vec::len).collect::<Vec<_>>(),
        "parts": shape::parts(fabric),
        "isolated_hosts": fabric.isolated().len(),
        "link_speeds": speeds(fabric).into_iter().collect::<BTreeMap<_, _>>(),
        "left_out": fabric.left_out,
    })
}

/// Describes the whole fabric: counts, tiers, and each xbar with its ports.
pub(super) fn text(name: &str, fabric: &Fabric) -> String {
    let map = &fabric.map;
    let mut text = format!("{name}: {}\n", counts(fabric));
    let tiers = tiers(map);
    for (height, tier) in tiers.iter().enumerate() {
        let tags = tier.iter().filter(|&&xbar| map.xbars[xbar].tag.is_some()).count();
        let place = match height {
            0 if host_cables(fabric) > 0 => "with hosts".to_owned(),
            0 => "without hosts".to_owned(),
            height => place_above(fabric, height, tier),
        };
        let _ = writeln!(
            text,
            "tier {}: {} {place}, {}, {}",
            height + 1,
            plural(tier.len(), "xbar"),
            sizes(fabric, tier),
            match tags {
                0 => "plain".to_owned(),
                tags if tags == tier.len() => "tagged".to_owned(),
                tags => format!("{tags} of them tagged"),
            }
        );
    }
    let _ = writeln!(text, "ports in use: {} of {}", ports_in_use(fabric), ports(fabric));
    let known = speeds(fabric);
    if !known.is_empty() {
        let said = known.iter().map(|(speed, count)| format!("{count} {speed}"));
        let _ = writeln!(text, "speeds: {}", said.collect::<Vec<_>>().join(", "));
    }
    let isolated = fabric.isolated();
    match shape::parts(fabric) - isolated.len() {
        0 | 1 => {}
        parts => drop(writeln!(text, "not connected: {parts} parts without a cable between them")),
    }
    let names = Names::of(fabric);
    let ends = port_table(fabric, &names);
    for xbar in tiers.concat() {
        text += &xbar_table(fabric, &names, xbar, &ends[xbar]);
    }
    if let Some([a, b]) = fabric.face_to_face() {
        let _ = writeln!(text, "\n{} and {} are cabled to each other", names.hosts[a], names.hosts[b]);
    }
    if !isolated.is_empty() {
        let shown: Vec<_> = isolated.iter().map(|&host| &names.hosts[host]).collect();
        let count = plural(isolated.len(), "host");
        let _ = writeln!(text, "\nisolated: {count} without a cable: {}", first_of(&shown, shown.len()));
    }
    if !fabric.left_out.is_empty() {
        text += "\nleft out of the file:\n";
        text.extend(fabric.left_out.iter().map(|what| format!("  {what}\n")));
    }
    text
}

/// Says where a tier above the leaves is, and how many service adapters it has.
fn place_above(fabric: &Fabric, height: usize, tier: &[usize]) -> String {
    let is_here = |at: PortRef| tier.binary_search(&(at.xbar as usize)).is_ok();
    let cables = plural(height, "cable");
    match fabric.map.hosts.iter().filter(|host| host.at.is_some_and(is_here)).count() {
        0 => format!("{cables} from those with hosts"),
        adapters => format!("{cables} above the leaves, with {}", plural(adapters, "service adapter")),
    }
}

/// How many cables there are of each speed, the slowest first, and of how many none is known if any is.
fn speeds(fabric: &Fabric) -> Vec<(String, usize)> {
    let cables = fabric.map.cables.iter().map(|cable| cable.a);
    let ends = cables.chain(fabric.map.hosts.iter().filter_map(|host| host.at));
    let mut counts: BTreeMap<(u32, String), usize> = BTreeMap::new();
    for end in ends {
        let speed = fabric.link_speeds.get(&end);
        let key = speed.map_or((0, "unknown".to_owned()), |speed| (speed.data_mbps(), speed.to_string()));
        *counts.entry(key).or_default() += 1;
    }
    match fabric.link_speeds.is_empty() {
        true => Vec::new(),
        false => counts.into_iter().map(|((_, speed), count)| (speed, count)).collect(),
    }
}

/// Describes how many ports the xbars of a tier have.
fn sizes(fabric: &Fabric, tier: &[usize]) -> String {
    let ports = || tier.iter().map(|&xbar| fabric.map.xbars[xbar].ports);
    match (ports().min(), ports().max()) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high} ports each"),
        (low, _) => format!("{} each", plural(low.unwrap_or(0), "port")),
    }
}

/// The name of what each port of each xbar leads to.
fn port_table(fabric: &Fabric, names: &Names) -> Vec<BTreeMap<u8, String>> {
    let map = &fabric.map;
    let mut ends = vec![BTreeMap::new(); map.xbars.len()];
    for cable in &map.cables {
        for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let name = &names.xbars[to.xbar as usize];
            ends[from.xbar as usize].insert(from.port, format!("{name}:{}", to.port));
        }
    }
    for (host, name) in map.hosts.iter().zip(&names.hosts) {
        if let Some(at) = host.at {
            ends[at.xbar as usize].insert(at.port, name.clone());
        }
    }
    ends
}

/// Describes an xbar and its ports, in as many columns as [`WIDTH`] allows.
fn xbar_table(fabric: &Fabric, names: &Names, index: usize, ends: &BTreeMap<u8, String>) -> String {
    let (xbar, label) = (&fabric.map.xbars[index], &fabric.xbars[index]);
    let mut text = format!("\n{}  {}", names.xbars[index], plural(xbar.ports, "port"));
    if let Some(tag) = xbar.tag {
        let _ = write!(text, ", tag {tag:#018x}");
    }
    if !xbar.ports_known {
        text += ", ports known up to an offset";
    }
    if !names.xbars[index].contains(&label.name) {
        let _ = write!(text, ", id {}", label.name);
    }
    let cells: Vec<String> = ends.iter().map(|(port, end)| format!("{port:>3} {end}")).collect();
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0) + 2;
    for (i, cell) in cells.iter().enumerate() {
        if i % (WIDTH / width).max(1) == 0 {
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        let _ = write!(text, "{cell:<width$}");
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}
