//! Row above row: the tiers of a tree, or layers by distance.
//!
//! A row that is too long takes several lines. It is filled column by column, so what belongs together in two rows, as
//! the leaves and the spines of a pod do, makes blocks that stand above each other.

use mapper_fabric::parts::Parts;

use super::part::{Part, Placed};
use super::{GAP, Point, Rect, Shape};

/// Least and greatest height between a row and the next.
const ROW_GAPS: (i64, i64) = (90, 640);
/// How many times as wide as high a part of few rows is at most.
const FLATTEST: f64 = 2.4;

/// The tiers of a tree, the leaves at the bottom.
pub(super) fn tree(part: &Part<'_>, heights: &[u32]) -> Placed {
    let top = heights.iter().copied().max().unwrap_or(0);
    let blocks = blocks(part, heights, top);
    let mut rows = vec![Vec::new(); top as usize + 1];
    (0..part.len() as u32).for_each(|xbar| rows[heights[xbar as usize] as usize].push(xbar));
    for row in &mut rows {
        row.sort_by_cached_key(|&xbar| {
            let inside: Vec<u32> = blocks.iter().rev().map(|block| block[xbar as usize]).collect();
            (inside, part.ranks[xbar as usize])
        });
    }
    stack(part, rows)
}

/// For each tier but the top, from the second on: which block each xbar is in, if only cables up to this tier join
/// xbars. A block is called by the least rank in it. Xbars above the tier are no part of any, and have 0.
fn blocks(part: &Part<'_>, heights: &[u32], top: u32) -> Vec<Vec<u32>> {
    let mut parts = Parts::new(part.len());
    let mut all = Vec::new();
    for tier in 1..top {
        let height = |xbar: u32| heights[xbar as usize];
        for &(a, b, _) in part.pairs.iter().filter(|pair| height(pair.0).max(height(pair.1)) == tier) {
            parts.join(a, b);
        }
        let mut least = vec![u32::MAX; part.len()];
        for xbar in 0..part.len() as u32 {
            let root = parts.of(xbar) as usize;
            least[root] = least[root].min(part.ranks[xbar as usize]);
        }
        let block = (0..part.len() as u32)
            .map(|xbar| if height(xbar) <= tier { least[parts.of(xbar) as usize] } else { 0 });
        all.push(block.collect());
    }
    all
}

/// Layers by the distance from the xbar in the middle, which stands at the top.
pub(super) fn layers(part: &Part<'_>) -> Placed {
    let (_, distances) = centre(part);
    let deepest = distances.iter().copied().max().unwrap_or(0);
    let mut rows = vec![Vec::new(); deepest as usize + 1];
    (0..part.len() as u32).for_each(|xbar| rows[(deepest - distances[xbar as usize]) as usize].push(xbar));
    // From the top down, each layer in the order of those above that its xbars are cabled to.
    let mut places = vec![0.0_f64; part.len()];
    for number in (0..rows.len()).rev() {
        let mut row = std::mem::take(&mut rows[number]);
        row.sort_by_key(|&xbar| part.ranks[xbar as usize]);
        let mean = |xbar: u32| {
            let at: Vec<f64> = part.neighbours[xbar as usize]
                .iter()
                .filter(|&&neighbour| distances[neighbour as usize] < distances[xbar as usize])
                .map(|&neighbour| places[neighbour as usize])
                .collect();
            at.iter().sum::<f64>() / at.len().max(1) as f64
        };
        let means: Vec<(f64, u32)> = row.iter().map(|&xbar| (mean(xbar), xbar)).collect();
        let mut order = means;
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        row = order.into_iter().map(|(_, xbar)| xbar).collect();
        for (at, &xbar) in row.iter().enumerate() {
            places[xbar as usize] = (at as f64 + 0.5) / row.len() as f64;
        }
        rows[number] = row;
    }
    stack(part, rows)
}

/// The xbar that is nearest to all others, and the distances from it. In a large part only some are tried: those with the
/// most neighbours.
fn centre(part: &Part<'_>) -> (u32, Vec<u32>) {
    /// Most xbars from which distances are measured.
    const MOST_TRIED: usize = 64;
    let mut candidates: Vec<u32> = (0..part.len() as u32).collect();
    candidates.sort_by_key(|&xbar| {
        (std::cmp::Reverse(part.neighbours[xbar as usize].len()), part.ranks[xbar as usize])
    });
    candidates.truncate(MOST_TRIED);
    let mut best: Option<((u64, u32), u32, Vec<u32>)> = None;
    for xbar in candidates {
        let distances = distances(part, xbar);
        let total = distances.iter().map(|&distance| u64::from(distance)).sum();
        let merit = (total, part.ranks[xbar as usize]);
        if best.as_ref().is_none_or(|best| merit < best.0) {
            best = Some((merit, xbar, distances));
        }
    }
    best.map_or_else(|| (0, vec![0; part.len()]), |(_, xbar, distances)| (xbar, distances))
}

