//! Any value is read as it was written, and any bytes are taken.

use proptest::prelude::*;

use super::*;
use crate::codes::RATE_CODES;
use crate::mad::MAD_BYTES;

proptest! {
    #[test]
    fn any_bytes_of_the_class_are_a_datagram_and_are_written_as_they_were_read(
        mut mad in prop::collection::vec(any::<u8>(), 0..600),
        is_of_class in any::<bool>(),
    ) {
        if is_of_class && mad.len() >= MAD_BYTES {
            mad.truncate(MAD_BYTES);
            mad[..3].copy_from_slice(&[1, CLASS, 2]);
        }
        if let Ok(read) = SaMad::parse(&mad) {
            // Two fields have no meaning, and are zeros.
            mad[6..8].fill(0);
            mad[18..20].fill(0);
            mad[46..48].fill(0);
            prop_assert_eq!(&read.emit()[..], &mad[..]);
        }
    }

    #[test]
    fn a_path_keeps_all_of_its_bytes(data in prop::collection::vec(any::<u8>(), PathRecord::BYTES)) {
        let mut expected = data.clone();
        expected[58..].fill(0);
        prop_assert_eq!(&PathRecord::parse(&data).emit()[..], &expected[..]);
    }

    #[test]
    fn what_fits_a_bound_is_within_it_and_the_best_that_is(
        offered in prop::sample::select(RATE_CODES.to_vec()),
        named in prop::sample::select(RATE_CODES.to_vec()),
        selector in prop::sample::select(vec![Selector::More, Selector::Less, Selector::Exactly, Selector::Best]),
    ) {
        let limit = Limit { selector, code: named };
        let place = |code: u8| RATE_CODES.iter().position(|&known| known == code);
        let within = RATE_CODES.iter().copied().filter(|&code| place(code) <= place(offered) && limit.allows(code, &RATE_CODES));
        prop_assert_eq!(limit.fit(offered, &RATE_CODES), within.max_by_key(|&code| place(code)));
    }
}

#[test]
fn a_record_matches_in_the_parts_that_are_named_and_in_no_others() {
    let fields = [Field::bytes(0, 0, 2), Field::bits(1, 2, 0, 4), Field::bits(2, 2, 4, 12)];
    let (wanted, record) = ([1, 2, 0x34, 0x56], [1, 2, 0x35, 0x56]);
    assert!(matches(&fields, 0b011, &wanted, &record));
    assert!(!matches(&fields, 0b100, &wanted, &record));
    assert!(matches(&fields, 0, &wanted, &[]) && !matches(&fields, 1, &wanted, &[]));
    assert!(matches(&fields, 1 << 63, &wanted, &record), "a bit that stands for nothing");
}

#[test]
fn a_path_is_laid_out_as_the_specification_says() {
    let path = PathRecord {
        destination: Gid::of_port(0xFE80 << 48, 0x0102),
        destination_lid: 5,
        source_lid: 4,
        is_reversible: true,
        partition: 0xFFFF,
        level: 3,
        mtu: Limit::exactly(4),
        rate: Limit::exactly(7),
        life_time: Limit::exactly(18),
        ..PathRecord::default()
    };
    let data = path.emit();
    assert_eq!(data[8..10], [0xFE, 0x80]);
    assert_eq!(data[40..44], [0, 5, 0, 4]);
    assert_eq!(data[49..57], [0x80, 0xFF, 0xFF, 0, 3, 0x84, 0x87, 0x92]);
    assert_eq!(path.destination.to_string(), "fe80::102");
}

/// Hosts may name rates that no cable here has.
#[test]
fn every_rate_that_there_is_bounds_a_path() {
    for &code in &RATE_CODES[1..] {
        assert_eq!(Limit { selector: Selector::Less, code }.fit(2, &RATE_CODES), Some(2), "{code}");
    }
}

#[test]
fn subscribers_are_told_what_they_asked_for() {
    let gone = SubnetNotice::of_subject(SubnetNotice::OUT_OF_SERVICE, Gid(5), 3, Gid(7));
    let all = InformInfo {
        gid: Gid::default(),
        first_lid: InformInfo::ALL,
        last_lid: 0,
        is_generic: true,
        subscribes: true,
        trap_type: InformInfo::ALL,
        trap: InformInfo::ALL,
        queue_pair: 1,
        response_time: 0,
        producer: InformInfo::ALL_PRODUCERS,
    };
    assert!(gone.is_wanted(&all));
    assert!(gone.is_wanted(&InformInfo { trap: 65, trap_type: 3, producer: 4, ..all }));
    assert!(gone.is_wanted(&InformInfo { first_lid: 2, last_lid: 3, ..all }));
    assert!(gone.is_wanted(&InformInfo { gid: Gid(7), ..all }));
    for other in [
        InformInfo { trap: 64, ..all },
        InformInfo { trap_type: 4, ..all },
        InformInfo { producer: 2, ..all },
        InformInfo { is_generic: false, ..all },
        InformInfo { first_lid: 4, last_lid: 9, ..all },
        InformInfo { gid: Gid(8), ..all },
    ] {
        assert!(!gone.is_wanted(&other), "{other:?}");
    }
    let data = gone.emit();
    assert_eq!(data[..8], [0x83, 0, 0, 4, 0, 65, 0, 3]);
    assert_eq!((data[31], data[79]), (5, 7));
}
