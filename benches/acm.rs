//! A load generator for the ACM service: how long a cached answer takes, and how many there are a second.
//!
//! It runs the real program beside a stand-in for an agent, which knows 1,024 hosts, and asks it over a unix socket. `cargo
//! bench --bench acm -- SECONDS` measures for so long; any other argument, as tests pass, is a short run.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    missing_docs,
    reason = "a bench prints, and ends where something fails"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use mapper_acm::fabric::{Host, Path as FabricPath, Unit};
use mapper_acm::service::{Service, Settings};
use mapper_acm::wire::{Address, EntryFlags, Question, Reply, Request, Sought};
use mapper_daemon::agent::status::{
    Change, KnownHost, KnownPath, KnownPaths, PathsNumber, paths_number_path,
};
use mapper_proto::{Instant as Nanos, Mac};

/// How many hosts the stand-in for an agent knows.
const HOSTS: u32 = 1024;
/// How many clients ask at once.
const CLIENTS: u64 = 16;
/// How many questions of a client are under way at once, where it asks many in parallel.
const WINDOW: usize = 16;
/// How long a reply with a path is, where the client named the source.
const REPLY_BYTES: usize = 88;

fn main() {
    let seconds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(0.2);
    let duration = Duration::from_secs_f64(seconds);
    let dir = tempfile::tempdir().unwrap();
    let agent = UnixListener::bind(dir.path().join("0.requests")).unwrap();
    let stand_in = Arc::new(StandIn::new(dir.path()));
    let answering = Arc::clone(&stand_in);
    thread::spawn(move || answering.answer(&agent));
    let socket = dir.path().join("acm.sock");
    let mut service = serve(dir.path(), &socket);
    wait_for(&socket);
    echo(duration);
    one_client(&socket, duration);
    many_clients(&socket, duration, 1);
    many_clients(&socket, duration, WINDOW);
    invalidation();
    new_maps(&socket, &stand_in);
    println!("the service used {}", processor_time(&service));
    service.kill().unwrap();
    service.wait().unwrap();
}

/// How long it takes to forget what a new map changes, where so many answers are remembered.
fn invalidation() {
    let path = FabricPath { hops: 3, layer: 0, mtu_bytes: 1400, rate_mbps: 10_000, is_reversible: true };
    let unit = |hops: u8| {
        let host = |n: u32| Host {
            mac: Mac::from_position(n),
            name: Some(format!("n{n}")),
            addresses: (1..=9).map(|last| [10, (n >> 8) as u8, n as u8, last].into()).collect(),
            path: Some(if n == 2 { FabricPath { hops, ..path } } else { path }),
        };
        Unit::new("eth0".to_owned(), Mac::from_position(1), (1..=HOSTS).map(host))
    };
    let mut service = Service::new(Settings::default());
    service.set_unit(Nanos::ZERO, 0, unit(3));
    for n in 2..=HOSTS {
        for last in 1..=9 {
            let destination = Address::V4([10, (n >> 8) as u8, n as u8, last].into());
            let sought = Sought::Destination { source: None, destination };
            let question = Request::Resolve(Question { sought, flags: EntryFlags::default() });
            service.handle_request(Nanos::ZERO, 1, &question.to_bytes(0).unwrap(), &mut Vec::new()).unwrap();
        }
    }
    let cached = service.cached();
    let (mut times, mut dropped) = (Vec::new(), 0);
    for round in 0..20 {
        let unit = unit(4 + round % 2);
        let start = Instant::now();
        dropped += service.set_unit(Nanos::ZERO, 0, unit);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    println!(
        "a new map with {cached:?} addresses and paths remembered: {:?}, {dropped} forgotten",
        times[10]
    );
}

/// Answers as an agent does.
struct StandIn {
    state: Mutex<StandInState>,
}

struct StandInState {
    paths: PathsNumber,
    /// How often something has changed.
    change: u64,
    /// How many crossbars are on the way to host 2.
    hops: u8,
    waiting: Vec<UnixStream>,
}

impl StandIn {
    fn new(run_dir: &Path) -> Self {
        let paths = PathsNumber::open(&paths_number_path(run_dir, 0)).unwrap();
        Self { state: Mutex::new(StandInState { paths, change: 1, hops: 3, waiting: Vec::new() }) }
    }

    fn answer(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let mut state = self.state.lock().unwrap();
            if line.contains("paths") {
                let known = state.known();
                drop(state);
                stream.write_all(&serde_json::to_vec(&known).unwrap()).unwrap();
            } else if line.contains(&format!(":{}}}", state.change)) {
                state.waiting.push(stream);
            } else {
                state.tell(&mut stream);
            }
        }
    }

    /// Has a new map, which leads to host 2 over so many crossbars, as an agent has one.
    fn install(&self, hops: u8) {
        let mut state = self.state.lock().unwrap();
        state.hops = hops;
        state.paths.raise().unwrap();
        state.change += 1;
        let waiting = std::mem::take(&mut state.waiting);
        waiting.into_iter().for_each(|mut stream| state.tell(&mut stream));
    }
}

impl StandInState {
    fn tell(&self, stream: &mut UnixStream) {
        // The service hangs up where it looks at something else.
        let _gone = stream.write_all(&serde_json::to_vec(&Change { number: self.change }).unwrap());
    }

