//! What must hold of a map that agents exchange.

use thiserror::Error;

use super::{FrameSizes, HostIndex, Map, PortRef, host_type};
use crate::Mac;

/// Why a map is none that agents exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MapDefect {
    /// More xbars than [`Map::MAX_XBARS`].
    #[error("{0} crossbars are more than {max}", max = Map::MAX_XBARS)]
    TooManyXbars(usize),
    /// A host that does not stand by falling rank.
    #[error("host {0} does not stand by falling level and address")]
    HostsUnsorted(Mac),
    /// Two hosts with one address.
    #[error("two hosts have the address {0}")]
    DuplicateMac(Mac),
    /// A host without a place that is neither a phantom nor cabled straight to the only other host.
    #[error("host {0} has no place in the fabric")]
    NoPlace(Mac),
    /// A phantom with a place.
    #[error("host {0} does not exist and has a place in the fabric")]
    PlacedPhantom(Mac),
    /// A cable or host at an xbar that is not there.
    #[error("something is cabled to crossbar {}, which is not there", .0.xbar)]
    NoSuchXbar(PortRef),
    /// Two cables in one port.
    #[error("port {} of crossbar {} has two cables", .0.port, .0.xbar)]
    PortTakenTwice(PortRef),
    /// Cables that do not stand in rising order, smaller end first.
    #[error("the cable at port {} of crossbar {} does not stand in order", .0.port, .0.xbar)]
    CablesUnsorted(PortRef),
    /// Contested ports that do not stand in rising order.
    #[error("the contested address {0} does not stand in order")]
    ContestedUnsorted(Mac),
    /// A host whose address is contested.
    #[error("host {0} is in the map although another has its address")]
    ContestedHost(Mac),
    /// A host with other settings that is not in the map, is the global mapper, or does not stand in
    /// rising order.
    #[error("host {0} is said to be set otherwise than the global mapper, and stands out of place")]
    DiffersOutOfPlace(Mac),
    /// A host with shorter frames than others send that is not in the map, does not stand in rising order, or
    /// has no less; or frames said to be long, and no host with shorter ones.
    #[error("host {0} is said to carry shorter frames than others send, and stands out of place")]
    FrameSizeOutOfPlace(Mac),
    /// A cable that is said to lose frames and is not in the map, or does not stand in rising order.
    #[error("the cable at port {} of crossbar {} is said to lose frames, and stands out of place", .0.port, .0.xbar)]
    LossyOutOfPlace(PortRef),
    /// Ports in use further apart than the xbar has ports.
    #[error("crossbar {xbar} has {ports} ports and cables from port {first} to port {last}")]
    SpanTooWide {
        /// Which xbar.
        xbar: u32,
        /// How many ports it has.
        ports: u8,
        /// The first port in use.
        first: u8,
        /// The last port in use.
        last: u8,
    },
}

impl Map {
    /// Most xbars in a map: an index travels as 16 bits, of which one value says "none".
    pub const MAX_XBARS: usize = 65_535;

