//! Settings that an engine says it obeys do decide what it answers.

use super::*;
use crate::engines::torus::TorusStatement;
use crate::fabrics::{Builder, clos, ring};
use mapper_proto::map::{Map, PortRef};

/// Small fabrics, on some of which each setting of each engine makes a difference.
fn fabrics() -> Vec<Subnet> {
    let specs = [
        "clos:hosts=16,ports=4",
        "xgft:h=2;m=4,4;w=1,2",
        "xgft:h=3;m=2,2,2;w=1,2,2",
        "ring:n=5,hosts=1",
        "ring:n=6,hosts=1",
        "torus:x=4,y=4,hosts=2",
        "mesh:x=3,y=3,hosts=2",
    ];
    let named = specs.map(|spec| generate(spec).unwrap());
    let built = [hosts_on_roots(), double_ring(), clos(4, 2, 3), ring(7)].into_iter();
    let maps = built.chain((0..24).map(random)).map(|map| Fabric { map, ..Fabric::default() });
    named.into_iter().chain(maps).map(|fabric| Subnet::new(&fabric, None).unwrap()).collect()
}

/// Two leaves and two roots, with a host at each root, too.
fn hosts_on_roots() -> Map {
    let mut builder = Builder::new(4);
    (0..4).for_each(|xbar| builder.host(xbar));
    (0..2).for_each(|leaf| (2..4).for_each(|root| builder.cable(leaf, root)));
    builder.build()
}

/// A ring of which each two neighbours are joined by two cables.
fn double_ring() -> Map {
    let mut builder = Builder::new(5);
    (0..5).for_each(|xbar| (0..3).for_each(|_| builder.host(xbar)));
    (0..5).for_each(|xbar| (0..2).for_each(|_| builder.cable(xbar, (xbar + 1) % 5)));
    builder.build()
}

/// Settings from which a single one is changed: defaults, OpenSM's balance, and those without which some
/// settings mean nothing.
fn grounds(subnet: &Subnet) -> Vec<Settings> {
    let file = || Engine::Minhop.compute(subnet, &Settings::default()).ok().map(|routing| routing.tables);
    let on_roots = (2..subnet.topology.host_count() as u32).collect();
    let plain = Settings { file: file(), ..Settings::default() };
    let fabric = [
        plain.clone(),
        Settings { file: None, ..plain.clone() },
        Settings { roots: Some(vec![0]), ..plain.clone() },
        Settings { io_nodes: on_roots, ..plain.clone() },
    ];
    let opensm = fabric.clone().map(|ground| Settings { balance: Balance::Opensm, ..ground });
    fabric.into_iter().chain(opensm).collect()
}

