//! What must be true of cutting and joining, alone and together.

use proptest::prelude::*;

use super::checksum::Sum;
use super::*;

/// A frame with a TCP segment. If `partial`, its checksum is left to be done, as the kernel leaves it.
fn tcp_frame(ipv6: bool, options: usize, sequence: u32, flags: u8, payload: &[u8], partial: bool) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let tcp_bytes = TCP_BYTES + options + payload.len();
    if ipv6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 7]);
        frame.extend((tcp_bytes as u16).to_be_bytes());
        frame.extend([PROTOCOL_TCP, 64]);
        frame.extend([0xfd; 31]);
        frame.push(9);
    } else {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend(((IPV4_BYTES + tcp_bytes) as u16).to_be_bytes());
        frame.extend([0, 42, 0x40, 0, 64, PROTOCOL_TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let checksum = Sum::of(&frame[ETHERNET_BYTES..]).checksum();
        put_u16(&mut frame, ETHERNET_BYTES + 10, checksum);
    }
    let tcp_at = frame.len();
    frame.extend([0x14, 0x51, 0, 80]);
    frame.extend(sequence.to_be_bytes());
    frame.extend([1, 2, 3, 4, ((TCP_BYTES + options) / 4 * 16) as u8, flags, 0, 99, 0, 0, 0, 0]);
    frame.extend(vec![1; options]);
    frame.extend(payload);
    let addresses = if ipv6 { ETHERNET_BYTES + 8..tcp_at } else { ETHERNET_BYTES + 12..tcp_at };
    let pseudo = Sum::of(&frame[addresses]).add(6).add(tcp_bytes as u32);
    let checksum = match partial {
        true => pseudo.folded(),
        false => pseudo.plus(Sum::of(&frame[tcp_at..])).checksum(),
    };
    put_u16(&mut frame, tcp_at + tcp::CHECKSUM, checksum);
    frame
}

fn cut(handed_over: &[u8]) -> Vec<Vec<u8>> {
    let mut segments = Segments::default();
    segments.room()[..handed_over.len()].copy_from_slice(handed_over);
    segments.begin(handed_over.len());
    let mut out = vec![0; 70_000];
    std::iter::from_fn(|| segments.next_into(&mut out).map(|length| out[..length].to_vec())).collect()
}

/// What a coalescer hands over for these frames.
fn join(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut coalescer = Coalescer::default();
    let mut all = Vec::new();
    for frame in frames {
        coalescer.push(frame, |header, frame| all.push([header, frame].concat()));
    }
    coalescer.flush(|header, frame| all.push([header, frame].concat()));
    all
}

fn long(ipv6: bool, segment_bytes: usize, frame: &[u8]) -> Vec<u8> {
    let tcp_at = ETHERNET_BYTES + if ipv6 { IPV6_BYTES } else { IPV4_BYTES };
    let header = OffloadHeader {
        checksum: Some((tcp_at, tcp::CHECKSUM)),
        segment_bytes: Some(segment_bytes),
        ipv6,
        header_bytes: tcp_at + TCP_BYTES,
    };
    [&header.write()[..], frame].concat()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n * n % 251) as u8).collect()
}

#[test]
fn flags_of_the_end_come_with_the_last_segment_and_of_the_start_with_the_first() {
    let flags = tcp::ACK | tcp::PSH | tcp::FIN | tcp::CWR;
    let segments = cut(&long(false, 100, &tcp_frame(false, 0, 7, flags, &bytes(250), true)));
    let flags: Vec<_> = segments.iter().map(|frame| frame[34 + tcp::FLAGS]).collect();
    assert_eq!(flags, [tcp::ACK | tcp::CWR, tcp::ACK, tcp::ACK | tcp::PSH | tcp::FIN]);
    let identifications: Vec<_> = segments.iter().map(|frame| frame[19]).collect();
    assert_eq!(identifications, [42, 43, 44]);
}

#[test]
fn a_checksum_left_to_be_done_is_done() {
    let whole = tcp_frame(false, 12, 7, tcp::ACK, &bytes(99), false);
    let partial = tcp_frame(false, 12, 7, tcp::ACK, &bytes(99), true);
    let told = OffloadHeader { checksum: Some((34, tcp::CHECKSUM)), ..OffloadHeader::default() };
    assert_eq!(cut(&[&told.write()[..], &partial].concat()), std::slice::from_ref(&whole));
    assert_eq!(cut(&[&OffloadHeader::default().write()[..], &whole].concat()), [whole]);
}

