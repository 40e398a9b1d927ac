//! Which faults there are in a plant, where each can strike, and how it is mended.

use std::time::Duration;

use mapper_host::kernel_path::{V4_LEFT_WITHIN, WAY_LEFT_WITHIN};
use mapper_proto::Instant;

use super::Case;
use crate::fabric::{Plant, PlantNode, PlantPort};
use crate::faults::{Fault, Setting};

/// The times after which faults are mended: while agents are still finding out that they struck, when a cable
/// that was silent for too long is held for dead, and when all have settled without what is gone.
const MENDED_AFTER: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(120), Duration::from_millis(1500)];
/// The time after which a cable that loses frames is mended in one more case: when hosts have found it and have gone around it.
const LOSSY_FOUND: Duration = Duration::from_secs(6);
/// How many of its frames a cable loses by a fault.
const CABLE_LOSES: f64 = 0.3;
/// How many of all frames are lost, garbled or doubled by a fault.
const NOISE: f64 = 0.05;
/// How late frames are by a fault, at most. From host to host they take half of that, so they overtake each other.
const JITTER: Duration = Duration::from_micros(200);
/// What an interface is set to by a fault, in bytes.
const OTHER_MTU: u16 = 9000;
/// The level that a host is set to by a fault: higher than that of all others.
const OTHER_LEVEL: u8 = 3;
/// How many routes to a destination a host is set to compute by a fault.
const OTHER_PASSES: u8 = 3;
/// What a host is set to by a fault, so that routes of its maps are others.
const OTHER_SETTING: Setting = Setting::NonClos(true);
/// The longest time that users of two hosts may hear nothing of each other behind the fault of one cable or
/// host.
const MOST_GAP_OF_CABLE: Duration = Duration::from_millis(100);
/// The longest time that users of two hosts may hear nothing of each other behind the fault of a whole xbar.
/// If it is a plain one, hosts learn of its cables one by one.
const MOST_GAP_OF_XBAR: Duration = Duration::from_millis(200);

/// A fault at each of these moments, mended in each way.
pub(super) fn cases_of(fault: Fault, moments: &[Instant]) -> impl Iterator<Item = Case> {
    moments.iter().flat_map(move |&at| {
        mendings(fault).map(move |mended_after| Case { fault, at, mended_after, then: None })
    })
}

/// Every fault of cables, hosts and xbars that can strike at any moment, and noise on all cables. If hosts sign, changes of keys
/// are among them, and if users' packets go through kernels, firewalls, tables that somebody empties, and other addresses.
pub(super) fn struck(plant: &Plant, signed: bool, kernels: bool) -> Vec<Fault> {
    let cables = cables(plant)
        .into_iter()
        .flat_map(|[at, _]| [Fault::Cut(at), Fault::Silence(at), Fault::Lossy { at, rate: CABLE_LOSES }]);
    let count = plant.hosts() as u32;
    let hosts = (0..count).flat_map(move |host| {
        let of = (host + 1) % count;
        let always = [
            Fault::Kill(host),
            Fault::Restart(host),
            Fault::Mute(host),
            Fault::Hostile(host),
            Fault::Remove(host),
            Fault::Mtu { host, bytes: OTHER_MTU },
            Fault::Level { host, level: OTHER_LEVEL },
            Fault::Passes { host, passes: OTHER_PASSES },
            Fault::Set { host, setting: OTHER_SETTING },
            Fault::Rename { host, number: 0 },
            Fault::Alias { number: 0, to: host },
        ];
        let twin = (of != host).then_some(Fault::Twin { host, of });
        let of_kernels = [
            Fault::Firewall(host),
            Fault::FirewallV4(host),
            Fault::Flush(host),
            Fault::Readdress { host, number: 0 },
        ];
        let of_kernels = of_kernels.into_iter().filter(move |_| kernels);
        always.into_iter().chain(twin).chain(signed.then_some(Fault::Rekey(host))).chain(of_kernels)
    });
    let xbars = (0..plant.xbars() as u32).flat_map(|xbar| [Fault::Off(xbar), Fault::Swap(xbar)]);
    let noise = [Fault::Loss(NOISE), Fault::Corrupt(NOISE), Fault::Duplicate(NOISE), Fault::Jitter(JITTER)];
    cables.chain(hosts).chain(xbars).chain(noise).collect()
}

/// Whether a fault changes only what is cabled to what, or which hosts run.
pub(super) const fn changes_the_fabric(fault: &Fault) -> bool {
    matches!(fault, Fault::Cut(_) | Fault::Restart(_) | Fault::Remove(_) | Fault::Off(_) | Fault::Swap(_))
}

