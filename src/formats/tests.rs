//! What must survive a file, and what must be refused.

use mapper_proto::Mac;
use mapper_proto::map::{Cable, PortRef, host_type};
use proptest::prelude::*;

use super::*;

const SPECS: [&str; 9] = [
    "clos:hosts=8,ports=4",
    "clos:hosts=3,ports=8",
    "xgft:h=3;m=2,2,3;w=1,2,2",
    "torus:x=3,y=3,hosts=2",
    "mesh:x=2,y=2,z=2",
    "hypercube:d=3",
    "dragonfly:a=2,p=2,h=2",
    "now:subclusters=2",
    "ring:n=5,hosts=1",
];

fn generated(spec: &str) -> Fabric {
    mapper_fabric::generate(spec).unwrap()
}

fn read(text: &str) -> Result<Fabric, String> {
    parse("file", text).map_err(|error| error.to_string())
}

/// Names and ports of all cables, hosts' included, each xbar's ports moved.
fn wiring(fabric: &Fabric, shifts: &[i16]) -> Vec<(String, String)> {
    let end = |end: PortRef| {
        format!(
            "{}:{}",
            fabric.xbars[end.xbar as usize].name,
            i16::from(end.port) + shifts[end.xbar as usize]
        )
    };
    let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
    let hosts = hosts.map(|(host, label)| (label.name.clone(), host.at.map_or_else(String::new, end)));
    hosts.chain(fabric.map.cables.iter().map(|cable| (end(cable.a), end(cable.b)))).collect()
}

fn as_is(fabric: &Fabric) -> Vec<(String, String)> {
    wiring(fabric, &vec![0; fabric.xbars.len()])
}

fn macs(fabric: &Fabric) -> Vec<Mac> {
    fabric.map.hosts.iter().map(|host| host.mac).collect()
}

