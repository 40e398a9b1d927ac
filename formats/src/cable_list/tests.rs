//! Lists of cables as tools and people write them.

use super::*;
use crate::parse as parse_any;

/// The cables of a fabric by names, each once, in order.
fn cables(fabric: &Fabric) -> Vec<String> {
    let port =
        |at: mapper_proto::map::PortRef| format!("{}:{}", fabric.xbars[at.xbar as usize].name, at.port);
    let hosts = fabric.map.hosts.iter().zip(&fabric.hosts);
    let hosts = hosts.filter_map(|(host, label)| Some(format!("{} - {}", label.name, port(host.at?))));
    hosts
        .chain(fabric.map.cables.iter().map(|cable| format!("{} - {}", port(cable.a), port(cable.b))))
        .collect()
}

fn read(text: &str) -> Vec<String> {
    cables(&parse_any("plan.csv", text).unwrap())
}

fn refusal(text: &str) -> String {
    parse_any("plan.csv", text).unwrap_err().to_string()
}

#[test]
fn an_ndt_table_is_read_with_its_data_links_alone() {
    let text = "\
rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,LinkType
,,DSM07-01IB0,Port 21,,DSM07-02IB1,Port 3,Data
,,DSM07-01IB0,Port 1,,node001,ibp1s0f0,Data
,,DSM07-01IB0,Port 2,,node001,ibp2s0f0,Data
,,DSM07-01IB0,Mgmt,,oob1,Port 4,Management
";
    let fabric = parse_any("plan.csv", text).unwrap();
    let expected = [
        "node001 ibp1s0f0 - DSM07-01IB0:1",
        "node001 ibp2s0f0 - DSM07-01IB0:2",
        "DSM07-01IB0:21 - DSM07-02IB1:3",
    ];
    assert_eq!(cables(&fabric), expected);
    assert_eq!(
        fabric.left_out,
        ["line 5: its LinkType is not Data, it is decommissioning, or it is for power or a console"]
    );
}

#[test]
fn the_line_that_names_the_columns_may_stand_among_comments() {
    let text = "#device a,port a,device b,port b\n; of old\n\ndevice a,port a,device b,port b\nleaf1,1,n1,1\nleaf1,,n2,1\n";
    assert_eq!(refusal(text), "plan.csv:6, column 2 (port a): `leaf1` has no port here");
    assert_eq!(read(&text.replace("leaf1,,", "leaf1,2,")), ["n1 - leaf1:1", "n2 - leaf1:2"]);
    let text = "#Fields:StartDevice,StartPort,EndDevice,EndPort\nleaf1,Port 1,n1,Port 1\n";
    assert_eq!(read(text), ["n1 - leaf1:1"]);
    let told = refusal("# by rack\nhostname,port,peer,peer port\nleaf1,1,n1,1\n");
    assert!(
        told.starts_with("plan.csv:2: no columns for the devices at both ends of a cable in `hostname,"),
        "{told}"
    );
}

#[test]
fn what_netbox_exports_and_imports_is_read() {
    let export = "ID,Label,Device A,Termination A,Device B,Termination B,Status,Type\n\
                  1,c1,leaf1,Ethernet1/1,n1,mlx5_0,Connected,DAC\n\
                  2,c2,leaf1,Ethernet1/17,spine1,Ethernet1/1,Planned,AOC\n\
                  3,c3,leaf1,Ethernet1/18,spine1,Ethernet1/2,Decommissioning,AOC\n";
    assert_eq!(read(export), ["n1 mlx5_0 - leaf1:1", "leaf1:17 - spine1:1"]);
    let import = "side_a_device;side_a_type;side_a_name;side_b_device;side_b_type;side_b_name\n\
                  leaf1;dcim.interface;swp1;n1;dcim.interface;mlx5_0\n\
                  pdu1;dcim.poweroutlet;out1;n1;dcim.powerport;psu1\n";
    assert_eq!(read(import), ["n1 mlx5_0 - leaf1:1"]);
    let power = "Device A,Termination A,Device B,Termination B,Status,Type\nleaf1,swp1,n1,mlx5_0,Connected,DAC\n\
                 n1,psu1,pdu1,out1,Connected,Power\n";
    assert_eq!(read(power), ["n1 mlx5_0 - leaf1:1"]);
}

#[test]
fn a_spreadsheet_may_have_its_ports_in_one_field_and_say_what_devices_are() {
    assert_eq!(
        read("\u{feff}From\tTo\nleaf1:1\tn1:1\nleaf1/9\tspine1/1\n"),
        ["n1 - leaf1:1", "leaf1:9 - spine1:1"]
    );
    let text = "# by rack\nfrom device,from port,from type,to device,to port,to type\nA,1,switch,B,2,switch\nA,2,,C,1,host\n";
    assert_eq!(read(text), ["C - A:2", "A:1 - B:2"]);
}

