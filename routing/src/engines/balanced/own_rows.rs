//! Checks the rows of xbars' own slots while ways to these xbars are searched.
//!
//! There is one such row for each xbar. So it is quicker to look where each of its entries leads, and whether that xbar was
//! found in the step before, than to find all ports by which ways lead on and to compare the entries with them.

use super::fill::{Filler, own_port};
use super::kept::Previous;
use super::mend::MOST_SINGLE;
use super::ports::XbarPorts;
use super::ranks::each_bit;
use super::search::{BLOCK, Finds, Frontier, LevelSearch};
use super::ways::missed;
use crate::tables::{Entry, Tables};

/// What was found of the rows of some xbars.
#[derive(Default)]
pub(super) struct OwnRows {
    /// The wrong entries, as they have to be.
    pub(super) fixed: Vec<Entry>,
    /// The xbars to which ways have to be searched in another manner, so that nothing is found of their rows.
    pub(super) left: Vec<u32>,
}

impl OwnRows {
    /// Checks the rows of at most [`BLOCK`] xbars.
    pub(super) fn check(filler: &Filler<'_>, previous: &Previous<'_>, to: &[u32]) -> Self {
        let slots: Vec<u32> = to.iter().map(|&xbar| filler.subnet.destinations.slot_of_xbar(xbar)).collect();
        let rows = slots.iter().map(|&slot| previous.tables.of_slot(slot)).collect();
        let all = u64::MAX >> (BLOCK - to.len().clamp(1, BLOCK));
        let mut rows = Rows { to, rows, wrong: Vec::new() };
        let reached = LevelSearch::new(filler.ports, None).run(to, all, &mut rows);
        // Where no way leads, there must be no entry.
        for (xbar, &reached) in (0..).zip(&reached) {
            each_bit(all & !reached, |place| {
                if rows.rows[place][xbar as usize] != Tables::NONE && !rows.is_full() {
                    rows.wrong.push((place, xbar, Tables::NONE));
                }
            });
        }
        // Where so much is wrong that everything is computed anew, there need not be more searches.
        let missed =
            if rows.is_full() { 0 } else { missed(&reached, to, all, filler.parts(), filler.leaves()) };
        let is_missed = |place: usize| missed >> place & 1 == 1;
        let wrong = rows.wrong.into_iter().filter(|&(place, ..)| !is_missed(place));
        let fixed = wrong.map(|(place, xbar, port)| Entry { slot: slots[place], xbar, port }).collect();
        let left = (0..to.len()).filter(|&place| is_missed(place)).map(|place| to[place]).collect();
        Self { fixed, left }
    }

    /// Joins what was found of other rows.
    pub(super) fn join(mut self, mut other: Self) -> Self {
        self.fixed.append(&mut other.fixed);
        self.left.append(&mut other.left);
        self
    }
}

/// The rows of some destinations, and their wrong entries: the place of the destination, the xbar, and the port that is right.
struct Rows<'a> {
    to: &'a [u32],
    rows: Vec<&'a [u8]>,
    wrong: Vec<(usize, u32, u8)>,
}

impl Rows<'_> {
    /// Whether so much is wrong that everything is computed anew, so that no more need be found out.
    fn is_full(&self) -> bool {
        self.wrong.len() > MOST_SINGLE
    }
}

impl Finds for Rows<'_> {
    fn note(&mut self, found: &Frontier<'_>, xbar: u32, fall: u64, rise: u64) {
        let ports = found.ports;
        each_bit(fall | rise, |place| {
            let lanes = (fall & 1 << place, rise & 1 << place);
            let entry = ports.number_at(xbar, self.rows[place][xbar as usize]);
            if !entry.is_some_and(|number| leads(found, number, lanes)) && !self.is_full() {
                let set = set(found, xbar, lanes);
                self.wrong.push((place, xbar, own_port(ports, &set, self.to[place], xbar)));
            }
        });
    }
}

/// Whether a port leads to an xbar that was found in the step before, in the way that goes on to the destinations of
/// `fall` or `rise`.
fn leads(found: &Frontier<'_>, number: usize, (fall, rise): (u64, u64)) -> bool {
    let XbarPorts { heads, live, .. } = found.ports;
    if live[number / 64] >> (number % 64) & 1 == 0 {
        return false;
    }
    let head = heads[number] as usize;
    let nearer =
        if found.ports.climbs_by(number) { rise & found.fresh[head] } else { fall & found.falling[head] };
    nearer != 0
}

