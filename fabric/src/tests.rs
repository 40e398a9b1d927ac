//! What each kind of fabric must be.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn fabric(spec: &str) -> Fabric {
    let fabric = generate(spec).unwrap();
    check(&fabric);
    fabric
}

/// How many hosts, xbars and cables between xbars a fabric has.
fn counts(spec: &str) -> (usize, usize, usize) {
    let map = fabric(spec).map;
    (map.hosts.len(), map.xbars.len(), map.cables.len())
}

/// Every port exists and has one cable; names and addresses are unique and short.
fn check(fabric: &Fabric) {
    let map = &fabric.map;
    let cabled = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let mut ports = BTreeSet::new();
    for end in cabled.chain(map.hosts.iter().filter_map(|host| host.at)) {
        let xbar = &map.xbars[end.xbar as usize];
        assert!((1..=xbar.ports).contains(&end.port), "port {end:?} of {xbar:?}");
        assert!(ports.insert(end), "{end:?} has two cables");
    }
    assert!(map.cables.is_sorted() && map.cables.iter().all(|cable| cable.a <= cable.b));
    assert_eq!(map.hosts.len(), fabric.hosts.len());
    assert_eq!(map.xbars.len(), fabric.xbars.len());
    let hosts = fabric.hosts.iter().map(|label| &label.name);
    let names: BTreeSet<_> = hosts.chain(fabric.xbars.iter().map(|label| &label.name)).collect();
    assert_eq!(names.len(), map.hosts.len() + map.xbars.len(), "names are unique");
    assert!(names.iter().all(|name| name.len() <= 12), "names are short");
    let macs: BTreeSet<_> = map.hosts.iter().map(|host| host.mac).collect();
    assert_eq!(macs.len(), map.hosts.len(), "addresses are unique");
    let tags: BTreeSet<_> = map.xbars.iter().map(|xbar| xbar.tag).collect();
    assert_eq!(tags.len(), map.xbars.len(), "tags are unique");
}

/// Hops from an xbar to each other; `None` where no cable leads.
fn distances(map: &mapper_proto::map::Map, from: usize) -> Vec<Option<usize>> {
    let mut neighbours = vec![Vec::new(); map.xbars.len()];
    for cable in &map.cables {
        neighbours[cable.a.xbar as usize].push(cable.b.xbar as usize);
        neighbours[cable.b.xbar as usize].push(cable.a.xbar as usize);
    }
    let mut distance = vec![None; map.xbars.len()];
    distance[from] = Some(0);
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(xbar) = queue.pop_front() {
        for &next in &neighbours[xbar] {
            if distance[next].is_none() {
                distance[next] = distance[xbar].map(|hops| hops + 1);
                queue.push_back(next);
            }
        }
    }
    distance
}

fn diameter(fabric: &Fabric) -> usize {
    let all = (0..fabric.map.xbars.len()).flat_map(|from| distances(&fabric.map, from));
    all.map(|hops| hops.expect("connected")).max().unwrap()
}

#[test]
fn clos_has_the_counts_of_the_textbook() {
    assert_eq!(counts("clos:hosts=128,ports=16"), (128, 24, 128));
    assert_eq!(counts("clos:hosts=8,ports=4"), (8, 6, 8));
    assert_eq!(counts("clos:hosts=16,ports=16"), (16, 1, 0));
    assert_eq!(counts("clos:hosts=1,ports=2"), (1, 1, 0));
    assert_eq!(counts("clos:hosts=648,ports=36"), (648, 54, 648));
    // Three levels have 128, 128 and 64 xbars.
    assert_eq!(counts("clos:hosts=1024,ports=16"), (1024, 320, 2048));
    // The last of 13 leaves has only 4 hosts, and keeps a cable to each of 7 spines.
    assert_eq!(counts("clos:hosts=100,ports=16"), (100, 20, 104));
    // Half as many spines as leaves, each with two cables to each leaf.
    assert_eq!(counts("clos:hosts=16,ports=8"), (16, 6, 16));
    // There are 57 leaves in four pods, as many xbars in the middle, and half as many at the top.
    assert_eq!(counts("clos:hosts=1024,ports=36"), (1024, 143, 2 * 57 * 18));
    assert_eq!(diameter(&fabric("clos:hosts=1024,ports=36")), 4);
    assert_eq!(diameter(&fabric("clos:hosts=128,ports=16")), 2);
    assert_eq!(diameter(&fabric("clos:hosts=1024,ports=16")), 4);
    assert_eq!(fabric("clos:hosts=10000,ports=36").map.hosts.len(), 10_000);
}

