//! A fabric with its hosts folded into their xbars, as the page of `mapper view` shows it.
//!
//! Parallel cables are one line. Most lines of a real cluster stand for as many cables, which a note says; those that stand for
//! fewer or more have another colour and their number.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_fabric::names::Names;
use mapper_fabric::wording::plural;
use mapper_proto::map::{Fabric, PortRef};

use super::{COLOURS, Picture, escaped, xbar_title};
use crate::layout::{Bundle, CELL, CELLS_IN_LINE, Frame, GAP, Layout, MARGIN, NAME_HEIGHT, Point, Sizes};

/// Colour of lines that stand for another number of cables than most.
const UNUSUAL: &str = "#c0570a";
/// Height of the note above the drawing.
const NOTE: i64 = 20;

/// Draws a fabric.
pub(super) fn draw(fabric: &Fabric, names: &Names) -> Picture {
    let layout = Layout::of(fabric, names, &Sizes::folded(fabric));
    let drawing = Drawing { fabric, names, layout: &layout, usual: usual(&layout.bundles) };
    let frames: String = layout.frames.iter().map(frame).collect();
    let lines: String = layout.bundles.iter().map(|bundle| drawing.line(bundle)).collect();
    let counts: String = layout.bundles.iter().map(|bundle| drawing.count(bundle)).collect();
    let boxes: String = drawing.boxes();
    let note = match drawing.usual {
        0 | 1 => String::new(),
        usual => format!(
            "<text x=\"{GAP}\" y=\"{}\">Each line stands for {}, but where a number stands on it.</text>\n",
            NOTE,
            plural(usual, "cable")
        ),
    };
    Picture {
        width: layout.size.0 + 2 * GAP,
        height: layout.size.1 + 2 * GAP + NOTE,
        cables: moved(&(frames + &lines)),
        boxes: note + &moved(&(counts + &boxes)),
    }
}

/// Moves what is drawn off the border.
fn moved(drawn: &str) -> String {
    format!("<g transform=\"translate({GAP} {})\">\n{drawn}</g>\n", GAP + NOTE)
}

/// How many cables most lines stand for.
fn usual(bundles: &[Bundle]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    bundles.iter().for_each(|bundle| *counts.entry(bundle.cables.len()).or_default() += 1);
    counts.into_iter().max_by_key(|&(_, lines)| lines).map_or(1, |(usual, _)| usual)
}

fn frame(Frame { rect, title }: &Frame) -> String {
    let ((x, y), (width, height)) = (rect.at, rect.size);
    let (left, base) = (x + 10, y + 20);
    format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" stroke=\"#b4bdc4\"/>\n\
         <text x=\"{left}\" y=\"{base}\" font-size=\"16\" font-weight=\"bold\" fill=\"#33414b\" stroke=\"none\">{}</text>\n",
        escaped(title)
    )
}

struct Drawing<'a> {
    fabric: &'a Fabric,
    names: &'a Names,
    layout: &'a Layout,
    usual: usize,
}

