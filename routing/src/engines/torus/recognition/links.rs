//! Which xbars are cabled to which: what is left of a map when ports and parallel cables are forgotten.

use super::super::statement::ALL_DIRECTIONS;
use crate::Topology;

/// The neighbours of each xbar, by rising number, each once. Cables from an xbar to itself are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Links {
    neighbours: Vec<Vec<u32>>,
    /// The directions that lead to each neighbour, if they are stated: bit `2 * dimension`, and the next
    /// for a step down.
    directions: Option<Vec<Vec<u8>>>,
}

impl Links {
    /// The links of a topology. Dead cables count: they show what shape the fabric has.
    pub(super) fn of(topology: &Topology) -> Self {
        let neighbours = |xbar: u32| {
            let heads = topology.channels_of(xbar).map(|channel| topology.head(channel).xbar);
            heads.filter(|&head| head != xbar).collect()
        };
        Self::new((0..topology.xbar_count() as u32).map(neighbours).collect())
    }

    /// Links from lists of neighbours, in any order, each link in the lists of both its ends.
    pub(super) fn new(mut neighbours: Vec<Vec<u32>>) -> Self {
        for list in &mut neighbours {
            list.sort_unstable();
            list.dedup();
        }
        Self { neighbours, directions: None }
    }

    /// Lets a link lead in one of these directions only, seen from `from`. Both its ends must be told.
    pub(super) fn restrict(&mut self, from: u32, to: u32, directions: u8) {
        let all = || self.neighbours.iter().map(|list| vec![ALL_DIRECTIONS; list.len()]).collect();
        let stated = self.directions.get_or_insert_with(all);
        if let Ok(place) = self.neighbours[from as usize].binary_search(&to) {
            stated[from as usize][place] &= directions;
        }
    }

    /// The directions that may lead to an xbar's neighbour, by its place among them.
    pub(super) fn directions(&self, xbar: u32, place: usize) -> u8 {
        self.directions.as_ref().map_or(ALL_DIRECTIONS, |stated| stated[xbar as usize][place])
    }

    /// Whether directions are stated.
    pub(super) fn are_restricted(&self) -> bool {
        self.directions.is_some()
    }

    /// How many xbars there are.
    pub(super) fn xbars(&self) -> usize {
        self.neighbours.len()
    }

    /// How many pairs of neighbours there are.
    pub(super) fn count(&self) -> usize {
        self.neighbours.iter().map(Vec::len).sum::<usize>() / 2
    }

    /// An xbar's neighbours, by rising number.
    pub(super) fn of_xbar(&self, xbar: u32) -> &[u32] {
        &self.neighbours[xbar as usize]
    }

    /// Whether two xbars are neighbours.
    pub(super) fn joins(&self, a: u32, b: u32) -> bool {
        self.of_xbar(a).contains(&b)
    }

    /// How many neighbours two xbars have in common.
    pub(super) fn in_common(&self, a: u32, b: u32) -> usize {
        self.of_xbar(a).iter().filter(|&&neighbour| self.joins(neighbour, b)).count()
    }

    /// The most neighbours that an xbar has.
    pub(super) fn degree(&self) -> usize {
        self.neighbours.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether three xbars anywhere are neighbours of each other.
    pub(super) fn has_triangle(&self) -> bool {
        (0..self.xbars() as u32).any(|a| self.of_xbar(a).iter().any(|&b| a < b && self.in_common(a, b) > 0))
    }

    /// The connected parts, the largest first, then by their smallest xbar.
    pub(super) fn parts(&self) -> Vec<Vec<u32>> {
        let mut seen = vec![false; self.xbars()];
        let mut parts = Vec::new();
        for start in 0..self.xbars() as u32 {
            if std::mem::replace(&mut seen[start as usize], true) {
                continue;
            }
            let mut part = vec![start];
            let mut next = 0;
            while next < part.len() {
                for &neighbour in self.of_xbar(part[next]) {
                    if !std::mem::replace(&mut seen[neighbour as usize], true) {
                        part.push(neighbour);
                    }
                }
                next += 1;
            }
            part.sort_unstable();
            parts.push(part);
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        parts
    }

    /// The links without one of them.
    pub(super) fn without(&self, a: u32, b: u32) -> Self {
        let mut rest = self.neighbours.clone();
        rest[a as usize].retain(|&other| other != b);
        rest[b as usize].retain(|&other| other != a);
        Self::new(rest)
    }
}
