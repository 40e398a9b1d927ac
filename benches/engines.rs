//! Times forwarding tables by engine and size of fabric, anew and after one failed cable, and their proof.
//!
//! The time of tables is without that of building the subnet, and the proof is timed by itself. A smoke run
//! (without `--bench`, or with `--test`) takes only the smallest fabrics.

#![expect(clippy::unwrap_used, reason = "a benchmark stops at what it did not expect")]

mod smoke;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mapper_fabric::generate;
use mapper_routing::engines::{Engine, Settings};
use mapper_routing::{ProofRules, Subnet, prove_tables};

/// A small fabric for smoke runs, the fabrics that are timed, and the engines for them.
struct Kind {
    smoke: &'static str,
    fabrics: &'static [&'static str],
    engines: &'static [Engine],
}

const KINDS: [Kind; 2] = [
    // These are full trees of 648, 3,456 and 27,648 hosts.
    Kind {
        smoke: "xgft:h=2;m=18,36;w=1,18",
        fabrics: &[
            "xgft:h=2;m=18,36;w=1,18",
            "xgft:h=3;m=12,12,24;w=1,12,12",
            "xgft:h=3;m=24,24,48;w=1,24,24",
        ],
        engines: &[Engine::Minhop, Engine::Updn, Engine::Dnup, Engine::Ftree, Engine::Lash, Engine::Dor],
    },
    Kind {
        smoke: "torus:x=4,y=4,z=4,hosts=1",
        fabrics: &["torus:x=6,y=5,z=5,hosts=16", "torus:x=16,y=16,z=16,hosts=1"],
        engines: &[Engine::Torus],
    },
];

fn timed(c: &mut Criterion) {
    let smoke = smoke::is_smoke_run();
    for kind in &KINDS {
        let fabrics = if smoke { std::slice::from_ref(&kind.smoke) } else { kind.fabrics };
        for spec in fabrics {
            time_engines(c, spec, kind.engines);
        }
    }
}

fn time_engines(c: &mut Criterion, spec: &str, engines: &[Engine]) {
    let fabric = generate(spec).unwrap();
    let subnet = Subnet::new(&fabric, None).unwrap();
    let mut cut = fabric;
    cut.map.cables.remove(cut.map.cables.len() / 3);
    let cut = Subnet::new(&cut, None).unwrap();
    let rules = ProofRules { max_hops: Settings::MAX_HOPS, xbar_destinations: false };
    let mut group = c.benchmark_group(spec);
    group.sample_size(10);
    for engine in engines {
        let settings = Settings::default();
        group.bench_function(engine.name(), |b| {
            b.iter(|| engine.compute(black_box(&subnet), &settings));
        });
        let before = engine.compute(&subnet, &settings).unwrap().tables;
        let settings = Settings { previous: Some(before), ..settings };
        group.bench_function(format!("{engine}, a cable failed"), |b| {
            b.iter(|| engine.compute(black_box(&cut), &settings));
        });
        let after = engine.compute(&cut, &settings).unwrap();
        group.bench_function(format!("{engine}, a cable failed, proof"), |b| {
            b.iter(|| prove_tables(&cut, black_box(&after.tables), &after.layers, &rules));
        });
    }
    group.finish();
}

criterion_group!(benches, timed);
criterion_main!(benches);
