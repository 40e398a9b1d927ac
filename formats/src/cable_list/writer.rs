//! A list of cables for people who pull them, and for spreadsheets.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_fabric::names::Names;
use mapper_proto::map::{Cable, Fabric};

use super::racks::{Rack, Racks};
use crate::tiers::tiers;

/// The columns, which [`super::parse`] reads.
const COLUMNS: [&str; 7] = ["device a", "port a", "type a", "device b", "port b", "type b", "class"];

/// All cables of a fabric: a line each, those of hosts first, in the order of hosts and of cables. Cables of one class are about as
/// long: where names tell racks, they lead as many racks far; else they join the same tiers, so that in most halls one length does
/// for them. Comments at the end say how many each class has.
pub(crate) fn write(fabric: &Fabric) -> String {
    let names = Names::of(fabric);
    let mut rows: Vec<[String; 7]> = vec![COLUMNS.map(str::to_owned)];
    let port_of_host =
        |host: usize| fabric.hosts.get(host).map_or(1, |label| label.node_port.max(1)).to_string();
    let host_end = |host: usize| [names.host(host as u32), port_of_host(host), "host".to_owned()];
    let xbar_end =
        |at: mapper_proto::map::PortRef| [names.xbar(at.xbar), at.port.to_string(), "switch".to_owned()];
    let tier_of = tiers_of_xbars(fabric);
    let racks = Racks::of(fabric);
    let by_racks = |one: &Option<Rack>, other: &Option<Rack>| Some(one.as_ref()?.class(other.as_ref()?));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut row =
        |[device_a, port_a, type_a]: [String; 3], [device_b, port_b, type_b]: [String; 3], class: String| {
            *counts.entry(class.clone()).or_default() += 1;
            rows.push([device_a, port_a, type_a, device_b, port_b, type_b, class]);
        };
    for (number, host) in fabric.map.hosts.iter().enumerate() {
        if let Some(at) = host.at {
            let xbar = at.xbar as usize;
            let class = by_racks(&racks.hosts[number], &racks.xbars[xbar]);
            row(
                host_end(number),
                xbar_end(at),
                class.unwrap_or_else(|| format!("host to tier {}", tier_of[xbar])),
            );
        }
    }
    if let Some([a, b]) = fabric.face_to_face() {
        row(host_end(a), host_end(b), "host to host".to_owned());
    }
    for cable in &fabric.map.cables {
        let [one, other] = [cable.a, cable.b].map(|end| &racks.xbars[end.xbar as usize]);
        let class = by_racks(one, other).unwrap_or_else(|| by_tiers(&tier_of, *cable));
        row(xbar_end(cable.a), xbar_end(cable.b), class);
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

fn by_tiers(tier_of: &[usize], cable: Cable) -> String {
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
        let mut named = generate("clos:hosts=8,ports=4").unwrap();
        for (number, label) in named.hosts.iter_mut().enumerate() {
            label.description = format!("a{:02}n{} mlx5_0", number / 2 + 1, number % 2 + 1);
        }
        for (number, label) in named.xbars.iter_mut().enumerate().take(4) {
            label.description = format!("a{:02}-leaf1", number + 1);
        }
        named.xbars[4].description = "a02-spine1".to_owned();
        let text = super::write(&named);
        let totals: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        let apart = ["# 2 1 rack apart", "# 1 2 racks apart", "# 4 tier 1 to tier 2", "# 9 within a rack"];
        assert_eq!(totals, apart, "the spine whose name tells no rack has a tier: {text}");
        let ring = super::write(&generate("ring:n=3").unwrap());
        assert!(ring.contains("# 3 within tier 1\n"), "{ring}");
    }
}
