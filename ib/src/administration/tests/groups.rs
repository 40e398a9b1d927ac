//! Multicast groups: who makes them, joins them, leaves them and is told of them.

use super::*;

const BROADCAST: Gid = Gid(0xFF12_401B_FFFF_0000_0000_0000_FFFF_FFFF);

/// The record of a request to join a group, or to make one.
fn joining(host: u64, group: Gid, state: JoinState) -> McMemberRecord {
    let port = Gid::of_port(PREFIX, host);
    McMemberRecord { group, port, state, partition: 0xFFFF, queue_key: 5, ..McMemberRecord::parse(&[]) }
}

fn member(
    administration: &mut Administration,
    method: SaMethod,
    record: &McMemberRecord,
    mask: u64,
) -> Result<McMemberRecord, u16> {
    let asked = request(method, SaAttribute::McMemberRecord, mask, &record.emit());
    let answer = ask(administration, record.port.guid() as u16, &asked);
    if answer.status == 0 { Ok(McMemberRecord::parse(&answer.data)) } else { Err(answer.status) }
}

#[test]
fn hosts_join_the_group_of_broadcast_and_leave_it() {
    let mut administration = administration();
    let before = administration.groups().generation();
    let record = joining(2, BROADCAST, JoinState::FULL);
    let joined = member(&mut administration, SaMethod::Set, &record, JOIN).unwrap();
    assert_eq!((joined.lid, joined.queue_key, joined.state), (0xC000, 0xB1B, JoinState::FULL));
    assert_eq!((joined.mtu, joined.rate), (Limit::exactly(4), Limit::exactly(3)));
    assert!(administration.groups().generation() > before);
    let group = administration.groups().all().next().unwrap();
    assert_eq!(group.members(), &BTreeMap::from([(2, JoinState::FULL)]));
    // Only the port itself may change how it takes part if it joined by itself.
    let foreign = request(SaMethod::Set, SaAttribute::McMemberRecord, JOIN, &record.emit());
    assert_eq!(ask(&mut administration, 3, &foreign).status, SaStatus::Denied.code());
    let left = member(&mut administration, SaMethod::Delete, &record, JOIN).unwrap();
    assert!(left.state.is_none());
    let again = member(&mut administration, SaMethod::Delete, &record, JOIN).map(|_| ());
    assert_eq!(again, Err(SaStatus::Invalid.code()));
    assert_eq!(administration.groups().all().count(), 1, "it stays without members");
}

#[test]
fn one_port_joins_for_another_and_anybody_may_end_that() {
    let mut administration = administration();
    let record = joining(2, BROADCAST, JoinState::FULL).emit();
    let joined = request(SaMethod::Set, SaAttribute::McMemberRecord, JOIN, &record);
    let joined = ask(&mut administration, 3, &joined);
    assert_eq!((joined.status, McMemberRecord::parse(&joined.data).is_proxy), (0, true));
    let left = request(SaMethod::Delete, SaAttribute::McMemberRecord, JOIN, &record);
    assert_eq!(ask(&mut administration, 1, &left).status, 0);
    assert!(administration.groups().all().all(|group| group.members().is_empty()));
}

#[test]
fn a_group_is_made_by_a_full_member_that_says_all_and_ends_with_the_last() {
    let mut administration = administration();
    let record = joining(2, MADE, JoinState::FULL);
    let refused = member(&mut administration, SaMethod::Set, &record, JOIN).map(|_| ());
    assert_eq!(refused, Err(SaStatus::InsufficientComponents.code()));
    let sender = joining(3, MADE, JoinState::SENDS_ONLY);
    let refused = member(&mut administration, SaMethod::Set, &sender, MAKE).map(|_| ());
    assert_eq!(refused, Err(SaStatus::Invalid.code()));
    let made = member(&mut administration, SaMethod::Set, &record, MAKE).unwrap();
    assert_eq!((made.lid, made.queue_key, made.rate), (0xC001, 5, Limit::exactly(3)));
    let wrong = McMemberRecord { queue_key: 6, ..joining(1, MADE, JoinState::FULL) };
    let refused = member(&mut administration, SaMethod::Set, &wrong, MAKE).map(|_| ());
    assert_eq!(refused, Err(SaStatus::Invalid.code()));
    member(&mut administration, SaMethod::Set, &sender, JOIN).unwrap();
    let half = joining(2, MADE, JoinState::NON_MEMBER);
    let both = member(&mut administration, SaMethod::Set, &half, JOIN).unwrap();
    assert_eq!(both.state, JoinState::FULL.with(JoinState::NON_MEMBER));
    member(&mut administration, SaMethod::Delete, &record, JOIN).unwrap();
    assert_eq!(administration.groups().all().count(), 1, "no full member is left");
    assert_eq!(member(&mut administration, SaMethod::Set, &record, MAKE).unwrap().lid, 0xC001);
}

#[test]
fn no_more_groups_are_made_than_switches_have_room_for() {
    let mut administration = administration();
    for number in 1..5 {
        let record = joining(2, Gid(MADE.0 + number), JoinState::FULL);
        let made = member(&mut administration, SaMethod::Set, &record, MAKE).map(|made| made.lid);
        let expected =
            if number < 4 { Ok(0xC000 + number as u16) } else { Err(SaStatus::NoResources.code()) };
        assert_eq!(made, expected);
    }
}

#[test]
fn groups_are_told_to_all_and_members_to_those_who_manage() {
    let mut administration = administration();
    member(&mut administration, SaMethod::Set, &joining(2, BROADCAST, JoinState::FULL), JOIN).unwrap();
    member(&mut administration, SaMethod::Set, &joining(3, BROADCAST, JoinState::FULL), JOIN).unwrap();
    let mut asked = request(SaMethod::GetTable, SaAttribute::McMemberRecord, 0, &[]);
    let length = |answer: &SaMad| answer.rmpp.length;
    let groups = ask(&mut administration, 1, &asked);
    assert_eq!((length(&groups), groups.offset), (76, 7));
    assert_eq!(McMemberRecord::parse(&groups.data).port, Gid::default());
    asked.key = 1;
    asked.tid += 1;
    assert_eq!(length(&ask(&mut administration, 1, &asked)), 2 * 56 + 20);
    let own = joining(3, BROADCAST, JoinState::FULL);
    let own = member(&mut administration, SaMethod::Get, &own, JOIN).unwrap();
    assert_eq!(own.port.guid(), 3);
}

#[test]
fn members_whose_place_is_kept_stay_and_those_who_are_gone_do_not() {
    let mut administration = administration();
    member(&mut administration, SaMethod::Set, &joining(3, MADE, JoinState::FULL), MAKE).unwrap();
    let mut less = inventory();
    less.adapters.last_mut().unwrap().is_away = true;
    administration.begin(subnet_of(&less, &routes()));
    assert_eq!(administration.groups().all().count(), 2);
    less.adapters.pop();
    administration.begin(subnet_of(&less, &routes()));
    assert_eq!(administration.groups().all().count(), 1);
}
