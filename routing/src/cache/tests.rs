//! Each rule of the cache, and reboots.

use std::collections::VecDeque;

use mapper_fabric::generate;
use mapper_proto::map::{Cable, PortRef};
use proptest::prelude::*;

use super::*;
use crate::engines::SubnetNode;
use crate::tables::SlotEnd;

/// A fabric whose nodes have LIDs, as a subnet manager gives them.
fn with_lids(spec: &str) -> Fabric {
    let mut fabric = generate(spec).unwrap();
    let mut lids = 1..;
    fabric.xbars.iter_mut().for_each(|label| label.lid = lids.next());
    fabric.hosts.iter_mut().for_each(|label| label.lid = lids.next());
    fabric
}

/// Shortest routes by a search from each destination's xbar. Of equally short ones it takes one by the sum of
/// numbers, so that tables are not all alike.
fn tables(subnet: &Subnet) -> Tables {
    let topology = &subnet.topology;
    let mut tables = Tables::empty(topology.xbar_count(), subnet.destinations.slot_count());
    for end in 0..topology.xbar_count() as u32 {
        let mut hops = vec![u32::MAX; topology.xbar_count()];
        hops[end as usize] = 0;
        let mut queue = VecDeque::from([end]);
        while let Some(xbar) = queue.pop_front() {
            for next in topology.channels_of(xbar).map(|channel| topology.head(channel).xbar) {
                if hops[next as usize] == u32::MAX {
                    hops[next as usize] = hops[xbar as usize] + 1;
                    queue.push_back(next);
                }
            }
        }
        for slot in subnet.destinations.slots_of(end) {
            for xbar in (0..topology.xbar_count() as u32).filter(|&xbar| xbar != end) {
                let nearer =
                    |channel: &u32| hops[topology.head(*channel).xbar as usize] < hops[xbar as usize];
                let nearer: Vec<u32> = topology.channels_of(xbar).filter(nearer).collect();
                if let Some(&channel) = nearer.get((slot + xbar) as usize % nearer.len().max(1)) {
                    tables.set_port(xbar, slot, topology.tail(channel).port);
                }
            }
            if let SlotEnd::Host { host, .. } = subnet.destinations.end(slot)
                && let Some((_, port)) = place(subnet, host)
            {
                tables.set_port(end, slot, port);
            }
        }
    }
    tables
}

const ENGINES: [Engine; 1] = [Engine::Minhop];

fn routed(fabric: &Fabric, settings: &Settings) -> (Subnet, UnicastCache) {
    let subnet = Subnet::new(fabric, None).unwrap();
    let routing = Routing::in_one_layer(tables(&subnet));
    let cache = UnicastCache::new(fabric, &subnet, &ENGINES, settings, Engine::Minhop, &routing);
    (subnet, cache)
}

fn cached(fabric: &Fabric) -> UnicastCache {
    routed(fabric, &Settings::default()).1
}

fn reuse(cache: &UnicastCache, fabric: &Fabric) -> Result<Tables, WhyNot> {
    let subnet = Subnet::new(fabric, None).unwrap();
    cache.reuse(fabric, &subnet, &ENGINES, &Settings::default()).map(|reused| reused.routing.tables)
}

/// A fabric without some hosts and xbars, and without the cables of these. Indices move.
fn without(fabric: &Fabric, hosts: &[&str], xbars: &[&str]) -> Fabric {
    let mut left = Fabric::default();
    left.map.version = fabric.map.version;
    let mut index = vec![None; fabric.xbars.len()];
    for (xbar, label) in fabric.xbars.iter().enumerate().filter(|(_, l)| !xbars.contains(&l.name.as_str())) {
        index[xbar] = Some(left.xbars.len() as u32);
        left.map.xbars.push(fabric.map.xbars[xbar]);
        left.xbars.push(label.clone());
    }
    let moved = |at: PortRef| Some(PortRef { xbar: index[at.xbar as usize]?, ..at });
    for (host, label) in fabric.map.hosts.iter().zip(&fabric.hosts) {
        let Some(at) = host.at.map(moved) else { continue };
        if at.is_some() && !hosts.contains(&label.name.as_str()) {
            left.map.hosts.push(mapper_proto::map::Host { at, ..*host });
            left.hosts.push(label.clone());
        }
    }
    let cables =
        fabric.map.cables.iter().filter_map(|cable| Some(Cable::new(moved(cable.a)?, moved(cable.b)?)));
    left.map.cables = cables.collect();
    left
}