#[test]
fn xgft_has_the_counts_of_its_formula() {
    assert_eq!(counts("xgft:h=3;m=12,12,24;w=1,12,12"), (3456, 720, 6912));
    assert_eq!(counts("xgft:h=1;m=4;w=1"), (4, 1, 0));
    assert_eq!(counts("xgft:h=2;m=4,3;w=1,2"), (12, 5, 6));
    assert!(fabric("xgft:h=3;m=12,12,24;w=1,12,12").map.xbars.iter().all(|xbar| xbar.ports == 24));
    assert_eq!(diameter(&fabric("xgft:h=3;m=2,3,4;w=1,2,3")), 4);
}

#[test]
fn grids_have_the_counts_and_diameters_of_theirs() {
    assert_eq!(counts("torus:x=6,y=5,z=5,hosts=16"), (2400, 150, 450));
    assert_eq!(counts("mesh:x=6,y=5,z=5,hosts=16"), (2400, 150, 125 + 120 + 120));
    assert_eq!(counts("hypercube:d=7,hosts=8"), (1024, 128, 448));
    assert_eq!(counts("ring:n=5,hosts=1"), (5, 5, 5));
    assert_eq!(counts("torus:x=2,hosts=0"), (0, 2, 1));
    assert_eq!(counts("ring:n=1"), (1, 1, 0));
    assert_eq!(counts("hypercube:d=0"), (1, 1, 0));
    assert_eq!(diameter(&fabric("torus:x=6,y=5,z=5")), 3 + 2 + 2);
    assert_eq!(diameter(&fabric("mesh:x=3,y=4")), 2 + 3);
    assert_eq!(diameter(&fabric("hypercube:d=4")), 4);
}

#[test]
fn a_direction_has_the_same_port_everywhere() {
    for cable in fabric("torus:x=4,y=3,z=3,hosts=2").map.cables {
        let (low, high) = (cable.a.port.min(cable.b.port), cable.a.port.max(cable.b.port));
        assert!(low % 2 == 1 && high == low + 1, "{cable:?}");
    }
    for cable in fabric("hypercube:d=3").map.cables {
        assert_eq!(cable.a.port, cable.b.port);
        assert_eq!(cable.a.xbar ^ cable.b.xbar, 1 << (cable.a.port - 1));
    }
}

#[test]
fn dragonfly_has_one_global_cable_between_any_two_groups() {
    let dragonfly = fabric("dragonfly:a=8,p=4,h=4");
    assert_eq!(counts("dragonfly:a=8,p=4,h=4"), (1056, 264, 33 * 28 + 33 * 32 / 2));
    assert_eq!(diameter(&dragonfly), 3);
    let group = |xbar: u32| xbar / 8;
    let global = dragonfly.map.cables.iter().map(|cable| (group(cable.a.xbar), group(cable.b.xbar)));
    let pairs: BTreeSet<_> = global.filter(|(a, b)| a != b).collect();
    assert_eq!(pairs.len(), 33 * 32 / 2);
    // Three groups of two xbars: a cable in each group, and two between each pair of groups.
    assert_eq!(counts("dragonfly:a=2,p=1,h=2,groups=3"), (6, 6, 3 + 6));
    assert_eq!(counts("dragonfly:a=3,p=1,h=0"), (3, 3, 3));
}