/// A random fabric with every kind of label, its ports counting from 0 or from 1.
fn any_fabric() -> impl Strategy<Value = Fabric> {
    (1_u64..8, 3_u64..9, any::<u64>(), 0..3_u8, any::<bool>()).prop_map(|(xbars, ports, seed, first, ib)| {
        let links = xbars * (ports - 1) / 3;
        let links = if xbars == 1 { 0 } else { links };
        let hosts = xbars * ports - 2 * links;
        let mut fabric =
            generated(&format!("random:xbars={xbars},ports={ports},hosts={hosts},links={links},seed={seed}"));
        if first == 0 {
            let map = &mut fabric.map;
            map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(|at| at.port -= 1);
            map.cables
                .iter_mut()
                .for_each(|cable| (cable.a.port, cable.b.port) = (cable.a.port - 1, cable.b.port - 1));
        }
        for (i, (host, label)) in (0..).zip(fabric.map.hosts.iter_mut().zip(&mut fabric.hosts)) {
            host.level = (seed % 7) as u8;
            if ib {
                let guid = 0x0002_c903_0000_0000 | seed & 0xff_0000 | i << 4;
                (host.mac, host.host_type) = (Mac::from_u64(guid), host_type::INFINIBAND);
                label.guid = Some(guid);
                label.port_guid = Some(guid + 1);
                label.system_guid = Some(guid + 3);
                (label.lid, label.lmc) = (Some(i as u16 * 2 + 1), 1);
                label.node_ports = 2;
                label.description = format!("node{i} HCA-1");
            }
        }
        for (i, (xbar, label)) in (1..).zip(fabric.map.xbars.iter_mut().zip(&mut fabric.xbars)) {
            if ib {
                let guid = 0x0008_f104_0000_0000 | i << 8;
                (xbar.tag, label.guid, label.system_guid) = (Some(guid), Some(guid), Some(guid + 1));
                label.lid = Some(1000 + i as u16);
            } else if (seed >> i) & 1 == 0 {
                xbar.tag = None;
            }
        }
        let ends = fabric.map.cables.iter().map(|cable| vec![cable.a, cable.b]);
        let ends = ends.chain(fabric.map.hosts.iter().filter_map(|host| host.at).map(|at| vec![at]));
        let speeds = ["4xSDR", "4xHDR", "12xFDR10"].map(|speed| speed.parse().unwrap());
        for (ends, (i, &speed)) in ends.zip((0..60).zip(speeds.iter().cycle())) {
            if (seed >> i) & 1 == 0 {
                fabric.link_speeds.extend(ends.into_iter().map(|end| (end, speed)));
            }
        }
        fabric
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn json_keeps_everything(mut fabric in any_fabric(), counter: u32) {
        fabric.map.version.counter = counter;
        fabric.map.version.mac = Mac::from_position(counter);
        prop_assert_eq!(&read(&write(&fabric, FileFormat::Json)).unwrap(), &fabric);
        for format in [FileFormat::Dot, FileFormat::Svg] {
            prop_assert!(write(&fabric, format).contains(&fabric.xbars[0].name));
        }
    }

    #[test]
    fn ibnetdiscover_keeps_all_but_levels(fabric in any_fabric()) {
        let text = write(&fabric, FileFormat::Ibnetdiscover);
        let back = read(&text).unwrap();
        prop_assert_eq!(as_is(&back), wiring(&fabric, &port_shifts(&fabric, 1)));
        prop_assert_eq!(macs(&back), macs(&fabric));
        let speeds = |fabric: &Fabric| fabric.link_speeds.values().copied().collect::<Vec<_>>();
        prop_assert_eq!(speeds(&back), speeds(&fabric));
        if fabric.hosts.iter().any(|label| label.guid.is_some()) {
            prop_assert_eq!(&back.hosts, &fabric.hosts);
            prop_assert_eq!(&back.xbars, &fabric.xbars);
        }
        let tags = |fabric: &Fabric| -> Vec<_> { fabric.map.xbars.iter().map(|xbar| xbar.tag).collect() };
        prop_assert!(!tags(&back).contains(&None), "a switch has a GUID");
        if !tags(&fabric).contains(&None) {
            prop_assert_eq!(tags(&back), tags(&fabric));
            prop_assert_eq!(write(&back, FileFormat::Ibnetdiscover), text, "once read, it stays as it is");
        }
    }

    #[test]
    fn gm_map_keeps_the_wiring(fabric in any_fabric()) {
        let text = write(&fabric, FileFormat::GmMap);
        let back = read(&text).unwrap();
        prop_assert_eq!(as_is(&back), wiring(&fabric, &port_shifts(&fabric, 0)));
        prop_assert_eq!(macs(&back), macs(&fabric));
        prop_assert_eq!(write(&back, FileFormat::GmMap), text, "once read, it stays as it is");
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = read(&text);
        let ends = "{ SW Ports:04 NodeGUID:2 PortGUID:2 {x} LID:2 PN:01 } { CA Ports:01 NodeGUID:1 ";
        let port = "SW 2 1 0x2 4x SDR - ";
        for begin in ["{\"schema\":", "2 1\n", "Switch 8 \"a\"\n[1] ", ends, port] {
            let _ = read(&format!("{begin}{text}"));
        }
    }

    #[test]
    fn no_mutation_makes_a_reader_panic(
        spec in prop::sample::select(SPECS.to_vec()),
        format in prop::sample::select(vec![FileFormat::Ibnetdiscover, FileFormat::GmMap, FileFormat::Json]),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4, any::<u8>()), 1..6),
    ) {
        let mut bytes = write(&generated(spec), format).into_bytes();
        for (at, edit, byte) in edits {
            let at = at.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(fabric) = read(&String::from_utf8_lossy(&bytes))
            && !fabric.hosts.is_empty()
        {
            for format in [FileFormat::Ibnetdiscover, FileFormat::GmMap, FileFormat::Json] {
                // What was read can be written and read again.
                let back = read(&write(&fabric, format)).unwrap();
                prop_assert_eq!(back.map.cables.len(), fabric.map.cables.len());
                prop_assert_eq!(back.map.hosts.len(), fabric.map.hosts.len());
            }
            write(&fabric, FileFormat::Dot);
            write(&fabric, FileFormat::Svg);
        }
    }
}

#[test]
fn every_generated_fabric_survives_every_format() {
    for spec in SPECS {
        let fabric = generated(spec);
        assert_eq!(read(&write(&fabric, FileFormat::Json)).unwrap(), fabric, "{spec}");
        let back = read(&write(&fabric, FileFormat::Ibnetdiscover)).unwrap();
        assert_eq!(as_is(&back), as_is(&fabric), "{spec}");
        let back = read(&write(&fabric, FileFormat::GmMap)).unwrap();
        assert_eq!(as_is(&back), wiring(&fabric, &port_shifts(&fabric, 0)), "{spec}");
    }
}

#[test]
fn two_hosts_may_be_cabled_to_each_other() {
    let pair = read("Ca 1 \"a\"\n[1] \"b\"[1]\n\nCa 1 \"b\"\n[1] \"a\"[1]\n").unwrap();
    assert_eq!((pair.map.hosts.len(), pair.map.hosts[0].at, pair.map.hosts[1].at), (2, None, None));
    for format in [FileFormat::Ibnetdiscover, FileFormat::GmMap, FileFormat::Json] {
        assert_eq!(read(&write(&pair, format)).unwrap().map.hosts.len(), 2);
    }
}

#[test]
fn cables_that_lead_to_no_other_node_are_left_out_and_told() {
    let fabric = read(
        "Switch 8 \"s\"\n[1] \"t\"[1]\n[2] \"s\"[2]\n[3] \"h\"[1]\n[4] \"t\"[4]\n\nCa 1 \"h\"\n[1] \"s\"[3]\n",
    )
    .unwrap();
    assert_eq!((fabric.map.cables.len(), fabric.map.hosts.len()), (0, 1));
    assert_eq!(
        fabric.left_out,
        [
            "line 2: the cable from `s` port 1 to `t` port 1: there is no such node in the file",
            "line 3: the cable from `s` port 2 to `s` port 2: it leads back to the same port",
            "line 5: the cable from `s` port 4 to `t` port 4: there is no such node in the file",
        ]
    );
}

#[test]
fn cables_from_host_to_host_that_no_map_can_hold_are_left_out_and_told() {
    for (file, hosts, isolated) in [
        ("Ca 1 \"a\"\n[1] \"b\"[1]\n\nCa 1 \"b\"\n\nSwitch 8 \"s\"\n", 2, 2),
        ("Ca 2 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[2]\n\nCa 2 \"b\"\n", 2, 2),
        ("Ca 2 \"a\"\n[1] \"a\"[2]\n\nSwitch 8 \"s\"\n", 1, 1),
        ("Ca 2 \"a\"\n[1] \"b\"[1]\n[2] \"s\"[5]\n\nCa 2 \"b\"\n\nSwitch 8 \"s\"\n", 2, 1),
    ] {
        let fabric = read(file).unwrap();
        let told = &fabric.left_out;
        assert!(told[0].starts_with("line 2: the cable from `a` port 1 to `"), "{told:?}");
        assert_eq!((fabric.map.hosts.len(), fabric.isolated().len()), (hosts, isolated), "{file}");
    }
}

#[test]
fn two_hosts_that_no_file_cables_stay_alone() {
    // Phantoms have no cable, and do not keep two hosts from having one.
    let map = "3 0\n\nh - \"a\"\n1\n0 h - \"b\" 0\n\nh - \"b\"\n0\n\nh - \"p\"\n0\nhostType 0\n";
    let pair = read(map).unwrap();
    assert_eq!((pair.face_to_face(), pair.isolated()), (Some([0, 1]), Vec::new()));
    assert_eq!(read(&write(&pair, FileFormat::GmMap)).unwrap().face_to_face(), Some([0, 1]));
    let mut ring = generated("ring:n=2");
    ring.hosts[0].uncabled = true;
    let error = read(&write(&ring, FileFormat::Json)).unwrap_err();
    assert!(error.contains("a host without a cable at an xbar"), "{error}");
}

#[test]
fn what_ibnetdiscover_prints_is_read() {
    let mut fabric = read(
        "#\n# Topology file: generated on Tue Jun  5 14:15:10 2007\n#\n# Max of 3 hops discovered\n\n\
         Non-Chassis Nodes\n\n\
         vendid=0x8f1\ndevid=0x5a06\nsysimgguid=0x5442ba00003000\nswitchguid=0x5442ba00003080(5442ba00003080)\n\
         Switch\t24 \"S-005442ba00003080\"\t\t# \"ISR9024 Voltaire\" enhanced port 0 lid 6 lmc 0\n\
         [22][ext 5]\t\"H-0008f10403961354\"[1](8f10403961355) \t\t# \"MT23108 HCA\" lid 4 4xSDR\n\
         [6]\t\"H-0008f10403961354\"[2](8f10403961356) \t\t# \"MT23108 HCA\" lid 5 4xSDR\n\
         [7]\t\"R-0008f10400000001\"[1](8f10400000002) \t\t# \"router\" lid 9 4xSDR\n\
         [24]\t\"S-005442ba00003080\"[24]\t\t# \"loopback plug\" lid 6 4xSDR\n\n\
         vendid=0x8f1\nsysimgguid=0x8f10403961357\ncaguid=0x8f10403961354\n\
         Ca\t2 \"H-0008f10403961354\"\t\t# \"MT23108 \"quoted\" HCA\"\n\
         [1](8f10403961355) \t\"S-005442ba00003080\"[22][ext 5]\t\t# lid 4 lmc 1 \"ISR9024\" lid 6 4xSDR\n\
         [2](8f10403961356) \t\"S-005442ba00003080\"[6]\t\t# lid 5 lmc 0 \"ISR9024\" lid 6 4xSDR\n\n\
         rtguid=0x8f10400000001\nRt\t1 \"R-0008f10400000001\"\t\t# \"router\"\n\
         [1](8f10400000002) \t\"S-005442ba00003080\"[7]\t\t# lid 9 lmc 0 \"ISR9024\" lid 6 4xSDR\n",
    )
    .unwrap();
    let told = std::mem::take(&mut fabric.left_out);
    assert!(told.len() == 1 && told[0].ends_with("port 24: it leads back to the same port"), "{told:?}");
    assert_eq!(fabric.map.xbars[0].tag, Some(0x0054_42ba_0000_3080));
    assert_eq!(fabric.xbars[0].description, "ISR9024 Voltaire");
    assert_eq!(fabric.xbars[0].lid, Some(6));
    let names: Vec<_> = fabric.hosts.iter().map(|label| label.name.as_str()).collect();
    assert_eq!(names, ["H-0008f10403961354", "H-0008f10403961354-p2", "R-0008f10400000001"]);
    // The first port of a machine has the node's address, a further one its own.
    assert_eq!(
        macs(&fabric),
        [0x0008_f104_0396_1354, 0x0008_f104_0396_1356, 0x0008_f104_0000_0001].map(Mac::from_u64)
    );
    assert_eq!(fabric.hosts[0].description, "MT23108 \"quoted\" HCA");
    assert_eq!((fabric.hosts[0].lid, fabric.hosts[0].lmc), (Some(4), 1));
    assert_eq!((fabric.hosts[1].lid, fabric.hosts[1].node_port, fabric.hosts[1].node_ports), (Some(5), 2, 2));
    assert_eq!(fabric.map.hosts[1].at, Some(PortRef { xbar: 0, port: 6 }));
    // A machine's ports stay together.
    let text = write(&fabric, FileFormat::Ibnetdiscover);
    assert_eq!(text.matches("\nCa\t2 ").count(), 1, "{text}");
    assert_eq!(text.matches("\nRt\t1 ").count(), 1, "{text}");
    let mut once = fabric;
    for label in &mut once.hosts[..2] {
        label.description = "MT23108 'quoted' HCA".to_owned();
    }
    assert_eq!(read(&text).unwrap(), once);
}

#[test]
fn netlists_may_be_terse() {
    // It is enough that one end lists the cable; a port that is left out is 1, and GUIDs go by position.
    let fabric = read(
        "devid=0x1\nwidth=4\nswitchguid+0x100\nSwitch 8 \"s1\"\n[1] \"h1\"\n[2] \"s2\"[5] w=12\n\n\
         Switch 8 \"s2\" # plain words base port 0 lid 3 lmc 0\n@[1] \"alias\"\n[7] \"s2\"[8]\n\nHca 2 \"h1\"\r\n",
    )
    .unwrap();
    let end = |xbar, port| PortRef { xbar, port };
    assert_eq!(fabric.map.cables, [Cable::new(end(0, 2), end(1, 5)), Cable::new(end(1, 7), end(1, 8))]);
    assert_eq!(fabric.map.hosts[0].at, Some(end(0, 1)));
    assert_eq!(macs(&fabric), [Mac::from_position(1)]);
    assert_eq!(fabric.xbars[1].description, "plain words");
    assert_eq!(fabric.xbars[1].lid, Some(3));
    // An xbar cabled to itself is drawn as a loop.
    assert!(write(&fabric, FileFormat::Svg).contains("plain words:7 - plain words:8"));
    let tags: Vec<_> = fabric.map.xbars.iter().map(|xbar| xbar.tag).collect();
    assert_eq!(tags, [Some(0x0600_0000_0000_0001), Some(0x0600_0000_0000_0002)]);
}

#[test]
fn ports_move_where_a_format_needs_it() {
    let counts_from_1 = generated("clos:hosts=8,ports=4");
    assert_eq!((port_shifts(&counts_from_1, 1), port_shifts(&counts_from_1, 0)), (vec![0; 6], vec![-1; 6]));
    // Ports 1 to 3 of 8 are in use, so they may count from 0 or from 1.
    let open = generated("torus:x=3,hosts=1,ports=8");
    assert_eq!((port_shifts(&open, 1), port_shifts(&open, 0)), (vec![0; 3], vec![0; 3]));
    // One xbar counts from 0 among others that count from 1, as in a map of a mixed fabric.
    let mut mixed = counts_from_1;
    mixed.map.hosts[..2].iter_mut().filter_map(|host| host.at.as_mut()).for_each(|at| at.port -= 1);
    for cable in mixed.map.cables.iter_mut().filter(|cable| cable.a.xbar == 0) {
        cable.a.port -= 1;
    }
    assert_eq!(
        (port_shifts(&mixed, 1), port_shifts(&mixed, 0)),
        (vec![1, 0, 0, 0, 0, 0], vec![0, -1, -1, -1, -1, -1])
    );
}

#[test]
fn addresses_that_are_taken_go_by_position() {
    let fabric = read(
        "Switch 8 \"s\"\n[1] \"a\"[1]\n[2] \"b\"[1]\n[3] \"c\"[1]\n[4] \"d\"[1]\n\n\
         caguid=0xa0001\nCa 1 \"a\"\n\ncaguid=0xb0000000a0001\nCa 1 \"b\"\n\n\
         caguid=0x20000000003\nCa 1 \"d\"\n\nCa 1 \"c\"\n",
    )
    .unwrap();
    let expected = [0xa0001, 0xb_0000_000a_0001, 0x0200_0000_0003, 0x0200_0000_0004].map(Mac::from_u64);
    assert_eq!(macs(&fabric)[..1], expected[..1]);
    assert_eq!(macs(&fabric)[1], Mac::from_position(2), "the low 48 bits are taken");
    assert_eq!(macs(&fabric)[2..], expected[2..]);
}

#[test]
fn a_gm_map_is_read() {
    let fabric = read(
        "; made by gm_mapper\n2 2\n\ns 16 \"s0\"\n2\n0 h - \"left\" 0\n15 s 8 \"s1\" 0\nnumber 0\n\n\
         s 8 \"s1\"\n2\n0 s 16 \"s0\" 15\n7 h - \"right\" 0\n\n\
         h - \"left\"\n1\n0 s 16 \"s0\" 0\naddress 0060dd7fffd4\ngmId 1\nhostType 3\nlabel \"rack 1\"\n\n\
         # the last\nh - \"right\"\n1\n0 s 8 \"s1\" 7\n",
    )
    .unwrap();
    assert_eq!(
        fabric.map.xbars.iter().map(|xbar| (xbar.ports, xbar.tag)).collect::<Vec<_>>(),
        [(16, None), (8, None)]
    );
    let cable = Cable::new(PortRef { xbar: 0, port: 15 }, PortRef { xbar: 1, port: 0 });
    assert_eq!(fabric.map.cables, [cable]);
    assert_eq!(macs(&fabric), [Mac::from_u64(0x0060_dd7f_ffd4), Mac::from_position(2)]);
    assert_eq!(
        (fabric.map.hosts[0].host_type, fabric.map.hosts[1].host_type),
        (host_type::MX, host_type::GM)
    );
    assert_eq!(fabric.hosts[0].description, "rack 1");
    // Port 0 of an InfiniBand switch is its management port.
    assert_eq!(as_is(&read(&write(&fabric, FileFormat::Ibnetdiscover)).unwrap()), wiring(&fabric, &[1, 1]));
}

#[test]
fn errors_name_file_line_and_what_was_expected() {
    for (text, error) in [
        ("", "file:1: there is nothing in it; expected a fabric"),
        ("hello\n", "file:1: expected a node"),
        ("vendid=0x0\n", "file:1: there is no node in it; expected a fabric"),
        ("# x\nSwitch 8\n", "file:2: expected a node"),
        (
            "Switch 8 \"s\"\n[1] \"h\"\n\nCa 1 \"h\"\n[1] \"s\"[1] # lid 640 lmc 8 \"s\" lid 1\n",
            "file:5: an LMC of `8`; expected 0 to 7, for 2^LMC addresses",
        ),
        (
            "Switch 8 \"s\"\n[1] \"h\"\n\nCa 1 \"h\"\n[1] \"s\"[1] # lid 640 lmc 9999999999999999\n",
            "file:5: an LMC of `9999999999999999`; expected 0 to 7",
        ),
        ("Switch 8 \"s\" # \"s\" base port 0 lid 3 lmc 300\n", "file:1: an LMC of `300`; expected 0 to 7"),
        (
            "Switch 8 \"s\" # \"s\" base port 0 lid 70000 lmc 0\n",
            "file:1: a LID of `70000`; expected one from 1 to 65535, or 0 for none",
        ),
        (
            "switchguid=0x10\nSwitch 8 \"s\"\n\nswitchguid=0x10\nSwitch 8 \"t\"\n",
            "file:5: `t` has GUID 0x10, which is that of `s` at line 2; each GUID must be one node's",
        ),
        (
            "Switch 8 \"S-0000000000000010\"\n\ncaguid=0x10\nCa 1 \"h\"\n",
            "file:4: `h` has GUID 0x10, which is that of `S-0000000000000010` at line 1",
        ),
        (
            "caguid=0x20\nCa 2 \"h\"\n\ncaguid=0x20\nCa 1 \"i\"\n",
            "file:5: `i` has GUID 0x20, which is that of `h` at line 2",
        ),
        (
            "Switch 8 \"s\"\n\nCa 2 \"h\"\n[1](21) \"s\"[1]\n[2](21) \"s\"[2]\n",
            "file:5: `h` port 2 has GUID 0x21, which is that of `h` port 1 at line 4; each GUID must be one port's",
        ),
        (
            "switchguid=0x21\nSwitch 8 \"s\"\n\nCa 2 \"h\"\n[1](21) \"s\"[1]\n",
            "file:5: `h` port 1 has GUID 0x21, which is that of `s` at line 2",
        ),
        ("Switch 300 \"s\"\n", "file:1: `300` is no number of ports; expected a number from 1 to 255"),
        ("Switch 8 \"s\"\n[9] \"s\"[1]\n", "file:2: node `s` has no port 9; expected a port from 1 to 8"),
        ("Switch 8 \"s\"\n[0] \"s\"[1]\n", "file:2: node `s` has no port 0; expected a port from 1 to 8"),
        ("Switch 8 \"s\"\n[1 \"s\"[1]\n", "file:2: expected a port: `[1] \"id\"[2]`"),
        ("[1] \"s\"[1]\n", "file:1: a port before any node"),
        ("Switch 8 \"s\"\n\nSwitch 8 \"s\"\n", "file:3: node `s` is already there, at line 1"),
        ("Switch 8 \"\"\n", "file:1: `` is no name of a node; expected 1 to 64 printable characters"),
        ("switchguid=0xg\n", "file:1: `0xg` is no GUID; expected up to 16 hexadecimal digits"),
        (
            "Switch 8 \"s\"\n[1] \"t\"[1]\n\nSwitch 8 \"t\"\n[1] \"s\"[2]\n",
            "file:5: `t` port 1 is cabled to `s` port 2 here, but to `s` port 1 at line 2; a port has one cable",
        ),
        ("1\n", "file:1: expected the numbers of hosts and of switches"),
        ("1 1\nx\n", "file:2: expected a node: `s 16 \"name\"`"),
        ("1 1\ns 8 \"s\"\nmany\n", "file:3: expected the number of links"),
        ("1 1\ns 8 \"s\"\n", "file:2: the number of links is missing"),
        ("1 1\ns 8 \"s\"\n2\n0 h - \"h\" 0\n", "file:4: 1 more links were announced"),
        ("1 1\ns 8 \"s\"\n1\n8 h - \"h\" 0\n", "file:4: node `s` has no port 8; expected a port from 0 to 7"),
        ("1 1\ns 8 \"s\"\n1\n0 h \"h\" 0\n", "file:4: expected a link"),
        ("1 1\ns 8 \"s\"\n0\n", "announces 1 hosts and 1 switches, but there are 0 and 1"),
        ("1 0\nh - \"h\"\n0\naddress 12\n", "file:4: `12` is not a MAC address"),
        (
            "2 0\nh - \"h\"\n0\naddress 020000000001\n\nh - \"i\"\n0\naddress 020000000001\n",
            "file:8: address 02:00:00:00:00:01 is that of line 4 already",
        ),
        ("{\n", "file:2: EOF while parsing"),
        (
            "[]\n",
            "file:1: it is in no known format; expected ibnetdiscover or ibsim, GM .map, or a mapper.map/1",
        ),
        ("{\"schema\":\"mapper.map/1\",\n\"hots\":[]}", "file:2: unknown field `hots`"),
        (
            r#"{"schema":"mapper.map/1","hosts":[{"mac":"ff:ff:ff:ff:ff:ff"}]}"#,
            "file:hosts[0].mac: ff:ff:ff:ff:ff:ff is no address of a host",
        ),
        (
            "{\"schema\":\"mapper.sim/1\"}",
            "file:schema: `mapper.sim/1` is not read here; expected `mapper.map/1`",
        ),
        (
            r#"{"schema":"mapper.map/1","hosts":[{"mac":"02:00:00:00:00:01","xbar":"x","port":1}]}"#,
            "file:hosts[0].xbar: there is no xbar `x`",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4,"tag":"0xzz"}]}"#,
            "file:xbars[0].tag: `0xzz` is not a hexadecimal number",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4,"guid":"0x7"},{"id":"y","ports":4,"guid":"0x7"}]}"#,
            "file:xbars[1].guid: GUID 0x7 is that of xbars[0].guid already; each GUID must be one xbar's or port's",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4,"guid":"0x7"}],"hosts":[{"mac":"02:00:00:00:00:01","port_guid":"0x7"}]}"#,
            "file:hosts[0].port_guid: GUID 0x7 is that of xbars[0].guid already",
        ),
        (
            r#"{"schema":"mapper.map/1","hosts":[{"mac":"02:00:00:00:00:01","guid":"7"},{"mac":"02:00:00:00:00:02","guid":"7"}]}"#,
            "file:hosts[1].guid: GUID 0x7 is that of hosts[0].guid already",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",1],"b":["x",2],"speed":"fast"}]}"#,
            "file:cables[0].speed: `fast` is no speed of a cable; expected lanes and rate, such as 4xQDR",
        ),
        ("SW 2 1 0x2 4x SDR - CA 1\n", "file:1: expected a port as ibnetdiscover -p prints it: `SW 2 1 0x"),
        (
            "SW 2 1 0x2 4x SDR - CA 1 1 0x2 ( 'a' - 'b' )\n",
            "file:1: GUID 0x2 is that of another kind of node at line 1; each GUID must be one node's",
        ),
        ("{ SW Ports:04 }\n", "file:1: expected a cable: `{ SW Ports:24"),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",5],"b":["x",1]}]}"#,
            "file:cables[0].a: `x` has no port 5; expected at most 4",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",0],"b":["x",4]}]}"#,
            "file:cables[0].b: `x` uses ports 0 and 4; expected ports that count from 0, or from 1",
        ),
        (
            r#"{"schema":"mapper.map/1","xbars":[{"id":"x","ports":4}],"cables":[{"a":["x",1],"b":["x",1]}]}"#,
            "file:cables[0].b: `x` port 1 has a cable already",
        ),
    ] {
        let message = read(text).unwrap_err();
        assert!(message.contains(error), "{text:?}: {message}");
    }
}

