//! Systems taken apart, and what is refused.

use proptest::prelude::*;

use super::*;

/// A chassis of a leaf and a spine board, of which the leaf has a second variant.
const CHASSIS: &str = "SYSTEM LEAF,LEAF:4x\n\nNODE SW 8 MT47396 U1\n 1 -5G-> P1\n 2 -> P2\n 3 -> UP1\n\n\
    SYSTEM LEAF:12x\n\nNODE SW 8 MT47396 U1\n 1 -12x-10G-> WIDE\n 3 -> UP1\n\n\
    SYSTEM SPINE\n\nNODE SW 8 MT47396 U1\n 1 -> D1\n 2 -> D2\n\n\
    TOPSYSTEM Big,Alias\n\nspine/U1=isChaBma\n\nSUBSYSTEM LEAF leaf1\n P1 -> L1/P1\n P2 -> L1/P2\n\
     WIDE -> L1/P1-12x\n UP1 -4x-10G-> spine D1\n\nSUBSYSTEM LEAF leaf2\n P1 -> L2/P1\n UP1 -> spine D2\n\n\
    SUBSYSTEM SPINE spine\n D1 -4x-10G-> leaf1 UP1\n D2 -> leaf2 UP1\n";

const ADAPTER: &str = "TOPSYSTEM Card\nNODE CA 2 MT23108 U1 # an adapter\n 1 -> P1\n 2 -> P2\n";

fn read(topo: &str) -> Result<Fabric, String> {
    let mut systems = Systems::default();
    systems.add(CHASSIS).unwrap();
    systems.add(ADAPTER).unwrap();
    parse(topo, &systems).map_err(|wrong| format!("{}: {}", wrong.place, wrong.problem))
}

fn xbars(fabric: &Fabric) -> Vec<&str> {
    fabric.xbars.iter().map(|label| label.name.as_str()).collect()
}

#[test]
fn systems_are_taken_apart_to_chips() {
    let fabric = read(
        "# a rack\nAlias B1\n  L1/P1 -4x-2.5G-> Card H-1 P2\n  L1/P2 -4x-10G-> Card H-2 P1\n  L2/P1 -> Card H-3 P1\n",
    )
    .unwrap();
    assert_eq!(xbars(&fabric), ["B1/leaf1/U1", "B1/leaf2/U1", "B1/spine/U1"]);
    let hosts: Vec<_> = fabric.hosts.iter().map(|label| (label.name.as_str(), label.node_port)).collect();
    assert_eq!(hosts, [("H-1/U1", 2), ("H-2/U1", 1), ("H-3/U1", 1)]);
    let speeds: Vec<String> = fabric
        .map
        .hosts
        .iter()
        .map(|host| fabric.link_speeds.get(&host.at.unwrap()).map_or_else(String::new, ToString::to_string))
        .collect();
    // The leaf itself says 5G of its port 1; where the far end says less of the cable, that counts.
    assert_eq!(speeds, ["4xSDR", "4xQDR", "4xDDR"]);
    let cables: Vec<_> =
        fabric.map.cables.iter().map(|cable| (cable.a.xbar, cable.b.xbar, cable.b.port)).collect();
    assert_eq!(cables, [(0, 2, 1), (1, 2, 2)]);
}

#[test]
fn boards_come_in_variants_and_may_be_missing() {
    let fabric = read("Big B1 CFG: leaf1=12x, leaf2=X\n  L1/P1-12x -> Card H-1 P1\n").unwrap();
    assert_eq!(xbars(&fabric), ["B1/leaf1/U1", "B1/spine/U1"]);
    let speed = fabric.link_speeds[&fabric.map.hosts[0].at.unwrap()];
    assert_eq!(speed.to_string(), "12xQDR");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (topo, error) in [
        (
            "Big B1\n  L9/P1 -> Card H-1 P1\n",
            "2, column 3: system `B1` has no connector `L9/P1`; expected one of L1/P1, L1/P2",
        ),
        (
            "Big B1\n  L1/P1 -> Cord H-1 P1\n",
            "2, column 12: there is no description of system `Cord`; expected a .ibnl file",
        ),
        ("Big B1\n  L1/P1 -> Card H-1\n", "2: expected a system"),
        ("  L1/P1 -> Card H-1 P1\n", "1: expected a system"),
        ("Big B1\n  L1/P1 -3x-> Card H-1 P1\n", "2: expected a system"),
        ("Big B1 CFG: leaf9=12x\n", "1: `B1` has no board `leaf9`; its boards: leaf1, leaf2, spine"),
        ("Big B1 CFG: leaf1=9x\n", "1: system Big has no board `LEAF:9x`, which `B1/leaf1` is"),
        ("Big B1 CFG: leaf1\n", "1: expected a variant for each board behind CFG"),
        ("Big B1\n  L1/P1 -> Big B2 L1/P1\nCard B2\n", "3: `B2` is a Card here, but a Big at line 2"),
        (
            "Big B1\n  L1/P1 -> Card H-1 P1\n  L1/P1 -> Card H-2 P1\n",
            "3: `B1/leaf1/U1` port 1 is cabled to `H-2/U1` port 1 here, but to `H-1/U1` port 1 at line 2",
        ),
    ] {
        let message = read(topo).unwrap_err();
        assert!(message.contains(error), "{topo:?}: {message}");
    }
}

#[test]
fn descriptions_that_are_wrong_are_refused() {
    for (text, error) in [
        ("SYSTEM LEAF\n", "1: no TOPSYSTEM"),
        ("TOPSYSTEM a\nTOPSYSTEM b\n", "2: a second TOPSYSTEM"),
        ("NODE SW 8 X U1\n", "1: expected `SYSTEM`"),
        ("TOPSYSTEM a\nNODE SW 0 X U1\n", "2: expected `SYSTEM`"),
        ("TOPSYSTEM a\n1 -> P1\n", "2: expected `SYSTEM`"),
    ] {
        let wrong = ibnl::parse(text).unwrap_err();
        assert!(format!("{}: {}", wrong.place, wrong.problem).contains(error), "{text:?}");
    }
    // A board that holds itself has no end.
    let mut systems = Systems::default();
    systems.add("SYSTEM A\nSUBSYSTEM A again\n\nTOPSYSTEM Loop\nSUBSYSTEM A a\n").unwrap();
    let wrong = parse("Loop L\n", &systems).unwrap_err();
    assert!(wrong.problem.contains("boards too deep"), "{}", wrong.problem);
}

proptest! {
    #[test]
    fn no_edit_makes_a_reader_panic(
        cut in any::<prop::sample::Index>(),
        length in 0_usize..20,
        put in "[ -~\n]{0,12}",
    ) {
        let edited = |text: &str| {
            let start = cut.index(text.len());
            let end = text.len().min(start + length);
            format!("{}{put}{}", &text[..start], &text[end..])
        };
        let mut systems = Systems::default();
        let _ = systems.add(&edited(CHASSIS));
        let _ = systems.add(ADAPTER);
        let topo = "Big B1 CFG: leaf2=12x\n  L1/P1 -4x-10G-> Card H-1 P1\n  L1/P2 -> Card H-2 P2\n";
        let _ = parse(topo, &systems);
        let _ = read(&edited(topo));
    }
}
