use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Mac;
use crate::map::random::{Draw, draws};
use crate::map::{Rules, host_type};

fn assemble(version: MapVersion, pieces: Vec<Vec<u8>>) -> Result<Map, PieceError> {
    let mut assembly = Assembly::new(version, pieces.len() as u16)?;
    // Pieces may come in any order, so here the last comes first.
    for (index, piece) in (0..).zip(pieces).collect::<Vec<_>>().into_iter().rev() {
        assembly.insert(index, piece)?;
    }
    assembly.finish()
}

fn port(xbar: u32, port: u8) -> PortRef {
    PortRef { xbar, port }
}

fn sample() -> Map {
    let host = |position, at| Host { mac: Mac::from_position(position), level: 1, host_type: 4, at };
    Map {
        version: MapVersion { mac: Mac::from_position(9), counter: 7 },
        hosts: vec![
            host(9, Some(port(0, 1))),
            host(5, Some(port(1, 3))),
            Host { host_type: host_type::PHANTOM, ..host(1, None) },
        ],
        xbars: vec![
            Xbar { ports: 16, tag: Some(0x0102_0304_0506_0708), ports_known: true },
            Xbar { ports: 8, tag: None, ports_known: false },
        ],
        cables: vec![Cable::new(port(0, 2), port(1, 2)), Cable::new(port(0, 3), port(0, 4))],
        contested: vec![Contested { mac: Mac::from_position(7), at: port(1, 5) }],
        ..Map::default()
    }
}

#[test]
fn pieces_have_their_golden_bytes() {
    let hex: Vec<String> = encode_pieces(&sample(), 1300)
        .iter()
        .map(|piece| piece.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    let golden = [
        "01 0003 020000000009 01 04 0000 01 020000000005 01 04 0001 03 020000000001 01 00 ffff 00",
        "02 0002 10 03 0102030405060708 08 00",
        "03 0001 0000 02 02 0001 02 03 0000 04",
        "04 0001 020000000007 0001 05",
    ];
    assert_eq!(hex, golden.map(|piece| piece.replace(' ', "")));
}

/// The bytes that these digits stand for; blanks for nothing.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|digit| *digit != ' ').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn frame_sizes_travel_with_the_map_and_take_no_piece_if_no_host_has_users() {
    let less = vec![
        (Mac::from_position(5), LinkMtu { bytes: 1500, ports: PortSet::from_iter([2, 3]) }),
        (Mac::from_position(9), LinkMtu { bytes: 4000, ports: PortSet::NONE }),
    ];
    let map = Map { frame_sizes: FrameSizes { longest: 9000, less }, ..sample() };
    let pieces = encode_pieces(&map, 1300);
    let golden = "07 0003 000000000000 2328 00000000 020000000005 05dc 00000006 020000000009 0fa0 00000000";
    assert_eq!(pieces[4..], [bytes(golden)]);
    assert_eq!(decode_pieces(map.version, &pieces), Ok(map.clone()));
    assert_eq!(decode_pieces(map.version, &encode_pieces(&map, 32)), Ok(map), "over several pieces");
    let alike = Map { frame_sizes: FrameSizes { longest: 9000, less: vec![] }, ..sample() };
    let pieces = encode_pieces(&alike, 1300);
    assert_eq!(pieces[4..], [bytes("07 0001 000000000000 2328 00000000")]);
    assert_eq!(decode_pieces(alike.version, &pieces), Ok(alike));
    for wrong in [
        // A host before the greatest MTU, and a host that is not in the map.
        "07 0001 020000000005 05dc 00000000",
        "07 0002 000000000000 2328 00000000 020000000006 05dc 00000000",
        // A host with the greatest MTU, one without users' frames, two greatest MTUs, hosts out of order, a
        // host twice.
        "07 0002 000000000000 05dc 00000000 020000000005 05dc 00000000",
        "07 0002 000000000000 2328 00000000 020000000005 0000 00000000",
        "07 0003 000000000000 2328 00000000 000000000000 2328 00000000 020000000005 05dc 00000000",
        "07 0003 000000000000 2328 00000000 020000000009 05dc 00000000 020000000005 05dc 00000000",
        "07 0003 000000000000 2328 00000000 020000000005 05dc 00000000 020000000005 05dc 00000000",
    ] {
        let pieces = [encode_pieces(&sample(), 1300), vec![bytes(wrong)]].concat();
        assert!(decode_pieces(sample().version, &pieces).is_err(), "{wrong}");
    }
}

