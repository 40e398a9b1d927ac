//! Every single cable or xbar that may fail, the worst first.
//!
//! A fabric has too many to have engines route it without each of them. So they are ranked by what is quickly known of
//! all, and engines route only what comes first:
//!
//! - How many hosts a failure parts from the others is exact ([`Rank::cut_off`]), and is what is ranked by first.
//! - How many routes cross what fails is exact, too, of the tables in force ([`Rank::routes`]).
//! - How much fuller the cables around it become is an estimate ([`Rank::strain`]): an engine may move routes elsewhere,
//!   and not to the cables beside.

use std::collections::BTreeMap;

use mapper_proto::map::Fabric;
use mapper_routing::engines::{Engine, Settings};
use mapper_routing::{Attachment, Far, Topology};
use rayon::prelude::*;

use super::routed::ConsequencesError;
use super::{By, Change, Routed};

/// What may fail alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Single {
    /// A cable between xbars, by its number.
    Cable(u32),
    /// The cable of a host, by the host's number.
    Host(u32),
    /// An xbar.
    Xbar(u32),
}

impl Single {
    /// All cables between xbars.
    pub(crate) fn cables(fabric: &Fabric) -> Vec<Self> {
        (0..fabric.map.cables.len() as u32).map(Self::Cable).collect()
    }

    /// The cables of all hosts that have one.
    pub(crate) fn host_cables(fabric: &Fabric) -> Vec<Self> {
        let hosts = (0..).zip(&fabric.map.hosts).filter(|(_, host)| host.at.is_some());
        hosts.map(|(number, _)| Self::Host(number)).collect()
    }

    /// All xbars.
    pub(crate) fn xbars(fabric: &Fabric) -> Vec<Self> {
        (0..fabric.map.xbars.len() as u32).map(Self::Xbar).collect()
    }

    /// The change that it is.
    pub(crate) fn change(self) -> Change {
        match self {
            Self::Cable(cable) => Change { cables: [cable].into(), ..Change::default() },
            Self::Host(host) => Change { host_cables: [host].into(), ..Change::default() },
            Self::Xbar(xbar) => Change { xbars: [xbar].into(), ..Change::default() },
        }
    }
}

/// What is quickly known of a failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rank {
    /// What fails.
    pub(crate) single: Single,
    /// How many hosts it parts from most others that they were joined with.
    pub(crate) cut_off: usize,
    /// How many routes between hosts cross it; for an xbar, how often they cross its cables to others.
    pub(crate) routes: f64,
    /// How many of these routes there are for each cable that is left at one of its neighbours, at the neighbour where they
    /// are most.
    pub(crate) strain: f64,
}

/// Ranks failures of a fabric, of which `whole` are the routes in force: those that part most hosts first, then those that
/// strain most, then those that most routes cross. Calls `done` for each.
pub(crate) fn rank(
    fabric: &Fabric,
    whole: &Routed,
    singles: &[Single],
    done: &(impl Fn() + Sync),
) -> Vec<Rank> {
    let ranking = Ranking::new(fabric, whole);
    let ranked = |&single: &Single| {
        let rank = ranking.rank(single);
        done();
        rank
    };
    let mut all: Vec<Rank> = singles.par_iter().map(ranked).collect();
    all.sort_by(|one, other| {
        let by_cut_off = other.cut_off.cmp(&one.cut_off);
        let by_loads = other.strain.total_cmp(&one.strain).then(other.routes.total_cmp(&one.routes));
        by_cut_off.then(by_loads).then(one.single.cmp(&other.single))
    });
    all
}

/// Failures of which the same is quickly known, such as those of all cables of hosts, or of all cables at one place of a regular
/// fabric: one that stands for them, and how many they are. They keep their order.
pub(crate) fn alike(ranks: &[Rank]) -> Vec<(Rank, usize)> {
    let kind = |single: Single| match single {
        Single::Cable(_) => 0,
        Single::Host(_) => 1,
        Single::Xbar(_) => 2,
    };
    let mut places: BTreeMap<(u8, usize, u64, u64), usize> = BTreeMap::new();
    let mut classes: Vec<(Rank, usize)> = Vec::new();
    for rank in ranks {
        // As numbers of bits they can be compared; equal loads have equal bits, as each is a sum in the same order.
        let what = (kind(rank.single), rank.cut_off, rank.routes.to_bits(), rank.strain.to_bits());
        match places.get(&what) {
            Some(&place) => classes[place].1 += 1,
            None => {
                places.insert(what, classes.len());
                classes.push((*rank, 1));
            }
        }
    }
    classes
}

