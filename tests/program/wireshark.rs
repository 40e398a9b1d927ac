//! Tests of the dissector: tshark must read in recorded frames the same names and values of fields as the
//! codec. Without tshark these tests are skipped.

#[path = "../../proto/tests/field_values/mod.rs"]
mod field_values;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mapper::pcapng::{Direction, Packet, PcapngWriter};
use mapper_proto::map::{LinkMtu, MapVersion, Place, PortRef, Rank};
use mapper_proto::wire::layout::{FRAME, Record, Shape};
use mapper_proto::wire::{
    AgentState, Answer, Data, Element, Frame, Hello, HelloEnd, HelloFlags, Info, InfoFlags, Key, Message,
    Probe, ProbeKind, Reason, Reply, RoundTrip, Route, Scout, Seal, ServiceNumber, Stamp, Undeliverable,
    split_route,
};
use mapper_proto::{Mac, PortSet};

use field_values::Values;

/// The program under test.
const MAPPER: &str = env!("CARGO_BIN_EXE_mapper");
/// The length of the Ethernet header that recorded frames begin with.
const ETHERNET_HEADER_BYTES: usize = 14;

/// What tshark prints of a recording, with the dissector that the program prints.
fn tshark(recording: &Path, options: &[&str]) -> String {
    let script = recording.with_extension("lua");
    let dissector = Command::new(MAPPER).arg("dissector").output().unwrap();
    assert!(dissector.status.success());
    fs::write(&script, dissector.stdout).unwrap();
    let mut command = Command::new("tshark");
    // The home is a folder of the test, so that the user's settings and plugins of Wireshark are not used.
    command.env("HOME", recording.parent().unwrap()).env("WIRESHARK_CONFIG_DIR", recording.parent().unwrap());
    command.arg("-n").arg("-X").arg(format!("lua_script:{}", script.display())).arg("-r").arg(recording);
    let output = command.args(options).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Our fields of each packet, as tshark shows them, from its output in XML (PDML).
fn dissected(recording: &Path) -> Vec<Values> {
    let pdml = tshark(recording, &["-T", "pdml"]);
    for wrong in ["_ws.malformed", "_ws.lua.error", "Lua Error", "mapper.malformed", "mapper.bad_crc"] {
        let at = pdml.find(wrong);
        assert!(at.is_none(), "{wrong}: {}", &pdml[at.unwrap_or(0)..][..300]);
    }
    pdml.split("<packet>").skip(1).map(|packet| packet.lines().filter_map(field_of).collect()).collect()
}

/// The field of ours that a line of PDML shows.
fn field_of(line: &str) -> Option<(String, String)> {
    let attribute = |name: &str| {
        let from = line.find(&format!(" {name}=\""))? + name.len() + 3;
        Some(unescaped(&line[from..from + line[from..].find('"')?]))
    };
    let name = attribute("name")?.strip_prefix("mapper.")?.to_owned();
    let (value, showname) = (attribute("show")?, attribute("showname")?);
    // Wireshark shows the word that a number stands for before the number.
    let shown = showname.split_once(": ")?.1;
    let is_word = shown.ends_with(&format!(" ({value})")) && !value.contains(':');
    let is_bit = showname.starts_with(['.', '0', '1']) && showname.contains(" = ");
    let value = match value.as_str() {
        "True" if is_bit => "1".to_owned(),
        "False" if is_bit => "0".to_owned(),
        _ if is_word => shown.replace("Unknown (", "unknown ("),
        _ => value,
    };
    Some((name, value))
}

/// Text as it was before it became part of XML.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for (escaped, letter) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&apos;", "'"), ("&amp;", "&")]
    {
        text = text.replace(escaped, letter);
    }
    text
}

/// The payload behind the Ethernet header of each packet of a recording.
fn payloads(recording: &Path) -> Vec<Vec<u8>> {
    const ENHANCED_PACKET: u32 = 6;
    let bytes = fs::read(recording).unwrap();
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut payloads) = (0, Vec::new());
    while at < bytes.len() {
        if number(at) == ENHANCED_PACKET {
            let packet = &bytes[at + 28..at + 28 + number(at + 20) as usize];
            payloads.push(packet[ETHERNET_HEADER_BYTES..].to_vec());
        }
        at += number(at + 4) as usize;
    }
    payloads
}

