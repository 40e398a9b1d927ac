//! Fabrics that are the same in different forms, and what is reported of fabrics that differ.

use mapper_fabric::generate;
use mapper_formats::json;
use mapper_formats::{FileFormat, parse, write};
use mapper_proto::Mac;
use mapper_proto::map::PortRef;

use super::*;

fn clos() -> Fabric {
    generate("clos:hosts=8,ports=4").unwrap()
}

/// The map as an agent would find it. It has no names, hosts and plain xbars are in another order, and ports
/// are known up to an offset only.
fn explored(fabric: &Fabric) -> Fabric {
    let mut map = fabric.map.clone();
    let last = map.xbars.len() as u32 - 1;
    let turn =
        |end: &mut PortRef| *end = PortRef { xbar: last - end.xbar, port: end.port + (end.xbar % 3) as u8 };
    map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(turn);
    for cable in &mut map.cables {
        turn(&mut cable.a);
        turn(&mut cable.b);
        *cable = mapper_proto::map::Cable::new(cable.a, cable.b);
    }
    map.cables.sort_unstable();
    map.hosts.reverse();
    for xbar in &mut map.xbars {
        (xbar.tag, xbar.ports_known) = (None, false);
    }
    json::NamesByAddress::default().label(&map)
}

#[test]
fn a_fabric_is_like_itself_in_any_guise() {
    assert_eq!(between(&clos(), &clos()).to_string(), "no difference\n");
    let gm = parse("gm", &write(&clos(), FileFormat::GmMap)).unwrap();
    assert_eq!(between(&clos(), &gm).to_string(), "no difference\n", "ports count from 0");
    assert_eq!(between(&gm, &clos()).to_string(), "no difference\n", "ports count from 1");
    for spec in ["clos:hosts=8,ports=4", "torus:x=3,y=4,hosts=1", "clos:hosts=128,ports=16"] {
        let planned = generate(spec).unwrap();
        assert_eq!(between(&planned, &explored(&planned)).to_string(), "no difference\n", "{spec}");
    }
}

#[test]
fn an_explored_map_is_the_same_in_every_format() {
    for (spec, tagged) in [("clos:hosts=8,ports=4", 0), ("now:subclusters=1", 2), ("torus:x=3,y=4", 3)] {
        let planned = generate(spec).unwrap();
        // In `found`, the ports of plain xbars count from 0. Other xbars keep their names, tags and ports.
        let mut found = planned.clone();
        let plain = |xbar: u32| tagged == 0 || !xbar.is_multiple_of(tagged);
        let lower = |end: &mut PortRef| end.port -= u8::from(plain(end.xbar));
        found.map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(lower);
        for cable in &mut found.map.cables {
            lower(&mut cable.a);
            lower(&mut cable.b);
        }
        for (xbar, body) in (0..).zip(&mut found.map.xbars).filter(|(xbar, _)| plain(*xbar)) {
            body.tag = None;
            found.xbars[xbar as usize].name = format!("x{}", xbar + 1);
        }
        for format in [FileFormat::Ibnetdiscover, FileFormat::GmMap, FileFormat::Json] {
            let written = parse("file", &write(&found, format)).unwrap();
            for before in [&planned, &found] {
                let text = between(before, &written).to_string();
                assert_eq!(text, "no difference\n", "{spec} {format:?}");
            }
            let mut cut = written;
            cut.map.cables.remove(1);
            assert_eq!(between(&planned, &cut).to_string().lines().count(), 1, "{spec} {format:?}");
        }
    }
}

#[test]
fn each_cable_that_is_missing_added_or_moved_is_named() {
    let mut found = clos();
    found.map.cables.remove(0);
    assert_eq!(between(&clos(), &found).to_string(), "missing cable  leaf1:3 - spine1:1\n");
    assert_eq!(between(&found, &clos()).to_string(), "added cable    leaf1:3 - spine1:1\n");
    let mut found = clos();
    found.map.hosts.swap(1, 2);
    found.hosts.swap(1, 2);
    assert!(between(&clos(), &found).is_empty(), "order is no difference");
}

#[test]
fn what_moved_is_told_by_what_stayed() {
    let planned = generate("clos:hosts=128,ports=16").unwrap();
    let mut found = planned.clone();
    (found.map.hosts[0].at, found.map.hosts[127].at) = (found.map.hosts[127].at, found.map.hosts[0].at);
    found.map.cables.remove(0);
    let expected = "missing cable  leaf1:9 - spine1:1\n\
                    moved cable    h1 - leaf1:1, now h1 - leaf16:8\n\
                    moved cable    h128 - leaf16:8, now h128 - leaf1:1\n";
    assert_eq!(between(&planned, &found).to_string(), expected);
    assert_eq!(between(&planned, &explored(&found)).to_string(), expected);
}

