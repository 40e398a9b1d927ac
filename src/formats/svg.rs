//! Drawings.
//!
//! Xbars are boxes with a cell for each cabled port, numbered; hosts are names below their
//! port; cables are lines. Where xbars without hosts connect those with (a Clos, a tree), they
//! stand above them, row by row. Where all xbars have hosts they stand on a grid, if their names
//! end in coordinates (`n2-0-1`, as tori and meshes have), or else on a circle.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::{Cable, Fabric, PortRef};

use super::shape::layers;

/// Width and height of a port's cell, and height of the name between the rows of cells.
const CELL: i64 = 18;
const CELL_HEIGHT: i64 = 13;
const NAME_HEIGHT: i64 = 18;
const BOX_HEIGHT: i64 = 2 * CELL_HEIGHT + NAME_HEIGHT;
/// Least distance between boxes, and from the border.
const GAP: i64 = 24;
/// Width of a letter, on average.
const LETTER: i64 = 7;
/// Colours of the rows of boxes, from the hosts up.
const COLOURS: [&str; 5] = ["#dceefb", "#fdebd0", "#e3f4e1", "#f3e3f7", "#f7e1e1"];

/// The fabric as an SVG document.
pub(super) fn write(fabric: &Fabric) -> String {
    let mut drawing = Drawing::new(fabric);
    drawing.place();
    drawing.document()
}

/// A box: an xbar, where it stands, and which ports it has above and below its name.
#[derive(Clone, Default)]
struct Node {
    x: i64,
    y: i64,
    width: i64,
    tier: usize,
    upper: Vec<u8>,
    lower: Vec<u8>,
}

impl Node {
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

struct Drawing<'a> {
    fabric: &'a Fabric,
    nodes: Vec<Node>,
    tiers: Vec<Vec<usize>>,
    /// The host at each port.
    hosts: BTreeMap<PortRef, usize>,
    /// Room for the hosts' names.
    label_height: i64,
    width: i64,
    height: i64,
}

impl<'a> Drawing<'a> {
    fn new(fabric: &'a Fabric) -> Self {
        let map = &fabric.map;
        let tiers = layers(map);
        let mut nodes = vec![Node::default(); map.xbars.len()];
        for (tier, xbars) in tiers.iter().enumerate() {
            xbars.iter().for_each(|&xbar| nodes[xbar].tier = tier);
        }
        for cable in &map.cables {
            for (near, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
                let leads_down = nodes[far.xbar as usize].tier < nodes[near.xbar as usize].tier;
                let node = &mut nodes[near.xbar as usize];
                if leads_down { &mut node.lower } else { &mut node.upper }.push(near.port);
            }
        }
        let hosts = map.hosts.iter().enumerate();
        let hosts: BTreeMap<_, _> = hosts.filter_map(|(index, host)| Some((host.at?, index))).collect();
        hosts.keys().for_each(|at| nodes[at.xbar as usize].lower.push(at.port));
        for (node, label) in nodes.iter_mut().zip(&fabric.xbars) {
            node.upper.sort_unstable();
            node.lower.sort_unstable();
            let cells = node.upper.len().max(node.lower.len()) as i64 * CELL;
            node.width = cells.max(label.name.chars().count() as i64 * LETTER + CELL);
        }
        let longest = fabric.hosts.iter().map(|label| label.name.chars().count()).max().unwrap_or(0);
        let label_height = longest as i64 * LETTER + GAP;
        Self { fabric, nodes, tiers, hosts, label_height, width: 0, height: 0 }
    }

    /// Gives each box its place.
    fn place(&mut self) {
        let cables_inside = |cable: &&Cable| {
            let tier = |end: PortRef| self.nodes[end.xbar as usize].tier;
            tier(cable.a) == tier(cable.b)
        };
        let inside = self.fabric.map.cables.iter().filter(cables_inside).count();
        if 2 * inside <= self.fabric.map.cables.len() {
            self.place_in_rows();
        } else if let Some(coordinates) = self.coordinates() {
            self.place_on_grid(&coordinates);
        } else {
            self.place_on_circle();
        }
        let right = self.nodes.iter().map(|node| node.x + node.width).max().unwrap_or(0);
        let bottom = self.nodes.iter().map(|node| node.y + BOX_HEIGHT + self.label_height).max();
        self.width = right + GAP;
        self.height = bottom.unwrap_or(0) + GAP;
    }

    /// Each tier in a row, the one with hosts at the bottom.
    fn place_in_rows(&mut self) {
        let row_width =
            |nodes: &[Node], row: &[usize]| -> i64 { row.iter().map(|&xbar| nodes[xbar].width + GAP).sum() };
        let widest = self.tiers.iter().map(|row| row_width(&self.nodes, row)).max().unwrap_or(0);
        // Cables that run far sideways need height to be told apart.
        let row_height = BOX_HEIGHT + (widest / 8).clamp(90, 480);
        for (from_top, row) in self.tiers.iter().rev().enumerate() {
            let spare = (widest - row_width(&self.nodes, row)) / row.len().max(1) as i64;
            let mut x = GAP + spare / 2;
            for &xbar in row {
                self.nodes[xbar].x = x;
                self.nodes[xbar].y = GAP + from_top as i64 * row_height;
                x += self.nodes[xbar].width + GAP + spare;
            }
        }
    }

    /// The numbers that each xbar's name ends in, if all have two or three of them.
    fn coordinates(&self) -> Option<Vec<Vec<i64>>> {
        let numbers = |name: &str| -> Option<Vec<i64>> {
            let from = name.find(|c: char| c.is_ascii_digit())?;
            name[from..].split('-').map(|number| number.parse::<u16>().ok().map(i64::from)).collect()
        };
        let all: Option<Vec<_>> = self.fabric.xbars.iter().map(|label| numbers(&label.name)).collect();
        let dimensions = all.as_ref()?.first()?.len();
        all.filter(|all| (2..=3).contains(&dimensions) && all.iter().all(|one| one.len() == dimensions))
    }

