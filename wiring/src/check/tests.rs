//! Mistakes that people make, and what is told of them.

mod fumbler;

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::generate;
use mapper_formats::{self as formats, FileFormat};
use mapper_proto::map::{Cable, PortRef};
use proptest::prelude::*;

use super::*;
use crate::sockets::{Socket, Wiring};
use fumbler::fumbled;

/// The nodes of a plan and its cables.
fn wirings(plan: &Fabric, found: &Fabric) -> Wirings {
    Wirings::of(&Matching::new(plan, found, |_| true))
}

/// The plan's fabric, cabled otherwise. Hosts stand before xbars, as [`Wirings::of`] puts them.
fn cabled(plan: &Fabric, wiring: &Wiring) -> Fabric {
    let hosts = plan.hosts.len() as u32;
    let port = |socket: Socket| PortRef { xbar: socket.node - hosts, port: socket.port as u8 };
    let mut fabric = plan.clone();
    fabric.map.cables.clear();
    fabric.map.hosts.iter_mut().for_each(|host| host.at = None);
    for (a, b) in wiring.cables() {
        match (a.node < hosts, b.node < hosts) {
            (true, false) => fabric.map.hosts[a.node as usize].at = Some(port(b)),
            (false, false) => fabric.map.cables.push(Cable::new(port(a), port(b))),
            _ => panic!("no cable joins two hosts here"),
        }
    }
    fabric.map.cables.sort_unstable();
    fabric
}

/// Two rails of a small cluster, whose machines have an adapter in each.
fn two_rails() -> Fabric {
    let mut fabric = generate("cluster:leaves=4,spines=3,hosts=32,cables=2,rails=2").unwrap();
    let half = fabric.hosts.len() / 2;
    for (index, label) in fabric.hosts.iter_mut().enumerate() {
        label.description = format!("n{} mlx5_{}", index % half, index / half);
    }
    fabric
}

/// The fabric after everything was done that is advised, and how many moves that took.
fn mended(plan: &Fabric, found: &Fabric) -> (Fabric, usize) {
    let (_, wirings, actions) = recognised(plan, found);
    let mut wiring = wirings.found.clone();
    actions.iter().for_each(|action| action.apply(&mut wiring));
    (cabled(plan, &wiring), actions.len())
}

fn plans() -> [Fabric; 5] {
    let generated = [
        "clos:hosts=64,ports=8",
        "xgft:h=2;m=8,6;w=1,6;ports=24",
        "torus:x=4,y=4,hosts=4;ports=12",
        "dragonfly:a=4,p=2,h=2",
    ];
    let [a, b, c, d] = generated.map(|spec| generate(&spec.replace(";ports=12", ",ports=12")).unwrap());
    [a, b, c, d, two_rails()]
}

proptest! {
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn what_is_advised_mends_the_fabric_in_no_more_moves_than_mistakes(seed: u64, which in 0..5_usize, count in 0..8_usize) {
        let plan = &plans()[which];
        let (found, mistakes) = fumbled(plan, count, seed, true);
        let (whole, moves) = mended(plan, &found);
        prop_assert!(PlanCheck::of(plan, &whole).is_as_planned());
        prop_assert!(moves <= mistakes.len(), "{} moves for {:?}:\n{}", moves, mistakes, PlanCheck::of(plan, &found));
    }

    #[test]
    fn mistakes_on_top_of_each_other_are_mended_too(seed: u64, which in 0..5_usize, count in 0..6_usize) {
        let plan = &plans()[which];
        let (found, _) = fumbled(plan, count, seed, false);
        let (whole, _) = mended(plan, &found);
        prop_assert!(PlanCheck::of(plan, &whole).is_as_planned());
    }
}

#[test]
fn the_same_mistake_at_most_xbars_is_no_other_numbering_of_ports() {
    let plan = &plans()[1];
    let (found, mistakes) = fumbled(plan, 6, 15_619_940_341_253_195_204, true);
    assert_eq!(mistakes.iter().filter(|(kind, _)| *kind == "shifted-plugs").count(), 4, "of six leaves");
    let (_, moves) = mended(plan, &found);
    assert_eq!(moves, 6, "{}", PlanCheck::of(plan, &found));
}

