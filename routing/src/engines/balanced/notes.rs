//! Settings that mean nothing here, said rather than ignored.

use crate::engines::settings::SubnetNode;
use crate::engines::{Engine, Settings};

/// What a user should know of settings without effect.
pub(super) fn without_effect(engine: Engine, settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |ignored: bool, why: &str| {
        if ignored {
            notes.push(why.to_owned());
        }
    };
    note(
        engine != Engine::Dor && !settings.port_order.is_empty(),
        "the order of ports has no effect: channels are balanced throughout the fabric; balance as OpenSM does \
         to use it",
    );
    note(settings.port_shifting, "shifting ports has no effect: channels are balanced throughout the fabric");
    note(
        settings.hop_weights.values().any(|&weight| weight == 0),
        "a hop weight of 0 counts as 1: frames could circle where steps are free",
    );
    note(
        settings.order_first.iter().any(|node| matches!(node, SubnetNode::Xbar(_))),
        "the routing order has no effect on xbars: routes to them are not balanced",
    );
    note(engine != Engine::Updn && settings.connect_roots, "connecting roots has no effect: it is for updn");
    note(
        !matches!(engine, Engine::Updn) && settings.roots.is_some(),
        "roots have no effect here: they are for updn and ftree",
    );
    notes
}
