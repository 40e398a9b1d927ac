//! Tests of the switch with internal ports. The model that its batches are compared with decides on frames
//! one by one.

use mapper_proto::Mac;
use mapper_proto::wire::{Data, Element, Route, Undeliverable};
use proptest::prelude::*;

use super::*;
use mapper_machine::link::ethernet::Marking;
use mapper_machine::link::internal::{InternalPort, pair};
use mapper_proto::PortSet;

const HEADER: [u8; HEADER_BYTES] = [7; HEADER_BYTES];

/// A crossbar of 5 ports, of which 1 to 3 are internal ports, and the far ends of these.
fn switch(kind: CrossbarKind) -> (Switch, Vec<InternalPort>) {
    let crossbar = Crossbar { kind, first_port: 1, ports: 5, carriers: PortSet::ALL };
    let pairs =
        (1..=3).map(|number| (number, pair("port", Mac::from_position(number.into()), Marking::default())));
    let (near, far): (Vec<_>, Vec<_>) =
        pairs.map(|(number, (near, far))| ((number, near.into()), far)).unzip();
    (Switch::new("test", crossbar, near), far)
}

fn tagged() -> CrossbarKind {
    CrossbarKind::Tagged { tag: 0xfeed }
}

/// Sends these payloads into port 1 as one batch, and returns the frames that come out of each port.
fn pass(switch: &Switch, far: &[InternalPort], payloads: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
    for payload in payloads {
        far[0].forward_batch(&[[IoSlice::new(&HEADER), IoSlice::new(payload)]], |_, why| panic!("{why:?}"));
    }
    let mut batch = Batch::new();
    let from = switch.port(1).unwrap();
    while from.link.try_recv_batch(&mut batch) {
        switch.forward(1, &from, &mut batch);
    }
    let drain = |end: &InternalPort| {
        let mut buffer = vec![0; 20_000];
        std::iter::from_fn(|| end.try_recv(&mut buffer).map(|bytes| buffer[..bytes].to_vec())).collect()
    };
    far.iter().map(drain).collect()
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    let element = prop_oneof![
        (-2..=4i8).prop_map(|delta| Route::from_iter([Element::Relative(delta)]).as_bytes().to_vec()),
        (0..=6u8).prop_map(|port| Route::from_iter([Element::Absolute(port)]).as_bytes().to_vec()),
        Just(Route::from_iter([Element::Identify]).as_bytes().to_vec()),
        Just(vec![0xff]),
        Just(vec![]),
    ];
    (element, proptest::collection::vec(any::<u8>(), 0..8))
        .prop_map(|(element, rest)| [element, rest].concat())
}

proptest! {
    #[test]
    fn batches_do_what_the_crossbar_decides_frame_by_frame(
        payloads in proptest::collection::vec(payload(), 0..200),
        plain in any::<bool>(),
    ) {
        let kind = if plain { CrossbarKind::Plain } else { tagged() };
        let (switch, far) = switch(kind);
        let crossbar = switch.crossbar.get();
        let mut expected = vec![Vec::new(); 3];
        for payload in &payloads {
            if let Decision::Forward { port: port @ 1..=3, strip } = crossbar.decide(1, payload) {
                expected[usize::from(port) - 1].push([&HEADER[..], &payload[strip..]].concat());
            }
        }
        let forwarded: usize = expected.iter().map(Vec::len).sum();
        prop_assert_eq!(pass(&switch, &far, &payloads), expected);
        let port = &switch.status().ports[0];
        prop_assert_eq!((port.received, port.forwarded), (payloads.len() as u64, forwarded as u64));
        prop_assert_eq!(port.forwarded + port.dropped.total(), port.received);
    }
}

#[test]
fn the_sender_of_data_is_told_once_a_frame_and_bounded() {
    let (switch, mut far) = switch(tagged());
    drop(far.remove(1));
    let way_back = [Element::Relative(-1)].into_iter().collect();
    let data = Data { token: 9, way_back, ethernet: &[0; 60] }.encode().unwrap();
    let to = |port| [Route::from_iter([Element::Absolute(port)]).as_bytes(), &data].concat();
    // Port 2 has lost its other end, port 4 never had a link, and there is no port 6.
    let out = pass(&switch, &far, &[to(2), to(4), to(6)]);
    let notices: Vec<_> =
        out[0].iter().map(|frame| Undeliverable::decode(&frame[HEADER_BYTES..]).unwrap()).collect();
    let notice = |port| Undeliverable { token: 9, tag: 0xfeed, port };
    // The crossbar learns that port 2 is dead only when it sends.
    assert_eq!(notices, [notice(4), notice(2)]);
    let dropped = switch.status().ports[0].dropped;
    let lost = [XbarDrop::NoCarrier, XbarDrop::NoInterface, XbarDrop::NoSuchPort].map(|why| dropped[why]);
    assert_eq!(lost, [1, 1, 1]);

    let many = vec![to(4); 900];
    let told = pass(&switch, &far, &many)[0].len() as u64;
    let port = &switch.status().ports[0];
    assert_eq!((port.notices, port.notices + port.notices_suppressed), (told + 2, 902));
}

