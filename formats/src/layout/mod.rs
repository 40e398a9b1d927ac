//! Where everything stands in a picture of a fabric.
//!
//! There is one layout, which the page of `mapper view` and drawings share. It is a function of the fabric and of
//! the sizes of the boxes alone: no randomness, no clock, no iteration until something looks good.
//!
//! 1. A fabric falls into parts that no cable joins: the rails of a cluster, for one. Each is laid out by itself, and
//!    [`packing`] puts them side by side, with a frame and a title each. Xbars without any cable stand below.
//! 2. A part whose cables lead from tier to tier is a tree: rows, the leaves at the bottom ([`rows`]).
//! 3. A torus or mesh is unfolded into its planes ([`grid`]); a ring is a circle.
//! 4. Where xbars form groups that are cabled within far more densely than between, as in a dragonfly, each group is a
//!    block, and blocks stand on a circle or in lines ([`groups`]).
//! 5. Everything else stands in layers, by the distance from the xbar that is nearest to all others ([`rows`]).
//!
//! Cables between the same two xbars are a [`Bundle`]: one line with a count.

mod folded;
mod grid;
mod groups;
mod natural;
mod packing;
mod part;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mapper_fabric::names::Names;
use mapper_proto::map::Fabric;
use mapper_routing::{Tiers, Topology};

pub(crate) use folded::{CELL, CELLS_IN_LINE, MARGIN, NAME_HEIGHT};
use natural::ranks;
use part::Part;

/// Least distance between boxes, and from the border.
pub(crate) const GAP: i64 = 24;

/// A place in a picture: x to the right, y down.
pub(crate) type Point = (i64, i64);

/// Width and height.
pub(crate) type Size = (i64, i64);

/// Where a fabric's xbars stand, and which lines join them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    /// Width and height of it all.
    pub(crate) size: Size,
    /// By xbar, its box.
    pub(crate) boxes: Vec<Rect>,
    /// By xbar, in which tier of its part it stands, from the hosts up; 0 where there are no tiers.
    pub(crate) tiers: Vec<u32>,
    /// Lines between boxes.
    pub(crate) bundles: Vec<Bundle>,
    /// Frames around parts and groups, the outer ones first.
    pub(crate) frames: Vec<Frame>,
    /// How each part is laid out, the largest first.
    pub(crate) shapes: Vec<Shape>,
}

/// A box: its upper left corner, its width and height.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rect {
    /// The upper left corner.
    pub(crate) at: Point,
    /// Width and height.
    pub(crate) size: Size,
}

impl Rect {
    /// The middle.
    pub(crate) fn centre(self) -> Point {
        (self.at.0 + self.size.0 / 2, self.at.1 + self.size.1 / 2)
    }

    /// The lower right corner.
    pub(crate) fn end(self) -> Point {
        (self.at.0 + self.size.0, self.at.1 + self.size.1)
    }

    fn moved(self, by: Point) -> Self {
        Self { at: (self.at.0 + by.0, self.at.1 + by.1), size: self.size }
    }
}

/// A frame with a title around some boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its border.
    pub(crate) rect: Rect,
    /// What stands in it.
    pub(crate) title: String,
}

/// All cables between two xbars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bundle {
    /// One xbar; the lower number.
    pub(crate) a: u32,
    /// The xbar at the other end; that is `a` for cables from an xbar to itself.
    pub(crate) b: u32,
    /// The cables, by their places in the map, in rising order.
    pub(crate) cables: Vec<u32>,
    /// How far the middle of the line is bent aside, to the left of the way from `a` to `b`; 0 for a straight
    /// line.
    pub(crate) bend: i64,
}

/// How a part is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    /// In rows, by tier or by distance. `gap` is the height between a row and the next, and `lines` tells whether a
    /// row takes several lines.
    Rows {
        /// Height between the boxes of a row and of the next.
        gap: i64,
        /// Whether there is a row that takes several lines.
        lines: bool,
    },
    /// On a grid: the column and row of each xbar, by its place among the part's xbars.
    Grid(Vec<Point>),
    /// On a circle: which place each xbar has on it, clockwise from the top.
    Circle(Vec<u32>),
    /// Groups as blocks.
    Groups,
    /// A part that is a single xbar.
    Single,
}