#[test]
fn now_has_the_counts_of_the_paper() {
    for (subclusters, hosts, xbars, cables) in [(1, 36, 13, 64), (2, 70, 26, 128), (3, 100, 40, 193)] {
        let now = fabric(&format!("now:subclusters={subclusters}"));
        assert_eq!((now.map.hosts.len(), now.map.xbars.len()), (hosts, xbars));
        assert_eq!(now.map.cables.len() + hosts, cables);
        assert!(now.map.xbars.iter().all(|xbar| xbar.ports == 8));
        diameter(&now);
    }
}

#[test]
fn random_is_as_asked_and_connected() {
    assert_eq!(counts("random:xbars=128,ports=36,hosts=1024,links=600,seed=1"), (1024, 128, 600));
    diameter(&fabric("random:xbars=128,ports=36,hosts=1024,links=600,seed=1"));
    let again = fabric("random:xbars=128,ports=36,hosts=1024,links=600");
    assert_eq!(fabric("random:xbars=128,ports=36,hosts=1024,links=600,seed=1"), again, "same seed");
    assert_ne!(fabric("random:xbars=128,ports=36,hosts=1024,links=600,seed=2"), again, "other seed");
    // All ports are in use in the first; in the second one cable takes the only port of both xbars.
    assert_eq!(counts("random:xbars=4,ports=4,hosts=2,links=7"), (2, 4, 7));
    assert_eq!(counts("random:xbars=2,ports=1,hosts=0,links=1"), (0, 2, 1));
}

#[test]
fn errors_name_the_key_and_what_was_expected() {
    for (spec, error) in [
        ("klos:hosts=1", "there is no kind of fabric `klos`; expected one of clos, cluster, xgft"),
        ("clos", "clos: key `hosts` is missing; expected a number from 1 to 200000"),
        ("clos:hosts=x,ports=4", "clos: key `hosts` is `x`; expected a number from 1 to 200000"),
        ("clos:hosts=4,ports=256", "key `ports` is `256`; expected a number from 2 to 255"),
        ("clos:hosts=9,ports=3", "key `ports` is `3`; expected at least 4 for 9 hosts"),
        ("clos:hosts=4,ports=4,port=4", "there is no key `port`; expected hosts, ports"),
        ("clos:hosts=4,hosts=4", "key `hosts` is given twice"),
        ("clos:4", "key `4` is ``; expected key=value"),
        ("clos:hosts=4,5,ports=4", "key `hosts` is `a list`"),
        ("clos:hosts=200000,ports=4", "xbars; expected at most 65535"),
        ("xgft:h=2;m=4,4;w=2,2", "key `w` is `2`; expected 1 first"),
        ("xgft:h=2;m=4;w=1,2", "key `m` is `4`; expected 2 values"),
        (
            "xgft:h=16;m=255,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255;\
          w=1,255,255,255,255,255,255,255,255,255,255,255,255,255,255,255",
            "key `ports` is `510`",
        ),
        ("torus:x=9,z=2", "key `z` is `given`; expected y as well"),
        ("torus:x=3,hosts=3,ports=4", "key `ports` is `4`; expected at least the 5 that are used"),
        ("mesh:x=65535,y=65535,z=65535", "xbars; expected at most 65535"),
        ("random:xbars=2,ports=2,hosts=3,links=1", "expected at most the 2 ports that the links leave"),
        ("random:xbars=1,ports=4,hosts=0,links=1", "key `links` is `1`; expected fewer, or more xbars"),
        ("now:subclusters=4", "key `subclusters` is `4`; expected a number from 1 to 3"),
        ("dragonfly:a=2,p=1,h=1,groups=4", "key `groups` is `4`; expected a number from 1 to 3"),
    ] {
        let message = generate(spec).unwrap_err().to_string();
        assert!(message.contains(error), "{spec}: {message}");
    }
}

