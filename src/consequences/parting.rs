//! Which hosts a change parts from the others.

use std::collections::BTreeMap;

use mapper_routing::{Attachment, Topology};

/// The hosts that a change parts from most others that they were joined with: of each part of the fabric before, all but
/// those in the piece that has the most hosts after. A host that has no cable after is never in that piece.
///
/// Both topologies have the same hosts; xbars may be numbered otherwise.
pub(crate) fn cut_off(before: &Topology, after: &Topology) -> Vec<u32> {
    let piece = |host: u32| match after.attachment(host) {
        Attachment::Port(at) => Some(after.component(at.xbar)),
        Attachment::Host(_) | Attachment::Nothing => None,
    };
    let hosts = || {
        (0..before.host_count() as u32).filter_map(|host| match before.attachment(host) {
            Attachment::Port(at) => Some((host, before.component(at.xbar), piece(host))),
            Attachment::Host(_) | Attachment::Nothing => None,
        })
    };
    let mut pieces: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for (_, part, piece) in hosts() {
        piece.into_iter().for_each(|piece| *pieces.entry((part, piece)).or_default() += 1);
    }
    let mut largest: BTreeMap<u32, (usize, u32)> = BTreeMap::new();
    for (&(part, piece), &count) in &pieces {
        let best = largest.entry(part).or_insert((count, piece));
        if count > best.0 {
            *best = (count, piece);
        }
    }
    let stays = |part: u32, piece: Option<u32>| largest.get(&part).is_some_and(|best| Some(best.1) == piece);
    hosts().filter(|&(_, part, piece)| !stays(part, piece)).map(|(host, ..)| host).collect()
}
