//! Scenarios drawn from a seed.

mod apart;

use apart::APART_DRAWN_FROM;
pub use apart::READDRESSED_FROM as ALL_DRAWN_FROM;

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
use crate::setup::{AgentSetup, FaultFile, Setup, UserSetup};
use crate::world::{KernelChoice, KeyStep};

/// Names the stream of settings, so that it differs from that of fabrics and faults.
const SETTINGS: u64 = 0x7365_7474_696e_6773;
/// Names the stream of faults that follow each other at once.
const HASTE: u64 = 0x0068_6173_7465;
/// Names the stream of names, and of questions for them.
const NAMES: u64 = 0x006e_616d_6573;
/// Names the stream of further settings, of twins and of how users send.
const MORE_SETTINGS: u64 = 0x6d6f_7265;
/// Names the stream of how probes and questions are tried, and of whether agents pause others.
const PROBING: u64 = 0x0070_726f_6269_6e67;
/// The first seed for which these are drawn. Most seeds that once failed are below, and would not be the same scenarios any more.
const PROBING_DRAWN_FROM: u64 = 8_000_000_000;
/// Names the stream that says whether kernels forward.
const KERNELS: u64 = 0x006b_6572_6e65_6c73;
/// Names the stream of cables that lose frames.
const LOSSY: u64 = 0x006c_6f73_7379;
/// Names the stream of settings that change while hosts run.
const RELOADS: u64 = 0x7265_6c6f_6164;
/// Most hosts in a drawn fabric.
const MAX_HOSTS: usize = 12;
/// Most xbars in a drawn fabric.
const MAX_XBARS: usize = 8;

/// The kinds of faults that are drawn. Twins are drawn apart, so that a seed keeps its other faults.
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

/// The kinds of faults that change the fabric, which also strike while agents map.
const CHANGES: [RandomKind; 7] = [
    RandomKind::Move,
    RandomKind::Move,
    RandomKind::Remove,
    RandomKind::Cut,
    RandomKind::Restart,
    RandomKind::Off,
    RandomKind::Swap,
];
/// The time after which the first mapping is over.
const FIRST_MAPPING_MS: u64 = 60;
/// The longest time after which a fault that has a mending of its own is mended.
const LATEST_MEND_MS: u64 = 2_000;
/// The time in which agents find a fault, map and hand the map down.
const REMAPPING_MS: u64 = 150;

impl Scenario {
    /// The scenario of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let fabric = draw_fabric(&mut rng);
        let nodes = draw_nodes(seed, &fabric);
        let kernels = nodes.is_some();
        let fabric = nodes.unwrap_or(fabric);
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
        draw_haste(seed, healed_ms, &mut setup.faults.text);
        draw_names(seed, healed_ms, &fabric, &mut setup.faults.text);
        draw_more_settings(seed, &mut setup, healed_ms);
        draw_probing(seed, &mut setup.agents);
        draw_reloads(seed, healed_ms, &fabric, &mut setup.faults.text);
        apart::draw(seed, healed_ms, &fabric, &mut setup);
        if kernels {
            (setup.xbars, setup.nodes, setup.kernels) = (Xbars::Tagged, true, true);
            setup.kernel_choice = draw_kernel_choice(seed);
            let from = Some(Duration::ZERO);
            draw_kernel_faults(seed, &mut setup.faults.text, healed_ms);
            setup.users.get_or_insert(UserSetup {
                rate: 40.0,
                partners: 2,
                from,
                flows: 2,
                broadcasts: false,
            });
        }
        draw_lossy(seed, &mut setup.faults.text, healed_ms);
        if kernels {
            draw_firewalls_of_v4(seed, &mut setup.faults.text, healed_ms);
        }
        let healed_at = Instant::ZERO + Duration::from_millis(healed_ms);
        setup.limit = healed_at.since(Instant::ZERO) + Self::PATIENCE;
        Self { fabric, setup, healed_at, most_gap: None }
    }
}

