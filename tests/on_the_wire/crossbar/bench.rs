//! A crossbar in a namespace of its own, and frames over its cables.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use mapper_machine::link::ethernet::{EthernetFrame, EthernetSocket, MAX_FRAME_BYTES, Marking};
use mapper_machine::link::interface::Interface;
use mapper_proto::Mac;
use mapper_proto::wire::{Element, FrameKind, Info, Message, Probe, ProbeKind, Route, Stamp, split_route};
use serde_json::Value;
use tempfile::TempDir;

use crate::MAPPER;
use crate::namespace::Namespace;

/// Longer than a frame takes on a busy machine. Only a failing test waits so long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace with a crossbar in it. Its port N is interface `pN`, and the far end of that interface's cable
/// `hN`.
pub(super) struct Bench {
    pub(super) namespace: Namespace,
    pub(super) run_dir: TempDir,
    pub(super) xbar: Child,
    log: BufReader<ChildStderr>,
}

impl Bench {
    /// A crossbar of eight ports with two interfaces, with these options.
    pub(super) fn new(options: &[&str]) -> Self {
        Self::with(&[&["--port", "p1", "--port", "p2", "--ports", "8"], options].concat())
    }

    /// A crossbar whose ports are named by the options.
    pub(super) fn with(options: &[&str]) -> Self {
        let namespace = Namespace::new();
        for port in 1..=2 {
            namespace.ip(&format!("link add p{port} type veth peer name h{port}"));
            namespace.ip(&format!("link set p{port} up"));
            namespace.ip(&format!("link set h{port} up"));
        }
        let run_dir = tempfile::tempdir().unwrap();
        let mut xbar = namespace
            .command(MAPPER)
            .arg("xbar")
            .args(options)
            .env("MAPPER_RUN_DIR", run_dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(xbar.stderr.take().unwrap());
        let mut bench = Self { namespace, run_dir, xbar, log };
        bench.wait_for_log("crossbar runs");
        bench
    }

    /// Reads the crossbar's log up to a line with `needle` in it.
    pub(super) fn wait_for_log(&mut self, needle: &str) {
        let mut line = String::new();
        while self.log.read_line(&mut line).unwrap() > 0 {
            if line.contains(needle) {
                return;
            }
            line.clear();
        }
        panic!("the crossbar ended before it logged `{needle}`");
    }

    /// Sends a frame from one far end and returns what arrives at another, behind the Ethernet
    /// header, and without padding.
    pub(super) fn exchange(&self, from: &str, route: &[Element], frame: &[u8], to: &str) -> Vec<u8> {
        let (source, arrived) = self.exchange_with_source(from, route, frame, to);
        let sender = self.namespace.enter(|| Interface::look_up(from).unwrap().unwrap().mac);
        assert_eq!(source, sender, "the source stays");
        arrived
    }

    /// Sends a frame from one far end, and returns the source address and payload of the first frame that
    /// arrives at another and is no hello, whoever sent it.
    pub(super) fn exchange_with_source(
        &self,
        from: &str,
        route: &[Element],
        frame: &[u8],
        to: &str,
    ) -> (Mac, Vec<u8>) {
        self.namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sender = open(from);
                let other = (to != from).then(|| open(to));
                let receiver = other.as_ref().unwrap_or(&sender);
                sender.send(Route::from_iter(route.iter().copied()).as_bytes(), frame).unwrap();
                let mut buffer = vec![0; MAX_FRAME_BYTES];
                loop {
                    let bytes = tokio::time::timeout(PATIENCE, receiver.recv(&mut buffer))
                        .await
                        .expect("no frame came")
                        .unwrap();
                    let frame = EthernetFrame::parse(&buffer[..bytes]).unwrap();
                    if FrameKind::of(frame.payload()) != Ok(FrameKind::Hello) {
                        return (frame.source, frame.payload().to_vec());
                    }
                }
            })
        })
    }

    /// Sends a frame along each of these routes.
    pub(super) fn send<'a>(
        &self,
        from: &str,
        routes: impl IntoIterator<Item = &'a [u8], IntoIter: Send> + Send,
        frame: &[u8],
    ) {
        self.namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _inside = runtime.enter();
            let sender = open(from);
            routes.into_iter().for_each(|route| sender.send(route, frame).unwrap());
        });
    }

    /// What `mapper xbar --status` prints.
    pub(super) fn status_output(&self, options: &[&str]) -> String {
        let mut command = self.namespace.command(MAPPER);
        let command = command.args(["xbar", "--status"]).args(options);
        let output = command.env("MAPPER_RUN_DIR", self.run_dir.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the crossbar says of itself.
    pub(super) fn status(&self) -> Value {
        let mut status: Value = serde_json::from_str(&self.status_output(&["--format", "json"])).unwrap();
        assert_eq!(status["schema"], "mapper.xbar/1");
        status["xbars"][0].take()
    }

    /// The stamp of the crossbar on a probe from this far end.
    pub(super) fn stamp_seen_from(&self, from: &str) -> Stamp {
        let answer = self.exchange(from, &[Element::Identify], &identify_probe(), from);
        let (route, frame) = split_route(&answer).unwrap();
        assert!(route.is_empty());
        Message::decode(frame).unwrap().1.unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _already_ended = self.xbar.kill();
        let _ended = self.xbar.wait();
    }
}

/// How many frames left by a port, without its own hellos.
pub(super) fn sent(port: &Value) -> u64 {
    port["sent"].as_u64().unwrap() - port["hellos_sent"].as_u64().unwrap()
}

fn open(interface: &str) -> EthernetSocket {
    let interface = Interface::look_up(interface).unwrap().unwrap();
    EthernetSocket::open(&interface, Marking::default()).unwrap()
}

pub(super) fn identify_probe() -> Vec<u8> {
    let (info, way_there) = (Info::default(), Route::new());
    Message::Probe(Probe { id: 1, kind: ProbeKind::Identify, left: 1, info, way_there }).encode()
}