/// Checks that tshark sees in a recording what the codec sees, and returns that.
fn assert_alike(recording: &Path) -> Vec<Values> {
    let (payloads, dissected) = (payloads(recording), dissected(recording));
    assert_eq!(payloads.len(), dissected.len());
    for (nth, (payload, shown)) in payloads.iter().zip(&dissected).enumerate() {
        assert_eq!(shown, &field_values::of_payload(payload), "packet {}", nth + 1);
    }
    dissected
}

/// All words that say which message a frame carries, by field: those that the tables have, or those of frames.
type Kinds = BTreeSet<(String, String)>;

fn kinds_of_tables() -> Kinds {
    fn add(record: &Record, kinds: &mut Kinds) {
        for field in record.fields {
            match field.shape {
                Shape::Record(below) | Shape::List(below) => add(below, kinds),
                Shape::Choice(variants) => {
                    let name = format!("{}.{}", record.name, field.name);
                    for variant in variants {
                        kinds
                            .insert((name.clone(), format!("{} ({})", variant.record.title(), variant.code)));
                        add(variant.record, kinds);
                    }
                }
                _ => {}
            }
        }
    }
    let mut kinds = Kinds::new();
    for body in FRAME.bodies {
        kinds.insert(("frame.kind".to_owned(), format!("{} ({})", body.record.title(), body.kind)));
        add(body.record, &mut kinds);
    }
    // In the tables a frame of the mapper is called so, and only its body is called a message.
    kinds.into_iter().map(|(name, kind)| (name, kind.replace("message (", "mapper ("))).collect()
}

fn kinds_of(packets: &[Values]) -> Kinds {
    let names: BTreeSet<String> = kinds_of_tables().into_iter().map(|(name, _)| name).collect();
    packets.iter().flatten().filter(|(name, _)| names.contains(name)).cloned().collect()
}

fn route(elements: &[Element]) -> Route {
    elements.iter().copied().collect()
}

fn info() -> Info {
    Info {
        rank: Rank { level: 200, mac: Mac([2, 0, 0, 0, 0, 9]) },
        host_type: 4,
        session: 0x5e55_1011,
        state: AgentState::Configured,
        version: MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 0xffff_fffe },
        pieces: 3,
        flags: InfoFlags {
            subtree_complete: true,
            network_complete: false,
            printeur: true,
            contested: false,
            non_clos: true,
        },
        mtu: LinkMtu { bytes: 9000, ports: PortSet::from_iter([2, 3, 32]) },
    }
}

fn reasons() -> Vec<Reason> {
    let version = MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 7 };
    let suspects = vec![PortRef { xbar: 258, port: 3 }, PortRef { xbar: u32::MAX, port: 255 }];
    let places = vec![Place { at: suspects[0], tag: None }, Place { at: suspects[1], tag: Some(0xfeed) }];
    let text = "a <héllo> & \"good\" 'day'".to_owned();
    vec![
        Reason::Mapping,
        Reason::QueryMapVersion { seen: MapVersion::NONE, suspects: vec![] },
        Reason::QueryMapVersion { seen: version, suspects },
        Reason::Tree { version, level: 9 },
        Reason::Verify,
        Reason::MapRequest { version, piece: 0x0102, room_bytes: 300 },
        Reason::Pause { max_ms: 500 },
        Reason::Resume,
        Reason::Printf { text },
        Reason::Alive { answer_bytes: 0x0102 },
        Reason::AddressConflict { places },
        Reason::Hello,
        Reason::Service { service: ServiceNumber::DIRECTORY, room_bytes: 2, question: vec![0xab, 0xcd] },
        Reason::Service { service: ServiceNumber(99), room_bytes: 0, question: vec![] },
    ]
}

fn answers() -> Vec<Answer> {
    let version = MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 7 };
    let piece = |bytes: Vec<u8>| Answer::MapRequest { version, piece: 1, pieces: 2, needs_bytes: 300, bytes };
    vec![
        Answer::Probe,
        Answer::Mapping,
        Answer::QueryMapVersion,
        Answer::Tree,
        Answer::Verify,
        piece(vec![]),
        piece((0..=255).collect()),
        Answer::Pause,
        Answer::Resume,
        Answer::Printf,
        Answer::Alive,
        Answer::AddressConflict,
        Answer::Hello,
        Answer::Service { service: ServiceNumber::DIRECTORY, answer: None },
        Answer::Service { service: ServiceNumber::DIRECTORY, answer: Some(vec![]) },
        Answer::Service { service: ServiceNumber::DIRECTORY, answer: Some(vec![1, 2, 3]) },
    ]
}