#[test]
fn a_spec_is_told_by_its_kind() {
    assert!(is_spec("clos:hosts=1") && is_spec("now"));
    assert!(!is_spec("clos.map") && !is_spec("") && !is_spec("file:clos"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_fabrics_are_sound_and_connected(
        xbars in 1_u64..12, ports in 2_u64..10, density in 0.0..1.0_f64, seed: u64,
    ) {
        let free = xbars * ports / 2 - (xbars - 1);
        let links = if xbars == 1 { 0 } else { xbars - 1 + (free as f64 * density * 0.8) as u64 };
        let hosts = xbars * ports - 2 * links;
        let spec = format!("random:xbars={xbars},ports={ports},hosts={hosts},links={links},seed={seed}");
        let random = fabric(&spec);
        prop_assert_eq!(random.map.cables.len() as u64, links);
        diameter(&random);
    }

    #[test]
    fn clos_fabrics_are_sound_and_connected(hosts in 1_u64..300, ports in 4_u64..20) {
        diameter(&fabric(&format!("clos:hosts={hosts},ports={ports}")));
    }

    /// No level is narrower than the leaves, and from each xbar at the top all leaves are below.
    #[test]
    fn clos_fabrics_reach_all_leaves_from_each_spine(hosts in 1_u64..600, ports in 4_u64..20) {
        let map = fabric(&format!("clos:hosts={hosts},ports={ports}")).map;
        let mut level: Vec<usize> = vec![usize::MAX; map.xbars.len()];
        map.hosts.iter().for_each(|host| level[host.at.unwrap().xbar as usize] = 0);
        let mut cabled = vec![Vec::new(); map.xbars.len()];
        for cable in &map.cables {
            cabled[cable.a.xbar as usize].push(cable.b.xbar as usize);
            cabled[cable.b.xbar as usize].push(cable.a.xbar as usize);
        }
        let neighbours = |xbar: usize| cabled[xbar].iter().copied();
        let mut row: Vec<usize> = (0..level.len()).filter(|&xbar| level[xbar] == 0).collect();
        let leaves = row.len();
        let mut height = 0;
        loop {
            let above: BTreeSet<usize> =
                row.iter().flat_map(|&xbar| neighbours(xbar)).filter(|&xbar| level[xbar] == usize::MAX).collect();
            if above.is_empty() {
                break;
            }
            height += 1;
            above.iter().for_each(|&xbar| level[xbar] = height);
            row = above.into_iter().collect();
            prop_assert!(2 * row.len() >= leaves);
        }
        for top in row {
            let mut below = BTreeSet::from([top]);
            for _ in 0..height {
                below = below.iter().flat_map(|&xbar| {
                    let level = &level;
                    neighbours(xbar).filter(move |&next| level[next] + 1 == level[xbar])
                }).collect();
            }
            prop_assert_eq!(below.len(), leaves);
        }
    }

    #[test]
    fn no_text_breaks_it(kind in prop::sample::select(KINDS.map(|kind| kind.0).to_vec()), keys in "[a-z0-9=,;]{0,40}") {
        // Any text gives a fabric or an error, and never a panic.
        let _ = generate(&format!("{kind}:{keys}"));
        let _ = generate(&keys);
    }
}

#[test]
fn every_kind_is_listed_for_people_and_its_example_can_be_made() {
    let listed: Vec<&str> = SHAPES.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(listed.len(), KINDS.len());
    for ((kind, _), line) in KINDS.iter().zip(listed) {
        let spec = line.split_whitespace().next().unwrap().replace(['[', ']'], "");
        let spec = spec.replace(",ports=N", "").replace(";ports=N", "");
        assert!(spec.starts_with(kind), "{spec}");
        assert!(generate(&spec).is_ok(), "{spec}: {:?}", generate(&spec).err());
    }
}
