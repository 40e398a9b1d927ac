//! The bodies of the fuzz targets as property tests: random bytes, and frames that were damaged.

use mapper_proto::Mac;
use mapper_proto::map::{MapVersion, PortRef, Rank};
use mapper_proto::wire::{
    Answer, Data, Element, Hello, HelloEnd, HelloFlags, Info, Message, Probe, ProbeKind, Reason, Reply,
    RoundTrip, Route, Scout, Undeliverable,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::bodies;

/// A frame of every kind, behind a route.
fn good_frames() -> Vec<Vec<u8>> {
    let version = MapVersion { mac: Mac::from_position(9), counter: 7 };
    let info = Info { rank: Rank { level: 1, mac: Mac::from_position(3) }, version, ..Info::default() };
    let way_there = Route::from_iter([Element::Absolute(200), Element::Relative(5)]);
    let probe = |kind| Message::Probe(Probe { id: 1, kind, left: 3, info, way_there: way_there.clone() });
    let way_back = Route::from_iter([Element::Relative(-4), Element::Absolute(9)]);
    let scout = |reason| {
        Message::Scout(Scout {
            id: 2,
            info,
            way: RoundTrip { there: way_there.clone(), back: way_back.clone() },
            reason,
        })
    };
    let reply = |answer| Message::Reply(Reply { id: 3, to: Mac::from_position(4), info, answer });
    let suspects = vec![PortRef { xbar: 1, port: 2 }];
    let messages = [
        probe(ProbeKind::Loopback),
        probe(ProbeKind::Identify),
        scout(Reason::Mapping),
        scout(Reason::QueryMapVersion { seen: version, suspects }),
        scout(Reason::MapRequest { version, piece: 1, room_bytes: 30 }),
        scout(Reason::Printf { text: "text".to_owned() }),
        reply(Answer::Mapping),
        reply(Answer::MapRequest { version, piece: 1, pieces: 2, needs_bytes: 40, bytes: vec![7; 40] }),
    ];
    let way_back = Route::from_iter([Element::Relative(-3), Element::Absolute(2), Element::Relative(1)]);
    let alive = scout(Reason::Alive { answer_bytes: 90 }).encode();
    let macs = (Mac::from_position(1), Mac::from_position(2));
    let check = Data::carry(5, &way_back, macs, &alive, 200);
    let data = Data { token: 5, way_back, ethernet: &[6; 60] }.encode();
    let others =
        data.into_iter().chain(check).chain([Undeliverable { token: 5, tag: 6, port: 7 }.encode(), hello()]);
    let frames = messages.iter().map(Message::encode).chain(others);
    let route = Route::from_iter([Element::Identify, Element::Relative(2), Element::Absolute(3)]);
    frames.flat_map(|frame| [[route.as_bytes(), &frame].concat(), frame]).collect()
}

fn hello() -> Vec<u8> {
    let end = HelloEnd::Xbar { tag: Some(7), port: 3 };
    let heard = vec![Mac::from_position(2), Mac::from_position(3)];
    Hello { end, mac: Mac::from_position(1), mtu: 9000, flags: HelloFlags::SRV6, heard }.encode()
}

/// Random bytes, or a good frame with some bytes changed, cut off, or added.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let damaged =
        (select(good_frames()), vec((any::<Index>(), any::<u8>()), 0..3), any::<Index>(), 0..8usize);
    let damaged = damaged.prop_map(|(mut frame, changes, end, more)| {
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        if more == 0 {
            frame.truncate(end.index(frame.len() + 1));
        } else {
            frame.resize(frame.len() + more - 1, 0xa5);
        }
        frame
    });
    prop_oneof![vec(any::<u8>(), 0..200), damaged]
}

/// The bodies of good messages, with a byte changed.
fn message_bodies() -> impl Strategy<Value = Vec<u8>> {
    (bytes(), any::<bool>())
        .prop_map(|(frame, as_body)| if as_body { frame.into_iter().skip(8).collect() } else { frame })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn messages(bytes in message_bodies()) {
        bodies::message(&bytes);
    }

    #[test]
    fn printed_lines(bytes in bytes()) {
        bodies::printer(&bytes);
    }

    #[test]
    fn crossbars(head in any::<[u8; 4]>(), payload in bytes()) {
        bodies::crossbar(&[&head, &payload[..]].concat());
    }

    #[test]
    fn pieces(pieces in vec((1..4u8, 0..4u8, vec(any::<u8>(), 0..44)), 0..4)) {
        let piece = |(kind, count, entries): (u8, u8, Vec<u8>)| {
            [&[entries.len() as u8 + 3, kind, 0, count][..], &entries].concat()
        };
        bodies::pieces(&pieces.into_iter().flat_map(piece).collect::<Vec<u8>>());
    }

    #[test]
    fn routes(bytes in vec(prop_oneof![0x80..=0xbfu8, Just(0xc0), Just(0xe0), any::<u8>()], 0..110)) {
        bodies::route(&bytes);
    }
}
