//! Leaves whose hosts' frames are counted together, as in a tree those below the same xbars are.

use std::collections::BTreeMap;

use super::table_routes::TableRoutes;

/// Leaves that lead to the same xbars by the same ports.
///
/// Where all of them have the same entry for a destination, all their hosts' frames go to the same xbar.
#[derive(Debug)]
pub(super) struct AlikeLeaves {
    /// The xbars.
    pub(super) leaves: Vec<u32>,
    /// How many hosts they have together.
    pub(super) hosts: u32,
    /// The bits of these leaves in a set of leaves: for each word that has some, its place and the bits.
    pub(super) bits: Vec<(usize, u64)>,
}

impl AlikeLeaves {
    /// The groups of at least two such leaves. `hosts` says how many hosts each of `leaves` has.
    pub(super) fn groups(routes: &TableRoutes<'_>, leaves: &[u32], hosts: &[u32]) -> Vec<Self> {
        let mut places_by_heads: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
        for (place, &leaf) in leaves.iter().enumerate() {
            let heads = routes.steps_of(leaf).iter().map(|step| step.head).collect();
            places_by_heads.entry(heads).or_default().push(place);
        }
        let several = places_by_heads.into_values().filter(|places| places.len() > 1);
        several.map(|places| Self::new(&places, leaves, hosts)).collect()
    }

    fn new(places: &[usize], leaves: &[u32], hosts: &[u32]) -> Self {
        let words = places.chunk_by(|one, next| one / 64 == next / 64);
        let bits_of = |places: &[usize]| {
            (places[0] / 64, places.iter().fold(0, |bits, place| bits | 1 << (place % 64)))
        };
        Self {
            leaves: places.iter().map(|&place| leaves[place]).collect(),
            hosts: places.iter().map(|&place| hosts[place]).sum(),
            bits: words.map(bits_of).collect(),
        }
    }

    /// The port by which all these leaves lead on, if it is the same one.
    pub(super) fn common_port(&self, ports: &[u8]) -> Option<u8> {
        let port = ports[*self.leaves.first()? as usize];
        self.leaves.iter().all(|&leaf| ports[leaf as usize] == port).then_some(port)
    }
}