#[test]
fn who_checked_a_path_by_a_port_is_told_as_soon_as_it_loses_carrier() {
    let (switch, far) = switch(tagged());
    let token = 1 << 63 | 9;
    let way_back = [Element::Relative(-1)].into_iter().collect();
    let check = Data { token, way_back, ethernet: &[0; 60] }.encode().unwrap();
    let to = |port| [Route::from_iter([Element::Absolute(port)]).as_bytes(), &check].concat();
    let out = pass(&switch, &far, &[to(2)]);
    assert_eq!((out[0].len(), out[1].len()), (0, 1));
    switch.remove(2);
    let told = pass(&switch, &far, &[]);
    let notices: Vec<_> =
        told[0].iter().map(|frame| Undeliverable::decode(&frame[HEADER_BYTES..]).unwrap()).collect();
    assert_eq!(notices, [Undeliverable { token, tag: 0xfeed, port: 2 }]);
    assert_eq!(switch.status().ports[0].notices, 1);
    switch.remove(3);
    assert!(pass(&switch, &far, &[])[0].is_empty(), "nothing was sent there");
}

#[test]
fn frames_that_go_to_and_fro_are_dropped_and_very_long_routes_are_bounded() {
    let (switch, far) = switch(tagged());
    let route = |elements: &[Element]| Route::from_iter(elements.iter().copied()).as_bytes().to_vec();
    let out =
        pass(&switch, &far, &[route(&[Element::Relative(0); 250]), route(&[Element::Absolute(1); 126])]);
    assert!(out.iter().all(Vec::is_empty));
    assert_eq!(switch.status().ports[0].dropped[XbarDrop::TurnsAgain], 2);

    // Routes with no more elements than the longest way needs always pass; longer ones pass only until the
    // bucket is empty.
    let round =
        |hops: usize| [1, -1].map(Element::Relative).into_iter().cycle().take(hops).collect::<Vec<_>>();
    let many = |hops| vec![route(&round(hops)); 900];
    assert_eq!(pass(&switch, &far, &many(Crossbar::MOST_ELEMENTS))[1].len(), 900);
    let passed: usize = (0..10).map(|_| pass(&switch, &far, &many(250))[1].len()).sum();
    let passed = passed as u64;
    let port = &switch.status().ports[0];
    assert!(
        port.dropped[XbarDrop::LongRoutes] > 0 && passed >= u64::from(LONG_ROUTE_BURST),
        "{passed} passed"
    );
    assert_eq!(
        (passed + port.dropped[XbarDrop::LongRoutes], port.dropped.total()),
        (9000, port.dropped[XbarDrop::LongRoutes] + 2)
    );
}

#[test]
fn the_ports_with_carrier_are_told_to_who_follows_them() {
    let (switch, _far) = switch(CrossbarKind::Plain);
    assert_eq!(*switch.carriers().borrow(), PortSet::from_iter([1, 2, 3]));
}

#[tokio::test]
async fn a_port_that_comes_while_it_runs_forwards_and_one_that_goes_does_not() {
    let (switch, far) = switch(tagged());
    let switch = Rc::new(switch);
    let mut carriers = switch.carriers();
    let (near, late) = pair("late", Mac::from_position(9), Marking::default());
    let route = Route::from_iter([Element::Absolute(7)]);
    let inside = async {
        drop(tokio::task::spawn_local(Rc::clone(&switch).run()));
        tokio::task::yield_now().await;
        switch.add(7, near.into());
        assert_eq!(switch.crossbar.get().ports, 7, "it has grown");
        assert!(carriers.has_changed().unwrap() && switch.crossbar.get().has_carrier(7));
        carriers.mark_unchanged();
        let mut buffer = vec![0; 20_000];
        far[0].send(route.as_bytes(), b"there");
        let bytes = late.recv(&mut buffer).await;
        assert_eq!(&buffer[HEADER_BYTES..bytes], b"there");
        late.send(Route::from_iter([Element::Absolute(1)]).as_bytes(), b"back");
        let bytes = far[0].recv(&mut buffer).await;
        assert_eq!(&buffer[HEADER_BYTES..bytes], b"back");

        switch.remove(7);
        assert!(carriers.has_changed().unwrap() && !switch.crossbar.get().has_carrier(7));
        far[0].send(route.as_bytes(), b"lost");
        far[0].send(Route::from_iter([Element::Absolute(2)]).as_bytes(), b"not lost");
        far[1].recv(&mut buffer).await;
        assert_eq!(switch.status().ports[0].dropped[XbarDrop::NoInterface], 1);
        assert_eq!(switch.status().ports.len(), 3);
    };
    tokio::task::LocalSet::new().run_until(inside).await;
}
