//! What must hold of every decoder for any bytes: the bodies of the fuzz targets, which the
//! ordinary tests run as well. Each panics if it does not hold.
#![allow(unreachable_pub, reason = "the fuzz targets are another crate")]

use mapper_proto::map::{Assembly, MapVersion, encode_pieces};
use mapper_proto::wire::{
    Crossbar, CrossbarKind, Data, Decision, Frame, FrameKind, Hello, Message, PassedChecks, Printer, Route,
    STAMP_BYTES, Stamp, Undeliverable, split_route,
};

/// A frame is decoded or refused; what is decoded is encoded to something that means the same.
pub fn message(bytes: &[u8]) {
    if let Ok((message, _)) = Message::decode(bytes) {
        assert_eq!(Message::decode(&message.encode()), Ok((message, None)));
    }
    if let Ok(data) = Data::decode(bytes) {
        let again = data.encode();
        assert_eq!(again.as_deref().map(Data::decode), Ok(Ok(data)));
    }
    if let Ok(notice) = Undeliverable::decode(bytes) {
        assert_eq!(Undeliverable::decode(&notice.encode()), Ok(notice));
    }
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    }
    // The CRC-32 would stop almost all bytes: read them as a body, too. One message has one body.
    if let Ok(message) = Message::read_body(bytes) {
        let frame = message.encode();
        let parts = Frame::parse(&frame).map(|frame| (frame.kind(), frame.body()));
        assert_eq!(parts, Ok((FrameKind::Mapper, bytes)));
    }
    if let Ok(Some(stamp)) = Stamp::read(bytes) {
        let mut area = [0xa5; STAMP_BYTES];
        stamp.write(&mut area);
        assert_eq!(area, bytes[..STAMP_BYTES]);
    }
}

/// Any bytes are printed as one line; those that make the body of a message, also in a frame.
pub fn printer(bytes: &[u8]) {
    assert_one_line(bytes);
    if let Ok(message) = Message::read_body(bytes) {
        assert_one_line(&message.encode());
    }
}

fn assert_one_line(bytes: &[u8]) {
    let line = Printer::new(bytes).to_string();
    assert!(!line.is_empty());
    assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
}

/// A frame wanders from crossbar to crossbar until it is dropped, and gets shorter on the way. The
/// first four bytes say what the crossbar is and where the frame comes in.
pub fn crossbar(bytes: &[u8]) {
    let Some((&[kind, first_port, ports, arrival], payload)) = bytes.split_first_chunk() else { return };
    let kind = if kind % 2 == 0 { CrossbarKind::Plain } else { CrossbarKind::Tagged { tag: 0xfeed } };
    let xbar = Crossbar { kind, first_port, ports, carriers: [0x55; 32].into() };
    let (mut arrival, mut payload) = (arrival, payload.to_vec());
    let mut passed = PassedChecks::default();
    loop {
        let strip = match xbar.decide(arrival, &payload) {
            Decision::Forward { port, strip } => {
                assert!(xbar.has_port(port));
                if let Some(notice) = xbar.undeliverable(port, &payload) {
                    assert!(
                        split_route(&notice).is_ok_and(|(_, frame)| Undeliverable::decode(frame).is_ok())
                    );
                }
                passed.note(&xbar, (arrival, port), &payload);
                for (towards, notice) in passed.take_lost(&xbar, port) {
                    assert_eq!(towards, arrival);
                    assert_eq!(Some(notice), xbar.undeliverable(port, &payload));
                }
                arrival = port;
                strip
            }
            Decision::Identify { strip, stamp_at } => {
                assert_ne!(xbar.kind, CrossbarKind::Plain);
                xbar.write_stamp(arrival, stamp_at, &mut payload);
                assert_eq!(Stamp::read(&payload[stamp_at..]), Ok(xbar.stamp(arrival)));
                strip
            }
            Decision::Drop(_) => return,
        };
        assert!(strip > 0);
        payload.drain(..strip);
        assert_ne!(FrameKind::of(&payload), Ok(FrameKind::Hello), "a hello was sent on");
    }
}

/// Pieces, each behind its length, make a map that passes its checks or none. A map that was made
/// is cut and made again.
pub fn pieces(bytes: &[u8]) {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while let Some((&length, behind)) = rest.split_first() {
        let (piece, behind) = behind.split_at(behind.len().min(usize::from(length)));
        pieces.push(piece.to_vec());
        rest = behind;
    }
    let Ok(map) = assemble(pieces) else { return };
    assert_eq!(map.check(), Ok(()));
    assert_eq!(assemble(encode_pieces(&map, 64)), Ok(map));
}

fn assemble(pieces: Vec<Vec<u8>>) -> Result<mapper_proto::map::Map, mapper_proto::map::PieceError> {
    let count = u16::try_from(pieces.len()).unwrap_or(u16::MAX);
    let mut assembly = Assembly::new(MapVersion::NONE, count)?;
    for (index, piece) in (0..).zip(pieces) {
        assembly.insert(index, piece)?;
    }
    assembly.finish()
}

/// A route is read or refused; what is read is the bytes again, element by element.
pub fn route(bytes: &[u8]) {
    let Ok((route, rest)) = split_route(bytes) else { return };
    assert_eq!([route.as_bytes(), rest].concat(), bytes);
    assert!(rest.first().is_none_or(|&first| first < 0x80));
    assert_eq!(Route::from_iter(route.elements()), route);
    assert_eq!(route.elements().count(), route.hops());
    assert!(!route.to_string().is_empty());
}
