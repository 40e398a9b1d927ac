use proptest::prelude::*;

use super::*;
use crate::Mac;
use crate::wire::{Data, Hello, HelloEnd, HelloFlags, Info, Message, Probe, ProbeKind, split_route};

fn xbar(kind: CrossbarKind) -> Crossbar {
    Crossbar { kind, first_port: 1, ports: 8, carriers: PortSet::NONE }
}

fn plain() -> Crossbar {
    xbar(CrossbarKind::Plain)
}

fn tagged() -> Crossbar {
    xbar(CrossbarKind::Tagged { tag: 0xfeed })
}

fn data(ethernet: &[u8]) -> Vec<u8> {
    Data { token: 5, way_back: [Element::Relative(-2)].into_iter().collect(), ethernet }.encode().unwrap()
}

#[test]
fn only_a_tagged_xbar_says_that_data_cannot_go_on() {
    let frame = payload(&[Element::Absolute(8)], &data(b"hello"));
    let sent = tagged().undeliverable(8, &frame).unwrap();
    let (route, notice) = split_route(&sent).unwrap();
    assert!(route.is_empty(), "the sender is one xbar away");
    let expected = Undeliverable { token: 5, tag: 0xfeed, port: 8 };
    assert_eq!(Undeliverable::decode(notice), Ok(expected));
    assert_eq!(plain().undeliverable(8, &frame), None);
    assert_eq!(
        tagged().undeliverable(8, &payload(&[Element::Absolute(8)], &identify_probe().encode())),
        None
    );
}

fn identify_probe() -> Message {
    Message::Probe(Probe {
        id: 1,
        kind: ProbeKind::Identify,
        left: 1,
        info: Info::default(),
        way_there: Route::new(),
    })
}

fn payload(route: &[Element], frame: &[u8]) -> Vec<u8> {
    [Route::from_iter(route.iter().copied()).as_bytes(), frame].concat()
}

#[test]
fn a_delta_counts_from_the_arrival_port_and_does_not_wrap() {
    for xbar in [plain(), tagged()] {
        let to = |arrival, delta| xbar.decide(arrival, &payload(&[Element::Relative(delta)], &[0]));
        assert_eq!(to(3, 2), Decision::Forward { port: 5, strip: 1 });
        assert_eq!(to(3, -2), Decision::Forward { port: 1, strip: 1 });
        assert_eq!(to(3, 0), Decision::Forward { port: 3, strip: 1 });
        assert_eq!(to(3, -3), Decision::Drop(DropReason::NoSuchPort));
        assert_eq!(to(3, -4), Decision::Drop(DropReason::NoSuchPort));
        assert_eq!(to(3, 5), Decision::Forward { port: 8, strip: 1 });
        assert_eq!(to(3, 6), Decision::Drop(DropReason::NoSuchPort));
    }
}

#[test]
fn the_highest_ports_do_not_overflow() {
    let xbar = Crossbar { first_port: 0, ports: 255, ..plain() };
    let to = |arrival, delta| xbar.decide(arrival, &payload(&[Element::Relative(delta)], &[0]));
    assert_eq!(to(254, 0), Decision::Forward { port: 254, strip: 1 });
    assert_eq!(to(254, 1), Decision::Drop(DropReason::NoSuchPort));
    assert_eq!(to(254, 31), Decision::Drop(DropReason::NoSuchPort));
    assert_eq!(to(0, -32), Decision::Drop(DropReason::NoSuchPort));
    let all = Crossbar { first_port: 1, ports: 255, ..plain() };
    assert!(all.has_port(255) && !all.has_port(0));
}

#[test]
fn only_a_tagged_xbar_knows_absolute_ports() {
    let frame = payload(&[Element::Absolute(8)], &[0]);
    assert_eq!(tagged().decide(2, &frame), Decision::Forward { port: 8, strip: 2 });
    assert_eq!(plain().decide(2, &frame), Decision::Drop(DropReason::NotUnderstood));
    for outside in [0, 9, 255] {
        let frame = payload(&[Element::Absolute(outside)], &[0]);
        assert_eq!(tagged().decide(2, &frame), Decision::Drop(DropReason::NoSuchPort));
    }
}