/// All entries by the names of their nodes, which must not change while nodes go and come.
fn by_name(fabric: &Fabric, tables: &Tables) -> Vec<(String, String, u8)> {
    let subnet = Subnet::new(fabric, None).unwrap();
    let mut entries = Vec::new();
    for slot in 0..tables.slot_count() as u32 {
        let to = match subnet.destinations.end(slot) {
            SlotEnd::Xbar(xbar) => fabric.xbars[xbar as usize].name.clone(),
            SlotEnd::Host { host, path } => format!("{}+{path}", fabric.hosts[host as usize].name),
        };
        for (xbar, &port) in tables.of_slot(slot).iter().enumerate() {
            entries.push((fabric.xbars[xbar].name.clone(), to.clone(), port));
        }
    }
    entries.sort_unstable();
    entries
}

const TREE: &str = "xgft:h=2;m=3,4;w=1,3";

#[test]
fn a_host_that_reboots_changes_nothing() {
    let fabric = with_lids(TREE);
    let (subnet, cache) = routed(&fabric, &Settings::default());
    let all = tables(&subnet);
    assert_eq!(reuse(&cache, &fabric), Ok(all.clone()));
    let name = fabric.hosts[4].name.clone();
    let down = without(&fabric, &[&name], &[]);
    assert_eq!(down.map.hosts.len(), fabric.map.hosts.len() - 1);
    let kept = by_name(&down, &reuse(&cache, &down).unwrap());
    let was = by_name(&fabric, &all);
    assert!(kept.iter().all(|entry| was.binary_search(entry).is_ok()));
    assert_eq!(kept.len(), was.len() - fabric.xbars.len());
    assert_eq!(reuse(&cache, &fabric), Ok(all), "and it is back");
    // A host that is there and whose cable is out is treated as a missing one.
    let mut out = fabric.clone();
    out.map.hosts[4].at = None;
    assert_eq!(by_name(&out, &reuse(&cache, &out).unwrap()), kept);
}

#[test]
fn a_leaf_that_was_off_gets_its_old_table() {
    let fabric = with_lids(TREE);
    let (subnet, cache) = routed(&fabric, &Settings::default());
    let leaf = fabric.xbars[0].name.clone();
    let down = without(&fabric, &[], &[&leaf]);
    assert_eq!(down.map.hosts.len(), 9);
    let kept = by_name(&down, &reuse(&cache, &down).unwrap());
    let was = by_name(&fabric, &tables(&subnet));
    assert!(kept.iter().all(|entry| was.binary_search(entry).is_ok()));
    assert_eq!(reuse(&cache, &fabric), Ok(tables(&subnet)));
}

#[test]
fn new_nodes_and_cables_drop_it() {
    let fabric = with_lids(TREE);
    let few = without(&fabric, &[&fabric.hosts[2].name], &[]);
    let name = fabric.hosts[2].name.clone();
    assert_eq!(reuse(&cached(&few), &fabric), Err(WhyNot::NewNode { name }));
    let few = without(&fabric, &[], &[&fabric.xbars[1].name]);
    let name = fabric.xbars[1].name.clone();
    assert_eq!(reuse(&cached(&few), &fabric), Err(WhyNot::NewNode { name }));
    let mut few = fabric.clone();
    let cable = few.map.cables.remove(0);
    let port = format!("{} port {}", fabric.xbars[cable.a.xbar as usize].name, cable.a.port);
    assert_eq!(reuse(&cached(&few), &fabric), Err(WhyNot::NewCable { port }));
    let mut few = fabric.clone();
    few.map.hosts[0].at = None;
    assert!(matches!(reuse(&cached(&few), &fabric), Err(WhyNot::NewCable { .. })));
    // Another host in the place of an old one is new, too.
    let mut other = fabric.clone();
    other.hosts[3].port_guid = Some(0xbad);
    let name = fabric.hosts[3].name.clone();
    assert_eq!(reuse(&cached(&fabric), &other), Err(WhyNot::NewNode { name }));
}

#[test]
fn moved_cables_drop_it() {
    let fabric = with_lids(TREE);
    let cache = cached(&fabric);
    let mut moved = fabric.clone();
    let (a, b) = (moved.map.hosts[0].at, moved.map.hosts[4].at);
    (moved.map.hosts[0].at, moved.map.hosts[4].at) = (b, a);
    assert!(matches!(reuse(&cache, &moved), Err(WhyNot::MovedCable { .. })));
    let mut moved = fabric.clone();
    let (first, second) = (moved.map.cables[0], moved.map.cables[1]);
    assert_ne!(first.b.xbar, second.b.xbar);
    moved.map.cables[0] = Cable::new(first.a, second.b);
    moved.map.cables[1] = Cable::new(second.a, first.b);
    assert!(matches!(reuse(&cache, &moved), Err(WhyNot::MovedCable { .. })));
}

