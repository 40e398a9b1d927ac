//! Mistakes that people make, and what is told of them.

use std::collections::{BTreeMap, BTreeSet};

use mapper_fabric::generate;
use mapper_proto::map::{Cable, PortRef};
use proptest::prelude::*;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::formats::{self, FileFormat};
use crate::wiring::sockets::{NodeKind, Socket, Wiring};

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

/// Makes mistakes of all kinds, no two at the same plugs if they are to be `apart`.
struct Fumbler<'a> {
    wirings: &'a Wirings,
    wiring: Wiring,
    used: BTreeSet<Socket>,
    apart: bool,
    random: ChaCha8Rng,
}

/// A mistake: its kind, and the nodes that it is about.
type Mistake = (&'static str, BTreeSet<u32>);

impl Fumbler<'_> {
    fn free_sockets(&self, xbar: u32) -> Vec<Socket> {
        let NodeKind::Xbar { ports: [ports, _] } = self.wirings.nodes[xbar as usize].kind else {
            return Vec::new();
        };
        let all = (1..=i16::from(ports)).map(|port| Socket { node: xbar, port });
        let is_free = |socket: &Socket| {
            self.wiring.far(*socket).is_none() && self.wirings.planned.far(*socket).is_none()
        };
        all.filter(is_free).collect()
    }

    /// Takes sockets for a mistake, or refuses if another has them.
    fn take(&mut self, sockets: &[Socket]) -> bool {
        let fars: Vec<Socket> = sockets.iter().filter_map(|&socket| self.wiring.far(socket)).collect();
        let all: Vec<Socket> = sockets.iter().copied().chain(fars).collect();
        if self.apart && all.iter().any(|socket| self.used.contains(socket)) {
            return false;
        }
        self.used.extend(all);
        true
    }

    fn plug(&mut self) -> Socket {
        let cables: Vec<(Socket, Socket)> = self.wiring.cables().collect();
        let &(a, b) = cables.choose(&mut self.random).unwrap();
        // The end at an xbar: nobody moves the machine's end elsewhere but by mistaking rails.
        if self.wirings.is_host(a.node) { b } else { a }
    }

    fn xbar(&mut self) -> u32 {
        let hosts =
            self.wirings.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Host { .. })).count();
        self.random.random_range(hosts as u32..self.wirings.nodes.len() as u32)
    }

    /// Makes a mistake of some kind, unless its plugs are taken.
    fn fumble(&mut self) -> Option<Mistake> {
        match self.random.random_range(0..12) {
            0 => self.swap_plugs(),
            1 => self.move_plug(),
            2 => self.forget_cable(),
            3 => self.add_cable(),
            4 => self.turn_xbar(advice::Turn::UpsideDown, "upside-down"),
            5 => self.turn_xbar(advice::Turn::Halves, "swapped-halves"),
            6 => self.turn_xbar(advice::Turn::Rows, "swapped-rows"),
            7 => self.exchange_xbars(),
            8 => self.shift_plugs(advice::Turn::OneTooHigh),
            9 => self.shift_plugs(advice::Turn::OneTooLow),
            10 => self.exchange_machines(),
            _ => self.mistake_rails(),
        }
    }

    fn swap_plugs(&mut self) -> Option<Mistake> {
        let (one, other) = (self.plug(), self.plug());
        let fars = [self.wiring.far(one)?, self.wiring.far(other)?];
        let is_one = one == other || fars[0] == other;
        (!is_one && self.take(&[one, other])).then(|| {
            advice::Action::Swap { plugs: [one, other], fars }.apply(&mut self.wiring);
            ("swapped-plugs", [one, other, fars[0], fars[1]].map(|socket| socket.node).into())
        })
    }

    fn move_plug(&mut self) -> Option<Mistake> {
        let from = self.plug();
        let free = self.free_sockets(from.node);
        let (&to, far) = (free.choose(&mut self.random)?, self.wiring.far(from)?);
        self.take(&[from, to]).then(|| {
            advice::Action::Move { from, to, far }.apply(&mut self.wiring);
            ("moved-plug", [from.node, far.node].into())
        })
    }

    fn forget_cable(&mut self) -> Option<Mistake> {
        let one = self.plug();
        let far = self.wiring.far(one)?;
        self.take(&[one]).then(|| {
            self.wiring.disconnect(one);
            ("missing-cable", [one.node, far.node].into())
        })
    }

    fn add_cable(&mut self) -> Option<Mistake> {
        let (x, y) = (self.xbar(), self.xbar());
        let (x, y) = (*self.free_sockets(x).first()?, *self.free_sockets(y).last()?);
        (x.node != y.node && self.take(&[x, y])).then(|| {
            self.wiring.connect(x, y);
            ("extra-cable", [x.node, y.node].into())
        })
    }

    /// Puts all plugs of an xbar into other ports of it, by a rule that needs an even count of ports.
    fn turn_xbar(&mut self, turn: advice::Turn, name: &'static str) -> Option<Mistake> {
        let (xbar, ports) = self.xbar_and_ports()?;
        let sockets = self.plugged(xbar);
        (ports % 2 == 0 && sockets.len() > 5 && self.take(&sockets))
            .then(|| self.turn(xbar, turn, ports, name))
    }

    /// Puts all plugs of an xbar one port off. The port at the edge must be free.
    fn shift_plugs(&mut self, turn: advice::Turn) -> Option<Mistake> {
        let (xbar, ports) = self.xbar_and_ports()?;
        let edge = if turn == advice::Turn::OneTooHigh { 1 } else { ports };
        let sockets = self.plugged(xbar);
        let has_room = sockets.iter().all(|socket| socket.port != edge);
        (has_room && sockets.len() > 5 && self.take(&sockets))
            .then(|| self.turn(xbar, turn, ports, "shifted-plugs"))
    }

    fn turn(&mut self, xbar: u32, turn: advice::Turn, count: i16, name: &'static str) -> Mistake {
        advice::Action::Turn { xbar, turn, first: 1, count }.apply(&mut self.wiring);
        (name, [xbar].into())
    }

    /// Some xbar, and how many ports it has.
    fn xbar_and_ports(&mut self) -> Option<(u32, i16)> {
        let xbar = self.xbar();
        match self.wirings.nodes[xbar as usize].kind {
            NodeKind::Xbar { ports: [ports, _] } => Some((xbar, ports.into())),
            NodeKind::Host { .. } => None,
        }
    }

    /// The sockets of a node that hold plugs.
    fn plugged(&self, node: u32) -> Vec<Socket> {
        self.wiring.of_node(node).map(|(socket, _)| socket).collect()
    }

    fn exchange_xbars(&mut self) -> Option<Mistake> {
        let (one, other) = (self.xbar(), self.xbar());
        let nodes = [one.min(other), one.max(other)];
        let sockets = nodes.map(|node| self.plugged(node)).concat();
        let joined =
            sockets.iter().any(|&at| self.wiring.far(at).is_some_and(|far| nodes.contains(&far.node)));
        (one != other && !joined && sockets.len() > 8 && self.take(&sockets)).then(|| {
            advice::Action::ExchangeXbars(nodes[0], nodes[1]).apply(&mut self.wiring);
            ("exchanged-xbars", nodes.into())
        })
    }

    fn exchange_machines(&mut self) -> Option<Mistake> {
        let mut machines: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (node, about) in (0..).zip(&self.wirings.nodes) {
            if let NodeKind::Host { machine, .. } = about.kind {
                machines.entry(machine).or_default().push(node);
            }
        }
        // If two machines with one interface each are exchanged, that is the same as two swapped plugs.
        let machines: Vec<Vec<u32>> = machines.into_values().filter(|nodes| nodes.len() > 1).collect();
        let (one, other) = (machines.choose(&mut self.random)?, machines.choose(&mut self.random)?);
        let nodes: BTreeSet<u32> = one.iter().chain(other).copied().collect();
        let sockets: Vec<Socket> = nodes.iter().map(|&node| Socket { node, port: 0 }).collect();
        let all_cabled = sockets.iter().all(|&socket| self.wiring.far(socket).is_some());
        (one != other && all_cabled && self.take(&sockets)).then(|| {
            advice::Action::ExchangeMachines(one.clone(), other.clone()).apply(&mut self.wiring);
            ("exchanged-hosts", nodes)
        })
    }

    /// Swaps the plugs at the two interfaces of a machine.
    fn mistake_rails(&mut self) -> Option<Mistake> {
        let hosts = self.wirings.nodes.iter().enumerate().filter_map(|(node, about)| match about.kind {
            NodeKind::Host { machine, rail: 1 } => Some([machine, node as u32]),
            _ => None,
        });
        let nodes = *hosts.collect::<Vec<_>>().choose(&mut self.random)?;
        let plugs = nodes.map(|node| Socket { node, port: 0 });
        let fars = [self.wiring.far(plugs[0])?, self.wiring.far(plugs[1])?];
        self.take(&plugs).then(|| {
            advice::Action::Swap { plugs, fars }.apply(&mut self.wiring);
            ("rail", nodes.into())
        })
    }
}

/// Makes `count` mistakes. Returns the fabric with them, and which they are.
fn fumbled(plan: &Fabric, count: usize, seed: u64, apart: bool) -> (Fabric, Vec<Mistake>) {
    let wirings = wirings(plan, plan);
    let random = ChaCha8Rng::seed_from_u64(seed);
    let wiring = wirings.found.clone();
    let mut fumbler = Fumbler { wirings: &wirings, wiring, used: BTreeSet::new(), apart, random };
    let mut mistakes = Vec::new();
    for _ in 0..100 * count {
        if mistakes.len() < count {
            mistakes.extend(fumbler.fumble());
        }
    }
    (cabled(plan, &fumbler.wiring), mistakes)
}

/// The fabric after everything was done that is advised, and how many moves that took.
fn mended(plan: &Fabric, found: &Fabric) -> (Fabric, usize) {
    let wirings = wirings(plan, found);
    let mut wiring = wirings.found.clone();
    let actions = advice::find(&wirings);
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
