//! `mapper route` and `mapper check` as a user runs them: tables and routes as files, what is refused, exit
//! statuses, JSON.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mapper::formats::{self, lfts};
use mapper::routing::{Far, Subnet, Tables};
use mapper_proto::map::PortRef;
use serde_json::Value;

fn mapper(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mapper")).args(arguments).output().unwrap()
}

/// Runs a command that must end with this status, and reads its JSON.
fn json(status: i32, arguments: &[&str]) -> Value {
    let output = mapper(&[arguments, &["--format", "json"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The error of a command that must fail.
fn error(arguments: &[&str]) -> String {
    let error = json(1, arguments);
    assert_eq!(error["schema"], "mapper.error/1");
    error["error"].as_str().unwrap().to_owned()
}

fn text(status: i32, arguments: &[&str]) -> String {
    let output = mapper(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A folder whose files are named by strings.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.path().join(name), text).unwrap();
        self.path(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }
}

/// The dump of tables with shortest routes, found by a search from each destination; of equals the one
/// through the first port.
fn shortest(spec: &str) -> String {
    let fabric = formats::resolve(spec).unwrap();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let topology = &subnet.topology;
    let mut tables = Tables::empty(topology.xbar_count(), subnet.destinations.slot_count());
    for to in 0..topology.xbar_count() as u32 {
        let mut towards = vec![Tables::NONE; topology.xbar_count()];
        let mut queue = VecDeque::from([to]);
        while let Some(xbar) = queue.pop_front() {
            for channel in topology.channels_of(xbar) {
                let head = topology.head(channel);
                if head.xbar != to && towards[head.xbar as usize] == Tables::NONE {
                    towards[head.xbar as usize] = head.port;
                    queue.push_back(head.xbar);
                }
            }
        }
        for slot in subnet.destinations.slots_of(to) {
            (0..).zip(&towards).for_each(|(xbar, &port)| tables.set_port(xbar, slot, port));
        }
        for port in 0..=254 {
            if let Far::Host(host) = topology.far(PortRef { xbar: to, port }) {
                subnet.destinations.slots_of_host(host).for_each(|slot| tables.set_port(to, slot, port));
            }
        }
    }
    let mut text = Vec::new();
    lfts::Dump::new(&fabric, &subnet).unwrap().write(&mut text, &tables).unwrap();
    String::from_utf8(text).unwrap()
}

const CLOS: &str = "clos:hosts=8,ports=4";
const RING: &str = "ring:n=5,hosts=2";

#[test]
fn tables_are_written_as_they_always_were() {
    let folder = Folder::new();
    let file = folder.write("shortest.lfts", &shortest(CLOS));
    text(0, &["route", CLOS, "--engine", "file", "--lfts-file", &file, "--lfts", &folder.path("a.lfts")]);
    let written = folder.read("a.lfts");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(data("clos8.lfts"), &written).unwrap();
    }
    let golden = fs::read_to_string(data("clos8.lfts")).unwrap_or_default();
    assert!(written == golden, "clos8.lfts differs; UPDATE_GOLDEN=1 rewrites it:\n{written}");
}

#[test]
fn json_has_the_keys_that_others_rely_on() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(CLOS));
    let route = json(0, &["route", CLOS, "--engine", "file", "--lfts-file", &file, "--threads", "2"]);
    assert_eq!((route["schema"].as_str(), route["engine"].as_str()), (Some("mapper.route/1"), Some("file")));
    assert_eq!((route["hosts"].as_u64(), route["xbars"].as_u64()), (Some(8), Some(6)));
    assert_eq!((route["threads"].as_u64(), route["layers"].as_u64()), (Some(2), Some(1)));
    assert!(route["compute_ms"].as_f64().unwrap() <= route["total_ms"].as_f64().unwrap());
    assert_eq!((&route["tried"], &route["changed_entries"]), (&serde_json::json!([]), &Value::Null));
    let check = json(0, &["check", CLOS, "--lfts", &file]);
    assert_eq!(check["schema"], "mapper.check/1");
    for report in [&route, &check] {
        let proof = &report["proof"];
        for key in ["reachable", "loop_free", "deadlock_free"] {
            assert_eq!(proof[key], true, "{key}");
        }
        assert_eq!((&proof["max_hops"], &proof["violations"]), (&3.into(), &serde_json::json!([])));
    }
}

#[test]
fn a_wrong_command_line_is_told_from_failure() {
    for arguments in [
        &["route", CLOS][..],
        &["route", CLOS, "--engine", "nonsense"],
        &["route", CLOS, "--engine", "minhop", "--threads", "0"],
        &["route", CLOS, "--engine", "minhop", "--reassign"],
        &["route", CLOS, "--engine", "minhop", "--lmc", "8"],
        &["check", CLOS],
        &["check", CLOS, "--lfts", "a", "--routes-dir", "b"],
        &["check", CLOS, "--sls", "a"],
    ] {
        let message = json(2, arguments);
        assert_eq!(message["schema"], "mapper.error/1", "{arguments:?}");
    }
    let message = error(&["check", CLOS, "--lfts", "no/such/file"]);
    assert!(message.starts_with("cannot read no/such/file: "), "{message}");
}

#[test]
fn tables_with_a_credit_loop_are_refused_and_checked() {
    let folder = Folder::new();
    let file = folder.write("ring.lfts", &shortest(RING));
    let out = folder.path("out.lfts");
    let engine = ["route", RING, "--engine", "file", "--no-fallback", "--lfts-file", &file, "--lfts", &out];
    let message = error(&engine);
    assert!(message.starts_with("no engine serves this fabric: file: "), "{message}");
    for port in ["xbar1 port ", "xbar2 port ", "xbar3 port ", "xbar4 port ", "xbar5 port "] {
        assert!(message.contains(port), "{port}: {message}");
    }
    assert!(!Path::new(&out).exists(), "what is not proved is not written");

    let report = json(0, &[&engine[..], &["--unsafe"]].concat());
    let proof = &report["proof"];
    assert_eq!((&proof["deadlock_free"], &proof["reachable"]), (&false.into(), &true.into()));
    assert!(proof["violations"][0].as_str().unwrap().starts_with("layer 0 can deadlock"), "{proof}");
    let found = json(3, &["check", RING, "--lfts", &out]);
    assert_eq!((&found["proof"], &found["holds"]), (proof, &false.into()));
    let shown = text(3, &["check", RING, "--lfts", &out]);
    assert!(shown.contains("DEADLOCK") && shown.contains("then xbar3 port "), "{shown}");
}

#[test]
fn a_missing_entry_is_found_and_named() {
    let folder = Folder::new();
    let tables = shortest(CLOS);
    let row = "0x0008 003 # Channel Adapter: 'h8'\n";
    assert!(tables.contains(row));
    // The first table is leaf1's.
    let file = folder.write("a.lfts", &tables.replacen(row, "", 1));
    let found = json(3, &["check", CLOS, "--lfts", &file]);
    assert_eq!(found["proof"]["reachable"], false);
    let violation = found["proof"]["violations"][0].as_str().unwrap();
    assert!(violation.contains("h1 cannot reach h8: leaf1 has no entry for LID 0x0008"), "{violation}");
}

#[test]
fn broken_files_are_refused_with_their_line() {
    let folder = Folder::new();
    let tables = shortest(CLOS);
    let past = tables.replacen("0x0002 002", "0x0002 005", 1);
    let lines = [
        (past, "bad:3: xbar `leaf1` has no port 5; expected a port from 0 to 4"),
        (tables.replacen("0x0001 001", "0x0001 one", 1), "bad:2: `0x0001 one"),
        ("{}\n".to_owned(), "bad:1: `{}` is no line of a table"),
    ];
    for (bad, expected) in lines {
        let bad = folder.write("bad", &bad);
        for message in [
            error(&["check", CLOS, "--lfts", &bad]),
            error(&["route", CLOS, "--engine", "file", "--lfts-file", &bad]),
            error(&["route", CLOS, "--engine", "minhop", "--previous", &bad]),
        ] {
            assert!(message.contains(expected), "{message}");
        }
    }
    let good = folder.write("good", &tables);
    let bad = folder.write("bad", "0x0001 0x0002 0\n0x0001 0x0003 16\n");
    let message = error(&["check", CLOS, "--lfts", &good, "--sls", &bad]);
    assert!(message.contains("bad:2: `0x0001 0x0003 16`: expected"), "{message}");
}

#[test]
fn changed_entries_are_counted_against_the_tables_before() {
    let folder = Folder::new();
    let tables = shortest(CLOS);
    let file = folder.write("a.lfts", &tables);
    let other = tables.replacen("0x0008 003", "0x0008 004", 1).replacen(
        "0x0007 003 # Channel Adapter: 'h7'\n",
        "",
        1,
    );
    // That an xbar's own row is gone is no change.
    let other = other.replacen("0x0009 000 # Switch portguid 0x0200000000000001: 'leaf1'\n", "", 1);
    let previous = folder.write("b.lfts", &other);
    let changed = |previous: &str| {
        let engine = ["route", CLOS, "--engine", "file", "--lfts-file", &file, "--previous", previous];
        json(0, &engine)["changed_entries"].as_u64()
    };
    assert_eq!((changed(&file), changed(&previous)), (Some(0), Some(2)));
}

#[test]
fn service_levels_are_written_and_checked() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(RING));
    let sls = folder.path("a.sls");
    let engine = ["route", RING, "--engine", "file", "--lfts-file", &file, "--unsafe", "--sls", &sls];
    text(0, &engine);
    let levels = folder.read("a.sls");
    assert_eq!((levels.lines().count(), levels.lines().next()), (90, Some("0x0001 0x0002 0")));
    assert_eq!(json(3, &["check", RING, "--lfts", &file, "--sls", &sls])["layers"], 1);
    // Routes that begin at the first two xbars in a layer of their own: no circle is whole.
    let two: String = levels
        .lines()
        .map(|line| {
            let apart = ["0x0001", "0x0002", "0x0003", "0x0004"].contains(&&line[..6]);
            format!("{} {}\n", &line[..13], if apart { 5 } else { 2 })
        })
        .collect();
    let sls = folder.write("two.sls", &two);
    let report = json(0, &["check", RING, "--lfts", &file, "--sls", &sls]);
    assert_eq!((&report["layers"], &report["proof"]["deadlock_free"]), (&2.into(), &true.into()));
    // One host of an xbar alone in another layer.
    let sls = folder.write("mixed.sls", &two.replacen("0x0001 0x0009 5", "0x0001 0x0009 7", 1));
    let report = json(0, &["check", RING, "--lfts", &file, "--sls", &sls]);
    assert_eq!((&report["layers"], &report["proof"]["deadlock_free"]), (&3.into(), &true.into()));
}