#[test]
fn nodes_that_come_go_or_change_are_named() {
    let mut found = clos();
    found.hosts[7].name = "new".to_owned();
    found.map.hosts[7].mac = Mac::from_position(99);
    found.map.xbars[5].ports = 8;
    let difference = between(&clos(), &found);
    assert_eq!(
        difference.to_string(),
        "missing node   h8\nadded node     h8 (new)\nresized xbar   spine2: 4 ports before, 8 now\n\
         moved cable    h8 - leaf4:2, now h8 (new) - leaf4:2\n",
        "a host of the same description is another one"
    );
    let json = difference.json();
    assert_eq!((json["schema"].as_str(), json["same"].as_bool()), (Some("mapper.diff/1"), Some(false)));
    assert_eq!(json["moved"][0]["to"]["a"], json!(["new", null]));
}

/// The fabric as ibnetdiscover would find it. All ids and addresses differ, nodes are in another order, and
/// unless `described`, descriptions differ too.
fn built(planned: &Fabric, described: bool) -> Fabric {
    let mut found = planned.clone();
    let count = found.map.xbars.len() as u32;
    let turn = |end: &mut PortRef| end.xbar = (end.xbar + count / 3) % count;
    found.map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(turn);
    for cable in &mut found.map.cables {
        turn(&mut cable.a);
        turn(&mut cable.b);
        *cable = mapper_proto::map::Cable::new(cable.a, cable.b);
    }
    found.map.xbars.rotate_right(count as usize / 3);
    found.xbars.rotate_right(count as usize / 3);
    found.map.hosts.reverse();
    found.hosts.reverse();
    for (index, (label, xbar)) in found.xbars.iter_mut().zip(&mut found.map.xbars).enumerate() {
        label.name = format!("S-{index:016x}");
        xbar.tag = Some(0xe41d_2d03_0000_0000 + index as u64);
        if !described {
            label.description = "SwitchX".to_owned();
        }
    }
    for (index, (label, host)) in found.hosts.iter_mut().zip(&mut found.map.hosts).enumerate() {
        label.name = format!("H-{index:016x}");
        host.mac = Mac::from_position(0x10_0000 + index as u32);
        if !described {
            label.description = format!("node{index:03} HCA-1");
        }
    }
    found
}

const SPECS: [&str; 5] = [
    "clos:hosts=32,ports=8",
    "ring:n=5,hosts=2",
    "torus:x=4,y=3,z=3,hosts=1",
    "dragonfly:a=4,p=2,h=2",
    "now",
];

#[test]
fn a_plan_and_what_was_built_of_it_match_whatever_the_ids() {
    for spec in SPECS {
        let planned = generate(spec).unwrap();
        for (described, by) in [(true, "descriptions"), (false, "structure")] {
            let difference = between(&planned, &built(&planned, described));
            assert_eq!((difference.len(), difference.matched_by.name()), (0, by), "{spec}: {difference}");
        }
    }
}

#[test]
fn one_cable_that_is_not_as_planned_is_one_difference_whatever_the_ids() {
    for spec in SPECS {
        let planned = generate(spec).unwrap();
        for described in [true, false] {
            let mut cut = planned.clone();
            let lost = cut.map.cables.remove(planned.map.cables.len() / 2);
            let difference = between(&planned, &built(&cut, described));
            assert_eq!((difference.len(), difference.missing.len()), (1, 1), "{spec}: {difference}");
            if described {
                let end = |end: PortRef| format!("{}:{}", planned.xbars[end.xbar as usize].name, end.port);
                let text = difference.to_string();
                assert!(text.contains(&end(lost.a)) && text.contains(&end(lost.b)), "{text}");
            }
            let difference = between(&cut, &built(&planned, described));
            assert_eq!((difference.len(), difference.added.len()), (1, 1), "{spec}: {difference}");
        }
    }
}

#[test]
fn what_is_only_there_is_called_by_its_description() {
    let planned = clos();
    let mut found = built(&planned, true);
    let host = found.hosts.iter().position(|label| label.description == "h8").unwrap();
    found.hosts[host].description = "guest".to_owned();
    let difference = between(&planned, &found);
    let id = found.hosts[host].name.clone();
    assert_eq!(
        difference.to_string(),
        "matched by descriptions: ids of the one are not in the other\n\
         missing node   h8\nadded node     guest\nmoved cable    h8 - leaf4:2, now guest - leaf4:2\n"
    );
    let json = difference.json();
    assert_eq!((&json["added_nodes"], &json["matched_by"]), (&json!([id]), &json!("descriptions")));
    assert_eq!(json["moved"][0]["to"]["a"], json!([id, null]));
}