#[test]
fn changed_lids_ports_and_masks_drop_it() {
    let fabric = with_lids(TREE);
    let cache = cached(&fabric);
    let mut other = fabric.clone();
    other.hosts[1].lid = Some(999);
    let (name, was) = (fabric.hosts[1].name.clone(), fabric.hosts[1].lid);
    assert_eq!(reuse(&cache, &other), Err(WhyNot::ChangedLid { name, was, is: Some(999) }));
    let mut other = fabric.clone();
    other.xbars[1].lid = Some(999);
    assert!(matches!(reuse(&cache, &other), Err(WhyNot::ChangedLid { is: Some(999), .. })));
    let mut other = fabric.clone();
    other.hosts[3].lid = None;
    let why = reuse(&cache, &other).unwrap_err().to_string();
    assert_eq!(why, "h4 had LID 11 and has no LID");
    let mut other = fabric.clone();
    other.map.xbars[1].ports += 1;
    assert!(matches!(reuse(&cache, &other), Err(WhyNot::OtherPorts { .. })));
    let subnet = Subnet::new(&fabric, Some(1)).unwrap();
    let masked = cache.reuse(&fabric, &subnet, &ENGINES, &Settings::default());
    assert_eq!(masked.unwrap_err(), WhyNot::OtherMask { was: 0, is: 1 });
}

#[test]
fn lost_spines_and_cables_drop_it() {
    let fabric = with_lids(TREE);
    let cache = cached(&fabric);
    let spine = fabric.xbars.last().unwrap().name.clone();
    let down = without(&fabric, &[], &[&spine]);
    assert_eq!(reuse(&cache, &down), Err(WhyNot::LostXbar { name: spine }));
    let mut cut = fabric.clone();
    cut.map.cables.remove(0);
    assert!(matches!(reuse(&cache, &cut), Err(WhyNot::LostCable { .. })));
    // All xbars of a ring are leaves, joined to each other.
    let ring = with_lids("ring:n=5,hosts=1");
    let cache = cached(&ring);
    let mut cut = ring.clone();
    cut.map.cables.remove(0);
    assert!(matches!(reuse(&cache, &cut), Err(WhyNot::LostLeafCable { .. })));
    let down = without(&ring, &[], &[&ring.xbars[2].name]);
    assert!(matches!(reuse(&cache, &down), Err(WhyNot::LostLeafCable { .. })));
}

#[test]
fn other_engines_and_settings_drop_it_but_those_of_nodes_that_are_gone_do_not() {
    let fabric = with_lids(TREE);
    let settings = Settings {
        compute_nodes: Some([3, 4, 5].into()),
        roots: Some(vec![4, 5, 6]),
        order_first: vec![SubnetNode::Host(5), SubnetNode::Host(4), SubnetNode::Xbar(2)],
        ..Settings::default()
    };
    let (subnet, cache) = routed(&fabric, &settings);
    let other = |engines: &[Engine], settings: &Settings| cache.reuse(&fabric, &subnet, engines, settings);
    assert!(other(&ENGINES, &settings).is_ok());
    assert_eq!(other(&[Engine::Updn], &settings).unwrap_err(), WhyNot::OtherSettings);
    for changed in [
        Settings { seed: 2, ..settings.clone() },
        Settings { roots: Some(vec![4, 5]), ..settings.clone() },
        Settings { compute_nodes: None, ..settings.clone() },
        Settings {
            order_first: vec![SubnetNode::Host(4), SubnetNode::Host(5), SubnetNode::Xbar(2)],
            ..settings.clone()
        },
    ] {
        assert_eq!(other(&ENGINES, &changed).unwrap_err(), WhyNot::OtherSettings);
    }
    let down = without(&fabric, &[&fabric.hosts[4].name], &[]);
    let subnet = Subnet::new(&down, None).unwrap();
    let fewer = Settings {
        compute_nodes: Some([3, 4].into()),
        order_first: vec![SubnetNode::Host(4), SubnetNode::Xbar(2)],
        ..settings
    };
    assert!(cache.reuse(&down, &subnet, &ENGINES, &fewer).is_ok());
}

#[test]
fn layers_come_back_too() {
    let fabric = with_lids(TREE);
    let subnet = Subnet::new(&fabric, None).unwrap();
    let xbars = subnet.topology.xbar_count();
    let of: Vec<u8> = (0..xbars * xbars).map(|pair| (pair % 3) as u8).collect();
    let layers = Layers::by_destination(3, 1, of, xbars);
    let routing = Routing { layers: layers.clone(), ..Routing::in_one_layer(tables(&subnet)) };
    let settings = Settings::default();
    let cache = UnicastCache::new(&fabric, &subnet, &ENGINES, &settings, Engine::Lash, &routing);
    let reused = cache.reuse(&fabric, &subnet, &ENGINES, &settings).unwrap();
    assert_eq!((reused.engine, &reused.routing.layers), (Engine::Lash, &layers));
    // Without the first leaf, indices move by one.
    let down = without(&fabric, &[], &[&fabric.xbars[0].name]);
    let left = Subnet::new(&down, None).unwrap();
    let reused = cache.reuse(&down, &left, &ENGINES, &settings).unwrap();
    assert_eq!(reused.routing.layers.of(0, 2), layers.of(1, 3));
    assert_eq!(reused.routing.layers.service_level(4, 5), layers.service_level(5, 6));
}