#[test]
fn what_opensm_dumped_is_checked() {
    let (fabric, tables) = (data("opensm-clos8.net"), data("opensm-clos8.lfts"));
    let (fabric, tables) = (fabric.to_str().unwrap(), tables.to_str().unwrap());
    let report = json(0, &["check", fabric, "--lfts", tables]);
    assert_eq!((&report["notes"], &report["proof"]["max_hops"]), (&serde_json::json!([]), &3.into()));
    let folder = Folder::new();
    let out = folder.path("out.lfts");
    text(0, &["route", fabric, "--engine", "file", "--lfts_file", tables, "--lfts", &out]);
    assert!(folder.read("out.lfts") == fs::read_to_string(tables).unwrap(), "the same byte by byte");
}

#[test]
fn routes_of_hosts_are_written_and_checked() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(CLOS));
    for engine in [&["--engine", "file", "--lfts-file", &file][..], &["--engine", "dispersive"]] {
        let dir = folder.path(engine[1]);
        let route = json(0, &[&["route", CLOS, "--routes-dir", &dir], engine].concat());
        assert_eq!(route["engine"], engine[1]);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 8);
        let check = json(0, &["check", CLOS, "--routes-dir", &dir]);
        assert_eq!(check["proof"], route["proof"], "{}", engine[1]);
        // From tables a route a pair; dispersive finds both ways between leaves.
        let expected = if engine[1] == "file" { 8 * 7 } else { 8 * (1 + 6 * 2) };
        assert_eq!(check["routes"], expected, "{}", engine[1]);
    }
    let message = error(&["route", CLOS, "--engine", "dispersive", "--lfts", &folder.path("no.lfts")]);
    assert!(message.starts_with("--lfts: the engine dispersive has no forwarding tables"), "{message}");
    assert!(!Path::new(&folder.path("no.lfts")).exists());
}

