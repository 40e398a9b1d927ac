//! A part of a fabric: xbars that cables join.

use mapper_fabric::parts::Parts;
use mapper_routing::{Tiers, Topology};

use super::{Bundle, Frame, Rect, Shape, Size, Sizes, grid, groups, rows};

/// The xbars of each part, in rising order; the largest part first, then the one with the first xbar.
pub(super) fn split(xbars: usize, bundles: &[Bundle]) -> Vec<Vec<u32>> {
    let mut joined = Parts::new(xbars);
    for bundle in bundles {
        joined.join(bundle.a, bundle.b);
    }
    let mut parts: Vec<Vec<u32>> = vec![Vec::new(); xbars];
    for xbar in 0..xbars as u32 {
        parts[joined.of(xbar) as usize].push(xbar);
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(|part| (std::cmp::Reverse(part.len()), part[0]));
    parts
}

/// A part, its xbars numbered from 0.
pub(super) struct Part<'a> {
    /// The numbers that its xbars have in the fabric.
    pub(super) xbars: &'a [u32],
    /// The neighbours of each xbar, each once, itself not among them.
    pub(super) neighbours: Vec<Vec<u32>>,
    /// How many cables join each pair that is cabled: both numbers, the lower first.
    pub(super) pairs: Vec<(u32, u32, usize)>,
    /// The height of each xbar above the leaves; `None` if that is not known of all.
    pub(super) heights: Option<Vec<u32>>,
    /// The place of each xbar's name in natural order.
    pub(super) ranks: Vec<u32>,
    /// The size of each xbar's box.
    pub(super) sizes: Vec<Size>,
    /// Most boxes in one line of a row.
    pub(super) most_in_line: usize,
}

/// A part whose xbars have their places.
pub(super) struct Placed {
    /// How it is laid out.
    pub(super) shape: Shape,
    /// By xbar, its box.
    pub(super) boxes: Vec<Rect>,
    /// By xbar, the row that it stands in, from the bottom.
    pub(super) tiers: Vec<u32>,
    /// Frames around groups.
    pub(super) frames: Vec<Frame>,
}

impl<'a> Part<'a> {
    pub(super) fn new(
        xbars: &'a [u32],
        bundles: &[Bundle],
        heights: Option<&[u32]>,
        ranks: &[u32],
        sizes: &Sizes,
    ) -> Self {
        let number = |xbar: u32| xbars.binary_search(&xbar).ok().map(|at| at as u32);
        let mut neighbours = vec![Vec::new(); xbars.len()];
        let mut pairs = Vec::new();
        // Bundles stand by their first xbar, so those of a part that has few xbars are found without looking at all.
        for &xbar in xbars {
            let from = bundles.partition_point(|bundle| bundle.a < xbar);
            for bundle in bundles[from..].iter().take_while(|bundle| bundle.a == xbar) {
                let (Some(a), Some(b)) = (number(bundle.a), number(bundle.b)) else { continue };
                if a != b {
                    neighbours[a as usize].push(b);
                    neighbours[b as usize].push(a);
                    pairs.push((a, b, bundle.cables.len()));
                }
            }
        }
        let heights = heights.map(|all| xbars.iter().map(|&xbar| all[xbar as usize]).collect::<Vec<u32>>());
        Self {
            xbars,
            neighbours,
            pairs,
            heights: heights.filter(|all| all.iter().all(|&height| height != Tiers::UNREACHED)),
            ranks: xbars.iter().map(|&xbar| ranks[xbar as usize]).collect(),
            sizes: xbars.iter().map(|&xbar| sizes.boxes[xbar as usize]).collect(),
            most_in_line: sizes.most_in_line,
        }
    }

    /// How many xbars it has.
    pub(super) fn len(&self) -> usize {
        self.xbars.len()
    }

    /// The largest width and the largest height of a box.
    pub(super) fn largest(&self) -> Size {
        let widest = self.sizes.iter().map(|size| size.0).max().unwrap_or(0);
        (widest, self.sizes.iter().map(|size| size.1).max().unwrap_or(0))
    }

    /// Gives its xbars their places.
    pub(super) fn place(&self, topology: Option<&Topology>) -> Placed {
        if self.len() == 1 {
            let boxes = vec![Rect { at: (0, 0), size: self.sizes[0] }];
            return Placed { shape: Shape::Single, boxes, tiers: vec![0], frames: Vec::new() };
        }
        if let Some(heights) = self.heights.as_ref().filter(|heights| self.is_tree(heights)) {
            return rows::tree(self, heights);
        }
        grid::place(self, topology).or_else(|| groups::place(self)).unwrap_or_else(|| rows::layers(self))
    }

    /// Whether most cables lead from one height to another.
    fn is_tree(&self, heights: &[u32]) -> bool {
        let cables: usize = self.pairs.iter().map(|pair| pair.2).sum();
        let is_level = |pair: &&(u32, u32, usize)| heights[pair.0 as usize] == heights[pair.1 as usize];
        let level: usize = self.pairs.iter().filter(is_level).map(|pair| pair.2).sum();
        2 * level <= cables
    }
}
