//! Tests of `mapper topology` as a user runs it: its files, exit statuses and JSON, and what other programs
//! make of its files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mapper_formats::{self as formats, FileFormat};
use mapper_proto::map::Fabric;
use serde_json::Value;

fn mapper(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mapper")).arg("topology").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = mapper(&[arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&output.stdout).unwrap()
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Compares a text with a file under `tests/data`, which UPDATE_GOLDEN=1 rewrites.
fn assert_golden(name: &str, text: &str) {
    let path = data(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{} differs; UPDATE_GOLDEN=1 rewrites it:\n{text}", path.display());
}

#[test]
fn files_are_written_as_they_always_were() {
    let fabric = formats::resolve("clos:hosts=8,ports=4").unwrap();
    for (name, format) in [
        ("clos8.net", FileFormat::Ibnetdiscover),
        ("clos8.map", FileFormat::GmMap),
        ("clos8.json", FileFormat::Json),
        ("clos8.dot", FileFormat::Dot),
        ("clos8.svg", FileFormat::Svg),
    ] {
        assert_golden(name, &formats::write(&fabric, format));
    }
    for (name, spec) in [("torus3x2.svg", "torus:x=3,y=2,hosts=2"), ("ring5.svg", "ring:n=5")] {
        assert_golden(name, &formats::write(&formats::resolve(spec).unwrap(), FileFormat::Svg));
    }
    assert_golden("clos8.show", &stdout(&mapper(&["show", "clos:hosts=8,ports=4"])));
}

#[test]
fn systems_that_ibutils_describes_are_read_from_their_folder() {
    let fabric = formats::read_fabric(&data("ibutils/room.topo")).unwrap();
    assert_eq!((fabric.map.xbars.len(), fabric.map.hosts.len()), (6, 5));
    // Each leaf board has two cables to its spine board, and one cable joins the racks.
    assert_eq!(fabric.map.cables.len(), 2 * 4 + 1);
    let chips: Vec<&str> = fabric.xbars.iter().map(|label| label.name.as_str()).collect();
    assert_eq!(
        chips,
        ["R1/leaf1/U1", "R1/leaf2/U1", "R1/spine/U1", "R2/leaf1/U1", "R2/leaf2/U1", "R2/spine/U1"]
    );
    let wide = fabric.map.hosts[4].at.unwrap();
    assert_eq!((wide.xbar, fabric.link_speeds[&wide].to_string()), (3, "12xQDR".to_owned()));
    let [plug] = &fabric.left_out[..] else { panic!("{:?}", fabric.left_out) };
    assert!(
        plug.contains("the cable from `R1/leaf1/U1` port 6 to `R1/leaf1/U1` port 6: it leads back"),
        "{plug}"
    );
    let bare = formats::read_fabric(&data("ibutils/bare.topo")).unwrap();
    assert_eq!((bare.map.xbars.len(), bare.map.cables.len(), bare.isolated().len()), (3, 4, 1));
}

#[test]
fn what_ibnetdiscover_printed_is_read() {
    // The file was printed by infiniband-diags 44.0 on a simulated fabric of two machines with two ports
    // each.
    let fabric = formats::read_fabric(&data("ibnetdiscover-44.net")).unwrap();
    assert_eq!((fabric.map.hosts.len(), fabric.map.xbars.len(), fabric.map.cables.len()), (4, 2, 2));
    assert_eq!(fabric.hosts[1].name, format!("{}-p2", fabric.hosts[0].name));
}

#[test]
fn a_fabric_goes_through_every_format_and_stays_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let steps = ["a.json", "b.net", "c.map", "d.json"];
    assert!(mapper(&["generate", "now:subclusters=3", "-o", &path(steps[0])]).status.success());
    for pair in steps.windows(2) {
        let output = mapper(&["convert", &path(pair[0]), "-o", &path(pair[1])]);
        assert!(
            stdout(&output).ends_with("100 hosts, 40 xbars, 93 cables between xbars (193 with hosts')\n")
        );
    }
    let same = mapper(&["diff", "now:subclusters=3", &path("d.json")]);
    assert_eq!((same.status.code(), stdout(&same)), (Some(0), "no difference\n".to_owned()));
    // The format is found out from what is in the file, even if its name says another.
    std::fs::copy(path("b.net"), path("e.map")).unwrap();
    assert!(mapper(&["diff", &path("a.json"), &path("e.map")]).status.success());
}

#[test]
fn diff_names_what_differs_and_exits_with_3() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.json");
    let mut fabric = formats::resolve("clos:hosts=8,ports=4").unwrap();
    fabric.map.cables.remove(0);
    std::fs::write(&path, formats::write(&fabric, FileFormat::Json)).unwrap();
    let path = path.display().to_string();
    let output = mapper(&["diff", "clos:hosts=8,ports=4", &path]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stdout(&output), "missing cable  leaf1:3 - spine1:1\n");
    let found = json(&["diff", "clos:hosts=8,ports=4", &path]);
    assert_eq!((found["schema"].as_str(), found["same"].as_bool()), (Some("mapper.diff/1"), Some(false)));
    assert_eq!(found["missing"][0]["a"], serde_json::json!(["leaf1", 3]));
}

