//! A list of cables for people who pull them, and for spreadsheets.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_fabric::names::Names;
use mapper_proto::map::{Cable, Fabric};

use crate::formats::tiers::tiers;

/// The columns, which [`super::parse`] reads.
const COLUMNS: [&str; 7] = ["device a", "port a", "type a", "device b", "port b", "type b", "class"];

/// All cables of a fabric: a line each, those of hosts first, in the order of hosts and of cables. Cables of one class join the
/// same tiers, so in most halls one length does for them; comments at the end say how many each class has.
pub(in crate::formats) fn write(fabric: &Fabric) -> String {
    let names = Names::of(fabric);
    let mut rows: Vec<[String; 7]> = vec![COLUMNS.map(str::to_owned)];
    let port_of_host =
        |host: usize| fabric.hosts.get(host).map_or(1, |label| label.node_port.max(1)).to_string();
    let host_end = |host: usize| [names.host(host as u32), port_of_host(host), "host".to_owned()];
    let xbar_end =
        |at: mapper_proto::map::PortRef| [names.xbar(at.xbar), at.port.to_string(), "switch".to_owned()];
    let tier_of = tiers_of_xbars(fabric);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut row =
        |[device_a, port_a, type_a]: [String; 3], [device_b, port_b, type_b]: [String; 3], class: String| {
            *counts.entry(class.clone()).or_default() += 1;
            rows.push([device_a, port_a, type_a, device_b, port_b, type_b, class]);
        };
    for (number, host) in fabric.map.hosts.iter().enumerate() {
        if let Some(at) = host.at {
            row(host_end(number), xbar_end(at), format!("host to tier {}", tier_of[at.xbar as usize]));
        }
    }
    if let Some([a, b]) = fabric.face_to_face() {
        row(host_end(a), host_end(b), "host to host".to_owned());
    }
    for cable in &fabric.map.cables {
        row(xbar_end(cable.a), xbar_end(cable.b), class(&tier_of, *cable));
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        // Writing to memory never fails, as all rows are as long.
        let _infallible = writer.write_record(&row);
    }
    let mut text = String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default();
    for (class, count) in counts {
        let _infallible = writeln!(text, "# {count} {class}");
    }
    text
}

/// The tier of each xbar, counted from 1.
fn tiers_of_xbars(fabric: &Fabric) -> Vec<usize> {
    let mut tier_of = vec![1; fabric.map.xbars.len()];
    for (tier, row) in (1..).zip(tiers(&fabric.map)) {
        row.into_iter().for_each(|xbar| tier_of[xbar] = tier);
    }
    tier_of
}

fn class(tier_of: &[usize], cable: Cable) -> String {
    let [one, other] = [cable.a, cable.b].map(|end| tier_of[end.xbar as usize]);
    match one == other {
        true => format!("within tier {one}"),
        false => format!("tier {} to tier {}", one.min(other), one.max(other)),
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    #[test]
    fn cables_of_one_length_have_one_class_and_are_counted() {
        let text = super::write(&generate("clos:hosts=128,ports=8").unwrap());
        let totals: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(totals, ["# 128 host to tier 1", "# 128 tier 1 to tier 2", "# 128 tier 2 to tier 3"]);
        assert!(text.lines().nth(1).unwrap().ends_with(",host to tier 1"), "{text}");
        let ring = super::write(&generate("ring:n=3").unwrap());
        assert!(ring.contains("# 3 within tier 1\n"), "{ring}");
    }
}