/// A message of every kind.
fn messages() -> Vec<Message> {
    let there = route(&[Element::Relative(-32), Element::Relative(31), Element::Absolute(200)]);
    let back = route(&[Element::Relative(0)]);
    let probes = [ProbeKind::Loopback, ProbeKind::Compare, ProbeKind::Identify].map(|kind| {
        Message::Probe(Probe { id: 0x0a0b_0c0d, kind, left: 4, info: info(), way_there: there.clone() })
    });
    let scouts = reasons().into_iter().map(|reason| {
        let way = RoundTrip { there: there.clone(), back: back.clone() };
        Message::Scout(Scout { id: u32::MAX, info: info(), way, reason })
    });
    let to = Mac([2, 0, 0, 0, 0, 1]);
    let replies = answers()
        .into_iter()
        .map(|answer| Message::Reply(Reply { id: 2, to, info: Info::default(), answer }));
    probes.into_iter().chain(scouts).chain(replies).collect()
}

/// A frame of every kind: routes, messages with and without signature, stamped and not, what users send, checks
/// of paths, notices.
fn frames_of_every_kind() -> Vec<Vec<u8>> {
    let way = route(&[Element::Relative(-1), Element::Absolute(7), Element::Identify]);
    let key = Key::new(77, [9; 32]);
    let mut frames = Vec::new();
    for message in messages() {
        let seal = Seal { key: &key, sequence: 1 << 60, answers: 5 };
        frames.extend([message.encode(), message.encode_sealed(seal)]);
    }
    let identify = Probe { id: 1, kind: ProbeKind::Identify, left: 1, info: info(), way_there: Route::new() };
    let mut stamped = Message::Probe(identify).encode();
    let carriers = PortSet::from_iter([0, 1, 31, 255]);
    Stamp { tag: 0xfeed_0000_0000_0001, ports: 32, arrival: 31, carriers }.write(&mut stamped[8..]);
    frames.push(stamped);
    let arp = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[0; 20]].concat();
    frames.push(Data { token: 7, way_back: way.clone(), ethernet: &arp }.encode().unwrap());
    let alive = messages()
        .into_iter()
        .find(|message| matches!(message, Message::Scout(Scout { reason: Reason::Alive { .. }, .. })));
    let macs = (Mac::from_position(1), Mac::from_position(2));
    frames.push(Data::carry(7, &way, macs, &alive.unwrap().encode(), 600).unwrap());
    frames.push(Undeliverable { token: 7, tag: u64::MAX, port: 255 }.encode());
    let ends = [
        HelloEnd::Xbar { tag: Some(u64::MAX), port: 255 },
        HelloEnd::Xbar { tag: None, port: 0 },
        HelloEnd::Host { mac: Mac::from_position(3) },
    ];
    frames.extend(ends.into_iter().enumerate().map(|(nth, end)| {
        let heard = (0..nth as u32).map(Mac::from_position).collect();
        let flags = HelloFlags::SRV6.with(HelloFlags::ROUTES);
        Hello { end, mac: Mac::from_position(1), mtu: 9000, flags, heard }.encode()
    }));
    let padded = frames.iter().map(|frame| [frame, &[0; 9][..]].concat());
    let with_route = frames.iter().map(|frame| [way.as_bytes(), frame].concat());
    padded.chain(with_route).collect()
}