#[test]
fn an_argument_is_a_file_or_a_spec() {
    assert_eq!(resolve("ring:n=5").unwrap(), generated("ring:n=5"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    std::fs::write(&path, write(&generated("ring:n=4"), FileFormat::Json)).unwrap();
    assert_eq!(resolve(path.to_str().unwrap()).unwrap(), generated("ring:n=4"));
    for (argument, error) in [
        ("ring:m=5", "ring: there is no key `m`"),
        ("rung", "`rung` is neither a file nor a generator spec"),
        ("no/such.map", "cannot read no/such.map"),
    ] {
        let message = resolve(argument).unwrap_err().to_string();
        assert!(message.contains(error), "{argument}: {message}");
    }
}

#[test]
fn maps_are_read_back_whatever_hosts_say_that_they_are_called() {
    let mut map = generated("ring:n=4,hosts=1").map;
    map.xbars[0].tag = None;
    let mac = |host: usize| map.hosts[host].mac;
    // Two of one name, one that is called like another's address, and one like a crossbar.
    let said = [(mac(0), "node".to_owned()), (mac(1), "node".to_owned()), (mac(2), mac(3).to_string())];
    let names = json::Names::of_hosts(said.into_iter().chain([(mac(3), "x1".to_owned())]).collect());
    let written = json::map_to_json(&map, &names);
    let called: Vec<&str> = written.hosts.iter().map(|host| host.name.as_deref().unwrap()).collect();
    let with_address = |host: usize| format!("node {}", mac(host));
    assert_eq!(called[..2], [with_address(0), with_address(1)]);
    assert_eq!(called[2..], [mac(2).to_string(), "x1".to_owned()]);
    let read = read(&serde_json::to_string(&written).unwrap()).unwrap();
    assert_eq!(read.map.hosts.len(), 4);
}

/// A switch with two hosts, as three programs tell of it.
const ONE_SWITCH: [&str; 3] = [
    "sysimgguid=0xa0\nswitchguid=0xa0(a0)\nSwitch\t36 \"S-00000000000000a0\"\t\t# \"leaf\" base port 0 lid 2 lmc 0\n\
     [1]\t\"H-00000000000000b0\"[1](b1) \t\t# \"one\" lid 1 4xHDR\n\
     [36]\t\"H-00000000000000c0\"[1](c1) \t\t# \"t{w}o\" lid 5 2xHDR\n\n\
     caguid=0xb0\nCa\t1 \"H-00000000000000b0\"\t\t# \"one\"\n\
     [1](b1) \t\"S-00000000000000a0\"[1]\t\t# lid 1 lmc 0 \"leaf\" lid 2 4xHDR\n\n\
     caguid=0xc0\nCa\t1 \"H-00000000000000c0\"\t\t# \"t{w}o\"\n\
     [1](c1) \t\"S-00000000000000a0\"[36]\t\t# lid 5 lmc 0 \"leaf\" lid 2 2xHDR\n",
    "{ SW Ports:24 SystemGUID:a0 NodeGUID:a0 PortGUID:a0 VenID:0 DevID:0 Rev:0 {leaf} LID:0002 PN:01 } \
     { CA-SM Ports:01 SystemGUID:0 NodeGUID:b0 PortGUID:b1 VenID:0 DevID:0 Rev:0 {one} LID:0001 PN:01 } \
     PHY=4x LOG=ACT SPD=50\n\
     { SW Ports:24 SystemGUID:a0 NodeGUID:a0 PortGUID:a0 VenID:0 DevID:0 Rev:0 {leaf} LID:0002 PN:24 } \
     { CA Ports:01 SystemGUID:0 NodeGUID:c0 PortGUID:c1 VenID:0 DevID:0 Rev:0 {t{w}o} LID:0005 PN:01 } \
     PHY=2x LOG=ACT SPD=50\n",
    "SW     2 36 0x00000000000000a0 2x HDR - CA     5  1 0x00000000000000c1 ( 'leaf' - 't{w}o' )\n\
     SW     2 35 0x00000000000000a0 4x ???                                    'leaf'\n\
     SW     2  1 0x00000000000000a0 4x HDR - CA     1  1 0x00000000000000b1 ( 'leaf' - 'one' )\n",
];

#[test]
fn a_fabric_is_the_same_whichever_program_tells_of_it() {
    let [by_discovery, by_opensm, by_ports] = ONE_SWITCH.map(|text| read(text).unwrap());
    assert_eq!(by_opensm, by_discovery);
    // A list of ports knows neither adapters nor systems, and begins with the highest port.
    assert_eq!(by_ports.link_speeds, by_discovery.link_speeds);
    assert_eq!(
        (by_ports.map.xbars.clone(), by_ports.xbars[0].lid),
        (by_discovery.map.xbars.clone(), Some(2))
    );
    let said = |fabric: &Fabric| {
        let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
        let said =
            hosts.map(|(host, label)| (label.port_guid, label.lid, label.description.clone(), host.at));
        let mut said: Vec<_> = said.collect();
        said.sort_unstable();
        said
    };
    assert_eq!(said(&by_ports), said(&by_discovery));
}

#[test]
fn complaints_between_the_lines_are_left_out_and_told_in_every_list() {
    let complaint = "ibwarn: [77] _do_madrpc: recv failed: Connection timed out";
    for text in ONE_SWITCH {
        let with = format!("{complaint}\n{}", text.replacen("\n", &format!("\n{complaint}\n"), 1));
        let mut fabric = read(&with).unwrap();
        let told = std::mem::take(&mut fabric.left_out);
        let expected = [1, 3].map(|line| format!("line {line}: a line of standard error: {complaint}"));
        assert_eq!(told, expected);
        assert_eq!(fabric, read(text).unwrap());
    }
}

#[test]
fn a_machine_that_several_fabrics_of_a_file_share_is_one() {
    let rail = |switch: &str, port: u8| {
        let ca = format!("caguid=0xb0\nCa 2 \"h\" # \"h\"\n[{port}](b{port}) \"{switch}\"[7]\n");
        format!("Switch 8 \"{switch}\"\n[7] \"h\"[{port}]\n\n{ca}\n")
    };
    let fabric = read(&(rail("s", 1) + &rail("t", 2))).unwrap();
    let names: Vec<_> = fabric.hosts.iter().map(|label| (label.name.as_str(), label.port_guid)).collect();
    assert_eq!(names, [("h", Some(0xb1)), ("h-p2", Some(0xb2))]);
    let at: Vec<_> = fabric.map.hosts.iter().map(|host| host.at.unwrap().xbar).collect();
    assert_eq!(at, [0, 1]);
}
