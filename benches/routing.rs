//! Times one host's routes, their proof, and the union of all hosts' routes.
//!
//! Before the timed part the bench prints the size of a host's table, and how evenly the union of all hosts'
//! tables loads the channels.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops at what it did not expect")]

mod smoke;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, criterion_group, criterion_main};
use mapper_fabric::generate;
use mapper_routing::{
    ChannelLoads, DeadCables, HostRoutes, Orientation, RouteOptions, Topology, UnionProof, prove_host, repair,
};

const FABRICS: [&str; 4] = [
    "clos:hosts=128,ports=16",
    "clos:hosts=1024,ports=16",
    "clos:hosts=10000,ports=36",
    "random:xbars=1500,ports=36,hosts=10000,links=18000,seed=1",
];

fn timed(c: &mut Criterion) {
    let options = RouteOptions::default();
    for spec in FABRICS {
        let map = generate(spec).unwrap().map;
        let topology = Topology::from_map(&map).unwrap();
        let orientation = Orientation::new(&topology, false);
        let table = HostRoutes::compute(&topology, &orientation, 3, &options).unwrap();
        let mut union = UnionProof::new(&topology);
        let mut group = c.benchmark_group(spec);
        group.sample_size(20);
        group.bench_function("topology", |b| b.iter(|| Topology::from_map(black_box(&map))));
        group.bench_function("orientation", |b| b.iter(|| Orientation::new(black_box(&topology), false)));
        group.bench_function("orientation, non-Clos", |b| {
            b.iter(|| Orientation::new(black_box(&topology), true));
        });
        group.bench_function("8 routes a destination", |b| {
            b.iter(|| HostRoutes::compute(&topology, &orientation, black_box(3), &options));
        });
        group.bench_function("proof", |b| b.iter(|| prove_host(&topology, &orientation, black_box(&table))));
        let dead = DeadCables::from(BTreeSet::from([table
            .routes_to(&topology, 0)
            .chain(table.routes_to(&topology, 100))
            .last()
            .unwrap()[0]]));
        group.bench_function("repair for one cable", |b| {
            b.iter(|| repair(&topology, &orientation, &table, black_box(&dead)));
        });
        group.bench_function("adding to the union", |b| b.iter(|| union.add_table(black_box(&table))));
        group.bench_function("search for a cycle", |b| b.iter(|| black_box(&union).prove_acyclic()));
        group.finish();
    }
}

fn quality(_: &mut Criterion) {
    let options = RouteOptions::default();
    println!("| fabric | edge forwarding index | mean load | dependencies | all hosts, s |");
    println!("|---|---|---|---|---|");
    // A smoke run leaves out the large fabrics, where the tables of all 10,000 hosts take half a minute each.
    let smoke = smoke::is_smoke_run();
    let fabrics = if smoke { &FABRICS[..2] } else { &FABRICS[..] };
    for &spec in fabrics.iter().chain(&["random:xbars=32,ports=16,hosts=128,links=128,seed=1"]) {
        let topology = Topology::from_map(&generate(spec).unwrap().map).unwrap();
        let orientation = Orientation::new(&topology, false);
        let mut loads = ChannelLoads::new(&topology);
        let mut union = UnionProof::new(&topology);
        let started = Instant::now();
        for host in 0..topology.host_count() as u32 {
            let table = HostRoutes::compute(&topology, &orientation, host, &options).unwrap();
            prove_host(&topology, &orientation, &table).unwrap();
            union.add_table(&table).unwrap();
            loads.add_table(&table);
        }
        union.prove_acyclic().unwrap();
        println!(
            "| {spec} | {:.1} | {:.1} | {} | {:.2} |",
            loads.edge_forwarding_index(),
            loads.mean(),
            union.dependency_count(),
            started.elapsed().as_secs_f64()
        );
    }
}

criterion_group!(benches, quality, timed);
criterion_main!(benches);
