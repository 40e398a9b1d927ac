use std::path::{Path, PathBuf};

use mapper_fabric::generate;
use mapper_proto::map::Fabric;

use super::*;
use crate::{FormatError, Loaded};
use mapper_routing::{Far, Subnet};

/// Tables with shortest routes, by a search from each destination.
fn shortest(subnet: &Subnet) -> Tables {
    let topology = &subnet.topology;
    let mut tables = Tables::empty(topology.xbar_count(), subnet.destinations.slot_count());
    for to in 0..topology.xbar_count() as u32 {
        let mut towards = vec![None; topology.xbar_count()];
        let mut queue = std::collections::VecDeque::from([to]);
        while let Some(xbar) = queue.pop_front() {
            for channel in topology.channels_of(xbar) {
                let head = topology.head(channel);
                if head.xbar != to && towards[head.xbar as usize].is_none() {
                    towards[head.xbar as usize] = Some(head.port);
                    queue.push_back(head.xbar);
                }
            }
        }
        for slot in subnet.destinations.slots_of(to) {
            for (xbar, port) in (0..).zip(&towards) {
                tables.set_port(xbar, slot, port.unwrap_or(Tables::NONE));
            }
        }
        for &host in topology.hosts_of(to) {
            for at in 0..=254 {
                if topology.far(PortRef { xbar: to, port: at }) == Far::Host(host) {
                    subnet.destinations.slots_of_host(host).for_each(|slot| tables.set_port(to, slot, at));
                }
            }
        }
    }
    tables
}

fn written(fabric: &Fabric, subnet: &Subnet, tables: &Tables) -> Vec<u8> {
    let mut text = Vec::new();
    Dump::new(fabric, subnet).unwrap().write(&mut text, tables).unwrap();
    text
}

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn file(text: &[u8]) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.lfts");
    std::fs::write(&path, text).unwrap();
    File { _folder: folder, path }
}

fn load(text: &[u8], fabric: &Fabric, subnet: &Subnet) -> Result<Loaded<Tables>, FormatError> {
    read(&file(text).path, fabric, subnet)
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(name)
}

#[test]
fn what_is_written_is_read_again() {
    for (spec, lmc) in [("clos:hosts=8,ports=4", 0), ("torus:x=3,y=2,hosts=2", 2), ("now:subclusters=1", 0)] {
        let fabric = generate(spec).unwrap();
        let subnet = Subnet::new(&fabric, Some(lmc)).unwrap();
        let tables = shortest(&subnet);
        let text = written(&fabric, &subnet, &tables);
        let again = load(&text, &fabric, &subnet).unwrap();
        assert_eq!((again.found == tables, again.notes), (true, Vec::new()), "{spec}");
        assert_eq!(written(&fabric, &subnet, &again.found), text, "{spec}");
    }
}

#[test]
fn a_dump_of_opensm_is_read_and_written_byte_by_byte() {
    let fabric = crate::read_fabric(&data("opensm-clos8.net")).unwrap();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let loaded = read(&data("opensm-clos8.lfts"), &fabric, &subnet).unwrap();
    assert_eq!(loaded.notes, Vec::<String>::new());
    let dump = std::fs::read(data("opensm-clos8.lfts")).unwrap();
    assert_eq!(String::from_utf8(written(&fabric, &subnet, &loaded.found)), String::from_utf8(dump));
}

#[test]
fn ports_that_count_from_0_are_moved() {
    let mut fabric = generate("ring:n=3,hosts=1").unwrap();
    for end in fabric.map.cables.iter_mut().flat_map(|cable| [&mut cable.a, &mut cable.b]) {
        end.port -= 1;
    }
    fabric.map.hosts.iter_mut().for_each(|host| host.at.as_mut().unwrap().port -= 1);
    let subnet = Subnet::new(&fabric, None).unwrap();
    let tables = shortest(&subnet);
    let text = written(&fabric, &subnet, &tables);
    let other = generate("ring:n=3,hosts=1").unwrap();
    let other_subnet = Subnet::new(&other, None).unwrap();
    assert_eq!(text, written(&other, &other_subnet, &shortest(&other_subnet)));
    assert_eq!(load(&text, &fabric, &subnet).unwrap().found, tables);

    fabric.map.xbars[1].ports = 2;
    let subnet = Subnet::new(&fabric, None).unwrap();
    let error = Dump::new(&fabric, &subnet).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("xbar2 uses port 0 and port 2 of 2"), "{error}");
    // It is the fabric's fault, so no file of tables is named.
    let read = load(&text, &fabric, &subnet).map(drop).unwrap_err();
    assert_eq!(read.to_string(), error.to_string());
}

#[test]
fn rows_go_to_the_node_of_their_port_guid() {
    let mut fabric = generate("ring:n=3,hosts=1").unwrap();
    for (host, label) in (1..).zip(&mut fabric.hosts) {
        label.port_guid = Some(0x100 + host);
    }
    let subnet = Subnet::new(&fabric, None).unwrap();
    let tables = shortest(&subnet);
    let text = String::from_utf8(written(&fabric, &subnet, &tables)).unwrap();
    // Hosts 1 and 2 change LIDs; 3 has a GUID that nobody knows, so its LID counts.
    let swapped = text
        .replace("portguid 0x0000000000000101", "portguid 0x0000000000000tmp")
        .replace("portguid 0x0000000000000102", "portguid 0x0000000000000101")
        .replace("portguid 0x0000000000000tmp", "portguid 0x0000000000000102")
        .replace("portguid 0x0000000000000103", "portguid 0x0000000000000999");
    let loaded = load(swapped.as_bytes(), &fabric, &subnet).unwrap();
    let slot = |host| subnet.destinations.slots_of_host(host).start;
    for xbar in 0..3 {
        for (one, other) in [(0, 1), (1, 0), (2, 2)] {
            assert_eq!(loaded.found.port(xbar, slot(one)), tables.port(xbar, slot(other)));
        }
    }
    assert_eq!(
        loaded.notes,
        [
            "6 rows are moved to the LID that their port GUID has in the fabric (the first at line 2)",
            "3 rows have a port GUID that the fabric does not have, and count by their LID (the first at line 4)",
        ]
    );
}

