//! What a format can hold is still there when a file is read back.

use mapper_proto::Mac;
use mapper_proto::map::host_type;
use proptest::prelude::*;

use super::*;

/// A random fabric with every kind of label, its ports counting from 0 or from 1.
fn any_fabric() -> impl Strategy<Value = Fabric> {
    (1_u64..8, 3_u64..9, any::<u64>(), 0..3_u8, any::<bool>()).prop_map(|(xbars, ports, seed, first, ib)| {
        let links = xbars * (ports - 1) / 3;
        let links = if xbars == 1 { 0 } else { links };
        let hosts = xbars * ports - 2 * links;
        let mut fabric =
            generated(&format!("random:xbars={xbars},ports={ports},hosts={hosts},links={links},seed={seed}"));
        if first == 0 {
            let map = &mut fabric.map;
            map.hosts.iter_mut().filter_map(|host| host.at.as_mut()).for_each(|at| at.port -= 1);
            map.cables
                .iter_mut()
                .for_each(|cable| (cable.a.port, cable.b.port) = (cable.a.port - 1, cable.b.port - 1));
        }
        for (i, (host, label)) in (0..).zip(fabric.map.hosts.iter_mut().zip(&mut fabric.hosts)) {
            host.level = (seed % 7) as u8;
            if ib {
                let guid = 0x0002_c903_0000_0000 | seed & 0xff_0000 | i << 4;
                (host.mac, host.host_type) = (Mac::from_u64(guid), host_type::INFINIBAND);
                label.guid = Some(guid);
                label.port_guid = Some(guid + 1);
                label.system_guid = Some(guid + 3);
                (label.lid, label.lmc) = (Some(i as u16 * 2 + 1), 1);
                label.node_ports = 2;
                label.description = format!("node{i} HCA-1");
            }
        }
        for (i, (xbar, label)) in (1..).zip(fabric.map.xbars.iter_mut().zip(&mut fabric.xbars)) {
            if ib {
                let guid = 0x0008_f104_0000_0000 | i << 8;
                (xbar.tag, label.guid, label.system_guid) = (Some(guid), Some(guid), Some(guid + 1));
                label.lid = Some(1000 + i as u16);
            } else if (seed >> i) & 1 == 0 {
                xbar.tag = None;
            }
        }
        let ends = fabric.map.cables.iter().map(|cable| vec![cable.a, cable.b]);
        let ends = ends.chain(fabric.map.hosts.iter().filter_map(|host| host.at).map(|at| vec![at]));
        let speeds = ["4xSDR", "4xHDR", "12xFDR10"].map(|speed| speed.parse().unwrap());
        for (ends, (i, &speed)) in ends.zip((0..60).zip(speeds.iter().cycle())) {
            if (seed >> i) & 1 == 0 {
                fabric.link_speeds.extend(ends.into_iter().map(|end| (end, speed)));
            }
        }
        fabric
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn json_keeps_everything(mut fabric in any_fabric(), counter: u32) {
        fabric.map.version.counter = counter;
        fabric.map.version.mac = Mac::from_position(counter);
        prop_assert_eq!(&read(&write(&fabric, FileFormat::Json)).unwrap(), &fabric);
        for format in [FileFormat::Dot, FileFormat::Svg] {
            prop_assert!(write(&fabric, format).contains(&fabric.xbars[0].name));
        }
    }

    #[test]
    fn ibnetdiscover_keeps_all_but_levels(fabric in any_fabric()) {
        let text = write(&fabric, FileFormat::Ibnetdiscover);
        let back = read(&text).unwrap();
        prop_assert_eq!(as_is(&back), wiring(&fabric, &port_shifts(&fabric, 1)));
        prop_assert_eq!(macs(&back), macs(&fabric));
        let speeds = |fabric: &Fabric| fabric.link_speeds.values().copied().collect::<Vec<_>>();
        prop_assert_eq!(speeds(&back), speeds(&fabric));
        if fabric.hosts.iter().any(|label| label.guid.is_some()) {
            prop_assert_eq!(&back.hosts, &fabric.hosts);
            prop_assert_eq!(&back.xbars, &fabric.xbars);
        }
        let tags = |fabric: &Fabric| -> Vec<_> { fabric.map.xbars.iter().map(|xbar| xbar.tag).collect() };
        prop_assert!(!tags(&back).contains(&None), "a switch has a GUID");
        if !tags(&fabric).contains(&None) {
            prop_assert_eq!(tags(&back), tags(&fabric));
            prop_assert_eq!(write(&back, FileFormat::Ibnetdiscover), text, "once read, it stays as it is");
        }
    }

    #[test]
    fn gm_map_keeps_the_wiring(fabric in any_fabric()) {
        let text = write(&fabric, FileFormat::GmMap);
        let back = read(&text).unwrap();
        prop_assert_eq!(as_is(&back), wiring(&fabric, &port_shifts(&fabric, 0)));
        prop_assert_eq!(macs(&back), macs(&fabric));
        prop_assert_eq!(write(&back, FileFormat::GmMap), text, "once read, it stays as it is");
    }
}

#[test]
fn every_generated_fabric_survives_every_format() {
    for spec in SPECS {
        let fabric = generated(spec);
        assert_eq!(read(&write(&fabric, FileFormat::Json)).unwrap(), fabric, "{spec}");
        let back = read(&write(&fabric, FileFormat::Ibnetdiscover)).unwrap();
        assert_eq!(as_is(&back), as_is(&fabric), "{spec}");
        let back = read(&write(&fabric, FileFormat::GmMap)).unwrap();
        assert_eq!(as_is(&back), wiring(&fabric, &port_shifts(&fabric, 0)), "{spec}");
    }
}

#[test]
fn maps_are_read_back_whatever_hosts_say_that_they_are_called() {
    let mut map = generated("ring:n=4,hosts=1").map;
    map.xbars[0].tag = None;
    let mac = |host: usize| map.hosts[host].mac;
    // Two of one name, one that is called like another's address, and one like a crossbar.
    let said = [(mac(0), "node".to_owned()), (mac(1), "node".to_owned()), (mac(2), mac(3).to_string())];
    let names = json::NamesByAddress::of_hosts(said.into_iter().chain([(mac(3), "x1".to_owned())]).collect());
    let written = json::map_to_json(&map, &names);
    let called: Vec<&str> = written.hosts.iter().map(|host| host.name.as_deref().unwrap()).collect();
    let with_address = |host: usize| format!("node {}", mac(host));
    assert_eq!(called[..2], [with_address(0), with_address(1)]);
    assert_eq!(called[2..], [mac(2).to_string(), "x1".to_owned()]);
    let read = read(&serde_json::to_string(&written).unwrap()).unwrap();
    assert_eq!(read.map.hosts.len(), 4);
}
