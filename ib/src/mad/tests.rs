//! Any value is read as it was written, and any bytes are taken.

use mapper_proto::map::{LaneRate, LinkSpeed};
use proptest::prelude::*;

use super::*;

fn node_kinds() -> impl Strategy<Value = NodeKind> {
    prop_oneof![Just(NodeKind::Adapter), Just(NodeKind::Switch), Just(NodeKind::Router)]
}

fn speeds() -> impl Strategy<Value = LinkSpeed> {
    let rates = LaneRate::ALL.into_iter().filter(|rate| !matches!(rate, LaneRate::Fdr10 | LaneRate::Xdr));
    let rates: Vec<_> = rates.collect();
    (prop::sample::select(LinkSpeed::LANES.to_vec()), prop::sample::select(rates))
        .prop_map(|(lanes, rate)| LinkSpeed { lanes, rate })
}

proptest! {
    #[test]
    fn smps_are_read_as_they_are_written(
        (asks, status, tid, modifier, key) in
            (any::<bool>(), 0..0x8000_u16, any::<u64>(), any::<u32>(), any::<u64>()),
        attribute in prop::sample::select(vec![
            Attribute::NodeDescription, Attribute::NodeInfo, Attribute::PortInfo
        ]),
        ports in prop::collection::vec(any::<u8>(), 0..=MAX_HOPS),
        data in any::<[u8; DATA_BYTES]>(),
    ) {
        let method = if asks { Method::Get } else { Method::GetResponse };
        let route = Route::new(&ports).unwrap();
        let smp = Smp { method, status, tid, attribute, modifier, key, route, data };
        prop_assert_eq!(Smp::parse(&smp.emit()), Ok(smp));
    }

    #[test]
    fn any_bytes_are_an_smp_or_none(
        mut mad in prop::collection::vec(any::<u8>(), 0..600),
        (header, method, attribute) in (any::<bool>(), any::<u8>(), 0x10..0x16_u8),
    ) {
        // Half of the datagrams are valid up to the route.
        if header && mad.len() >= MAD_BYTES {
            mad.truncate(MAD_BYTES);
            mad[..4].copy_from_slice(&[1, 0x81, 1, method & 0x80 | 1]);
            mad[16..18].copy_from_slice(&[0, attribute]);
        }
        if let Ok(smp) = Smp::<Method>::parse(&mad) {
            prop_assert_eq!(Smp::parse(&smp.emit()), Ok(smp));
        }
    }

    #[test]
    fn nodes_are_read_as_they_are_written(
        kind in node_kinds(),
        (ports, local) in (1..255_u8, any::<u8>()),
        (system_guid, guid, port_guid) in (any::<u64>(), 1..=u64::MAX, any::<u64>()),
        (partitions, device, revision, vendor) in (any::<u16>(), any::<u16>(), any::<u32>(), any::<[u8; 3]>()),
    ) {
        let local_port = 1 + local % ports;
        let make = Make { partitions, device, revision, vendor };
        let info = NodeInfo { kind, ports, system_guid, guid, port_guid, local_port, make };
        prop_assert_eq!(NodeInfo::parse(&info.emit()), Ok(info));
    }

    #[test]
    fn ports_are_read_as_they_are_written(
        (lid, lmc, is_up) in (any::<u16>(), 0..8_u8, any::<bool>()),
        speed in prop::option::of(speeds()),
    ) {
        let info = PortInfo { lid: Some(lid).filter(|&lid| lid != 0), lmc, is_up, speed };
        prop_assert_eq!(PortInfo::parse(&info.emit()), info);
    }

    #[test]
    fn any_data_is_read(data in any::<[u8; DATA_BYTES]>()) {
        let _may_be_none = NodeInfo::parse(&data);
        let port = PortInfo::parse(&data);
        prop_assert_eq!(PortInfo::parse(&port.emit()), port);
        let description = NodeDescription::parse(&data);
        prop_assert!(!description.0.contains('\0'));
    }
}

#[test]
fn a_request_is_laid_out_as_the_specification_says() {
    let smp = Smp {
        method: Method::Get,
        status: 0,
        tid: 0x0102_0304_0506_0708,
        attribute: Attribute::PortInfo,
        modifier: 7,
        key: 0,
        route: Route::new(&[1, 19]).unwrap(),
        data: [0; DATA_BYTES],
    };
    let mad = smp.emit();
    assert_eq!(mad[..12], [1, 0x81, 1, 1, 0, 0, 0, 2, 1, 2, 3, 4]);
    assert_eq!(mad[12..24], [5, 6, 7, 8, 0, 0x15, 0, 0, 0, 0, 0, 7]);
    assert_eq!(mad[24..36], [0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert_eq!(mad[128..132], [0, 1, 19, 0]);
    assert_eq!(smp.route.to_string(), "0,1,19");
}

#[test]
fn what_is_no_node_is_refused_and_said() {
    let good = NodeInfo {
        kind: NodeKind::Adapter,
        ports: 2,
        system_guid: 0,
        guid: 9,
        port_guid: 10,
        local_port: 1,
        make: Make::default(),
    };
    let refused = |info: NodeInfo| NodeInfo::parse(&info.emit()).unwrap_err();
    assert_eq!(refused(NodeInfo { ports: 0, ..good }), NodeInfoError::Ports(0));
    assert_eq!(refused(NodeInfo { guid: 0, ..good }), NodeInfoError::NoGuid);
    let local_port = NodeInfoError::LocalPort { port: 3, ports: 2 };
    assert_eq!(refused(NodeInfo { local_port: 3, ..good }), local_port);
    assert_eq!(NodeInfo::parse(&[7; DATA_BYTES]), Err(NodeInfoError::Kind(7)));
}

#[test]
fn a_description_ends_at_its_zero_and_may_be_in_any_encoding() {
    let mut data = NodeDescription("leaf 1  ".to_owned()).emit();
    assert_eq!(NodeDescription::parse(&data).0, "leaf 1");
    data[4] = 0xFF;
    assert_eq!(NodeDescription::parse(&data).0, "leaf\u{FFFD}1");
}
