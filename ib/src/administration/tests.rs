//! What hosts are answered.

use mapper_proto::map::{LaneRate, LinkSpeed};
use proptest::prelude::*;

mod groups;
mod paths;
mod services;
mod subscriptions;
mod tables;

use super::groups::Group;
use super::*;
use crate::lids::{LidRange, Lids};
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
    Subnet::new(
        inventory,
        &Lids::new(given.into_iter().map(|(guid, first)| (guid, LidRange { first, lmc: 0 })).collect()),
        0,
        routes,
        &infos,
        vec![(1, manager)],
    )
    .unwrap()
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

const JOIN: u64 = McMemberRecord::GROUP | McMemberRecord::PORT | McMemberRecord::STATE;
const MAKE: u64 = JOIN
    | McMemberRecord::QUEUE_KEY
    | McMemberRecord::PARTITION
    | McMemberRecord::TRAFFIC_CLASS
    | McMemberRecord::LEVEL
    | McMemberRecord::FLOW_LABEL;
const MADE: Gid = Gid(0xFF12_401B_FFFF_0000_0000_0000_0000_0001);

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
                let record = McMemberRecord { port, group, partition: 0xFFFF, ..McMemberRecord::parse(&data) };
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
