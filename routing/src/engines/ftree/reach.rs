//! The shortest ways up and then down.

use rayon::prelude::*;

use super::tree::Tree;

/// Steps between xbars on the shortest way that goes up and then down; alike in both directions.
#[derive(Debug)]
pub(super) struct Reach {
    rows: Vec<Vec<u8>>,
}

impl Reach {
    /// The steps where there is no way.
    pub(super) const NONE: u8 = u8::MAX;

    /// The steps from every xbar to every other. Ways that only go down are found first, from the lowest rank
    /// up, and then ways over the parents, from the roots down.
    pub(super) fn new(tree: &Tree<'_>) -> Self {
        let count = tree.xbar_count();
        let mut rows: Vec<Vec<u8>> = vec![Vec::new(); count];
        let step = |rows: &mut Vec<Vec<u8>>, rank: &[u32], up: bool| {
            let classes = if up { &tree.up } else { &tree.down }.alike(rank);
            let of_class = |class: &Vec<u32>| {
                let over = class.first().map_or_else(Vec::new, |&xbar| over(tree, rows, xbar, up));
                let row = |&xbar: &u32| {
                    let mut row = over.clone();
                    if up {
                        let own = &rows[xbar as usize];
                        row.iter_mut().zip(own).for_each(|(steps, &own)| *steps = own.min(*steps));
                    }
                    row[xbar as usize] = 0;
                    (xbar, row)
                };
                class.iter().map(row).collect::<Vec<_>>()
            };
            let fresh: Vec<(u32, Vec<u8>)> = classes.par_iter().flat_map_iter(of_class).collect();
            fresh.into_iter().for_each(|(xbar, row)| rows[xbar as usize] = row);
        };
        tree.ranks.xbars.iter().rev().for_each(|rank| step(&mut rows, rank, false));
        tree.ranks.xbars.iter().skip(1).for_each(|rank| step(&mut rows, rank, true));
        Self { rows }
    }

    /// The steps from an xbar that goes up first to all others, but for itself. They are alike for all xbars that have cables up
    /// to the same ones.
    pub(super) fn over_parents(&self, tree: &Tree<'_>, xbar: u32) -> Vec<u8> {
        over(tree, &self.rows, xbar, true)
    }

    /// The steps from one xbar to all others, which are also those from all others to it.
    pub(super) fn of(&self, xbar: u32) -> &[u8] {
        &self.rows[xbar as usize]
    }

    /// The steps between two xbars.
    pub(super) fn between(&self, x: u32, y: u32) -> u8 {
        self.rows[x as usize][y as usize]
    }

    /// Whether the shortest way from `high` to `low` only goes down.
    pub(super) fn above(&self, tree: &Tree<'_>, high: u32, low: u32) -> bool {
        let (high_rank, low_rank) = (tree.rank(high), tree.rank(low));
        high_rank <= low_rank && self.between(high, low) == low_rank - high_rank
    }
}

/// The steps from an xbar by its neighbours on one side.
fn over(tree: &Tree<'_>, rows: &[Vec<u8>], xbar: u32, up: bool) -> Vec<u8> {
    let mut row = vec![Reach::NONE; tree.xbar_count()];
    for group in if up { &tree.up } else { &tree.down }.of(xbar) {
        lower(&mut row, &rows[group.far as usize]);
    }
    row
}

/// Lowers each number to the other row's plus 1.
fn lower(row: &mut [u8], other: &[u8]) {
    for (steps, far) in row.iter_mut().zip(other) {
        *steps = (*steps).min(far.saturating_add(1));
    }
}
