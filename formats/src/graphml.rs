//! GraphML, for programs that analyse and draw graphs. It is written only.

use std::fmt::Write;

use mapper_fabric::names::Names;
use mapper_proto::map::{Fabric, PortRef};

/// What nodes and edges say: the key, what it is of, and its type.
const KEYS: [(&str, &str, &str); 5] = [
    ("name", "node", "string"),
    ("kind", "node", "string"),
    ("ports", "node", "int"),
    ("port_a", "edge", "int"),
    ("port_b", "edge", "int"),
];

/// The fabric as an undirected graph. Nodes are `x0`, `h0` and so on; `kind` is `xbar` or `host`; an edge between xbars
/// has `port_a` at its source and `port_b` at its target, one from a host `port_b` alone.
pub(super) fn write(fabric: &Fabric) -> String {
    let names = Names::of(fabric);
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    // Writing to a String never fails.
    for (key, of, kind) in KEYS {
        let _infallible =
            writeln!(text, "  <key id=\"{key}\" for=\"{of}\" attr.name=\"{key}\" attr.type=\"{kind}\"/>");
    }
    text += "  <graph id=\"fabric\" edgedefault=\"undirected\">\n";
    for (number, xbar) in fabric.map.xbars.iter().enumerate() {
        let (name, ports) = (escaped(&names.xbar(number as u32)), xbar.ports);
        let data =
            format!("{}{}{}", said("name", &name), said("kind", "xbar"), said("ports", &ports.to_string()));
        let _infallible = writeln!(text, "    <node id=\"x{number}\">{data}</node>");
    }
    for number in 0..fabric.map.hosts.len() {
        let name = escaped(&names.host(number as u32));
        let data = format!("{}{}", said("name", &name), said("kind", "host"));
        let _infallible = writeln!(text, "    <node id=\"h{number}\">{data}</node>");
    }
    let xbar = |at: PortRef| format!("x{}", at.xbar);
    let mut edge = |source: String, target: String, data: String| {
        let _infallible = writeln!(text, "    <edge source=\"{source}\" target=\"{target}\">{data}</edge>");
    };
    for (number, host) in fabric.map.hosts.iter().enumerate() {
        if let Some(at) = host.at {
            edge(format!("h{number}"), xbar(at), said("port_b", &at.port.to_string()));
        }
    }
    if let Some([a, b]) = fabric.face_to_face() {
        edge(format!("h{a}"), format!("h{b}"), String::new());
    }
    for cable in &fabric.map.cables {
        let [a, b] =
            [("port_a", cable.a), ("port_b", cable.b)].map(|(key, at)| said(key, &at.port.to_string()));
        edge(xbar(cable.a), xbar(cable.b), a + &b);
    }
    text + "  </graph>\n</graphml>\n"
}

fn said(key: &str, value: &str) -> String {
    format!("<data key=\"{key}\">{value}</data>")
}

/// A text that can stand between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    #[test]
    fn every_node_and_cable_is_there_and_names_are_escaped() {
        let mut fabric = generate("clos:hosts=8,ports=4").unwrap();
        fabric.xbars[0].description = "<a & b>".to_owned();
        let text = super::write(&fabric);
        let count = |what: &str| text.matches(what).count();
        assert_eq!(count("<node "), fabric.map.hosts.len() + fabric.map.xbars.len());
        assert_eq!(count("<edge "), fabric.map.hosts.len() + fabric.map.cables.len());
        assert!(text.contains("&lt;a &amp; b&gt;") && !text.contains("<a &"), "{text}");
    }
}