#[test]
fn a_fabric_whose_ports_count_from_another_number_is_checked_by_that() {
    let plan = &plans()[1];
    for wrong in [0, 1, 3] {
        let mut found = plan.clone();
        found.map.hosts.iter_mut().for_each(|host| host.at.iter_mut().for_each(|at| at.port -= 1));
        found.map.cables = found
            .map
            .cables
            .iter()
            .map(|cable| [cable.a, cable.b])
            .map(|ends| {
                let [a, b] = ends.map(|end| PortRef { port: end.port - 1, ..end });
                Cable::new(a, b)
            })
            .collect();
        found.map.cables.truncate(plan.map.cables.len() - wrong);
        assert_eq!(PlanCheck::of(plan, &found).differences.len(), wrong, "{}", PlanCheck::of(plan, &found));
    }
}

#[test]
fn of_ten_thousand_cables_fifty_mistakes_are_named_and_none_invented() {
    let plan = generate("clos:hosts=3456,ports=24").unwrap();
    assert_eq!(plan.map.cables.len() + plan.map.hosts.len(), 10_368);
    for seed in 0..3 {
        let (found, mistakes) = fumbled(&plan, 50, seed, true);
        assert_eq!(mistakes.len(), 50);
        let check = PlanCheck::of(&plan, &found);
        let told = check.differences.iter().map(|difference| {
            (
                difference.kind,
                difference.ends.iter().map(|end| end.node.name.clone()).collect::<BTreeSet<_>>(),
            )
        });
        let names = wirings(&plan, &plan);
        let made = mistakes.iter().map(|(kind, nodes)| {
            (*kind, nodes.iter().map(|&node| names.called(node).to_owned()).collect::<BTreeSet<_>>())
        });
        let (mut told, mut made): (Vec<_>, Vec<_>) = (told.collect(), made.collect());
        told.sort();
        made.sort();
        assert_eq!(told, made, "seed {seed}");
    }
}

/// The differences of a plan as severity and words.
fn told(plan: &Fabric, found: &Fabric) -> Vec<(&'static str, String)> {
    let differences = PlanCheck::of(plan, found).differences;
    differences.iter().map(|difference| (difference.severity.name(), difference.to_string())).collect()
}

#[test]
fn what_hurts_most_comes_first_and_says_what_to_do() {
    let plan = generate("clos:hosts=8,ports=4").unwrap();
    let mut found = plan.clone();
    // The cable of h1 is out, one uplink of leaf2 is out, and h7 and h8 are in each other's place.
    found.map.hosts[0].at = None;
    found.map.cables.retain(|cable| (cable.a.xbar, cable.a.port) != (1, 3));
    (found.map.hosts[6].at, found.map.hosts[7].at) = (found.map.hosts[7].at, found.map.hosts[6].at);
    let expected = [
        ("cuts-off", "plug in a cable from h1 to leaf1:1 (cuts off h1)"),
        (
            "bandwidth",
            "plug in a cable from leaf2:3 to spine1:2 (leaf2 and spine1 have 0 of 1 cable between them)",
        ),
        ("label", "swap the plugs at leaf4:1 and leaf4:2: the first is now cabled to h8, the second to h7"),
    ];
    assert_eq!(told(&plan, &found), expected.map(|(severity, words)| (severity, words.to_owned())));
    let json = PlanCheck::of(&plan, &found).json();
    assert_eq!(
        (&json["schema"], &json["differences"][0]["severity"]),
        (&json!("mapper.plan/1"), &json!("cuts-off"))
    );
    assert_eq!(json["differences"][0]["ends"][1], json!({ "node": "leaf1", "name": "leaf1", "port": 1 }));
}

