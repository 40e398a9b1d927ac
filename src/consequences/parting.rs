//! Which hosts a change parts from the others.

use mapper_fabric::parts::largest_pieces;
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
    let largest = largest_pieces(hosts().filter_map(|(_, part, piece)| Some((part, piece?))));
    let stays = |part: u32, piece: Option<u32>| largest.get(&part).is_some_and(|it| Some(it.piece) == piece);
    hosts().filter(|&(_, part, piece)| !stays(part, piece)).map(|(host, ..)| host).collect()
}