    fn known(&self) -> KnownPaths {
        let path = |hops| KnownPath { hops, layer: 0, mtu_bytes: 1400, rate_mbps: 10_000, reversible: true };
        let host = |n: u32| KnownHost {
            mac: Mac::from_position(n).to_string(),
            name: Some(format!("n{n}")),
            addresses: vec![[10, 1, (n >> 8) as u8, n as u8].into()],
            path: Some(path(if n == 2 { self.hops } else { 3 })),
        };
        KnownPaths {
            unit: 0,
            interface: "eth0".to_owned(),
            host: Mac::from_position(1).to_string(),
            is_settled: true,
            paths_number: Some(self.paths.get()),
            hosts: (1..=HOSTS).map(host).collect(),
            learned: Vec::new(),
            port: None,
        }
    }
}

/// How long a client waits for the path of a new map, from the moment at which the map is there. No path of the old map is
/// told from then on.
fn new_maps(socket: &Path, stand_in: &StandIn) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut times = Vec::new();
    for round in 0..20 {
        let hops = 4 + round % 2;
        stand_in.install(hops);
        let installed = Instant::now();
        stream.write_all(&question(2)).unwrap();
        let mut reply = [0; REPLY_BYTES];
        stream.read_exact(&mut reply).unwrap();
        times.push(installed.elapsed());
        let Ok((_, Reply::Path { path, .. })) = Reply::parse(&reply) else { panic!("no path") };
        assert_eq!(path.hop_limit, hops, "a path of the old map");
    }
    times.sort_unstable();
    println!("from a new map to its first answer: median {:?}, longest {:?}", times[10], times[19]);
}

fn serve(run_dir: &Path, socket: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mapper"));
    command.args(["acm", "serve", "--run-dir"]).arg(run_dir).arg("--socket").arg(socket);
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until the service answers.
fn wait_for(socket: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(mut stream) = UnixStream::connect(socket) {
            // The first question waits until the agent has been heard.
            stream.write_all(&question(2)).unwrap();
            receive(&mut stream, 1);
            return;
        }
        assert!(Instant::now() < deadline, "the service does not start");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A question for the path to a host.
fn question(n: u32) -> Vec<u8> {
    let address = |n: u32| Address::V4([10, 1, (n >> 8) as u8, n as u8].into());
    let sought = Sought::Destination { source: Some(address(1)), destination: address(n) };
    Request::Resolve(Question { sought, flags: EntryFlags::default() }).to_bytes(n.into()).unwrap()
}

fn receive(stream: &mut UnixStream, count: usize) {
    let mut replies = [0; REPLY_BYTES * WINDOW];
    let replies = &mut replies[..REPLY_BYTES * count];
    stream.read_exact(replies).unwrap();
    let Ok((_, Reply::Path { .. })) = Reply::parse(replies) else { panic!("no path") };
}

/// How long it takes to send as much to another thread and to get as much back, with nothing done in between: what the machine
/// takes for two wake-ups, which is tens of microseconds where idle processors of a virtual machine must be woken.
fn echo(duration: Duration) {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let echoing = thread::spawn(move || {
        let mut asked = vec![0; question(2).len()];
        while far.read_exact(&mut asked).is_ok() {
            far.write_all(&asked[..REPLY_BYTES]).unwrap();
        }
    });
    let (mut times, start, asked) = (Vec::new(), Instant::now(), question(2));
    while start.elapsed() < duration || times.len() < 100 {
        let sent = Instant::now();
        near.write_all(&asked).unwrap();
        near.read_exact(&mut [0; REPLY_BYTES]).unwrap();
        times.push(sent.elapsed());
    }
    drop(near);
    echoing.join().unwrap();
    times.sort_unstable();
    println!("an echo without a service: median {:?}", times[times.len() / 2]);
}

fn one_client(socket: &Path, duration: Duration) {
    let mut stream = UnixStream::connect(socket).unwrap();
    let (mut times, start) = (Vec::new(), Instant::now());
    let questions: Vec<_> = (2..=HOSTS).map(question).collect();
    // The first time round fills the cache.
    for (nth, question) in questions.iter().cycle().enumerate() {
        let asked = Instant::now();
        stream.write_all(question).unwrap();
        receive(&mut stream, 1);
        if nth >= questions.len() {
            times.push(asked.elapsed());
        }
        if start.elapsed() > duration && times.len() > 100 {
            break;
        }
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("one client: median {:?}, 99 % {:?}, {} questions", at(0.5), at(0.99), times.len());
}

fn many_clients(socket: &Path, duration: Duration, window: usize) {
    let (ends, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let begins = Arc::new(Barrier::new(CLIENTS as usize + 1));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (ends, count, begins) = (Arc::clone(&ends), Arc::clone(&count), Arc::clone(&begins));
            let mut stream = UnixStream::connect(socket).unwrap();
            thread::spawn(move || {
                let together: Vec<u8> = (2..2 + window as u32).flat_map(question).collect();
                begins.wait();
                while !ends.load(Ordering::Relaxed) {
                    stream.write_all(&together).unwrap();
                    receive(&mut stream, window);
                    count.fetch_add(window as u64, Ordering::Relaxed);
                }
            })
        })
        .collect();
    begins.wait();
    let start = Instant::now();
    thread::sleep(duration);
    ends.store(true, Ordering::Relaxed);
    let rate = count.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    clients.into_iter().for_each(|client| client.join().unwrap());
    println!("{CLIENTS} clients, {window} questions of each at once: {rate:.0} a second");
}

/// How long a process has used the processor, in the program and in the kernel.
fn processor_time(process: &Child) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    format!("{} ms of its own and {} ms of the kernel's", 10 * ticks(fields[11]), 10 * ticks(fields[12]))
}

fn ticks(field: &str) -> u64 {
    field.parse().unwrap()
}
