//! Tests that route generated fabrics from all their hosts, and prove the union of these routes.

use mapper_fabric::generate;
use mapper_routing::{
    Attachment, ChannelLoads, HostRoutes, Orientation, RouteOptions, Shape, Topology, UnionProof, prove_host,
};

/// Routes a fabric from all its hosts, proves the routes, and returns the shape that was recognized.
fn route_all(spec: &str, non_clos: bool) -> Shape {
    let topology = Topology::from_map(&generate(spec).unwrap().map).unwrap();
    let orientation = Orientation::new(&topology, non_clos);
    let mut union = UnionProof::new(&topology);
    let mut loads = ChannelLoads::new(&topology);
    // How many cables between xbars a route crosses, summed over all pairs. All routes of a pair are equally
    // long.
    let mut crossings = 0;
    let hosts = topology.host_count() as u32;
    for host in 0..hosts {
        assert!(matches!(topology.attachment(host), Attachment::Port(_)), "{spec}");
        let table = HostRoutes::compute(&topology, &orientation, host, &RouteOptions::default()).unwrap();
        let proof = prove_host(&topology, &orientation, &table).unwrap();
        let others = (0..hosts).filter(|&to| to != host && topology.connected(host, to)).count();
        assert_eq!((proof.reachable, proof.unreachable), (others, hosts as usize - 1 - others), "{spec}");
        union.add_table(&table).unwrap();
        loads.add_table(&table);
        for to in (0..hosts).filter(|&to| to != host && topology.connected(host, to)) {
            let mut lengths = table.routes_to(&topology, to).map(|hops| hops.len());
            let length = lengths.next().unwrap();
            assert!(lengths.all(|other| other == length), "{spec}");
            crossings += length - 1;
        }
    }
    union.prove_acyclic().unwrap();
    let counted = loads.mean() * topology.channel_count() as f64;
    assert!((counted - crossings as f64).abs() < 1e-6 * counted, "{spec}: {counted} of {crossings}");
    orientation.shape().clone()
}

#[test]
fn clos_networks_are_recognised() {
    for spec in ["clos:hosts=128,ports=16", "clos:hosts=100,ports=8", "xgft:h=3;m=3,3,4;w=1,2,3"] {
        assert!(matches!(route_all(spec, false), Shape::Clos { .. }), "{spec}");
        assert!(matches!(route_all(spec, true), Shape::UpDown { .. }), "{spec}");
    }
}

#[test]
fn other_networks_are_routed_up_and_down() {
    for spec in [
        "ring:n=7,hosts=2",
        "mesh:x=4,y=2,hosts=2",
        "hypercube:d=3,hosts=2",
        "dragonfly:a=4,p=2,h=2",
        "random:xbars=24,ports=12,hosts=60,links=50,seed=3",
    ] {
        assert!(matches!(route_all(spec, false), Shape::UpDown { .. }), "{spec}");
    }
    route_all("now:subclusters=3", false);
}

#[test]
fn tori_and_meshes_are_routed_by_direction_order() {
    for (spec, sizes) in [
        ("torus:x=4,y=3,z=3,hosts=2", vec![4, 3, 3]),
        ("torus:x=6,y=5,hosts=1", vec![6, 5]),
        ("mesh:x=4,y=3,hosts=2", vec![4, 3]),
        ("mesh:x=3,y=3,z=3,hosts=1", vec![3, 3, 3]),
        // Each two dimensions of a hypercube are a ring of four.
        ("hypercube:d=4,hosts=2", vec![4, 4]),
    ] {
        assert_eq!(route_all(spec, false), Shape::Grid { sizes }, "{spec}");
        assert!(matches!(route_all(spec, true), Shape::UpDown { .. }), "{spec}");
    }
}

#[test]
fn clusters_with_service_adapters_on_their_spines_are_folded_clos_networks() {
    for spec in [
        "cluster:leaves=6,spines=4,hosts=48,service=spines",
        "cluster:leaves=6,spines=4,hosts=48,service=every,missing=4,seed=2",
        "cluster:leaves=5,spines=3,hosts=40,cables=2,uneven=4,service=every,seed=3",
        "cluster:leaves=4,spines=2,hosts=32,rails=2,service=spines,missing=1",
        "cluster:leaves=8,spines=4,hosts=64,service=every,storage=2,seed=4",
    ] {
        assert_eq!(route_all(spec, false), Shape::Clos { tiers: 2 }, "{spec}");
        assert!(matches!(route_all(spec, true), Shape::UpDown { .. }), "{spec}");
    }
}
