//! How cables get from one box to another without running behind a third.
//!
//! On a grid each box has a column and a row. Between columns and between rows there are lanes without
//! boxes: a cable to the next box of its row, its column or across a corner is a straight line, all others
//! follow the lanes.
//!
//! On a circle the inside is free: a cable that does not lead to the next box goes inwards first.

use crate::layout::{GAP, Layout, Shape};

/// A place on the page.
pub(super) use crate::layout::Point;

/// The space between cables that stand side by side.
const BESIDE: i64 = 5;

/// Where boxes stand, and what is free between them.
pub(super) struct Lanes {
    pub(super) centres: Vec<Point>,
    /// Half a box's width and height.
    half: (i64, i64),
    place: BoxPlaces,
}

enum BoxPlaces {
    /// The column and the row of each box, and the boxes by these.
    Grid(Vec<Point>, std::collections::BTreeSet<Point>),
    /// The middle is at (0, 0), and no box is as near to it as this; the place of each box on the circle.
    Circle(f64, Vec<u32>),
}

/// The way of a cable: a line from point to point, or a curve.
pub(super) enum CableCurve {
    Line(Vec<Point>),
    /// A line to the second point, a curve to the fourth by way of the third, and a line to the last.
    Arc([Point; 5]),
    /// A curve above a box, from it to itself.
    Loop([Point; 4]),
}

