//! Tests of the log of maps that agents keep, and of a page that shows what is gone and what was before.

use std::io::{BufRead, BufReader, Read, Write};
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
        self.events().next()
    }

    /// What is told to a page, as it comes.
    fn events(&self) -> impl Iterator<Item = Value> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let events = lines.filter_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
        events.map(|event| serde_json::from_str(&event).unwrap())
    }

    /// The fabric of a moment, as the page draws it.
    fn scene(&self, moment: &Value) -> Value {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET /api/scene/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", moment["scene"]);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
        serde_json::from_str(body).unwrap()
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
        let is_of_then =
            |map: &Value| says(map, "the cable 0x") && says(map, "is gone") && map["cables"] == 2;
        maps(&run_dir).into_iter().find(is_of_then)
    });
    assert!(lost["cause"].is_string(), "{lost}");
    assert!(says(&lost, " of h1 ("), "the cable is called by whose nodes its ends are: {lost}");
    let board = &lab.boards(&[])[1];
    let hosts = board["gone_cables_hosts"].to_string();
    assert!(hosts.contains(lab.boards(&[])[0]["mac"].as_str().unwrap()), "{board:#}");

    let page = Page::serve(&run_dir);
    // The log of maps is there at once, and how hosts and cables are now as soon as the agents were asked.
    let told = wait_for("the page has what was before it, and what is now", || {
        page.told().filter(|told| told["history"].to_string().contains("is gone") && told["hosts"] != "")
    });
    let mut past = told["history"].as_array().unwrap().iter().filter(|moment| moment["unix_ms"].is_number());
    assert!(past.any(|past| past["what"].to_string().contains("the cable 0x")), "{told}");
    assert_eq!(
        told["cables"].to_string().matches('2').count(),
        1,
        "the lost cable is shown as missing: {told}"
    );

    // The pictures of then: with the cable, and without it.
    let cables_of = |cables: u64| {
        let moments = told["history"].as_array().unwrap().iter();
        let past = moments.filter(|moment| moment["unix_ms"].is_number());
        let mut of =
            past.filter(|moment| moment["troubles"].to_string().contains(&format!("{cables} cables")));
        of.next_back().map(|moment| page.scene(moment)["cables"]["a"].as_array().unwrap().len() as u64)
    };
    assert_eq!((cables_of(3), cables_of(2)), (Some(3), Some(2)), "{told}");

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

#[test]
fn what_goes_over_cables_and_the_routes_in_force_are_shown() {
    if !can_carry_ip() {
        return;
    }
    let lab = Lab::up("ring:n=3,hosts=1", &["--nodes"]);
    lab.wait_for_network("the whole ring", 3, 3);
    let run_dir = lab.dir().join("run").join("h1");
    let page = Page::serve(&run_dir);
    let counted = |event: &Value| {
        let cables = event["traffic"]["cables"].as_array().map_or(0, Vec::len);
        let busy = |cable: &Value| cable[1].as_u64() > Some(0) && cable[2].as_u64() > Some(0);
        // The node counts at both of its cables, over which agents always tell each other something.
        cables == 2 && event["traffic"]["cables"].as_array().unwrap().iter().all(busy)
    };
    let traffic =
        page.events().take(60).find(counted).expect("what goes over cables is told")["traffic"].clone();
    assert!(traffic["cables"][0][4].as_u64() > Some(0), "the speed of the interface: {traffic}");
    assert_eq!(traffic["force"]["hosts"], 1);
    let loads = traffic["force"]["loads"].as_array().unwrap();
    assert!(
        !loads.is_empty()
            && loads.iter().all(|load| load[1].as_u64() > Some(0) || load[2].as_u64() > Some(0))
    );
    let watch = Command::new(MAPPER).args(["watch", "--once", "--run-dir"]).arg(&run_dir).output().unwrap();
    let text = String::from_utf8(watch.stdout).unwrap();
    assert!(watch.status.success() && text.contains("Busiest cables, by routes in force"), "{text}");
    // What goes to no terminal is not cut, so both ends of a cable are named with their ports.
    let is_whole = |line: &&str| line.contains("from xbar of h") && line.matches(" port ").count() == 2;
    assert!(text.lines().any(|line| is_whole(&line)), "{text}");
}
