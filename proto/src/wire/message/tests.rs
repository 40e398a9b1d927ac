use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::map::{LinkMtu, MapVersion, Place, PortRef, Rank};
use crate::wire::{
    AgentState, Answer, Data, Element, Info, InfoFlags, Reason, RoundTrip, Route, ServiceNumber, frame,
};
use crate::{Mac, PortSet};

fn mac() -> impl Strategy<Value = Mac> {
    any::<[u8; 6]>().prop_map(Mac)
}

fn version() -> impl Strategy<Value = MapVersion> {
    prop_oneof![
        Just(MapVersion::NONE),
        (mac(), 1..=u32::MAX).prop_map(|(mac, counter)| MapVersion { mac, counter })
    ]
}

fn state() -> impl Strategy<Value = AgentState> {
    prop_oneof![
        Just(AgentState::Starting),
        Just(AgentState::Mapping),
        Just(AgentState::Passive),
        Just(AgentState::Fetching),
        Just(AgentState::Routing),
        Just(AgentState::Configured),
        Just(AgentState::Isolated),
    ]
}

fn info() -> impl Strategy<Value = Info> {
    let flags =
        any::<[bool; 5]>().prop_map(|[subtree_complete, network_complete, printeur, contested, non_clos]| {
            InfoFlags { subtree_complete, network_complete, printeur, contested, non_clos }
        });
    let ports = proptest::collection::vec(1..=LinkMtu::LAST_PORT, 0..8).prop_map(PortSet::from_iter);
    let mtu = (any::<u16>(), ports).prop_map(|(bytes, ports)| LinkMtu { bytes, ports });
    (any::<u8>(), mac(), any::<u8>(), any::<u32>(), state(), version(), any::<u16>(), flags, mtu).prop_map(
        |(level, mac, host_type, session, state, version, pieces, flags, mtu)| Info {
            rank: Rank { level, mac },
            host_type,
            session,
            state,
            version,
            pieces,
            flags,
            mtu,
        },
    )
}

pub(in crate::wire) fn route() -> impl Strategy<Value = Route> {
    let element = prop_oneof![
        (-32..=31i8).prop_map(Element::Relative),
        any::<u8>().prop_map(Element::Absolute),
        Just(Element::Identify)
    ];
    vec(element, 0..=Route::MAX_BYTES / 2).prop_map(Route::from_iter)
}

fn place() -> impl Strategy<Value = Place> {
    (any::<u32>(), any::<u8>(), any::<Option<u64>>())
        .prop_map(|(xbar, port, tag)| Place { at: PortRef { xbar, port }, tag })
}

fn reason() -> impl Strategy<Value = Reason> {
    let port = (any::<u32>(), any::<u8>()).prop_map(|(xbar, port)| PortRef { xbar, port });
    prop_oneof![
        Just(Reason::Mapping),
        (version(), vec(port, 0..=Reason::MAX_SUSPECTS))
            .prop_map(|(seen, suspects)| Reason::QueryMapVersion { seen, suspects }),
        (version(), any::<u8>()).prop_map(|(version, level)| Reason::Tree { version, level }),
        Just(Reason::Verify),
        (version(), any::<u16>(), 0..=Answer::MAX_PIECE_BYTES as u16)
            .prop_map(|(version, piece, room_bytes)| Reason::MapRequest { version, piece, room_bytes }),
        Just(Reason::Hello),
        (any::<u8>(), 0..=Reason::MAX_SERVICE_BYTES as u16, vec(any::<u8>(), 0..=Reason::MAX_SERVICE_BYTES))
            .prop_map(|(service, room_bytes, question)| Reason::Service {
                service: ServiceNumber(service),
                room_bytes,
                question
            }),
        any::<u16>().prop_map(|max_ms| Reason::Pause { max_ms }),
        Just(Reason::Resume),
        any::<u16>().prop_map(|answer_bytes| Reason::Alive { answer_bytes }),
        "\\PC{0,120}".prop_map(|text| Reason::Printf { text }),
        vec(place(), 0..=Reason::MAX_PLACES).prop_map(|places| Reason::AddressConflict { places }),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        Just(Answer::Probe),
        Just(Answer::Mapping),
        Just(Answer::QueryMapVersion),
        Just(Answer::Tree),
        Just(Answer::Verify),
        (version(), any::<[u16; 3]>(), vec(any::<u8>(), 0..1500)).prop_map(
            |(version, [piece, pieces, needs_bytes], bytes)| Answer::MapRequest {
                version,
                piece,
                pieces,
                needs_bytes,
                bytes
            }
        ),
        Just(Answer::Hello),
        (any::<u8>(), proptest::option::of(vec(any::<u8>(), 0..=Reason::MAX_SERVICE_BYTES)))
            .prop_map(|(service, answer)| Answer::Service { service: ServiceNumber(service), answer }),
        Just(Answer::Pause),
        Just(Answer::Resume),
        Just(Answer::Alive),
        Just(Answer::Printf),
        Just(Answer::AddressConflict),
    ]
}