#[test]
fn broken_routes_are_named_by_file_and_entry() {
    let folder = Folder::new();
    let file = folder.write("a.lfts", &shortest(RING));
    let dir = folder.path("routes");
    text(0, &["route", RING, "--engine", "file", "--lfts-file", &file, "--unsafe", "--routes-dir", &dir]);
    let found = json(3, &["check", RING, "--routes-dir", &dir]);
    assert_eq!(
        (&found["proof"]["reachable"], &found["proof"]["deadlock_free"]),
        (&true.into(), &false.into())
    );
    let circle = found["proof"]["violations"][0].as_str().unwrap();
    assert!(circle.starts_with("layer 0 can deadlock: ") && circle.contains("xbar4 port "), "{circle}");

    let first = "routes/02-00-00-00-00-01.json";
    let good = folder.read(first);
    folder.write(first, &good.replacen("\"layer\":0", "\"layer\":16", 1));
    let message = error(&["check", RING, "--routes-dir", &dir]);
    let expected =
        "02-00-00-00-00-01.json:routes[0] to 02:00:00:00:00:02: layer 16; expected one from 0 to 15";
    assert!(message.contains(expected), "{message}");
    folder.write(first, "{\n\"schema\": \"x\" ]");
    let message = error(&["check", RING, "--routes-dir", &dir]);
    assert!(message.contains("02-00-00-00-00-01.json:2: "), "{message}");

    // A host without a file reaches nobody.
    fs::remove_file(folder.path(first)).unwrap();
    let found = json(3, &["check", RING, "--routes-dir", &dir]);
    assert_eq!(found["proof"]["reachable"], false);
    assert_eq!(found["proof"]["violations"][0], "h1 has no route to h2, though cables lead there");
    assert_eq!(found["notes"][0], "1 hosts have no file of routes, h1 one of them");
    folder.write("routes/twin.json", &folder.read("routes/02-00-00-00-00-02.json"));
    let message = error(&["check", RING, "--routes-dir", &dir]);
    assert!(message.ends_with("twin.json: host: h2 has another file here, too"), "{message}");
}