#[test]
fn json_has_a_schema_also_on_failure() {
    let shown = json(&["show", "clos:hosts=128,ports=16"]);
    assert_eq!((shown["schema"].as_str(), shown["hosts"].as_u64()), (Some("mapper.topology/1"), Some(128)));
    assert_eq!(shown["tiers"], serde_json::json!([16, 8]));
    assert_eq!(shown["map"]["schema"], "mapper.map/1");
    let failed = json(&["show", "no/such/file.map"]);
    assert_eq!(failed["schema"], "mapper.error/1");
    assert!(failed["error"].as_str().unwrap().starts_with("cannot read no/such/file.map: "));
    let printed: Value =
        serde_json::from_str(&stdout(&mapper(&["generate", "ring:n=3", "-o", "-"]))).unwrap();
    assert_eq!(printed["schema"], "mapper.map/1");
}

#[test]
fn failures_say_what_was_wrong_and_leave_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.net");
    std::fs::write(&good, "Switch 8 \"s\"\n[9] \"s\"[1]\n").unwrap();
    let output = mapper(&["convert", good.to_str().unwrap(), "-o", good.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("good.net:2: node `s` has no port 9; expected a port from 1 to 8"), "{message}");
    assert!(std::fs::read_to_string(&good).unwrap().starts_with("Switch 8"), "the file is as it was");
    let output = mapper(&["generate", "ring:n=3", "-o", "ring.unknown"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("name one with --to"));
    assert_eq!(mapper(&["generate", "ring:n=3"]).status.code(), Some(2), "a wrong command line");
}

/// A torus that has lost two cables and an xbar, in the generator's ports and names.
fn broken_torus() -> Fabric {
    let mut fabric = formats::resolve("torus:x=4,y=3,z=2,hosts=1").unwrap();
    let joins =
        |a: u32, b: u32| move |cable: &mapper_proto::map::Cable| (cable.a.xbar, cable.b.xbar) == (a, b);
    let lost = [joins(1, 2), joins(4, 16)];
    let gone = 23;
    fabric.map.cables.retain(|cable| !lost.iter().any(|is_lost| is_lost(cable)) && cable.b.xbar != gone);
    fabric.map.xbars.pop();
    fabric.xbars.pop();
    fabric.map.hosts.pop();
    fabric.hosts.pop();
    fabric
}

#[test]
fn a_torus_is_drawn_plane_by_plane() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("torus.json");
    std::fs::write(&path, formats::write(&broken_torus(), FileFormat::Json)).unwrap();
    let path = path.to_str().unwrap();
    let text = stdout(&mapper(&["show", path]));
    let planes = text.find("\ntorus").map(|at| &text[at + 1..]).unwrap_or(&text);
    assert_golden("torus4x3x2.planes", planes);
    let json = json(&["show", path]);
    assert_eq!(json["torus"]["sizes"], serde_json::json!([4, 3, 2]));
    assert_eq!(json["torus"]["rings"], serde_json::json!([true, true, false]));
    assert_eq!(json["torus"]["missing_xbars"], serde_json::json!([[3, 2, 1]]));
    let cable = |at: usize| json["torus"]["missing_cables"][at].clone();
    assert_eq!((&cable(0)["a"], &cable(0)["b"]), (&"n1-0-0".into(), &"n2-0-0".into()));
    assert_eq!((&cable(1)["a"], &cable(1)["dimension"]), (&"n0-1-0".into(), &"z".into()));
    assert_eq!(json["torus"]["coordinates"][22], serde_json::json!({ "id": "n2-2-1", "at": [2, 2, 1] }));
    let clos = self::json(&["show", "clos:hosts=8,ports=4"]);
    assert!(clos["torus"].is_null());
}

