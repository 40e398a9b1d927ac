//! Notes on values of settings that are taken otherwise than they were given.

use crate::engines::Settings;
use crate::engines::settings::SubnetNode;

/// What a user should know of such values.
pub(super) fn taken_otherwise(settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    if settings.hop_weights.values().any(|&weight| weight == 0) {
        let note = "a hop weight of 0 counts as 1: frames could circle where steps are free";
        notes.push(note.to_owned());
    }
    if settings.order_first.iter().any(|node| matches!(node, SubnetNode::Xbar(_))) {
        let note = "the routing order has no effect on xbars: routes to them are not balanced";
        notes.push(note.to_owned());
    }
    notes
}
