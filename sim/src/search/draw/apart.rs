//! Settings in which hosts differ, or that change while they run, and how long routes are computed.

use std::fmt::Write;
use std::time::Duration;

use mapper_proto::map::Fabric;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::MAX_XBARS;
use crate::faults::Setting;
use crate::setup::Setup;

/// Names the stream of all of this.
const APART: u64 = 0x0061_7061_7274;
/// The first seed for which these are drawn, and kernels that all go by segments.
pub(super) const APART_DRAWN_FROM: u64 = 10_000_000_000;
/// The first seed for which addresses of hosts change.
pub const READDRESSED_FROM: u64 = 11_000_000_000;
/// Settings that are drawn also for hosts that run.
const RELOADED: usize = 6;
/// Settings that are drawn only for the start: what is promised of gaps counts by how paths are checked.
const STARTING: usize = 3;

/// In half of all scenarios from [`APART_DRAWN_FROM`] on, hosts differ in settings from the start, read configurations with others
/// while they run, and compute their routes sooner or later than by default.
pub(super) fn draw(seed: u64, healed_ms: u64, fabric: &Fabric, setup: &mut Setup) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ APART);
    if seed < APART_DRAWN_FROM || rng.random_bool(0.5) {
        return;
    }
    let mut changes = String::new();
    for _ in 0..rng.random_range(0..=2 * fabric.hosts.len()) {
        let host = &fabric.hosts[rng.random_range(0..fabric.hosts.len())].name;
        let setting = draw_setting(STARTING + RELOADED, setup.agents.probe_window, &mut rng);
        // Writing to a string cannot fail.
        let _ = writeln!(changes, "at 0ms set {host} {setting}");
    }
    for _ in 0..[0, 1, 4][rng.random_range(0..3)] {
        let host = &fabric.hosts[rng.random_range(0..fabric.hosts.len())].name;
        let at_ms = rng.random_range(0..healed_ms);
        let setting = draw_setting(RELOADED, setup.agents.probe_window, &mut rng);
        // Writing to a string cannot fail.
        let _ = writeln!(changes, "at {at_ms}ms set {host} {setting}");
    }
    for number in 0..[0, 0, 1, 3][rng.random_range(0..4)] {
        let host = &fabric.hosts[rng.random_range(0..fabric.hosts.len())].name;
        // Writing to a string cannot fail.
        let _ = writeln!(changes, "at {}ms rename {host} {number}", rng.random_range(0..healed_ms));
    }
    for number in 0..if seed < READDRESSED_FROM { 0 } else { [0, 1, 4][rng.random_range(0..3)] } {
        let host = &fabric.hosts[rng.random_range(0..fabric.hosts.len())].name;
        // Writing to a string cannot fail.
        let _ = writeln!(changes, "at {}ms readdress {host} {number}", rng.random_range(0..healed_ms));
    }
    setup.faults.text.insert_str(0, &changes);
    setup.timing.compute = Duration::from_millis([0, 1, 10, 50, 300][rng.random_range(0..5)]);
}

/// One of the first so many settings, and a value of it.
fn draw_setting(settings: usize, probe_window: usize, rng: &mut ChaCha8Rng) -> Setting {
    let ms = Duration::from_millis;
    match rng.random_range(0..settings) {
        0 => Setting::NonClos(rng.random_bool(0.5)),
        // No route of a drawn fabric has more hops than the fabric has xbars.
        1 => Setting::MaxHops([MAX_XBARS as u8, 11, 23][rng.random_range(0..3)]),
        // Where few are under way, many tries of each make mapping take longer than a new map may.
        2 => Setting::ProbeTries([2, 3, if probe_window < 16 { 3 } else { 5 }][rng.random_range(0..3)]),
        3 => Setting::QueryInterval(ms([200, 1000, 1500][rng.random_range(0..3)])),
        4 => Setting::VerifyPause(ms([100, 1000, 2000][rng.random_range(0..3)])),
        5 => Setting::PieceBytes([256, 600, 1300][rng.random_range(0..3)]),
        6 => Setting::StartDelay(ms([0, 10, 100][rng.random_range(0..3)])),
        7 => Setting::LivenessInterval(ms([20, 50, 100][rng.random_range(0..3)])),
        _ => Setting::LivenessMisses([2, 3, 5][rng.random_range(0..3)]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::search::Scenario;
    use crate::world::KernelChoice;

    /// What is drawn in some of 100 scenarios from this seed on, in words.
    fn drawn(first: u64) -> BTreeSet<String> {
        let mut drawn = BTreeSet::new();
        for seed in first..first + 100 {
            let Setup { faults, timing, kernel_choice, .. } = Scenario::draw(seed).setup;
            for line in faults.text.lines() {
                // The words of a line: `at`, a time, `set`, a host, a setting.
                match line.split(' ').collect::<Vec<_>>()[..] {
                    [_, _, "set", _, setting, _] => drawn.insert(setting.to_owned()),
                    [_, _, word @ ("rename" | "readdress"), ..] => drawn.insert(word.to_owned()),
                    _ => false,
                };
            }
            if timing.compute != Duration::from_millis(1) {
                drawn.insert("compute".to_owned());
            }
            if kernel_choice == KernelChoice::Segments {
                drawn.insert("segments".to_owned());
            }
        }
        drawn
    }

    #[test]
    fn seeds_below_a_first_one_are_what_they_were() {
        assert_eq!(drawn(APART_DRAWN_FROM - 100), BTreeSet::new());
        let all_but_addresses = drawn(APART_DRAWN_FROM);
        assert_eq!(all_but_addresses.len(), STARTING + RELOADED + 3);
        let all = drawn(READDRESSED_FROM);
        assert!(all.difference(&all_but_addresses).eq(&["readdress".to_owned()]), "{all:?}");
    }
}