impl Lanes {
    /// The lanes of a layout of one part that is a grid or a circle, all of whose boxes have this half width and height.
    pub(super) fn new(layout: &Layout, half: (i64, i64)) -> Self {
        let mut centres: Vec<Point> = layout.boxes.iter().map(|rect| rect.centre()).collect();
        let place = match layout.shapes.first() {
            Some(Shape::Circle(places)) => {
                let count = centres.len().max(1) as i64;
                let sum = centres.iter().fold((0, 0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
                let middle = (sum.0 / count, sum.1 / count);
                centres.iter_mut().for_each(|at| *at = (at.0 - middle.0, at.1 - middle.1));
                let nearest =
                    centres.iter().map(|at| (at.0 as f64).hypot(at.1 as f64)).fold(f64::MAX, f64::min);
                let inside = nearest - (half.0 as f64).hypot(half.1 as f64) - GAP as f64 / 2.0;
                BoxPlaces::Circle(inside.max(0.0), places.clone())
            }
            Some(Shape::Grid(at)) => BoxPlaces::Grid(at.clone(), at.iter().copied().collect()),
            // A layout that is neither a circle nor a grid is of one box alone, which stands in the middle.
            _ => BoxPlaces::Grid(vec![(0, 0); centres.len()], [(0, 0)].into()),
        };
        Self { centres, half, place }
    }

    /// The way of the `nth` cable between two boxes, counted from 0.
    pub(super) fn way(&self, a: usize, b: usize, nth: i64) -> CableCurve {
        let (from, to) = (self.centres[a], self.centres[b]);
        let aside = nth * BESIDE;
        if a == b {
            let (x, y) = from;
            let above = y - 3 * self.half.1 - nth * GAP;
            return CableCurve::Loop([from, (x - self.half.0, above), (x + self.half.0, above), to]);
        }
        match &self.place {
            BoxPlaces::Grid(at, taken) if is_next(at[a], at[b], taken) => {
                // Parallel cables stand beside each other, across the line.
                let (dx, dy) = ((to.0 - from.0).abs(), (to.1 - from.1).abs());
                let shift = if dx > dy { (0, aside) } else { (aside, 0) };
                CableCurve::Line([from, to].map(|(x, y)| (x + shift.0, y + shift.1)).to_vec())
            }
            BoxPlaces::Grid(at, _) => self.along_lanes((from, at[a]), (to, at[b]), aside),
            BoxPlaces::Circle(_, places) if self.is_beside(places[a], places[b]) && nth == 0 => {
                CableCurve::Line(vec![from, to])
            }
            BoxPlaces::Circle(inside, places) => {
                let inner =
                    |one: usize, other: usize| self.inner(one, (places[one], places[other]), nth, *inside);
                let (near, far) = (inner(a, b), inner(b, a));
                let middle = (i64::midpoint(near.0, far.0), i64::midpoint(near.1, far.1));
                // The longer the way, the nearer it passes the middle, so that few lie upon each other.
                let pulled = |at: i64| (at as f64 * 0.7 / (1 + nth) as f64) as i64;
                CableCurve::Arc([from, near, (pulled(middle.0), pulled(middle.1)), far, to])
            }
        }
    }

    /// Whether two places are next to each other on a circle.
    fn is_beside(&self, a: u32, b: u32) -> bool {
        let count = self.centres.len() as u32;
        let apart = (b + count - a) % count;
        apart == 1 || apart + 1 == count
    }

    /// Where a cable from one box of a circle to another comes into the free inside: each at a place of its
    /// own, those that turn left to the left.
    fn inner(&self, box_at: usize, (from, to): (u32, u32), nth: i64, inside: f64) -> Point {
        let count = self.centres.len() as u32;
        let (x, y) = self.centres[box_at];
        // This runs from -0.5, for the next box clockwise, to 0.5, for the next one the other way round.
        let turn = 0.5 - f64::from((to + count - from) % count) / f64::from(count);
        let wide = self.half.0.max(self.half.1) as f64 * 1.6;
        let aside = turn * wide + (nth * BESIDE) as f64;
        let angle = (y as f64).atan2(x as f64) - aside / inside.max(1.0);
        ((angle.cos() * inside) as i64, (angle.sin() * inside) as i64)
    }

    /// A way by the lanes above rows and left of columns.
    fn along_lanes(&self, (from, a): (Point, Point), (to, b): (Point, Point), aside: i64) -> CableCurve {
        let above = |y: i64| y - self.half.1 - GAP - aside;
        let left = |x: i64| x - self.half.0 - GAP - aside;
        // Loops point away from the middle, where straight cables begin, and from each other.
        let (shift_x, shift_y) = (self.half.0 * 2 / 3 + aside, self.half.1 * 2 / 3 + aside);
        CableCurve::Line(if a.1 == b.1 {
            let y = above(from.1);
            vec![
                (from.0 - shift_x, from.1),
                (from.0 - shift_x, y),
                (to.0 + shift_x, y),
                (to.0 + shift_x, to.1),
            ]
        } else if a.0 == b.0 {
            let x = left(from.0);
            vec![
                (from.0, from.1 - shift_y),
                (x, from.1 - shift_y),
                (x, to.1 + shift_y),
                (to.0, to.1 + shift_y),
            ]
        } else {
            let lane = left(to.0) + GAP / 2;
            let (first, last) = (above(from.1) + GAP / 2, above(to.1) + GAP / 2);
            let (begin, end) = (from.0 + self.half.0 / 3 + aside, to.0 - self.half.0 / 3 - aside);
            vec![(begin, from.1), (begin, first), (lane, first), (lane, last), (end, last), (end, to.1)]
        })
    }

    /// Moves all that is drawn away from the border of the page, and tells how wide and high that is.
    pub(super) fn move_into_view(&mut self, ways: &mut [CableCurve]) -> (i64, i64) {
        let (width, height) = self.half;
        let corners = |&(x, y): &Point| [(x - width, y - height), (x + width, y + height)];
        let drawn = || ways.iter().flat_map(|way| way.points().iter().copied());
        let all: Vec<Point> = self.centres.iter().flat_map(corners).chain(drawn()).collect();
        // Numbers of ports stand just outside of boxes.
        let least = |of: fn(&Point) -> i64| all.iter().map(of).min().unwrap_or(0) - 2 * GAP;
        let most = |of: fn(&Point) -> i64| all.iter().map(of).max().unwrap_or(0) + 2 * GAP;
        let (left, top) = (least(|at| at.0), least(|at| at.1));
        let size = (most(|at| at.0) - left, most(|at| at.1) - top);
        let moved = |at: &mut Point| *at = (at.0 - left, at.1 - top);
        self.centres.iter_mut().for_each(moved);
        ways.iter_mut().flat_map(|way| way.points_mut().iter_mut()).for_each(moved);
        size
    }
}

/// Whether nothing stands between two boxes of a grid: they share a row or a column, or touch at a corner.
fn is_next(a: Point, b: Point, taken: &std::collections::BTreeSet<Point>) -> bool {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let is_free = |step: i64| {
        let at = (a.0 + dx.signum() * step, a.1 + dy.signum() * step);
        !taken.contains(&at)
    };
    match (dx.abs(), dy.abs()) {
        (1, 1) => true,
        (0, far) | (far, 0) => (1..far).all(is_free),
        _ => false,
    }
}

impl CableCurve {
    /// All points, those that a curve only nears included.
    fn points(&self) -> &[Point] {
        match self {
            Self::Line(points) => points,
            Self::Arc(points) => points,
            Self::Loop(points) => points,
        }
    }

    fn points_mut(&mut self) -> &mut [Point] {
        match self {
            Self::Line(points) => points,
            Self::Arc(points) => points,
            Self::Loop(points) => points,
        }
    }

    pub(super) fn begin(&self) -> Point {
        self.points().first().copied().unwrap_or_default()
    }

    pub(super) fn end(&self) -> Point {
        self.points().last().copied().unwrap_or_default()
    }

    /// Where the numbers of its ports are to stand, if not at the border of the boxes: where each cable that
    /// goes inwards on a circle is alone.
    pub(super) fn numbers(&self) -> Option<(Point, Point)> {
        if let Self::Arc([_, near, _, far, _]) = self { Some((*near, *far)) } else { None }
    }

    /// Towards which point it leaves its begin, and its end.
    pub(super) fn directions(&self) -> (Point, Point) {
        let points = self.points();
        let second = points.get(1).copied().unwrap_or_default();
        let last_but_one = points.len().checked_sub(2).map(|at| points[at]).unwrap_or_default();
        (second, last_but_one)
    }

    /// The curve as the data of an SVG path.
    pub(super) fn path(&self) -> String {
        let text = |&(x, y): &Point| format!("{x} {y}");
        match self {
            Self::Line(points) => format!("M {}", points.iter().map(text).collect::<Vec<_>>().join(" L ")),
            Self::Arc(points) => {
                let [a, b, c, d, e] = points.each_ref().map(text);
                format!("M {a} L {b} Q {c} {d} L {e}")
            }
            Self::Loop(points) => {
                let [a, b, c, d] = points.each_ref().map(text);
                format!("M {a} C {b} {c} {d}")
            }
        }
    }
}
