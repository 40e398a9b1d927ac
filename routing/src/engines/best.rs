//! The best that is proved: which engines to try on a fabric, and which of them serves it best.
//!
//! A `Plan` says which engines to try in which rounds, `attempt` tries one, and `Choice` keeps the best of all
//! that were tried. [`choose`] runs a plan.

use rayon::prelude::*;

use super::selection::{self, Selection, Tried};
use super::{Engine, Refusal, Setting, Settings, WhyNotServed, setting};
use crate::{Quality, Subnet, TableRoutes, Topology};
use mapper_fabric::wording::counted;

/// Engines in the order in which they are preferred if their tables are as good: the simplest first.
const SIMPLEST: [Engine; 11] = [
    Engine::Ftree,
    Engine::Dmodc,
    Engine::Updn,
    Engine::Minhop,
    Engine::Dnup,
    Engine::Torus,
    Engine::Dor,
    Engine::Sssp,
    Engine::Lash,
    Engine::Dfsssp,
    Engine::Nue,
];

/// All engines, the simplest of equals first. Those that `SIMPLEST` does not name come last, in the order of
/// [`Engine::ALL`].
pub const ORDER: [Engine; Engine::ALL.len()] = {
    let mut order = Engine::ALL;
    let mut placed = 0;
    while placed < SIMPLEST.len() {
        order[placed] = SIMPLEST[placed];
        placed += 1;
    }
    let mut next = 0;
    while next < Engine::ALL.len() {
        let mut at = 0;
        while at < SIMPLEST.len() && SIMPLEST[at] as usize != Engine::ALL[next] as usize {
            at += 1;
        }
        if at == SIMPLEST.len() {
            order[placed] = Engine::ALL[next];
            placed += 1;
        }
        next += 1;
    }
    order
};

/// Table entries above which only engines for trees are tried as long as one of them serves.
const MANY_ENTRIES: u64 = 1 << 26;
/// Steps of a search from each address above which sssp takes far longer than engines that rank.
const SSSP_STEPS: u64 = 1 << 28;
/// Turns of all addresses above which nue does: it needs some five nanoseconds each.
const NUE_TURNS: u64 = 1 << 30;
/// Turns of all pairs of xbars with hosts above which engines do that put each pair into a layer: they need
/// some three nanoseconds each.
const PAIR_TURNS: u64 = 1 << 30;
/// Turns of all pairs above which those engines take far longer where they may use several layers, and are likelier
/// to serve.
const PAIR_TURNS_IN_LAYERS: u64 = 1 << 33;

/// How long an engine takes, against others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effort {
    /// No longer than others.
    Little,
    /// Longer, on a fabric as large as this.
    More,
    /// Far longer.
    FarMore,
}

/// When an engine is tried: what has to fail before it.
type Round = (bool, Effort);

/// Which engines are tried, and when.
#[derive(Debug, Clone)]
struct Plan {
    settings: Settings,
    /// Each engine and its round, in the order of rounds.
    entries: Vec<(Engine, Round)>,
    /// How large the fabric is, for those who are told why an engine waits.
    size: String,
}

impl Plan {
    /// The plan for a subnet. One layer is allowed unless `settings` says how many.
    ///
    /// The first round has the engines that obey all that is set and take no longer than others. An engine of a
    /// later round is tried only if none before serves.
    fn new(subnet: &Subnet, settings: &Settings) -> Self {
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
        Self { settings, entries, size: size.text() }
    }

    /// The engines of each round.
    fn rounds(&self) -> impl Iterator<Item = Vec<Engine>> {
        self.entries.chunk_by(|one, next| one.1 == next.1).map(|round| {
            let engines = round.iter();
            engines.map(|&(engine, _)| engine).collect()
        })
    }