    /// Whether this is a map as agents exchange it: hosts by falling rank with one address each,
    /// every host but phantoms at a place (or two hosts face to face), one cable a port, every
    /// cable at an xbar that is there.
    ///
    /// # Errors
    /// The first defect found.
    pub fn check(&self) -> Result<(), MapDefect> {
        if self.xbars.len() > Self::MAX_XBARS {
            return Err(MapDefect::TooManyXbars(self.xbars.len()));
        }
        self.check_hosts()?;
        if let Some(pair) = self.cables.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(MapDefect::CablesUnsorted(pair[1].a));
        }
        if let Some(cable) = self.cables.iter().find(|cable| cable.a > cable.b) {
            return Err(MapDefect::CablesUnsorted(cable.a));
        }
        self.check_contested()?;
        self.check_rules()?;
        self.check_frame_sizes()?;
        self.check_lossy()?;
        self.check_ports()
    }

    fn check_hosts(&self) -> Result<(), MapDefect> {
        if let Some(pair) = self.hosts.windows(2).find(|pair| pair[0].rank() < pair[1].rank()) {
            return Err(MapDefect::HostsUnsorted(pair[1].mac));
        }
        if let Some(mac) = self.duplicate_mac() {
            return Err(MapDefect::DuplicateMac(mac));
        }
        let phantom = |host_type| host_type == host_type::PHANTOM;
        if let Some(host) = self.hosts.iter().find(|host| phantom(host.host_type) && host.at.is_some()) {
            return Err(MapDefect::PlacedPhantom(host.mac));
        }
        let mut unplaced = self.hosts.iter().filter(|host| !phantom(host.host_type) && host.at.is_none());
        let may_be_unplaced = if self.xbars.is_empty() { 2 } else { 0 };
        unplaced.nth(may_be_unplaced).map_or(Ok(()), |host| Err(MapDefect::NoPlace(host.mac)))
    }

    fn check_contested(&self) -> Result<(), MapDefect> {
        if let Some(pair) = self.contested.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(MapDefect::ContestedUnsorted(pair[1].mac));
        }
        let is_contested = |mac: Mac| self.contested.binary_search_by_key(&mac, |c| c.mac).is_ok();
        let believed = self.hosts.iter().find(|host| is_contested(host.mac));
        believed.map_or(Ok(()), |host| Err(MapDefect::ContestedHost(host.mac)))
    }

    fn check_rules(&self) -> Result<(), MapDefect> {
        let differ = &self.rules.differ;
        let Some(last) = differ.last() else { return Ok(()) };
        if let Some(pair) = differ.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(MapDefect::DiffersOutOfPlace(pair[1]));
        }
        let listed = self.hosts.iter().skip(1).filter(|host| differ.binary_search(&host.mac).is_ok()).count();
        if listed == differ.len() { Ok(()) } else { Err(MapDefect::DiffersOutOfPlace(*last)) }
    }

    fn check_frame_sizes(&self) -> Result<(), MapDefect> {
        let FrameSizes { longest, less } = &self.frame_sizes;
        let Some(&(last, _)) = less.last() else {
            return Ok(());
        };
        if let Some(pair) = less.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(MapDefect::FrameSizeOutOfPlace(pair[1].0));
        }
        if let Some((mac, _)) = less.iter().find(|(_, mtu)| !(1..*longest).contains(&mtu.bytes)) {
            return Err(MapDefect::FrameSizeOutOfPlace(*mac));
        }
        let is_listed = |mac: Mac| less.binary_search_by_key(&mac, |&(mac, _)| mac).is_ok();
        let listed = self.hosts.iter().filter(|host| is_listed(host.mac)).count();
        if listed == less.len() { Ok(()) } else { Err(MapDefect::FrameSizeOutOfPlace(last)) }
    }

    fn check_lossy(&self) -> Result<(), MapDefect> {
        if let Some(pair) = self.lossy.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(MapDefect::LossyOutOfPlace(pair[1].a));
        }
        let unknown = self.lossy.iter().find(|cable| self.cables.binary_search(cable).is_err());
        unknown.map_or(Ok(()), |cable| Err(MapDefect::LossyOutOfPlace(cable.a)))
    }

    /// An address that stands twice. Hosts of one level stand by falling address, so with one level
    /// alone a duplicate stands beside its like.
    fn duplicate_mac(&self) -> Option<Mac> {
        let one_level = self.hosts.first().zip(self.hosts.last()).is_none_or(|(a, b)| a.level == b.level);
        if one_level {
            return self.hosts.windows(2).find(|pair| pair[0].mac == pair[1].mac).map(|pair| pair[0].mac);
        }
        HostIndex::new(self).duplicates().next()
    }

    /// Checks all ports in one pass, with a bit for each, to be fast: every agent checks every map, and large
    /// maps have many cables.
    fn check_ports(&self) -> Result<(), MapDefect> {
        let mut taken = vec![[0_u64; 4]; self.xbars.len()];
        self.ends().try_for_each(|end| {
            let ports = taken.get_mut(end.xbar as usize).ok_or(MapDefect::NoSuchXbar(end))?;
            let word = &mut ports[usize::from(end.port) / 64];
            let bit = 1 << (end.port % 64);
            if *word & bit != 0 {
                return Err(MapDefect::PortTakenTwice(end));
            }
            *word |= bit;
            Ok(())
        })?;
        for ((index, xbar), taken) in (0..).zip(&self.xbars).zip(&taken) {
            let first = taken.iter().position(|&word| word != 0);
            let last = taken.iter().rposition(|&word| word != 0);
            let (Some(first), Some(last)) = (first, last) else { continue };
            let first = (first as u32 * 64 + taken[first].trailing_zeros()) as u8;
            let last = (last as u32 * 64 + 63 - taken[last].leading_zeros()) as u8;
            if last - first >= xbar.ports {
                return Err(MapDefect::SpanTooWide { xbar: index, ports: xbar.ports, first, last });
            }
        }
        Ok(())
    }

    /// All ports in use, of hosts, contested ones too, and cables; a cable from a port to itself is at one.
    fn ends(&self) -> impl Iterator<Item = PortRef> + '_ {
        let cables = self.cables.iter().flat_map(|cable| {
            let other = (cable.a != cable.b).then_some(cable.b);
            [Some(cable.a), other].into_iter().flatten()
        });
        let hosts = self.hosts.iter().filter_map(|host| host.at);
        hosts.chain(self.contested.iter().map(|contested| contested.at)).chain(cables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Cable, Contested, Host, Xbar};

    fn port(xbar: u32, port: u8) -> PortRef {
        PortRef { xbar, port }
    }

    fn host(position: u32, at: Option<PortRef>) -> Host {
        Host { mac: Mac::from_position(position), level: 1, host_type: host_type::ETHERNET, at }
    }

    fn contested(position: u32, xbar: u32, at: u8) -> Contested {
        Contested { mac: Mac::from_position(position), at: port(xbar, at) }
    }

    fn good() -> Map {
        Map {
            hosts: vec![host(9, Some(port(0, 1))), host(5, Some(port(1, 1)))],
            xbars: vec![Xbar { ports: 4, tag: None, ports_known: true }; 2],
            cables: vec![Cable::new(port(0, 2), port(1, 2)), Cable::new(port(1, 3), port(1, 3))],
            contested: vec![contested(6, 0, 3), contested(6, 1, 4)],
            ..Map::default()
        }
    }

    fn defect(change: impl FnOnce(&mut Map)) -> Result<(), MapDefect> {
        let mut map = good();
        change(&mut map);
        map.check()
    }

    #[test]
    fn what_agents_exchange_passes() {
        assert_eq!(good().check(), Ok(()));
        assert_eq!(Map::default().check(), Ok(()));
        assert_eq!(
            defect(|map| map.hosts.push(Host { host_type: host_type::PHANTOM, ..host(1, None) })),
            Ok(())
        );
        let face_to_face = Map { hosts: vec![host(2, None), host(1, None)], ..Map::default() };
        assert_eq!(face_to_face.check(), Ok(()));
    }

    #[test]
    fn each_defect_is_told() {
        let mac = Mac::from_position;
        let lossy = |cables: &[Cable]| defect(|map| map.lossy = cables.to_vec());
        let [first, second] = good().cables[..] else { panic!("two cables") };
        assert_eq!(lossy(&[first, second]), Ok(()));
        assert_eq!(lossy(&[second, first]), Err(MapDefect::LossyOutOfPlace(first.a)));
        assert_eq!(lossy(&[first, first]), Err(MapDefect::LossyOutOfPlace(first.a)));
        let absent = Cable::new(port(0, 2), port(1, 3));
        assert_eq!(lossy(&[absent]), Err(MapDefect::LossyOutOfPlace(absent.a)));
        assert_eq!(defect(|map| map.hosts.reverse()), Err(MapDefect::HostsUnsorted(mac(9))));
        assert_eq!(defect(|map| map.hosts[0].mac = mac(5)), Err(MapDefect::DuplicateMac(mac(5))));
        assert_eq!(
            defect(|map| map.hosts[0] = Host { level: 2, ..host(5, Some(port(0, 1))) }),
            Err(MapDefect::DuplicateMac(mac(5)))
        );
        assert_eq!(defect(|map| map.hosts[1].at = None), Err(MapDefect::NoPlace(mac(5))));
        let three = Map { hosts: vec![host(3, None), host(2, None), host(1, None)], ..Map::default() };
        assert_eq!(three.check(), Err(MapDefect::NoPlace(mac(1))));
        assert_eq!(
            defect(|map| map.hosts[1].host_type = host_type::PHANTOM),
            Err(MapDefect::PlacedPhantom(mac(5)))
        );
        assert_eq!(defect(|map| map.hosts[1].at = Some(port(2, 1))), Err(MapDefect::NoSuchXbar(port(2, 1))));
        assert_eq!(defect(|map| map.cables[1].b.xbar = 7), Err(MapDefect::NoSuchXbar(port(7, 3))));
        assert_eq!(
            defect(|map| map.hosts[1].at = Some(port(1, 2))),
            Err(MapDefect::PortTakenTwice(port(1, 2)))
        );
        assert_eq!(defect(|map| map.contested.reverse()), Err(MapDefect::ContestedUnsorted(mac(6))));
        assert_eq!(
            defect(|map| map.contested = vec![contested(5, 0, 3)]),
            Err(MapDefect::ContestedHost(mac(5)))
        );
        assert_eq!(
            defect(|map| map.contested[0].at = port(0, 1)),
            Err(MapDefect::PortTakenTwice(port(0, 1)))
        );
        assert_eq!(defect(|map| map.contested[1].at = port(9, 1)), Err(MapDefect::NoSuchXbar(port(9, 1))));
        assert_eq!(defect(|map| map.cables[1].b.port = 0), Err(MapDefect::CablesUnsorted(port(1, 3))));
        assert_eq!(defect(|map| map.cables.reverse()), Err(MapDefect::CablesUnsorted(port(0, 2))));
        assert_eq!(
            defect(|map| map.hosts[0].at = Some(port(0, 6))),
            Err(MapDefect::SpanTooWide { xbar: 0, ports: 4, first: 2, last: 6 })
        );
        assert_eq!(
            defect(|map| map.xbars.resize(70_000, map.xbars[0])),
            Err(MapDefect::TooManyXbars(70_000))
        );
    }
}