pub(in crate::wire) fn message() -> impl Strategy<Value = Message> {
    let kind = prop_oneof![Just(ProbeKind::Loopback), Just(ProbeKind::Compare), Just(ProbeKind::Identify)];
    prop_oneof![
        (any::<u32>(), kind, any::<u8>(), info(), route()).prop_map(|(id, kind, left, info, way_there)| {
            Message::Probe(Probe { id, kind, left, info, way_there })
        }),
        (any::<u32>(), info(), route(), route(), reason()).prop_map(|(id, info, there, back, reason)| {
            Message::Scout(Scout { id, info, way: RoundTrip { there, back }, reason })
        }),
        (any::<u32>(), mac(), info(), answer()).prop_map(|(id, to, info, answer)| Message::Reply(Reply {
            id,
            to,
            info,
            answer
        })),
    ]
}

fn sample_info() -> Info {
    Info {
        rank: Rank { level: 1, mac: Mac([2, 0, 0, 0, 0, 9]) },
        host_type: 4,
        session: 0x5e55_1011,
        state: AgentState::Configured,
        version: MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 0xc0ffee },
        pieces: 3,
        flags: InfoFlags {
            subtree_complete: true,
            network_complete: false,
            printeur: true,
            contested: false,
            non_clos: false,
        },
        mtu: LinkMtu { bytes: 9000, ports: PortSet::from_iter([2, 3]) },
    }
}

const INFO: &str = "01020000000009 04 5e551011 05 02000000000a00c0ffee 0003 05 2328 00000006";

fn body_hex(message: &Message) -> String {
    let mut body = Vec::new();
    message.write(&mut body);
    body.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Says that the body of `message` is `golden`, in which `INFO` stands for the sample's bytes,
/// `ROOM` for the zeros that make room for a reply, and blanks for nothing.
fn assert_golden(message: &Message, golden: &str) {
    let golden: String =
        golden.replace("INFO", INFO).replace("ROOM", &"00".repeat(8)).chars().filter(|c| *c != ' ').collect();
    assert_eq!(body_hex(message), golden, "{message:?}");
    assert_eq!(Message::decode(&message.encode()), Ok((message.clone(), None)));
}

#[test]
fn probes_have_their_golden_bytes() {
    for (kind, code) in [(ProbeKind::Loopback, "00"), (ProbeKind::Compare, "01"), (ProbeKind::Identify, "02")]
    {
        let probe = Probe {
            id: 0x0a0b_0c0d,
            kind,
            left: 4,
            info: sample_info(),
            way_there: Route::from_iter([Element::Relative(1)]),
        };
        assert_golden(&Message::Probe(probe), &format!("01 0a0b0c0d {code} 04 INFO 01 81 ROOM"));
    }
}

#[test]
fn scouts_have_their_golden_bytes() {
    let version = MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 7 };
    let suspects = vec![PortRef { xbar: 258, port: 3 }];
    let places = vec![
        Place { at: suspects[0], tag: None },
        Place { at: PortRef { xbar: 1, port: 4 }, tag: Some(0xfeed) },
    ];
    for (reason, golden) in [
        (Reason::Mapping, "01"),
        (Reason::QueryMapVersion { seen: MapVersion::NONE, suspects: vec![] }, "02 00000000000000000000 00"),
        (Reason::QueryMapVersion { seen: version, suspects }, "02 02000000000a00000007 01 0000010203"),
        (Reason::Tree { version, level: 9 }, "03 02000000000a00000007 09"),
        (Reason::Verify, "04"),
        (
            Reason::MapRequest { version, piece: 0x0102, room_bytes: 3 },
            "05 02000000000a00000007 0102 0003 000000",
        ),
        (Reason::Pause { max_ms: 500 }, "06 01f4"),
        (Reason::Resume, "07"),
        (Reason::Alive { answer_bytes: 0x0102 }, "09 0102"),
        (Reason::Printf { text: "hé".to_owned() }, "08 0003 68c3a9"),
        (Reason::AddressConflict { places }, "0a 02 00000102 03 00 00000001 04 01 000000000000feed"),
        (Reason::Hello, "0b"),
        (
            Reason::Service { service: ServiceNumber(1), room_bytes: 2, question: vec![0xab] },
            "0c 01 0001 ab 0002 0000",
        ),
    ] {
        let back = Route::from_iter([Element::Relative(-3), Element::Absolute(7)]);
        let there = Route::from_iter([Element::Absolute(9)]);
        let scout = Scout { id: 1, info: sample_info(), way: RoundTrip { there, back }, reason };
        assert_golden(&Message::Scout(scout), &format!("02 00000001 INFO 03 bdc007 02 c009 ROOM {golden}"));
    }
}

