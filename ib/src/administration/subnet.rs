//! The subnet as it was when it was last up.

use std::collections::{BTreeMap, BTreeSet};

use crate::codes::{RATE_CODES, rate_code_of};
use crate::lids::Lids;
use crate::mad::sa::{Gid, SubnetNotice};
use crate::mad::{NodeInfo, PortInfo, PortSettings, SmInfo, SwitchInfo};
use crate::manager::inventory::Inventory;
use crate::manager::task::Routes;
use crate::program::NO_PORT;

/// The most switches on a path, as hop limits have six bits.
const MAX_HOPS: usize = 64;
/// The rate where no port says how fast it is: the code of 10 Gb/s.
const USUAL_RATE: u8 = 3;
/// The MTU where no port says what it takes: the code of 2048 bytes.
const USUAL_MTU: u8 = 4;

/// A port that has a LID: one of an adapter or router, or a switch's own.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) guid: u64,
    pub(crate) lid: u16,
    /// 2^lmc LIDs are its own.
    pub(crate) lmc: u8,
    pub(super) node: u64,
    /// The number of the port at its node; 0 is a switch's own port.
    pub(super) port: u8,
    pub(super) settings: PortSettings,
    /// The node and the port that it is cabled to.
    at: Option<(u64, u8)>,
}

impl End {
    pub(super) const fn is_switch(&self) -> bool {
        self.port == 0
    }

    pub(super) fn has(&self, lid: u16) -> bool {
        lid.checked_sub(self.lid).is_some_and(|beyond| beyond >> self.lmc == 0)
    }

    /// The greatest MTU and rate that the port can do.
    pub(super) fn quality(&self) -> Quality {
        let mut quality = Quality::default();
        quality.pass(&self.settings, self.is_switch());
        quality
    }
}

/// A switch.
#[derive(Clone, Debug)]
pub(super) struct SwitchOf {
    pub(super) ports: BTreeMap<u8, PortSettings>,
    pub(super) cables: BTreeMap<u8, (u64, u8)>,
}

/// The MTU and the rate that all ports along a path can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Quality {
    mtu: Option<u8>,
    rate: Option<u8>,
}

impl Quality {
    fn pass(&mut self, port: &PortSettings, is_own: bool) {
        // A switch's own port has no cable, so its MTU in force means nothing.
        let in_force = if is_own || port.mtu() == 0 { port.mtu_capacity() } else { port.mtu() };
        let mtu = Some(in_force).filter(|&mtu| mtu > 0);
        self.mtu = self.mtu.into_iter().chain(mtu).min();
        let speed = PortInfo::parse(&port.emit()).speed.filter(|_| !is_own);
        let place = |rate: u8| RATE_CODES.iter().position(|&known| known == rate);
        self.rate = self.rate.into_iter().chain(speed.map(rate_code_of)).min_by_key(|&rate| place(rate));
    }

    /// The code of the MTU.
    pub(super) fn mtu(&self) -> u8 {
        self.mtu.unwrap_or(USUAL_MTU)
    }

    /// The code of the rate.
    pub(super) fn rate(&self) -> u8 {
        self.rate.unwrap_or(USUAL_RATE)
    }
}

/// The subnet.
#[derive(Debug)]
pub(crate) struct Subnet {
    /// The ports that have LIDs, by their first LIDs.
    ends: BTreeMap<u16, End>,
    by_guid: BTreeMap<u64, u16>,
    pub(super) switches: BTreeMap<u64, SwitchOf>,
    pub(super) nodes: BTreeMap<u64, (NodeInfo, String)>,
    pub(super) switch_infos: BTreeMap<u64, SwitchInfo>,
    /// Ports that do not answer now and whose places are kept.
    away: BTreeSet<u64>,
    routes: Routes,
    prefix: u64,
    own: End,
    /// This manager and the others that answered, each with its port's GUID.
    pub(super) managers: Vec<(u64, SmInfo)>,
}

