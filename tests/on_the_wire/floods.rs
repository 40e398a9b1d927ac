//! Tests of agents beside a host that floods the fabric.

use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mapper_machine::link::ethernet::{EthernetSocket, HEADER_BYTES, Marking};
use mapper_machine::link::interface::Interface;
use mapper_proto::Mac;
use mapper_proto::map::{LinkMtu, MapVersion, PortRef, Rank};
use mapper_proto::wire::{
    AgentState, Answer, Data, Element, Info, InfoFlags, Key, Message, PROTOCOL_VERSION, Probe, ProbeKind,
    Reason, Reply, RoundTrip, Route, SECRET_BYTES, Scout, Seal,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::lab::{Lab, RaiseOnDrop, wait_for};
use crate::signals::{key, write_keys};
use crate::{can_carry_ip, namespace};

/// The frames that are sent at once. With the pause behind them they make some 30,000 frames a second.
const BURST: usize = 64;
const PACE: Duration = Duration::from_millis(2);
/// How many frames of a flood each agent has to survive.
const FRAMES: u64 = 5_000;
/// The number of the key that the agents sign with.
const KEY: u32 = 1;

/// The routes from h6, which is on port 4 of xbar3, to the hosts h1 to h5.
fn routes() -> [Route; 5] {
    let to = |ports: &[u8]| ports.iter().map(|&port| Element::Absolute(port)).collect();
    [to(&[1, 3]), to(&[1, 4]), to(&[2, 3]), to(&[2, 4]), to(&[3])]
}

fn random_mac(random: &mut ChaCha8Rng) -> Mac {
    let mut bytes: [u8; 6] = random.random();
    bytes[0] &= 0xfe;
    Mac(bytes)
}

/// A frame that no agent understands, though it may begin like a message.
fn garbage(random: &mut ChaCha8Rng, _: usize) -> Vec<u8> {
    let mut bytes = vec![0; random.random_range(0..1400)];
    random.fill_bytes(&mut bytes);
    if random.random() {
        // The beginning of a message is valid: its type and its version of the protocol.
        let kind = [0, 0, 0x70, 0x0f, PROTOCOL_VERSION, 0];
        let known = bytes.len().min(kind.len());
        bytes[..known].copy_from_slice(&kind[..known]);
    }
    bytes
}

/// What a mapper would say that ranks higher than any other, or a host that no agent has heard of.
fn forged_info(random: &mut ChaCha8Rng) -> Info {
    let rank = Rank { level: random.random_range(1..=255), mac: random_mac(random) };
    let version = MapVersion { mac: rank.mac, counter: random.random() };
    let flags = InfoFlags { contested: random.random(), ..InfoFlags::default() };
    Info {
        rank,
        host_type: 4,
        session: random.random(),
        state: AgentState::Configured,
        version,
        pieces: 1,
        flags,
        mtu: LinkMtu::default(),
    }
}

/// A message of a sender that does not exist: without a tag, or with one of another secret.
fn forged(random: &mut ChaCha8Rng, to: usize) -> Vec<u8> {
    let (id, info) = (random.random(), forged_info(random));
    let suspects = vec![PortRef { xbar: random.random_range(0..3), port: random.random_range(1..5) }];
    let version = info.version;
    let reason = match random.random_range(0..7) {
        0 => Reason::Mapping,
        1 => Reason::Tree { version, level: 255 },
        2 => Reason::QueryMapVersion { seen: version, suspects },
        3 => Reason::Verify,
        4 => Reason::Pause { max_ms: u16::MAX },
        5 => Reason::AddressConflict { places: Vec::new() },
        _ => Reason::Hello,
    };
    let way = RoundTrip { there: routes()[to].clone(), back: routes()[0].clone() };
    let message = match random.random_range(0..3) {
        0 => Message::Scout(Scout { id, info, way, reason }),
        1 => Message::Probe(Probe { id, kind: ProbeKind::Loopback, left: 1, info, way_there: way.there }),
        _ => {
            Message::Reply(Reply { id, to: Mac::from_position(to as u32 + 1), info, answer: Answer::Verify })
        }
    };
    if random.random() {
        let key = Key::new(KEY, [7; SECRET_BYTES]);
        message.encode_sealed(Seal { key: &key, sequence: random.random(), answers: random.random() })
    } else {
        message.encode()
    }
}

/// A user's frame to all hosts or to one host, from a sender that does not exist.
fn data(random: &mut ChaCha8Rng, to: usize) -> Vec<u8> {
    let mut ethernet = vec![0; random.random_range(60..1000)];
    random.fill_bytes(&mut ethernet);
    let own = Mac([2, 0, 0, 0, 0, to as u8 + 1]);
    ethernet[..6].copy_from_slice(&if random.random() { own.0 } else { [0xff; 6] });
    ethernet[6..12].copy_from_slice(&random_mac(random).0);
    // The Ethernet type is that of ARP, or one that no host knows.
    ethernet[12..14].copy_from_slice(if random.random() { &[0x08, 0x06] } else { &[0x88, 0xb6] });
    Data { token: random.random(), way_back: routes()[0].clone(), ethernet: &ethernet }.encode().unwrap()
}

/// A function that makes a frame for one of the hosts, which are counted from 0.
type MakeFrame = fn(&mut ChaCha8Rng, usize) -> Vec<u8>;

/// Sends frames to all hosts from the interface of h6, until `stop` is set.
fn flood(lab: &Lab, stop: &AtomicBool, frame: MakeFrame) {
    namespace::enter(&lab.namespace("h6"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let marking = Marking::default();
    let socket = EthernetSocket::open(&Interface::look_up("fab0").unwrap().unwrap(), marking).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let frames: Vec<_> = (0..100 * BURST)
        .map(|nth| {
            let mut header = [0; HEADER_BYTES];
            header[..6].copy_from_slice(&marking.destination.0);
            header[6..12].copy_from_slice(&random_mac(&mut random).0);
            header[12..].copy_from_slice(&marking.ethertype.to_be_bytes());
            let to = nth % 5;
            (header, [routes()[to].as_bytes(), &frame(&mut random, to)].concat())
        })
        .collect();
    for burst in frames.chunks(BURST).cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let burst: Vec<_> =
            burst.iter().map(|(header, payload)| [IoSlice::new(header), IoSlice::new(payload)]).collect();
        socket.send_batch(&burst, |_, _| {});
        std::thread::sleep(PACE);
    }
}

/// The memory that a node's process has, in KiB.
fn memory_kib(lab: &Lab, node: &str) -> u64 {
    let pid = lab.pid(node).as_raw_pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A ring without host h6, whose place the test takes to send its flood.
struct Flooded {
    lab: Lab,
    /// The boards of the other hosts before the flood.
    boards: Vec<Value>,
    /// The memory that each of them had before the flood.
    memory_kib: Vec<u64>,
}

impl Flooded {
    const NODES: [&str; 8] = ["h1", "h2", "h3", "h4", "h5", "xbar1", "xbar2", "xbar3"];

    fn new(options: &[&str]) -> Self {
        let lab = Lab::up("ring:n=3,hosts=2", &[&["--"], options].concat());
        lab.wait_for_network("the whole ring", 6, 3);
        lab.run(&["kill", "h6"]);
        let boards = lab.wait_for_network("without the one that will flood", 5, 3);
        lab.wait_for_pings("all reach each other", &["h6"]);
        let memory_kib = Self::NODES.map(|node| memory_kib(&lab, node)).to_vec();
        Self { lab, boards, memory_kib }
    }

    /// Floods until each agent has received [`FRAMES`] frames, and `meanwhile` is done.
    fn flood(&self, what: &str, frame: MakeFrame, meanwhile: impl FnOnce()) {
        let received = |board: &Value| board["counters"]["frames"]["received"].as_u64().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flooder = scope.spawn(|| flood(&self.lab, &stop, frame));
            let _stops = RaiseOnDrop(&stop);
            let first = self.lab.boards(&[]);
            wait_for(what, || {
                assert!(!flooder.is_finished());
                let boards = self.lab.boards(&[]);
                let stood = |(now, then): (&Value, &Value)| received(now) >= received(then) + FRAMES;
                boards.iter().zip(&first).take(5).all(stood).then_some(())
            });
            meanwhile();
        });
    }

    fn assert_memory_is_bounded(&self) {
        for (node, before) in Self::NODES.iter().zip(&self.memory_kib) {
            let after = memory_kib(&self.lab, node);
            assert!(after < before + 16 * 1024, "{node} had {before} KiB and has {after} KiB");
        }
    }
}

#[test]
fn the_others_stay_configured_and_reach_each_other_under_a_flood_and_need_no_more_memory() {
    if !can_carry_ip() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let key_file = dir.path().join("key");
    write_keys(&key_file, &[&key(KEY)]);
    // The flood needs processors, too, so answers are late on a machine with few of them.
    let patient =
        ["--probe-timeout-ms", "500", "--silence-limit-ms", "60000", "--liveness-interval-ms", "500"];
    let flooded = Flooded::new(&[&["--key-file", key_file.to_str().unwrap()], &patient[..]].concat());
    for (what, frame) in [("garbage", garbage as MakeFrame), ("forged", forged), ("data", data)] {
        flooded.flood(what, frame, || {
            flooded.lab.wait_for_pings(&format!("all reach each other under {what}"), &["h6"]);
        });
        let after = flooded.lab.wait_for_network(&format!("complete behind {what}"), 5, 3);
        for (before, after) in flooded.boards.iter().zip(&after) {
            let steady = ["map_version", "leader", "parent", "children"];
            assert!(steady.iter().all(|&key| before[key] == after[key]), "{what}: {before:#}\n{after:#}");
        }
    }
    for board in flooded.lab.boards(&[]).iter().take(5) {
        let dropped = &board["counters"]["dropped"];
        assert!(
            dropped["no_tag"].as_u64() > Some(100) && dropped["bad_tag"].as_u64() > Some(100),
            "{dropped:#}"
        );
        let users = &board["tap"]["counters"]["dropped"];
        assert!(users["unknown_source"].as_u64() > Some(100), "none of them is delivered: {users:#}");
    }
    flooded.assert_memory_is_bounded();
}

#[test]
fn without_keys_a_flood_of_forged_messages_is_got_over_and_needs_no_more_memory() {
    if !can_carry_ip() {
        return;
    }
    let flooded = Flooded::new(&[]);
    flooded.flood("forged", forged, || {});
    flooded.lab.wait_for_network("complete behind a flood that was believed", 5, 3);
    flooded.lab.wait_for_pings("all reach each other again", &["h6"]);
    flooded.assert_memory_is_bounded();
}
