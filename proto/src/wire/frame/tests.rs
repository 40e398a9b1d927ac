use proptest::prelude::*;

use super::*;

fn data(seal: Option<Seal<'_>>) -> Vec<u8> {
    build(FrameKind::Data, false, seal, |body| body.extend_from_slice(b"hello"))
}

fn key() -> Key {
    Key::new(0x0102_0304, [9; 32])
}

#[test]
fn layout_is_frozen() {
    assert_eq!(
        data(None),
        [
            &[0, 0, 0, 9, PROTOCOL_VERSION, 0, 0, 5][..],
            b"hello",
            &crc32fast::hash(b"\0\0\0\x09\x04\0\0\x05hello").to_be_bytes()
        ]
        .concat()
    );
}

#[test]
fn padding_is_left_out() {
    let mut bytes = data(None);
    let length = bytes.len();
    bytes.resize(60, 0xa5);
    let frame = Frame::parse(&bytes).unwrap();
    assert_eq!((frame.body(), frame.len_bytes()), (&b"hello"[..], length));
}

#[test]
fn trailer_comes_back_and_is_covered() {
    let key = key();
    let mut bytes = data(Some(Seal { key: &key, sequence: 0x1112_1314_1516_1718, answers: 5 }));
    let frame = Frame::parse(&bytes).unwrap();
    let auth = frame.auth().unwrap();
    assert_eq!((auth.key_id, auth.sequence, auth.answers), (0x0102_0304, 0x1112_1314_1516_1718, 5));
    assert!(frame.is_signed_by(&key) && !frame.is_signed_by(&Key::new(key.id(), [8; 32])));
    assert_eq!(Frame::parse(&data(None)).unwrap().auth(), None);
    assert!(!Frame::parse(&data(None)).unwrap().is_signed_by(&key));
    let last_of_tag = bytes.len() - CRC_BYTES - 1;
    bytes[last_of_tag] ^= 1;
    assert_eq!(Frame::parse(&bytes), Err(FrameError::BadCrc));
}

/// A frame with one byte changed and its CRC-32 made right; it has no stamp area.
fn forged(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 1;
    reseal(&mut bytes);
    bytes
}

fn reseal(bytes: &mut [u8]) {
    let end = bytes.len() - CRC_BYTES;
    let crc = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_be_bytes());
}

#[test]
fn the_tag_covers_header_body_and_trailer() {
    let key = key();
    let good = data(Some(Seal { key: &key, sequence: 3, answers: 4 }));
    let end = good.len() - CRC_BYTES;
    for at in (0..end).filter(|&at| at != 6 && at != 7) {
        let bytes = forged(good.clone(), at);
        let signed = Frame::parse(&bytes).is_ok_and(|frame| frame.is_signed_by(&key));
        assert!(!signed, "byte {at}");
    }
}

#[test]
fn the_tag_does_not_cover_the_stamp() {
    let key = key();
    let seal = Seal { key: &key, sequence: 3, answers: 0 };
    let mut bytes = build(FrameKind::Mapper, true, Some(seal), |body| body.extend_from_slice(b"hello"));
    let stamp = Stamp { tag: 0xfeed, ports: 16, arrival: 3, carriers: [0x11; 32].into() };
    stamp.write(&mut bytes[HEADER_BYTES..]);
    let frame = Frame::parse(&bytes).unwrap();
    assert!(frame.is_signed_by(&key));
    assert_eq!(frame.stamp(), Ok(Some(stamp)));
}

#[test]
fn each_defect_has_its_error() {
    let good = data(None);
    for length in 0..good.len() {
        assert_eq!(Frame::parse(&good[..length]), Err(FrameError::Truncated), "{length}");
    }
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(Frame::parse(&changed(0, 0x80)), Err(FrameError::BadRoute));
    assert_eq!(Frame::parse(&changed(3, 8)), Err(FrameError::UnknownKind(8)));
    assert_eq!(Frame::parse(&changed(4, PROTOCOL_VERSION + 1)), Err(FrameError::BadCrc));
    assert_eq!(Frame::parse(&changed(9, b'E')), Err(FrameError::BadCrc));
    assert_eq!(Frame::parse(&changed(7, 200)), Err(FrameError::Truncated));
    assert_eq!(Frame::parse(&vec![0; MAX_FRAME_BYTES + 1]), Err(FrameError::Oversized));
}

/// A frame with one header byte changed and its CRC-32 made right.
fn resealed(at: usize, value: u8) -> Vec<u8> {
    let mut bytes = data(None);
    bytes[at] = value;
    reseal(&mut bytes);
    bytes
}

#[test]
fn another_version_and_unknown_flags_are_told_from_damage() {
    assert_eq!(
        Frame::parse(&resealed(field::VERSION, PROTOCOL_VERSION + 1)),
        Err(FrameError::UnknownVersion(PROTOCOL_VERSION + 1))
    );
    assert_eq!(Frame::parse(&resealed(field::FLAGS, 0x80)), Err(FrameError::Malformed));
}

#[test]
fn route_and_frame_part_at_the_first_clear_bit() {
    let frame = data(None);
    let payload = [&[0x83, 0xc0, 0x90, 0xe0][..], &frame].concat();
    let (route, rest) = split_route(&payload).unwrap();
    assert_eq!((route.to_string().as_str(), rest), ("3,@144,?", &frame[..]));
    assert_eq!(split_route(&[0xff]), Err(FrameError::BadRoute));
    assert_eq!(split_route(&[0x80; Route::MAX_BYTES + 1]), Err(FrameError::BadRoute));
    assert_eq!(split_route(&[]), Ok((Route::new(), &[][..])));
}

proptest! {
    #[test]
    fn a_flipped_bit_is_never_missed(at in 0..17usize, bit in 0..8u8) {
        let mut bytes = data(None);
        bytes[at] ^= 1 << bit;
        prop_assert!(Frame::parse(&bytes).is_err());
    }
}
