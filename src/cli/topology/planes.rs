//! Draws a torus or mesh plane by plane.

use std::collections::BTreeMap;
use std::fmt::Write;

use mapper_proto::map::Fabric;
use serde_json::{Value, json};

use super::summary::WIDTH;
use mapper_fabric::names::Names;
use mapper_fabric::wording::plural;
use mapper_routing::Topology;
use mapper_routing::engines::torus::{Grid, Sense, TorusStatement, recognise};

/// The names of dimensions.
const NAMES: [&str; 3] = ["x", "y", "z"];

/// The sign for an xbar that is missing.
const HOLE: &str = "*";

/// The legend of the drawing's signs.
const SIGNS: &str =
    "--- | cable   x cable missing   -x- some of several missing   ~ on to the other edge   * xbar missing";

/// A fabric that was recognised as a torus or mesh.
pub(super) struct Planes<'a> {
    fabric: &'a Fabric,
    names: Names,
    grid: Grid,
    /// For each pair of neighbours that lack cables, how many are present and how many are expected. The key
    /// is the xbar with the lower coordinate, and the dimension.
    short: BTreeMap<(u32, usize), (usize, usize)>,
}

impl<'a> Planes<'a> {
    /// The fabric as a torus or mesh, if it is one.
    pub(super) fn of(fabric: &'a Fabric) -> Option<Self> {
        let topology = Topology::from_fabric(fabric).ok()?;
        let grid = recognise(&topology, &TorusStatement::default()).ok()?;
        let missing = grid.missing_cables();
        let short =
            missing.iter().map(|cable| ((cable.xbars[0], cable.dimension), (cable.present, cable.expected)));
        let planes = Self { fabric, names: Names::of(fabric), short: short.collect(), grid };
        (!planes.grid.dimensions().is_empty()).then_some(planes)
    }

    /// The part of `mapper.topology/1` about the torus or mesh.
    pub(super) fn json(&self) -> Value {
        let grid = &self.grid;
        let count = grid.dimensions().len();
        let place = |at: [u8; 3]| json!(at[..count]);
        let cables = grid.missing_cables();
        let cables = cables.iter().map(|cable| {
            let [a, b] = cable.xbars.map(|xbar| self.id(xbar));
            json!({
                "a": a,
                "b": b,
                "dimension": NAMES[cable.dimension],
                "present": cable.present,
                "expected": cable.expected,
            })
        });
        let coordinates = (0..self.fabric.xbars.len() as u32)
            .map(|xbar| json!({ "id": self.id(xbar), "at": place(grid.coordinates(xbar)) }));
        json!({
            "sizes": grid.dimensions().iter().map(|d| d.size).collect::<Vec<_>>(),
            "rings": grid.dimensions().iter().map(|d| d.is_ring).collect::<Vec<_>>(),
            "missing_cables": cables.collect::<Vec<_>>(),
            "missing_xbars": grid.missing_xbars().into_iter().map(place).collect::<Vec<_>>(),
            "coordinates": coordinates.collect::<Vec<_>>(),
        })
    }

    /// All planes, as text.
    pub(super) fn text(&self) -> String {
        let mut text = self.headline();
        let layout = self.layout();
        if layout.by_number {
            text += "xbars are drawn as their numbers, counted from 0\n";
        }
        let _ = writeln!(text, "{SIGNS}");
        let last = self.grid.size(2) - 1;
        for z in 0..=last {
            for first in (0..self.grid.size(0)).step_by(layout.columns) {
                let end = self.grid.size(0).min(first.saturating_add(layout.columns as u8));
                text.push('\n');
                text += &self.plane_title(z, first, end);
                text += &self.plane(z, first..end, &layout);
            }
            text += &self.steps_up(z);
        }
        text
    }

    /// The id by which programs match the xbar.
    fn id(&self, xbar: u32) -> &str {
        &self.fabric.xbars[xbar as usize].name
    }

