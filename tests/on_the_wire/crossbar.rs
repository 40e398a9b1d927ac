//! Tests of the crossbar process, with frames that the tests send over its cables.

mod bench;
mod ports;

use mapper_machine::link::batch::Batch;
use mapper_machine::link::ethernet::{HEADER_BYTES, Marking};
use mapper_machine::link::port::EthernetPort;
use mapper_proto::wire::{Data, Element, FrameKind, Route, Undeliverable};

use crate::can_make_namespaces;
use bench::{Bench, PATIENCE, identify_probe, sent};

#[test]
fn a_frame_is_sent_on_less_the_element_that_was_obeyed() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    let frame = [0, 0, 0x70, 0x0f, 1, 2, 3];
    let rest = Route::from_iter([Element::Relative(5)]);
    let arrived = bench.exchange("h1", &[Element::Relative(1), Element::Relative(5)], &frame, "h2");
    assert_eq!(arrived, [rest.as_bytes(), &frame].concat());
    let returned = bench.exchange("h2", &[Element::Relative(0)], &frame, "h2");
    assert_eq!(returned, frame);
}

#[test]
fn a_tagged_crossbar_stamps_who_it_is_and_which_ports_have_carrier() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "0xfeed"]);
    let stamp = bench.stamp_seen_from("h2");
    assert_eq!((stamp.tag, stamp.ports, stamp.arrival), (0xfeed, 8, 2));
    assert_eq!((0..=255).filter(|&port| stamp.has_carrier(port)).collect::<Vec<_>>(), [1, 2]);

    bench.namespace.ip("link set h1 down");
    bench.wait_for_log("carrier=false");
    assert!(!bench.stamp_seen_from("h2").has_carrier(1));
}

#[test]
fn what_it_does_not_understand_is_counted() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    bench.send("h1", [&[0xc0, 2][..], &[0xe0], &[0xa0], &[0x81 + 2], &[0xff], &[0x00]], &[0; 60]);
    bench.send("h1", [&[][..]], &identify_probe());
    // Frames keep their order, so when this one arrives, the crossbar has decided on those before it.
    bench.exchange("h1", &[Element::Relative(1)], &[0; 60], "h2");
    let port = &bench.status()["ports"][0];
    assert_eq!((&port["received"], &port["forwarded"]), (&8.into(), &1.into()), "{port}");
    let dropped = &port["dropped"];
    for (reason, count) in
        [("foreign", 1), ("no_route", 1), ("no_such_port", 1), ("not_understood", 3), ("no_interface", 1)]
    {
        assert_eq!(dropped[reason], count, "{dropped}");
    }
}

#[test]
fn who_sends_data_to_a_port_that_cannot_take_it_is_told() {
    if !can_make_namespaces() {
        return;
    }
    let mut bench = Bench::new(&["--tag", "0xfeed"]);
    bench.namespace.ip("link set h2 down");
    bench.wait_for_log("carrier=false");
    for (token, port) in [(7, 2), (8, 5)] {
        let way_back = [Element::Relative(-1)].into_iter().collect();
        let data = Data { token, way_back, ethernet: &[0; 60] }.encode().unwrap();
        let (_, answer) = bench.exchange_with_source("h1", &[Element::Absolute(port)], &data, "h1");
        assert_eq!(Undeliverable::decode(&answer), Ok(Undeliverable { token, tag: 0xfeed, port }));
    }
    let port = &bench.status()["ports"][0];
    assert_eq!((&port["notices"], &port["notices_suppressed"]), (&2.into(), &0.into()), "{port}");
    assert_eq!(port["dropped"]["no_carrier"], 1, "{port}");
    assert_eq!(port["dropped"]["no_interface"], 1, "{port}");
}

#[test]
fn a_frame_too_long_for_an_interface_is_counted_and_those_beside_it_get_through() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    bench.namespace.ip("link set p2 mtu 500");
    bench.send("h1", [&[0x81][..]], &[0; 1000]);
    bench.exchange("h1", &[Element::Relative(1)], &[0; 60], "h2");
    let status = bench.status();
    assert_eq!(status["ports"][0]["dropped"]["too_long"], 1, "{status}");
    assert_eq!((sent(&status["ports"][1]), &status["ports"][1]["unsent"]), (1, &1.into()));
}

#[test]
fn many_frames_stay_in_order() {
    const FRAMES: u32 = 5000;
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--kind", "plain"]);
    let numbers = bench.namespace.enter(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sender = EthernetPort::open("h1", Marking::default()).unwrap();
            let receiver = EthernetPort::open("h2", Marking::default()).unwrap();
            let (mut batch, mut numbers) = (Batch::new(), Vec::new());
            // Only 50 frames are under way at once, which every queue has room for.
            for first in (0..FRAMES).step_by(50) {
                (first..first + 50).for_each(|number| sender.queue(&[0x81], &number.to_be_bytes()));
                sender.flush();
                while numbers.len() < first as usize + 50 {
                    tokio::time::timeout(PATIENCE, receiver.recv_batch(&mut batch)).await.unwrap();
                    let number = |frame: &[u8]| frame[HEADER_BYTES..].first_chunk().copied().unwrap();
                    let is_hello =
                        |frame: &&[u8]| FrameKind::of(&frame[HEADER_BYTES..]) == Ok(FrameKind::Hello);
                    let frames = batch.frames().filter(|frame| !is_hello(frame));
                    numbers.extend(frames.map(|frame| u32::from_be_bytes(number(frame))));
                }
            }
            numbers
        })
    });
    assert_eq!(numbers, (0..FRAMES).collect::<Vec<_>>());
    let status = bench.status();
    assert_eq!(
        (&status["ports"][0]["forwarded"], sent(&status["ports"][1])),
        (&FRAMES.into(), FRAMES.into())
    );
}

#[test]
fn the_status_is_a_table_for_a_person() {
    if !can_make_namespaces() {
        return;
    }
    let bench = Bench::new(&["--tag", "0xfeed", "--name", "core"]);
    let text = bench.status_output(&[]);
    assert!(text.starts_with("crossbar core: tagged 000000000000feed, ports 1 to 8,"), "{text}");
    assert!(text.lines().any(|line| line.split_whitespace().take(3).eq(["2", "p2", "yes"])), "{text}");
}
