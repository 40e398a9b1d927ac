//! The destinations that tables lead to, in the order in which engines want them.

use std::collections::BTreeMap;
use std::ops::Range;

use mapper_proto::map::Fabric;
use thiserror::Error;

use crate::{Attachment, Topology};
use mapper_fabric::names::{Named, Names};

/// The largest LID mask control. A host has at most 2^7 addresses.
pub const MAX_LMC: u8 = 7;

/// Why no table can be made for the LIDs of a fabric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LidError {
    /// Two nodes have one LID.
    #[error(
        "{first} and {second} both have LID {lid}; each LID must be one node's: correct one, or give all anew \
     (--reassign-lids)"
    )]
    Twice {
        /// The LID.
        lid: u32,
        /// A node that has it.
        first: String,
        /// Another node that has it.
        second: String,
    },
    /// A mask control is out of range.
    #[error("an LMC of {0} was asked for; give 0 to {MAX_LMC}")]
    Lmc(u8),
}

/// What a slot of a table leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotEnd {
    /// The xbar itself, that is its management port.
    Xbar(u32),
    /// A host, by one of its addresses, counted from 0.
    Host {
        /// The host.
        host: u32,
        /// Which of its addresses.
        path: u8,
    },
}

/// All that tables lead to: every xbar, and every address of every cabled host. Each of these is a *slot*.
///
/// Slots stand by xbar: first the xbar itself, then its hosts by rising port, each with its 2^lmc
/// addresses in turn. So the slots of an xbar are a range, and a table is computed by destination xbar.
///
/// An address is a LID (InfiniBand's local identifier). LIDs are the file's where it has them. All
/// others get the free ones from 1 on: hosts first, as listed, then xbars.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destinations {
    base: Vec<u32>,
    ends: Vec<SlotEnd>,
    lids: Vec<u32>,
    lmc: u8,
    first_slot: Vec<u32>,
}

impl Destinations {
    /// The slots of a fabric; `topology` must be built from its map.
    ///
    /// `lmc` is the LID mask control of all hosts; if it is not given, each host has one address.
    ///
    /// # Errors
    /// If two nodes have one LID, or `lmc` is out of range.
    pub fn new(topology: &Topology, fabric: &Fabric, lmc: Option<u8>) -> Result<Self, LidError> {
        let lmc = lmc.unwrap_or_default();
        if lmc > MAX_LMC {
            return Err(LidError::Lmc(lmc));
        }
        let mut all = Self {
            base: Vec::with_capacity(topology.xbar_count() + 1),
            ends: Vec::new(),
            lids: Vec::new(),
            lmc,
            first_slot: vec![u32::MAX; topology.host_count()],
        };
        for xbar in 0..topology.xbar_count() as u32 {
            all.base.push(all.ends.len() as u32);
            all.ends.push(SlotEnd::Xbar(xbar));
            let port = |host: u32| match topology.attachment(host) {
                Attachment::Port(at) => Some((at.port, host)),
                Attachment::Host(_) | Attachment::Nothing => None,
            };
            let mut hosts: Vec<_> = topology.hosts_of(xbar).iter().filter_map(|&host| port(host)).collect();
            hosts.sort_unstable();
            for (_, host) in hosts {
                all.first_slot[host as usize] = all.ends.len() as u32;
                all.ends.extend((0..1 << lmc).map(|path| SlotEnd::Host { host, path }));
            }
        }
        all.base.push(all.ends.len() as u32);
        all.lids = Lids::new(fabric)?.of_slots(&all);
        Ok(all)
    }

    /// How many slots there are.
    pub fn slot_count(&self) -> usize {
        self.ends.len()
    }

    /// The slots of an xbar: its own, then those of its hosts.
    pub fn slots_of(&self, xbar: u32) -> Range<u32> {
        self.base[xbar as usize]..self.base[xbar as usize + 1]
    }

    /// The slots of an xbar's hosts.
    pub fn host_slots_of(&self, xbar: u32) -> Range<u32> {
        self.base[xbar as usize] + 1..self.base[xbar as usize + 1]
    }

    /// The slot of an xbar itself.
    pub fn slot_of_xbar(&self, xbar: u32) -> u32 {
        self.base[xbar as usize]
    }

    /// The slots of a host, an empty range if it is cabled to no xbar.
    pub fn slots_of_host(&self, host: u32) -> Range<u32> {
        match self.first_slot[host as usize] {
            u32::MAX => 0..0,
            first => first..first + (1 << self.lmc),
        }
    }

    /// What a slot leads to.
    pub fn end(&self, slot: u32) -> SlotEnd {
        self.ends[slot as usize]
    }

    /// A slot's address.
    pub fn lid(&self, slot: u32) -> u32 {
        self.lids[slot as usize]
    }

    /// The LID mask control of all hosts.
    pub fn lmc(&self) -> u8 {
        self.lmc
    }

    /// The slot of each address.
    pub fn by_lid(&self) -> BTreeMap<u32, u32> {
        (0..).zip(&self.lids).map(|(slot, &lid)| (lid, slot)).collect()
    }
}