#[test]
fn a_plain_xbar_drops_a_question_for_its_identity() {
    let frame = payload(&[Element::Identify], &identify_probe().encode());
    assert_eq!(plain().decide(2, &frame), Decision::Drop(DropReason::NotUnderstood));
    assert_eq!(plain().stamp(2), None);
    let mut untouched = frame.clone();
    plain().write_stamp(2, 9, &mut untouched);
    assert_eq!(untouched, frame);
}

#[test]
fn what_is_no_route_is_dropped() {
    for xbar in [plain(), tagged()] {
        assert_eq!(xbar.decide(1, &[]), Decision::Drop(DropReason::Truncated));
        assert_eq!(xbar.decide(1, &[0xc0]), Decision::Drop(DropReason::Truncated));
        assert_eq!(xbar.decide(1, &[0x00, 0x80]), Decision::Drop(DropReason::NoRoute));
        assert_eq!(xbar.decide(1, &[0x7f]), Decision::Drop(DropReason::NoRoute));
        assert_eq!(xbar.decide(1, &[0xff, 0]), Decision::Drop(DropReason::NotUnderstood));
        assert_eq!(xbar.decide(1, &[0xc1, 0]), Decision::Drop(DropReason::NotUnderstood));
    }
}

#[test]
fn a_hello_is_never_sent_on() {
    let end = HelloEnd::Xbar { tag: None, port: 1 };
    let hello = Hello { end, mac: Mac::default(), mtu: 1500, flags: HelloFlags::NONE, heard: Vec::new() };
    let hello = hello.encode();
    for xbar in [plain(), tagged()] {
        assert_eq!(xbar.decide(3, &hello), Decision::Drop(DropReason::NoRoute));
        for delta in [0, 2] {
            let on_route = payload(&[Element::Relative(delta)], &hello);
            assert_eq!(xbar.decide(3, &on_route), Decision::Drop(DropReason::HelloOnRoute));
        }
    }
    let on_route = payload(&[Element::Absolute(8)], &hello);
    assert_eq!(tagged().decide(3, &on_route), Decision::Drop(DropReason::HelloOnRoute));
}

#[test]
fn nothing_behind_the_first_element_matters_to_forwarding() {
    for rest in [&[][..], &[0xff; 200], &[0xc0]] {
        let frame = payload(&[Element::Relative(1)], rest);
        assert_eq!(plain().decide(1, &frame), Decision::Forward { port: 2, strip: 1 });
    }
}

#[test]
fn a_stamped_probe_goes_on_along_its_route() {
    let mut xbar = tagged();
    xbar.set_carrier(1, true);
    xbar.set_carrier(8, true);
    xbar.set_carrier(2, true);
    xbar.set_carrier(2, false);
    let rest = [Element::Relative(-1), Element::Absolute(0xe0), Element::Relative(4)];
    let mut frame = payload(&[&[Element::Identify][..], &rest].concat(), &identify_probe().encode());
    let Decision::Identify { strip, stamp_at } = xbar.decide(6, &frame) else { panic!("not identified") };
    xbar.write_stamp(6, stamp_at, &mut frame);
    let (route, frame) = split_route(&frame[strip..]).unwrap();
    assert_eq!(route, Route::from_iter(rest));
    let (message, stamp) = Message::decode(frame).unwrap();
    assert_eq!(message, identify_probe());
    let stamp = stamp.unwrap();
    assert_eq!((stamp.tag, stamp.ports, stamp.arrival), (0xfeed, 8, 6));
    assert_eq!((0..=255).filter(|&p| stamp.has_carrier(p)).collect::<Vec<_>>(), [1, 8]);
    assert!(xbar.has_carrier(1) && !xbar.has_carrier(2));
}

