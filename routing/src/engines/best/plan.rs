//! Which engines are tried on a fabric, and when.

use super::ORDER;
use crate::engines::selection::Tried;
use crate::engines::{
    Balance, Engine, Refusal, Setting, Settings, WhyNotServed, balanced, in_force, setting,
};
use crate::{Subnet, Tables, Topology};
use mapper_fabric::wording::counted;

/// Table entries above which only engines for trees are tried as long as one of them serves.
const MANY_ENTRIES: u64 = 1 << 26;
/// How many engines compute side by side on such a fabric. All of their tables are held, which takes memory.
const FEW: usize = 2;
/// Steps of a search from each address above which sssp, which makes two, takes far longer than engines that rank.
const SSSP_STEPS: u64 = 1 << 27;
/// Turns of all addresses above which nue takes far longer. It needs some five nanoseconds for each.
const NUE_TURNS: u64 = 1 << 30;
/// Turns of all pairs of xbars with hosts above which engines take far longer that put each pair into a
/// layer. They need some three nanoseconds for each.
const PAIR_TURNS: u64 = 1 << 30;
/// Turns of all pairs above which those engines take far longer if they may use several layers. This limit is
/// higher, as they are then likelier to serve.
const PAIR_TURNS_IN_LAYERS: u64 = 1 << 33;

/// How long an engine takes, compared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effort {
    /// It takes no longer than others.
    Little,
    /// It takes longer on a fabric as large as this.
    More,
    /// It takes far longer.
    FarMore,
}

/// When an engine is tried. All engines of smaller rounds have to fail before it.
type Round = (bool, Effort);

/// Which engines are tried, and when.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    settings: Settings,
    /// Each engine and its round, in the order of rounds.
    entries: Vec<(Engine, Round)>,
    /// How large the fabric is, in words that tell why an engine waits.
    size: String,
    side_by_side: usize,
    /// Whether minhop is left out, as updn has the same ways.
    is_minhop_updn: bool,
}

impl Plan {
    /// The plan for a subnet. One layer is allowed unless `settings` says how many.
    ///
    /// The first round has the engines that obey all that is set and take no longer than others. An engine of a
    /// later round is tried only if none before serves.
    pub(super) fn new(subnet: &Subnet, settings: &Settings) -> Self {
        let most = settings.max_layers.unwrap_or(settings.first_layer.saturating_add(1));
        let settings = Settings { max_layers: Some(most), ..settings.clone() };
        let size = Size::of(subnet, most.saturating_sub(settings.first_layer));
        let decisive = decisive(&settings);
        let mut entries: Vec<(Engine, Round)> = ORDER
            .into_iter()
            .filter(|&engine| cannot_serve(engine, &settings).is_none())
            .map(|engine| {
                let obeys = engine.obeys(&settings);
                let disobeys = !decisive.iter().all(|setting| obeys.contains(setting));
                (engine, (disobeys, size.effort(engine)))
            })
            .collect();
        entries.sort_by_key(|&(_, round)| round);
        let is_large = size.entries > MANY_ENTRIES;
        let is_minhop_updn = is_large && can_updn_replace_minhop(subnet, &settings, &entries);
        entries.retain(|&(engine, _)| !is_minhop_updn || engine != Engine::Minhop);
        let side_by_side = if is_large { FEW } else { ORDER.len() };
        Self { settings, entries, size: size.text(), side_by_side, is_minhop_updn }
    }

    /// How many engines compute side by side.
    pub(super) fn side_by_side(&self) -> usize {
        self.side_by_side
    }

    /// The engines of each round.
    pub(super) fn rounds(&self) -> impl Iterator<Item = Vec<Engine>> {
        self.entries.chunk_by(|one, next| one.1 == next.1).map(|round| {
            let engines = round.iter();
            engines.map(|&(engine, _)| engine).collect()
        })
    }

    /// The settings that engines are tried with.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The tables that were in force, if as much of them is to stay as possible.
    pub(super) fn in_force(&self, subnet: &Subnet) -> Option<&Tables> {
        in_force::fitting(subnet, &self.settings)
    }

    /// Why an engine was not tried.
    pub(super) fn why_left_out(&self, engine: Engine) -> Tried {
        if let Some(why_not) = cannot_serve(engine, &self.settings) {
            return Tried { engine, why_not };
        }
        if engine == Engine::Minhop && self.is_minhop_updn {
            return Tried { engine, why_not: WhyNotServed::SameWays { other: Engine::Updn } };
        }
        let round = self.entries.iter().find(|&&(other, _)| other == engine).map(|&(_, round)| round);
        let why_not = match round {
            Some((true, _)) => {
                let settings = Settings { max_layers: None, ..self.settings.clone() };
                WhyNotServed::Disobeys(setting::without_effect(engine, &settings))
            }
            _ => WhyNotServed::TakesLong { size: self.size.clone() },
        };
        Tried { engine, why_not }
    }
}

