//! The tags that xbars of files get, as files have none.

use std::collections::BTreeSet;

use mapper_fabric::INVENTED_TAGS;
use mapper_proto::map::Fabric;

/// Tags every xbar: with its GUID; where it has none or one that is taken, by position.
pub(crate) fn tag_xbars(fabric: &mut Fabric) {
    let mut taken = BTreeSet::new();
    for (xbar, label) in fabric.map.xbars.iter_mut().zip(&fabric.xbars) {
        xbar.tag = label.guid.filter(|&guid| taken.insert(guid));
    }
    for (position, xbar) in (1..).zip(&mut fabric.map.xbars) {
        let mut by_position = INVENTED_TAGS + position..;
        xbar.tag = xbar.tag.or_else(|| by_position.find(|&tag| taken.insert(tag)));
    }
}