    /// Why an engine that was not tried was not.
    fn why_left_out(&self, engine: Engine) -> Tried {
        if let Some(why_not) = cannot_serve(engine, &self.settings) {
            return Tried { engine, why_not };
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

/// Why an engine is not for this at all.
fn cannot_serve(engine: Engine, settings: &Settings) -> Option<WhyNotServed> {
    match engine {
        Engine::Dispersive => Some(WhyNotServed::Refused(Refusal::NoTables)),
        Engine::File if settings.file.is_none() => Some(WhyNotServed::NothingToLoad),
        _ => None,
    }
}

/// The settings that an engine must obey to be tried first: those that somebody set and some engine obeys. What
/// is set for a single engine alone, or decides nothing but how many layers there are, sets no other back.
fn decisive(settings: &Settings) -> Vec<Setting> {
    let of_one = [Setting::MaxLayers, Setting::File, Setting::Passes, Setting::Hops];
    Setting::set(settings).filter(|setting| !of_one.contains(setting)).collect()
}

/// What decides how long engines take.
struct Size {
    entries: u64,
    addresses: u64,
    channels: u64,
    leaves: u64,
    /// From channel to channel at all xbars.
    turns: u64,
    /// How many layers may be used.
    layers: u8,
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

    fn effort(&self, engine: Engine) -> Effort {
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

/// Tables that are proved, and how good they are.
#[derive(Debug, Clone)]
struct Candidate {
    selection: Selection,
    effective_bisection: f64,
}

impl Candidate {
    /// Whether it is better than another: by its bisection, then by fewer layers, then for being simpler.
    fn is_better_than(&self, other: &Self) -> bool {
        let by = self.effective_bisection.total_cmp(&other.effective_bisection);
        let layers = |of: &Self| of.selection.routing.layers.count;
        let by = by.then(layers(other).cmp(&layers(self)));
        by.then(place(other.selection.engine).cmp(&place(self.selection.engine))).is_gt()
    }

    fn beaten(self) -> Tried {
        let why_not = WhyNotServed::Beaten { effective_bisection: self.effective_bisection };
        Tried { engine: self.selection.engine, why_not }
    }
}

fn place(engine: Engine) -> usize {
    ORDER.into_iter().take_while(|&other| other != engine).count()
}

/// The best of some attempts.
#[derive(Debug, Clone, Default)]
struct Choice {
    best: Option<Candidate>,
    others: Vec<Tried>,
}

impl Choice {
    /// The better of two, whatever their order.
    #[must_use]
    fn and(mut self, other: Self) -> Self {
        self.others.extend(other.others);
        let (best, beaten) = match (self.best, other.best) {
            (Some(one), Some(other)) if other.is_better_than(&one) => (Some(other), Some(one)),
            (Some(one), other) => (Some(one), other),
            (None, other) => (other, None),
        };
        self.others.extend(beaten.map(Candidate::beaten));
        Self { best, ..self }
    }

    /// Whether any engine serves.
    fn serves(&self) -> bool {
        self.best.is_some()
    }

    /// What serves, with all other engines as those that were tried.
    ///
    /// # Errors
    /// If none serves.
    fn finish(mut self, plan: &Plan) -> Result<Selection, super::NotRouted> {
        let served = self.best.as_ref().map(|best| best.selection.engine);
        for engine in ORDER {
            let is_there = |tried: &Tried| tried.engine == engine;
            if served != Some(engine) && !self.others.iter().any(is_there) {
                self.others.push(plan.why_left_out(engine));
            }
        }
        self.others.sort_by_key(|tried| place(tried.engine));
        match self.best {
            Some(best) => Ok(Selection { tried: self.others, ..best.selection }),
            None => Err(super::NotRouted { tried: self.others }),
        }
    }
}

/// What is told while a plan runs.
pub trait Watch: Sync {
    /// A round begins, in which so many engines are tried side by side.
    fn begin_round(&self, _engines: usize) {}

    /// An engine of the round was tried.
    fn end_attempt(&self) {}
}

/// Nobody watches.
impl Watch for () {}

/// Tries the engines that suit a fabric, those of a round side by side, and keeps the tables with the best effective
/// bisection. On any number of threads the choice is the same.
///
/// # Errors
/// If no engine serves.
pub fn choose(
    subnet: &Subnet,
    settings: &Settings,
    watch: &impl Watch,
) -> Result<Selection, super::NotRouted> {
    let plan = Plan::new(subnet, settings);
    let mut choice = Choice::default();
    for round in plan.rounds() {
        watch.begin_round(round.len());
        let attempts = round.into_par_iter().map(|engine| {
            let attempted = attempt(subnet, engine, &plan);
            watch.end_attempt();
            attempted
        });
        choice = choice.and(attempts.reduce(Choice::default, Choice::and));
        if choice.serves() {
            break;
        }
    }
    choice.finish(&plan)
}

/// Computes, proves and measures by one engine.
fn attempt(subnet: &Subnet, engine: Engine, plan: &Plan) -> Choice {
    match selection::tables(subnet, engine, &plan.settings, false) {
        Err(tried) => Choice { best: None, others: vec![tried] },
        Ok(selection) => {
            let routes = TableRoutes::proved(subnet, &selection.routing.tables, selection.proof.max_hops);
            let effective_bisection = Quality::bisection(&routes, plan.settings.seed);
            Choice { best: Some(Candidate { selection, effective_bisection }), others: Vec::new() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabrics::random;
    use mapper_fabric::generate;
    use mapper_proto::map::Fabric;
    use proptest::prelude::*;

    fn choose(subnet: &Subnet, settings: &Settings) -> Result<Selection, super::super::NotRouted> {
        super::choose(subnet, settings, &())
    }

    fn bisection(subnet: &Subnet, selection: &Selection) -> f64 {
        Quality::measure(&TableRoutes::new(subnet, &selection.routing.tables), 1).effective_bisection
    }

    #[test]
    fn every_engine_has_its_place() {
        let mut sorted = ORDER;
        sorted.sort_unstable();
        assert_eq!(sorted, Engine::ALL);
    }

    #[test]
    fn the_others_say_what_they_would_give_or_why_they_do_not_serve() {
        let subnet = Subnet::new(&generate("hypercube:d=4,hosts=2").unwrap(), None).unwrap();
        let served = choose(&subnet, &Settings::default()).unwrap();
        let named: Vec<Engine> = served.tried.iter().map(|tried| tried.engine).collect();
        let all: Vec<Engine> = ORDER.into_iter().filter(|&engine| engine != served.engine).collect();
        assert_eq!(named, all);
        let best = bisection(&subnet, &served);
        for tried in &served.tried {
            assert!(!tried.why_not.to_string().is_empty(), "{tried:?}");
            assert!(tried.why_not.effective_bisection().is_none_or(|other| other <= best), "{tried:?}");
        }
        assert!(
            served.tried.iter().filter(|tried| tried.why_not.effective_bisection().is_some()).count() > 1
        );
    }

    #[test]
    fn one_layer_is_allowed_unless_more_are() {
        let subnet = Subnet::new(&generate("torus:x=5,y=5,hosts=2").unwrap(), None).unwrap();
        let one = choose(&subnet, &Settings::default()).unwrap();
        assert_eq!(one.routing.layers.count, 1);
        let more = choose(&subnet, &Settings { max_layers: Some(4), ..Settings::default() }).unwrap();
        assert!((2..=4).contains(&more.routing.layers.count));
        assert!(bisection(&subnet, &more) > bisection(&subnet, &one));
        let shifted = choose(&subnet, &Settings { first_layer: 3, ..Settings::default() }).unwrap();
        assert_eq!((shifted.routing.layers.first, shifted.routing.layers.count), (3, 1));
    }

    #[test]
    fn who_does_not_obey_what_is_set_is_tried_only_if_nobody_else_serves() {
        let subnet = Subnet::new(&generate("clos:hosts=8,ports=4").unwrap(), None).unwrap();
        let xbars = 0..subnet.topology.xbar_count() as u32;
        let spines: Vec<u32> = xbars.filter(|&xbar| !subnet.is_leaf(xbar)).collect();
        let settings = Settings { roots: Some(spines), ..Settings::default() };
        let served = choose(&subnet, &settings).unwrap();
        assert!(served.engine.obeys(&settings).contains(&Setting::Roots), "{}", served.engine);
        let nue = served.tried.iter().find(|tried| tried.engine == Engine::Nue).unwrap();
        assert!(
            nue.why_not.is_left_out() && nue.why_not.to_string().contains("roots: no effect on nue"),
            "{nue:?}"
        );
        // On a ring no routes from ranks join all pairs without a credit loop.
        let subnet = Subnet::new(&generate("ring:n=5,hosts=1").unwrap(), None).unwrap();
        let settings = Settings { port_order: [(0, vec![1, 2])].into(), ..Settings::default() };
        let served = choose(&subnet, &settings).unwrap();
        assert!(!served.engine.obeys(&settings).contains(&Setting::PortOrder), "{}", served.engine);
    }

    #[test]
    fn what_takes_far_longer_waits() {
        let subnet = Subnet::new(&generate("xgft:h=2;m=18,36;w=1,18").unwrap(), None).unwrap();
        let plan = Plan::new(&subnet, &Settings::default());
        assert_eq!(plan.rounds().count(), 1, "a small fabric");
        let large = Size {
            entries: 1 << 30,
            addresses: 1 << 16,
            channels: 1 << 18,
            leaves: 1 << 11,
            turns: 1 << 24,
            layers: 1,
        };
        assert_eq!(large.effort(Engine::Ftree), Effort::Little);
        assert_eq!(large.effort(Engine::Dnup), Effort::More);
        assert_eq!(large.effort(Engine::Nue), Effort::FarMore);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever the fabric, no engine that is named alone, with as many layers, is better.
        #[test]
        fn no_engine_alone_is_better(seed: u64, most in 1_u8..4) {
            let subnet = Subnet::new(&Fabric { map: random(seed), ..Fabric::default() }, None).unwrap();
            let settings = Settings { max_layers: Some(most), ..Settings::default() };
            let Ok(served) = choose(&subnet, &settings) else {
                for engine in ORDER {
                    prop_assert!(super::super::select(&subnet, &[engine], &settings, false).is_err());
                }
                return Ok(());
            };
            prop_assert!(served.proof.holds() && served.routing.layers.count <= most);
            let best = bisection(&subnet, &served);
            for engine in ORDER {
                if let Ok(alone) = super::super::select(&subnet, &[engine], &settings, false) {
                    prop_assert!(bisection(&subnet, &alone) <= best, "{} against {}", engine, served.engine);
                }
            }
        }
    }
}
