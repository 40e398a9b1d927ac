//! Why a fabric is no torus, by the first cable that does not fit.

use std::fmt;

use mapper_proto::map::PortRef;

use super::super::grid::{Dimension, GridError, shape};
use super::super::statement::{BadStatement, TorusStatement};
use super::embedding::{Outcome, embed, entries};
use super::frame::Placed;
use super::links::Links;
use super::shapes::link_count;
use super::space::Space;
use super::{Failure, MOST_NEIGHBOURS, SMALL_BUDGET, Shapes, search};
use crate::Topology;
use mapper_fabric::names::Names;

/// Most links that are left out one by one to see whether the rest is a torus.
const SUSPECTS: usize = 24;

/// Fabrics with more links than this have fewer suspects, as each takes a search.
const MANY_LINKS: usize = 1_500;

/// Why a fabric is no torus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTorus {
    /// The fabric has no xbar.
    NoXbars,
    /// The fabric is a torus but for one cable.
    Chord {
        /// The ports that the cable joins.
        ends: [PortRef; 2],
        /// What the fabric is without it.
        dimensions: Vec<Dimension>,
    },
    /// An xbar has more neighbours than three dimensions allow.
    Neighbours {
        /// How many xbars it is cabled to.
        neighbours: usize,
        /// The ports of the first cable to a neighbour too many.
        ends: [PortRef; 2],
    },
    /// No shape takes all xbars.
    Misfit {
        /// The most xbars that could be put down.
        placed: usize,
        /// How many there are.
        xbars: usize,
        /// The ports of a cable that had no place then.
        ends: [PortRef; 2],
        /// Whether the shape is stated.
        is_stated: bool,
    },
    /// Its cables fit places of a mesh, but far too few of the mesh's are there.
    Sparse {
        /// A mesh that takes the fabric.
        dimensions: Vec<Dimension>,
        /// How many of its links are missing.
        missing: u64,
        /// How many links it has.
        links: u64,
    },
    /// There are fewer places than xbars.
    Places {
        /// How many places the stated sizes make.
        places: u64,
        /// How many xbars there are.
        xbars: usize,
    },
    /// No shape comes near the fabric.
    NoShape {
        /// How many xbars there are.
        xbars: usize,
        /// Whether the shape is stated.
        is_stated: bool,
    },
    /// The ports of a cable are stated to lead in directions that do not agree.
    Directions {
        /// The ports that the cable joins.
        ends: [PortRef; 2],
    },
    /// The stated origin does not exist.
    NoOrigin {
        /// Its number.
        origin: u32,
        /// How many xbars there are.
        xbars: usize,
    },
    /// The stated origin is in the middle of a line.
    OriginInLine {
        /// The xbar.
        origin: u32,
        /// Its coordinate.
        at: u8,
        /// The dimension of that line.
        dimension: usize,
    },
    /// A statement is impossible.
    Statement(BadStatement),
    /// The coordinates do not fit after all.
    Grid(GridError),
}

impl NoTorus {
    /// Why, with the names that the fabric has.
    pub fn describe(&self, names: &Names) -> String {
        match self {
            Self::NoXbars => "there is no xbar, so there is no torus".to_owned(),
            Self::Chord { ends, dimensions } => format!(
                "the cable {} does not fit: without it the fabric is a torus or mesh of {}",
                names.cable(*ends),
                shape(dimensions)
            ),
            Self::Neighbours { neighbours, ends: [from, to] } => format!(
                "{} has {neighbours} neighbours, and in three dimensions there are six; the cable from its port \
                 {} to {} is the first too many",
                names.xbar(from.xbar),
                from.port,
                names.port(*to)
            ),
            Self::Misfit { placed, xbars, ends, is_stated } => format!(
                "no {} takes more than {placed} of {xbars} xbars; there the cable {} does not fit",
                shapes(*is_stated),
                names.cable(*ends)
            ),
            Self::Sparse { dimensions, missing, links } => format!(
                "its cables fit a mesh of {}, but {missing} of its {links} links would be missing: too many to \
                 call it one; state its sizes if it is one",
                shape(dimensions)
            ),
            Self::Places { places, xbars } => format!(
                "the sizes that are stated make {places} places, and there are {xbars} xbars; each needs one"
            ),
            Self::NoShape { xbars, is_stated } => {
                format!(
                    "no {} takes these {xbars} xbars: too many links would be missing",
                    shapes(*is_stated)
                )
            }
            Self::Directions { ends } => format!(
                "the cable {} does not fit the ports' directions that are stated: no direction is the opposite \
                 of the other end's",
                names.cable(*ends)
            ),
            Self::NoOrigin { origin, xbars } => format!(
                "xbar {origin} is stated to be the origin, but there are {xbars} xbars, counted from 0"
            ),
            Self::OriginInLine { origin, at, dimension } => format!(
                "{} is stated to be the origin, but stands at {at} in dimension {}, a line; state the xbar at \
                 its end",
                names.xbar(*origin),
                ["X", "Y", "Z"][*dimension]
            ),
            Self::Statement(bad) => bad.to_string(),
            Self::Grid(error) => error.describe(names),
        }
    }