/// In one of eight scenarios every xbar with a free port is that of a node, whose kernel forwards users'
/// packets. Returns the fabric with one host at each of these xbars.
fn draw_nodes(seed: u64, fabric: &Fabric) -> Option<Fabric> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ KERNELS);
    if !rng.random_bool(0.125) {
        return None;
    }
    let mut map = fabric.map.clone();
    let taken: Vec<PortRef> = map.cables.iter().flat_map(|cable| [cable.a, cable.b]).collect();
    let free = |xbar: usize| {
        let ports = (1..=map.xbars[xbar].ports).map(|port| PortRef { xbar: xbar as u32, port });
        ports.into_iter().find(|at| !taken.contains(at))
    };
    let places: Vec<PortRef> = (0..map.xbars.len()).filter_map(free).collect();
    if places.len() < 2 {
        return None;
    }
    map.hosts = places.iter().enumerate().map(|(i, &at)| draw_host(i, Some(at), &mut rng)).collect();
    Some(label(map))
}

/// In half of the scenarios with kernels some or all hosts are set to send by destination. From [`APART_DRAWN_FROM`] on, in
/// one of five all kernels go by segments.
fn draw_kernel_choice(seed: u64) -> KernelChoice {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ KERNELS.rotate_left(2));
    let choice = [KernelChoice::Auto, KernelChoice::Auto, KernelChoice::Routes, KernelChoice::Mixed]
        [rng.random_range(0..4)];
    let all_by_segments = seed >= APART_DRAWN_FROM && rng.random_bool(0.2);
    if all_by_segments { KernelChoice::Segments } else { choice }
}

/// The faults of kernels: a firewall for a while, and tables that somebody empties.
fn draw_kernel_faults(seed: u64, text: &mut String, healed_ms: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ KERNELS.rotate_left(1));
    for kind in [RandomKind::Firewall, RandomKind::Flush] {
        if rng.random_bool(0.4) {
            let (word, mend_ms) = (kind.word(), rng.random_range(1..LATEST_MEND_MS));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "random 1 {word} between 0ms and {healed_ms}ms mend-after {mend_ms}ms");
        }
    }
}

/// In half of the scenarios with kernels one or two of these drop packets of IPv4 alone for a while.
fn draw_firewalls_of_v4(seed: u64, text: &mut String, healed_ms: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ KERNELS.rotate_left(3));
    if rng.random_bool(0.5) {
        let (count, mend_ms) = (rng.random_range(1..3), rng.random_range(1..2 * LATEST_MEND_MS));
        let word = RandomKind::FirewallV4.word();
        // Faults are drawn in the order of their lines, so a line behind all others leaves those as they are. Writing to a
        // string cannot fail.
        let _ = writeln!(text, "random {count} {word} between 0ms and {healed_ms}ms mend-after {mend_ms}ms");
    }
}

/// In one of four scenarios one or two cables lose frames, some of them from the start and for long enough to be found.
fn draw_lossy(seed: u64, text: &mut String, healed_ms: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ LOSSY);
    if rng.random_bool(0.25) {
        let (count, until_ms) = (rng.random_range(1..3), rng.random_range(0..healed_ms));
        let word = RandomKind::Lossy.word();
        // Faults are drawn in the order of their lines, so a line behind all others leaves those as they are. Writing to a
        // string cannot fail.
        let _ = writeln!(text, "random {count} {word} between 0ms and {until_ms}ms");
    }
}

/// Draws settings, of which each rarely matters, twins, and how users send in half of all scenarios. The
/// other scenarios are what they were before any of these were drawn.
fn draw_more_settings(seed: u64, setup: &mut Setup, healed_ms: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ MORE_SETTINGS);
    if rng.random_bool(0.5) {
        return;
    }
    if rng.random_bool(0.2) {
        // Two hosts have the addresses of others for a while. Faults are drawn in the order of their lines, so a line
        // behind all others leaves those as they are.
        let twins = format!("random 2 twin between 0ms and {healed_ms}ms mend-after 1500ms\n");
        setup.faults.text.push_str(&twins);
    }
    let agents = &mut setup.agents;
    // No route of a drawn fabric has more hops than the fabric has xbars.
    agents.max_hops = [MAX_XBARS, 11, 11, 23][rng.random_range(0..4)];
    agents.verify_pause = Duration::from_millis([100, 1000, 1000, 2000][rng.random_range(0..4)]);
    agents.piece_bytes = [256, 600, 1300, 1300][rng.random_range(0..4)];
    agents.piece_window = [1, 2, 8, 8][rng.random_range(0..4)];
    agents.liveness_misses = [2, 3, 3, 5][rng.random_range(0..4)];
    if let Some(users) = &mut setup.users {
        users.flows = [1, 2, 5][rng.random_range(0..3)];
        users.broadcasts = rng.random_bool(0.3);
    }
}

