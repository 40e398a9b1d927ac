//! What a kernel was found to hold is told as it is, and held against what it was told.

use super::*;

#[test]
fn the_segments_that_a_kernel_holds_are_told_and_where_it_was_told_others() {
    let ring = Ring::new(4, |_| ABLE);
    let Node { kernel, objects, .. } = &ring.nodes[0];
    let told = kernel.segments_told();
    let held = told.held(objects);
    for node in 1..4 {
        let to_node: Vec<_> = held.iter().filter(|it| it.to == mac(node)).collect();
        let has = |ip: IpAddr| to_node.iter().any(|it| it.addresses == [ip]);
        assert!(has(v4(node)) && has(v6(node)), "{to_node:?}");
        for it in to_node {
            let first = segments::elements(&it.segments).unwrap()[0];
            assert_eq!(first, Element::FirstPort(it.port));
        }
    }
    assert_eq!(told.differences(objects), []);

    // Somebody has changed the nexthops of one way, which may have several places in its group.
    let mut changed = objects.clone();
    let alien: Vec<Ipv6Addr> = vec!["fcbb:bb00:f101:9:fff4::".parse().unwrap()];
    let nexthop = changed.nexthops.values().next().unwrap().clone();
    let Nexthop::Segments { segments: before, .. } = nexthop.clone() else { panic!("{nexthop:?}") };
    for it in changed.nexthops.values_mut().filter(|it| **it == nexthop) {
        *it = Nexthop::Segments { interface: interface(1), segments: alien.clone() };
    }
    let differences = told.differences(&changed);
    let lacking: Vec<_> = differences.iter().filter(|it| !it.is_held).collect();
    let beside: Vec<_> = differences.iter().filter(|it| it.is_held).collect();
    assert_eq!((lacking.len(), &lacking[0].segments.segments), (1, &before), "{differences:?}");
    assert_eq!((beside.len(), &beside[0].segments.segments), (1, &alien), "{differences:?}");
    assert_eq!(beside[0].segments.to, lacking[0].segments.to);

    // Somebody has the first segment leave by the other port, and then nowhere.
    let mut changed = objects.clone();
    let key = RouteKey { table: Table::Main, to: Element::FirstPort(1).prefix() };
    let other = changed.routes[&RouteKey { to: Element::FirstPort(2).prefix(), ..key }].clone();
    changed.routes.insert(key, other);
    let differences = told.differences(&changed);
    let ports = |is_held| -> BTreeSet<u8> {
        let some = differences.iter().filter(|it| it.is_held == is_held);
        some.map(|it| it.segments.port).collect()
    };
    assert_eq!((ports(false), ports(true)), ([1].into(), [2].into()), "{differences:?}");
    changed.routes.remove(&key);
    let differences = told.differences(&changed);
    assert!(differences.iter().all(|it| !it.is_held && it.segments.port == 1), "{differences:?}");
    assert!(!differences.is_empty() && told.held(&changed).iter().all(|it| it.port == 2));
    assert_eq!(told.held(&Objects::default()), []);
    // That is a route of the crossbar's, too.
    let [differs] = &told.objects_that_differ(&changed)[..] else { panic!("it is one route") };
    assert_eq!(
        (differs.how, &differs.change),
        (Difference::Missing, &Change::PutRoute(key, objects.routes[&key].clone()))
    );
    assert!(told.differences(&Objects::default()).iter().all(|it| !it.is_held));
}

#[test]
fn what_a_crossbar_obeys_and_what_goes_by_the_destination_is_held_against_what_was_told() {
    let whole = |ring: &Ring| {
        let Node { kernel, objects, .. } = &ring.nodes[0];
        assert_eq!(kernel.segments_told().objects_that_differ(objects), []);
        (kernel.segments_told(), objects.clone())
    };
    // Somebody has an element lead out of another port, takes away the rule of a port, and adds a route.
    let (told, mut changed) = whole(&Ring::new(4, |_| ABLE));
    let of = |element: Element| RouteKey { table: Table::Segments, to: element.prefix() };
    let other = changed.routes[&of(Element::Port(2))].clone();
    changed.routes.insert(of(Element::Port(1)), other.clone());
    let rule = changed.rules.pop_first().unwrap();
    changed.routes.insert(of(Element::Port(9)), other);
    let differ = told.objects_that_differ(&changed);
    let hows = differ.iter().map(|it| (it.how, it.change.clone())).collect::<Vec<_>>();
    assert_eq!(hows.len(), 3, "{hows:?}");
    assert!(hows.contains(&(Difference::Missing, Change::PutRule(rule))));
    assert!(hows.contains(&(Difference::Extra, Change::RemoveRoute(of(Element::Port(9))))));
    assert!(hows.iter().any(|(how, change)| {
        *how == Difference::Other
            && matches!(change, Change::PutRoute(key, _) if *key == of(Element::Port(1)))
    }));

    // Segments that this machine sends by are told apart, so nothing of these is told twice.
    let (told, mut changed) = whole(&Ring::new(4, |_| ABLE));
    changed.nexthops.clear();
    changed.groups.clear();
    changed.routes.retain(|_, route| !matches!(route, Route::Group { .. }));
    assert_eq!(told.objects_that_differ(&changed), []);

    let mut plain = Ring::new(3, |_| PLAIN);
    plain.complete(&map(3, 2), &[0, 1, 2]);
    let (told, mut changed) = whole(&plain);
    let (&key, _) = changed.routes.iter().find(|(_, route)| matches!(route, Route::Group { .. })).unwrap();
    changed.routes.remove(&key);
    let [differs] = &told.objects_that_differ(&changed)[..] else { panic!("it is one route") };
    assert!(matches!(&differs.change, Change::PutRoute(of, _) if *of == key), "{differs:?}");
}