impl Drawing<'_> {
    /// Where a line begins, where it is bent, and where it ends.
    fn points(&self, bundle: &Bundle) -> [Point; 3] {
        let (from, to) = (self.layout.boxes[bundle.a as usize], self.layout.boxes[bundle.b as usize]);
        let (a, b) = (from.centre(), to.centre());
        if bundle.a == bundle.b {
            return [a, (from.end().0, from.at.1 - 2 * from.size.1), b];
        }
        let (dx, dy) = ((b.0 - a.0) as f64, (b.1 - a.1) as f64);
        let aside = 2.0 * bundle.bend as f64 / dx.hypot(dy).max(1.0);
        let middle =
            (i64::midpoint(a.0, b.0) + (dy * aside) as i64, i64::midpoint(a.1, b.1) - (dx * aside) as i64);
        [a, middle, b]
    }

    fn line(&self, bundle: &Bundle) -> String {
        let [(x1, y1), (x, y), (x2, y2)] = self.points(bundle);
        let path = match bundle.bend == 0 && bundle.a != bundle.b {
            true => format!("M {x1} {y1} L {x2} {y2}"),
            false => format!("M {x1} {y1} Q {x} {y} {x2} {y2}"),
        };
        let end = |end: PortRef| format!("{}:{}", self.names.xbars[end.xbar as usize], end.port);
        let cables = bundle.cables.iter().map(|&cable| self.fabric.map.cables[cable as usize]);
        let title: Vec<String> = cables.map(|cable| format!("{} - {}", end(cable.a), end(cable.b))).collect();
        let look = match bundle.cables.len() {
            count if count == self.usual => String::new(),
            _ => format!(" stroke=\"{UNUSUAL}\" stroke-opacity=\"1\""),
        };
        let title = escaped(&title.join(", "));
        format!("<path d=\"{path}\"{look}><title>{title}</title></path>\n")
    }

    /// The number of cables of a line that stands for another number than most: near its lower end, where lines are apart.
    fn count(&self, bundle: &Bundle) -> String {
        let count = bundle.cables.len();
        if count == self.usual {
            return String::new();
        }
        let [a, middle, b] = self.points(bundle);
        let (a, b) = if a.1 >= b.1 { (a, b) } else { (b, a) };
        let part = 0.2 + 0.1 * f64::from(bundle.a % 3);
        let along = |a: i64, middle: i64, b: i64| {
            let (a, middle, b, rest) = (a as f64, middle as f64, b as f64, 1.0 - part);
            (rest * rest * a + 2.0 * rest * part * middle + part * part * b) as i64
        };
        let (x, y) = (along(a.0, middle.0, b.0), along(a.1, middle.1, b.1));
        let base = y + 4;
        format!(
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"8\" fill=\"white\" stroke=\"{UNUSUAL}\"/>\
             <text x=\"{x}\" y=\"{base}\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"{UNUSUAL}\">{count}</text>\n"
        )
    }

    fn boxes(&self) -> String {
        let mut hosts: Vec<Vec<(u8, usize)>> = vec![Vec::new(); self.names.xbars.len()];
        for (index, host) in self.fabric.map.hosts.iter().enumerate() {
            if let Some(at) = host.at {
                hosts[at.xbar as usize].push((at.port, index));
            }
        }
        hosts.iter_mut().for_each(|hosts| hosts.sort_unstable());
        hosts.iter().enumerate().map(|(xbar, hosts)| self.node(xbar, hosts)).collect()
    }

    fn node(&self, xbar: usize, hosts: &[(u8, usize)]) -> String {
        let rect = self.layout.boxes[xbar];
        let ((x, y), (width, height)) = (rect.at, rect.size);
        let name = &self.names.xbars[xbar];
        let mut text = format!(
            "<g>{}\n<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"{}\" \
             stroke=\"#33414b\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\n",
            xbar_title(self.fabric, self.names, xbar),
            COLOURS[self.layout.tiers[xbar] as usize % COLOURS.len()],
            x + width / 2,
            y + NAME_HEIGHT - 6,
            escaped(&shortened(name, (width / 6) as usize)),
        );
        for (place, &(port, host)) in hosts.iter().enumerate() {
            let (column, line) = ((place % CELLS_IN_LINE) as i64, (place / CELLS_IN_LINE) as i64);
            let (left, top) = (x + MARGIN + column * CELL.0, y + NAME_HEIGHT + line * CELL.1);
            let name = &self.names.hosts[host];
            let _infallible = writeln!(
                text,
                "<g font-size=\"3.5\"><title>{}: port {port}, {}</title><rect x=\"{left}.5\" y=\"{top}.5\" \
                 width=\"{}\" height=\"{}\" fill=\"white\" stroke=\"#8a969e\" stroke-width=\"0.4\"/><text x=\"{}\" \
                 y=\"{}\" text-anchor=\"middle\">{}</text></g>",
                escaped(name),
                self.fabric.map.hosts[host].mac,
                CELL.0 - 1,
                CELL.1 - 1,
                left + CELL.0 / 2,
                top + 6,
                escaped(&shortened(name, 8)),
            );
        }
        text + "</g>\n"
    }
}

/// As much of a name as there is room for: its end, as names of one fabric mostly begin alike.
fn shortened(name: &str, most: usize) -> String {
    match name.chars().count() <= most {
        true => name.to_owned(),
        false => ['\u{2026}']
            .into_iter()
            .chain(name.chars().skip(name.chars().count() + 1 - most.max(1)))
            .collect(),
    }
}