    /// The key of the statement that the fabric contradicts, if there is one, so that whoever wrote it finds
    /// it.
    pub(in super::super) fn key(&self) -> Option<&'static str> {
        match self {
            Self::Misfit { is_stated: true, .. }
            | Self::NoShape { is_stated: true, .. }
            | Self::Places { .. } => Some("sizes"),
            Self::Directions { .. } => Some("ports"),
            Self::NoOrigin { .. } | Self::OriginInLine { .. } => Some("origin"),
            // An impossible statement says itself where it is written.
            _ => None,
        }
    }
}

impl fmt::Display for NoTorus {
    /// Writes the reason with numbers instead of names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&Names::default()))
    }
}

impl std::error::Error for NoTorus {}

impl From<BadStatement> for NoTorus {
    fn from(bad: BadStatement) -> Self {
        Self::Statement(bad)
    }
}

impl From<GridError> for NoTorus {
    fn from(error: GridError) -> Self {
        Self::Grid(error)
    }
}

fn shapes(is_stated: bool) -> &'static str {
    if is_stated { "torus or mesh as stated" } else { "torus or mesh of one to three dimensions" }
}

/// The links of a topology, in the directions that are stated.
pub(super) fn restricted_links(topology: &Topology, statement: &TorusStatement) -> Result<Links, NoTorus> {
    let mut links = Links::of(topology);
    if !statement.has_ports() {
        return Ok(links);
    }
    for channel in 0..topology.channel_count() as u32 {
        let ends = [topology.tail(channel), topology.head(channel)];
        let directions = statement.directions_of(ends[0]) & opposite(statement.directions_of(ends[1]));
        if ends[0].xbar == ends[1].xbar {
            continue;
        }
        if directions == 0 {
            return Err(NoTorus::Directions { ends });
        }
        links.restrict(ends[0].xbar, ends[1].xbar, directions);
    }
    Ok(links)
}

/// The opposite directions.
fn opposite(directions: u8) -> u8 {
    (directions & 0b01_0101) << 1 | (directions & 0b10_1010) >> 1
}

/// Checks that a stated origin is at the end of each line.
pub(super) fn check_origin(
    (dimensions, coordinates): &Placed,
    statement: &TorusStatement,
) -> Result<(), NoTorus> {
    let Some(origin) = statement.origin else { return Ok(()) };
    let at = coordinates[origin as usize];
    let inside = (0..dimensions.len()).find(|&i| at[i] != 0);
    inside.map_or(Ok(()), |dimension| Err(NoTorus::OriginInLine { origin, at: at[dimension], dimension }))
}

