//! Groups that are cabled within far more densely than between, as a dragonfly's are.

use mapper_fabric::parts::Parts;

use super::part::{Part, Placed};
use super::{Frame, GAP, Point, Rect, Shape};

/// Most groups that stand on a circle; more stand in lines.
const MOST_ON_CIRCLE: usize = 48;
/// Room within a group's frame, and for its title above.
const MARGIN: i64 = 16;
const TITLE: i64 = 20;
/// Most neighbours of an xbar that are looked at: groups of larger xbars are found by some of their neighbours.
const MOST_NEIGHBOURS: usize = 256;

/// The places of a part that has groups.
pub(super) fn place(part: &Part<'_>) -> Option<Placed> {
    let groups = find(part)?;
    let blocks: Vec<Block> = groups.into_iter().map(|xbars| Block::new(part, xbars)).collect();
    let width = blocks.iter().map(|block| block.size.0).max()?;
    let height = blocks.iter().map(|block| block.size.1).max()?;
    let centres = if blocks.len() <= MOST_ON_CIRCLE {
        on_circle(blocks.len(), (width, height))
    } else {
        in_lines(blocks.len(), (width, height))
    };
    let mut placed = Placed {
        shape: Shape::Groups,
        boxes: vec![Rect::default(); part.len()],
        tiers: vec![0; part.len()],
        frames: Vec::new(),
    };
    for ((number, block), centre) in (1..).zip(&blocks).zip(centres) {
        let at = (centre.0 - block.size.0 / 2, centre.1 - block.size.1 / 2);
        for &(xbar, rect) in &block.boxes {
            placed.boxes[xbar as usize] = rect.moved(at);
        }
        placed.frames.push(Frame { rect: Rect { at, size: block.size }, title: format!("group {number}") });
    }
    Some(placed)
}

/// The groups, if the part falls into at least three in which most xbars are cabled to each other.
///
/// Two xbars of one group have neighbours in common: the others of the group. The two ends of a cable between groups
/// have hardly any.
fn find(part: &Part<'_>) -> Option<Vec<Vec<u32>>> {
    let sorted: Vec<Vec<u32>> = part
        .neighbours
        .iter()
        .map(|near| {
            let mut near = near.clone();
            near.sort_unstable();
            near.truncate(MOST_NEIGHBOURS);
            near
        })
        .collect();
    let mut parts = Parts::new(part.len());
    for &(a, b, _) in &part.pairs {
        let (near_a, near_b) = (&sorted[a as usize], &sorted[b as usize]);
        if 4 * common(near_a, near_b) >= near_a.len().min(near_b.len()) {
            parts.join(a, b);
        }
    }
    let mut by_root: Vec<Vec<u32>> = vec![Vec::new(); part.len()];
    (0..part.len() as u32).for_each(|xbar| by_root[parts.of(xbar) as usize].push(xbar));
    let mut groups: Vec<Vec<u32>> = by_root.into_iter().filter(|group| !group.is_empty()).collect();
    let is_group =
        |group: &Vec<u32>| group.len() >= 3 && 3 * group.len() <= part.len() && is_dense(part, group);
    let grouped: usize = groups.iter().filter(|group| is_group(group)).map(Vec::len).sum();
    if 4 * grouped < 3 * part.len() {
        return None;
    }
    for group in &mut groups {
        group.sort_by_key(|&xbar| part.ranks[xbar as usize]);
    }
    groups.sort_by_key(|group| part.ranks[group[0] as usize]);
    Some(groups)
}

/// How many numbers two sorted lists have in common.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().filter(|at| b.binary_search(at).is_ok()).count()
}

/// Whether at least half of all pairs within a group are cabled.
fn is_dense(part: &Part<'_>, group: &[u32]) -> bool {
    let mut members = group.to_vec();
    members.sort_unstable();
    let inside: usize = group.iter().map(|&xbar| common(&part.neighbours[xbar as usize], &members)).sum();
    2 * inside >= group.len() * (group.len() - 1)
}

/// A group as a block of boxes.
struct Block {
    size: Point,
    boxes: Vec<(u32, Rect)>,
}

impl Block {
    /// Lines of boxes, about as wide as high.
    fn new(part: &Part<'_>, xbars: Vec<u32>) -> Self {
        let (width, height) = part.largest();
        let (wide, high) = (width + GAP, height + GAP);
        let (columns, lines) = lines_of(xbars.len(), |columns, lines| columns * wide >= lines * high);
        let boxes = (0..).zip(xbars).map(|(at, xbar): (i64, u32)| {
            let corner = (MARGIN + at % columns * wide, TITLE + MARGIN + at / columns * high);
            (xbar, Rect { at: corner, size: part.sizes[xbar as usize] })
        });
        let size = (columns * wide - GAP + 2 * MARGIN, lines * high - GAP + 2 * MARGIN + TITLE);
        Self { size, boxes: boxes.collect() }
    }
}

fn on_circle(count: usize, (width, height): Point) -> Vec<Point> {
    let step = (width as f64).hypot(height as f64) + GAP as f64;
    let radius = (step * count as f64 / std::f64::consts::TAU).max(step);
    let centre = |place: usize| {
        let (sin, cos) = (std::f64::consts::TAU * place as f64 / count as f64).sin_cos();
        ((radius * sin).round() as i64, (-radius * cos).round() as i64)
    };
    (0..count).map(centre).collect()
}

fn in_lines(count: usize, (width, height): Point) -> Vec<Point> {
    let (wide, high) = (width + 3 * GAP, height + 3 * GAP);
    let (columns, _) = lines_of(count, |columns, lines| 2 * columns * wide >= 3 * lines * high);
    (0..count as i64).map(|at| (at % columns * wide, at / columns * high)).collect()
}

/// The fewest columns, and the lines that go with them, that are wide enough.
fn lines_of(count: usize, is_wide_enough: impl Fn(i64, i64) -> bool) -> (i64, i64) {
    let both = (1..=count).map(|columns| (columns as i64, count.div_ceil(columns) as i64));
    both.into_iter().find(|&(columns, lines)| is_wide_enough(columns, lines)).unwrap_or((count as i64, 1))
}