#[test]
fn rails_and_nodes_that_are_gone_foreign_or_called_otherwise_are_told() {
    let plan = two_rails();
    let mut found = plan.clone();
    let half = plan.hosts.len() / 2;
    (found.map.hosts[3].at, found.map.hosts[3 + half].at) =
        (found.map.hosts[3 + half].at, found.map.hosts[3].at);
    let [(severity, words)] = &told(&plan, &found)[..] else { panic!("one move mends it") };
    assert_eq!(*severity, "cuts-off");
    assert!(words.contains("rail") && words.contains("n3 mlx5_0") && words.contains("n3 mlx5_1"), "{words}");

    let plan = generate("clos:hosts=32,ports=8").unwrap();
    let mut found = plan.clone();
    (found.hosts[5].name, found.hosts[5].description) = ("guest".to_owned(), "guest".to_owned());
    found.map.hosts[5].mac = mapper_proto::Mac::from_position(500);
    let [(severity, words)] = &told(&plan, &found)[..] else { panic!("one name is another") };
    assert_eq!(
        (*severity, &words[..]),
        ("label", "call guest at leaf2:2 h6, or exchange it: so the plan calls what is there")
    );

    // A leaf that is off: its hosts are in no map, and it alone is told.
    let mut found = plan.clone();
    found.map.hosts.truncate(28);
    found.hosts.truncate(28);
    found.map.xbars[7].tag = None;
    let leaf = 7;
    found.map.cables.retain(|cable| cable.a.xbar != leaf && cable.b.xbar != leaf);
    let shift = |end: &mut PortRef| end.xbar -= u32::from(end.xbar > leaf);
    found.map.cables.iter_mut().for_each(|cable| {
        shift(&mut cable.a);
        shift(&mut cable.b);
    });
    found.map.xbars.remove(leaf as usize);
    found.xbars.remove(leaf as usize);
    let [(severity, words)] = &told(&plan, &found)[..] else { panic!("{:?}", told(&plan, &found)) };
    assert_eq!(*severity, "cuts-off");
    assert!(
        words.starts_with("switch leaf8 on, and see that its 8 cables are in, the first from leaf8:1 to h29"),
        "{words}"
    );
    assert!(
        words.ends_with("(cuts off h29, h30, h31, h32)") || words.contains("cuts off h29, h30, h31 and h32"),
        "{words}"
    );
}

#[test]
fn a_list_of_cables_that_was_written_is_the_plan_of_its_fabric() {
    for spec in ["clos:hosts=8,ports=4", "torus:x=3,y=3,hosts=2", "ring:n=3"] {
        let fabric = generate(spec).unwrap();
        let text = formats::write(&fabric, FileFormat::Csv);
        let plan = formats::parse("plan.csv", &text).unwrap();
        assert_eq!(plan.map.cables.len(), fabric.map.cables.len(), "{text}");
        let check = PlanCheck::of(&plan, &fabric);
        assert!(check.is_as_planned(), "{spec}: {check}");
    }
}

#[test]
fn without_names_a_plan_is_matched_by_structure_and_says_so() {
    let plan = generate("clos:hosts=32,ports=8").unwrap();
    let mut found = plan.clone();
    for (index, (label, xbar)) in found.xbars.iter_mut().zip(&mut found.map.xbars).enumerate() {
        (label.name, label.description) = (format!("S-{index:016x}"), "SwitchX".to_owned());
        xbar.tag = Some(0xe41d_2d03_0000_0000 + index as u64);
    }
    for (index, (label, host)) in found.hosts.iter_mut().zip(&mut found.map.hosts).enumerate() {
        (label.name, label.description) = (format!("H-{index:016x}"), String::new());
        host.mac = mapper_proto::Mac::from_position(0x10_0000 + index as u32);
    }
    let check = PlanCheck::of(&plan, &found);
    assert!(check.is_as_planned(), "{check}");
    assert_eq!(check.matched_by, MatchedBy::Structure);
    let kinds = |found: &Fabric| {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        PlanCheck::of(&plan, found).differences.iter().for_each(|it| *kinds.entry(it.kind).or_default() += 1);
        kinds
    };
    found.map.cables.remove(9);
    assert_eq!(kinds(&found), BTreeMap::from([("missing-cable", 1)]));
}
