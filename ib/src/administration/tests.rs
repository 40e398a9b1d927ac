//! What hosts are answered.

use mapper_proto::map::{LaneRate, LinkSpeed};
use proptest::prelude::*;

mod tables;

use super::groups::Group;
use super::*;
use crate::lids::Lids;
use crate::mad::sa::{JoinState, Limit, PathRecord, RECORD_BYTES, Selector};
use crate::mad::{
    DATA_BYTES, Make, NodeInfo, NodeKind, PortInfo, PortSettings, Route, SmInfo, SmState, SwitchInfo,
};
use crate::manager::inventory::{Adapter, Inventory, Switch};
use crate::manager::task::Routes;
use std::collections::BTreeMap;

const PREFIX: u64 = 0xFE80 << 48;
/// The GUID of the first switch; the second's is one more.
const SWITCHES: u64 = 0x50;
/// The first LID of a switch.
const SWITCH_LID: u16 = 11;

fn settings(mtu: u8, rate: LaneRate) -> PortSettings {
    let speed = LinkSpeed { lanes: 4, rate };
    let info = PortInfo { lid: None, lmc: 0, is_up: true, speed: Some(speed) };
    PortSettings::parse(&info.emit()).with_link(mtu, 1)
}

/// Hosts 1 and 2 are at one switch and host 3 at another, each in the port with its number. The switches are
/// joined by their ports 4, by a cable that takes shorter packets. The GUID of a host's port is its LID. The
/// manager is at host 1.
fn inventory() -> Inventory {
    let mut all = Inventory { own: 1, ..Inventory::default() };
    for (at, hosts) in [(0, &[1_u64, 2][..]), (1, &[3])] {
        let guid = SWITCHES + at;
        let ports = (0..=4).map(|port| (port, settings(if port == 4 { 4 } else { 5 }, LaneRate::Edr)));
        let mut cables = BTreeMap::from([(4, (SWITCHES + 1 - at, 4))]);
        for &host in hosts {
            cables.insert(host as u8, (host, 1));
            let rate = if host == 3 { LaneRate::Qdr } else { LaneRate::Edr };
            all.adapters.push(Adapter {
                node_guid: host,
                port_guid: host,
                system_guid: 0,
                description: format!("host {host}"),
                port: 1,
                route: Route::LOCAL,
                settings: settings(5, rate),
                at: Some((guid, host as u8)),
                is_away: false,
            });
            all.nodes.insert(host, node(NodeKind::Adapter, host));
        }
        all.nodes.insert(guid, node(NodeKind::Switch, guid));
        all.switches.push(Switch {
            guid,
            port_guid: guid,
            system_guid: 0,
            description: format!("switch {at}"),
            route: Route::LOCAL,
            port_count: 4,
            ports: ports.collect(),
            cables,
        });
    }
    all
}

fn node(kind: NodeKind, guid: u64) -> NodeInfo {
    let make = Make::default();
    NodeInfo { kind, ports: 4, system_guid: 0, guid, port_guid: guid, local_port: 1, make }
}

/// Tables that lead from everywhere to everywhere.
fn routes() -> Routes {
    let mut tables = BTreeMap::new();
    for (at, here) in [(0, [1_u16, 2]), (1, [3, 3])] {
        let mut table = vec![0xFF; 20];
        for lid in 1..=3 {
            table[usize::from(lid)] = if here.contains(&lid) { lid as u8 } else { 4 };
        }
        for lid in SWITCH_LID..SWITCH_LID + 2 {
            table[usize::from(lid)] = if lid == SWITCH_LID + at { 0 } else { 4 };
        }
        tables.insert(SWITCHES + u64::from(at), table);
    }
    Routes { layers: 1, tables, ..Routes::default() }
}

fn subnet_of(inventory: &Inventory, routes: &Routes) -> Subnet {
    subnet_with_room(inventory, routes, 4)
}

