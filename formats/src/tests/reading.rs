//! What the readers make of the files that other programs print.

use mapper_proto::Mac;
use mapper_proto::map::{Cable, PortRef, host_type};

use super::*;

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
fn a_machine_of_a_gm_map_with_several_interfaces_stays_one() {
    let map = |last: &str| {
        format!(
            "2 1\n\ns 8 \"s\"\n2\n1 h - \"a\" 0\n2 h - \"a\" {last}\n\n\
             h - \"a\"\n2\n0 s 8 \"s\" 1\n{last} s 8 \"s\" 2\n"
        )
    };
    let fabric = read(&map("1")).unwrap();
    let said: Vec<_> =
        fabric.hosts.iter().map(|host| (host.name.as_str(), host.node_port, host.node_ports)).collect();
    assert_eq!(said, [("a", 1, 2), ("a-p2", 2, 2)]);
    let text = write(&fabric, FileFormat::Ibnetdiscover);
    assert_eq!(text.matches("\nCa\t2 \"a\"").count(), 1, "{text}");
    assert_eq!(text.matches("\nCa\t").count(), 1, "{text}");
    let again = read(&text).unwrap();
    assert_eq!(again.hosts[1].name, "a-p2");
    // Ports count from 1 elsewhere, up to 255.
    assert_eq!(read(&map("254")).unwrap().hosts[1].node_port, 255);
    let refusal = read(&map("255")).unwrap_err();
    assert_eq!(refusal, "file:11: node `a` has no port 255; expected a port from 0 to 254");
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
