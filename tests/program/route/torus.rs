//! Tests of the engine torus.

use std::path::Path;

use mapper_formats as formats;

use crate::route::command::{Folder, error, json, text};

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

/// Source-routed crossbars have no layers, so the report says so if routes need several.
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
        // The files say which route is in which layer, so the check can prove the routes.
        let check = json(0, &["check", spec, "--routes-dir", &dir]);
        assert_eq!((&check["holds"], &check["layers"]), (&true.into(), &report["layers"]));
        if *layers.end() > 1 {
            // With all routes in one layer, as for crossbars without layers, they can deadlock.
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

/// A file can state regions. An xbar outside a region has one entry for all destinations in it.
#[test]
fn regions_are_stated_by_a_file() {
    let folder = Folder::new();
    let engine = ["route", "torus:x=6,y=4,hosts=1", "--engine", "torus", "--no-fallback", "--torus-file"];
    let lfts = folder.path("a.lfts");
    let stated = folder.write("t.toml", "sizes = [6, 4]\nregions = [2, 4]\n");
    let alone = [&engine[..], &[&stated, "--lfts", &lfts]].concat();
    let refused = json(2, &alone);
    assert_eq!(refused["schema"], "mapper.error/1");
    let message = refused["error"].as_str().unwrap();
    assert!(message.starts_with("--lfts: ") && message.contains("--sls FILE"), "{message}");
    assert!(!Path::new(&lfts).exists(), "tables that can deadlock were written");
    let report = json(0, &[&alone[..], &["--sls", &folder.path("a.sls")]].concat());
    assert_eq!(report["proof"]["deadlock_free"], true);
    // The first xbar is at 0,0. The xbars at x = 2 and 3 are one region, and it reaches all of them by one
    // port.
    let fabric = formats::resolve("torus:x=6,y=4,hosts=1").unwrap();
    let subnet = mapper_routing::Subnet::new(&fabric, None).unwrap();
    let loaded = formats::lfts::read(Path::new(&lfts), &fabric, &subnet).unwrap();
    let region = (0..24_u32).filter(|xbar| (2..4).contains(&(xbar % 6)));
    let ports = region.map(|xbar| {
        let slot = subnet.destinations.slots_of_host(xbar).start;
        loaded.found.port(0, slot)
    });
    let ports: mapper_proto::PortSet = ports.collect();
    assert_eq!(ports.iter().count(), 1, "{ports:?}");
    let bad = folder.write("bad.toml", "sizes = [6, 4]\nregions = [2, 2]\n");
    let message = error(&[&engine[..], &[&bad]].concat());
    assert!(message.contains("regions of 2 x 2 x 1 cannot be routed as one"), "{message}");
}

/// A dateline in a dimension without wrap-around is refused, and the refusal names the line of the file that
/// states it, although the shape is known only from the fabric.
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
    // The first and the last cable exchange ends, so the fabric is no torus.
    let [first, .., last] = &mut fabric.map.cables[..] else { panic!("a torus has cables") };
    std::mem::swap(&mut first.b, &mut last.b);
    let spec = folder.write("crossed.json", &formats::write(&fabric, formats::FileFormat::Json));
    let report = json(0, &["route", &spec, "--engine", "torus,lash"]);
    assert_eq!(report["engine"], "lash");
    let why = report["tried"][0].to_string();
    assert!(why.contains("torus") && why.contains("cable"), "{why}");
}