/// A subnet whose switches have room for so many groups.
fn subnet_with_room(inventory: &Inventory, routes: &Routes, groups: u16) -> Subnet {
    let mut given: BTreeMap<u64, u16> = (1..=3).map(|host| (host, host as u16)).collect();
    given.extend([(SWITCHES, SWITCH_LID), (SWITCHES + 1, SWITCH_LID + 1)]);
    let infos = (0..2).map(|at| (SWITCHES + at, SwitchInfo::new(100, groups))).collect();
    let manager =
        SmInfo { guid: 1, key: 1, activity: 0, priority: 1, state: SmState::Master, is_agent: true };
    Subnet::new(inventory, &Lids::new(given), 0, routes, &infos, vec![(1, manager)]).unwrap()
}

fn administration() -> Administration {
    let mut administration = Administration::default();
    administration.begin(subnet_of(&inventory(), &routes()));
    administration
}

fn request(method: SaMethod, attribute: SaAttribute, mask: u64, record: &[u8]) -> SaMad {
    let mad = SaMad {
        method,
        status: 0,
        tid: 77,
        attribute,
        modifier: 0,
        rmpp: Rmpp::default(),
        key: 0,
        offset: 0,
        mask,
        data: [0; RECORD_BYTES],
    };
    mad.with_record(record)
}

/// Sends a datagram from a host's queue pair 1.
fn send(administration: &mut Administration, lid: u16, mad: &SaMad, now: Instant) {
    let address = Address::Lid { lid, queue_pair: 1, level: 0 };
    administration.handle_packet(&Packet { address, mad: mad.emit() }, now);
}

/// Sends a request, and returns the answer, which comes at once.
fn ask(administration: &mut Administration, lid: u16, mad: &SaMad) -> SaMad {
    send(administration, lid, mad, Instant::ZERO);
    let packet = administration.poll_transmit(Instant::ZERO).unwrap();
    assert_eq!(packet.address, Address::Lid { lid, queue_pair: 1, level: 0 });
    let answer = SaMad::parse(&packet.mad).unwrap();
    assert_eq!((answer.method, answer.tid), (mad.method.answer(), mad.tid));
    answer
}

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

#[test]
fn many_records_come_in_segments_and_one_of_several_is_refused() {
    let mut administration = administration();
    let answer = ask(&mut administration, 2, &request(SaMethod::Get, SaAttribute::NodeRecord, 0, &[]));
    assert_eq!(answer.status, SaStatus::TooManyRecords.code());
    let table = request(SaMethod::GetTable, SaAttribute::NodeRecord, 0, &[]);
    let first = ask(&mut administration, 2, &table);
    assert_eq!((first.status, first.offset, first.rmpp.length), (0, 14, 5 * 112 + 3 * 20));
    assert_eq!(&first.data[44..50], b"host 1");
    send(&mut administration, 2, &table, Instant::ZERO);
    assert_eq!(administration.poll_transmit(Instant::ZERO), None, "a request that was repeated");
    let none = ask(&mut administration, 2, &request(SaMethod::GetTable, SaAttribute::NodeRecord, 1, &[0, 9]));
    assert_eq!((none.status, none.offset, none.rmpp.length), (0, 0, 20));
    let asked = request(SaMethod::Get, SaAttribute::NodeRecord, 1 << 7, &[&[0; 23][..], &[3]].concat());
    assert_eq!(&ask(&mut administration, 2, &asked).data[44..50], b"host 3");
    let unknown = ask(&mut administration, 2, &request(SaMethod::Get, SaAttribute::Other(0x99), 0, &[]));
    assert_eq!(unknown.status, SaStatus::MethodAttribute.code());
}

