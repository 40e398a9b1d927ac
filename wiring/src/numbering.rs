//! Finds out how the port numbers of one fabric's xbars differ from those of another fabric.

use std::collections::BTreeSet;

use mapper_proto::map::{Fabric, PortRef};

use mapper_fabric::identity;

/// The possible differences between two numberings of the same ports, as files count from 0 or from 1.
const OFFSETS: [i16; 3] = [-1, 0, 1];

/// How many cables fit each of [`OFFSETS`].
type Votes = [usize; 3];

/// An xbar of A and the number of a port on it, as A or as B numbers it.
type Port = (u32, i16);

/// The number that must be added to the ports of each of B's xbars to get A's, and the number that fits most
/// xbars.
///
/// `in_b` has for each of A's xbars the matched one of B; `at_hosts` are pairs of ports with the same host.
/// The same number is taken for all xbars with an identity in both fabrics; other xbars may have different
/// ones.
pub(super) fn offsets(
    a: &Fabric,
    b: &Fabric,
    in_b: &[Option<usize>],
    at_hosts: &[(PortRef, PortRef)],
) -> (Vec<i16>, i16) {
    let votes = votes(a, b, in_b, at_hosts);
    let is_tagged = |xbar: usize| {
        let same = in_b[xbar].and_then(|in_b| identity(&b.map.xbars[in_b]));
        same.is_some() && identity(&a.map.xbars[xbar]).is_some()
    };
    let sum = |votes: Votes, more: &Votes| std::array::from_fn(|i| votes[i] + more[i]);
    let numbering = best(votes.iter().fold([0; 3], sum), 0);
    let tagged = votes.iter().enumerate().filter(|&(xbar, _)| is_tagged(xbar));
    let tagged = best(tagged.map(|(_, votes)| votes).fold([0; 3], sum), numbering);
    let mut offsets = vec![numbering; b.xbars.len()];
    for (xbar, votes) in votes.into_iter().enumerate() {
        if let Some(in_b) = in_b[xbar] {
            offsets[in_b] = if is_tagged(xbar) { tagged } else { best(votes, numbering) };
        }
    }
    (offsets, numbering)
}

/// The offset with most votes. Of several with as many it is the preferred one if that is among them, else 0
/// if that is.
fn best(votes: Votes, preferred: i16) -> i16 {
    let rank = |&(offset, count): &(i16, usize)| (count, offset == preferred, offset == 0);
    OFFSETS.into_iter().zip(votes).max_by_key(rank).map_or(preferred, |(offset, _)| offset)
}

/// The votes for each of A's xbars. A cable gives an offset a vote if B has the same cable when the offset is
/// added to B's port.
fn votes(a: &Fabric, b: &Fabric, in_b: &[Option<usize>], at_hosts: &[(PortRef, PortRef)]) -> Vec<Votes> {
    let mut in_a = vec![None; b.xbars.len()];
    for (xbar, in_b) in (0_u32..).zip(in_b) {
        if let Some(in_b) = *in_b {
            in_a[in_b] = Some(xbar);
        }
    }
    let port_in_a = |end: PortRef| -> Option<Port> { Some((in_a[end.xbar as usize]?, i16::from(end.port))) };
    let mut votes = vec![[0; 3]; a.xbars.len()];
    for (here, there) in at_hosts {
        if let Some((_, port)) = port_in_a(*there).filter(|&(xbar, _)| xbar == here.xbar) {
            for (offset, votes) in OFFSETS.into_iter().zip(&mut votes[here.xbar as usize]) {
                *votes += usize::from(port + offset == i16::from(here.port));
            }
        }
    }
    let mut cables: BTreeSet<(Port, Port)> = BTreeSet::new();
    for cable in &b.map.cables {
        if let (Some(x), Some(y)) = (port_in_a(cable.a), port_in_a(cable.b)) {
            cables.extend([(x, y), (y, x)]);
        }
    }
    for cable in &a.map.cables {
        for (near, far) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let lower = |end: PortRef, offset: i16| (end.xbar, i16::from(end.port) - offset);
            for (offset, votes) in OFFSETS.into_iter().zip(&mut votes[near.xbar as usize]) {
                let is_there = |&of_far: &i16| {
                    let alike = near.xbar != far.xbar || of_far == offset;
                    alike && cables.contains(&(lower(near, offset), lower(far, of_far)))
                };
                *votes += usize::from(OFFSETS.iter().any(is_there));
            }
        }
    }
    votes
}