#[test]
fn what_must_not_be_joined_is_left_alone_and_in_order() {
    let plain = |sequence, payload: &[u8]| tcp_frame(false, 0, sequence, tcp::ACK, payload, false);
    let first = plain(100, &bytes(50));
    let mut damaged = plain(150, &bytes(50));
    *damaged.last_mut().unwrap() ^= 1;
    let mut other_ttl = plain(150, &bytes(50));
    other_ttl[22] -= 1;
    other_ttl[24] += 1;
    let fin = tcp_frame(false, 0, 150, tcp::ACK | tcp::FIN, &bytes(50), false);
    let longer = plain(150, &bytes(51));
    let gap = plain(151, &bytes(50));
    let options = tcp_frame(false, 4, 150, tcp::ACK, &bytes(50), false);
    let bare = plain(150, &[]);
    for next in [damaged, other_ttl, fin, longer, gap, options, bare] {
        let all = join(&[first.clone(), next.clone()]);
        let alone = |frame: &[u8]| [&OffloadHeader::default().write()[..], frame].concat();
        assert_eq!(all, [alone(&first), alone(&next)]);
    }
}

#[test]
fn flows_are_joined_each_for_itself() {
    let flow = |port: u8, sequence: u32| {
        let mut frame = tcp_frame(false, 0, sequence, tcp::ACK, &[7; 50], false);
        let before = u16_at(&frame, 34 + tcp::CHECKSUM).unwrap();
        frame[37] += port;
        put_u16(&mut frame, 34 + tcp::CHECKSUM, before - u16::from(port));
        frame
    };
    let frames: Vec<_> = (0..20).map(|n| flow(n as u8 % 2, n / 2 * 50)).collect();
    let joined = join(&frames);
    assert_eq!(joined.len(), 2);
    let cut: Vec<_> = joined.iter().flat_map(|frame| cut(frame)).collect();
    assert_eq!(cut.len(), 20);
    let many: Vec<_> = (0..20).map(|n| flow(n, 0)).collect();
    assert_eq!(join(&many).len(), 20, "more flows than are held at a time");
}

proptest! {
    #[test]
    fn segments_are_what_tcp_would_have_sent_and_joined_they_are_the_whole_again(
        ipv6: bool,
        options in prop_oneof![Just(0usize), Just(12)],
        sequence: u32,
        segment_bytes in 1..1460usize,
        payload_bytes in 1..20_000usize,
    ) {
        let payload = bytes(payload_bytes);
        let whole = long(ipv6, segment_bytes, &tcp_frame(ipv6, options, sequence, tcp::ACK, &payload, true));
        let segments = cut(&whole);
        prop_assert_eq!(segments.len(), payload_bytes.div_ceil(segment_bytes));
        for (n, (segment, part)) in segments.iter().zip(payload.chunks(segment_bytes)).enumerate() {
            let at = sequence.wrapping_add((n * segment_bytes) as u32);
            let mut expected = tcp_frame(ipv6, options, at, tcp::ACK, part, false);
            if !ipv6 {
                put_u16(&mut expected, 18, 42 + n as u16);
                put_u16(&mut expected, 24, 0);
                let checksum = Sum::of(&expected[14..34]).checksum();
                put_u16(&mut expected, 24, checksum);
            }
            prop_assert_eq!(segment, &expected);
        }
        let joined = join(&segments);
        prop_assert_eq!(joined.len(), 1);
        if segments.len() > 1 {
            prop_assert_eq!(&joined[0][HEADER_BYTES..], &whole[HEADER_BYTES..]);
        }
        prop_assert_eq!(cut(&joined[0]), segments);
    }

    #[test]
    fn any_bytes_are_no_trouble(
        header in any::<[u8; HEADER_BYTES]>(),
        gso in prop_oneof![Just(0u8), Just(1), Just(4)],
        start in 0..80u8,
        change in proptest::collection::vec((0..120usize, any::<u8>()), 0..5),
        length in 0..120usize,
    ) {
        let mut frame = tcp_frame(gso == 4, 0, 1, tcp::ACK, &bytes(66), true);
        change.into_iter().for_each(|(at, value)| if let Some(byte) = frame.get_mut(at) { *byte = value });
        frame.truncate(length);
        let mut header = header;
        (header[0], header[1]) = (1, gso);
        header[6..8].copy_from_slice(&u16::from(start).to_ne_bytes());
        let total: usize = cut(&[&header[..], &frame].concat()).len();
        prop_assert!(total <= 120);
        join(&[frame.clone(), frame]);
    }
}