#[test]
fn all_ports_of_a_switch_are_found_by_its_lid() {
    let mut administration = administration();
    let by_lid = |mask, port| request(SaMethod::GetTable, SaAttribute::PortInfoRecord, mask, &[0, 11, port]);
    let first = ask(&mut administration, 2, &by_lid(1, 0));
    assert_eq!((first.data[..3].to_vec(), first.rmpp.length), (vec![0, 11, 0], 5 * 72 + 2 * 20));
    let third = ask(&mut administration, 2, &by_lid(3, 3));
    assert_eq!((third.data[..3].to_vec(), third.rmpp.length), (vec![0, 11, 3], 72 + 20));
    // A request can be for all ports that have a capability, whatever other ones they have.
    let mut capable =
        request(SaMethod::GetTable, SaAttribute::PortInfoRecord, 1 << 7, &[&[0; 26][..], &[0x40]].concat());
    capable.modifier = 1 << 31;
    assert_eq!(ask(&mut administration, 2, &capable).rmpp.length, (2 + 10) * 72 + 5 * 20, "faster than QDR");
    let exactly =
        request(SaMethod::GetTable, SaAttribute::PortInfoRecord, 1 << 7, &[&[0; 26][..], &[0x41]].concat());
    assert_eq!(ask(&mut administration, 2, &exactly).rmpp.length, 20);
}

#[test]
fn without_a_subnet_that_is_up_whoever_asks_is_to_ask_again() {
    let mut administration = Administration::default();
    let asked = request(SaMethod::Get, SaAttribute::ClassPortInfo, 0, &[]);
    assert_eq!(ask(&mut administration, 2, &asked).status, SaStatus::Busy.code());
    administration.begin(subnet_of(&inventory(), &routes()));
    assert_eq!(ask(&mut administration, 2, &asked).status, 0);
    administration.end();
    assert_eq!(ask(&mut administration, 2, &asked).status, SaStatus::Busy.code());
}

/// The record of a request to join a group, or to make one.
fn joining(host: u64, group: Gid, state: JoinState) -> MemberRecord {
    let port = Gid::of_port(PREFIX, host);
    MemberRecord { group, port, state, partition: 0xFFFF, queue_key: 5, ..MemberRecord::parse(&[]) }
}

const JOIN: u64 = MemberRecord::GROUP | MemberRecord::PORT | MemberRecord::STATE;
const MAKE: u64 = JOIN
    | MemberRecord::QUEUE_KEY
    | MemberRecord::PARTITION
    | MemberRecord::TRAFFIC_CLASS
    | MemberRecord::LEVEL
    | MemberRecord::FLOW_LABEL;
const BROADCAST: Gid = Gid(0xFF12_401B_FFFF_0000_0000_0000_FFFF_FFFF);
const MADE: Gid = Gid(0xFF12_401B_FFFF_0000_0000_0000_0000_0001);