#[test]
fn the_number_of_threads_changes_no_file() {
    let folder = Folder::new();
    let spec = "torus:x=4,y=3,hosts=3";
    let file = folder.write("a.lfts", &shortest(spec));
    let mut outputs = Vec::new();
    for threads in ["1", "2", "5"] {
        let (lfts, sls, dir) = (folder.path("o.lfts"), folder.path("o.sls"), folder.path(threads));
        let what = ["--lfts", &lfts, "--sls", &sls, "--routes-dir", &dir, "--threads", threads, "--unsafe"];
        let engine = ["route", spec, "--engine", "file", "--lfts-file", &file];
        let mut report = json(0, &[&engine[..], &what].concat());
        let mut check = json(3, &["check", spec, "--routes-dir", &dir, "--threads", threads]);
        for key in ["compute_ms", "total_ms", "threads", "written"] {
            report[key].take();
        }
        let routes: Vec<String> =
            (1..=36).map(|host| folder.read(&format!("{threads}/02-00-00-00-00-{host:02x}.json"))).collect();
        outputs.push((folder.read("o.lfts"), folder.read("o.sls"), routes, report, check.take()));
    }
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn shortest_routes_round_a_ring_are_refused() {
    let folder = Folder::new();
    let out = folder.path("ring.lfts");
    let engine = ["route", RING, "--engine", "minhop", "--balance", "opensm", "--lfts", &out];
    let message = error(&engine);
    assert!(
        message.contains("minhop: layer 0 can deadlock: frames wait in a circle to leave xbar"),
        "{message}"
    );
    assert!(!Path::new(&out).exists());
    text(0, &[&engine[..], &["--unsafe"]].concat());
    let found = json(3, &["check", RING, "--lfts", &out]);
    assert_eq!(found["proof"]["deadlock_free"], false);
}

#[test]
fn files_of_settings_are_read_and_written() {
    let folder = Folder::new();
    let roots = folder.write("roots", "0x0200000000000005 # spine1\n0x0200000000000006\nnonsense\n");
    let (lfts, matrix) = (folder.path("a.lfts"), folder.path("a.matrix"));
    let updn = ["route", CLOS, "--engine", "updn", "--no-fallback", "--balance", "opensm"];
    let files = ["--root_guid_file", &roots, "--lfts", &lfts, "--dump-lid-matrix", &matrix];
    let report = json(0, &[&updn[..], &files].concat());
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().starts_with(&roots)), "{notes:?}");
    assert!(folder.read("a.matrix").starts_with("Switch: guid 0x0200000000000001\n"));
    assert_eq!(report["written"]["lid_matrix"], matrix.as_str());
    let again = ["route", CLOS, "--engine", "minhop", "--lid-matrix-file", &matrix];
    assert_eq!(json(0, &again)["proof"]["deadlock_free"], true);
    let order = folder.path("order");
    let ftree = ["route", CLOS, "--engine", "ftree", "--no-fallback", "--ftree-order", &order];
    assert_eq!(json(0, &ftree)["engine"], "ftree");
    assert!(folder.read("order").starts_with("0x0001\th1\n0x0002\th2\n0x0003\th3\n"));
    let wrong = error(&["route", CLOS, "--engine", "minhop", "--balance", "opensm", "--ftree-order", &order]);
    assert!(wrong.starts_with("--ftree-order: minhop served"), "{wrong}");
}