/// Why no shape took the fabric.
pub(super) fn of(
    topology: &Topology,
    links: &Links,
    statement: &TorusStatement,
    failure: &Failure,
) -> NoTorus {
    if !links.are_restricted()
        && let Some(chord) = chord(topology, links, statement)
    {
        return chord;
    }
    let crowded = (0..links.xbars() as u32).find(|&xbar| links.of_xbar(xbar).len() > MOST_NEIGHBOURS);
    if let Some(ends) = crowded.and_then(|xbar| seventh(topology, xbar)) {
        return NoTorus::Neighbours { neighbours: links.of_xbar(ends[0].xbar).len(), ends };
    }
    let (xbars, is_stated) = (links.xbars(), statement.sizes.is_some());
    if let Some(sizes) = &statement.sizes {
        let places = sizes.iter().map(|&size| u64::from(size)).product::<u64>();
        if places < xbars as u64 {
            return NoTorus::Places { places, xbars };
        }
    }
    let (placed, link) = match failure.link {
        Some(link) => (failure.deepest, Some(link)),
        None if is_stated => (0, None),
        None => match in_any_mesh(links) {
            Outcome::Found { dimensions, .. } => {
                let dimensions: Vec<_> = dimensions.into_iter().filter(|d| d.size > 1).collect();
                let all = link_count(&dimensions);
                let missing = all.saturating_sub(links.count() as u64);
                return NoTorus::Sparse { dimensions, missing, links: all };
            }
            Outcome::Failed { deepest, link } => (deepest, link),
        },
    };
    match link.and_then(|link| cable(topology, link)) {
        Some(ends) => NoTorus::Misfit { placed, xbars, ends, is_stated },
        None => NoTorus::NoShape { xbars, is_stated },
    }
}

/// The longest line of the mesh in which a fabric is tried if no shape comes near. It has room for most
/// sparse fabrics.
const ANY_MESH: usize = 16;

/// Tries to put a fabric into a mesh with room to spare, however many links are missing then. What has no
/// place there fits no torus either, or only one that is even sparser.
fn in_any_mesh(links: &Links) -> Outcome {
    let size = links.xbars().clamp(2, ANY_MESH) as u8;
    let mesh = [Dimension { size, is_ring: false }; 3];
    let (for_each_xbar, more) = SMALL_BUDGET.for_all_shapes;
    let mut steps = for_each_xbar * links.xbars() as u64 + more;
    embed(links, &entries(links), Space::new(&mesh), &mut steps)
}

/// The ports of the first cable from one xbar to another.
fn cable(topology: &Topology, (from, to): (u32, u32)) -> Option<[PortRef; 2]> {
    let channel = topology.channels_of(from).find(|&channel| topology.head(channel).xbar == to)?;
    Some([topology.tail(channel), topology.head(channel)])
}

/// The first cable to a seventh neighbour.
fn seventh(topology: &Topology, xbar: u32) -> Option<[PortRef; 2]> {
    let mut seen = vec![xbar];
    for channel in topology.channels_of(xbar) {
        let head = topology.head(channel);
        if !seen.contains(&head.xbar) {
            seen.push(head.xbar);
        }
        if seen.len() > 1 + MOST_NEIGHBOURS {
            return Some([topology.tail(channel), head]);
        }
    }
    None
}

/// The cable without which the fabric is a torus, if there is one. It is looked for among those whose ends
/// have the most neighbours and that lie in the fewest squares.
fn chord(topology: &Topology, links: &Links, statement: &TorusStatement) -> Option<NoTorus> {
    if (0..links.xbars() as u32).filter(|&xbar| links.of_xbar(xbar).len() > MOST_NEIGHBOURS).count() > 2 {
        return None;
    }
    let pairs = (0..links.xbars() as u32).flat_map(|a| links.of_xbar(a).iter().map(move |&b| (a, b)));
    let mut suspects: Vec<_> =
        pairs.filter(|(a, b)| a < b).map(|link| (suspicion(links, link), link)).collect();
    suspects.sort_unstable();
    let most = if links.count() > MANY_LINKS { SUSPECTS / 6 } else { SUSPECTS };
    suspects.into_iter().take(most).find_map(|(_, (a, b))| {
        let (dimensions, _) =
            search(topology, &links.without(a, b), statement, &Shapes::new(), SMALL_BUDGET, None).ok()?;
        Some(NoTorus::Chord { ends: cable(topology, (a, b))?, dimensions })
    })
}

/// A key that is lower for links that are more likely to be one too many.
fn suspicion(links: &Links, (a, b): (u32, u32)) -> (std::cmp::Reverse<usize>, usize) {
    let degree = links.of_xbar(a).len().min(links.of_xbar(b).len());
    let others = links.of_xbar(a).iter().filter(|&&near| near != b);
    let squares = others.map(|&near| links.in_common(near, b).saturating_sub(1)).sum();
    (std::cmp::Reverse(degree), squares)
}
