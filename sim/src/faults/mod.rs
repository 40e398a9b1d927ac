//! What goes wrong, and when: the fault file, random faults, and faults as the world applies them.
//!
//! The language of fault files is that of [`LANGUAGE`]:
//!
//! ```text
#![doc = include_str!("language.txt")]
//! ```

mod parse;
mod random;
mod setting;

pub use parse::{FaultError, rate};
pub use random::{RandomFaults, RandomKind};
pub use setting::Setting;

use std::time::Duration;

use mapper_proto::Instant;

use crate::fabric::{Plant, PlantNode, PlantPort};

/// The language of fault files, for people.
pub const LANGUAGE: &str = include_str!("language.txt");

/// One thing that goes wrong or is put right.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The cable breaks; both ends lose carrier.
    Cut(PlantPort),
    /// The cable works (again).
    Mend(PlantPort),
    /// The cable swallows all frames and keeps its carrier.
    Silence(PlantPort),
    /// The cable loses some frames and carries the others.
    Lossy {
        /// An end of the cable.
        at: PlantPort,
        /// The probability with which each frame gets lost.
        rate: f64,
    },
    /// An end of a cable is unplugged and plugged in elsewhere.
    Move {
        /// Where the end was.
        from: PlantPort,
        /// Where it is plugged in.
        to: PlantPort,
    },
    /// The host's agent is gone; its wire keeps its carrier.
    Kill(u32),
    /// The host's agent starts anew.
    Restart(u32),
    /// The host's agent hangs.
    Mute(u32),
    /// The host's agent turns against the others.
    Hostile(u32),
    /// The host's interface is taken out.
    Remove(u32),
    /// The host's interface is put in again, and an agent starts.
    Insert(u32),
    /// The host's agent starts anew with the address of another.
    Twin {
        /// Which host.
        host: u32,
        /// Whose address it takes.
        of: u32,
    },
    /// The host's agent starts anew with its own address.
    Untwin(u32),
    /// The xbar loses power.
    Off(u32),
    /// The xbar has power (again).
    On(u32),
    /// The xbar is replaced by another.
    Swap(u32),
    /// The frame of this number is lost. The frames that hosts send from now on are numbered from 1.
    Lose(u64),
    /// The frame of this number is lost, as by [`Self::Lose`], and so is all that its sender sends the same
    /// way within [`Self::TRIES`]: also what it sends again because there was no answer.
    LoseTries(u64),
    /// The host's agent goes on by one step of the change of keys, if agents sign.
    Rekey(u32),
    /// The host's interface carries only frames of at most so many bytes.
    Mtu {
        /// Which host.
        host: u32,
        /// The longest frame, in bytes behind its Ethernet header.
        bytes: u16,
    },
    /// The host is set to another level while it runs. A new agent begins, and the host's routes stay in use
    /// meanwhile.
    Level {
        /// Which host.
        host: u32,
        /// The level of its rank in the election from now on.
        level: u8,
    },
    /// The host is set to another number of routes to a destination while it runs.
    Passes {
        /// Which host.
        host: u32,
        /// How many routes it computes for a destination from now on.
        passes: u8,
    },
    /// The host is set otherwise than before, or than others. One that runs goes on with its agent.
    Set {
        /// Which host.
        host: u32,
        /// The setting that it has from now on.
        setting: Setting,
    },
    /// The host announces another name, which has this number, while it runs.
    Rename {
        /// Which host.
        host: u32,
        /// The number of the name.
        number: u16,
    },
    /// The host has another address of IPv4 from now on, which has this number, instead of the one that it had.
    Readdress {
        /// Which host.
        host: u32,
        /// The number of the address, among those that no other host ever has.
        number: u16,
    },
    /// From now on this host, and no other, has the name of this number, which is not announced.
    Alias {
        /// The number of the name.
        number: u16,
        /// Which host.
        to: u32,
    },
    /// The host asks all others who has the name of this number.
    Ask {
        /// Which host.
        host: u32,
        /// The number of the name.
        number: u16,
    },
    /// The host's kernel forwards nothing, and takes nothing for itself from the fabric.
    Firewall(u32),
    /// The host's kernel forwards no packets of IPv4, and takes none for itself from the fabric.
    FirewallV4(u32),
    /// The host's kernel forwards (again).
    Open(u32),
    /// Somebody empties the tables of the host's kernel without telling its daemon.
    Flush(u32),
    /// Cables are mended, xbars and interfaces are back, all agents are honest and run with their own
    /// addresses, kernels forward, and there is no noise. Moves, swaps, keys, MTUs, settings and addresses stay.
    Heal,
    /// Frames are lost with this probability on each cable.
    Loss(f64),
    /// A bit of a frame flips with this probability on each cable.
    Corrupt(f64),
    /// Frames arrive twice with this probability.
    Duplicate(f64),
    /// Frames are late by up to this.
    Jitter(Duration),
}

impl Fault {
    /// How long [`Self::LoseTries`] has a sender's frames lost on one way, which is longer than an agent
    /// repeats a question without an answer.
    pub const TRIES: Duration = Duration::from_millis(20);

    /// Whether the fault is about names, so that nothing goes wrong by it.
    pub(crate) const fn is_about_names(&self) -> bool {
        matches!(self, Self::Rename { .. } | Self::Alias { .. } | Self::Ask { .. })
    }