fn member(
    administration: &mut Administration,
    method: SaMethod,
    record: &MemberRecord,
    mask: u64,
) -> Result<MemberRecord, u16> {
    let asked = request(method, SaAttribute::MemberRecord, mask, &record.emit());
    let answer = ask(administration, record.port.guid() as u16, &asked);
    if answer.status == 0 { Ok(MemberRecord::parse(&answer.data)) } else { Err(answer.status) }
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
    let foreign = request(SaMethod::Set, SaAttribute::MemberRecord, JOIN, &record.emit());
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
    let joined = request(SaMethod::Set, SaAttribute::MemberRecord, JOIN, &record);
    let joined = ask(&mut administration, 3, &joined);
    assert_eq!((joined.status, MemberRecord::parse(&joined.data).is_proxy), (0, true));
    let left = request(SaMethod::Delete, SaAttribute::MemberRecord, JOIN, &record);
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
    let wrong = MemberRecord { queue_key: 6, ..joining(1, MADE, JoinState::FULL) };
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
    let mut asked = request(SaMethod::GetTable, SaAttribute::MemberRecord, 0, &[]);
    let length = |answer: &SaMad| answer.rmpp.length;
    let groups = ask(&mut administration, 1, &asked);
    assert_eq!((length(&groups), groups.offset), (76, 7));
    assert_eq!(MemberRecord::parse(&groups.data).port, Gid::default());
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

fn subscribe(administration: &mut Administration, lid: u16, trap: u16) -> u16 {
    let wanted = InformInfo {
        first_lid: InformInfo::ALL,
        is_generic: true,
        subscribes: true,
        trap_type: InformInfo::ALL,
        trap,
        queue_pair: 1,
        producer: InformInfo::ALL_PRODUCERS,
        ..InformInfo::parse(&[])
    };
    ask(administration, lid, &request(SaMethod::Set, SaAttribute::InformInfo, 0, &wanted.emit())).status
}

#[test]
fn subscribers_are_told_of_ports_and_groups_until_they_take_note() {
    let mut administration = administration();
    assert_eq!(subscribe(&mut administration, 2, InformInfo::ALL), 0);
    assert_eq!(subscribe(&mut administration, 1, SubnetNotice::GROUP_MADE), 0);
    let mut less = inventory();
    less.adapters.pop();
    administration.begin(subnet_of(&less, &routes()));
    let told = administration.poll_transmit(Instant::ZERO).unwrap();
    assert_eq!(told.address, Address::Lid { lid: 2, queue_pair: 1, level: 0 });
    let report = SaMad::parse(&told.mad).unwrap();
    assert_eq!((report.method, report.attribute), (SaMethod::Report, SaAttribute::Notice));
    assert_eq!((report.data[5], report.data[31]), (65, 3));
    assert_eq!(administration.poll_transmit(Instant::ZERO), None);
    let at = administration.poll_timeout().unwrap();
    administration.handle_timeout(at);
    assert_eq!(administration.poll_transmit(at), Some(told.clone()), "told again");
    // Whatever carries datagrams may have put its own number into the upper half.
    let note = SaMad { method: SaMethod::ReportResponse, tid: report.tid | 1 << 40, ..report };
    send(&mut administration, 2, &note, at);
    assert_eq!(administration.poll_timeout(), None);
    administration.begin(subnet_of(&inventory(), &routes()));
    let report = SaMad::parse(&administration.poll_transmit(at).unwrap().mad).unwrap();
    assert_eq!((report.data[5], report.data[31]), (64, 3));
}

#[test]
fn a_subscriber_that_is_silent_is_given_up_and_one_that_ends_it_is_told_no_more() {
    let mut administration = administration();
    subscribe(&mut administration, 2, InformInfo::ALL);
    let mut less = inventory();
    less.adapters.pop();
    administration.begin(subnet_of(&less, &routes()));
    let mut times = 0;
    let mut now = Instant::ZERO;
    while administration.poll_transmit(now).is_some() {
        times += 1;
        now = administration.poll_timeout().unwrap();
        administration.handle_timeout(now);
    }
    assert_eq!((times, administration.poll_timeout()), (4, None));
    let ended = InformInfo {
        first_lid: InformInfo::ALL,
        is_generic: true,
        trap_type: InformInfo::ALL,
        trap: InformInfo::ALL,
        queue_pair: 1,
        producer: InformInfo::ALL_PRODUCERS,
        ..InformInfo::parse(&[])
    };
    let asked = request(SaMethod::Set, SaAttribute::InformInfo, 0, &ended.emit());
    assert_eq!(ask(&mut administration, 2, &asked).status, 0);
    assert_eq!(ask(&mut administration, 2, &asked).status, SaStatus::Invalid.code());
    administration.begin(subnet_of(&inventory(), &routes()));
    assert_eq!(administration.poll_transmit(now), None);
}

#[test]
fn services_are_found_until_their_lease_ends() {
    let mut administration = administration();
    let record = ServiceRecord {
        id: 9,
        gid: Gid::of_port(PREFIX, 3),
        partition: 0xFFFF,
        lease: 10,
        key: [1; 16],
        ..ServiceRecord::parse(&[])
    };
    let mask = ServiceRecord::ID
        | ServiceRecord::GID
        | ServiceRecord::PARTITION
        | ServiceRecord::LEASE
        | ServiceRecord::KEY;
    let with = |method, mask, record: &ServiceRecord| {
        request(method, SaAttribute::ServiceRecord, mask, &record.emit())
    };
    assert_eq!(ask(&mut administration, 3, &with(SaMethod::Set, mask, &record)).status, 0);
    let found = ask(&mut administration, 1, &with(SaMethod::Get, ServiceRecord::ID, &record));
    let found = ServiceRecord::parse(&found.data);
    assert_eq!((found.gid, found.lease, found.key), (record.gid, 10, [0; 16]));
    let other = ServiceRecord { key: [2; 16], ..record };
    assert_eq!(
        ask(&mut administration, 3, &with(SaMethod::Set, mask, &other)).status,
        SaStatus::Denied.code()
    );
    assert_eq!(
        ask(&mut administration, 2, &with(SaMethod::Delete, mask, &record)).status,
        SaStatus::Denied.code()
    );
    let end = administration.poll_timeout().unwrap();
    assert_eq!(end, Instant::ZERO + std::time::Duration::from_secs(10));
    administration.handle_timeout(end);
    let gone = ask(&mut administration, 1, &with(SaMethod::Get, ServiceRecord::ID, &record));
    assert_eq!(gone.status, SaStatus::NoRecords.code());
    assert_eq!(ask(&mut administration, 3, &with(SaMethod::Set, mask, &record)).status, 0);
    assert_eq!(ask(&mut administration, 3, &with(SaMethod::Delete, mask, &record)).status, 0);
    let gone = ask(&mut administration, 1, &with(SaMethod::Get, ServiceRecord::ID, &record));
    assert_eq!(gone.status, SaStatus::NoRecords.code());
}

proptest! {
    #[test]
    fn any_requests_are_answered_or_passed_over_and_groups_keep_their_lids(
        requests in prop::collection::vec(
            (
                prop::sample::select(vec![0x01_u8, 0x02, 0x06, 0x12, 0x14, 0x15, 0x86]),
                prop::sample::select(vec![
                    0x01_u8, 0x03, 0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x18, 0x20, 0x30, 0x31, 0x33, 0x35, 0x36, 0x38,
                    0x3A, 0xF3,
                ]),
                any::<u64>(),
                prop::collection::vec(any::<u8>(), 0..RECORD_BYTES),
                (1..4_u16, any::<u8>()),
            ),
            0..40,
        ),
    ) {
        let mut administration = administration();
        for (method, attribute, mask, data, (lid, state)) in requests {
            let mut mad = request(SaMethod::Get, SaAttribute::NodeRecord, mask, &data);
            if attribute == 0x38 {
                // Half of the requests are about a port that is there, and about one of a few groups.
                let port = Gid::of_port(PREFIX, lid.into());
                let group = Gid(MADE.0 + u128::from(state & 3));
                let record = MemberRecord { port, group, partition: 0xFFFF, ..MemberRecord::parse(&data) };
                mad = mad.with_record(&record.emit());
                mad.mask |= if state & 4 == 0 { MAKE } else { JOIN };
            }
            let mut bytes = mad.emit();
            bytes[3] = method;
            bytes[17] = attribute;
            let address = Address::Lid { lid, queue_pair: 1, level: 0 };
            administration.handle_packet(&Packet { address, mad: bytes }, Instant::ZERO);
            while let Some(table) = administration.poll_table() {
                let data = (table.modifier & 1 == 0).then_some([state; DATA_BYTES]);
                administration.take_table(table, data, Instant::ZERO);
            }
            while administration.poll_transmit(Instant::ZERO).is_some() {}
            let lids: Vec<u16> = administration.groups().all().map(Group::lid).collect();
            let distinct: std::collections::BTreeSet<u16> = lids.iter().copied().collect();
            prop_assert_eq!(distinct.len(), lids.len());
            prop_assert!(lids.iter().all(|lid| (0xC000..0xC004).contains(lid)));
            for group in administration.groups().all() {
                prop_assert!(group.lid() == 0xC000 || group.members().values().any(|state| state.keeps_group()));
            }
        }
    }
}