impl Subnet {
    /// The subnet as it is up now; `None` if the manager's own port has no LID.
    pub(crate) fn new(
        inventory: &Inventory,
        lids: &Lids,
        lmc: u8,
        routes: &Routes,
        switch_infos: &BTreeMap<u64, SwitchInfo>,
        managers: Vec<(u64, SmInfo)>,
    ) -> Option<Self> {
        let of_switches = inventory.switches.iter().filter_map(|switch| {
            let (guid, settings) = (switch.port_guid, *switch.ports.get(&0)?);
            Some(End { guid, lid: lids.of(guid)?, lmc: 0, node: switch.guid, port: 0, settings, at: None })
        });
        let there = inventory.adapters.iter().filter(|adapter| !adapter.is_away);
        let of_adapters = there.filter_map(|adapter| {
            let (guid, settings) = (adapter.port_guid, adapter.settings);
            let (node, port) = (adapter.node_guid, adapter.port);
            Some(End { guid, lid: lids.of(guid)?, lmc, node, port, settings, at: adapter.at })
        });
        let ends: BTreeMap<u16, End> = of_switches.chain(of_adapters).map(|end| (end.lid, end)).collect();
        let by_guid: BTreeMap<u64, u16> = ends.values().map(|end| (end.guid, end.lid)).collect();
        let own = ends.get(by_guid.get(&inventory.own)?)?.clone();
        let switches = inventory.switches.iter().map(|switch| {
            (switch.guid, SwitchOf { ports: switch.ports.clone(), cables: switch.cables.clone() })
        });
        let away = inventory.adapters.iter().filter(|adapter| adapter.is_away);
        let descriptions = inventory.switches.iter().map(|switch| (switch.guid, &switch.description));
        let descriptions = descriptions
            .chain(inventory.adapters.iter().map(|adapter| (adapter.node_guid, &adapter.description)));
        let nodes = descriptions.filter_map(|(guid, description)| {
            Some((guid, (*inventory.nodes.get(&guid)?, description.clone())))
        });
        Some(Self {
            switches: switches.collect(),
            nodes: nodes.collect(),
            switch_infos: switch_infos.clone(),
            away: away.map(|adapter| adapter.port_guid).collect(),
            routes: routes.clone(),
            prefix: inventory.prefix(),
            ends,
            by_guid,
            own,
            managers,
        })
    }

    /// All ports that have LIDs, by these.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &End> {
        self.ends.values()
    }

    pub(crate) fn by_guid(&self, guid: u64) -> Option<&End> {
        self.ends.get(self.by_guid.get(&guid)?)
    }

    /// Whether a port is there, or its place is kept.
    pub(super) fn knows(&self, guid: u64) -> bool {
        self.by_guid.contains_key(&guid) || self.away.contains(&guid)
    }

    pub(super) fn by_lid(&self, lid: u16) -> Option<&End> {
        self.ends.range(..=lid).next_back().map(|(_, end)| end).filter(|end| end.has(lid))
    }

    /// The port with a GID, which has the subnet's prefix or the link-local one.
    pub(super) fn by_gid(&self, gid: Gid) -> Option<&End> {
        let is_ours = gid.prefix() == self.prefix || gid.prefix() == Gid::LINK_PREFIX;
        self.by_guid(gid.guid()).filter(|_| is_ours)
    }

    pub(crate) const fn gid_of(&self, end: &End) -> Gid {
        Gid::of_port(self.prefix, end.guid)
    }

    /// The service level of what the manager sends to a LID.
    pub(super) fn level_to(&self, lid: u16) -> u8 {
        self.routes.level(self.own.lid, lid)
    }

    /// The service level from one LID to another.
    pub(super) fn level(&self, from: u16, to: u16) -> u8 {
        self.routes.level(from, to)
    }

    /// How many groups each switch has room for; `None` if there is no switch.
    pub(super) fn multicast_capacity(&self) -> Option<u16> {
        self.switch_infos.values().map(SwitchInfo::multicast_capacity).min()
    }

    /// The forwarding table of a switch, as it was written.
    pub(super) fn table(&self, switch: u64) -> &[u8] {
        self.routes.tables.get(&switch).map_or(&[], Vec::as_slice)
    }

    /// A notice that something happened to a port or a group.
    pub(super) fn notice(&self, number: u16, subject: Gid) -> SubnetNotice {
        SubnetNotice::of_subject(number, subject, self.own.lid, self.gid_of(&self.own))
    }

    /// The MTU and rate of a path, by walking the tables of the switches; `None` if the path leads nowhere.
    pub(super) fn path(&self, from: &End, to: u16) -> Option<Quality> {
        let end = self.by_lid(to)?;
        let mut quality = from.quality();
        if from.guid == end.guid {
            return Some(quality);
        }
        let mut at = if from.is_switch() { (from.node, 0) } else { from.at? };
        for _ in 0..=MAX_HOPS {
            let (node, port) = at;
            if node == end.node && (port == end.port || end.is_switch()) {
                if let Some(way_in) = self.switches.get(&node).and_then(|switch| switch.ports.get(&port)) {
                    quality.pass(way_in, port == 0);
                }
                quality.pass(&end.settings, end.is_switch());
                return Some(quality);
            }
            let switch = self.switches.get(&node)?;
            if port != 0 {
                quality.pass(switch.ports.get(&port)?, false);
            }
            let out = *self.routes.tables.get(&node)?.get(usize::from(to))?;
            if out == NO_PORT {
                return None;
            }
            quality.pass(switch.ports.get(&out)?, false);
            at = *switch.cables.get(&out)?;
        }
        None
    }
}