/// What engines make of a fabric in which something fails.
#[derive(Debug)]
pub(crate) struct FailureOutcome {
    /// What was quickly known.
    pub(crate) rank: Rank,
    /// The hosts that are cut off.
    pub(crate) cut_off: Vec<u32>,
    /// The engine that serves; `None` if none does.
    pub(crate) engine: Option<Engine>,
    /// Why the engine of the tables in force does not serve any more.
    pub(crate) why_not: Option<String>,
    /// The effective bisection; see [`Routed::bisection`].
    pub(crate) bisection: Option<f64>,
    /// How many entries of tables are others.
    pub(crate) changed_entries: Option<usize>,
}

/// About how many bytes the tables of routings that are computed at once may have together.
const MOST_BYTES_AT_ONCE: usize = 1 << 30;

/// Has the failures that rank first routed by the engine of `whole`, or the best if that does not serve any more. Sorts them by
/// what came out, the worst first: hosts cut off, no engine that serves, least bisection. Calls `done` for each.
///
/// # Errors
/// If no engine can route the fabric that is left, whatever the engine.
pub(crate) fn route(
    fabric: &Fabric,
    whole: &Routed,
    ranks: &[Rank],
    settings: &Settings,
    done: &(impl Fn() + Sync),
) -> Result<Vec<FailureOutcome>, ConsequencesError> {
    let topology = whole.topology();
    let entries = topology.xbar_count() * (topology.xbar_count() + topology.host_count());
    let at_once = (MOST_BYTES_AT_ONCE / entries.max(1)).clamp(1, rayon::current_num_threads());
    let mut outcomes = Vec::with_capacity(ranks.len());
    for some in ranks.chunks(at_once) {
        let routed: Result<Vec<FailureOutcome>, _> = some
            .par_iter()
            .map(|&rank| {
                let outcome = outcome(fabric, whole, rank, settings);
                done();
                outcome
            })
            .collect();
        outcomes.extend(routed?);
    }
    let key = |outcome: &FailureOutcome| outcome.bisection.unwrap_or_default();
    outcomes.sort_by(|one, other| {
        let by_cut_off = other.cut_off.len().cmp(&one.cut_off.len());
        let by_engine = one.engine.is_some().cmp(&other.engine.is_some());
        by_cut_off
            .then(by_engine)
            .then(key(one).total_cmp(&key(other)))
            .then(one.rank.single.cmp(&other.rank.single))
    });
    Ok(outcomes)
}

fn outcome(
    fabric: &Fabric,
    whole: &Routed,
    rank: Rank,
    settings: &Settings,
) -> Result<FailureOutcome, ConsequencesError> {
    let change = rank.single.change();
    let by = whole.engine.map_or(By::Best, By::Engine);
    let (routed, why_not) = Routed::after_or_best(fabric, &change, by, settings, &())?;
    Ok(FailureOutcome {
        rank,
        engine: routed.serving(),
        why_not,
        bisection: routed.bisection(),
        changed_entries: routed.changed_entries(whole),
        cut_off: routed.cut_off,
    })
}

/// What failures are ranked by: a fabric and its routes, with what is the same for all failures counted once.
struct Ranking<'a> {
    fabric: &'a Fabric,
    topology: &'a Topology,
    /// How many routes cross each channel.
    loads: Vec<f64>,
    /// How many hosts each part of the fabric has, by [`Topology::component`].
    hosts_of_part: Vec<usize>,
}

impl<'a> Ranking<'a> {
    fn new(fabric: &'a Fabric, whole: &'a Routed) -> Self {
        let topology = whole.topology();
        let mut loads = vec![0.0; topology.channel_count()];
        for (cable, [there, back]) in fabric.map.cables.iter().zip(&whole.loads) {
            for (end, load) in [(cable.a, there), (cable.b, back)] {
                if let Far::Channel(channel) = topology.far(end) {
                    loads[channel as usize] = *load;
                }
            }
        }
        let mut hosts_of_part = vec![0; topology.xbar_count()];
        for xbar in 0..topology.xbar_count() as u32 {
            hosts_of_part[topology.component(xbar) as usize] += topology.hosts_of(xbar).len();
        }
        Self { fabric, topology, loads, hosts_of_part }
    }

    fn rank(&self, single: Single) -> Rank {
        let cut_off = self.cut_off(single);
        Rank { single, cut_off, routes: self.routes(single), strain: self.strain(single) }
    }

