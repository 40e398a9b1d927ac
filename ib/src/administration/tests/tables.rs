//! Records of tables, subscriptions and managers, and paths between several ports.

use super::*;
use crate::mad::sa::MultiPathRecord;
use crate::mad::{Attribute, Data};

/// The component by which a record of a table is asked for by its LID. Those of the two bytes behind it
/// follow.
const BY_LID: u64 = 1;

/// Asks for a record by the first bytes of its place, with the managers' key.
fn with_managers_key(attribute: SaAttribute, mask: u64, place: &[u8]) -> SaMad {
    SaMad { key: MANAGERS_KEY, ..request(SaMethod::GetTable, attribute, mask, place) }
}

/// What is asked of ports before a request can be answered.
fn asked(administration: &mut Administration) -> Vec<TableOf> {
    std::iter::from_fn(|| administration.poll_table()).collect()
}

/// The records of this length in an answer of one segment.
fn records(answer: &SaMad, length: usize) -> Vec<Vec<u8>> {
    let bytes = (answer.rmpp.length as usize).saturating_sub(crate::mad::sa::SEGMENT_HEADER_BYTES);
    answer.data[..bytes].chunks(length.next_multiple_of(8)).map(<[u8]>::to_vec).collect()
}

/// Sends a request, answers the questions to ports, and returns the answer.
fn answered(
    administration: &mut Administration,
    mad: &SaMad,
    told: impl Fn(&TableOf) -> Option<Data>,
) -> SaMad {
    send(administration, 1, mad, Instant::ZERO);
    for table in asked(administration) {
        assert_eq!(administration.poll_transmit(Instant::ZERO), None, "not before all is told");
        administration.take_table(table, told(&table), Instant::ZERO);
    }
    SaMad::parse(&administration.poll_transmit(Instant::ZERO).unwrap().mad).unwrap()
}

/// An administration of ports that have tables of turns, partitions and GUIDs.
fn with_tables() -> Administration {
    let mut inventory = inventory();
    let with_room = |settings: &PortSettings| {
        let mut data = settings.emit();
        data[39..41].copy_from_slice(&[8, 40]);
        data[50] = 9;
        PortSettings::parse(&data)
    };
    for switch in &mut inventory.switches {
        switch.ports.values_mut().for_each(|settings| *settings = with_room(settings));
    }
    inventory.adapters.iter_mut().for_each(|adapter| adapter.settings = with_room(&adapter.settings));
    inventory.nodes.values_mut().for_each(|info| info.make.partitions = 64);
    let mut administration = Administration::default();
    administration.begin(subnet_with_room(&inventory, &routes(), 32));
    administration
}

#[test]
fn forwarding_tables_are_told_as_they_were_written() {
    let mut administration = administration();
    let lid = SWITCH_LID.to_be_bytes();
    let mad = request(SaMethod::Get, SaAttribute::LinearTableRecord, 0b11, &[lid[0], lid[1], 0, 0]);
    let answer = ask(&mut administration, 2, &mad);
    assert_eq!((answer.status, answer.offset), (0, 9));
    assert_eq!(answer.data[..2], lid);
    assert_eq!(answer.data[8..12], [0xFF, 1, 2, 4]);
    assert_eq!(answer.data[8 + 11..8 + 14], [0, 4, 0xFF]);
    assert_eq!(answer.data[71], 0xFF, "what was not written leads nowhere");
    let of_host = request(SaMethod::Get, SaAttribute::LinearTableRecord, BY_LID, &[0, 1]);
    assert_eq!(ask(&mut administration, 2, &of_host).status, SaStatus::NoRecords.code());
}

#[test]
fn what_ports_hold_is_asked_of_them_and_those_that_refuse_have_no_record() {
    let mut administration = with_tables();
    let mad = request(SaMethod::GetTable, SaAttribute::SlToVlRecord, 0b101, &[0, 11, 0, 2]);
    let answer = answered(&mut administration, &mad, |table| {
        assert_eq!((table.node, table.port, table.attribute), (SWITCHES, 0, Attribute::SlToVl));
        (table.modifier >> 8 != 3).then_some([table.modifier as u8; DATA_BYTES])
    });
    let heads: Vec<Vec<u8>> = records(&answer, 16).into_iter().map(|record| record[..9].to_vec()).collect();
    let expected = [0, 1, 2, 4].map(|into| vec![0, 11, into, 2, 0, 0, 0, 0, 2]);
    assert_eq!(heads, expected);
    let of_host = request(SaMethod::Get, SaAttribute::VlArbitrationRecord, 0b101, &[0, 3, 0, 2]);
    let answer = answered(&mut administration, &of_host, |table| {
        assert_eq!((table.node, table.port), (3, 1));
        assert_eq!((table.attribute, table.modifier), (Attribute::VlArbitration, 2 << 16));
        Some([7; DATA_BYTES])
    });
    assert_eq!((answer.status, &answer.data[..9]), (0, &[0, 3, 1, 2, 0, 0, 0, 0, 7][..]));
    let guids = request(SaMethod::Get, SaAttribute::GuidInfoRecord, 0b11, &[0, 3, 1]);
    let answer = answered(&mut administration, &guids, |table| {
        assert_eq!((table.attribute, table.modifier), (Attribute::GuidInfo, 1));
        None
    });
    assert_eq!(answer.status, SaStatus::NoRecords.code());
    let groups = request(SaMethod::Get, SaAttribute::MulticastTableRecord, 0b1001, &[0, 12, 0, 0]);
    let answer = answered(&mut administration, &groups, |table| {
        assert_eq!((table.node, table.attribute), (SWITCHES + 1, Attribute::MulticastTable));
        Some([9; DATA_BYTES])
    });
    assert_eq!((answer.status, &answer.data[..9]), (0, &[0, 12, 0, 0, 0, 0, 0, 0, 9][..]));
}

