//! Tests of the log of maps that agents keep, and of a page that shows what is gone and what was before.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::lab::{Lab, wait_for};
use crate::{MAPPER, can_carry_ip};

/// The page's server for the agents of a run directory, which ends with this.
struct Page {
    process: Child,
    address: String,
}

impl Page {
    fn serve(run_dir: &Path) -> Self {
        let mut process = Command::new(MAPPER)
            .args(["view", "--live", "--format", "json", "--listen", "127.0.0.1:0", "--run-dir"])
            .arg(run_dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap();
        Self { process, address: url.trim_start_matches("http://").trim_end_matches('/').to_owned() }
    }

    /// All that is told to a page that opens.
    fn told(&self) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let update = lines.take(40).find_map(|line| Some(line.strip_prefix("data: ")?.to_owned()))?;
        Some(serde_json::from_str(&update).unwrap())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _already_gone = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// The maps in the log of a host's agent.
fn maps(run_dir: &Path) -> Vec<Value> {
    let mut files = std::fs::read_dir(run_dir).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|kind| kind == "history"));
    let text = file.map(|file| std::fs::read_to_string(file).unwrap()).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn what_maps_changed_and_why_is_kept_and_shown_after_the_leader_and_the_page_are_others() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--nodes"]);
    lab.wait_for_network("the whole ring", 3, 3);
    let run_dir = lab.dir().join("run").join("h1");
    lab.run(&["cut", "h1:1"]);
    lab.wait_for_network("a cable less", 3, 2);
    let says = |map: &Value, word: &str| map["what"].to_string().contains(word);
    let lost = wait_for("the log has the lost cable", || {
        maps(&run_dir).into_iter().find(|map| says(map, "the cable 0x") && says(map, "is gone"))
    });
    assert!(lost["cause"].is_string() && lost["cables"] == 2, "{lost}");

    let page = Page::serve(&run_dir);
    let told = wait_for("the page has what was before it", || {
        page.told().filter(|told| told["history"].to_string().contains("is gone"))
    });
    let mut past = told["history"].as_array().unwrap().iter().filter(|moment| moment["unix_ms"].is_number());
    assert!(past.any(|past| past["what"].to_string().contains("the cable 0x")), "{told}");
    assert_eq!(
        told["cables"].to_string().matches('2').count(),
        1,
        "the lost cable is shown as missing: {told}"
    );

    // Whoever leads goes; the others' logs go on.
    lab.run(&["mend", "h1:1"]);
    let boards = lab.wait_for_network("the whole ring again", 3, 3);
    let leader = (0..3).find(|&host| boards[host]["mac"] == boards[host]["leader"]).unwrap();
    let other = lab.dir().join("run").join(["h2", "h3", "h1"][leader]);
    let known = maps(&other).len();
    lab.stop_agent(["h1", "h2", "h3"][leader]);
    let next = wait_for("another leader's map is in the log", || {
        maps(&other).into_iter().skip(known).find(|map| map["hosts"] == 2)
    });
    assert!(says(&next, "is gone"), "{next}");
}
