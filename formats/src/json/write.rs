//! Writes fabrics as `mapper.map/1`.

use mapper_proto::map::{Cable, Fabric, Host, HostLabel, LinkSpeed, Map, PortRef, Xbar, XbarLabel};
use serde::Serialize;

use super::{CableJson, HostJson, HostLabelJson, MapJson, NamesByAddress, SCHEMA, VersionJson, XbarJson};

fn hex(number: u64) -> String {
    format!("{number:#018x}")
}

/// A map that agents explored as JSON, with the names that are known.
pub fn map_to_json(map: &Map, names: &NamesByAddress) -> MapJson {
    fabric_to_json(&names.label(map))
}

/// A fabric as JSON.
pub fn fabric_to_json(fabric: &Fabric) -> MapJson {
    let map = &fabric.map;
    let id = |xbar: u32| fabric.xbars[xbar as usize].name.clone();
    let end = |end: PortRef| (id(end.xbar), end.port);
    let speed = |end: PortRef| fabric.link_speeds.get(&end).map(LinkSpeed::to_string);
    let host = |(host, label): (&Host, &HostLabel)| HostJson {
        mac: host.mac.to_string(),
        name: Some(label.name.clone()),
        level: host.level,
        host_type: host.host_type,
        xbar: host.at.map(|at| id(at.xbar)),
        port: host.at.map(|at| at.port),
        speed: host.at.and_then(speed),
        label: HostLabelJson {
            description: label.description.clone(),
            guid: label.guid.map(hex),
            port_guid: label.port_guid.map(hex),
            system_guid: label.system_guid.map(hex),
            node_port: Some(label.node_port).filter(|&port| port != 1),
            node_ports: Some(label.node_ports).filter(|&ports| ports != 1),
            lid: label.lid,
            lmc: Some(label.lmc).filter(|&lmc| lmc != 0),
            cabled: label.uncabled.then_some(false),
        },
    };
    let xbar = |(xbar, label): (&Xbar, &XbarLabel)| XbarJson {
        id: label.name.clone(),
        ports: xbar.ports,
        tag: xbar.tag.map(hex),
        ports_known: xbar.ports_known,
        description: label.description.clone(),
        guid: label.guid.map(hex),
        system_guid: label.system_guid.map(hex),
        lid: label.lid,
    };
    let cable = |cable: &Cable| CableJson { a: end(cable.a), b: end(cable.b), speed: speed(cable.a) };
    MapJson {
        schema: SCHEMA.to_owned(),
        version: VersionJson { mac: map.version.mac.to_string(), counter: map.version.counter },
        hosts: map.hosts.iter().zip(&fabric.hosts).map(host).collect(),
        xbars: map.xbars.iter().zip(&fabric.xbars).map(xbar).collect(),
        cables: map.cables.iter().map(cable).collect(),
    }
}

/// The fabric as text: one host, xbar or cable a line.
pub(crate) fn write(fabric: &Fabric) -> String {
    fabric_to_json(fabric).to_string()
}

impl std::fmt::Display for MapJson {
    /// JSON with one host, xbar or cable a line, so that maps can be compared line by line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = |value: serde_json::Result<String>| value.map_err(|_| std::fmt::Error);
        writeln!(f, "{{\n  \"schema\": {},", line(serde_json::to_string(&self.schema))?)?;
        write!(f, "  \"version\": {}", line(serde_json::to_string(&self.version))?)?;
        write_list(f, "hosts", &self.hosts)?;
        write_list(f, "xbars", &self.xbars)?;
        write_list(f, "cables", &self.cables)?;
        f.write_str("\n}\n")
    }
}

fn write_list<T: Serialize>(f: &mut std::fmt::Formatter<'_>, key: &str, items: &[T]) -> std::fmt::Result {
    write!(f, ",\n  \"{key}\": [")?;
    for (i, item) in items.iter().enumerate() {
        let text = serde_json::to_string(item).map_err(|_| std::fmt::Error)?;
        write!(f, "{}\n    {text}", if i == 0 { "" } else { "," })?;
    }
    f.write_str(if items.is_empty() { "]" } else { "\n  ]" })
}