#[test]
fn a_fabric_that_was_found_knows_which_devices_are_crossbars() {
    let found = mapper_fabric::generate("clos:hosts=8,ports=4").unwrap();
    let mut found = found;
    found.xbars[0].description = "MF0;alpha:MQM8700/U1".to_owned();
    let text = "from,to\nalpha:1,h1:1\n";
    let fabric = parse(text, 1, Some(&found)).unwrap();
    assert_eq!(cables(&fabric), ["h1 - alpha:1"]);
    assert_eq!(fabric.map.xbars[0].ports, 4);
    assert_eq!(
        cables(&parse("from,to\nalpha:1,h1:1\nalpha:2,h2:1\nalpha:3,h3:1\n", 1, None).unwrap()).len(),
        3
    );
}

#[test]
fn ports_of_a_crossbar_count_from_0_or_from_1() {
    // No list says how many ports a crossbar has: those from 0 to 4 are five.
    let text =
        "device a,port a,type a,device b,port b,type b\nsw1,0,switch,h1,1,host\nsw1,4,switch,h2,1,host\n";
    let fabric = parse_any("plan.csv", text).unwrap();
    assert_eq!(
        (fabric.map.xbars[0].ports, cables(&fabric)),
        (5, vec!["h1 - sw1:0".to_owned(), "h2 - sw1:4".to_owned()])
    );
    for format in [crate::FileFormat::Json, crate::FileFormat::Ibnetdiscover, crate::FileFormat::GmMap] {
        let back = crate::parse("back", &crate::write(&fabric, format)).unwrap();
        assert_eq!(back.map.hosts.len(), 2, "{format:?}");
    }
    let mut found = fabric;
    found.map.xbars[0].ports = 4;
    let refused = parse(text, 1, Some(&found)).unwrap_err();
    assert_eq!(
        (refused.place.as_str(), refused.problem.as_str()),
        ("3", "`sw1` uses ports 0 and 4 and has 4 ports; expected ports that count from 0, or from 1")
    );
}

#[test]
fn what_cannot_be_read_is_named_by_line_and_column() {
    let text = "StartDevice,StartPort,EndDevice,EndPort,LinkType\nleaf1,Port 1,n1,Port 1,Data\nleaf1,uplink,spine1,Port 2,Data\n";
    assert_eq!(refusal(text), "plan.csv:3, column 2 (StartPort): port `uplink` has no number at its end");
    let text = "from,to\nleaf1,n1:1\n";
    assert_eq!(
        refusal(text),
        "plan.csv:2, column 1 (from): `leaf1` has no port; expected a device and its port, as in leaf1:7"
    );
    let text = "device a,port a,device b,port b\nleaf1,1,n1,1\nleaf1,,n2,1\n";
    assert_eq!(refusal(text), "plan.csv:3, column 2 (port a): `leaf1` has no port here");
    let text = "device a,port a,device b,port b\nleaf1,1,n1,1\nleaf1,300,n2,1\n";
    assert_eq!(refusal(text), "plan.csv:3, column 2 (port a): port `300` is none of 0 to 254");
    let text = "device a,port a,device b,port b\nleaf1,Blade 1_Port 1/1,n1,1\nleaf1,Blade 2_Port 1/1,n2,1\n";
    assert!(
        refusal(text).starts_with("plan.csv:3, column 2 (port a): port `Blade 2_Port 1/1` of `leaf1`"),
        "{}",
        refusal(text)
    );
    let text = "device a,port a,device b,port b\nleaf1,1,n1,1\nleaf1,1,n2,1\n";
    assert!(refusal(text).contains("a port has one cable"), "{}", refusal(text));
    assert!(refusal("device a,port a,device b,port b\n").contains("there is no cable in it"));
    let text = "StartDevice,StartPort,EndDevice,EndPort,LinkType\nleaf1,1,n1,1,Power\nleaf1,2,n2,1,AOC\n";
    let told = refusal(text);
    assert!(
        told.starts_with("plan.csv:2: no cable is left") && told.contains("LinkType is not Data"),
        "{told}"
    );
}

#[test]
fn a_csv_without_the_devices_says_which_columns_it_needs() {
    for text in ["hostname,port,peer,peer port\nleaf1,1,n1,1\n", "rack;unit;name;serial\n"] {
        let refusal = refusal(text);
        assert!(refusal.starts_with("plan.csv:1: no columns for the devices at both ends"), "{refusal}");
        assert!(refusal.contains("`device a,port a,device b,port b`"), "{refusal}");
    }
    let unnamed = parse_any("plan", "hostname,port,peer,peer port\n").unwrap_err().to_string();
    assert!(unnamed.contains("no columns for the devices"), "{unnamed}");
}

#[test]
fn no_bytes_make_the_reader_panic() {
    for text in [
        "from,to\n\"",
        "from,to\n,,,,\n:,:\n",
        "from,to\na:1,a:1\n",
        "from;to\n\u{0};\u{0}\n",
        "from,to\na:255,b:0\n",
    ] {
        let _either = parse_any("plan.csv", text);
    }
}