#[test]
fn lossy_cables_travel_with_the_map() {
    let lossy = vec![Cable::new(port(0, 3), port(0, 4))];
    let map = Map { lossy, ..sample() };
    let pieces = encode_pieces(&map, 1300);
    assert_eq!(pieces[4..], [bytes("08 0001 0000 01 03 0000 04")]);
    assert_eq!(decode_pieces(map.version, &pieces), Ok(map));
    // A cable that is not in the map, and one twice.
    for wrong in ["08 0001 0000 01 02 0000 04", "08 0001 0000 02 03 0000 04 03 0000 04"] {
        let pieces = [encode_pieces(&sample(), 1300), vec![bytes(wrong)]].concat();
        assert!(decode_pieces(sample().version, &pieces).is_err(), "{wrong}");
    }
}

#[test]
fn rules_travel_with_the_map_and_take_no_piece_if_there_are_none() {
    for (non_clos, differ, golden) in [
        (false, vec![], None),
        (false, vec![Mac::from_position(5)], Some("05 0001 020000000005")),
        (true, vec![], Some("06 0001 020000000009")),
        (true, vec![Mac::from_position(5)], Some("06 0002 020000000009 020000000005")),
    ] {
        let map = Map { rules: Rules { non_clos, differ }, ..sample() };
        let pieces = encode_pieces(&map, 1300);
        let last = pieces.get(4).map(|piece| piece.iter().map(|byte| format!("{byte:02x}")).collect());
        assert_eq!(last, golden.map(|golden| golden.replace(' ', "")));
        assert_eq!(decode_pieces(map.version, &pieces), Ok(map));
    }
    // Rules of a host that is not in the map, of the global mapper itself, and of both kinds together.
    for wrong in ["05 0001 020000000006", "05 0001 020000000009", "06 0001 020000000005"] {
        let mut pieces = encode_pieces(&sample(), 1300);
        pieces.push(bytes(wrong));
        assert!(decode_pieces(sample().version, &pieces).is_err(), "{wrong}");
    }
}

#[test]
fn a_piece_holds_over_a_hundred_hosts() {
    let map = Draw { seed: 1, hosts: 0, xbars: 0, cables: 0, phantoms: 700 }.map();
    assert_eq!(encode_pieces(&map, 1300).len(), 6);
}

#[test]
fn a_map_without_hosts_has_a_piece() {
    let empty = Map { version: sample().version, ..Map::default() };
    let pieces = encode_pieces(&empty, 1300);
    assert_eq!(pieces, [[1, 0, 0]]);
    assert_eq!(assemble(empty.version, pieces), Ok(empty));
}