    /// The channels that fail, each way.
    fn channels(&self, single: Single) -> Vec<u32> {
        match single {
            // Nothing but what the host itself sends and gets crosses its cable.
            Single::Host(_) => Vec::new(),
            Single::Cable(cable) => match self.topology.far(self.fabric.map.cables[cable as usize].a) {
                Far::Channel(channel) => self.both_ways(channel),
                Far::Host(_) | Far::Nothing => Vec::new(),
            },
            Single::Xbar(xbar) => {
                let of_xbar = self.topology.channels_of(xbar);
                let mut all: Vec<u32> = of_xbar.flat_map(|channel| self.both_ways(channel)).collect();
                all.sort_unstable();
                all.dedup();
                all
            }
        }
    }

    fn both_ways(&self, channel: u32) -> Vec<u32> {
        let back = self.topology.reverse(channel);
        if back == channel { vec![channel] } else { vec![channel, back] }
    }

    fn routes(&self, single: Single) -> f64 {
        if let Single::Host(host) = single {
            // There is one to and one from each other host.
            return 2.0 * (self.hosts_beside(host) as f64 - 1.0).max(0.0);
        }
        self.channels(single).iter().map(|&channel| self.loads[channel as usize]).sum()
    }

    fn strain(&self, single: Single) -> f64 {
        let topology = self.topology;
        let failed = self.channels(single);
        let is_neighbour = |xbar: u32| single != Single::Xbar(xbar);
        let mut at: Vec<u32> = failed.iter().map(|&channel| topology.tail(channel).xbar).collect();
        at.retain(|&xbar| is_neighbour(xbar));
        at.sort_unstable();
        at.dedup();
        let strain = |xbar: u32| {
            let is_here = |end: u32| end == xbar;
            let moved: f64 = failed
                .iter()
                .filter(|&&it| is_here(topology.tail(it).xbar) || is_here(topology.head(it).xbar))
                .map(|&channel| self.loads[channel as usize])
                .sum();
            let gone = failed.iter().filter(|&&it| is_here(topology.tail(it).xbar)).count();
            let left = topology.channels_of(xbar).len() - gone;
            if left == 0 { 0.0 } else { moved / left as f64 }
        };
        at.into_iter().map(strain).fold(0.0, f64::max)
    }

    /// How many hosts a failure parts, as [`super::parting::cut_off`] counts them, but without building the fabric that is left.
    fn cut_off(&self, single: Single) -> usize {
        let topology = self.topology;
        let (starts, part) = match single {
            Single::Host(host) => return usize::from(self.hosts_beside(host) > 1),
            Single::Cable(cable) => {
                let cable = self.fabric.map.cables[cable as usize];
                ([cable.a.xbar, cable.b.xbar].to_vec(), topology.component(cable.a.xbar))
            }
            Single::Xbar(xbar) => {
                let near = topology.channels_of(xbar).map(|channel| topology.head(channel).xbar);
                (near.filter(|&near| near != xbar).collect(), topology.component(xbar))
            }
        };
        let failed = self.channels(single);
        let mut seen = vec![false; topology.xbar_count()];
        let mut queue = Vec::new();
        let mut pieces = Vec::new();
        for &start in &starts {
            if std::mem::replace(&mut seen[start as usize], true) {
                continue;
            }
            let mut hosts = 0;
            queue.push(start);
            while let Some(xbar) = queue.pop() {
                hosts += topology.hosts_of(xbar).len();
                for channel in topology.channels_of(xbar) {
                    let next = topology.head(channel).xbar;
                    let fails = match single {
                        Single::Cable(_) | Single::Host(_) => failed.contains(&channel),
                        Single::Xbar(failed) => next == failed,
                    };
                    if !fails && !std::mem::replace(&mut seen[next as usize], true) {
                        queue.push(next);
                    }
                }
                // The other end of a cable is joined still, so the failure parts nobody, and the count of hosts is not needed.
                if let (Single::Cable(_), [_, other]) = (single, &starts[..])
                    && seen[*other as usize]
                    && pieces.is_empty()
                {
                    return 0;
                }
            }
            pieces.push(hosts);
        }
        self.hosts_of_part[part as usize] - pieces.into_iter().max().unwrap_or_default()
    }

