//! Which shapes a fabric may have, those with the fewest links missing first.

use std::collections::BTreeSet;

use super::super::grid::Dimension;
use super::links::Links;
use super::walks;

/// Most xbars of a fabric for which every possible shape may be tried. Larger ones are tried with the sizes
/// that straight walks show.
const MAX_XBARS_FOR_ALL: usize = 512;

/// How many of the sizes that are observed in a large fabric are tried before all others.
const WELL_OBSERVED: usize = 4;

/// How many links may be missing for each that is there, as a fraction. If more were allowed, anything sparse
/// would be a torus.
const MISSING: (u64, u64) = (1, 2);

/// A shape, and how many links it has when whole.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShapeCandidate {
    /// Links of the whole shape.
    pub links: u64,
    /// Its dimensions, in falling order.
    pub dimensions: Vec<Dimension>,
}

/// The shapes that a fabric may have, by how many links are missing; in a large fabric, those first whose
/// sizes show best.
pub(super) fn candidates(links: &Links) -> Vec<ShapeCandidate> {
    if links.xbars() <= MAX_XBARS_FOR_ALL {
        return of_sizes(links, all_sizes(links));
    }
    let mut observed = walks::observed(links);
    let all = observed.iter().map(|&(_, dimension)| dimension).collect();
    observed.truncate(WELL_OBSERVED);
    let mut first = of_sizes(links, observed.into_iter().map(|(_, dimension)| dimension).collect());
    let then = of_sizes(links, all).into_iter().filter(|candidate| !first.contains(candidate));
    let then: Vec<_> = then.collect();
    first.extend(then);
    first
}

/// The shapes of these sizes that a fabric may have, by how many links are missing.
fn of_sizes(links: &Links, sizes: BTreeSet<Dimension>) -> Vec<ShapeCandidate> {
    let present = links.count() as u64;
    let most = present + present * MISSING.0 / MISSING.1 + 2;
    let sizes: Vec<Dimension> = sizes.into_iter().collect();
    let limits = Limits {
        xbars: links.xbars() as u64,
        links: present..=most,
        degree: links.degree(),
        has_triangle: links.has_triangle(),
    };
    let mut all = Vec::new();
    for (i, &a) in sizes.iter().enumerate() {
        limits.add(&[a], &mut all);
        for (j, &b) in sizes[..=i].iter().enumerate() {
            if limits.is_too_large(&[a, b]) {
                break;
            }
            limits.add(&[a, b], &mut all);
            for &c in &sizes[..=j] {
                if limits.is_too_large(&[a, b, c]) {
                    break;
                }
                limits.add(&[a, b, c], &mut all);
            }
        }
    }
    all.sort_unstable();
    all
}

/// How many links a shape has.
pub(super) fn link_count(dimensions: &[Dimension]) -> u64 {
    let places = place_count(dimensions);
    dimensions.iter().map(|d| places - if d.is_ring { 0 } else { places / u64::from(d.size) }).sum()
}

/// How many places a shape has.
pub(super) fn place_count(dimensions: &[Dimension]) -> u64 {
    dimensions.iter().map(|d| u64::from(d.size)).product()
}

/// The limits that a shape must keep to.
struct Limits {
    xbars: u64,
    links: std::ops::RangeInclusive<u64>,
    degree: usize,
    has_triangle: bool,
}

impl Limits {
    fn add(&self, dimensions: &[Dimension], all: &mut Vec<ShapeCandidate>) {
        let degree = dimensions.iter().map(|d| if d.size == 2 { 1 } else { 2 }).sum();
        let has_triangle = dimensions.contains(&Dimension { size: 3, is_ring: true });
        let links = link_count(dimensions);
        if place_count(dimensions) >= self.xbars
            && self.links.contains(&links)
            && self.degree <= degree
            && self.has_triangle <= has_triangle
        {
            all.push(ShapeCandidate { links, dimensions: dimensions.to_vec() });
        }
    }

    /// Whether the shape has too many links, so that all shapes with larger sizes do, too.
    fn is_too_large(&self, dimensions: &[Dimension]) -> bool {
        let smallest: Vec<_> = dimensions.iter().map(|d| Dimension { is_ring: false, ..*d }).collect();
        link_count(&smallest) > *self.links.end()
    }
}

/// Every dimension that a fabric of so many xbars can have, by rising size.
fn all_sizes(links: &Links) -> BTreeSet<Dimension> {
    let most = u8::try_from(2 * links.xbars()).unwrap_or(u8::MAX);
    let lines = (2..=most).map(|size| Dimension { size, is_ring: false });
    lines.chain((3..=most).map(|size| Dimension { size, is_ring: true })).collect()
}
