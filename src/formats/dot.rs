//! Drawings for Graphviz.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::{Fabric, PortRef};

use super::layers::layers;

/// The fabric as an undirected graph: xbars are boxes with their cabled ports, hosts plain
/// text; xbars as far from hosts stand side by side.
pub(super) fn write(fabric: &Fabric) -> String {
    let map = &fabric.map;
    let mut ports: Vec<BTreeMap<u8, ()>> = vec![BTreeMap::new(); map.xbars.len()];
    let ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    for end in ends.chain(map.hosts.iter().filter_map(|host| host.at)) {
        ports[end.xbar as usize].insert(end.port, ());
    }
    let mut text = String::from(
        "graph fabric {\n  graph [rankdir=BT, ranksep=1.5];\n  node [shape=plaintext, fontname=Helvetica];\n",
    );
    for (index, (label, ports)) in fabric.xbars.iter().zip(&ports).enumerate() {
        let ports: Vec<_> = ports.keys().map(|port| format!("<p{port}>{port}")).collect();
        let name = escaped(&label.name, &['{', '}', '|', '<', '>', ' ']);
        let _ = writeln!(text, "  x{index} [shape=record, label=\"{{{name}|{{{}}}}}\"];", ports.join("|"));
    }
    for (index, label) in fabric.hosts.iter().enumerate() {
        let _ = writeln!(text, "  h{index} [label=\"{}\"];", escaped(&label.name, &[]));
    }
    for layer in layers(map) {
        let xbars: Vec<_> = layer.iter().map(|xbar| format!("x{xbar}")).collect();
        let _ = writeln!(text, "  {{ rank=same; {}; }}", xbars.join("; "));
    }
    let end = |end: PortRef| format!("x{}:p{}", end.xbar, end.port);
    for (index, host) in map.hosts.iter().enumerate() {
        if let Some(at) = host.at {
            let _ = writeln!(text, "  h{index} -- {};", end(at));
        }
    }
    if map.xbars.is_empty() && map.hosts.len() == 2 {
        text += "  h0 -- h1;\n";
    }
    for cable in &map.cables {
        let _ = writeln!(text, "  {} -- {};", end(cable.a), end(cable.b));
    }
    text + "}\n"
}

/// A text that can stand in quotes, with `special` characters taken as they are.
fn escaped(text: &str, special: &[char]) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '"' | '\\') || special.contains(&c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
