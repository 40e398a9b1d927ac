//! Cables that a map cannot hold, and hosts that are cabled to no crossbar.

use super::*;

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
