//! Fabrics to explore.

use mapper_proto::Mac;
use mapper_proto::map::{Cable, Host, Map, PortRef, Xbar, host_type};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// Builds a fabric cable by cable. Ports count from 0.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) map: Map,
}

impl Builder {
    pub(crate) fn xbar(&mut self, ports: u8, tagged: bool) -> u32 {
        let index = self.map.xbars.len() as u32;
        let tag = tagged.then(|| 0x5eed_0000_0000 + u64::from(index) * 0x0101);
        self.map.xbars.push(Xbar { ports, tag, ports_known: true });
        index
    }

    pub(crate) fn host(&mut self, at: Option<(u32, u8)>) -> usize {
        let index = self.map.hosts.len();
        let at = at.map(|(xbar, port)| PortRef { xbar, port });
        let mac = Mac::from_position(index as u32 + 1);
        self.map.hosts.push(Host { mac, level: 1, host_type: host_type::ETHERNET, at });
        index
    }

    pub(crate) fn cable(&mut self, a: (u32, u8), b: (u32, u8)) {
        let end = |(xbar, port)| PortRef { xbar, port };
        self.map.cables.push(Cable::new(end(a), end(b)));
    }
}

/// Leaves of `ports` ports, half of them hosts, each cabled once to each of `ports / 2` spines.
pub(crate) fn clos2(leaves: u32, ports: u8, tagged: bool) -> Map {
    let mut b = Builder::default();
    let half = ports / 2;
    for leaf in 0..leaves {
        b.xbar(ports, tagged);
        for port in 0..half {
            b.host(Some((leaf, port)));
        }
    }
    for up in 0..half {
        let spine = b.xbar(ports.max(leaves as u8), tagged);
        for leaf in 0..leaves {
            b.cable((leaf, half + up), (spine, leaf as u8));
        }
    }
    b.map
}

/// A three-level fat tree of xbars of `ports` ports with `pods` pods.
pub(crate) fn clos3(pods: u32, ports: u8, tagged: impl Fn(u32) -> bool) -> Map {
    let mut b = Builder::default();
    let half = u32::from(ports / 2);
    let at = |xbar: u32, port: u32| (xbar, port as u8);
    let tops: Vec<u32> = (0..half * half)
        .map(|_| {
            let index = b.map.xbars.len() as u32;
            b.xbar(ports, tagged(index))
        })
        .collect();
    for pod in 0..pods {
        let mut next = || {
            let index = b.map.xbars.len() as u32;
            b.xbar(ports, tagged(index))
        };
        let middles: Vec<u32> = (0..half).map(|_| next()).collect();
        let leaves: Vec<u32> = (0..half).map(|_| next()).collect();
        for (i, &leaf) in (0..).zip(&leaves) {
            for port in 0..half {
                b.host(Some(at(leaf, port)));
            }
            for (j, &middle) in (0..).zip(&middles) {
                b.cable(at(leaf, half + j), at(middle, i));
            }
        }
        for (j, &middle) in (0..).zip(&middles) {
            for k in 0..half {
                b.cable(at(middle, half + k), at(tops[(j * half + k) as usize], pod));
            }
        }
    }
    b.map
}

/// The shape of the Berkeley NOW: 100 hosts on 40 xbars of 8 ports, 93 cables between xbars.
pub(crate) fn now() -> Map {
    let mut b = Builder::default();
    let mut free = [0_u8; 40];
    for _ in 0..40 {
        b.xbar(8, false);
    }
    let mut next = |xbar: u32| {
        free[xbar as usize] += 1;
        (xbar, free[xbar as usize] - 1)
    };
    // A subcluster: leaves 0 to 6, second level 7 to 10. The top: 33 to 39.
    let leaves: Vec<u32> = (0..3).flat_map(|s| (0..7).map(move |l| 11 * s + l)).collect();
    for (i, &leaf) in leaves.iter().enumerate() {
        // 21 leaves: five hosts each but for five leaves with four.
        for _ in 0..if i % 4 == 3 { 4 } else { 5 } {
            let at = next(leaf);
            b.host(Some(at));
        }
    }
    for s in 0..3 {
        for l in 0..7 {
            for up in 0..3 {
                let (low, high) = (next(11 * s + l), next(11 * s + 7 + (l + up) % 4));
                b.cable(low, high);
            }
        }
    }
    let mut top = 0;
    for s in 0..3 {
        for middle in 0..4 {
            for _ in 0..if middle < 2 { 3 } else { 2 } {
                let (low, high) = (next(11 * s + 7 + middle), next(33 + top % 7));
                b.cable(low, high);
                top += 1;
            }
        }
    }
    b.map
}

/// A torus of `x` by `y` xbars with one host, or with one on each.
pub(crate) fn torus(x: u32, y: u32, ports: u8, tagged: bool, all_hosts: bool) -> Map {
    let mut b = Builder::default();
    for _ in 0..x * y {
        b.xbar(ports, tagged);
    }
    for i in 0..x {
        for j in 0..y {
            let here = i * y + j;
            b.cable((here, 0), ((i + 1) % x * y + j, 1));
            b.cable((here, 2), (i * y + (j + 1) % y, 3));
            if all_hosts || here == 0 {
                b.host(Some((here, 4)));
            }
        }
    }
    b.map
}

/// What kinds of xbars a random fabric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    Plain,
    Tagged,
    Mixed,
}

/// A random fabric: anything goes, from parallel cables and xbars cabled to themselves to parts
/// that do not hang together. Ports count from `first_port`.
pub(crate) fn random(rng: &mut ChaCha8Rng, kinds: Kinds, first_port: u8, most_ports: u8) -> Map {
    let mut b = Builder::default();
    let xbars = rng.random_range(1..=12);
    let mut free = Vec::new();
    for _ in 0..xbars {
        let ports = rng.random_range(4..=most_ports);
        let tagged = match kinds {
            Kinds::Plain => false,
            Kinds::Tagged => true,
            Kinds::Mixed => rng.random_bool(0.4),
        };
        let xbar = b.xbar(ports, tagged);
        free.extend((first_port..first_port + ports).map(|port| (xbar, port)));
    }
    let mut take =
        |rng: &mut ChaCha8Rng| (!free.is_empty()).then(|| free.swap_remove(rng.random_range(0..free.len())));
    let hosts = rng.random_range(1..=(xbars + 4));
    for _ in 0..hosts {
        if let Some(at) = take(rng) {
            b.host(Some(at));
        }
    }
    for _ in 0..rng.random_range(0..=3 * xbars) {
        match (take(rng), rng.random_bool(0.02)) {
            (Some(a), true) => b.cable(a, a),
            (Some(a), false) => {
                if let Some(other) = take(rng) {
                    b.cable(a, other);
                }
            }
            (None, _) => break,
        }
    }
    b.map
}
