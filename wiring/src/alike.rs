//! Finds xbars that are cabled alike in two fabrics, whatever they are called.
//!
//! What an xbar is cabled to, and what that is cabled to, and so on, is hashed into a colour, round by
//! round (colour refinement, after Weisfeiler and Leman). Xbars of one colour are cabled alike as far as the
//! rounds reach. If many have one colour, because a fabric is symmetric, any of them is taken.

use std::collections::BTreeMap;

use mapper_proto::map::{Fabric, PortRef};

/// The numbers of rounds that are tried. Many rounds come first, as they tell most xbars apart; but a
/// difference between the fabrics changes the colours of all xbars within as many cables as there are rounds.
const ROUNDS: [usize; 6] = [16, 8, 4, 2, 1, 0];

/// One of the two fabrics, with the xbars that are matched already.
pub(super) struct Side<'a> {
    pub(super) fabric: &'a Fabric,
    /// For each matched xbar, a number that it shares with its match in the other fabric.
    pub(super) known: Vec<Option<usize>>,
}

/// Pairs of xbars, one of each side, that have one colour and are not matched yet. These are all pairs whose
/// colour no other xbar has. Without such pairs it is a single one, the best of those whose colour others
/// have too. Empty if no two xbars of different sides have one colour.
pub(super) fn pairs(a: &Side<'_>, b: &Side<'_>) -> Vec<(usize, usize)> {
    let mut best: Option<(Closeness, (usize, usize))> = None;
    for by_port in [true, false] {
        let (neighbours_a, neighbours_b) = (neighbours(a.fabric, by_port), neighbours(b.fabric, by_port));
        for rounds in ROUNDS {
            let colours =
                [colours(a, &neighbours_a, by_port, rounds), colours(b, &neighbours_b, by_port, rounds)];
            let mut classes: BTreeMap<u64, [Vec<usize>; 2]> = BTreeMap::new();
            for (side, (colours, known)) in colours.iter().zip([&a.known, &b.known]).enumerate() {
                for (xbar, colour) in colours.iter().enumerate().filter(|&(xbar, _)| known[xbar].is_none()) {
                    classes.entry(*colour).or_default()[side].push(xbar);
                }
            }
            let alone = classes.values().filter_map(|[a, b]| match (&a[..], &b[..]) {
                ([a], [b]) => Some((*a, *b)),
                _ => None,
            });
            let mut alone: Vec<(usize, usize)> = alone.collect();
            if !alone.is_empty() {
                alone.sort_unstable();
                return alone;
            }
            for [of_a, of_b] in classes.values() {
                let (Some(&first_a), Some(&first_b)) = (of_a.first(), of_b.first()) else { continue };
                let apart = of_a.len().abs_diff(of_b.len());
                let closeness = (apart > 0, !by_port, std::cmp::Reverse(rounds), apart, of_a.len());
                let pair = (first_a, first_b);
                if best.is_none_or(|best| (closeness, pair) < best) {
                    best = Some((closeness, pair));
                }
            }
        }
    }
    best.map(|(_, pair)| pair).into_iter().collect()
}

/// How good a pair is whose colour others have too; lower is better. It is better if as many xbars of both
/// sides have the colour, if the colour takes ports into account, and if it took many rounds.
type Closeness = (bool, bool, std::cmp::Reverse<usize>, usize, usize);

/// The port of a cable at an xbar, its port at the other end, and the xbar there. Ports count from 1, whatever the fabric
/// counts them from, so that there may be a port 256; they are 0 if they do not count. At a host there is no xbar.
type Neighbour = (u16, u16, Option<usize>);

fn neighbours(fabric: &Fabric, by_port: bool) -> Vec<Vec<Neighbour>> {
    let map = &fabric.map;
    let first = u16::from(first_port(fabric));
    let number = |end: PortRef| if by_port { u16::from(end.port) + 1 - first } else { 0 };
    let mut neighbours = vec![Vec::new(); map.xbars.len()];
    for cable in &map.cables {
        for (near, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
            neighbours[near.xbar as usize].push((number(near), number(far), Some(far.xbar as usize)));
        }
    }
    for at in map.hosts.iter().filter_map(|host| host.at) {
        neighbours[at.xbar as usize].push((number(at), 0, None));
    }
    neighbours
}

/// The number that ports count from, which is 0 if any port 0 is in use, else 1.
pub(super) fn first_port(fabric: &Fabric) -> u8 {
    let places = fabric.map.hosts.iter().filter_map(|host| host.at);
    let mut ends = places.chain(fabric.map.cables.iter().flat_map(|cable| [cable.a, cable.b]));
    u8::from(!ends.any(|end| end.port == 0))
}

fn colours(side: &Side<'_>, neighbours: &[Vec<Neighbour>], by_port: bool, rounds: usize) -> Vec<u64> {
    // If ports count, they count in the first round already, so that a single round more tells the xbars at
    // the top of a tree apart.
    let begin = |known: &Option<usize>| known.map_or(1, |known| known as u64 + 2);
    let mut colours: Vec<u64> = side.known.iter().map(begin).collect();
    for round in 0..=rounds {
        let next = |(xbar, ends): (usize, &Vec<Neighbour>)| {
            if side.known[xbar].is_some() {
                return colours[xbar];
            }
            // The first round looks only at the ports, not at the colours of neighbours.
            let seen = |far: Option<usize>| far.map_or(0, |far| if round == 0 { 1 } else { colours[far] });
            let mut ends: Vec<[u64; 3]> =
                ends.iter().map(|&(near, far, xbar)| [near.into(), far.into(), seen(xbar)]).collect();
            ends.sort_unstable();
            ends.into_iter().flatten().fold(mix(colours[xbar], by_port.into()), mix)
        };
        colours = neighbours.iter().enumerate().map(next).collect();
    }
    colours
}

/// Mixes a number into a hash, by the finalizer of SplitMix64.
fn mix(hash: u64, number: u64) -> u64 {
    let mut mixed = hash.rotate_left(7) ^ number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use mapper_fabric::generate;

    use super::*;

    #[test]
    fn the_first_and_the_last_port_that_there_can_be_count() {
        let ports = |last: u8| {
            let mut fabric = generate("ring:n=3,hosts=1").unwrap();
            fabric.map.xbars.iter_mut().for_each(|xbar| xbar.ports = u8::MAX);
            fabric.map.hosts[0].at = Some(PortRef { xbar: 0, port: 0 });
            fabric.map.hosts[1].at = Some(PortRef { xbar: 1, port: last });
            fabric
        };
        let (fabric, other) = (ports(255), ports(254));
        let numbers = |fabric: &Fabric| neighbours(fabric, true).into_iter().map(|mut ends| ends.pop());
        let seen: Vec<_> = numbers(&fabric).take(2).collect();
        assert_eq!(seen, [Some((1, 0, None)), Some((256, 0, None))]);
        let known = vec![Some(0), None, None];
        let side = |fabric| Side { fabric, known: known.clone() };
        assert!(pairs(&side(&fabric), &side(&fabric)).contains(&(1, 1)));
        assert!(!pairs(&side(&fabric), &side(&other)).is_empty(), "with fewer rounds, or without ports");
    }
}
