//! Paths between two ports.

use super::*;

fn between(from: u16, to: u16) -> (u64, PathRecord) {
    let record = PathRecord {
        source: Gid::of_port(PREFIX, from.into()),
        destination: Gid::of_port(PREFIX, to.into()),
        ..PathRecord::default()
    };
    (PathRecord::SOURCE | PathRecord::DESTINATION, record)
}

fn path(administration: &mut Administration, (mask, wanted): (u64, PathRecord)) -> Result<PathRecord, u16> {
    let answer =
        ask(administration, 1, &request(SaMethod::Get, SaAttribute::PathRecord, mask, &wanted.emit()));
    if answer.status == 0 { Ok(PathRecord::parse(&answer.data)) } else { Err(answer.status) }
}

#[test]
fn a_path_has_what_all_ports_on_its_way_can() {
    let mut administration = administration();
    let near = path(&mut administration, between(1, 2)).unwrap();
    assert_eq!((near.source_lid, near.destination_lid, near.partition), (1, 2, 0xFFFF));
    assert_eq!((near.mtu, near.rate), (Limit::exactly(5), Limit::exactly(16)));
    assert!(near.is_reversible);
    let far = path(&mut administration, between(1, 3)).unwrap();
    assert_eq!((far.mtu, far.rate), (Limit::exactly(4), Limit::exactly(7)), "a cable, and a slow host");
    let by_lid = PathRecord { source_lid: 1, destination_lid: 12, ..PathRecord::default() };
    let to_switch =
        path(&mut administration, (PathRecord::SOURCE_LID | PathRecord::DESTINATION_LID, by_lid)).unwrap();
    assert_eq!(to_switch.destination.guid(), SWITCHES + 1);
    assert_eq!(to_switch.mtu, Limit::exactly(4));
}

#[test]
fn a_path_that_is_bounded_is_within_the_bounds_or_there_is_none() {
    let mut administration = administration();
    let (mask, wanted) = between(1, 3);
    let mut with_mtu = |selector, code| {
        let wanted = PathRecord { mtu: Limit { selector, code }, ..wanted };
        path(&mut administration, (mask | PathRecord::MTU | PathRecord::MTU >> 1, wanted))
            .map(|path| path.mtu.code)
    };
    let none = Err(SaStatus::NoRecords.code());
    assert_eq!(with_mtu(Selector::Exactly, 3), Ok(3));
    assert_eq!(with_mtu(Selector::More, 4), none);
    assert_eq!(with_mtu(Selector::Less, 4), Ok(3));
    assert_eq!(with_mtu(Selector::Exactly, 5), none);
    let level = PathRecord { level: 1, ..wanted };
    assert_eq!(path(&mut administration, (mask | PathRecord::LEVEL, level)).map(|path| path.level), none);
    let partition = PathRecord { partition: 0x8001, ..wanted };
    let none = path(&mut administration, (mask | PathRecord::PARTITION, partition)).map(|path| path.level);
    assert_eq!(none, Err(SaStatus::NoRecords.code()));
}

#[test]
fn there_is_no_path_by_tables_that_lead_nowhere_and_none_back_makes_it_irreversible() {
    let mut routes = routes();
    routes.tables.get_mut(&(SWITCHES + 1)).unwrap()[1] = 0xFF;
    let mut administration = Administration::default();
    administration.begin(subnet_of(&inventory(), &routes));
    let there = path(&mut administration, between(1, 3)).unwrap();
    assert!(!there.is_reversible);
    let (mask, wanted) = between(1, 3);
    let both_ways = PathRecord { is_reversible: true, ..wanted };
    let none = Err(SaStatus::NoRecords.code());
    let asked = path(&mut administration, (mask | PathRecord::REVERSIBLE, both_ways)).map(|_| ());
    assert_eq!(asked, none);
    assert_eq!(path(&mut administration, between(3, 1)).map(|_| ()), none);
    let nobody = path(&mut administration, between(1, 9)).map(|_| ());
    assert_eq!(nobody, Err(SaStatus::InvalidGid.code()));
    routes.tables.get_mut(&SWITCHES).unwrap()[3] = 4;
    routes.tables.get_mut(&(SWITCHES + 1)).unwrap()[3] = 4;
    administration.begin(subnet_of(&inventory(), &routes));
    assert_eq!(path(&mut administration, between(1, 3)).map(|_| ()), none, "round and round");
}
