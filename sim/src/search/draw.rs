//! Scenarios drawn from a seed.

use std::fmt::Write;
use std::time::Duration;

use mapper_proto::map::{Cable, Fabric, Host, HostLabel, Map, PortRef, Xbar, XbarLabel, host_type};
use mapper_proto::{Instant, Mac};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Scenario;
use crate::fabric::Xbars;
use crate::faults::RandomKind;
use crate::setup::{FaultFile, Setup, UserSetup};
use crate::world::KeyStep;

/// Tells the stream of settings from that of fabrics and faults.
const SETTINGS: u64 = 0x7365_7474_696e_6773;
/// Most hosts in a drawn fabric.
const MAX_HOSTS: usize = 12;
/// Most xbars in a drawn fabric.
const MAX_XBARS: usize = 8;

/// The kinds of faults that are drawn. Twins are added by [`Scenario::with_twins`] alone, so that a seed
/// keeps its meaning.
const DRAWN: [RandomKind; 10] = [
    RandomKind::Cut,
    RandomKind::Silence,
    RandomKind::Move,
    RandomKind::Kill,
    RandomKind::Restart,
    RandomKind::Mute,
    RandomKind::Hostile,
    RandomKind::Remove,
    RandomKind::Off,
    RandomKind::Swap,
];

impl Scenario {
    /// The scenario of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let fabric = draw_fabric(&mut rng);
        let healed_ms = rng.random_range(1_000..6_000);
        let mut setup = Setup {
            seed,
            xbars: [Xbars::Plain, Xbars::Tagged, Xbars::Mixed][rng.random_range(0..3)],
            ..Setup::default()
        };
        setup.power_on_spread = Duration::from_millis([0, 1, 10, 500][rng.random_range(0..4)]);
        setup.timing.receive_queue = [8, 64, 512][rng.random_range(0..3)];
        let text = draw_faults(healed_ms, &mut rng);
        setup.faults = FaultFile { name: format!("faults of seed {seed}"), text };
        draw_settings(seed, &mut setup, &fabric, healed_ms);
        let healed_at = Instant::ZERO + Duration::from_millis(healed_ms);
        setup.limit = healed_at.since(Instant::ZERO) + Self::PATIENCE;
        Self { fabric, setup, healed_at, most_gap: None }
    }
}

impl Scenario {
    /// The same with hosts that have the addresses of others for a while. What is put right at last puts
    /// that right too.
    #[must_use]
    pub fn with_twins(mut self) -> Self {
        let healed_ms = self.healed_at.since(Instant::ZERO).as_millis();
        let twins = format!("random 2 twin between 0ms and {healed_ms}ms mend-after 1500ms\n");
        self.setup.faults.text.insert_str(0, &twins);
        self
    }
}

/// How hosts are set, and what users send: drawn by themselves, so that a seed keeps its fabric and its faults.
fn draw_settings(seed: u64, setup: &mut Setup, fabric: &Fabric, healed_ms: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ SETTINGS);
    let rate = [10.0, 40.0, 150.0][rng.random_range(0..3)];
    let partners = [1, 2, 4][rng.random_range(0..3)];
    let users = UserSetup { rate, partners, from: Some(Duration::ZERO) };
    setup.users = rng.random_bool(0.7).then_some(users);
    setup.nodes = rng.random_bool(0.5);
    setup.signed = rng.random_bool(0.5);
    setup.agents.map_incrementally = rng.random_bool(0.3);
    setup.agents.probe_window = [4, 16, 64, 256][rng.random_range(0..4)];
    setup.routes.passes = [1, 2, 8, 16][rng.random_range(0..4)];
    setup.routes.non_clos = rng.random_bool(0.3);
    let mut changes = String::new();
    if setup.signed && rng.random_bool(0.3) {
        change_keys(fabric, healed_ms, &mut rng, &mut changes);
    }
    if setup.users.is_some() && rng.random_bool(0.3) {
        change_mtus(fabric, healed_ms, &mut rng, &mut changes);
    }
    setup.faults.text.insert_str(0, &changes);
}

/// All hosts get a new key, each step at all of them before the next one.
fn change_keys(fabric: &Fabric, healed_ms: u64, rng: &mut ChaCha8Rng, text: &mut String) {
    let (begins_ms, step_ms) = (rng.random_range(0..healed_ms), rng.random_range(1..500));
    for step in 0..KeyStep::COUNT.into() {
        for host in &fabric.hosts {
            let at_ms = begins_ms + step * step_ms + rng.random_range(0..step_ms);
            let _ = writeln!(text, "at {at_ms}ms rekey {}", host.name);
        }
    }
}

/// Hosts have interfaces of different MTUs, and some are set to another one later.
fn change_mtus(fabric: &Fabric, healed_ms: u64, rng: &mut ChaCha8Rng, text: &mut String) {
    for host in &fabric.hosts {
        let later_ms = rng.random_bool(0.3).then(|| rng.random_range(0..healed_ms));
        for at_ms in std::iter::once(0).chain(later_ms) {
            let bytes = [1500, 1500, 2000, 9000][rng.random_range(0..4)];
            let _ = writeln!(text, "at {at_ms}ms mtu {} {bytes}", host.name);
        }
    }
}

