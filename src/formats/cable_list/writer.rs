//! A list of cables for people who pull them, and for spreadsheets.

use mapper_fabric::names::Names;
use mapper_proto::map::Fabric;

/// The columns, which [`super::parse`] reads.
const COLUMNS: [&str; 6] = ["device a", "port a", "type a", "device b", "port b", "type b"];

/// All cables of a fabric: a line each, those of hosts first, in the order of hosts and of cables.
pub(in crate::formats) fn write(fabric: &Fabric) -> String {
    let names = Names::of(fabric);
    let mut rows: Vec<[String; 6]> = vec![COLUMNS.map(str::to_owned)];
    let port_of_host =
        |host: usize| fabric.hosts.get(host).map_or(1, |label| label.node_port.max(1)).to_string();
    let host_end = |host: usize| [names.host(host as u32), port_of_host(host), "host".to_owned()];
    let xbar_end =
        |at: mapper_proto::map::PortRef| [names.xbar(at.xbar), at.port.to_string(), "switch".to_owned()];
    let mut row = |[device_a, port_a, type_a]: [String; 3], [device_b, port_b, type_b]: [String; 3]| {
        rows.push([device_a, port_a, type_a, device_b, port_b, type_b]);
    };
    for (number, host) in fabric.map.hosts.iter().enumerate() {
        if let Some(at) = host.at {
            row(host_end(number), xbar_end(at));
        }
    }
    if let Some([a, b]) = fabric.face_to_face() {
        row(host_end(a), host_end(b));
    }
    for cable in &fabric.map.cables {
        row(xbar_end(cable.a), xbar_end(cable.b));
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        // Writing to memory never fails, as all rows are as long.
        let _infallible = writer.write_record(&row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
