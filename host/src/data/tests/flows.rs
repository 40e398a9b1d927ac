//! How flows are spread over the routes to a host, and when they move to another.

use super::*;
use crate::routes::RoutePath;

#[test]
fn flows_are_spread_over_all_routes_and_each_keeps_to_its_own() {
    let map = map("clos:hosts=32,ports=8");
    let (own, other) = (map.hosts[0].mac, map.hosts[31].mac);
    let mut path = data_path(&map, 0);
    let mut counts = BTreeMap::new();
    for flow in 0..4000 {
        let frame = frame(own, other, flow);
        let route = route_of(&mut path, NOW, &frame);
        assert_eq!(route, route_of(&mut path, NOW + Duration::from_secs(100), &frame));
        *counts.entry(route).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), table(&map, 0).paths_to(31).count(), "all routes carry something");
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|count| (800..=1200).contains(count)), "{counts:?}");
}

#[test]
fn a_route_that_returns_gets_its_share_of_flows_that_were_silent() {
    let map = map("clos:hosts=8,ports=4");
    let (own, other) = (map.hosts[0].mac, map.hosts[7].mac);
    let whole = table(&map, 0);
    let dead = whole.paths_to(7).next().unwrap().hops[1];
    let mut path = data_path(&without_cable(&map, dead), 0);
    let routes = |path: &mut DataPath, now| -> BTreeSet<_> {
        (0..200).map(|flow| route_of(path, now, &frame(own, other, flow))).collect()
    };
    assert_eq!(routes(&mut path, NOW).len(), 1);
    path.install(whole);
    assert_eq!(routes(&mut path, NOW).len(), 1, "flows in use stay where they are");
    assert_eq!(routes(&mut path, NOW + Duration::from_secs(2)).len(), 2);
    assert_eq!(path.status().counts[DataCount::FlowsMoved], 0);
}

#[test]
fn paths_are_in_use_while_they_carry_frames_and_keep_their_id_over_a_swap() {
    let map = map("clos:hosts=8,ports=4");
    let own = map.hosts[0].mac;
    let mut path = data_path(&map, 0);
    assert_eq!(path.paths_in_use(NOW, 64), []);
    outbound(&mut path, NOW, &frame(own, map.hosts[7].mac, 1));
    let later = NOW + Duration::from_millis(700);
    outbound(&mut path, later, &frame(own, map.hosts[6].mac, 1));
    let both = path.paths_in_use(later, 64);
    assert_eq!(both.len(), 2);
    assert_eq!((both[0].to, both[1].to), (map.hosts[6].mac, map.hosts[7].mac));
    let (route, data) = outbound(&mut data_path(&map, 0), NOW, &frame(own, map.hosts[7].mac, 1)).remove(0);
    assert_eq!(both[1].longest_bytes, route.len() + data.len());
    assert_eq!(path.paths_in_use(later, 1), both[..1], "the one used last first");
    let (to, RoutePath { hops, .. }) = path.path_in_table(both[1].id).unwrap();
    assert_eq!(to, map.hosts[7].mac);
    assert_eq!(hops.len(), both[1].way.there.hops());
    let mut newer = map.clone();
    newer.version.counter += 1;
    path.install(table(&newer, 0));
    for before in &both {
        match path.path_in_table(before.id) {
            Some((_, found)) => assert_eq!(found.hops.len(), before.way.there.hops()),
            None => assert!(!path.paths_in_use(later, 64).contains(before)),
        }
    }
    assert_eq!(path.paths_in_use(later + Duration::from_secs(1), 64), []);
    assert_eq!(path.path_in_table(both[0].id), None);
    assert_eq!(path.status().counts[DataCount::RoutesInUse], 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever cables go and return, no frame takes a route that the table does not have, and a flow in
    /// use keeps its route as long as the table has it.
    #[test]
    fn flows_stay_on_routes_of_the_table_and_move_only_if_they_must(
        swaps in proptest::collection::vec(any::<prop::sample::Index>(), 1..6),
        flows in proptest::collection::vec(any::<u16>(), 1..40),
    ) {
        let whole = map("clos:hosts=16,ports=8");
        let own = whole.hosts[0].mac;
        let mut path = data_path(&whole, 0);
        let mut tables = vec![table(&whole, 0)];
        for swap in &swaps {
            let cable = whole.cables[swap.index(whole.cables.len())];
            tables.push(table(&without_cable(&whole, cable.a), 0));
        }
        let mut before: BTreeMap<(usize, u16), Vec<u8>> = BTreeMap::new();
        for table in tables {
            path.install(Arc::clone(&table));
            for (host, to) in whole.hosts.iter().enumerate().skip(1) {
                let routes: BTreeSet<_> = table
                    .host(to.mac)
                    .into_iter()
                    .flat_map(|host| table.paths_to(host))
                    .map(|path| path.way.there.as_bytes().to_vec())
                    .collect();
                for &flow in &flows {
                    let now = route_of(&mut path, NOW, &frame(own, to.mac, flow));
                    prop_assert!(routes.contains(&now));
                    if let Some(before) = before.insert((host, flow), now.clone())
                        && routes.contains(&before)
                    {
                        prop_assert_eq!(before, now);
                    }
                }
            }
        }
    }
}