#[test]
fn partitions_are_told_to_who_has_the_managers_key() {
    let mut administration = with_tables();
    let denied = request(SaMethod::GetTable, SaAttribute::PartitionRecord, BY_LID, &[0, 1]);
    assert_eq!(ask(&mut administration, 1, &denied).status, SaStatus::Invalid.code());
    let block = with_managers_key(SaAttribute::PartitionRecord, 0b11, &[0, 1, 0, 1]);
    let answer = answered(&mut administration, &block, |table| {
        assert_eq!((table.node, table.modifier), (1, 1));
        Some([0xFF; DATA_BYTES])
    });
    assert_eq!(records(&answer, 72)[0][..9], [0, 1, 0, 1, 1, 0, 0, 0, 0xFF]);
    let own_of_switch = with_managers_key(SaAttribute::PartitionRecord, 0b111, &[0, 11, 0, 0, 0]);
    let answer = answered(&mut administration, &own_of_switch, |_| Some([1; DATA_BYTES]));
    assert_eq!(records(&answer, 72).len(), 1);
}

#[test]
fn a_request_that_waits_is_not_asked_twice_and_ends_with_the_subnet() {
    let mut administration = with_tables();
    let mad = request(SaMethod::GetTable, SaAttribute::SlToVlRecord, BY_LID, &[0, 11]);
    send(&mut administration, 1, &mad, Instant::ZERO);
    send(&mut administration, 1, &mad, Instant::ZERO);
    let tables = asked(&mut administration);
    assert_eq!(tables.len(), 25, "once each pair of five ports");
    administration.end();
    tables.iter().for_each(|&table| administration.take_table(table, None, Instant::ZERO));
    assert_eq!(administration.poll_transmit(Instant::ZERO), None);
}

#[test]
fn a_request_is_to_be_asked_again_if_the_subnet_became_another_while_it_waited() {
    let mut administration = with_tables();
    let mad = with_managers_key(SaAttribute::PartitionRecord, BY_LID, &[0, 3]);
    send(&mut administration, 1, &mad, Instant::ZERO);
    let tables = asked(&mut administration);
    let mut more = inventory();
    more.nodes.values_mut().for_each(|info| info.make.partitions = 128);
    administration.begin(subnet_of(&more, &routes()));
    tables.iter().for_each(|&table| administration.take_table(table, Some([0; DATA_BYTES]), Instant::ZERO));
    let answer = SaMad::parse(&administration.poll_transmit(Instant::ZERO).unwrap().mad).unwrap();
    assert_eq!(answer.status, SaStatus::Busy.code());
}

#[test]
fn subscriptions_and_managers_are_listed() {
    let mut administration = administration();
    assert_eq!(subscribe(&mut administration, 2, SubnetNotice::GROUP_MADE), 0);
    assert_eq!(subscribe(&mut administration, 3, SubnetNotice::GROUP_MADE), 0);
    let of_host = Gid::of_port(PREFIX, 3).0.to_be_bytes();
    let answer =
        ask(&mut administration, 1, &request(SaMethod::Get, SaAttribute::InformInfoRecord, 1, &of_host));
    assert_eq!((answer.status, &answer.data[..16]), (0, &of_host[..]));
    assert_eq!(InformInfo::parse(&answer.data[24..60]).trap, SubnetNotice::GROUP_MADE);
    let manager = ask(&mut administration, 1, &request(SaMethod::Get, SaAttribute::SmInfoRecord, 0, &[]));
    assert_eq!((manager.status, manager.data[1], manager.data[11]), (0, 1, 1));
}

#[test]
fn paths_between_several_ports_are_told_together() {
    let mut administration = administration();
    let gid = |host| Gid::of_port(PREFIX, host);
    let mut wanted = MultiPathRecord {
        path: PathRecord { count: 3, is_reversible: true, ..PathRecord::default() },
        independence: 0,
        sources: vec![gid(1), gid(2)],
        destinations: vec![gid(3), gid(1)],
    };
    let counts = MultiPathRecord::SOURCE_COUNT | MultiPathRecord::DESTINATION_COUNT;
    let ask_for = |administration: &mut Administration, mask, wanted: &MultiPathRecord| {
        let mad = request(SaMethod::GetMulti, SaAttribute::MultiPathRecord, mask, &wanted.emit());
        send(administration, 1, &mad, Instant::ZERO);
        SaMad::parse(&administration.poll_transmit(Instant::ZERO).unwrap().mad).unwrap()
    };
    let answer = ask_for(&mut administration, counts | 1 << 5 | 1 << 6, &wanted);
    assert_eq!((answer.method, answer.attribute), (SaMethod::GetMultiResponse, SaAttribute::PathRecord));
    let paths: Vec<(u16, u16)> = records(&answer, 64)
        .iter()
        .map(|record| PathRecord::parse(record))
        .map(|path| (path.source_lid, path.destination_lid))
        .collect();
    assert_eq!(paths, [(1, 3), (1, 1), (2, 3)], "three of four");
    let answer = ask_for(&mut administration, 0, &wanted);
    assert_eq!(answer.status, SaStatus::InsufficientComponents.code());
    wanted.sources = vec![gid(77)];
    assert_eq!(ask_for(&mut administration, counts, &wanted).status, SaStatus::InvalidGid.code());
    wanted.sources.clear();
    assert_eq!(ask_for(&mut administration, counts, &wanted).status, SaStatus::Invalid.code());
    let mut mad = request(SaMethod::GetMulti, SaAttribute::MultiPathRecord, counts, &wanted.emit());
    mad.data[15] = 200;
    assert_eq!(ask(&mut administration, 1, &mad).status, SaStatus::NoResources.code());
}
