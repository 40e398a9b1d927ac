//! Drawings.
//!
//! Everything stands where the layout puts it, as on the page of `mapper view`. A small fabric of one part is drawn with each
//! port: tiers and layers in `rows`, grids and circles in `direct`. All others are drawn as that page shows them, with parallel
//! cables as one line and hosts folded into their xbar (`folded`).

mod direct;
mod folded;
mod loads;
mod rows;
#[cfg(test)]
mod tests;

pub use loads::plot_loads;
use mapper_proto::map::{Cable, Fabric, PortRef};

use crate::layout::{GAP, Layout, Shape, Sizes};
use mapper_fabric::names::Names;
use mapper_fabric::wording::{first_of, plural};

/// Most hosts, xbars, and cables between them, of a fabric that is drawn with each port.
const SMALL: (usize, usize, usize) = (256, 80, 320);
/// Width of a letter, on average.
const LETTER: i64 = 7;
/// Colours of the rows of boxes, from the hosts up.
const COLOURS: [&str; 5] = ["#dceefb", "#fdebd0", "#e3f4e1", "#f3e3f7", "#f7e1e1"];

/// A drawing of xbars, their hosts and cables, without a frame.
struct Picture {
    width: i64,
    height: i64,
    /// Paths of cables; they are drawn first.
    cables: String,
    /// Everything else of the drawing: boxes, names and numbers.
    boxes: String,
}

/// The fabric as an SVG document.
pub(super) fn write(fabric: &Fabric) -> String {
    let names = Names::of(fabric);
    let picture = small(fabric, &names).unwrap_or_else(|| folded::draw(fabric, &names));
    document(&picture, &loose_hosts(fabric, &names))
}

/// A small fabric with each of its ports.
fn small(fabric: &Fabric, names: &Names) -> Option<Picture> {
    let map = &fabric.map;
    if map.hosts.len() > SMALL.0 || map.xbars.len() > SMALL.1 || map.cables.len() > SMALL.2 {
        return None;
    }
    // What a part is like does not depend on how large its boxes are.
    let [shape] = &Layout::of(fabric, names, &Sizes::folded(fabric)).shapes[..] else { return None };
    match shape {
        Shape::Grid(_) | Shape::Circle(_) => Some(direct::draw(fabric, names)),
        Shape::Rows { .. } | Shape::Single => Some(rows::draw(fabric, names)),
        Shape::Groups => None,
    }
}

/// A picture in its frame, with a line of text below.
fn document(picture: &Picture, note: &str) -> String {
    let width = picture.width.max(letters(note) + 2 * GAP);
    let height = picture.height + if note.is_empty() { 0 } else { 2 * GAP };
    let note = match note {
        "" => String::new(),
        note => format!("<text x=\"{GAP}\" y=\"{}\">{}</text>\n", height - GAP, escaped(note)),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <g fill=\"none\" stroke=\"#5b6770\" stroke-opacity=\"0.7\">\n{}</g>\n{}{note}</svg>\n",
        picture.cables, picture.boxes
    )
}

/// How wide a text is.
fn letters(text: &str) -> i64 {
    text.chars().count() as i64 * LETTER
}

/// A line about hosts that are cabled to no xbar.
fn loose_hosts(fabric: &Fabric, names: &Names) -> String {
    if let Some([a, b]) = fabric.face_to_face() {
        return format!("{} - {}", names.hosts[a], names.hosts[b]);
    }
    let isolated: Vec<_> = fabric.isolated().into_iter().map(|host| names.hosts[host].as_str()).collect();
    match isolated.len() {
        0 => String::new(),
        count => format!("{} without a cable: {}", plural(count, "host"), first_of(&isolated, count)),
    }
}

/// The path of a cable, with its ends as its title.
fn cable_path(names: &Names, cable: &Cable, path: &str) -> String {
    let end = |end: PortRef| format!("{}:{}", names.xbars[end.xbar as usize], end.port);
    let title = escaped(&format!("{} - {}", end(cable.a), end(cable.b)));
    format!("<path d=\"{path}\"><title>{title}</title></path>\n")
}

/// What an xbar's title says.
fn xbar_title(fabric: &Fabric, names: &Names, index: usize) -> String {
    let (xbar, id) = (&fabric.map.xbars[index], &fabric.xbars[index].name);
    let tag = xbar.tag.map_or_else(|| "plain".to_owned(), |tag| format!("tag {tag:#018x}"));
    let name = &names.xbars[index];
    let name = if name == id { name.clone() } else { format!("{name} ({id})") };
    format!("<title>{}: {} ports, {tag}</title>", escaped(&name), xbar.ports)
}

fn escaped(text: &str) -> String {
    // XML knows no control characters, not even as entities.
    let text = text.replace(char::is_control, "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