    /// x to the right, y down; planes of the third coordinate side by side.
    fn place_on_grid(&mut self, coordinates: &[Vec<i64>]) {
        let widest = self.nodes.iter().map(|node| node.width).max().unwrap_or(0);
        let columns = coordinates.iter().map(|at| at[0] + 1).max().unwrap_or(1);
        let (column, row) = (widest + 2 * GAP, BOX_HEIGHT + self.label_height + 2 * GAP);
        for (node, at) in self.nodes.iter_mut().zip(coordinates) {
            let plane = at.get(2).map_or(0, |z| z * (columns * column + 3 * GAP));
            (node.x, node.y) = (2 * GAP + plane + at[0] * column, 2 * GAP + at[1] * row);
        }
    }

    fn place_on_circle(&mut self) {
        let widest = self.nodes.iter().map(|node| node.width).max().unwrap_or(0);
        let step = (widest + GAP).max(BOX_HEIGHT + self.label_height) as f64;
        let count = self.nodes.len() as f64;
        let radius = (step * count / std::f64::consts::TAU).max(step);
        for (i, node) in self.nodes.iter_mut().enumerate() {
            let (sin, cos) = (std::f64::consts::TAU * i as f64 / count).sin_cos();
            let centre = radius + GAP as f64;
            node.x = (centre + radius * sin) as i64 + (widest - node.width) / 2;
            node.y = (centre - radius * cos) as i64;
        }
    }

    fn document(&self) -> String {
        let loose = self.loose_hosts();
        let width = self.width.max(loose.chars().count() as i64 * LETTER + 2 * GAP);
        let height = self.height + if loose.is_empty() { 0 } else { GAP };
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
             <g fill=\"none\" stroke=\"#5b6770\" stroke-opacity=\"0.7\">\n"
        );
        for cable in &self.fabric.map.cables {
            text += &self.cable(cable);
        }
        text += "</g>\n";
        for (index, node) in self.nodes.iter().enumerate() {
            text += &self.node(index, node);
        }
        if !loose.is_empty() {
            let _ = writeln!(text, "<text x=\"{GAP}\" y=\"{}\">{}</text>", height - GAP, escaped(&loose));
        }
        text + "</svg>\n"
    }

    /// A line between tiers; within one, a curve, so that cables in a row do not hide each other.
    fn cable(&self, cable: &Cable) -> String {
        let node = |end: PortRef| &self.nodes[end.xbar as usize];
        let (x1, y1) = node(cable.a).anchor(cable.a.port);
        let (x2, y2) = node(cable.b).anchor(cable.b.port);
        let bend = if node(cable.a).tier == node(cable.b).tier {
            let (x, y) = (i64::midpoint(x1, x2), y1.min(y2) - GAP - (x2 - x1).abs() / 8);
            format!("Q {x} {y} ")
        } else {
            "L ".to_owned()
        };
        let end = |end: PortRef| format!("{}:{}", self.fabric.xbars[end.xbar as usize].name, end.port);
        let title = escaped(&format!("{} - {}", end(cable.a), end(cable.b)));
        format!("<path d=\"M {x1} {y1} {bend}{x2} {y2}\"><title>{title}</title></path>\n")
    }

    /// A box with its name, its cells, and its hosts below.
    fn node(&self, index: usize, node: &Node) -> String {
        let Node { x, y, width, .. } = *node;
        let (xbar, label) = (&self.fabric.map.xbars[index], &self.fabric.xbars[index]);
        let colour = COLOURS[node.tier % COLOURS.len()];
        let tag = xbar.tag.map_or_else(|| "plain".to_owned(), |tag| format!("tag {tag:#018x}"));
        let name = escaped(&label.name);
        let mut text = format!(
            "<g><title>{name}: {} ports, {tag}</title>\n\
             <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BOX_HEIGHT}\" rx=\"3\" fill=\"{colour}\" \
             stroke=\"#33414b\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-weight=\"bold\">{name}</text>\n",
            xbar.ports,
            x + width / 2,
            y + CELL_HEIGHT + NAME_HEIGHT - 5
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
                let at = PortRef { xbar: index as u32, port };
                if let Some(&host) = self.hosts.get(&at) {
                    text += &self.host(host, left + CELL / 2, top + CELL_HEIGHT);
                }
            }
        }
        text + "</g>\n"
    }

    /// A host's name, written downwards below its port.
    fn host(&self, host: usize, x: i64, y: i64) -> String {
        let (label, mac) = (&self.fabric.hosts[host], self.fabric.map.hosts[host].mac);
        let (end, begin) = (y + 8, y + 11);
        format!(
            "<path d=\"M {x} {y} V {end}\" stroke=\"#5b6770\"/><text transform=\"translate({} {begin}) \
             rotate(90)\">{}<title>{mac}</title></text>\n",
            x - 4,
            escaped(&label.name)
        )
    }

    /// A line about hosts that are cabled to no xbar.
    fn loose_hosts(&self) -> String {
        let hosts = self.fabric.map.hosts.iter().zip(&self.fabric.hosts);
        let loose = hosts.filter(|(host, _)| host.at.is_none());
        let names: Vec<_> = loose.map(|(_, label)| label.name.as_str()).collect();
        match names[..] {
            [] => String::new(),
            [a, b] if self.nodes.is_empty() => format!("{a} - {b}"),
            _ => format!("not cabled to an xbar: {}", names.join(", ")),
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
