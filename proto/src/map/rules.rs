//! What all hosts must do alike, whatever each is set to.

use crate::Mac;

/// What the global mapper is set to and all hosts of its map obey.
///
/// Each host orients its routes by itself, and only routes of one orientation can be safe together.
/// So the setting travels with the map, and no host's own decides.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Route by up*/down* whatever the fabric looks like (`--non-clos`).
    pub non_clos: bool,
    /// Hosts that are set otherwise, by rising address; not the global mapper.
    pub differ: Vec<Mac>,
}

impl Rules {
    /// What `host` is set to itself.
    pub fn own_setting(&self, host: Mac) -> bool {
        self.non_clos ^ self.differ.binary_search(&host).is_ok()
    }
}