/// Whether minhop need not be tried beside updn. To know takes a small part of the time of trying it.
///
/// Where entries count that no host's frame comes by, the two differ.
fn can_updn_replace_minhop(subnet: &Subnet, settings: &Settings, entries: &[(Engine, Round)]) -> bool {
    let round_of = |engine| entries.iter().find(|&&(other, _)| other == engine).map(|&(_, round)| round);
    let are_of_one_round =
        round_of(Engine::Minhop).is_some_and(|round| round_of(Engine::Updn) == Some(round));
    let is_whole = in_force::fitting(subnet, settings).is_some() || settings.xbar_destinations;
    let is_balanced = settings.balance != Balance::Opensm && settings.hops.is_none();
    are_of_one_round && !is_whole && is_balanced && balanced::has_minhop_the_ways_of_updn(subnet, settings)
}

/// Why an engine cannot serve at all with these settings.
fn cannot_serve(engine: Engine, settings: &Settings) -> Option<WhyNotServed> {
    match engine {
        Engine::Dispersive => Some(WhyNotServed::Refused(Refusal::NoTables)),
        Engine::File if settings.file.is_none() && in_force::tables(settings).is_none() => {
            Some(WhyNotServed::NothingToLoad)
        }
        _ => None,
    }
}

/// The settings that an engine must obey to be tried first: those that somebody set and some engine obeys. A
/// setting that is for a single engine alone, or decides only how many layers there are, does not set back
/// the others. Neither do tables that were in force, as it is counted how many of their entries an engine
/// changes.
fn decisive(settings: &Settings) -> Vec<Setting> {
    let of_one = [Setting::MaxLayers, Setting::Previous, Setting::File, Setting::Passes, Setting::Hops];
    Setting::set(settings).filter(|setting| !of_one.contains(setting)).collect()
}

/// The sizes that decide how long engines take.
pub(super) struct Size {
    pub(super) entries: u64,
    pub(super) addresses: u64,
    pub(super) channels: u64,
    pub(super) leaves: u64,
    /// How many turns from channel to channel there are at all xbars.
    pub(super) turns: u64,
    /// How many layers may be used.
    pub(super) layers: u8,
}

impl Size {
    fn of(subnet: &Subnet, layers: u8) -> Self {
        let topology = &subnet.topology;
        let xbars = 0..topology.xbar_count() as u32;
        let leaves = xbars.clone().filter(|&xbar| subnet.is_leaf(xbar)).count() as u64;
        let addresses = xbars.clone().map(|xbar| subnet.destinations.host_slots_of(xbar).len() as u64).sum();
        Self {
            entries: topology.xbar_count() as u64 * subnet.destinations.slot_count() as u64,
            addresses,
            channels: topology.channel_count() as u64,
            leaves,
            turns: xbars.map(|xbar| turns_at(topology, xbar)).sum(),
            layers,
        }
    }

    pub(super) fn effort(&self, engine: Engine) -> Effort {
        let is_far_more = match engine {
            Engine::Nue => self.addresses * self.turns > NUE_TURNS,
            Engine::Lash | Engine::Dfsssp => {
                let most = if self.layers > 1 { PAIR_TURNS_IN_LAYERS } else { PAIR_TURNS };
                self.leaves * self.leaves * self.turns > most
            }
            Engine::Sssp => self.addresses * self.channels > SSSP_STEPS,
            _ => false,
        };
        let for_trees = [Engine::Ftree, Engine::Dmodc, Engine::Updn, Engine::Minhop, Engine::File];
        if is_far_more {
            Effort::FarMore
        } else if self.entries > MANY_ENTRIES && !for_trees.contains(&engine) {
            Effort::More
        } else {
            Effort::Little
        }
    }

    fn text(&self) -> String {
        format!(
            "{} and {}",
            counted(self.addresses, "address", "addresses"),
            counted(self.channels / 2, "cable between xbars", "cables between xbars")
        )
    }
}

fn turns_at(topology: &Topology, xbar: u32) -> u64 {
    let channels = topology.channels_of(xbar).filter(|&channel| !topology.is_dead(channel)).count() as u64;
    channels * channels.saturating_sub(1)
}
