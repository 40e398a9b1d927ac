use super::*;
use crate::Mac;
use crate::PortSet;
use crate::map::{LinkMtu, MapVersion, Place, Rank};
use crate::wire::{AgentState, HelloEnd, HelloFlags, Key, Seal, ServiceNumber, frame};

fn info() -> Info {
    Info {
        rank: Rank { level: 1, mac: Mac([2, 0, 0, 0, 0, 9]) },
        host_type: 4,
        session: 0x5e55_1011,
        state: AgentState::Passive,
        ..Info::default()
    }
}

fn version() -> MapVersion {
    MapVersion { mac: Mac([2, 0, 0, 0, 0, 10]), counter: 7 }
}

fn printed(route: &[Element], frame: &[u8]) -> String {
    let route = Route::from_iter(route.iter().copied());
    Printer::new(&[route.as_bytes(), frame].concat()).to_string()
}

const FROM: &str = "from 02:00:00:00:00:09 level 1 type 4 session 5e551011 passive map none";

#[test]
fn probes_are_shown() {
    let probe = |kind| {
        let way_there = Route::from_iter([Element::Relative(1)]);
        Message::Probe(Probe { id: 10, kind, left: 2, info: info(), way_there }).encode()
    };
    let route = [Element::Relative(3), Element::Absolute(7), Element::Identify];
    assert_eq!(
        printed(&route, &probe(ProbeKind::Loopback)),
        format!("3,@7,? > probe loopback #10 there 1 left 2 {FROM}, 61 bytes")
    );
    let mut frame = probe(ProbeKind::Identify);
    assert_eq!(
        printed(&[], &frame),
        format!("- > probe identify #10 there 1 left 2 {FROM}, unstamped, 107 bytes")
    );
    let carriers = PortSet::from_iter([1, 2]);
    Stamp { tag: 0xfeed, ports: 16, arrival: 2, carriers }.write(&mut frame[frame::HEADER_BYTES..]);
    assert_eq!(
        printed(&[], &frame),
        format!(
            "- > probe identify #10 there 1 left 2 {FROM}, stamp 0x000000000000feed ports 16 arrival 2 carrier \
             1,2, 107 bytes"
        )
    );
    frame[frame::HEADER_BYTES] ^= 1;
    assert_eq!(
        printed(&[], &frame),
        format!(
            "- > probe identify #10 there 1 left 2 {FROM}, [stamp: the CRC-32 does not match], 107 bytes"
        )
    );
}

#[test]
fn scouts_are_shown() {
    for (reason, shown) in [
        (Reason::Mapping, "mapping"),
        (Reason::QueryMapVersion { seen: MapVersion::NONE, suspects: vec![] }, "query-map-version"),
        (
            Reason::QueryMapVersion {
                seen: version(),
                suspects: vec![PortRef { xbar: 1, port: 2 }, PortRef { xbar: 3, port: 4 }],
            },
            "query-map-version suspects 1:2,3:4 of 02:00:00:00:00:0a/7",
        ),
        (Reason::Tree { version: version(), level: 3 }, "tree 02:00:00:00:00:0a/7 level 3"),
        (Reason::Verify, "verify"),
        (
            Reason::MapRequest { version: version(), piece: 5, room_bytes: 9 },
            "map-request 02:00:00:00:00:0a/7 piece 5 room 9",
        ),
        (Reason::Hello, "hello"),
        (
            Reason::Service { service: ServiceNumber::DIRECTORY, room_bytes: 4, question: vec![7; 3] },
            "service 1 length 3 room 4",
        ),
        (Reason::Alive { answer_bytes: 99 }, "alive answer 99"),
        (Reason::Pause { max_ms: 9 }, "pause 9 ms"),
        (Reason::Resume, "resume"),
        (Reason::Printf { text: "a\n\u{7}b".to_owned() }, "printf \"a\\n\\u{7}b\""),
        (
            Reason::AddressConflict {
                places: vec![Place { at: PortRef { xbar: 1, port: 2 }, tag: Some(7) }],
            },
            "address-conflict, port 2 of xbar 0000000000000007",
        ),
    ] {
        let way = RoundTrip { there: Route::from_iter([Element::Absolute(9)]), back: Route::new() };
        let scout = Scout { id: 1, info: info(), way, reason };
        let frame = Message::Scout(scout).encode();
        let expected = format!("- > scout {shown} #1 there @9 back - {FROM}, {} bytes", frame.len());
        assert_eq!(printed(&[], &frame), expected);
    }
}

#[test]
fn replies_are_shown_with_all_flags() {
    let flags = InfoFlags {
        subtree_complete: true,
        network_complete: true,
        printeur: true,
        contested: true,
        non_clos: true,
    };
    let mtu = LinkMtu { bytes: 1500, ports: PortSet::from_iter([2]) };
    let info = Info { version: version(), pieces: 3, flags, mtu, ..info() };
    let answer =
        Answer::MapRequest { version: version(), piece: 1, pieces: 3, needs_bytes: 20, bytes: vec![0; 20] };
    let reply = Reply { id: 1, to: Mac([2, 0, 0, 0, 0, 1]), info, answer };
    assert_eq!(
        printed(&[], &Message::Reply(reply).encode()),
        "- > reply map-request 02:00:00:00:00:0a/7 piece 1 of 3 length 20 of 20 #1 to 02:00:00:00:00:01 from \
         02:00:00:00:00:09 level 1 type 4 session 5e551011 passive map 02:00:00:00:00:0a/7 pieces 3 \
         mtu 1500 subtree-complete network-complete printeur contested non-clos, 94 bytes"
    );
}

