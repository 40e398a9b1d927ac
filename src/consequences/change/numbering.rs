//! From which number the ports of an xbar count. No fabric says so, but cables show it.

use mapper_fabric::identity;
use mapper_proto::map::{Fabric, PortRef};

use super::Added;

/// From which number, 0 or 1, the ports of an xbar count; `None` if no cable shows it, or cables show both.
///
/// A cable in port 0 shows that ports count from 0, and one in the port of the number of ports that they count from 1. Where
/// none is in such a port of this xbar, those at other xbars count: at those with an identity for one that has one, and at
/// others for others, as an explored map chooses the numbers of these. `more` are ports that are taken beside those of the
/// fabric.
pub(super) fn first_port(fabric: &Fabric, more: impl Iterator<Item = PortRef>, xbar: u32) -> Option<u8> {
    let map = &fabric.map;
    let is_plain = |xbar: u32| identity(&map.xbars[xbar as usize]).is_none();
    let cabled = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    let taken = cabled.chain(map.hosts.iter().filter_map(|host| host.at)).chain(more);
    let (mut by_own, mut by_others) = ([false; 2], [false; 2]);
    for at in taken {
        let first = match at.port {
            0 => 0,
            port if port >= map.xbars[at.xbar as usize].ports => 1,
            _ => continue,
        };
        by_own[first] |= at.xbar == xbar;
        by_others[first] |= is_plain(at.xbar) == is_plain(xbar);
    }
    let shown = if by_own == [false; 2] { by_others } else { by_own };
    match shown {
        [true, false] => Some(0),
        [false, true] => Some(1),
        [false, false] | [true, true] => None,
    }
}

/// The ports of xbars that a cable is in which is added.
pub(super) fn ends(added: &Added) -> impl Iterator<Item = PortRef> + use<> {
    let (one, other) = match *added {
        Added::Xbars(cable) => (cable.a, Some(cable.b)),
        Added::Host(_, at) => (at, None),
    };
    [Some(one), other].into_iter().flatten()
}