#[test]
fn what_the_fabric_does_not_have_is_passed_over_and_told() {
    let fabric = generate("ring:n=3,hosts=1").unwrap();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let guid = subnet.xbar_guids[0];
    let text = format!(
        "# a comment\n\nUnicast lids [0-9] of switch Lid 9 guid 0x99 ('gone'):\n0x0001 200\n1 lids dumped\n\
         Unicast lids [0x0-0x9] of switch DR path slid 0; dlid 0; 0 guid 0x{guid:x} (x):\n  Lid  Out   Destination\n\
         \x20      Port     Info \n0x0001 001 : (Channel Adapter portguid 0x{:x}: 'h1')\n0x0077 2\n0x0004 3\n\
         4 valid lids dumped\n",
        subnet.host_port_guids[0]
    );
    let loaded = load(text.as_bytes(), &fabric, &subnet).unwrap();
    let entries = loaded.found.to_ports().into_iter().filter(|&port| port != Tables::NONE).count();
    assert_eq!((entries, loaded.found.port(0, subnet.destinations.slots_of_host(0).start)), (1, 1));
    assert_eq!(
        loaded.notes,
        [
            "1 table of a switch that the fabric does not have is passed over (at line 3)",
            "1 row to a LID that the fabric does not have is passed over (at line 10)",
            "1 row leads a switch's own LID out of a port; it is passed over (at line 11)",
            "the file has no table of 2 xbars, xbar2 one of them",
        ]
    );
    // The text is cut off inside the last table.
    let cut = text.strip_suffix("4 valid lids dumped\n").unwrap();
    let notes = load(cut.as_bytes(), &fabric, &subnet).unwrap().notes;
    assert!(notes.iter().any(|note| note.starts_with("the last table has no end")), "{notes:?}");
    // A second header clears the table.
    let twice = format!("{text}Unicast lids [0-1] of switch Lid 4 guid 0x{guid:x} ('x'):\n0x0002 2\n");
    let loaded = load(twice.as_bytes(), &fabric, &subnet).unwrap();
    let port = |host| loaded.found.port(0, subnet.destinations.slots_of_host(host).start);
    assert_eq!((port(0), port(1)), (Tables::NONE, 2));
}

#[test]
fn broken_files_are_refused_with_their_line() {
    let fabric = generate("ring:n=3,hosts=1").unwrap();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let header = format!("Unicast lids [0-6] of switch Lid 4 guid 0x{:x} ('x'):", subnet.xbar_guids[0]);
    for (rows, expected) in [
        ("0x0001", ":2: `0x0001`: expected `0x`, a LID, a blank and a port number"),
        ("0x0001 x", ":2: `0x0001 x`: expected"),
        ("0x0001 001x", ":2: `0x0001 001x`: expected"),
        ("0xg 001", ":2: `0xg 001`: expected"),
        ("0x0001 001\n0x0002 004", ":3: xbar `xbar1` has no port 4; expected a port from 0 to 3"),
        ("0x0001 4000000000", ":2: `0x0001 4000000000`: expected"),
        (
            "0x0001 001 # Switch portguid 12: 'x'",
            ":2: `0x0001 001 # Switch portguid 12: 'x'`: expected `portguid",
        ),
        ("Unicast lids [0-6] of switch", ":2: `Unicast lids [0-6] of switch` names no switch"),
        ("Multicast mlids [..]", ":2: a dump of multicast tables"),
        ("{\"schema\": 1}", ":2: `{\"schema\": 1}` is no line of a table"),
        ("\u{7}\u{1b}[2J", ":2: `\u{fffd}\u{fffd}[2J` is no line"),
    ] {
        let error = load(format!("{header}\n{rows}\n").as_bytes(), &fabric, &subnet).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = load(b"0x0001 001\n", &fabric, &subnet).unwrap_err().to_string();
    assert!(error.ends_with(":1: a row before any table; expected `Unicast lids .. guid 0x..`"), "{error}");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]
    #[test]
    fn no_bytes_make_the_reader_panic(
        lines in proptest::collection::vec(
            proptest::prop_oneof![
                "(0x)?[0-9a-f]{0,18} ?[0-9]{0,12}( # Switch portguid 0x[0-9a-f]{0,18}: 'x')?",
                "Unicast lids .{0,8} guid 0x0?2000000000000[0-9]{0,5}.{0,5}",
                ".{0,40}",
            ],
            0..20,
        ),
    ) {
        let fabric = generate("ring:n=3,hosts=1").unwrap();
        let subnet = Subnet::new(&fabric, Some(1)).unwrap();
        let _ = load(lines.join("\n").as_bytes(), &fabric, &subnet);
    }
}