/// Values that a setting may have instead of what it is in these settings.
fn changed(setting: Setting, from: &Settings, subnet: &Subnet) -> Vec<Settings> {
    let topology = &subnet.topology;
    let (xbars, hosts) = (topology.xbar_count() as u32, topology.host_count() as u32);
    let tails = || (0..topology.channel_count() as u32).map(|channel| topology.tail(channel));
    let other_tables = |engine: Engine| engine.compute(subnet, &Settings::default()).ok();
    let with = |change: &dyn Fn(&mut Settings)| {
        let mut settings = from.clone();
        change(&mut settings);
        settings
    };
    match setting {
        Setting::Balance => vec![with(&|to| {
            to.balance = if from.balance == Balance::Fabric { Balance::Opensm } else { Balance::Fabric };
        })],
        Setting::Previous => [Engine::Sssp, Engine::Nue, Engine::Dor]
            .into_iter()
            .filter_map(other_tables)
            .map(|other| with(&|to| to.previous = Some(other.tables.clone())))
            .collect(),
        Setting::OrderFirst => {
            vec![with(&|to| to.order_first = (0..hosts).rev().map(SubnetNode::Host).collect())]
        }
        Setting::UncountedPorts => vec![
            with(&|to| to.uncounted_ports = tails().filter(|at| at.port % 2 == 0).collect()),
            with(&|to| to.uncounted_ports = tails().filter(|at| at.xbar == 0).collect()),
        ],
        Setting::PortOrder => vec![with(&|to| {
            to.port_order = (0..xbars).map(|xbar| (xbar, (1..=254).rev().collect())).collect();
        })],
        Setting::HopWeights => {
            let heavy = |is_heavy: &dyn Fn(&PortRef) -> bool| {
                with(&|to| to.hop_weights = tails().filter(|at| is_heavy(at)).map(|at| (at, 9)).collect())
            };
            vec![
                heavy(&|at| at.xbar == 0 && at.port % 2 == 0),
                // These weights make the last xbar unevenly far from all others, so that it is no root.
                heavy(&|at| at.xbar == xbars - 1 && at.port % 2 == 0),
            ]
        }
        Setting::Hops => {
            let rooted = Settings { roots: Some(vec![0]), ..Settings::default() };
            let matrix = hop_matrix(Engine::Updn, subnet, &rooted).ok();
            matrix.map(|hops| with(&|to| to.hops = Some(hops.clone()))).into_iter().collect()
        }
        Setting::Scatter => (1..4).map(|seed| with(&|to| to.scatter = Some(seed))).collect(),
        Setting::PortShifting => vec![with(&|to| to.port_shifting = true)],
        Setting::Roots => {
            (0..xbars.min(4)).map(|root| with(&|to| to.roots = Some(vec![root, xbars - 1]))).collect()
        }
        Setting::Ids => vec![with(&|to| {
            to.ids = (0..xbars).map(|xbar| (xbar, u64::from(xbars - xbar))).collect();
        })],
        Setting::ConnectRoots => vec![with(&|to| to.connect_roots = true)],
        Setting::ComputeNodes => vec![with(&|to| to.compute_nodes = Some((0..hosts.min(2)).collect()))],
        Setting::IoNodes => vec![with(&|to| to.io_nodes = (0..hosts / 2).collect())],
        Setting::MaxReverseHops => vec![with(&|to| to.max_reverse_hops = 2)],
        Setting::FirstLayer => vec![with(&|to| to.first_layer = 3)],
        Setting::MaxLayers => (1..3).map(|most| with(&|to| to.max_layers = Some(most))).collect(),
        Setting::Torus => {
            vec![with(&|to| {
                to.torus = TorusStatement { sizes: Some(vec![9, 9]), ..TorusStatement::default() }
            })]
        }
        Setting::File => vec![with(&|to| {
            to.file = from.file.is_none().then(|| Tables::empty(xbars as usize, 1));
        })],
        Setting::Passes => vec![with(&|to| to.passes = 1)],
    }
}

/// What an engine answers, as far as it matters to frames: its routes, or that it does not serve.
fn answered(engine: Engine, subnet: &Subnet, settings: &Settings) -> String {
    match answer(subnet, &[engine], settings, Proof::Reported) {
        Ok(Answer::Tables(selection)) => {
            let Routing { tables, layers, notes: _ } = selection.routing;
            format!("{:?} {layers:?}", tables.to_ports())
        }
        Ok(Answer::SourceRoutes(selection)) => format!("{:?} {:?}", selection.proof, selection.quality),
        Err(refused) => refused.to_string(),
    }
}

/// Whether a setting changes what an engine answers on a fabric, from some of the grounds with this balance.
fn matters(engine: Engine, setting: Setting, balance: Balance, subnet: &Subnet) -> bool {
    let grounds = grounds(subnet).into_iter().filter(|ground| ground.balance == balance);
    grounds.into_iter().any(|ground| {
        let before = answered(engine, subnet, &ground);
        changed(setting, &ground, subnet).into_iter().any(|other| {
            let mut differing = Setting::ALL.iter().filter(|one| one.differs(&other, &ground));
            assert!(differing.all(|&one| one == setting), "more is changed than {setting:?}");
            before != answered(engine, subnet, &other)
        })
    })
}

#[test]
fn each_setting_that_an_engine_obeys_changes_its_answer_somewhere() {
    let fabrics = fabrics();
    let mut idle = Vec::new();
    for engine in Engine::ALL {
        for balance in [Balance::Fabric, Balance::Opensm] {
            for &setting in engine.obeys(&Settings { balance, ..Settings::default() }) {
                if !fabrics.iter().any(|subnet| matters(engine, setting, balance, subnet)) {
                    idle.push(format!("{setting:?} on {engine} (balance {balance:?})"));
                }
            }
        }
    }
    assert!(idle.is_empty(), "declared to be obeyed, but nothing changes by them: {}", idle.join(", "));
}
