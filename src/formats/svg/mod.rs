//! Drawings.
//!
//! Where xbars above the leaves connect these (a Clos, a tree), they stand above them, row by row (`rows`). Where xbars with hosts are cabled to each other (a torus, a dragonfly), they
//! stand on a grid or a circle (`direct`).

mod direct;
mod loads;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use loads::plot_loads;
use mapper_proto::map::{Cable, Fabric, PortRef};

use super::tiers::tiers;
use mapper_fabric::names::Names;
use mapper_fabric::wording::{first_of, plural};

/// Least distance between boxes, and from the border.
const GAP: i64 = 24;
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
    let tiers = tiers(&fabric.map);
    let mut tier = vec![0; fabric.map.xbars.len()];
    for (number, xbars) in tiers.iter().enumerate() {
        xbars.iter().for_each(|&xbar| tier[xbar] = number);
    }
    let is_level = |cable: &&Cable| tier[cable.a.xbar as usize] == tier[cable.b.xbar as usize];
    let level = fabric.map.cables.iter().filter(is_level).count();
    let names = Names::of(fabric);
    let picture = if 2 * level > fabric.map.cables.len() {
        direct::draw(fabric, &names)
    } else {
        rows::draw(fabric, &names, &tiers, &tier)
    };
    document(&picture, &loose_hosts(fabric, &names))
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