#[test]
fn replies_have_their_golden_bytes() {
    let version = MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 7 };
    for (answer, golden) in [
        (Answer::Probe, "00"),
        (Answer::Mapping, "01"),
        (Answer::QueryMapVersion, "02"),
        (Answer::Tree, "03"),
        (Answer::Verify, "04"),
        (
            Answer::MapRequest { version, piece: 1, pieces: 2, needs_bytes: 3, bytes: vec![0xab, 0xcd] },
            "05 02000000000a00000007 0001 0002 0003 0002 abcd",
        ),
        (Answer::Pause, "06"),
        (Answer::Resume, "07"),
        (Answer::Alive, "09"),
        (Answer::Printf, "08"),
        (Answer::AddressConflict, "0a"),
        (Answer::Hello, "0b"),
        (Answer::Service { service: ServiceNumber(1), answer: None }, "0c 01 00"),
        (Answer::Service { service: ServiceNumber(1), answer: Some(vec![0xab]) }, "0c 01 01 0001 ab"),
    ] {
        let reply = Reply { id: 2, to: Mac([2, 0, 0, 0, 0, 1]), info: sample_info(), answer };
        assert_golden(&Message::Reply(reply), &format!("03 00000002 020000000001 INFO {golden}"));
    }
}

#[test]
fn messages_are_small() {
    let probe = |kind| {
        Message::Probe(Probe { id: 0, kind, left: 0, info: sample_info(), way_there: Route::new() })
            .encode()
            .len()
    };
    assert_eq!(probe(ProbeKind::Loopback), 60);
    assert_eq!(probe(ProbeKind::Identify), 60 + crate::wire::STAMP_BYTES);
    let mut info = Vec::new();
    sample_info().write(&mut info);
    assert_eq!(info.len(), Info::BYTES);
}

#[test]
fn a_stamp_comes_back_and_a_damaged_one_is_told() {
    let probe = Message::Probe(Probe {
        id: 5,
        kind: ProbeKind::Identify,
        left: 1,
        info: sample_info(),
        way_there: Route::new(),
    });
    let stamp = Stamp { tag: 0xfeed, ports: 16, arrival: 3, carriers: [0x11; 32].into() };
    let mut bytes = probe.encode();
    stamp.write(&mut bytes[frame::HEADER_BYTES..]);
    assert_eq!(Message::decode(&bytes), Ok((probe, Some(stamp))));
    bytes[frame::HEADER_BYTES + 2] ^= 0x40;
    assert_eq!(Message::decode(&bytes), Err(FrameError::BadCrc));
}

/// The frame of a body that no message wrote.
fn framed(body: &[u8]) -> Vec<u8> {
    frame::build(FrameKind::Mapper, false, None, |out| out.extend_from_slice(body))
}