/// A few xbars joined by a tree and some more cables, parallel ones and such from an xbar to itself
/// among them, and hosts at ports that are left. Without xbars, two hosts face to face.
fn draw_fabric(rng: &mut ChaCha8Rng) -> Fabric {
    let xbars = rng.random_range(0..=MAX_XBARS);
    if xbars == 0 {
        return label(Map { hosts: (0..2).map(|i| draw_host(i, None, rng)).collect(), ..Map::default() });
    }
    let ports: Vec<u8> = (0..xbars).map(|_| [4, 6, 8, 16][rng.random_range(0..4)]).collect();
    let mut free: Vec<Vec<u8>> = ports.iter().map(|&ports| (1..=ports).collect()).collect();
    free.iter_mut().for_each(|ports| ports.shuffle(rng));
    let mut cables = Vec::new();
    for xbar in 1..xbars {
        // One port of each is left for the next, so the tree never runs dry.
        let roomy: Vec<usize> = (0..xbar).filter(|&x| free[x].len() > 1).collect();
        let parent = roomy[rng.random_range(0..roomy.len())];
        cables.extend(join(parent, xbar, &mut free));
    }
    for _ in 0..rng.random_range(0..=xbars) {
        let (x, y) = (rng.random_range(0..xbars), rng.random_range(0..xbars));
        // Both ends of a loop are of one xbar: it needs two ports.
        if x != y || free[x].len() > 1 {
            cables.extend(join(x, y, &mut free));
        }
    }
    let mut places: Vec<PortRef> = (0..xbars as u32)
        .flat_map(|xbar| free[xbar as usize].iter().map(move |&port| PortRef { xbar, port }))
        .collect();
    places.shuffle(rng);
    places.truncate(rng.random_range(2..=MAX_HOSTS));
    let hosts = places.iter().enumerate().map(|(i, &at)| draw_host(i, Some(at), rng)).collect();
    let xbars = ports
        .iter()
        .enumerate()
        .map(|(i, &ports)| Xbar { ports, tag: Some(0x7a90 + i as u64), ports_known: true })
        .collect();
    cables.sort();
    label(Map { hosts, xbars, cables, ..Map::default() })
}

/// A cable between free ports of two xbars, if both have one.
fn join(x: usize, y: usize, free: &mut [Vec<u8>]) -> Option<Cable> {
    if free[x].is_empty() || free[y].is_empty() {
        return None;
    }
    let a = PortRef { xbar: x as u32, port: free[x].pop()? };
    let b = PortRef { xbar: y as u32, port: free[y].pop()? };
    Some(Cable::new(a, b))
}

fn draw_host(position: usize, at: Option<PortRef>, rng: &mut ChaCha8Rng) -> Host {
    // A few levels, so that the highest mapper is not always the highest address.
    let level = if rng.random_bool(0.2) { 2 } else { 1 };
    Host { mac: Mac::from_position(position as u32 + 1), level, host_type: host_type::ETHERNET, at }
}

fn label(map: Map) -> Fabric {
    let hosts = (1..=map.hosts.len())
        .map(|i| HostLabel { name: format!("h{i}"), node_port: 1, node_ports: 1, ..HostLabel::default() })
        .collect();
    let xbars =
        (1..=map.xbars.len()).map(|i| XbarLabel { name: format!("x{i}"), ..XbarLabel::default() }).collect();
    Fabric { map, hosts, xbars, ..Default::default() }
}

/// A fault file: some kinds of faults, some noise, and at last everything is put right.
fn draw_faults(healed_ms: u64, rng: &mut ChaCha8Rng) -> String {
    let mut text = String::new();
    for _ in 0..rng.random_range(0..5) {
        let kind = DRAWN[rng.random_range(0..DRAWN.len())].word();
        let count = rng.random_range(1..4);
        let from = rng.random_range(0..healed_ms);
        let until = rng.random_range(from..healed_ms);
        let mend = match rng.random_range(0..3) {
            0 => String::new(),
            _ => format!(" mend-after {}ms", rng.random_range(1..2_000)),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "random {count} {kind} between {from}ms and {until}ms{mend}");
    }
    for (noise, most_percent) in [("loss", 5.0), ("corrupt", 1.0), ("duplicate", 5.0)] {
        if rng.random_bool(0.3) {
            let _ = writeln!(text, "{noise} {:.3}% until {healed_ms}ms", rng.random_range(0.0..most_percent));
        }
    }
    if rng.random_bool(0.3) {
        let _ = writeln!(text, "jitter {}us until {healed_ms}ms", rng.random_range(1..300));
    }
    // Mending of what struck late may come later: it finds everything in order.
    let _ = writeln!(text, "at {healed_ms}ms heal");
    text
}
