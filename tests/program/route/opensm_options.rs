//! OpenSM's options by OpenSM's own names.

use mapper_formats::{self as formats, FileFormat};
use serde_json::Value;

use crate::route::command::{Folder, error, json, text};

const TREE: &str = "xgft:h=2;m=4,6;w=1,4";

/// An option as this program calls it, its value, the names that OpenSM has for it, and the engine to ask.
type Case<'a> = (&'a str, Option<&'a str>, &'a [&'a str], &'a str);

/// Routes by an engine with options, and gives the tables and what is said of them.
fn routed(folder: &Folder, fabric: &str, options: &[&str]) -> (String, Value, Value) {
    let lfts = folder.path("out.lfts");
    let report = json(0, &[&["route", fabric, "--unsafe", "--lfts", &lfts], options].concat());
    (folder.read("out.lfts"), report["engine"].clone(), report["notes"].clone())
}

#[test]
fn every_option_has_opensms_names_too() {
    let folder = Folder::new();
    let (host, spine, leaf) = ("0x0000020000000003", "0x0200000000000007", "0x0200000000000001");
    let fabric = formats::resolve(TREE).unwrap();
    let json_file = folder.write("tree.json", &formats::write(&fabric, FileFormat::Json));
    let matrix = folder.path("matrix");
    let tables = folder.path("tables");
    let by_opensm =
        ["--engine", "minhop", "--balance", "opensm", "--dump-lid-matrix", &matrix, "--lfts", &tables];
    text(0, &[&["route", &json_file], &by_opensm[..]].concat());
    let spines = folder.write("spines", &format!("{spine}\n"));
    let ids = folder.write("ids", &format!("{leaf} 9\n{spine} 1\n"));
    let hosts = folder.write("hosts", &format!("{host}\n"));
    let ignored = folder.write("ignored", &format!("{leaf} 5\n"));
    let order = folder.write("order", &format!("{leaf} 6 5 7 8\n"));
    let weights = folder.write("weights", &format!("{leaf} 5 3\n"));
    let cases: &[Case<'_>] = &[
        ("--root-guid-file", Some(&spines), &["-a", "--root_guid_file"], "updn"),
        ("--ids-guid-file", Some(&ids), &["-m", "--ids_guid_file"], "updn"),
        ("--connect-roots", None, &["-z", "--connect_roots"], "updn"),
        ("--cn-guid-file", Some(&hosts), &["-u", "--cn_guid_file"], "ftree"),
        ("--io-guid-file", Some(&hosts), &["-G", "--io_guid_file"], "ftree"),
        ("--max-reverse-hops", Some("2"), &["-H", "--max_reverse_hops"], "ftree"),
        ("--ignore-guids", Some(&ignored), &["-i", "--ignore_guids"], "minhop"),
        ("--guid-routing-order-file", Some(&hosts), &["-X", "--guid_routing_order_file"], "minhop"),
        (
            "--port-search-ordering-file",
            Some(&order),
            &["-O", "--port_search_ordering_file", "--dimn_ports_file"],
            "minhop",
        ),
        ("--hop-weights-file", Some(&weights), &["-w", "--hop_weights_file"], "minhop"),
        ("--lid-matrix-file", Some(&matrix), &["-M", "--lid_matrix_file"], "minhop"),
        ("--lfts-file", Some(&tables), &["-U", "--lfts_file"], "file"),
        ("--scatter-ports", Some("5"), &["--scatter_ports"], "minhop"),
        ("--port-shifting", None, &["--port_shifting"], "minhop"),
        ("--lmc", Some("1"), &["-l"], "minhop"),
        ("--reassign-lids", None, &["-r", "--reassign_lids"], "minhop"),
        ("--lash-start-vl", Some("2"), &["--lash_start_vl"], "lash"),
        ("--max-layers", Some("2"), &["--nue_max_num_vls", "--max_layers"], "nue"),
    ];
    for &(ours, value, theirs, engine) in cases {
        let ask = |name: &str, engine_option: &str| {
            let mut options = vec![engine_option, engine, name];
            options.extend(value);
            if ours != "--lash-start-vl" && ours != "--max-layers" {
                return routed(&folder, &json_file, &options);
            }
            let sls = folder.path("out.sls");
            let (lfts, engine, notes) =
                routed(&folder, &json_file, &[&options[..], &["--sls", &sls]].concat());
            (lfts + &folder.read("out.sls"), engine, notes)
        };
        let expected = ask(ours, "--engine");
        let of_file = |value: &str| value.starts_with('/') && expected.2.to_string().contains(value);
        assert!(!value.is_some_and(of_file), "nothing is passed over: {}", expected.2);
        for name in theirs {
            assert_eq!(ask(name, "-R"), expected, "{name} as {ours}");
            assert_eq!(ask(name, "--routing_engine"), expected, "{name} as {ours}");
        }
    }
    let torus = "torus:x=4,y=4,hosts=1";
    let stated = folder.write("torus", "sizes = [4, 4]\n");
    let with = |name: &str| json(0, &["route", torus, "-R", "torus", name, &stated])["proof"].clone();
    assert_eq!(with("--torus-file"), with("--torus_config"));
    let by = |name: &str| json(0, &["route", torus, "-R", name, "--no-fallback"])["engine"].clone();
    assert_eq!((by("torus-2QoS"), by("torus")), ("torus".into(), "torus".into()));
    for name in ["--ucast_cache", "-A", "--cache"] {
        let cache = folder.path(name);
        json(0, &["route", &json_file, "-R", "minhop", name, &cache]);
        assert_eq!(json(0, &["route", &json_file, "-R", "minhop", name, &cache])["cache"]["used"], true);
    }
}

