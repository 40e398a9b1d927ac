//! How long the dimensions of a large fabric are, by walks straight on.
//!
//! ```text
//!     u ---> v ---> w        Two hops side by side in a square of links (u v and p q) lead the same way:
//!     |      |      |        they are of one class, as are all between two planes of a torus. Two hops
//!     p ---> q ---> r        that follow each other and lie in a square nowhere lead straight on.
//! ```
//!
//! Steps from class to class show the size of a dimension even if each single row has lost a link.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::super::grid::Dimension;
use super::links::Links;

/// No class.
const NONE: u32 = u32::MAX;

/// The dimensions that walks show: rings from walks that close, and lines from those that do not. Those with
/// most hops come first.
pub(super) fn observed(links: &Links) -> Vec<(usize, Dimension)> {
    let hops = Hops::new(links);
    let pairs = hops.pairs();
    let mut size_of = vec![0; hops.count()];
    hops.class.iter().for_each(|&class| size_of[class as usize] += 1);
    let next = straight_on(&size_of, &pairs);
    let mut hops_of: BTreeMap<Dimension, usize> = BTreeMap::new();
    for Walk { length, is_ring, hops } in walks(&next, &size_of) {
        let Ok(size) = u8::try_from(length + usize::from(!is_ring)) else { continue };
        let mut see = |dimension| *hops_of.entry(dimension).or_default() += hops;
        see(Dimension { size, is_ring });
        if size == 2 {
            // In rings of four no hops lead straight on, as such rings are squares.
            see(Dimension { size: 4, is_ring: true });
        }
    }
    let good = hops_of.into_iter().filter(|(d, _)| d.size >= 2 + u8::from(d.is_ring));
    let mut observed: Vec<_> = good.map(|(dimension, hops)| (hops, dimension)).collect();
    observed.sort_unstable_by_key(|&seen| Reverse(seen));
    observed
}

/// Every link in each direction, and its class: the smallest hop that leads the same way.
struct Hops<'a> {
    links: &'a Links,
    /// The hops out of each xbar, in the order of its neighbours, begin here.
    first: Vec<u32>,
    class: Vec<u32>,
}

impl<'a> Hops<'a> {
    fn new(links: &'a Links) -> Self {
        let mut first = vec![0];
        for xbar in 0..links.xbars() as u32 {
            first.push(first[xbar as usize] + links.of_xbar(xbar).len() as u32);
        }
        let count = first[links.xbars()];
        let mut hops = Self { links, first, class: (0..count).collect() };
        for corner in 0..links.xbars() as u32 {
            let around = links.of_xbar(corner);
            for (i, &a) in around.iter().enumerate() {
                for &b in &around[..i] {
                    hops.join_square(corner, a, b);
                }
            }
        }
        for hop in 0..count {
            hops.class[hop as usize] = hops.root(hop);
        }
        hops
    }

    fn count(&self) -> usize {
        self.class.len()
    }

    /// Joins the classes of hops that are side by side in squares of a corner and two neighbours.
    fn join_square(&mut self, corner: u32, a: u32, b: u32) {
        let links = self.links;
        for &far in links.of_xbar(a).iter().filter(|&&far| far != corner && links.joins(far, b)) {
            self.join((corner, a), (b, far));
            self.join((a, corner), (far, b));
            self.join((corner, b), (a, far));
            self.join((b, corner), (far, a));
        }
    }

    fn join(&mut self, a: (u32, u32), b: (u32, u32)) {
        if let (Some(a), Some(b)) = (self.number(a), self.number(b)) {
            let (a, b) = (self.root(a), self.root(b));
            self.class[a.max(b) as usize] = a.min(b);
        }
    }

    fn number(&self, (from, to): (u32, u32)) -> Option<u32> {
        let place = self.links.of_xbar(from).binary_search(&to).ok()?;
        Some(self.first[from as usize] + place as u32)
    }

    /// The smallest hop of a class, with path halving.
    fn root(&mut self, mut hop: u32) -> u32 {
        while self.class[hop as usize] != hop {
            let up = self.class[self.class[hop as usize] as usize];
            self.class[hop as usize] = up;
            hop = up;
        }
        hop
    }

    /// The classes of hops that follow each other, sorted, and whether they lie in a square there.
    fn pairs(&self) -> Vec<(u32, u32, bool)> {
        let mut pairs = Vec::new();
        for via in 0..self.links.xbars() as u32 {
            let around = self.links.of_xbar(via);
            let out = self.first[via as usize];
            for &from in around {
                let Some(hop) = self.number((from, via)) else { continue };
                for (&to, out) in around.iter().zip(out..).filter(|&(&to, _)| to != from) {
                    let is_triangle = self.links.joins(from, to);
                    let in_square = !is_triangle && self.links.in_common(from, to) > 1;
                    pairs.push((self.class[hop as usize], self.class[out as usize], in_square));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }
}

/// A class counts as leading straight on only if it follows at least one in so many of another's hops, as
/// stray hops beside missing parts lie in no square either.
const SHARE: usize = 8;

/// For each class the one that leads straight on from it. Of the classes that never lie in a square with it,
/// it is the one that follows it most often, if that is often enough.
fn straight_on(size_of: &[usize], pairs: &[(u32, u32, bool)]) -> Vec<u32> {
    let mut next = vec![(0, NONE); size_of.len()];
    for alike in pairs.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        // The pairs are sorted, so one that lies in a square comes last.
        if let Some(&(class, on, false)) = alike.last()
            && class != on
            && alike.len() > next[class as usize].0
            && alike.len() * SHARE >= size_of[class as usize].max(size_of[on as usize])
        {
            next[class as usize] = (alike.len(), on);
        }
    }
    next.into_iter().map(|(_, on)| on).collect()
}

/// Classes that lead on to each other, with all that lead there.
struct Walk {
    /// How many classes there are in the ring, or in the longest line.
    length: usize,
    is_ring: bool,
    /// How many hops are of all its classes.
    hops: usize,
}

/// All walks. Each class belongs to one: to that of the class that it leads to.
fn walks(next: &[u32], size_of: &[usize]) -> Vec<Walk> {
    let mut walks: Vec<Walk> = Vec::new();
    // The walk of each class, and how many classes it is from the end of a line.
    let mut walk_of = vec![(NONE, 0); next.len()];
    let mut is_on_path = vec![false; next.len()];
    for start in (0..next.len() as u32).filter(|&class| size_of[class as usize] > 0) {
        let (mut at, mut path) = (start, Vec::new());
        while at != NONE && walk_of[at as usize].0 == NONE && !is_on_path[at as usize] {
            is_on_path[at as usize] = true;
            path.push(at);
            at = next[at as usize];
        }
        let (walk, mut from_end) = if at != NONE && walk_of[at as usize].0 != NONE {
            walk_of[at as usize]
        } else {
            let ring = path.iter().position(|&class| class == at).map_or(0, |place| path.len() - place);
            walks.push(Walk { length: ring, is_ring: ring > 0, hops: 0 });
            (walks.len() as u32 - 1, 0)
        };
        let Some(found) = walks.get_mut(walk as usize) else { continue };
        for class in path.into_iter().rev() {
            from_end += 1;
            walk_of[class as usize] = (walk, from_end);
            found.hops += size_of[class as usize];
            if !found.is_ring {
                found.length = found.length.max(from_end);
            }
        }
    }
    walks
}
