//! Xbars with hosts, cabled to each other.
//!
//! Xbars are boxes with their hosts inside, each behind its port. They stand on a grid if their
//! names end in coordinates (`n2-0-1`, as tori and meshes have), or else on a circle. Cables run
//! from box to box, with the numbers of their ports where they leave.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::{Cable, Fabric};

use super::{COLOURS, GAP, Picture, cable_path, escaped, letters, xbar_title};

const LINE: i64 = 13;
/// Most hosts that are named in a box.
const MAX_LINES: usize = 8;

/// Draws a fabric.
pub(super) fn draw(fabric: &Fabric) -> Picture {
    let lines = host_lines(fabric);
    let names = fabric.xbars.iter().map(|label| letters(&label.name));
    let widest = names.chain(lines.iter().flatten().map(|line| letters(line))).max().unwrap_or(0);
    let tallest = lines.iter().map(Vec::len).max().unwrap_or(0) as i64;
    let half = (widest / 2 + LINE, (tallest + 1) * LINE / 2 + LINE / 2);
    let (centres, is_grid) = match coordinates(fabric) {
        Some(coordinates) => (on_grid(&coordinates, half), true),
        None => (on_circle(fabric.xbars.len(), half), false),
    };
    let mut direct = Direct { fabric, centres, half, is_grid };
    direct.move_into_view();
    let (mut cables, mut boxes) = (String::new(), String::new());
    let mut parallel = BTreeMap::new();
    for cable in &fabric.map.cables {
        let count: &mut i64 = parallel.entry((cable.a.xbar, cable.b.xbar)).or_default();
        let (path, ports) = direct.cable(cable, *count);
        *count += 1;
        cables += &path;
        boxes += &ports;
    }
    for (index, lines) in lines.iter().enumerate() {
        boxes += &direct.node(index, lines);
    }
    let right = direct.centres.iter().map(|centre| centre.0).max().unwrap_or(0) + half.0;
    let bottom = direct.centres.iter().map(|centre| centre.1).max().unwrap_or(0) + half.1;
    Picture { width: right + 4 * GAP, height: bottom + 4 * GAP, cables, boxes }
}

/// The hosts of each xbar by port: a line each, the last one saying how many more there are.
fn host_lines(fabric: &Fabric) -> Vec<Vec<String>> {
    let mut hosts = vec![BTreeMap::new(); fabric.xbars.len()];
    for (host, label) in fabric.map.hosts.iter().zip(&fabric.hosts) {
        if let Some(at) = host.at {
            hosts[at.xbar as usize].insert(at.port, &label.name);
        }
    }
    let lines = hosts.iter().map(|hosts| {
        let mut lines: Vec<_> = hosts.iter().map(|(port, name)| format!("{port} {name}")).collect();
        if lines.len() > MAX_LINES {
            let more = lines.len() - MAX_LINES + 1;
            lines.truncate(MAX_LINES - 1);
            lines.push(format!("and {more} more"));
        }
        lines
    });
    lines.collect()
}

/// The numbers that each xbar's name ends in, if all have two or three of them.
fn coordinates(fabric: &Fabric) -> Option<Vec<Vec<i64>>> {
    let numbers = |name: &str| -> Option<Vec<i64>> {
        let from = name.find(|c: char| c.is_ascii_digit())?;
        // A drawing cannot be wider than this many boxes and still be read.
        let number = |number: &str| number.parse().ok().filter(|&number: &i64| number < 1024);
        name[from..].split('-').map(number).collect()
    };
    let all: Option<Vec<_>> = fabric.xbars.iter().map(|label| numbers(&label.name)).collect();
    let dimensions = all.as_ref()?.first()?.len();
    all.filter(|all| (2..=3).contains(&dimensions) && all.iter().all(|one| one.len() == dimensions))
}

/// How far the centres of neighbours on a grid stand from each other.
const fn grid_step(half: (i64, i64)) -> (i64, i64) {
    (2 * half.0 + 3 * GAP, 2 * half.1 + 3 * GAP)
}

/// x to the right, y down; planes of the third coordinate side by side, a little lower each, so
/// that cables between planes do not lie upon each other.
fn on_grid(coordinates: &[Vec<i64>], half: (i64, i64)) -> Vec<(i64, i64)> {
    let columns = coordinates.iter().map(|at| at[0] + 1).max().unwrap_or(1);
    let (column, row) = grid_step(half);
    let centre = |at: &Vec<i64>| {
        let z = at.get(2).copied().unwrap_or(0);
        (at[0] * column + z * (columns * column + 2 * GAP), at[1] * row + z * row / 3)
    };
    coordinates.iter().map(centre).collect()
}