#[test]
fn a_frame_turns_back_at_most_once() {
    let again = Decision::Drop(DropReason::TurnsAgain);
    let probe = identify_probe().encode();
    let (turn, ask) = (Element::Relative(0), Element::Identify);
    for xbar in [plain(), tagged()] {
        let decide = |route: &[Element]| xbar.decide(3, &payload(route, &probe));
        assert_eq!(decide(&[turn; 250]), again);
        assert_eq!(decide(&[turn, Element::Relative(1), turn]), again);
        assert_eq!(decide(&[turn, ask]), again);
        // The frame has not turned yet, and may later.
        assert_eq!(
            decide(&[Element::Relative(1), turn, Element::Relative(-1)]),
            Decision::Forward { port: 4, strip: 1 }
        );
        assert_eq!(
            decide(&[turn, Element::Relative(1), Element::Absolute(3)]),
            Decision::Forward { port: 3, strip: 1 }
        );
    }
    let decide = |route: &[Element]| tagged().decide(3, &payload(route, &probe));
    assert_eq!(decide(&[ask, ask]), again);
    assert_eq!(decide(&[ask, Element::Absolute(2), turn]), again);
    assert_eq!(decide(&[Element::Absolute(3)]), again, "delta 0 says that");
    assert!(matches!(decide(&[ask, Element::Absolute(2)]), Decision::Identify { .. }));
    // Bytes behind the route do not count.
    let frame = [&payload(&[turn], &probe)[..], &[0x80; 9]].concat();
    assert_eq!(tagged().decide(3, &frame), Decision::Forward { port: 3, strip: 1 });
}

#[test]
fn a_way_there_and_back_over_62_xbars_is_not_long() {
    let long = |route: &[Element]| Crossbar::has_long_route(&payload(route, &data(&[])));
    assert!(!long(&[]) && !long(&[Element::Absolute(3); 126]) && !long(&[Element::Relative(0); 126]));
    assert!(long(&[Element::Relative(0); 127]));
}

#[test]
fn a_frame_without_room_for_a_stamp_is_dropped() {
    let no_area = Decision::Drop(DropReason::NoStampArea);
    let ask = |route: &[Element], frame: &[u8]| tagged().decide(1, &payload(route, frame));
    let good = identify_probe().encode();
    assert_eq!(ask(&[Element::Identify], &data(&[1; 100])), no_area);
    assert_eq!(ask(&[Element::Identify], &good[..HEADER_BYTES + STAMP_BYTES - 1]), no_area);
    assert_eq!(ask(&[Element::Identify], &good[..3]), no_area);
    assert_eq!(ask(&[Element::Identify], &[]), no_area);
    assert_eq!(ask(&[Element::Identify], &[&[0xff], &good[..]].concat()), no_area);
    let too_long = [Element::Identify; Route::MAX_BYTES + 1];
    assert_eq!(ask(&too_long, &good), no_area);
    assert_ne!(ask(&too_long[1..], &good), no_area);
    let unflagged = Message::Probe(Probe {
        id: 1,
        kind: ProbeKind::Loopback,
        left: 1,
        info: Info::default(),
        way_there: Route::new(),
    });
    assert_eq!(ask(&[Element::Identify], &[&unflagged.encode()[..], &[0; 64]].concat()), no_area);
}

proptest! {
    #[test]
    fn a_decision_never_leads_outside_xbar_or_payload(
        is_tagged in any::<bool>(),
        first_port in any::<u8>(),
        ports in any::<u8>(),
        arrival in any::<u8>(),
        payload in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let kind = if is_tagged { CrossbarKind::Tagged { tag: 1 } } else { CrossbarKind::Plain };
        let xbar = Crossbar { kind, first_port, ports, carriers: PortSet::ALL };
        match xbar.decide(arrival, &payload) {
            Decision::Forward { port, strip } => {
                let nth = i32::from(port) - i32::from(first_port);
                prop_assert!((0..i32::from(ports)).contains(&nth));
                prop_assert!(strip <= payload.len());
            }
            Decision::Identify { strip, stamp_at } => {
                prop_assert!(is_tagged && strip <= payload.len());
                prop_assert!(stamp_at + STAMP_BYTES <= payload.len());
            }
            Decision::Drop(_) => {}
        }
    }
}