#[test]
fn no_fallback_stands_among_the_engines_as_with_opensm() {
    let ring = "ring:n=5,hosts=1";
    for list in ["dor,no_fallback", "no_fallback,dor"] {
        let listed = error(&["route", ring, "-R", list]);
        assert_eq!(listed, error(&["route", ring, "-R", "dor", "--no-fallback"]), "{list}");
        assert!(!listed.contains("minhop"), "{list}: {listed}");
    }
    assert!(error(&["route", ring, "-R", "dor"]).contains("minhop"));
    let alone = json(2, &["route", ring, "-R", "no_fallback"]).to_string();
    assert!(alone.contains("best has nothing to fall back on"), "{alone}");
}

#[test]
fn layers_that_opensm_would_count_itself_are_refused_with_the_reason() {
    for name in ["--nue_max_num_vls", "--max-layers"] {
        let why = json(2, &["route", TREE, "-R", "nue", name, "0"]).to_string();
        assert!(why.contains("nue_max_num_vls 0 of OpenSM") && why.contains("from 1 to 16"), "{name}: {why}");
    }
    let why = json(2, &["route", TREE, "-R", "nue", "--max-layers", "17"]).to_string();
    assert!(why.contains("1..=16"), "{why}");
}

#[test]
fn what_opensm_needs_an_option_for_and_we_do_not_is_told() {
    for (option, told) in [
        ("--do_mesh_analysis", "--do-mesh-analysis: no effect; lash searches"),
        ("--guid_routing_order_no_scatter", "--guid-routing-order-no-scatter: no effect; "),
        ("--ucast_cache", "--cache: nothing is kept for the next run, which needs a file"),
        ("-A", "--cache: nothing is kept for the next run, which needs a file"),
    ] {
        let said = text(0, &["route", TREE, "-R", "minhop", option]);
        assert!(said.contains(told), "{option}: {said}");
    }
}

#[test]
fn lists_and_limits_without_effect_are_told() {
    let folder = Folder::new();
    let hosts = folder.write("hosts", "0x0000020000000003\n");
    let said = text(0, &["route", TREE, "-R", "minhop", "-i", &hosts]);
    assert!(
        said.contains("1 line of hosts: no effect, as all that comes for a host leaves by its own port"),
        "{said}"
    );
    let said = text(0, &["route", TREE, "-R", "ftree", "-H", "2"]);
    assert!(said.contains("reverse hops: no effect without I/O nodes, which alone take them"), "{said}");
}