/// Gives LIDs to the nodes that have none.
struct Lids<'a> {
    fabric: &'a Fabric,
    taken: BTreeMap<u32, Named>,
}

impl<'a> Lids<'a> {
    fn new(fabric: &'a Fabric) -> Result<Self, LidError> {
        let mut taken = BTreeMap::new();
        let hosts = (0..).zip(&fabric.hosts).map(|(host, label)| (label.lid, Named::Host(host)));
        let xbars = (0..).zip(&fabric.xbars).map(|(xbar, label)| (label.lid, Named::Xbar(xbar)));
        for (lid, node) in hosts.chain(xbars) {
            let Some(lid) = lid else { continue };
            if let Some(first) = taken.insert(lid.into(), node) {
                let names = Names::of(fabric);
                let (lid, first, second) = (lid.into(), names.node(first), names.node(node));
                return Err(LidError::Twice { lid, first, second });
            }
        }
        Ok(Self { fabric, taken })
    }

    /// The LID of each slot. A host's addresses beyond the file's one follow it if they are free.
    fn of_slots(&self, all: &Destinations) -> Vec<u32> {
        let addresses = 1 << all.lmc;
        let mut lids = vec![0; all.ends.len()];
        let mut next = 1;
        let mut taken = self.taken.clone();
        for (host, label) in (0..).zip(&self.fabric.hosts) {
            let slots = all.slots_of_host(host);
            if slots.is_empty() {
                continue;
            }
            // The file's base LID stays only if the mask leaves room for the others.
            let own = label.lid.map(u32::from).filter(|own| {
                own % addresses == 0 && (own + 1..own + addresses).all(|lid| !self.taken.contains_key(&lid))
            });
            let own = own.or(label.lid.map(u32::from).filter(|_| addresses == 1));
            let base = own.unwrap_or_else(|| {
                next = u32::next_multiple_of(next, addresses);
                while (next..next + addresses).any(|lid| taken.contains_key(&lid)) {
                    next += addresses;
                }
                next
            });
            for (slot, lid) in slots.zip(base..) {
                lids[slot as usize] = lid;
                taken.insert(lid, Named::Host(host));
            }
        }
        let mut free = (1_u32..).filter(|lid| !taken.contains_key(lid));
        for (xbar, label) in (0..).zip(&self.fabric.xbars) {
            let lid = label.lid.map(u32::from).or_else(|| free.next()).unwrap_or_default();
            lids[all.slot_of_xbar(xbar) as usize] = lid;
        }
        lids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mapper_fabric::generate;

    fn destinations(fabric: &Fabric, lmc: Option<u8>) -> Result<Destinations, LidError> {
        Destinations::new(&Topology::from_map(&fabric.map).unwrap(), fabric, lmc)
    }

    #[test]
    fn slots_stand_by_xbar_and_lids_count_from_1() {
        let fabric = generate("ring:n=3,hosts=2").unwrap();
        let all = destinations(&fabric, None).unwrap();
        assert_eq!(all.slot_count(), 9);
        assert_eq!((all.slots_of(1), all.host_slots_of(1)), (3..6, 4..6));
        assert_eq!(all.end(3), SlotEnd::Xbar(1));
        assert_eq!(all.end(4), SlotEnd::Host { host: 2, path: 0 });
        assert_eq!(all.slots_of_host(2), 4..5);
        let lids: Vec<u32> = (0..9).map(|slot| all.lid(slot)).collect();
        assert_eq!(lids, [7, 1, 2, 8, 3, 4, 9, 5, 6]);
        assert_eq!(all.by_lid()[&8], 3);
    }

    #[test]
    fn lids_of_a_file_stay_and_others_go_round_them() {
        let mut fabric = generate("ring:n=3,hosts=1").unwrap();
        fabric.hosts[1].lid = Some(1);
        fabric.xbars[0].lid = Some(3);
        let all = destinations(&fabric, None).unwrap();
        let lids: Vec<u32> = (0..6).map(|slot| all.lid(slot)).collect();
        assert_eq!(lids, [3, 2, 5, 1, 6, 4]);
        fabric.hosts[2].lid = Some(3);
        let error = destinations(&fabric, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "h3 and xbar1 both have LID 3; each LID must be one node's: correct one, or give all anew (--reassign-lids)"
        );
    }

    #[test]
    fn a_mask_gives_each_host_several_aligned_lids() {
        let fabric = generate("ring:n=3,hosts=1").unwrap();
        let all = destinations(&fabric, Some(1)).unwrap();
        let lids: Vec<u32> = (0..9).map(|slot| all.lid(slot)).collect();
        assert_eq!(lids, [1, 2, 3, 8, 4, 5, 9, 6, 7]);
        assert_eq!(all.end(2), SlotEnd::Host { host: 0, path: 1 });
        assert_eq!(destinations(&fabric, Some(8)), Err(LidError::Lmc(8)));
    }
}