/// All ports of an xbar that lead on so.
fn set(found: &Frontier<'_>, xbar: u32, lanes: (u64, u64)) -> Vec<u64> {
    let words = found.ports.words;
    let base = xbar as usize * words * 64;
    let mut set = vec![0; words];
    for number in found.ports.numbers_of(xbar).filter(|&number| leads(found, number, lanes)) {
        set[(number - base) / 64] |= 1 << (number % 64);
    }
    set
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::super::alike::Alike;
    use super::super::chains::Chains;
    use super::super::ranks::{Order, Roots, find_roots};
    use super::super::runs::Runs;
    use super::*;
    use crate::engines::{Engine, Settings};
    use crate::{Subnet, Tiers};

    /// The fabrics; the last one has sets of ports of two words.
    const FABRICS: [&str; 5] = [
        "xgft:h=3;m=3,3,4;w=1,3,3",
        "cluster:leaves=9,spines=5,hosts=60,cables=2,missing=3",
        "torus:x=4,y=4",
        "random:xbars=14,ports=12,hosts=40,links=26,seed=3",
        "cluster:leaves=5,spines=4,hosts=350,ports=100",
    ];

    /// The wrong entries of the rows of these xbars, by the ports by which ways lead on.
    fn expected(filler: &Filler<'_>, previous: &Previous<'_>, to: &[u32]) -> Vec<(u32, u32, u8)> {
        let ports = filler.ports;
        let mut wrong = Vec::new();
        for &to in to {
            let ways = filler.unordered_ways(&[to]);
            let (slot, masks) = (filler.subnet.destinations.slot_of_xbar(to), ways.masks_to(0));
            for xbar in Runs::of(ports, &ways, 0).wrong(ports, masks, previous.tables.of_slot(slot)) {
                let set = &masks[xbar as usize * ports.words..][..ports.words];
                wrong.push((slot, xbar, own_port(ports, set, to, xbar)));
            }
        }
        wrong.sort_unstable();
        wrong
    }

    #[test]
    fn the_entries_found_wrong_are_those_that_lead_on_by_no_way() {
        let (mut wrong, mut left) = (0, 0);
        for spec in FABRICS {
            for lost in [vec![], vec![5], vec![5, 17, 3], vec![0, 1, 2, 3, 4, 5]] {
                for engine in [Engine::Minhop, Engine::Updn, Engine::Dnup] {
                    let (fabric, settings) = (generate(spec).unwrap(), Settings::default());
                    let whole = Subnet::new(&fabric, None).unwrap();
                    let Ok(before) = engine.compute(&whole, &settings) else { continue };
                    let mut cut = fabric;
                    let cables = cut.map.cables.len();
                    for at in &lost {
                        cut.map.cables.swap_remove(at % (cables - 6));
                    }
                    let subnet = Subnet::new(&cut, None).unwrap();
                    let tiers = Tiers::of(&subnet.topology);
                    let roots = find_roots(&subnet, &settings, &tiers).unwrap_or_else(|_| Roots::none());
                    let order = Order::of(engine, &subnet, &settings, &tiers, &roots);
                    let ports = XbarPorts::new(&subnet.topology, &settings, order.as_ref());
                    let chains = Chains::new(&subnet, &settings, &ports);
                    let alike = Alike::new(&subnet.topology, &ports);
                    let filler = Filler::new(&subnet, &ports, &chains, &alike, None, None);
                    let previous = Previous::new(&before.tables);
                    let all: Vec<u32> = (0..subnet.topology.xbar_count() as u32).collect();
                    let found = OwnRows::check(&filler, &previous, &all);
                    let searched: Vec<u32> =
                        all.iter().copied().filter(|xbar| !found.left.contains(xbar)).collect();
                    let mut fixed: Vec<(u32, u32, u8)> =
                        found.fixed.iter().map(|it| (it.slot, it.xbar, it.port)).collect();
                    fixed.sort_unstable();
                    assert_eq!(fixed, expected(&filler, &previous, &searched), "{engine} {spec} {lost:?}");
                    (wrong, left) = (wrong + fixed.len(), left + found.left.len());
                }
            }
        }
        assert!(wrong > 100 && left > 10, "{wrong} {left}");
    }
}
