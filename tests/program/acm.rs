//! Paths that were computed for a fabric without agents, and the service that tells them.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv6Addr;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mapper_acm::fabric::gid_of;
use mapper_daemon::agent::status::{Change, KnownHost, KnownPaths};
use mapper_fabric::generate;
use mapper_proto::Mac;

const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");

/// Answers as the agent of this host does, which is alone in its map: others are known from a file.
fn stand_in(listener: UnixListener, own: Mac) {
    let host =
        KnownHost { mac: own.to_string(), name: Some("own".to_owned()), addresses: Vec::new(), path: None };
    let known = KnownPaths {
        unit: 0,
        interface: "ib0".to_owned(),
        host: own.to_string(),
        is_settled: true,
        paths_number: None,
        hosts: vec![host],
        learned: Vec::new(),
        port: None,
    };
    std::thread::spawn(move || {
        let mut waiting = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let answer = match &*line {
                line if line.contains("paths") => serde_json::to_vec(&known),
                line if line.contains("null") => serde_json::to_vec(&Change { number: 1 }),
                _ => {
                    waiting.push(stream);
                    continue;
                }
            };
            stream.write_all(&answer.unwrap()).unwrap();
        }
    });
}

/// A process that ends with the test.
struct Serves(Child);

impl Drop for Serves {
    fn drop(&mut self) {
        let _ended = (self.0.kill(), self.0.wait());
    }
}

fn ask(program: &str, words: &[&str], socket: &Path) -> (String, i32) {
    let output = Command::new(program).args(words).arg("-S").arg(socket).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
}

#[test]
fn paths_that_route_computes_for_a_fabric_without_agents_are_told_to_ib_acme() {
    if !mapper_needs::programs(&["ib_acme"]) {
        return;
    }
    const FABRIC: &str = "ring:n=4,hosts=1";
    let dir = tempfile::tempdir().unwrap();
    let [records, socket] = ["paths", "s"].map(|name| dir.path().join(name));
    let mut route = Command::new(MAPPER);
    route.args(["route", FABRIC, "--engine", "lash", "--path-records"]).arg(&records);
    let routed = route.stdout(Stdio::null()).status().unwrap();
    assert!(routed.success());
    let hosts: Vec<Mac> = generate(FABRIC).unwrap().map.hosts.iter().map(|host| host.mac).collect();
    stand_in(UnixListener::bind(dir.path().join("0.requests")).unwrap(), hosts[0]);
    let mut serve = Command::new(MAPPER);
    serve.args(["acm", "serve", "--run-dir"]).arg(dir.path()).arg("--socket").arg(&socket);
    let serve = serve.arg("--route-data").arg(&records).stderr(Stdio::null()).spawn().unwrap();
    let _serve = Serves(serve);
    let deadline = Instant::now() + Duration::from_secs(60);
    for &to in &hosts[1..] {
        let gid: Ipv6Addr = gid_of(to);
        let words = ["-f", "g", "-d", &gid.to_string(), "-v"];
        let (printed, status) = loop {
            let (printed, status) = ask("ib_acme", &words, &socket);
            if status == 0 {
                break (printed, status);
            }
            assert!(Instant::now() < deadline, "{printed}");
            std::thread::sleep(Duration::from_millis(20));
        };
        // Within a subnet of InfiniBand the hop limit is 0, and OpenSM gives all an MTU of 2048 bytes.
        for line in [&format!("dgid: {gid}"), "hop limit: 0", "mtu: 4", "SA verification: success"] {
            assert!(printed.contains(line), "{line}: {printed}");
        }
        let query = ask(MAPPER, &[&["acm", "query"], &words[..]].concat(), &socket);
        assert_eq!(query, (printed.clone(), status));
        // A question by the LID gets the same path.
        let dlid = printed.lines().find_map(|line| line.trim().strip_prefix("dlid: ")).unwrap();
        let by_lid = ask("ib_acme", &["-f", "l", "-d", dlid, "-v"], &socket);
        assert!(by_lid.1 == 0 && by_lid.0.contains(&format!("dgid: {gid}")), "{by_lid:?}");
    }
    // A host of which the file tells nothing is nobody's.
    let stranger = gid_of(Mac::from_position(999)).to_string();
    assert_eq!(ask("ib_acme", &["-f", "g", "-d", &stranger], &socket).1, 255);
}