#[test]
fn what_is_missing_is_told_until_nothing_is() {
    let map = sample();
    let pieces = encode_pieces(&map, 32);
    assert_eq!(pieces.len(), 5);
    let mut assembly = Assembly::new(map.version, 5).unwrap();
    assert_eq!(assembly.missing().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(assembly.insert(2, pieces[2].clone()), Ok(true));
    assert_eq!(assembly.insert(2, pieces[1].clone()), Ok(false), "the first stays");
    assert_eq!(assembly.missing().collect::<Vec<_>>(), [0, 1, 3, 4]);
    assert_eq!(assembly.finish(), Err(PieceError::Missing(0)));
    for index in [3, 0, 4, 1] {
        assert!(!assembly.is_complete());
        assembly.insert(index, pieces[usize::from(index)].clone()).unwrap();
    }
    assert!(assembly.is_complete());
    assert_eq!((assembly.version(), assembly.pieces()), (map.version, 5));
    assert_eq!(assembly.finish(), Ok(map));
}

#[test]
fn what_cannot_be_taken_in_is_refused() {
    let version = sample().version;
    assert_eq!(Assembly::new(version, 0), Err(PieceError::BadCount(0)));
    assert_eq!(Assembly::new(version, 4097), Err(PieceError::BadCount(4097)));
    assert_eq!(decode_pieces(version, &[]), Err(PieceError::BadCount(0)));
    let mut assembly = Assembly::new(version, 4096).unwrap();
    assert_eq!(assembly.insert(4096, vec![1]), Err(PieceError::NoSuchPiece(4096)));
    assert_eq!(assembly.insert(0, vec![]), Err(PieceError::BadLength { piece: 0, bytes: 0 }));
    let long = Answer::MAX_PIECE_BYTES + 1;
    assert_eq!(assembly.insert(0, vec![0; long]), Err(PieceError::BadLength { piece: 0, bytes: long }));
}

#[test]
fn malformed_pieces_are_named() {
    let map = sample();
    let good = encode_pieces(&map, 1300);
    let changed = |piece: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut pieces = good.clone();
        change(&mut pieces[piece]);
        assemble(map.version, pieces)
    };
    for piece in 0..4_u16 {
        let malformed = Err(PieceError::Malformed(piece));
        let at = usize::from(piece);
        assert_eq!(changed(at, &|bytes| bytes.push(0)), malformed);
        assert_eq!(changed(at, &|bytes| bytes.truncate(bytes.len() - 1)), malformed);
        assert_eq!(changed(at, &|bytes| bytes[0] = 7), malformed);
        assert_eq!(changed(at, &|bytes| bytes[2] += 1), malformed);
    }
    assert_eq!(
        changed(0, &|bytes| *bytes.last_mut().unwrap() = 1),
        Err(PieceError::Malformed(0)),
        "port of none"
    );
    assert_eq!(changed(1, &|bytes| bytes[4] = 0x07), Err(PieceError::Malformed(1)), "unknown flag");
    assert_eq!(changed(1, &|bytes| *bytes = vec![2, 0, 0]), Err(PieceError::Malformed(1)), "no entries");
    assert_eq!(
        changed(2, &|bytes| *bytes = vec![3, 0, 1, 0, 0, 0]),
        Err(PieceError::Malformed(2)),
        "no cables"
    );
    let reordered = vec![good[0].clone(), good[2].clone(), good[1].clone()];
    assert_eq!(assemble(map.version, reordered), Err(PieceError::Malformed(2)));
    let headless = vec![good[1].clone(), good[2].clone()];
    assert_eq!(assemble(map.version, headless), Err(PieceError::Malformed(0)));
    let late_hosts = vec![vec![1, 0, 0], good[0].clone()];
    assert_eq!(assemble(map.version, late_hosts), Err(PieceError::Malformed(1)));
}

#[test]
fn pieces_that_make_no_sense_together_are_refused() {
    let map = sample();
    let twice = encode_pieces(&map, 1300)[0].clone();
    let defect = assemble(map.version, vec![twice.clone(), twice]);
    assert_eq!(defect, Err(PieceError::Defect(MapDefect::HostsUnsorted(Mac::from_position(9)))));
    let only_hosts = assemble(map.version, encode_pieces(&map, 1300)[..1].to_vec());
    assert_eq!(only_hosts, Err(PieceError::Defect(MapDefect::NoSuchXbar(port(0, 1)))));
}

#[test]
fn an_xbar_with_all_ports_cabled_to_itself_is_cut_into_runs() {
    let cables = (0..=254).map(|nth| Cable::new(port(0, nth), port(0, nth))).collect();
    let map =
        Map { xbars: vec![Xbar { ports: 255, tag: None, ports_known: true }], cables, ..Map::default() };
    for piece_bytes in [0, 32, 100, 1300, usize::MAX] {
        assert_eq!(assemble(map.version, encode_pieces(&map, piece_bytes)), Ok(map.clone()), "{piece_bytes}");
    }
}

proptest! {
    #[test]
    fn maps_come_back(draw in draws(), piece_bytes in 32..400usize) {
        let map = draw.map();
        let pieces = encode_pieces(&map, piece_bytes);
        prop_assert!(pieces.iter().all(|piece| piece.len() <= piece_bytes));
        prop_assert_eq!(decode_pieces(map.version, &pieces), Ok(map.clone()));
        prop_assert_eq!(assemble(map.version, pieces), Ok(map));
    }

    #[test]
    fn any_bytes_make_a_map_that_holds_or_an_error(pieces in vec(vec(any::<u8>(), 1..60), 1..5), kinds in any::<[u8; 5]>()) {
        let mut pieces = pieces;
        for (piece, kind) in pieces.iter_mut().zip(kinds) {
            piece[0] = kind % 4;
            if let Some(count) = piece.get_mut(1..3) {
                count.copy_from_slice(&[0, kind / 4 % 8]);
            }
        }
        if let Ok(map) = assemble(MapVersion::NONE, pieces) {
            prop_assert_eq!(map.check(), Ok(()));
        }
    }
}