/// The first faults of pairs: each cable is cut, and each end of each cable moves to the first free port.
pub(super) fn firsts(plant: &Plant) -> Vec<Fault> {
    let cuts = cables(plant).into_iter().map(|[end, _]| Fault::Cut(end));
    let mut moves = moves(plant);
    moves.dedup_by_key(|fault| match *fault {
        Fault::Move { from, .. } => Some(from),
        _ => None,
    });
    cuts.chain(moves).collect()
}

/// The times after which a fault is mended, each in a case of its own; `None` stands for never.
pub(super) fn mendings(fault: Fault) -> impl Iterator<Item = Option<Duration>> {
    let (mended, left) = match fault {
        // After these faults there is nothing to mend, or all hosts go on working.
        Fault::Restart(_)
        | Fault::Swap(_)
        | Fault::Mtu { .. }
        | Fault::Level { .. }
        | Fault::Passes { .. }
        | Fault::Set { .. }
        | Fault::Rename { .. }
        | Fault::Readdress { .. }
        | Fault::Alias { .. }
        | Fault::Rekey(_)
        | Fault::Flush(_) => (false, true),
        // Nothing can be demanded of a fabric as long as one of its hosts is hostile or has another's
        // address, or there is noise.
        Fault::Hostile(_) | Fault::Twin { .. } => (true, false),
        Fault::Lossy { .. } | Fault::Loss(_) | Fault::Corrupt(_) => (true, false),
        Fault::Duplicate(_) | Fault::Jitter(_) => (true, false),
        _ => (true, true),
    };
    let found = matches!(fault, Fault::Lossy { .. }).then_some(LOSSY_FOUND);
    let mended = MENDED_AFTER.into_iter().filter(move |_| mended).chain(found).map(Some);
    mended.chain(left.then_some(None))
}

/// Moves of each end of each cable to each free port of an xbar.
pub(super) fn moves(plant: &Plant) -> Vec<Fault> {
    let is_free = |end: &PlantPort| matches!(end.node, PlantNode::Xbar(_)) && !plant.is_plugged(*end);
    let free: Vec<PlantPort> = plant.ends().filter(is_free).collect();
    let ends = cables(plant).into_iter().flatten();
    ends.flat_map(|from| free.iter().map(move |&to| Fault::Move { from, to })).collect()
}

/// Both ends of each cable.
pub(super) fn cables(plant: &Plant) -> Vec<[PlantPort; 2]> {
    let ends = plant.ends().filter_map(|end| Some([end, plant.peer(end)?]));
    ends.filter(|[near, far]| near < far).collect()
}

/// The longest time that users of two hosts may hear nothing of each other behind a fault that strikes when all have settled; `None` if
/// nothing is promised. If hosts have kernels, it may take longer until one is found by probes that forwards no packets, or none of IPv4.
pub(super) fn most_gap(case: &Case, has_kernels: bool) -> Option<Duration> {
    let found_within = |within: Duration| if has_kernels { within } else { Duration::ZERO };
    Some(match case.fault {
        // All cables of the xbar go at once.
        Fault::Off(_) => MOST_GAP_OF_XBAR,
        // As long as a host lies, or has the address of another, nothing is promised, and neither is it where frames are
        // lost at random.
        Fault::Hostile(_) | Fault::Twin { .. } => return None,
        Fault::Lossy { .. } | Fault::Loss(_) | Fault::Corrupt(_) => return None,
        // No other cable may lead where this one did.
        Fault::Move { .. } if case.mended_after.is_some() => return None,
        Fault::Firewall(_) | Fault::Flush(_) | Fault::Move { .. } => {
            MOST_GAP_OF_CABLE + found_within(WAY_LEFT_WITHIN)
        }
        // Users' packets are of IPv4.
        Fault::FirewallV4(_) => MOST_GAP_OF_CABLE + found_within(V4_LEFT_WITHIN),
        Fault::Cut(_)
        | Fault::Mend(_)
        | Fault::Silence(_)
        | Fault::Kill(_)
        | Fault::Restart(_)
        | Fault::Mute(_)
        | Fault::Remove(_)
        | Fault::Insert(_)
        | Fault::Untwin(_)
        | Fault::On(_)
        | Fault::Swap(_)
        | Fault::Open(_)
        | Fault::Lose(_)
        | Fault::LoseTries(_)
        | Fault::Duplicate(_)
        | Fault::Jitter(_)
        | Fault::Rekey(_)
        | Fault::Mtu { .. }
        | Fault::Level { .. }
        | Fault::Passes { .. }
        | Fault::Set { .. }
        | Fault::Rename { .. }
        | Fault::Readdress { .. }
        | Fault::Alias { .. }
        | Fault::Ask { .. }
        | Fault::Heal => MOST_GAP_OF_CABLE,
    })
}