    /// How many hosts the part of the fabric has that a host is in, itself too.
    fn hosts_beside(&self, host: u32) -> usize {
        match self.topology.attachment(host) {
            Attachment::Port(at) => self.hosts_of_part[self.topology.component(at.xbar) as usize],
            Attachment::Host(_) => 2,
            Attachment::Nothing => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    fn whole(fabric: &Fabric) -> Routed {
        let by = By::Engine(Engine::Updn);
        Routed::after(fabric, &Change::default(), by, &Settings::default(), &()).unwrap()
    }

    #[test]
    fn who_is_cut_off_is_known_exactly_without_the_fabric_that_is_left() {
        for seed in 0..12 {
            // There are so few cables that some are the only ones between parts.
            let spec = format!("random:xbars=12,ports=8,hosts=17,links=13,seed={seed}");
            let fabric = generate(&spec).unwrap();
            let whole = whole(&fabric);
            let mut singles = Single::cables(&fabric);
            singles.extend(Single::xbars(&fabric));
            singles.extend(Single::host_cables(&fabric));
            for rank in rank(&fabric, &whole, &singles, &|| ()) {
                let after = rank.single.change().apply(&fabric).fabric;
                let after = Topology::from_fabric(&after).unwrap();
                let exact = super::super::parting::cut_off(whole.topology(), &after).len();
                assert_eq!(rank.cut_off, exact, "{spec}: {:?}", rank.single);
            }
        }
    }

    #[test]
    fn the_cable_that_has_fewest_beside_it_comes_first_and_is_the_worst() {
        let mut fabric = generate("clos:hosts=32,ports=8").unwrap();
        // The first leaf loses all of its cables to others but two.
        let leaf = fabric.map.hosts[0].at.unwrap().xbar;
        let of_leaf: Vec<_> =
            fabric.map.cables.iter().copied().filter(|it| it.a.xbar == leaf || it.b.xbar == leaf).collect();
        fabric.map.cables.retain(|cable| !of_leaf[2..].contains(cable));
        let whole = whole(&fabric);
        let ranks = rank(&fabric, &whole, &Single::cables(&fabric), &|| ());
        for rank in &ranks[..2] {
            let Single::Cable(cable) = rank.single else { panic!("{rank:?}") };
            assert!(of_leaf.contains(&fabric.map.cables[cable as usize]), "{rank:?}");
            assert!(rank.cut_off == 0 && rank.routes > 0.0 && rank.strain >= rank.routes, "{rank:?}");
        }
        let outcomes = route(&fabric, &whole, &ranks, &Settings::default(), &|| ()).unwrap();
        assert_eq!(outcomes.len(), ranks.len());
        let before = whole.bisection().unwrap();
        for outcome in &outcomes[..2] {
            assert!(ranks[..2].contains(&outcome.rank), "{outcome:?}");
            assert!(outcome.bisection.unwrap() < before && outcome.changed_entries.unwrap() > 0);
            assert_eq!((outcome.engine, &outcome.why_not), (Some(Engine::Updn), &None));
        }
    }

    #[test]
    fn what_is_alike_is_told_once_and_counted() {
        let fabric = generate("clos:hosts=8,ports=4").unwrap();
        let whole = whole(&fabric);
        let mut singles = Single::host_cables(&fabric);
        singles.extend(Single::cables(&fabric));
        let ranks = rank(&fabric, &whole, &singles, &|| ());
        let classes = alike(&ranks);
        assert_eq!(classes.iter().map(|(_, count)| count).sum::<usize>(), 16);
        let (first, count) = classes[0];
        assert!(matches!(first.single, Single::Host(0)) && count == 8, "{classes:?}");
        assert_eq!((first.cut_off, first.routes), (1, 14.0));
        assert!(classes[1..].iter().all(|(rank, _)| matches!(rank.single, Single::Cable(_))), "{classes:?}");
        // A failure stands for those alone of which the same is known.
        for (class, _) in &classes {
            let same = |rank: &&Rank| {
                (rank.cut_off, rank.routes, rank.strain) == (class.cut_off, class.routes, class.strain)
            };
            assert!(ranks.iter().filter(same).count() > 0);
        }
    }

    #[test]
    fn the_only_xbar_cuts_all_hosts_off_and_leaves_nothing_to_route() {
        let fabric = generate("clos:hosts=4,ports=4").unwrap();
        let whole = whole(&fabric);
        let ranks = rank(&fabric, &whole, &Single::xbars(&fabric), &|| ());
        assert_eq!((ranks.len(), ranks[0].cut_off), (1, 4));
        let outcomes = route(&fabric, &whole, &ranks, &Settings::default(), &|| ()).unwrap();
        assert_eq!((outcomes[0].cut_off.len(), outcomes[0].bisection), (4, None));
    }
}
