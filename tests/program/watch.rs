//! Tests of `mapper watch` of a file and of a simulation; that of agents is in the tests on the wire.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// A run that ends with this.
struct Watching {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Watching {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(MAPPER)
            .args(["watch", "--format", "json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    fn next(&mut self) -> Option<Value> {
        self.lines.next().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // This fails only if the run has ended by itself.
        let _already_gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

#[test]
fn a_spec_is_told_once_with_the_loads_of_an_engine() {
    let mut watching = Watching::start(&["clos:hosts=8,ports=4", "--engine", "updn"]);
    let told = watching.next().unwrap();
    assert_eq!((&told["schema"], &told["hosts"]), (&json!("mapper.watch/1"), &json!(8)));
    assert_eq!(told["loads"]["engine"], "updn");
    assert!(told["loads"]["busiest"][0]["routes"][0].as_f64().unwrap() > 0.0, "{told}");
    assert!(watching.next().is_none() && watching.process.wait().unwrap().success());
    let text = Command::new(MAPPER).args(["watch", "clos:hosts=8,ports=4"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.starts_with("8 hosts, 6 xbars") && text.contains("Busiest cables, by routes of minhop"),
        "{text}"
    );
    let both = Command::new(MAPPER).args(["watch", "ring:n=3", "--run-dir", "/run"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2), "agents are not watched where a fabric is named");
}

#[test]
fn a_file_is_followed_and_hosts_without_a_cable_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fabric.json");
    let mut fabric = mapper_formats::resolve("clos:hosts=8,ports=4").unwrap();
    let write = |fabric: &mapper_proto::map::Fabric| {
        let next = folder.path().join("next");
        std::fs::write(&next, mapper_formats::write(fabric, mapper_formats::FileFormat::Json)).unwrap();
        std::fs::rename(next, &path).unwrap();
    };
    write(&fabric);
    let mut watching = Watching::start(&[path.to_str().unwrap()]);
    assert_eq!(watching.next().unwrap()["away"], json!([]));
    fabric.map.hosts[2].at = None;
    write(&fabric);
    let told = watching.next().unwrap();
    assert_eq!(told["away"], json!([{ "host": "h3", "state": "without a cable" }]));
    assert_eq!(told["happened"][0]["what"], "1 cable gone");
    std::fs::write(&path, "{").unwrap();
    let told = watching.next().unwrap();
    assert!(told["says"].as_str().unwrap().contains("cannot be read") && told["hosts"] == 8, "{told}");
}

#[test]
fn a_simulation_is_told_to_its_end_with_its_faults_and_who_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let faults = folder.path().join("faults.txt");
    std::fs::write(&faults, "at 200ms cut leaf1:3\nat 201ms kill h1\n").unwrap();
    let options = ["--sim", "--faults", faults.to_str().unwrap(), "--speed", "2000", "--limit-ms", "6000"];
    let mut watching = Watching::start(&[&["clos:hosts=8,ports=4"], &options[..]].concat());
    let told: Vec<Value> = std::iter::from_fn(|| watching.next()).collect();
    assert!(watching.process.wait().unwrap().success());
    let happened = |what: &str| told.iter().any(|told| told["happened"].to_string().contains(what));
    assert!(happened("cut leaf1:3") && happened("kill h1"), "{told:?}");
    let last = told.last().unwrap();
    assert_eq!(last["away"], json!([{ "host": "h1", "state": "missing" }]));
    assert!(last["says"].as_str().unwrap().contains("7 of 8 configured"), "{last}");
    let cut = "leaf1:3";
    assert!(told[0]["loads"].to_string().contains(cut) && !last["loads"].to_string().contains(cut), "{last}");
    let text = Command::new(MAPPER).args(["watch", "clos:hosts=8,ports=4"]).args(options).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("hosts: 7 configured, 1 missing") && text.contains("  missing         h1"),
        "{text}"
    );
}

#[test]
fn a_terminal_of_80_columns_holds_what_a_file_gets_in_full() {
    if !mapper_needs::programs(&["script"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fabric.net");
    let mut fabric = mapper_formats::resolve("clos:hosts=8,ports=4").unwrap();
    for (nth, xbar) in fabric.xbars.iter_mut().enumerate() {
        xbar.description = format!("{}{nth}", "switch".repeat(8));
    }
    std::fs::write(&path, mapper_formats::write(&fabric, mapper_formats::FileFormat::Ibnetdiscover)).unwrap();
    let shown = |command: &mut Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    let in_file = shown(Command::new(MAPPER).args(["watch", "--once"]).arg(&path));
    assert!(in_file.contains(&format!("{}4 port ", "switch".repeat(8))), "{in_file}");
    let line = format!("{MAPPER} watch --once {}", path.display());
    let in_terminal = shown(Command::new("script").args(["--quiet", "--command", &line, "/dev/null"]));
    assert!(in_terminal.contains("Busiest cables"), "{in_terminal}");
    assert!(in_terminal.lines().all(|line| line.trim_end().chars().count() <= 80), "{in_terminal}");
}
