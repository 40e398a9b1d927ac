//! Forwarding tables by engine and size of fabric, anew and after one failed cable.
//!
//! Tables alone, from a built subnet. A smoke run (`--test`) leaves out the largest fabric.

#![expect(clippy::unwrap_used, reason = "a benchmark stops at what it did not expect")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use mapper::routing::Subnet;
use mapper::routing::engines::{Engine, Settings};
use mapper_sim::topology::generate;

/// Full trees of 648, 3,456 and 27,648 hosts.
const FABRICS: [&str; 3] =
    ["xgft:h=2;m=18,36;w=1,18", "xgft:h=3;m=12,12,24;w=1,12,12", "xgft:h=3;m=24,24,48;w=1,24,24"];

/// The engines that are timed.
const ENGINES: [Engine; 4] = [Engine::Minhop, Engine::Updn, Engine::Dnup, Engine::Dor];

fn timed(c: &mut Criterion) {
    let smoke = std::env::args().any(|argument| argument == "--test");
    for spec in if smoke { &FABRICS[..2] } else { &FABRICS[..] } {
        let fabric = generate(spec).unwrap();
        let subnet = Subnet::new(&fabric, None).unwrap();
        let mut cut = fabric;
        cut.map.cables.remove(cut.map.cables.len() / 3);
        let cut = Subnet::new(&cut, None).unwrap();
        let mut group = c.benchmark_group(*spec);
        group.sample_size(10);
        for engine in ENGINES {
            let settings = Settings::default();
            group.bench_function(engine.name(), |b| {
                b.iter(|| engine.compute(black_box(&subnet), &settings));
            });
            let before = engine.compute(&subnet, &settings).unwrap().tables;
            let settings = Settings { previous: Some(before), ..settings };
            group.bench_function(format!("{engine}, a cable failed"), |b| {
                b.iter(|| engine.compute(black_box(&cut), &settings));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, timed);
criterion_main!(benches);
