//! Which cable a port of the map holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use mapper_proto::map::{Attached, Map, MapVersion, PortRef, Ports};

/// A cable, named by the end that stands first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CableEnd {
    /// That end; a host's cable has only one end at an xbar.
    pub(super) at: PortRef,
    /// Whether it is a host's.
    pub(super) is_host: bool,
}

/// The cables of a map.
#[derive(Debug)]
pub(super) struct Cables {
    map: Arc<Map>,
    ports: Ports,
    by_tag: BTreeMap<u64, u32>,
}

impl Cables {
    pub(super) fn new(map: Arc<Map>) -> Self {
        let tags = (0..).zip(&map.xbars).filter_map(|(xbar, listed)| Some((listed.tag?, xbar)));
        Self { ports: Ports::new(&map), by_tag: tags.collect(), map }
    }

    pub(super) fn version(&self) -> MapVersion {
        self.map.version
    }

    /// The cable in a port, if there is one.
    pub(super) fn at(&self, port: PortRef) -> Option<CableEnd> {
        match self.ports.at(port)? {
            Attached::Host(_) => Some(CableEnd { at: port, is_host: true }),
            Attached::Xbar(other) => Some(CableEnd { at: port.min(other), is_host: false }),
        }
    }

    /// The cable in a port of a tagged xbar. Ports of these have their real numbers in the map.
    pub(super) fn at_tag(&self, tag: u64, port: u8) -> Option<CableEnd> {
        let &xbar = self.by_tag.get(&tag)?;
        self.at(PortRef { xbar, port })
    }

    /// The ends of a cable that are at tagged xbars, each as tag and port.
    pub(super) fn tags_of(&self, at: PortRef) -> impl Iterator<Item = (u64, u8)> + '_ {
        let other = match self.ports.at(at) {
            Some(Attached::Xbar(other)) => Some(other),
            Some(Attached::Host(_)) | None => None,
        };
        let tagged = |end: PortRef| Some((self.map.xbars.get(end.xbar as usize)?.tag?, end.port));
        [Some(at), other].into_iter().flatten().filter_map(tagged)
    }
}