/// In half of all scenarios from [`PROBING_DRAWN_FROM`] on, draws how probes and questions are tried, and has agents pause others
/// while they map in some of these.
fn draw_probing(seed: u64, agents: &mut AgentSetup) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ PROBING);
    if seed < PROBING_DRAWN_FROM || rng.random_bool(0.5) {
        return;
    }
    agents.probe_timeout = Duration::from_millis([1, 3, 10, 10][rng.random_range(0..4)]);
    // Where few are under way, many tries of each make mapping take longer than a new map may.
    let most_tries = if agents.probe_window < 16 { 3 } else { 5 };
    agents.probe_tries = [2, 3, 3, 5][rng.random_range(0..4)].min(most_tries);
    agents.pause = rng.random_bool(0.2);
    // A parent is asked before it is held for silent.
    agents.query_interval = Duration::from_millis([200, 1000, 1000, 1500][rng.random_range(0..4)]);
    agents.silence_limit = Duration::from_millis([2000, 3000][rng.random_range(0..2)]);
}

/// Draws how hosts are set and what users send, from a stream of its own, so that a seed keeps its fabric and
/// its faults.
fn draw_settings(seed: u64, setup: &mut Setup, fabric: &Fabric, healed_ms: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ SETTINGS);
    let rate = [10.0, 40.0, 150.0][rng.random_range(0..3)];
    let partners = [1, 2, 4][rng.random_range(0..3)];
    let users = UserSetup { rate, partners, from: Some(Duration::ZERO), flows: 1, broadcasts: false };
    setup.users = rng.random_bool(0.7).then_some(users);
    setup.nodes = rng.random_bool(0.5);
    setup.signed = rng.random_bool(0.5);
    setup.agents.map_incrementally = rng.random_bool(0.3);
    setup.agents.probe_window = [4, 16, 64, 256][rng.random_range(0..4)];
    setup.routes.passes = [1, 2, 8, 16][rng.random_range(0..4)];
    setup.routes.non_clos = rng.random_bool(0.3);
    setup.agents.liveness_interval = Duration::from_millis([20, 50, 100][seed as usize % 3]);
    let mut changes = String::new();
    if setup.signed && rng.random_bool(0.3) {
        change_keys(fabric, healed_ms, &mut rng, &mut changes);
    }
    if setup.users.is_some() && rng.random_bool(0.3) {
        change_mtus(fabric, healed_ms, &mut rng, &mut changes);
    }
    if !setup.agents.map_incrementally && rng.random_bool(0.15) {
        setup.agents.xbar_check = false;
        have_all_mapped_again(fabric, healed_ms, &mut setup.faults.text);
    }
    setup.faults.text.insert_str(0, &changes);
}

/// In half of all scenarios a few changes follow each other so closely that agents map meanwhile: for the first time,
/// or because of the change before. Some are undone at once.
fn draw_haste(seed: u64, healed_ms: u64, text: &mut String) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ HASTE);
    let mut changes = String::new();
    for _ in 0..[0, 0, 1, 2][rng.random_range(0..4)] {
        let first = rng.random_bool(0.5);
        let from_ms = if first { 0 } else { rng.random_range(0..healed_ms) };
        let span_ms = if first { FIRST_MAPPING_MS } else { REMAPPING_MS };
        let until_ms = (from_ms + span_ms).min(healed_ms);
        for _ in 0..rng.random_range(1..4) {
            let kind = CHANGES[rng.random_range(0..CHANGES.len())].word();
            let mend = if rng.random_bool(0.5) {
                format!(" mend-after {}ms", rng.random_range(1..REMAPPING_MS))
            } else {
                String::new()
            };
            // Writing to a string cannot fail.
            let _ = writeln!(changes, "random 1 {kind} between {from_ms}ms and {until_ms}ms{mend}");
        }
    }
    text.insert_str(0, &changes);
}