#[test]
fn a_frame_of_every_kind_is_shown_as_the_codec_reads_it() {
    if !mapper_needs::programs(&["tshark"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("every.pcapng");
    let mut writer = PcapngWriter::begin(fs::File::create(&recording).unwrap()).unwrap();
    writer.interface("h1", "the first host", Mac([2, 0, 0, 0, 0, 1])).unwrap();
    let header = [0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    for frame in frames_of_every_kind() {
        let (at, direction) = (Duration::from_nanos(1_000_000_007), Direction::Outbound);
        let packet = Packet { interface: 0, at, direction, parts: [&header, &frame], comments: &[] };
        writer.packet(&packet).unwrap();
    }
    writer.flush().unwrap();
    let packets = assert_alike(&recording);
    let missing: Vec<_> = kinds_of_tables().difference(&kinds_of(&packets)).cloned().collect();
    assert!(missing.is_empty(), "{missing:?}");
    let told = tshark(
        &recording,
        &["-c", "1", "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.interface_name"],
    );
    assert_eq!(told.trim_end(), "1.000000007\th1");
}

/// Runs the simulator with these options and records it.
fn simulate(dir: &Path, faults: &str, options: &[&str]) -> std::path::PathBuf {
    let (recording, fault_file) = (dir.join("run.pcapng"), dir.join("faults.txt"));
    fs::write(&fault_file, faults).unwrap();
    let mut command = Command::new(MAPPER);
    command.arg("sim").args(options).arg("--faults").arg(fault_file).arg("--pcapng").arg(&recording);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    recording
}

#[test]
fn a_simulated_run_is_shown_as_the_codec_reads_it() {
    if !mapper_needs::programs(&["tshark"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let faults = "at 200ms cut leaf1:3\nat 300ms mend leaf1:3\nat 400ms twin h1 of h2\nat 600ms untwin h1\n";
    let options = ["clos:hosts=8,ports=4", "--xbars", "mixed", "--until", "900", "--traffic", "20"];
    let recording = simulate(dir.path(), faults, &options);
    let kinds = kinds_of(&assert_alike(&recording));
    for kind in [
        ("frame.kind", "data (9)"),
        ("probe.kind", "loopback (0)"),
        ("probe.kind", "identify (2)"),
        ("scout.reason", "query-map-version (2)"),
        ("scout.reason", "tree (3)"),
        ("scout.reason", "verify (4)"),
        ("scout.reason", "map-request (5)"),
        ("scout.reason", "alive (9)"),
        ("scout.reason", "address-conflict (10)"),
        ("scout.reason", "service (12)"),
        ("reply.answer", "probe (0)"),
        ("reply.answer", "map-request (5)"),
        ("reply.answer", "service (12)"),
    ] {
        assert!(kinds.contains(&(kind.0.to_owned(), kind.1.to_owned())), "{kind:?}: {kinds:?}");
    }
    let fields = |filter: &str, field: &str| tshark(&recording, &["-Y", filter, "-T", "fields", "-e", field]);
    let comments = fields("frame.comment", "frame.comment");
    for comment in ["before this frame a fault struck: cut leaf1:3", "lost: a port on its way has no carrier"]
    {
        assert!(comments.contains(comment), "{comment}: {comments}");
    }
    let interfaces: BTreeSet<String> =
        fields("mapper", "frame.interface_name").lines().map(str::to_owned).collect();
    assert_eq!(interfaces, (1..=8).map(|nth| format!("h{nth}")).collect());
    // The dissector hands users' frames on to those of the protocols in them.
    assert!(fields("mapper.data.token && udp.dstport == 9", "frame.number").lines().count() > 10);
}

#[test]
fn garbled_frames_are_told_and_do_not_stop_the_dissector() {
    if !mapper_needs::programs(&["tshark"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = ["clos:hosts=8,ports=4", "--until", "300", "--corrupt", "5%"];
    let recording = simulate(dir.path(), "", &options);
    let pdml = tshark(&recording, &["-T", "pdml"]);
    assert!(!pdml.contains("Lua Error") && !pdml.contains("_ws.lua.error"));
    let payloads = payloads(&recording);
    let refused: Vec<usize> = (1..=payloads.len()).filter(|&nth| is_refused(&payloads[nth - 1])).collect();
    let filter = "mapper.malformed || mapper.bad_crc || mapper.other_version || !mapper";
    let shown = tshark(&recording, &["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    let shown: Vec<usize> = shown.lines().map(|number| number.parse().unwrap()).collect();
    assert!(refused.len() > 10, "{refused:?}");
    assert_eq!(shown, refused, "what the codec refuses is shown as faulty, and nothing else");
}

/// Whether the codec takes a frame for damaged, or the stamp in it.
fn is_refused(payload: &[u8]) -> bool {
    let frame = split_route(payload).and_then(|(_, frame)| Frame::parse(frame));
    frame.and_then(|frame| frame.stamp()).is_err()
}