/// Clockwise, from the top.
fn on_circle(count: usize, half: (i64, i64)) -> Vec<(i64, i64)> {
    let step = (2 * half.0.max(half.1) + 2 * GAP) as f64;
    let radius = (step * count as f64 / std::f64::consts::TAU).max(step);
    let centre = |i: usize| {
        let (sin, cos) = (std::f64::consts::TAU * i as f64 / count as f64).sin_cos();
        ((radius * sin).round() as i64, (-radius * cos).round() as i64)
    };
    (0..count).map(centre).collect()
}

struct Direct<'a> {
    fabric: &'a Fabric,
    centres: Vec<(i64, i64)>,
    /// Half a box's width and height.
    half: (i64, i64),
    is_grid: bool,
}

impl Direct<'_> {
    fn move_into_view(&mut self) {
        let left = self.centres.iter().map(|centre| centre.0).min().unwrap_or(0) - self.half.0 - 4 * GAP;
        let top = self.centres.iter().map(|centre| centre.1).min().unwrap_or(0) - self.half.1 - 4 * GAP;
        for centre in &mut self.centres {
            *centre = (centre.0 - left, centre.1 - top);
        }
    }

    /// A cable's path, and the numbers of its ports.
    fn cable(&self, cable: &Cable, parallel: i64) -> (String, String) {
        let (a, b) = (self.centres[cable.a.xbar as usize], self.centres[cable.b.xbar as usize]);
        let ((x1, y1), (x2, y2)) = (a, b);
        let (dx, dy) = (x2 - x1, y2 - y1);
        let (control, path) = if cable.a.xbar == cable.b.xbar {
            let y = y1 - 3 * self.half.1 - parallel * GAP;
            let (left, right) = (x1 - self.half.0, x1 + self.half.0);
            ((x1, y), format!("M {x1} {y1} C {left} {y} {right} {y} {x2} {y2}"))
        } else {
            let bend = self.bend(dx, dy) + (parallel * GAP) as f64;
            let length = (dx as f64).hypot(dy as f64).max(1.0);
            let aside = |d: i64| (d as f64 / length * bend) as i64;
            let (x, y) = (i64::midpoint(x1, x2) + aside(dy), i64::midpoint(y1, y2) - aside(dx));
            let curve = if bend == 0.0 { "L".to_owned() } else { format!("Q {x} {y}") };
            ((x, y), format!("M {x1} {y1} {curve} {x2} {y2}"))
        };
        let ports = self.port(a, control, cable.a.port) + &self.port(b, control, cable.b.port);
        (cable_path(self.fabric, cable, &path), ports)
    }

    /// How far aside a curve's control point must be, for the curve to pass the boxes between
    /// two on a grid. A curve goes half as far as its control point.
    fn bend(&self, dx: i64, dy: i64) -> f64 {
        let (column, row) = grid_step(self.half);
        if !self.is_grid || (dx.abs() <= column && dy.abs() <= row) {
            return 0.0;
        }
        let box_between = if dx.abs() > dy.abs() { self.half.1 } else { self.half.0 };
        let length = (dx as f64).hypot(dy as f64);
        (2.0 * (box_between + GAP / 2) as f64).max(length / 4.0)
    }

    /// A port's number, where the way from a box's centre towards a point leaves the box.
    fn port(&self, centre: (i64, i64), towards: (i64, i64), port: u8) -> String {
        let (dx, dy) = ((towards.0 - centre.0) as f64, (towards.1 - centre.1) as f64);
        let margin = LINE as f64 * 0.7;
        let across = (self.half.0 as f64 + margin) / dx.abs().max(0.01);
        let along = (self.half.1 as f64 + margin) / dy.abs().max(0.01);
        let scale = across.min(along);
        let (x, y) = (centre.0 + (dx * scale) as i64, centre.1 + (dy * scale) as i64 + 3);
        format!("<text x=\"{x}\" y=\"{y}\" font-size=\"8\" text-anchor=\"middle\">{port}</text>\n")
    }

    /// A box with its name and its hosts.
    fn node(&self, index: usize, lines: &[String]) -> String {
        let ((x, y), (width, height)) = (self.centres[index], self.half);
        let mut text = format!(
            "<g>{}\n<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"{}\" stroke=\"#33414b\"/>\n\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\n",
            xbar_title(self.fabric, index),
            x - width,
            y - height,
            2 * width,
            2 * height,
            COLOURS[0],
            y - height + LINE,
            escaped(&self.fabric.xbars[index].name)
        );
        for (i, line) in (2..).zip(lines) {
            let (left, down) = (x - width + LINE / 2, y - height + i * LINE);
            let _ = writeln!(text, "<text x=\"{left}\" y=\"{down}\">{}</text>", escaped(line));
        }
        text + "</g>\n"
    }
}