    /// The name by which people know the xbar.
    fn name(&self, xbar: u32) -> &str {
        &self.names.xbars[xbar as usize]
    }

    fn headline(&self) -> String {
        let dimensions = self.grid.dimensions();
        let all = |is_ring| dimensions.iter().all(|dimension| dimension.is_ring == is_ring);
        let kind = match (dimensions.len(), all(true), all(false)) {
            (1, true, _) => "ring",
            (1, ..) => "line",
            (_, true, _) => "torus",
            (_, _, true) => "mesh",
            _ => "torus that is open in some dimensions",
        };
        let words = dimensions.iter().zip(NAMES).map(|(dimension, name)| {
            format!("{name} {} ({})", dimension.size, if dimension.is_ring { "ring" } else { "line" })
        });
        let sizes: Vec<_> = words.collect();
        let missing = self.short.values().map(|(present, expected)| expected - present).sum::<usize>();
        let lost = match (missing, self.grid.missing_xbars().len()) {
            (0, 0) => "whole".to_owned(),
            (cables, xbars) => {
                format!("{} and {} missing", plural(cables, "cable"), plural(xbars, "xbar"))
            }
        };
        format!("\n{kind} of {}: {lost}\n", sizes.join(", "))
    }

    /// The layout by which planes are no wider than [`WIDTH`].
    fn layout(&self) -> Layout {
        let columns = usize::from(self.grid.size(0));
        let names = self.names.xbars.iter().map(|name| name.chars().count()).max().unwrap_or(1);
        let numbers = (self.fabric.xbars.len() - 1).to_string().len();
        let width = |cell: usize| EDGE + columns * (cell + GAP);
        let by_number = width(names) > WIDTH && numbers < names;
        let cell = if by_number { numbers } else { names };
        Layout { cell, by_number, columns: ((WIDTH - EDGE) / (cell + GAP)).clamp(1, columns) }
    }

    fn plane_title(&self, z: u8, first: u8, end: u8) -> String {
        let mut parts = Vec::new();
        if self.grid.dimensions().len() > 2 {
            parts.push(format!("z={z}"));
        }
        if end - first < self.grid.size(0) {
            parts.push(format!("x={first} to {}", end - 1));
        }
        if parts.is_empty() { String::new() } else { format!("plane {}\n", parts.join(", ")) }
    }

    /// Draws these columns of a plane.
    fn plane(&self, z: u8, columns: std::ops::Range<u8>, layout: &Layout) -> String {
        let rows = self.grid.size(1);
        let has_y = self.grid.dimensions().len() > 1;
        let mut text = String::new();
        let mut line = |label: String, cells: String| {
            let line = format!("{label:<LABEL$}{cells}");
            text += line.trim_end();
            text.push('\n');
        };
        let heads = columns.clone().map(|x| centred(&format!("x={x}"), layout.cell) + "   ");
        line(String::new(), "  ".to_owned() + &heads.collect::<String>());
        let wraps = self.grid.dimensions().get(1).is_some_and(|dimension| dimension.is_ring);
        if wraps {
            line(String::new(), self.steps_down([columns.start, rows - 1, z], columns.end, "~", layout));
        }
        for y in 0..rows {
            let label = if has_y { format!("y={y}") } else { String::new() };
            line(label, self.row([columns.start, y, z], columns.end, layout));
            if y + 1 < rows || wraps {
                let sign = if y + 1 < rows { "|" } else { "~" };
                line(String::new(), self.steps_down([columns.start, y, z], columns.end, sign, layout));
            }
        }
        text
    }