#[test]
fn fields_that_make_no_sense_are_refused() {
    let mut good = Vec::new();
    Message::Reply(Reply { id: 2, to: Mac([0; 6]), info: sample_info(), answer: Answer::Mapping })
        .write(&mut good);
    assert!(Message::decode(&framed(&good)).is_ok());
    let last = good.len() - 1;
    // Message, state, flags, answer; then a version without counter.
    for (at, value) in [(0, 0), (0, 4), (11 + 12, 7), (11 + 25, 32), (last, 99)] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(Message::decode(&framed(&bad)), Err(FrameError::Malformed), "byte {at}");
    }
    let mut no_counter = good.clone();
    no_counter[11 + 19..11 + 23].fill(0);
    assert_eq!(Message::decode(&framed(&no_counter)), Err(FrameError::Malformed));
    for length in 0..good.len() {
        assert_eq!(Message::decode(&framed(&good[..length])), Err(FrameError::Malformed), "{length}");
    }
    good.push(0);
    assert_eq!(Message::decode(&framed(&good)), Err(FrameError::Malformed), "a byte too many");
}

#[test]
fn a_stamp_area_belongs_to_identify_probes_alone() {
    let mut body = Vec::new();
    let probe =
        |kind| Message::Probe(Probe { id: 5, kind, left: 1, info: sample_info(), way_there: Route::new() });
    probe(ProbeKind::Loopback).write(&mut body);
    let with_area = frame::build(FrameKind::Mapper, true, None, |out| out.extend_from_slice(&body));
    assert_eq!(Message::decode(&with_area), Err(FrameError::Malformed));
    body.clear();
    probe(ProbeKind::Identify).write(&mut body);
    assert_eq!(Message::decode(&framed(&body)), Err(FrameError::Malformed));
}

#[test]
fn lists_beyond_their_bounds_are_cut_off_by_the_sender_and_refused_by_the_receiver() {
    let scout = |reason| Scout { id: 0, info: sample_info(), way: RoundTrip::default(), reason };
    let suspects = vec![PortRef { xbar: 1, port: 2 }; Reason::MAX_SUSPECTS + 3];
    let sent = Message::Scout(scout(Reason::QueryMapVersion { seen: MapVersion::NONE, suspects }));
    let Ok((Message::Scout(Scout { reason: Reason::QueryMapVersion { suspects, .. }, .. }), None)) =
        Message::decode(&sent.encode())
    else {
        panic!("no such scout")
    };
    assert_eq!(suspects.len(), Reason::MAX_SUSPECTS);

    let text = "é".repeat(Reason::MAX_PRINTF_BYTES);
    let Ok((Message::Scout(Scout { reason: Reason::Printf { text }, .. }), None)) =
        Message::decode(&Message::Scout(scout(Reason::Printf { text })).encode())
    else {
        panic!("no such scout")
    };
    assert_eq!(text.len(), Reason::MAX_PRINTF_BYTES);

    let mut body = Vec::new();
    Message::Scout(scout(Reason::Mapping)).write(&mut body);
    body.pop();
    body.extend([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Reason::MAX_SUSPECTS as u8 + 1]);
    body.extend([0; 5 * (Reason::MAX_SUSPECTS + 1)]);
    assert_eq!(Message::decode(&framed(&body)), Err(FrameError::Malformed));
}

#[test]
fn a_data_frame_is_no_message() {
    let data = Data { token: 1, way_back: Route::new(), ethernet: b"user" }.encode().unwrap();
    assert_eq!(Message::decode(&data), Err(FrameError::UnknownKind(9)));
    assert_eq!(Data::decode(&framed(b"")), Err(FrameError::UnknownKind(0x700f)));
}

proptest! {
    #[test]
    fn messages_come_back_through_padding(message in message(), padding in 0..64usize) {
        let mut bytes = message.encode();
        bytes.resize(bytes.len() + padding, 0xa5);
        prop_assert_eq!(Message::decode(&bytes), Ok((message, None)));
    }

    #[test]
    fn writing_does_not_depend_on_what_the_buffer_held(message in message()) {
        let mut dirty = vec![0xa5; 17];
        let mut clean = Vec::new();
        message.write(&mut dirty);
        message.write(&mut clean);
        prop_assert_eq!(&dirty[17..], &clean[..]);
    }

    #[test]
    fn what_is_read_is_written_alike(body in vec(any::<u8>(), 0..80), first in 1..4u8) {
        let mut body = body;
        if let Some(byte) = body.first_mut() {
            *byte = first;
        }
        if let Ok(message) = Message::read(&body) {
            let mut again = Vec::new();
            message.write(&mut again);
            prop_assert_eq!(again, body);
        }
    }
}
