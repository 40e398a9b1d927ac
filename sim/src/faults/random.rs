//! Faults drawn from a seed.

use std::ops::Range;
use std::time::Duration;

use mapper_proto::Instant;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Fault, Timed};
use crate::fabric::{Plant, PlantPort};

/// How many of its frames a cable loses that is drawn.
const LOSSY: Range<f64> = 0.05..0.4;

/// Which kind of fault to draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each is the fault of its name")]
pub enum RandomKind {
    Cut,
    Silence,
    Lossy,
    Move,
    Kill,
    Restart,
    Mute,
    Hostile,
    Remove,
    Off,
    Swap,
    Twin,
    Firewall,
    FirewallV4,
    Flush,
}

impl RandomKind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Cut,
        Self::Silence,
        Self::Lossy,
        Self::Move,
        Self::Kill,
        Self::Restart,
        Self::Mute,
        Self::Hostile,
        Self::Remove,
        Self::Off,
        Self::Swap,
        Self::Twin,
        Self::Firewall,
        Self::FirewallV4,
        Self::Flush,
    ];

    /// The word that fault files have for this kind.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Silence => "silence",
            Self::Lossy => "lossy",
            Self::Move => "move",
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::Mute => "mute",
            Self::Hostile => "hostile",
            Self::Remove => "remove",
            Self::Off => "off",
            Self::Swap => "swap",
            Self::Twin => "twin",
            Self::Firewall => "firewall",
            Self::FirewallV4 => "firewall-v4",
            Self::Flush => "flush",
        }
    }
}

/// A number of faults of one kind at random moments and places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomFaults {
    /// How many.
    pub count: u32,
    /// Of which kind.
    pub kind: RandomKind,
    /// The earliest moment.
    pub from: Instant,
    /// The latest moment.
    pub until: Instant,
    /// How long after it each fault is put right; `None` for never. Swaps and restarts are never put right.
    pub mend_after: Option<Duration>,
}

/// Draws all of `wanted` and adds them to `drawn`.
pub(super) fn draw(wanted: &[RandomFaults], plant: &Plant, seed: u64, drawn: &mut Vec<Timed>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x6661_756c_7473);
    let plugged: Vec<PlantPort> = plant.ends().filter(|&end| plant.is_plugged(end)).collect();
    let empty: Vec<PlantPort> = plant.ends().filter(|&end| !plant.is_plugged(end)).collect();
    let places = Places { plugged, empty, hosts: plant.hosts() as u32, xbars: plant.xbars() as u32 };
    for faults in wanted {
        for _ in 0..faults.count {
            let span = faults.until.as_nanos().saturating_sub(faults.from.as_nanos());
            let at = Instant::from_nanos(faults.from.as_nanos() + rng.random_range(0..=span));
            let Some((fault, repair)) = places.pick(faults.kind, &mut rng) else { continue };
            drawn.push(Timed { at, fault, line: None });
            if let (Some(after), Some(repair)) = (faults.mend_after, repair) {
                drawn.push(Timed { at: at + after, fault: repair, line: None });
            }
        }
    }
}

/// Where faults can strike.
struct Places {
    plugged: Vec<PlantPort>,
    empty: Vec<PlantPort>,
    hosts: u32,
    xbars: u32,
}

impl Places {
    /// A fault of this kind and what puts it right; `None` if the fabric has no place for it.
    fn pick(&self, kind: RandomKind, rng: &mut ChaCha8Rng) -> Option<(Fault, Option<Fault>)> {
        let host = |rng: &mut ChaCha8Rng| below(self.hosts, rng);
        let xbar = |rng: &mut ChaCha8Rng| below(self.xbars, rng);
        Some(match kind {
            RandomKind::Cut => {
                one_of(&self.plugged, rng).map(|end| (Fault::Cut(end), Some(Fault::Mend(end))))?
            }
            RandomKind::Silence => {
                one_of(&self.plugged, rng).map(|end| (Fault::Silence(end), Some(Fault::Mend(end))))?
            }
            RandomKind::Lossy => {
                let at = one_of(&self.plugged, rng)?;
                (Fault::Lossy { at, rate: rng.random_range(LOSSY) }, Some(Fault::Mend(at)))
            }
            RandomKind::Move => {
                let (from, to) = (one_of(&self.plugged, rng)?, one_of(&self.empty, rng)?);
                (Fault::Move { from, to }, Some(Fault::Move { from: to, to: from }))
            }
            RandomKind::Kill => host(rng).map(|h| (Fault::Kill(h), Some(Fault::Restart(h))))?,
            RandomKind::Restart => host(rng).map(|h| (Fault::Restart(h), None))?,
            RandomKind::Mute => host(rng).map(|h| (Fault::Mute(h), Some(Fault::Restart(h))))?,
            RandomKind::Hostile => host(rng).map(|h| (Fault::Hostile(h), Some(Fault::Restart(h))))?,
            RandomKind::Remove => host(rng).map(|h| (Fault::Remove(h), Some(Fault::Insert(h))))?,
            RandomKind::Off => xbar(rng).map(|x| (Fault::Off(x), Some(Fault::On(x))))?,
            RandomKind::Swap => xbar(rng).map(|x| (Fault::Swap(x), None))?,
            RandomKind::Firewall => host(rng).map(|h| (Fault::Firewall(h), Some(Fault::Open(h))))?,
            RandomKind::FirewallV4 => host(rng).map(|h| (Fault::FirewallV4(h), Some(Fault::Open(h))))?,
            RandomKind::Flush => host(rng).map(|h| (Fault::Flush(h), None))?,
            RandomKind::Twin => {
                let (host, of) = (host(rng)?, host(rng)?);
                (Fault::Twin { host, of }, Some(Fault::Untwin(host)))
            }
        })
    }
}

fn one_of(ends: &[PlantPort], rng: &mut ChaCha8Rng) -> Option<PlantPort> {
    (!ends.is_empty()).then(|| ends[rng.random_range(0..ends.len())])
}

fn below(count: u32, rng: &mut impl Rng) -> Option<u32> {
    (count > 0).then(|| rng.random_range(0..count))
}