/// How large boxes are, and how far apart rows stand.
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    /// The size of each xbar's box.
    pub(crate) boxes: Vec<Size>,
    /// What hangs below the boxes of the lowest row: names of hosts that are written downwards.
    pub(crate) below: i64,
    /// Most boxes of a row that stand in one line.
    pub(crate) most_in_line: usize,
}

impl Layout {
    /// The layout of a fabric. A map that cannot be routed, as a port in it holds two cables, is laid out without tiers.
    pub(crate) fn of(fabric: &Fabric, names: &Names, sizes: &Sizes) -> Self {
        let bundles = bundles(fabric);
        let topology = Topology::from_fabric(fabric).ok();
        let heights = topology.as_ref().map(|topology| Tiers::of(topology).heights().to_vec());
        let ranks = ranks(&names.xbars);
        let parts = part::split(fabric.map.xbars.len(), &bundles);
        let mut placed = Vec::new();
        for xbars in parts {
            let part = Part::new(&xbars, &bundles, heights.as_deref(), &ranks, sizes);
            let title = natural::common_name(xbars.iter().map(|&xbar| names.xbars[xbar as usize].as_str()));
            placed.push((part.place(topology.as_ref()), title, xbars));
        }
        let mut layout = packing::pack(placed, fabric.map.xbars.len(), sizes);
        layout.bundles = bundles;
        layout.bend_lines();
        layout
    }

    /// Bends the lines that would run along a row, and so behind the boxes of it.
    fn bend_lines(&mut self) {
        let mut bundles = std::mem::take(&mut self.bundles);
        for bundle in &mut bundles {
            let (from, to) = (self.boxes[bundle.a as usize], self.boxes[bundle.b as usize]);
            let ((x1, y1), (x2, y2)) = (from.centre(), to.centre());
            let (dx, dy) = (x2 - x1, y2 - y1);
            let is_level = dy.abs() < from.size.1;
            // Lines from tier to tier pass no box: nothing stands between two rows.
            let same_tier = self.tiers[bundle.a as usize] == self.tiers[bundle.b as usize];
            let is_upright = same_tier && dx.abs() < from.size.0;
            let is_near = dx.abs() <= from.size.0 + 4 * GAP && dy.abs() <= from.size.1 + 4 * GAP;
            if (same_tier && is_level || is_upright) && !is_near {
                let length = dx.abs().max(dy.abs());
                // A level line bends upwards, an upright one to the left.
                let sign = if is_level { dx.signum() } else { -dy.signum() };
                bundle.bend = sign * (length / 6).clamp(GAP, 400);
            }
        }
        self.bundles = bundles;
        self.make_room();
    }

    /// Makes the sheet as large as bent lines need, which may run beside all boxes.
    fn make_room(&mut self) {
        let middle = |bundle: &Bundle| {
            let (from, to) = (self.boxes[bundle.a as usize].centre(), self.boxes[bundle.b as usize].centre());
            let (dx, dy) = ((to.0 - from.0) as f64, (to.1 - from.1) as f64);
            let part = bundle.bend as f64 / dx.hypot(dy).max(1.0);
            let aside = ((dy * part).round() as i64, (-dx * part).round() as i64);
            (i64::midpoint(from.0, to.0) + aside.0, i64::midpoint(from.1, to.1) + aside.1)
        };
        let (mut least, mut most) = ((0, 0), self.size);
        for at in self.bundles.iter().filter(|bundle| bundle.bend != 0).map(middle) {
            least = (least.0.min(at.0), least.1.min(at.1));
            most = (most.0.max(at.0), most.1.max(at.1));
        }
        let by = (-least.0, -least.1);
        self.boxes.iter_mut().for_each(|rect| *rect = rect.moved(by));
        self.frames.iter_mut().for_each(|frame| frame.rect = frame.rect.moved(by));
        self.size = (most.0 + by.0, most.1 + by.1);
    }
}

/// The cables between each two xbars, in the order of these.
fn bundles(fabric: &Fabric) -> Vec<Bundle> {
    let mut all: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for (index, cable) in (0..).zip(&fabric.map.cables) {
        let (a, b) = (cable.a.xbar.min(cable.b.xbar), cable.a.xbar.max(cable.b.xbar));
        all.entry((a, b)).or_default().push(index);
    }
    all.into_iter().map(|((a, b), cables)| Bundle { a, b, cables, bend: 0 }).collect()
}
