//! Tests of pages and servers that are left to themselves for long, of many clients, and of slow ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{Browser, Server};

/// More than a server with such a fabric may hold.
const MOST_SERVER_BYTES: u64 = 300 << 20;
/// By how much a page's script may hold more after many changes than after some.
const MOST_GROWTH_BYTES: u64 = 8 << 20;

/// A fabric in a file, of which another cable is missing whenever it is written.
struct ChangingFile {
    folder: tempfile::TempDir,
    fabric: mapper_proto::map::Fabric,
    missing: usize,
}

impl ChangingFile {
    fn new(spec: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Self { folder, fabric: mapper_formats::resolve(spec).unwrap(), missing: 0 };
        file.change();
        file
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("fabric.json")
    }

    /// Writes the fabric without the next cable, and returns the port that is free then.
    fn change(&mut self) -> (u32, u8) {
        let mut fabric = self.fabric.clone();
        self.missing = (self.missing + 1) % fabric.map.cables.len();
        let free = fabric.map.cables.remove(self.missing).a;
        let text = mapper_formats::write(&fabric, mapper_formats::FileFormat::Json);
        let next = self.folder.path().join("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(next, self.path()).unwrap();
        (free.xbar, free.port)
    }
}

/// An expression of the page: whether no cable is at this port.
fn is_free((xbar, port): (u32, u8)) -> String {
    format!(
        "!view.model.cables.a.some((a, cable) => a === {xbar} && view.model.cables.a_port[cable] === {port})"
    )
}

#[test]
fn a_page_that_is_left_open_while_its_fabric_changes_keeps_a_bounded_past() {
    let mut file = ChangingFile::new("clos:hosts=128,ports=16");
    let server = Server::start(&[file.path().to_str().unwrap()]);
    let Some(mut browser) = Browser::open(&server.url) else { return };
    browser.wait_until_drawn();
    let mut follow = |browser: &mut Browser, changes: usize| {
        for _ in 0..changes {
            let free = file.change();
            browser.wait_for(&is_free(free));
        }
        browser.heap_bytes()
    };
    let before = follow(&mut browser, 20);
    let after = follow(&mut browser, 40);
    assert!(after < before + MOST_GROWTH_BYTES, "{before} bytes, then {after}");
    let kept = browser.value("[view.scenes.size, view.updates.length]");
    assert!(kept[0].as_u64().unwrap() <= 8 && kept[1].as_u64().unwrap() <= 200, "{kept}");
    assert!(server.resident_bytes() < MOST_SERVER_BYTES, "{}", server.resident_bytes());
}

#[test]
#[ignore = "it measures for minutes; scripts/bench/page-memory runs it"]
fn what_a_page_and_its_server_hold_while_a_fabric_changes_ten_times_a_second() {
    let minutes: u64 = std::env::var("MINUTES").map_or(3, |minutes| minutes.parse().unwrap());
    let mut file = ChangingFile::new("clos:hosts=1024,ports=32");
    let server = Server::start(&[file.path().to_str().unwrap()]);
    let mut browser = Browser::open(&server.url).expect("Chromium");
    browser.wait_until_drawn();
    let began = Instant::now();
    let (mut changes, mut told) = (0, 0);
    while began.elapsed() < Duration::from_secs(60 * minutes) {
        file.change();
        changes += 1;
        std::thread::sleep(Duration::from_millis(100));
        if began.elapsed().as_secs() / 20 >= told {
            told += 1;
            let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
            println!(
                "after {:>4} s, {changes:>5} changes: page {:>6.1} MiB, server {:>6.1} MiB, moments {}",
                began.elapsed().as_secs(),
                megabytes(browser.heap_bytes()),
                megabytes(server.resident_bytes()),
                browser.value("view.updates.length"),
            );
        }
    }
}

/// A page that follows, as the server sees it.
struct Follower(BufReader<TcpStream>);

impl Follower {
    fn open(server: &Server) -> Self {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    fn status(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    }

    /// Reads what is told until `wanted` is in it.
    fn read_until(&mut self, wanted: &str) {
        let mut line = String::new();
        while !line.contains(wanted) {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "it was hung up on");
        }
    }
}

#[test]
fn many_pages_are_told_and_slow_ones_keep_nobody_from_it() {
    let mut file = ChangingFile::new("clos:hosts=128,ports=16");
    let server = Server::start(&[file.path().to_str().unwrap()]);
    // These are as many pages as may follow, of which only one reads.
    let mut followers: Vec<Follower> = (0..32).map(|_| Follower::open(&server)).collect();
    assert!(followers.iter_mut().all(|follower| follower.status() == "200"));
    let mut one_more = Follower::open(&server);
    assert_eq!(one_more.status(), "503");
    let mut reader = followers.pop().unwrap();
    for _ in 0..30 {
        file.change();
        reader.read_until("1 cable gone, 1 cable new");
    }
    assert!(server.resident_bytes() < MOST_SERVER_BYTES, "{}", server.resident_bytes());
    // A place is free again when a page is closed, which the server sees when it tells the next thing.
    drop(reader);
    loop {
        file.change();
        let mut next = Follower::open(&server);
        if next.status() == "200" {
            break;
        }
        let mut rest = String::new();
        let _refused = next.0.read_to_string(&mut rest);
        assert!(rest.contains("too many pages are open"), "{rest}");
    }
}