fn distances(part: &Part<'_>, from: u32) -> Vec<u32> {
    let mut distances = vec![u32::MAX; part.len()];
    distances[from as usize] = 0;
    let mut queue = vec![from];
    let mut next = 0;
    while let Some(&xbar) = queue.get(next) {
        next += 1;
        for &neighbour in &part.neighbours[xbar as usize] {
            if distances[neighbour as usize] == u32::MAX {
                distances[neighbour as usize] = distances[xbar as usize] + 1;
                queue.push(neighbour);
            }
        }
    }
    // All xbars of a part are joined, so none is left without a distance.
    distances
}

/// A row in lines.
struct Row {
    xbars: Vec<u32>,
    lines: usize,
    /// Width of a column, and height of a line.
    cell: Point,
}

impl Row {
    fn columns(&self) -> usize {
        self.xbars.len().div_ceil(self.lines)
    }

    fn width(&self, part: &Part<'_>) -> i64 {
        match self.lines {
            1 => self.xbars.iter().map(|&xbar| part.sizes[xbar as usize].0 + GAP).sum::<i64>() - GAP,
            _ => self.columns() as i64 * (self.cell.0 + GAP) - GAP,
        }
    }

    fn height(&self) -> i64 {
        self.lines as i64 * (self.cell.1 + GAP) - GAP
    }
}

/// Stacks rows, the first at the bottom.
fn stack(part: &Part<'_>, rows: Vec<Vec<u32>>) -> Placed {
    let columns = columns(part, &rows);
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|xbars| {
            let size = |of: fn(&(i64, i64)) -> i64| {
                xbars.iter().map(|&xbar| of(&part.sizes[xbar as usize])).max().unwrap_or(0)
            };
            let (cell, lines) = ((size(|size| size.0), size(|size| size.1)), xbars.len().div_ceil(columns));
            Row { lines: lines.max(1), xbars, cell }
        })
        .collect();
    let widest = rows.iter().map(|row| row.width(part)).max().unwrap_or(0);
    let heights = rows.iter().map(Row::height).sum();
    let gap = gap(widest, heights, rows.len());
    let mut boxes = vec![Rect::default(); part.len()];
    let mut tiers = vec![0; part.len()];
    let mut top = 0;
    for (tier, row) in (0..rows.len() as u32).zip(&rows).rev() {
        place_row(part, row, (widest, top), &mut boxes);
        row.xbars.iter().for_each(|&xbar| tiers[xbar as usize] = tier);
        top += row.height() + gap;
    }
    let lines = rows.iter().any(|row| row.lines > 1);
    Placed { shape: Shape::Rows { gap, lines }, boxes, tiers, frames: Vec::new() }
}

/// The height between rows of this width and these heights in all. Cables that run far sideways need height to be told
/// apart, and a part that is far wider than high wastes the sheet.
fn gap(widest: i64, heights: i64, rows: usize) -> i64 {
    let missing = (widest as f64 / FLATTEST) as i64 - heights;
    (missing / (rows as i64 - 1).max(1)).max(widest / 8).clamp(ROW_GAPS.0, ROW_GAPS.1)
}

/// How many columns the longest row may have: all xbars stand in one line if they are few, and otherwise the part is
/// about twice as wide as high.
fn columns(part: &Part<'_>, rows: &[Vec<u32>]) -> usize {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(1).max(1);
    if longest <= part.most_in_line {
        return longest;
    }
    let (width, height) = part.largest();
    let (width, height) = (width + GAP, height + GAP);
    let aspect = |columns: usize| {
        let lines: usize = rows.iter().map(|row| row.len().div_ceil(columns)).sum();
        let wide = columns as i64 * width;
        let heights = lines as i64 * height;
        // Gaps are not widened for the look of it here: that is for parts of few rows.
        let gaps = (rows.len() as i64 - 1) * (wide / 8).clamp(ROW_GAPS.0, ROW_GAPS.1);
        wide as f64 / (heights + gaps) as f64
    };
    // The aspect grows with the columns, so the least number that is wide enough is found by halving.
    let (mut low, mut high) = (part.most_in_line.min(longest), longest);
    while low < high {
        let middle = usize::midpoint(low, high);
        if aspect(middle) < 2.0 { low = middle + 1 } else { high = middle }
    }
    low
}

/// Gives the boxes of a row their places: spread over the whole width, column by column if it has several lines.
fn place_row(part: &Part<'_>, row: &Row, (widest, top): Point, boxes: &mut [Rect]) {
    let columns = row.columns() as i64;
    let spare = (widest - row.width(part)) / columns.max(1);
    let mut x = spare / 2;
    for (at, &xbar) in row.xbars.iter().enumerate() {
        let size = part.sizes[xbar as usize];
        let line = (at % row.lines) as i64;
        // What is smaller than its cell stands in the middle of it, and at the bottom of its line.
        let aside = if row.lines == 1 { 0 } else { (row.cell.0 - size.0) / 2 };
        let y = top + line * (row.cell.1 + GAP) + row.cell.1 - size.1;
        boxes[xbar as usize] = Rect { at: (x + aside, y), size };
        if line + 1 == row.lines as i64 {
            x += if row.lines == 1 { size.0 } else { row.cell.0 } + GAP + spare;
        }
    }
}
