//! Tests of what `mapper route` and `mapper check` refuse, and what they say of it.

use std::path::Path;

use crate::route::command::{CLOS, Folder, RING, error, json, shortest, text};

#[test]
fn a_wrong_command_line_is_told_from_failure() {
    for arguments in [
        &["route", CLOS, "--engine", "nonsense"][..],
        &["route", CLOS, "--engine", "best,updn"],
        &["route", CLOS, "--no-fallback"],
        &["route", CLOS, "--unsafe"],
        &["route", CLOS, "--engine", "file"],
        &["route", CLOS, "--engine", "updn,file", "--lfts", "a"],
        &["route", CLOS, "--engine", "minhop", "--threads", "0"],
        &["route", CLOS, "--engine", "minhop", "--reassign"],
        &["route", CLOS, "--engine", "minhop", "--lmc", "8"],
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
    // Both ends of each cable are shown, so that a person at the rack finds it.
    assert!(shown.contains("xbar1 port 1 (to xbar2 port 2), then xbar2 port 1 (to xbar3 port 2)"), "{shown}");
}

#[test]
fn a_missing_entry_is_found_and_named() {
    let folder = Folder::new();
    let tables = shortest(CLOS);
    let row = "0x0008 003 # Channel Adapter: 'h8'\n";
    assert!(tables.contains(row));
    // The first row with this text is in the table of leaf1.
    let file = folder.write("a.lfts", &tables.replacen(row, "", 1));
    let found = json(3, &["check", CLOS, "--lfts", &file]);
    assert_eq!(found["proof"]["reachable"], false);
    let violation = found["proof"]["violations"][0].as_str().unwrap();
    assert!(violation.contains("leaf1 has no entry for LID 0x0008: h1 cannot reach h8"), "{violation}");
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
fn each_engine_that_does_not_serve_has_a_line() {
    let message = error(&["route", RING, "--engine", "ftree,updn", "--balance", "opensm"]);
    let lines: Vec<_> = message.lines().collect();
    let starts =
        ["no engine serves this fabric: ftree: ", "  updn: ", "  minhop: layer 0 ", "  lash needs no roots"];
    assert_eq!(lines.len(), starts.len(), "{message}");
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{message}");
}

#[test]
fn what_would_have_no_effect_is_refused_or_told() {
    let folder = Folder::new();
    json(2, &["route", CLOS, "--compare", "minhop", "--no-fallback"]);
    let file = folder.write("a.lfts", &shortest(CLOS));
    let unused = json(0, &["route", CLOS, "--engine", "updn", "--lfts-file", &file]);
    assert!(
        unused["notes"].to_string().contains("tables to load: no effect on updn, only on file"),
        "{unused}"
    );
    let cache = folder.path("cache");
    let routes = json(0, &["route", CLOS, "--engine", "dispersive", "--cache", &cache]);
    assert!(
        routes["notes"].to_string().contains("--cache: it keeps tables, and no source routes"),
        "{routes}"
    );
    let torus = folder.write("t.toml", "sizes = [5]\n");
    let over = error(&["route", RING, "--engine", "torus", "--torus-file", &torus, "--lfts", &torus]);
    assert!(over.ends_with("is read by --torus-file; name another file"), "{over}");
}

#[test]
fn what_is_too_far_for_any_route_is_refused_before_tables_are_made() {
    // The tables of this ring would take more than 8 GB.
    let message = error(&["route", "ring:n=65535", "--engine", "updn"]);
    assert!(message.contains("updn: h32769 and h2 are too far apart"), "{message}");
    assert!(!message.contains("try it"), "{message}");
    assert!(
        message.contains("passes 32768 xbars, and at most 64 are allowed, the most that --max-hops takes"),
        "{message}"
    );
    // The longest route that may be, over 64 xbars, is served.
    json(0, &["route", "mesh:x=64", "--engine", "dor", "--no-fallback"]);
    let message = error(&["route", "mesh:x=65", "--engine", "dor", "--no-fallback"]);
    assert!(message.contains("h65") && message.contains("passes 65 xbars"), "{message}");
    let message =
        error(&["route", "mesh:x=30", "--engine", "dispersive", "--no-fallback", "--max-hops", "20"]);
    assert!(message.contains("passes 30 xbars, and at most 20 are allowed"), "{message}");
}

#[test]
fn refusals_name_the_option_that_helps() {
    let message = error(&["route", RING, "--engine", "updn,ftree", "--no-fallback"]);
    assert_eq!(message.matches("--root-guid-file").count(), 2, "{message}");
    // An engine that was just refused must not be advised.
    assert!(!message.contains("use updn"), "{message}");
    // lash serves hosts of one address only, and neither engine takes a lid matrix.
    let message = error(&["route", RING, "--engine", "updn", "--no-fallback", "--lmc", "1"]);
    assert!(message.ends_with("nue needs no roots and no shape: try it"), "{message}");
    let folder = Folder::new();
    let hops = folder.path("hops");
    json(0, &["route", CLOS, "--engine", "minhop", "--dump-lid-matrix", &hops]);
    let message = error(&["route", CLOS, "--engine", "updn", "--no-fallback", "--lid-matrix-file", &hops]);
    assert!(message.ends_with("give a lid matrix to minhop or dor, or none"), "{message}");
    let lash = ["route", RING, "--engine", "lash", "--no-fallback", "--max-layers", "1"];
    let message = error(&lash);
    assert!(message.ends_with("allow more (--max-layers), or try updn"), "{message}");
}

#[test]
fn an_lmc_that_no_port_has_is_refused_where_it_stands() {
    let folder = Folder::new();
    let mut map: serde_json::Value = json(0, &["topology", "show", RING])["map"].take();
    map["hosts"][2]["lmc"] = 8.into();
    let file = folder.write("map.json", &map.to_string());
    let message = error(&["check", &file, "--routes-dir", "."]);
    assert!(
        message.ends_with("hosts[2].lmc: an LMC of 8; expected 0 to 7, for 2^LMC addresses"),
        "{message}"
    );
}

#[test]
fn refusals_of_routes_are_short_and_harmless() {
    let folder = Folder::new();
    let dir = folder.path("routes");
    json(0, &["route", RING, "--engine", "dispersive", "--routes-dir", &dir]);
    let name = "routes/02-00-00-00-00-01.json";
    let good = folder.read(name);
    let bad = format!("\\u001b[2J{}", "x".repeat(100_000));
    for place in
        ["\"to\":\"02:00:00:00:00:02\"", "\"host\":\"02:00:00:00:00:01\"", "mapper.routes/1", "\"layer\":0"]
    {
        let (before, after) = good.split_once(place).unwrap_or_else(|| panic!("{place}: {good}"));
        let key = place.split(':').next().unwrap_or_default();
        let broken = match place {
            "mapper.routes/1" => format!("{before}{bad}{after}"),
            "\"layer\":0" => format!("{before}\"{bad}\":0{after}"),
            _ => format!("{before}{key}:\"{bad}\"{after}"),
        };
        folder.write(name, &broken);
        let output = crate::route::command::mapper(&["check", RING, "--routes-dir", &dir]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{place}");
        assert!(stderr.len() < 1000 && !stderr.contains('\u{1b}'), "{place}: {stderr:?}");
    }
}
