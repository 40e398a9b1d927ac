//! Row above row, tier by tier.
//!
//! Xbars are boxes with a cell for each cabled port, numbered: ports that lead up on the upper
//! side, those that lead down on the lower. Hosts are names below their port.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::{Cable, Fabric, PortRef};

use super::{COLOURS, Picture, cable_path, escaped, letters, xbar_title};
use crate::layout::{GAP, Layout, Shape, Sizes};
use mapper_fabric::names::Names;

/// Width and height of a port's cell, and height of the name between the rows of cells.
const CELL: i64 = 18;
const CELL_HEIGHT: i64 = 13;
const NAME_HEIGHT: i64 = 18;
const BOX_HEIGHT: i64 = 2 * CELL_HEIGHT + NAME_HEIGHT;

/// Draws a fabric.
pub(super) fn draw(fabric: &Fabric, names: &Names) -> Picture {
    // Which ports lead up follows from the tiers, and the sizes of boxes from that.
    let tiers = Layout::of(fabric, names, &Sizes::folded(fabric)).tiers;
    let mut rows = Rows::new(fabric, names, &tiers);
    rows.place();
    let longest = names.hosts.iter().map(|name| letters(name)).max().unwrap_or(0);
    let right = rows.nodes.iter().map(|node| node.x + node.width).max().unwrap_or(0);
    let bottom = rows.nodes.iter().map(|node| node.y + BOX_HEIGHT + longest + GAP).max().unwrap_or(0);
    Picture {
        width: right + GAP,
        height: bottom + GAP,
        cables: fabric.map.cables.iter().map(|cable| rows.cable(cable)).collect(),
        boxes: (0..rows.nodes.len()).map(|index| rows.node(index)).collect(),
    }
}

/// An xbar's box, where it stands, and which ports it has above and below its name.
#[derive(Clone, Default)]
struct XbarBox {
    x: i64,
    y: i64,
    width: i64,
    upper: Vec<u8>,
    lower: Vec<u8>,
}

impl XbarBox {
    /// Where the cable of a port begins.
    fn anchor(&self, port: u8) -> (i64, i64) {
        let column = |row: &[u8]| row.iter().position(|&p| p == port).map(|i| self.column(row, i) + CELL / 2);
        match column(&self.upper) {
            Some(x) => (x, self.y),
            None => (column(&self.lower).unwrap_or(self.x), self.y + BOX_HEIGHT),
        }
    }

    /// The left border of the i-th cell of a row; rows are centred.
    fn column(&self, row: &[u8], i: usize) -> i64 {
        self.x + (self.width - row.len() as i64 * CELL) / 2 + i as i64 * CELL
    }
}

struct Rows<'a> {
    fabric: &'a Fabric,
    names: &'a Names,
    tier: &'a [u32],
    nodes: Vec<XbarBox>,
    /// Height between the boxes of a row and those of the next.
    row_gap: i64,
    /// The host at each port.
    hosts: BTreeMap<PortRef, usize>,
}

impl<'a> Rows<'a> {
    fn new(fabric: &'a Fabric, names: &'a Names, tier: &'a [u32]) -> Self {
        let map = &fabric.map;
        let mut nodes = vec![XbarBox::default(); map.xbars.len()];
        for cable in &map.cables {
            for (near, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
                let node = &mut nodes[near.xbar as usize];
                let leads_down = tier[far.xbar as usize] < tier[near.xbar as usize];
                if leads_down { &mut node.lower } else { &mut node.upper }.push(near.port);
            }
        }
        let hosts = map.hosts.iter().enumerate();
        let hosts: BTreeMap<_, _> = hosts.filter_map(|(index, host)| Some((host.at?, index))).collect();
        hosts.keys().for_each(|at| nodes[at.xbar as usize].lower.push(at.port));
        for (node, name) in nodes.iter_mut().zip(&names.xbars) {
            node.upper.sort_unstable();
            node.lower.sort_unstable();
            let cells = node.upper.len().max(node.lower.len()) as i64 * CELL;
            node.width = cells.max(letters(name) + CELL);
        }
        Self { fabric, names, tier, nodes, hosts, row_gap: 0 }
    }