#[test]
fn show_tells_what_was_left_out_and_other_commands_that_something_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fabric.net");
    let text = "ibwarn: [7] mad_rpc: failed\nSwitch 8 \"s\"\n[1] \"a\"[1] # \"a\" lid 1 4xHDR\n[2] \"s\"[3]\n\n\
                Ca 2 \"a\"\n[2] \"b\"[1]\n\nCa 1 \"b\"\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let shown = stdout(&mapper(&["show", file]));
    assert!(shown.contains("\nspeeds: 1 unknown, 1 4xHDR\n"), "{shown}");
    let left_out = "\nleft out of the file:\n  line 1: a line of standard error: ibwarn: [7] mad_rpc: failed\n  \
                    line 7: the cable from `a` port 2 to `b` port 1: it joins hosts without a switch, and there is \
                    more in the file\n";
    assert!(shown.contains(left_out), "{shown}");
    let shown = json(&["show", file]);
    assert_eq!(shown["left_out"].as_array().unwrap().len(), 2);
    assert_eq!(shown["link_speeds"], serde_json::json!({"unknown": 1, "4xHDR": 1}));
    let output = mapper(&["convert", file, "-o", "-"]);
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(told.contains("left out, line 1: a line of standard error"), "{told}");
    assert!(told.contains("(the first of 2); `mapper topology show"), "{told}");
    assert!(stdout(&output).contains("\"port\":1,\"speed\":\"4xHDR\""), "{}", stdout(&output));
}

#[test]
fn systems_beside_a_topo_file_are_taken_apart() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("fabric.topo", "Box B\n  P1 -4x-10G-> Card H-1 P1\n  P2 -> Card H-2 P1\n");
    write("box.ibnl", "TOPSYSTEM Box\nNODE SW 4 MT1 U1\n 1 -> P1\n 2 -> P2\n");
    let show = || mapper(&["show", folder.path().join("fabric.topo").to_str().unwrap()]);
    let error = String::from_utf8(show().stderr).unwrap();
    let expected =
        "fabric.topo:2, column 16: there is no description of system `Card`; expected a .ibnl file";
    assert!(error.contains(expected), "{error}");
    write("card.ibnl", "TOPSYSTEM Card\nNODE CA x MT2 U1\n");
    let error = String::from_utf8(show().stderr).unwrap();
    assert!(error.contains("card.ibnl:2: expected `SYSTEM`"), "{error}");
    write("card.ibnl", "TOPSYSTEM Card\nNODE CA 1 MT2 U1\n 1 -> P1\n");
    let shown = stdout(&show());
    assert!(shown.contains("2 hosts, 1 xbar, 0 cables between xbars (2 with hosts')"), "{shown}");
}