#[test]
fn a_torus_is_served_in_direction_order_in_few_layers() {
    let folder = Folder::new();
    let (lfts, sls) = (folder.path("a.lfts"), folder.path("a.sls"));
    let spec = "torus:x=6,y=5,z=5,hosts=16";
    let engine = ["route", spec, "--engine", "torus,updn", "--lfts", &lfts, "--sls", &sls];
    let report = json(0, &engine);
    assert_eq!((&report["engine"], &report["proof"]["deadlock_free"]), (&"torus".into(), &true.into()));
    assert!(report["layers"].as_u64().unwrap() <= 4, "{report}");
    let check = json(0, &["check", spec, "--lfts", &lfts, "--sls", &sls]);
    assert_eq!((&check["proof"], &check["layers"]), (&report["proof"], &report["layers"]));
}

#[test]
fn a_torus_has_the_same_tables_whatever_the_threads() {
    let folder = Folder::new();
    let mut written = Vec::new();
    for threads in ["1", "2"] {
        let (lfts, sls) = (folder.path("a.lfts"), folder.path("a.sls"));
        let engine = ["route", "torus:x=5,y=4,z=3,hosts=2", "--engine", "torus", "--no-fallback"];
        text(0, &[&engine[..], &["--threads", threads, "--lfts", &lfts, "--sls", &sls]].concat());
        written.push((folder.read("a.lfts"), folder.read("a.sls")));
    }
    assert!(written[0] == written[1]);
}

#[test]
fn a_torus_is_stated_by_a_file() {
    let folder = Folder::new();
    let stated = folder.write("t.toml", "sizes = [4, 3]\ndatelines = [2, 0]\n");
    let engine = ["route", "torus:x=4,y=3,hosts=1", "--engine", "torus", "--no-fallback", "--torus-file"];
    let report = json(0, &[&engine[..], &[&stated]].concat());
    let notes = report["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note == "torus: datelines from x 1 to 2, y 2 to 0"), "{notes:?}");
    let bad = folder.write("bad.toml", "sizes = [4, 3]\nrings = [true]\n");
    let message = error(&[&engine[..], &[&bad]].concat());
    assert!(message.contains("bad.toml:2: `rings`: it has 1 entry"), "{message}");
}

/// Source-routed crossbars have no layers, so whoever writes routes that need several is told.
#[test]
fn source_routes_of_a_torus_name_their_layers() {
    let folder = Folder::new();
    for (spec, layers) in [("torus:x=5,y=4,z=3,hosts=1", 2..=4), ("mesh:x=4,y=3,z=2,hosts=1", 1..=1)] {
        let dir = folder.path(&format!("routes-{}", layers.end()));
        let engine = ["route", spec, "--engine", "torus", "--no-fallback", "--routes-dir", &dir];
        let report = json(0, &engine);
        assert!(layers.contains(&report["layers"].as_u64().unwrap()), "{report}");
        let notes = report["notes"].to_string();
        assert_eq!(notes.contains("have no layers"), *layers.end() > 1, "{notes}");
        // The files say which route is in which layer, and so they prove.
        let check = json(0, &["check", spec, "--routes-dir", &dir]);
        assert_eq!((&check["holds"], &check["layers"]), (&true.into(), &report["layers"]));
        if *layers.end() > 1 {
            // All in one layer, as frames without any would be, they can deadlock.
            for entry in std::fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let mut routes: serde_json::Value =
                    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
                for route in routes["routes"].as_array_mut().unwrap() {
                    route["layer"] = 0.into();
                }
                std::fs::write(&path, routes.to_string()).unwrap();
            }
            let check = json(3, &["check", spec, "--routes-dir", &dir]);
            assert_eq!(check["proof"]["deadlock_free"], false);
        }
    }
}

