//! Drawings for Graphviz.

use std::fmt::Write;

use mapper_proto::map::{Cable, Fabric};

use super::tiers::tiers;
use mapper_fabric::names::Names;

/// The fabric as an undirected graph: xbars are boxes, hosts plain text, and cables carry the
/// numbers of their ports. Xbars of one tier stand side by side, unless there is only one.
pub(super) fn write(fabric: &Fabric) -> String {
    let map = &fabric.map;
    let names = Names::of(fabric);
    let mut text = String::from(
        "graph fabric {\n  graph [rankdir=BT, ranksep=1.5];\n  node [fontname=Helvetica];\n  \
         edge [fontname=Helvetica, fontsize=8];\n",
    );
    for (index, (xbar, name)) in map.xbars.iter().zip(&names.xbars).enumerate() {
        let (name, ports) = (escaped(name), xbar.ports);
        let _ = writeln!(text, "  x{index} [shape=box, label=\"{name}\", tooltip=\"{ports} ports\"];");
    }
    for (index, (host, name)) in map.hosts.iter().zip(&names.hosts).enumerate() {
        let (name, mac) = (escaped(name), host.mac);
        let _ = writeln!(text, "  h{index} [shape=plaintext, label=\"{name}\", tooltip=\"{mac}\"];");
    }
    let tiers = tiers(map);
    for tier in tiers.iter().filter(|_| tiers.len() > 1) {
        let xbars: Vec<_> = tier.iter().map(|xbar| format!("x{xbar}")).collect();
        let _ = writeln!(text, "  {{ rank=same; {}; }}", xbars.join("; "));
    }
    for (index, host) in map.hosts.iter().enumerate() {
        if let Some(at) = host.at {
            let _ = writeln!(text, "  h{index} -- x{} [headlabel=\"{}\"];", at.xbar, at.port);
        }
    }
    if let Some([a, b]) = fabric.face_to_face() {
        let _ = writeln!(text, "  h{a} -- h{b};");
    }
    for Cable { a, b } in &map.cables {
        let labels = format!("taillabel=\"{}\", headlabel=\"{}\"", a.port, b.port);
        let _ = writeln!(text, "  x{} -- x{} [{labels}];", a.xbar, b.xbar);
    }
    text + "}\n"
}

/// A text that can stand in quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