fn data(ethernet: &[u8]) -> Vec<u8> {
    Data { token: 7, way_back: [Element::Relative(1)].into_iter().collect(), ethernet }.encode().unwrap()
}

#[test]
fn a_notice_is_shown() {
    assert_eq!(
        printed(&[], &Undeliverable { token: 7, tag: 0xfeed, port: 3 }.encode()),
        "- > undeliverable 0000000000000007 at 0x000000000000feed port 3, 29 bytes"
    );
}

#[test]
fn a_hello_is_shown() {
    let end = HelloEnd::Xbar { tag: Some(0xfeed), port: 3 };
    let flags = HelloFlags::SRV6.with(HelloFlags::ROUTES);
    let hello = Hello { end, mac: Mac::from_position(1), mtu: 9000, flags, heard: Vec::new() };
    assert_eq!(
        printed(&[], &hello.encode()),
        "- > hello from crossbar 0x000000000000feed port 3 at 02:00:00:00:00:01 mtu 9000 srv6 routes heard \
         nobody, 36 bytes"
    );
    let end = HelloEnd::Host { mac: Mac::from_position(1) };
    let host = Hello { end, heard: vec![Mac::from_position(2)], flags: HelloFlags::NONE, ..hello };
    assert_eq!(
        printed(&[], &host.encode()),
        "- > hello from host 02:00:00:00:00:01 at 02:00:00:00:00:01 mtu 9000 heard 02:00:00:00:00:02, 38 bytes"
    );
}

#[test]
fn a_check_of_a_path_is_shown_as_what_it_carries() {
    let (way_back, macs) =
        (Route::from_iter([Element::Relative(1)]), (Mac::from_position(1), Mac::from_position(2)));
    let scout = Scout {
        id: 1,
        info: info(),
        way: RoundTrip { there: Route::new(), back: way_back.clone() },
        reason: Reason::Alive { answer_bytes: 80 },
    };
    let carried = Message::Scout(scout).encode();
    let check = Data::carry(7, &way_back, macs, &carried, 300).unwrap();
    let data = "data 8000000000000007 back 1";
    assert_eq!(
        printed(&[], &check),
        format!("- > {data} scout alive answer 80 #1 there - back 1 {FROM}, 300 bytes")
    );
    let nonsense = Data::carry(7, &way_back, macs, &[9; 3], 0).unwrap();
    assert!(printed(&[], &nonsense).contains("check [the frame is too short] 090909"));
}

#[test]
fn data_is_shown() {
    let ethernet = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], b"payload"].concat();
    assert_eq!(
        printed(&[Element::Relative(-1)], &data(&ethernet)),
        "-1 > data 0000000000000007 back 1 02:00:00:00:00:02 > 02:00:00:00:00:01 type 0x0800 length 21, \
         43 bytes"
    );
    assert_eq!(
        printed(&[], &data(b"short")),
        "- > data 0000000000000007 back 1 [no Ethernet header] 73686f7274, 27 bytes"
    );
}

#[test]
fn what_is_malformed_is_shown_as_such() {
    let good =
        Message::Reply(Reply { id: 1, to: Mac([0; 6]), info: info(), answer: Answer::Mapping }).encode();
    let mut damaged = good.clone();
    damaged[9] ^= 1;
    for (bytes, shown) in [
        (&[][..], "- > [the frame is too short] no bytes"),
        (&[0x83, 0xff, 1], "3 > [byte 0xff begins no route element] ff01"),
        (&[0x83, 0xc0], "3 > [the route ends inside an element] c0"),
        (&[0x80; 260], "[the route is longer than 252 bytes] > [the frame is too short] no bytes"),
        (&[0, 0, 0, 8, 1], "- > [frame type 0x00000008 is not known here] 0000000801"),
        (&good[..12], "- > mapper [the frame is too short] 0000700f0400002c03000000"),
        (
            &damaged,
            "- > mapper [the CRC-32 does not match] 0000700f0400002c03010000010000000000000102000000.. and 32 \
             bytes more",
        ),
    ] {
        assert_eq!(Printer::new(bytes).to_string(), shown);
    }
    let no_message = frame::build(FrameKind::Mapper, false, None, |body| body.push(9));
    assert_eq!(printed(&[], &no_message), "- > mapper [the message is malformed] 09, 13 bytes");
}

#[test]
fn a_trailer_is_shown() {
    let key = Key::new(1, [7; 32]);
    for (answers, shown) in [(0, ""), (3, " answers 0000000000000003")] {
        let seal = Seal { key: &key, sequence: 2, answers };
        let frame = frame::build(FrameKind::Mapper, false, Some(seal), |_| {});
        assert_eq!(
            printed(&[], &frame),
            format!(
                "- > mapper [the message is malformed] no bytes, key 1 sequence 0000000000000002{shown}, \
                 52 bytes"
            )
        );
    }
}

#[test]
fn a_line_is_one_line() {
    let bytes: Vec<u8> = (0..=255).collect();
    for start in 0..bytes.len() {
        let line = Printer::new(&bytes[start..]).to_string();
        assert!(!line.is_empty() && line.chars().all(|c| !c.is_control()), "{line:?}");
    }
}
