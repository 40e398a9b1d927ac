//! Puts classes of routes into the fewest layers.

use std::collections::BTreeMap;

use super::dependencies::{ClassSet, TorusDependencies};
use super::lattice::Lattice;
use super::tree::CLASSES;

/// The layer of each class, and how many layers there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClassLayers {
    pub(super) count: u8,
    pub(super) of: [u8; CLASSES],
}

/// Puts classes of routes into the fewest layers of which none has a circle. None if a class has one by
/// itself, or more layers than `most` were needed.
///
/// Routes that cross the same datelines cannot wait for each other round a ring: those that do not cross a
/// ring's dateline never pass it, and those that do never pass the place opposite to it. So at most one layer
/// is needed for each set of datelines, as torus-2QoS assigns service levels. Lines need none of these, and
/// short rings may share them.
pub(super) fn by_class(lattice: &Lattice, dependencies: &TorusDependencies, most: u8) -> Option<ClassLayers> {
    let all = dependencies.classes();
    let classes: Vec<usize> = (0..CLASSES).filter(|class| all >> class & 1 == 1).collect();
    let mut known = BTreeMap::new();
    let mut is_free = |set: ClassSet| -> bool {
        *known.entry(set).or_insert_with(|| {
            !dependencies.closes_a_ring(lattice, set) && dependencies.circle(lattice, set).is_none()
        })
    };
    if is_free(all) {
        return Some(ClassLayers { count: 1, of: [0; CLASSES] });
    }
    let most = usize::from(most).min(classes.len());
    (2..=most).find_map(|count| {
        let mut sets = Vec::new();
        assign(&classes, count, &mut sets, &mut is_free).then(|| {
            let mut of = [0; CLASSES];
            for (layer, set) in (0..).zip(&sets) {
                for (class, of) in of.iter_mut().enumerate() {
                    if set >> class & 1 == 1 {
                        *of = layer;
                    }
                }
            }
            ClassLayers { count: sets.len() as u8, of }
        })
    })
}

/// Puts the classes into sets without circles, at most `count`, by trying.
fn assign(
    classes: &[usize],
    count: usize,
    sets: &mut Vec<ClassSet>,
    is_free: &mut impl FnMut(ClassSet) -> bool,
) -> bool {
    let Some((&class, rest)) = classes.split_first() else { return true };
    let one = 1 << class;
    for layer in 0..sets.len() {
        if is_free(sets[layer] | one) {
            sets[layer] |= one;
            if assign(rest, count, sets, is_free) {
                return true;
            }
            sets[layer] &= !one;
        }
    }
    if sets.len() < count && is_free(one) {
        sets.push(one);
        if assign(rest, count, sets, is_free) {
            return true;
        }
        sets.pop();
    }
    false
}