fn bytes(cache: &UnicastCache) -> Vec<u8> {
    let mut bytes = Vec::new();
    cache.write_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_file_holds_it_all_and_a_foreign_one_is_told() {
    let cache = cached(&with_lids(TREE));
    let bytes = bytes(&cache);
    assert_eq!(UnicastCache::read_from(&mut &bytes[..]).unwrap(), cache);
    let read = |bytes: &[u8]| UnicastCache::read_from(&mut &*bytes).unwrap_err();
    assert!(matches!(read(b""), CacheFileError::Foreign));
    assert!(matches!(read(b"{\"schema\":\"mapper.map/1\"}\n"), CacheFileError::Foreign));
    assert!(matches!(read(&[0xff; 5000]), CacheFileError::Foreign));
    assert!(matches!(read(&bytes[..bytes.len() - 1]), CacheFileError::Damaged));
    assert!(matches!(read(&[&bytes[..], b"x"].concat()), CacheFileError::Damaged));
    assert!(matches!(read(b"mapper.unicast-cache/2 99999999999999 1 0 0\n"), CacheFileError::Damaged));
    let folder = tempfile::tempdir().unwrap();
    assert!(UnicastCache::read(&folder.path().join("none")).unwrap().is_none());
    assert!(matches!(UnicastCache::read(folder.path()), Err(CacheFileError::Unreadable(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Hosts and leaves go and come back, and each time the cache is written to its file and read. Nodes that
    /// are there have their old entries, and in the end all is as it was, bit by bit.
    #[test]
    fn reboots_leave_the_tables_as_they_were(
        cycles in proptest::collection::vec(
            (proptest::collection::vec(0..16_usize, 0..5), proptest::option::of(0..4_usize)), 1..4),
        lmc in 0..3_u8,
    ) {
        let mut fabric = with_lids("xgft:h=2;m=4,4;w=1,2");
        (1_u16..).zip(&mut fabric.hosts).for_each(|(i, label)| label.lid = Some(i * 8));
        (1_u16..).zip(&mut fabric.xbars).for_each(|(i, label)| label.lid = Some(1000 + i));
        let subnet = Subnet::new(&fabric, Some(lmc)).unwrap();
        let all = tables(&subnet);
        let settings = Settings::default();
        let routing = Routing::in_one_layer(all.clone());
        let cache = UnicastCache::new(&fabric, &subnet, &ENGINES, &settings, Engine::Minhop, &routing);
        let mut file = bytes(&cache);
        for (hosts, leaf) in cycles {
            let cache = UnicastCache::read_from(&mut &file[..]).unwrap();
            let hosts: Vec<&str> = hosts.iter().map(|&host| fabric.hosts[host].name.as_str()).collect();
            let leaf: Vec<&str> = leaf.iter().map(|&leaf| fabric.xbars[leaf].name.as_str()).collect();
            let down = without(&fabric, &hosts, &leaf);
            let left = Subnet::new(&down, Some(lmc)).unwrap();
            let reused = cache.reuse(&down, &left, &ENGINES, &settings).unwrap().routing.tables;
            for (host, label) in (0..).zip(&down.hosts) {
                let was = fabric.hosts.iter().position(|held| held.name == label.name).unwrap() as u32;
                let slots = left.destinations.slots_of_host(host);
                for (slot, was) in slots.zip(subnet.destinations.slots_of_host(was)) {
                    for (xbar, label) in (0..).zip(&down.xbars) {
                        let held = fabric.xbars.iter().position(|held| held.name == label.name).unwrap() as u32;
                        prop_assert_eq!(reused.port(xbar, slot), all.port(held, was));
                    }
                }
            }
            let back = cache.reuse(&fabric, &subnet, &ENGINES, &settings).unwrap().routing.tables;
            prop_assert_eq!(&back, &all);
            file = bytes(&cache);
        }
    }

    /// Whatever a file holds, reading it does not panic.
    #[test]
    fn garbled_files_are_refused(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = bytes(&cached(&with_lids("ring:n=3,hosts=1")));
        let at = at.index(bytes.len());
        let same = bytes[at] == byte;
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        prop_assert!(UnicastCache::read_from(&mut &bytes[..]).is_err() || (same && !cut));
    }
}