/// In half of all scenarios hosts have names that are not announced, which move from one to another, and ask for them.
fn draw_names(seed: u64, healed_ms: u64, fabric: &Fabric, text: &mut String) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ NAMES);
    let mut names = String::new();
    for number in 0..[0, 0, 1, 3][rng.random_range(0..4)] {
        let host = |rng: &mut ChaCha8Rng| &fabric.hosts[rng.random_range(0..fabric.hosts.len())].name;
        for at in 0..rng.random_range(1..4) {
            let at_ms = if at == 0 { 0 } else { rng.random_range(0..healed_ms) };
            // Writing to a string cannot fail.
            let _ = writeln!(names, "at {at_ms}ms alias {number} to {}", host(&mut rng));
        }
        for _ in 0..rng.random_range(0..6) {
            let at_ms = rng.random_range(0..healed_ms);
            let _ = writeln!(names, "at {at_ms}ms ask {} {number}", host(&mut rng));
        }
    }
    text.insert_str(0, &names);
}

/// In half of all scenarios some hosts read their configurations again, which have other numbers of routes or
/// other levels. When the level changes, a new agent takes over while the routes stay in use. No host gets
/// level 0, as a part of the fabric in which no host maps would get no map.
fn draw_reloads(seed: u64, healed_ms: u64, fabric: &Fabric, text: &mut String) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ RELOADS);
    let mut reloads = String::new();
    for _ in 0..[0, 0, 1, 4][rng.random_range(0..4)] {
        let host = &fabric.hosts[rng.random_range(0..fabric.hosts.len())].name;
        let at_ms = rng.random_range(0..healed_ms);
        let setting = if rng.random_bool(0.5) {
            format!("level {host} {}", rng.random_range(1..4))
        } else {
            format!("passes {host} {}", [1, 2, 8, 16][rng.random_range(0..4)])
        };
        // Writing to a string cannot fail.
        let _ = writeln!(reloads, "at {at_ms}ms {setting}");
    }
    text.insert_str(0, &reloads);
}

/// Once everything is put right, all hosts go, and they come back when the last cable that was moved has been
/// moved back. Agents that do not verify cables between xbars see that, too, and map the whole fabric again.
/// Otherwise what happened to such cables before might be in no map. One host would not do, as the fabric may be in
/// several parts by then.
fn have_all_mapped_again(fabric: &Fabric, healed_ms: u64, text: &mut String) {
    for host in &fabric.hosts {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "at {healed_ms}ms remove {}", host.name);
        let _ = writeln!(text, "at {}ms insert {}", healed_ms + LATEST_MEND_MS, host.name);
    }
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

/// A few xbars joined by a tree and some more cables, among them parallel ones and cables from an xbar to
/// itself, and hosts at ports that are left. If there are no xbars, it is two hosts on one cable.
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
        // One port of each xbar is left for the next one, so that the tree can always grow.
        let roomy: Vec<usize> = (0..xbar).filter(|&x| free[x].len() > 1).collect();
        let parent = roomy[rng.random_range(0..roomy.len())];
        cables.extend(join(parent, xbar, &mut free));
    }
    for _ in 0..rng.random_range(0..=xbars) {
        let (x, y) = (rng.random_range(0..xbars), rng.random_range(0..xbars));
        // A cable from an xbar to itself needs two ports of it.
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
    // Hosts have a few different levels, so that the highest mapper is not always the host with the highest
    // address.
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
            _ => format!(" mend-after {}ms", rng.random_range(1..LATEST_MEND_MS)),
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
    // The mending of a fault that struck late may come after this, and finds everything in order.
    let _ = writeln!(text, "at {healed_ms}ms heal");
    text
}