    /// Draws a row of xbars and the cables between them.
    fn row(&self, [first, y, z]: [u8; 3], end: u8, layout: &Layout) -> String {
        let edge = |x: u8| match self.step([x, y, z], 0) {
            Step::None => " ",
            Step::Missing => "x",
            Step::Whole | Step::Short => "~",
        };
        let size = self.grid.size(0);
        let is_ring = self.grid.dimensions()[0].is_ring;
        let mut text = match first {
            0 if is_ring => edge(size - 1).to_owned(),
            0 => " ".to_owned(),
            _ => "-".to_owned(),
        };
        text.push(' ');
        for x in first..end {
            let name = self.grid.xbar_at([x, y, z]).map_or(HOLE.to_owned(), |xbar| match layout.by_number {
                true => xbar.to_string(),
                false => self.name(xbar).to_owned(),
            });
            text += &centred(&name, layout.cell);
            text += &match (x + 1 == size, self.step([x, y, z], 0)) {
                (true, _) if is_ring => format!(" {}", edge(x)),
                (true, _) | (_, Step::None) => "   ".to_owned(),
                (_, Step::Missing) => " x ".to_owned(),
                (_, Step::Short) => "-x-".to_owned(),
                (_, Step::Whole) => "---".to_owned(),
            };
        }
        text
    }

    /// Draws the cables from a row to the next.
    fn steps_down(&self, [first, y, z]: [u8; 3], end: u8, whole: &str, layout: &Layout) -> String {
        let sign = |x: u8| match self.step([x, y, z], 1) {
            Step::None => " ".to_owned(),
            Step::Missing => "x".to_owned(),
            Step::Short => format!("{whole}x"),
            Step::Whole => whole.to_owned(),
        };
        let signs = (first..end).map(|x| centred(&sign(x), layout.cell) + "   ");
        "  ".to_owned() + &signs.collect::<String>()
    }

    /// Describes the cables from a plane to the next.
    fn steps_up(&self, z: u8) -> String {
        let Some(next) = self.grid.step([0, 0, z], 2, Sense::Plus) else { return String::new() };
        let places = self.grid.places().filter(|place| place[2] == z);
        let steps: Vec<_> = places.map(|place| (place, self.step(place, 2))).collect();
        let lost = steps.iter().filter(|(_, step)| matches!(step, Step::Missing | Step::Short));
        let lost: Vec<_> = lost
            .filter_map(|&(place, step)| {
                let to = self.grid.xbar_at(self.grid.step(place, 2, Sense::Plus)?)?;
                let sign = if step == Step::Missing { "x" } else { "-x-" };
                Some(format!("{} {sign} {}", self.name(self.grid.xbar_at(place)?), self.name(to)))
            })
            .collect();
        let whole = steps.iter().filter(|(_, step)| *step == Step::Whole).count();
        let mut text = format!("z={z} to z={}: {whole} whole", next[2]);
        if !lost.is_empty() {
            let _ = write!(text, ", missing {}", lost.join(", "));
        }
        text + "\n"
    }

    /// The cables from a place to the next place in this dimension.
    fn step(&self, place: [u8; 3], dimension: usize) -> Step {
        let to = self.grid.step(place, dimension, Sense::Plus).and_then(|next| self.grid.xbar_at(next));
        let (Some(from), Some(_)) = (self.grid.xbar_at(place), to) else { return Step::None };
        match self.short.get(&(from, dimension)) {
            None => Step::Whole,
            Some((0, _)) => Step::Missing,
            Some(_) => Step::Short,
        }
    }
}

/// The width of the rows' labels.
const LABEL: usize = 7;

/// The width of a row without its cells.
const EDGE: usize = LABEL + 4;

/// The width between cells.
const GAP: usize = 3;

/// How planes are drawn.
struct Layout {
    /// The width of an xbar's cell.
    cell: usize,
    /// Whether xbars are drawn as numbers, as their names are too long.
    by_number: bool,
    /// How many columns stand side by side.
    columns: usize,
}

/// The cables between two neighbouring places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// There are no cables to expect, as there is no xbar in one of the places.
    None,
    /// There is no cable.
    Missing,
    /// There are fewer cables than between most neighbours.
    Short,
    /// There are as many cables as between most neighbours.
    Whole,
}

fn centred(text: &str, width: usize) -> String {
    format!("{text:^width$}")
}