/// Regions of a file: outside one, all of its destinations are looked up as one.
#[test]
fn regions_are_stated_by_a_file() {
    let folder = Folder::new();
    let engine = ["route", "torus:x=6,y=4,hosts=1", "--engine", "torus", "--no-fallback", "--torus-file"];
    let lfts = folder.path("a.lfts");
    let stated = folder.write("t.toml", "sizes = [6, 4]\nregions = [2, 4]\n");
    let report = json(0, &[&engine[..], &[&stated, "--lfts", &lfts]].concat());
    assert_eq!(report["proof"]["deadlock_free"], true);
    // The first xbar is at 0,0; xbars at x = 2 and 3 are one region, to which it has one port.
    let fabric = formats::resolve("torus:x=6,y=4,hosts=1").unwrap();
    let subnet = mapper::routing::Subnet::new(&fabric, None).unwrap();
    let loaded = formats::lfts::read(Path::new(&lfts), &fabric, &subnet).unwrap();
    let region = (0..24_u32).filter(|xbar| (2..4).contains(&(xbar % 6)));
    let ports = region.map(|xbar| {
        let slot = subnet.destinations.slots_of_host(xbar).start;
        loaded.tables.port(0, slot)
    });
    let ports: std::collections::BTreeSet<u8> = ports.collect();
    assert_eq!(ports.len(), 1, "{ports:?}");
    let bad = folder.write("bad.toml", "sizes = [6, 4]\nregions = [2, 2]\n");
    let message = error(&[&engine[..], &[&bad]].concat());
    assert!(message.contains("regions of 2 x 2 x 1 cannot be routed as one"), "{message}");
}

/// A dateline of a line is refused with the file and the line that state it, though the shape is found
/// only in the fabric.
#[test]
fn a_dateline_of_a_line_is_refused_where_it_is_stated() {
    let folder = Folder::new();
    let stated = folder.write("t.toml", "# a mesh\ndatelines = [0, 1]\n");
    let engine = ["route", "mesh:x=4,y=3,hosts=1", "--engine", "torus", "--no-fallback", "--torus-file"];
    let message = error(&[&engine[..], &[&stated]].concat());
    assert!(message.contains("t.toml:2: `datelines`: 1 is stated for y, but y is a line"), "{message}");
    let small = folder.write("small.toml", "sizes = [3, 3]\n");
    let message = error(&[&engine[..], &[&small]].concat());
    assert!(message.contains("small.toml:1: the sizes that are stated make 9 places"), "{message}");
}

#[test]
fn what_is_no_torus_falls_back() {
    let folder = Folder::new();
    let mut fabric = formats::resolve("torus:x=5,y=4,hosts=1").unwrap();
    // Two cables cross.
    let [first, .., last] = &mut fabric.map.cables[..] else { panic!("a torus has cables") };
    std::mem::swap(&mut first.b, &mut last.b);
    let spec = folder.write("crossed.json", &formats::write(&fabric, formats::FileFormat::Json));
    let report = json(0, &["route", &spec, "--engine", "torus,lash"]);
    assert_eq!(report["engine"], "lash");
    let why = report["tried"][0].to_string();
    assert!(why.contains("torus") && why.contains("cable"), "{why}");
}