    /// The word that fault files have for this kind of fault.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Cut(_) => "cut",
            Self::Mend(_) => "mend",
            Self::Silence(_) => "silence",
            Self::Lossy { .. } => "lossy",
            Self::Move { .. } => "move",
            Self::Kill(_) => "kill",
            Self::Restart(_) => "restart",
            Self::Mute(_) => "mute",
            Self::Hostile(_) => "hostile",
            Self::Remove(_) => "remove",
            Self::Insert(_) => "insert",
            Self::Twin { .. } => "twin",
            Self::Untwin(_) => "untwin",
            Self::Off(_) => "off",
            Self::On(_) => "on",
            Self::Swap(_) => "swap",
            Self::Lose(_) => "lose",
            Self::LoseTries(_) => "lose-tries",
            Self::Rekey(_) => "rekey",
            Self::Mtu { .. } => "mtu",
            Self::Level { .. } => "level",
            Self::Passes { .. } => "passes",
            Self::Set { .. } => "set",
            Self::Rename { .. } => "rename",
            Self::Readdress { .. } => "readdress",
            Self::Alias { .. } => "alias",
            Self::Ask { .. } => "ask",
            Self::Firewall(_) => "firewall",
            Self::FirewallV4(_) => "firewall-v4",
            Self::Open(_) => "open",
            Self::Flush(_) => "flush",
            Self::Heal => "heal",
            Self::Loss(_) => "loss",
            Self::Corrupt(_) => "corrupt",
            Self::Duplicate(_) => "duplicate",
            Self::Jitter(_) => "jitter",
        }
    }

    /// The fault as a line of a fault file has it, without its time.
    pub fn describe(&self, plant: &Plant) -> String {
        let host = |host: &u32| written(plant.name(PlantNode::Host(*host)));
        let xbar = |xbar: &u32| written(plant.name(PlantNode::Xbar(*xbar)));
        let end = |end: &PlantPort| match end.node {
            PlantNode::Host(index) => host(&index),
            PlantNode::Xbar(index) => format!("{}:{}", xbar(&index), end.port),
        };
        let word = self.word();
        match self {
            Self::Cut(at) | Self::Mend(at) | Self::Silence(at) => format!("{word} {}", end(at)),
            Self::Lossy { at, rate } => format!("{word} {} {}%", end(at), rate * 100.0),
            Self::Move { from, to } => format!("{word} {} to {}", end(from), end(to)),
            Self::Kill(h)
            | Self::Restart(h)
            | Self::Mute(h)
            | Self::Hostile(h)
            | Self::Remove(h)
            | Self::Insert(h)
            | Self::Untwin(h)
            | Self::Firewall(h)
            | Self::FirewallV4(h)
            | Self::Open(h)
            | Self::Flush(h)
            | Self::Rekey(h) => format!("{word} {}", host(h)),
            Self::Twin { host: h, of } => format!("{word} {} of {}", host(h), host(of)),
            Self::Off(x) | Self::On(x) | Self::Swap(x) => format!("{word} {}", xbar(x)),
            Self::Mtu { host: h, bytes } => format!("{word} {} {bytes}", host(h)),
            Self::Level { host: h, level } => format!("{word} {} {level}", host(h)),
            Self::Passes { host: h, passes } => format!("{word} {} {passes}", host(h)),
            Self::Set { host: h, setting } => format!("{word} {} {setting}", host(h)),
            Self::Alias { number, to } => format!("{word} {number} to {}", host(to)),
            Self::Rename { host: h, number }
            | Self::Readdress { host: h, number }
            | Self::Ask { host: h, number } => {
                format!("{word} {} {number}", host(h))
            }
            Self::Lose(number) | Self::LoseTries(number) => format!("{word} {number}"),
            Self::Heal => word.to_owned(),
            Self::Loss(rate) | Self::Corrupt(rate) | Self::Duplicate(rate) => {
                format!("{word} {}%", rate * 100.0)
            }
            Self::Jitter(most) => format!("{word} {}us", most.as_nanos() as f64 / 1e3),
        }
    }
}

/// A name as a fault file has it: in quotes if it has blanks.
fn written(name: &str) -> String {
    let plain = !name.is_empty() && !name.starts_with('#') && !name.contains(char::is_whitespace);
    if plain { name.to_owned() } else { format!("\"{name}\"") }
}

/// A fault and its moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timed {
    /// When the fault strikes.
    pub at: Instant,
    /// The fault.
    pub fault: Fault,
    /// The line of the file that demands the fault. `None` if the fault was drawn; it is then skipped if the
    /// state of the plant does not allow it.
    pub line: Option<usize>,
}

/// Everything that a fault file demands.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FaultPlan {
    /// Faults at set times.
    pub timed: Vec<Timed>,
    /// Faults to draw.
    pub random: Vec<RandomFaults>,
}

impl FaultPlan {
    /// Most faults in a file, those to draw and those that mend them included.
    pub const MAX_FAULTS: u64 = 100_000;
    /// The latest moment and the longest time.
    pub const MAX_TIME: Duration = Duration::from_secs(1_000_000);

    /// All faults in the order in which they strike, the random ones drawn from `seed`.
    pub fn draw(&self, plant: &Plant, seed: u64) -> Vec<Timed> {
        let mut all = self.timed.clone();
        random::draw(&self.random, plant, seed, &mut all);
        all.sort_by_key(|timed| timed.at);
        all
    }

    /// Whether it demands nothing.
    pub fn is_empty(&self) -> bool {
        self.timed.is_empty() && self.random.is_empty()
    }
}