    /// Gives each box its place in the layout.
    fn place(&mut self) {
        let boxes = self.nodes.iter().map(|node| (node.width, BOX_HEIGHT)).collect();
        let sizes = Sizes { boxes, below: 0, most_in_line: usize::MAX };
        let layout = Layout::of(self.fabric, self.names, &sizes);
        if let [Shape::Rows { gap, .. }] = layout.shapes[..] {
            self.row_gap = gap;
        }
        for (node, rect) in self.nodes.iter_mut().zip(&layout.boxes) {
            (node.x, node.y) = (rect.at.0 + GAP, rect.at.1 + GAP);
        }
        let highest = self.fabric.map.cables.iter().map(|cable| self.summit(cable)).min().unwrap_or(GAP);
        let missing = (GAP - highest).max(0);
        self.nodes.iter_mut().for_each(|node| node.y += missing);
    }

    fn is_level(&self, cable: &Cable) -> bool {
        self.tier[cable.a.xbar as usize] == self.tier[cable.b.xbar as usize]
    }

    fn anchor(&self, end: PortRef) -> (i64, i64) {
        self.nodes[end.xbar as usize].anchor(end.port)
    }

    /// How far a cable within a tier rises above it: not as far as the next tier.
    fn rise(&self, cable: &Cable) -> i64 {
        let (x1, x2) = (self.anchor(cable.a).0, self.anchor(cable.b).0);
        (GAP + (x2 - x1).abs() / 16).min(self.row_gap - GAP)
    }

    /// The highest point of a cable.
    fn summit(&self, cable: &Cable) -> i64 {
        let (y1, y2) = (self.anchor(cable.a).1, self.anchor(cable.b).1);
        y1.min(y2) - if self.is_level(cable) { self.rise(cable) } else { 0 }
    }

    /// A line between tiers; within one, a curve, so that cables in a row do not hide each other.
    fn cable(&self, cable: &Cable) -> String {
        let ((x1, y1), (x2, y2)) = (self.anchor(cable.a), self.anchor(cable.b));
        let path = if self.is_level(cable) {
            // A curve rises half as high as its control point.
            let (x, y) = (i64::midpoint(x1, x2), 2 * self.summit(cable) - y1);
            format!("M {x1} {y1} Q {x} {y} {x2} {y2}")
        } else {
            format!("M {x1} {y1} L {x2} {y2}")
        };
        cable_path(self.names, cable, &path)
    }

    /// A box with its name, its cells, and its hosts below.
    fn node(&self, index: usize) -> String {
        let node = &self.nodes[index];
        let XbarBox { x, y, width, .. } = *node;
        let mut text = format!(
            "<g>{}\n<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"3\" fill=\"{}\" \
             stroke=\"#33414b\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\n",
            xbar_title(self.fabric, self.names, index),
            COLOURS[self.tier[index] as usize % COLOURS.len()],
            x + width / 2,
            y + CELL_HEIGHT + NAME_HEIGHT - 5,
            escaped(&self.names.xbars[index])
        );
        for (row, top) in [(&node.upper, y), (&node.lower, y + CELL_HEIGHT + NAME_HEIGHT)] {
            for (i, &port) in row.iter().enumerate() {
                let left = node.column(row, i);
                let _ = writeln!(
                    text,
                    "<rect x=\"{left}\" y=\"{top}\" width=\"{CELL}\" height=\"{CELL_HEIGHT}\" fill=\"white\" \
                     stroke=\"#8a969e\" stroke-width=\"0.5\"/>\
                     <text x=\"{}\" y=\"{}\" font-size=\"8\" text-anchor=\"middle\">{port}</text>",
                    left + CELL / 2,
                    top + CELL_HEIGHT - 4
                );
                if let Some(&host) = self.hosts.get(&PortRef { xbar: index as u32, port }) {
                    text += &self.host(host, left + CELL / 2, top + CELL_HEIGHT);
                }
            }
        }
        text + "</g>\n"
    }

    /// A host's name, written downwards below its port.
    fn host(&self, host: usize, x: i64, y: i64) -> String {
        let (name, mac) = (&self.names.hosts[host], self.fabric.map.hosts[host].mac);
        let (end, begin) = (y + 8, y + 11);
        format!(
            "<path d=\"M {x} {y} V {end}\" stroke=\"#5b6770\"/><text transform=\"translate({} {begin}) \
             rotate(90)\">{}<title>{mac}</title></text>\n",
            x - 4,
            escaped(name)
        )
    }
}
