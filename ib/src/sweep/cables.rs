//! Cables, from what answered behind each port.

use std::collections::{BTreeMap, BTreeSet};

use super::found::{Node, PortOf, Problem, ProblemKind};
use crate::mad::Attribute;

/// The cables about which both ends agree, and problems about ports whose ends do not agree.
///
/// If one end was not asked (adapters hand nothing on) or did not answer, what the other end says counts. If
/// several name one port, the first counts.
pub(super) fn agreed(nodes: &[Node], behind: &BTreeMap<PortOf, PortOf>) -> (Vec<[PortOf; 2]>, Vec<Problem>) {
    let mut cables = BTreeSet::new();
    let mut taken: BTreeMap<PortOf, PortOf> = BTreeMap::new();
    let mut problems = Vec::new();
    // Cables that both ends name come first, so that no cable that only one end names takes a port from them.
    let is_mutual = |&(&from, &to): &(&PortOf, &PortOf)| behind.get(&to) == Some(&from);
    let (mutual, one_sided): (Vec<_>, Vec<_>) = behind.iter().partition(is_mutual);
    for (&from, &to) in mutual.into_iter().chain(one_sided) {
        if from == to {
            // A plug that leads back to its own port is no cable.
            continue;
        }
        let other = behind.get(&to).or_else(|| taken.get(&to)).copied().filter(|&other| other != from);
        let is_down = nodes[to.0].ports.get(&to.1).and_then(|port| port.info).is_some_and(|info| !info.is_up);
        let kind = match other {
            Some(other) => Some(ProblemKind::CabledElsewhere { end: to, other }),
            None => is_down.then_some(ProblemKind::NotCabled { end: to }),
        };
        if let Some(kind) = kind {
            let route = &nodes[from.0].route;
            problems.push(Problem {
                at: Some(from),
                attribute: Attribute::NodeInfo,
                route: route.through(from.1).unwrap_or_else(|| route.clone()),
                kind,
            });
            continue;
        }
        taken.insert(from, to);
        taken.insert(to, from);
        cables.insert([from.min(to), from.max(to)]);
    }
    (cables.into_iter().collect(), problems)
}
