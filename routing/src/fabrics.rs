//! Small fabrics for the tests of this module.

use mapper_proto::Mac;
use mapper_proto::map::{Cable, Host, Map, MapVersion, PortRef, Xbar, host_type};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A map of xbars whose ports are taken in order, from 1.
pub(crate) struct Builder {
    map: Map,
    next_port: Vec<u8>,
}

impl Builder {
    pub(crate) fn new(xbars: usize) -> Self {
        let version = MapVersion { mac: Mac::from_position(7), counter: 5 };
        let xbar = Xbar { ports: 64, tag: Some(0), ports_known: true };
        let map = Map { version, xbars: vec![xbar; xbars], ..Map::default() };
        Self { map, next_port: vec![1; xbars] }
    }

    fn port(&mut self, xbar: u32) -> PortRef {
        let port = self.next_port[xbar as usize];
        self.next_port[xbar as usize] += 1;
        PortRef { xbar, port }
    }

    pub(crate) fn host(&mut self, xbar: u32) {
        let at = self.port(xbar);
        self.host_at(Some(at));
    }

    pub(crate) fn host_at(&mut self, at: Option<PortRef>) {
        let mac = Mac::from_position(self.map.hosts.len() as u32 + 1);
        self.map.hosts.push(Host { mac, level: 1, host_type: host_type::ETHERNET, at });
    }

    pub(crate) fn cable(&mut self, x: u32, y: u32) {
        let (a, b) = (self.port(x), self.port(y));
        self.map.cables.push(Cable::new(a, b));
    }

    pub(crate) fn build(mut self) -> Map {
        self.map.cables.sort_unstable();
        self.map
    }
}

/// A two-level Clos: leaves first, every leaf cabled to every spine.
pub(crate) fn clos(leaves: u32, spines: u32, hosts_per_leaf: u32) -> Map {
    let mut builder = Builder::new((leaves + spines) as usize);
    for leaf in 0..leaves {
        (0..hosts_per_leaf).for_each(|_| builder.host(leaf));
        (0..spines).for_each(|spine| builder.cable(leaf, leaves + spine));
    }
    builder.build()
}

/// A three-level fat tree of `radix`-port xbars: `radix` pods, every pod `radix / 2` leaves and as
/// many xbars above them.
pub(crate) fn fat_tree(radix: u32) -> Map {
    let half = radix / 2;
    let (leaves, core) = (radix * half, 2 * radix * half);
    let mut builder = Builder::new((core + half * half) as usize);
    for pod in 0..radix {
        for leaf in pod * half..(pod + 1) * half {
            (0..half).for_each(|_| builder.host(leaf));
            (0..half).for_each(|middle| builder.cable(leaf, leaves + pod * half + middle));
        }
        for middle in 0..half {
            (0..half).for_each(|up| builder.cable(leaves + pod * half + middle, core + middle * half + up));
        }
    }
    builder.build()
}

/// A ring with one host an xbar.
pub(crate) fn ring(xbars: u32) -> Map {
    let mut builder = Builder::new(xbars as usize);
    (0..xbars).for_each(|xbar| builder.host(xbar));
    (0..xbars).for_each(|xbar| builder.cable(xbar, (xbar + 1) % xbars));
    builder.build()
}

/// A random fabric of a few xbars: perhaps in parts, with parallel cables, cables from an xbar to
/// itself, and xbars without hosts.
pub(crate) fn random(seed: u64) -> Map {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let xbars = rng.random_range(1..=14);
    let mut builder = Builder::new(xbars as usize);
    for _ in 0..rng.random_range(2..=20) {
        builder.host(rng.random_range(0..xbars));
    }
    for _ in 0..rng.random_range(0..=3 * xbars) {
        builder.cable(rng.random_range(0..xbars), rng.random_range(0..xbars));
    }
    let mut map = builder.build();
    // Ports do not come in the order of cables.
    for host in &mut map.hosts {
        host.at = host.at.map(|at| PortRef { port: 200 - at.port, ..at });
    }
    if rng.random_bool(0.3) {
        for xbar in &mut map.xbars {
            xbar.tag = None;
        }
    }
    map
}
