//! Xbars with hosts, cabled to each other.
//!
//! Xbars are boxes with their hosts inside, each behind its port, on a grid or a circle. Cables run from box to box, never
//! behind another one ([`ways`]), with the numbers of their ports where they leave.

mod ways;

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::{Cable, Fabric};

use self::ways::{CableCurve, Lanes, Point};
use super::{COLOURS, Picture, cable_path, escaped, letters, xbar_title};
use crate::layout::{Layout, Sizes};
use mapper_fabric::names::Names;

const LINE: i64 = 13;
/// Most hosts that are named in a box.
const MAX_LINES: usize = 8;

/// Draws a fabric.
pub(super) fn draw(fabric: &Fabric, names: &Names) -> Picture {
    let lines = host_lines(fabric, names);
    let widths = names.xbars.iter().chain(lines.iter().flatten()).map(|text| letters(text));
    let widest = widths.max().unwrap_or(0);
    let tallest = lines.iter().map(Vec::len).max().unwrap_or(0) as i64;
    let half = (widest / 2 + LINE, (tallest + 1) * LINE / 2 + LINE / 2);
    let sizes = Sizes {
        boxes: vec![(2 * half.0, 2 * half.1); names.xbars.len()],
        below: 0,
        most_in_line: usize::MAX,
    };
    let mut layout = Lanes::new(&Layout::of(fabric, names, &sizes), half);
    let mut parallel: BTreeMap<(u32, u32), i64> = BTreeMap::new();
    let mut nth = |cable: &Cable| {
        let count = parallel.entry((cable.a.xbar, cable.b.xbar)).or_default();
        *count += 1;
        *count - 1
    };
    let mut ways: Vec<CableCurve> = (fabric.map.cables.iter())
        .map(|cable| layout.way(cable.a.xbar as usize, cable.b.xbar as usize, nth(cable)))
        .collect();
    let (width, height) = layout.move_into_view(&mut ways);
    let (mut cables, mut boxes) = (String::new(), String::new());
    for (cable, way) in fabric.map.cables.iter().zip(&ways) {
        cables += &cable_path(names, cable, &way.path());
        let (a, b) = (layout.centres[cable.a.xbar as usize], layout.centres[cable.b.xbar as usize]);
        let (towards_b, towards_a) = way.directions();
        let at_borders = (border(half, (way.begin(), a), towards_b), border(half, (way.end(), b), towards_a));
        let (near, far) = way.numbers().unwrap_or(at_borders);
        boxes += &port(near, cable.a.port);
        boxes += &port(far, cable.b.port);
    }
    for (index, lines) in lines.iter().enumerate() {
        boxes += &node(fabric, names, index, (layout.centres[index], half), lines);
    }
    Picture { width, height, cables, boxes }
}

/// The hosts of each xbar by port: a line each, the last one saying how many more there are.
fn host_lines(fabric: &Fabric, names: &Names) -> Vec<Vec<String>> {
    let mut hosts = vec![BTreeMap::new(); fabric.xbars.len()];
    for (host, name) in fabric.map.hosts.iter().zip(&names.hosts) {
        if let Some(at) = host.at {
            hosts[at.xbar as usize].insert(at.port, name);
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

/// A port's number.
fn port((x, y): Point, port: u8) -> String {
    let y = y + 3;
    format!("<text x=\"{x}\" y=\"{y}\" font-size=\"8\" text-anchor=\"middle\">{port}</text>\n")
}

/// Just outside of a box, where a cable leaves it that begins there and goes towards a point.
fn border(half: (i64, i64), (begin, centre): (Point, Point), towards: Point) -> Point {
    let (dx, dy) = ((towards.0 - begin.0) as f64, (towards.1 - begin.1) as f64);
    let margin = LINE as f64 * 0.7;
    // From where the cable begins, how far it is to each side of the box.
    let reach = |half: i64, from: i64, step: f64| {
        let inside = if step > 0.0 { half - from } else { half + from };
        (inside as f64 + margin) / step.abs().max(0.01)
    };
    let scale = reach(half.0, begin.0 - centre.0, dx).min(reach(half.1, begin.1 - centre.1, dy));
    (begin.0 + (dx * scale) as i64, begin.1 + (dy * scale) as i64)
}

/// A box with its name and its hosts.
fn node(
    fabric: &Fabric,
    names: &Names,
    index: usize,
    ((x, y), (width, height)): (Point, (i64, i64)),
    lines: &[String],
) -> String {
    let mut text = format!(
        "<g>{}\n<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"{}\" stroke=\"#33414b\"/>\n\
         <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\n",
        xbar_title(fabric, names, index),
        x - width,
        y - height,
        2 * width,
        2 * height,
        COLOURS[0],
        y - height + LINE,
        escaped(&names.xbars[index])
    );
    for (i, line) in (2..).zip(lines) {
        let (left, down) = (x - width + LINE / 2, y - height + i * LINE);
        let _ = writeln!(text, "<text x=\"{left}\" y=\"{down}\">{}</text>", escaped(line));
    }
    text + "</g>\n"
}
