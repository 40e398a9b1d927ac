//! The MTU of the tap interface, which follows what the cables of the fabric carry.
//!
//! Frames of the tap interface are to arrive whatever route they take, also broadcasts, which go to all hosts. So no
//! packet of that interface is longer than what the least cable carries: those of this host's own ports, and those of
//! the map. When cables carry less this is followed at once. When they carry more it waits for a map that all hosts
//! have, as a map that is being made may lack a cable for a moment.
//!
//! The kernel's own routes do not depend on it, as they say the MTUs of their ways. But packets that are too long for an
//! outer header go by the tap interface, and the kernel would take its MTU for that of the host they are for, and send
//! shorter packets there also along its own routes. So the routes that lead such packets to the tap interface say what
//! the cables on the ways to their host carry: more than the interface where these are wider than others, and what fits
//! where something between the ends of a cable carries less than these say.

use mapper_proto::map::Map;

use super::Host;
use crate::data::{MIN_TAP_MTU, MtuTooSmall, tap_mtu};

/// What the tap interface's MTU is to be, and what it was set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapMtu {
    /// The longest packet that all cables carry in a frame, in bytes.
    fits: u32,
    /// Why the cables carry too little for IP, if they do.
    too_small: Option<MtuTooSmall>,
    /// What the interface was to have when that was last settled, so that nothing is tried again and again.
    wanted: u32,
    /// What the driver is still to give the interface.
    to_give: Option<u32>,
    /// What the driver gave the interface last, or found it to have.
    given: u32,
    /// What the user gave the interface, if that is less than what all cables carry.
    by_user: Option<u32>,
}

impl TapMtu {
    /// The state of an interface that was made for a link of this MTU, in bytes, and frames whose routes lead through `max_hops`
    /// crossbars at most.
    pub(super) fn new(link_mtu: u32, max_hops: u8) -> Self {
        let mtu = tap_mtu(link_mtu, max_hops).unwrap_or(MIN_TAP_MTU);
        Self { fits: mtu, too_small: None, wanted: mtu, to_give: None, given: mtu, by_user: None }
    }

    /// The longest packet that all cables carry in a frame, in bytes.
    pub const fn fits(&self) -> u32 {
        self.fits
    }

    /// What the driver gave the interface last, or found it to have, in bytes.
    pub const fn given(&self) -> u32 {
        self.given
    }

    /// Why the cables carry too little for IP, if they do.
    pub const fn too_small(&self) -> Option<&MtuTooSmall> {
        self.too_small.as_ref()
    }

    /// How long packets are at most that the user wants the interface to carry, in bytes, if that is another length than all
    /// cables carry. It counts for all packets.
    const fn limit(&self) -> Option<u32> {
        if self.given == self.fits { None } else { Some(self.given) }
    }

    /// Takes in that the driver gave the interface this MTU.
    const fn give(&mut self, mtu: u32) {
        self.given = mtu;
    }

    /// Takes in which MTU the interface was found with. Returns whether somebody else gave it that. One that is smaller
    /// than what cables carry stays, as the user chose it.
    fn found(&mut self, mtu: u32) -> bool {
        if std::mem::replace(&mut self.given, mtu) == mtu {
            return false;
        }
        self.by_user = Some(mtu).filter(|&mtu| mtu < self.fits);
        self.wanted = self.by_user.unwrap_or(self.fits);
        true
    }

    /// Takes in what is left for users' packets of the frames that all cables carry now. Less counts at once, and more once
    /// `is_settled` says that it will stay.
    fn follow(&mut self, left: Result<u32, MtuTooSmall>, is_settled: impl FnOnce() -> bool) {
        self.too_small = left.err();
        let fits = left.unwrap_or(MIN_TAP_MTU);
        if fits < self.fits || fits > self.fits && is_settled() {
            self.fits = fits;
        }
        let wanted = self.by_user.map_or(self.fits, |chosen| chosen.min(self.fits));
        if std::mem::replace(&mut self.wanted, wanted) != wanted {
            self.to_give = Some(wanted).filter(|&wanted| wanted != self.given);
        }
    }
}

impl Host {
    /// Says how long the frames are that all cables of this machine carry, in bytes; `None` as long as none has carrier, when the
    /// MTU of the tap interface stays as it was.
    pub fn set_own_cables(&mut self, least: Option<u32>) {
        self.own_cables = least;
        self.follow_cables();
    }

    /// The MTU that the driver is to give the tap interface, if it is to have another. Once the interface has it,
    /// [`Self::tap_mtu_was_set`] is to be called.
    pub fn poll_tap_mtu(&mut self) -> Option<u32> {
        self.tap_mtu.as_mut()?.to_give.take()
    }

    /// Says that the tap interface has the MTU that [`Self::poll_tap_mtu`] asked for.
    pub fn tap_mtu_was_set(&mut self, mtu: u32) {
        self.change_tap_mtu(|tap| tap.give(mtu));
    }

    /// Takes in which MTU the tap interface was found with. Returns whether somebody else gave it that.
    pub fn handle_tap_mtu(&mut self, mtu: u32) -> bool {
        let mut is_of_others = false;
        self.change_tap_mtu(|tap| is_of_others = tap.found(mtu));
        is_of_others
    }

    /// The MTU of the tap interface, if this host has one.
    pub fn tap_mtu(&self) -> Option<&TapMtu> {
        self.tap_mtu.as_ref()
    }

    /// The longest frame that all cables of the fabric carry, as far as they are known, in bytes; `None` while no
    /// interface to it has carrier.
    pub fn least_cable(&self) -> Option<u32> {
        let own = self.own_cables?;
        let least = self.newest.as_ref().and_then(|(map, _)| least_of_map(map));
        Some(least.map_or(own, |least| least.min(own)))
    }

    /// Has the tap interface's MTU follow what the cables of this machine and those of the map carry.
    pub(super) fn follow_cables(&mut self) {
        let Some(least) = self.least_cable() else { return };
        let left = tap_mtu(least, self.route_options.max_hops);
        let is_settled = self.agent.status().network_complete;
        self.change_tap_mtu(|tap| tap.follow(left, || is_settled));
    }

    /// Changes what is known of the tap interface's MTU, and has the kernel path follow.
    fn change_tap_mtu(&mut self, change: impl FnOnce(&mut TapMtu)) {
        let Some(tap) = &mut self.tap_mtu else { return };
        let given = tap.given;
        change(tap);
        if let Some(kernel) = &mut self.kernel {
            kernel.set_tap_limit(tap.limit());
            if given != tap.given {
                kernel.put_too_long_again();
            }
        }
    }
}

/// The longest frame that all cables of a map carry between its hosts, in bytes; `None` if no host of it carries
/// users' frames.
fn least_of_map(map: &Map) -> Option<u32> {
    let longest = Some(map.frame_sizes.longest).filter(|&longest| longest > 0);
    map.narrow_ends().iter().map(|end| end.mtu).chain(longest).min().map(u32::from)
}

#[cfg(test)]
mod tests {
    use mapper_proto::map::{FrameSizes, Host, LinkMtu};
    use mapper_proto::{Mac, PortSet};

    use super::*;

    const SETTLED: fn() -> bool = || true;
    const IN_DOUBT: fn() -> bool = || false;

    /// What the driver is to give the interface.
    fn asked(mtu: &mut TapMtu, fits: u32, is_settled: fn() -> bool) -> Option<u32> {
        mtu.follow(Ok(fits), is_settled);
        mtu.to_give.take()
    }

    /// What the driver is to give the interface, which it then does.
    fn follow(mtu: &mut TapMtu, fits: u32, is_settled: fn() -> bool) -> Option<u32> {
        let wanted = asked(mtu, fits, is_settled);
        wanted.into_iter().for_each(|wanted| mtu.give(wanted));
        wanted
    }

    /// An interface for frames of 9000 bytes.
    fn jumbo() -> TapMtu {
        let mtu = TapMtu::new(9000, 11);
        assert_eq!(mtu.fits(), 8917);
        mtu
    }

    #[test]
    fn less_counts_at_once_and_more_once_it_is_settled() {
        let mut mtu = jumbo();
        assert_eq!(follow(&mut mtu, 8917, SETTLED), None);
        assert_eq!(follow(&mut mtu, 1417, IN_DOUBT), Some(1417));
        assert_eq!(follow(&mut mtu, 8917, IN_DOUBT), None);
        assert_eq!(mtu.fits(), 1417);
        assert_eq!(follow(&mut mtu, 8917, SETTLED), Some(8917));
        assert_eq!(follow(&mut mtu, 8917, SETTLED), None);
        assert!(!mtu.found(8917), "it was not somebody else");
    }

    #[test]
    fn what_the_user_chose_stays_as_long_as_cables_carry_it() {
        let mut mtu = jumbo();
        assert!(mtu.found(4000));
        assert_eq!(follow(&mut mtu, 8917, SETTLED), None);
        assert_eq!(follow(&mut mtu, 1417, SETTLED), Some(1417));
        assert_eq!(follow(&mut mtu, 8917, SETTLED), Some(4000));
        // Whoever gives it what cables carry, or more, leaves it to follow them.
        assert!(mtu.found(8917));
        assert_eq!(follow(&mut mtu, 1417, SETTLED), Some(1417));
        assert!(mtu.found(9000));
        assert_eq!(follow(&mut mtu, 1417, SETTLED), None, "the user is warned, and nobody fights over it");
        assert_eq!(follow(&mut mtu, 4000, SETTLED), Some(4000));
    }

    #[test]
    fn what_could_not_be_set_is_not_tried_again_and_may_be_set_by_the_user() {
        let mut mtu = jumbo();
        assert_eq!(asked(&mut mtu, 1417, SETTLED), Some(1417));
        assert_eq!(asked(&mut mtu, 1417, SETTLED), None);
        assert!(mtu.found(1417));
        assert_eq!(asked(&mut mtu, 8917, SETTLED), Some(8917));
        assert_eq!(asked(&mut mtu, 1417, SETTLED), None, "it has that still");
    }

    #[test]
    fn the_least_of_a_map_is_that_of_its_narrowest_cable() {
        let mac = Mac::from_position;
        let host = |n| Host { mac: mac(n), level: 1, host_type: 4, at: None };
        let map = |longest, less| Map {
            hosts: vec![host(2), host(1)],
            frame_sizes: FrameSizes { longest, less },
            ..Map::default()
        };
        assert_eq!(least_of_map(&map(0, vec![])), None);
        assert_eq!(least_of_map(&map(9000, vec![])), Some(9000));
        assert_eq!(
            least_of_map(&map(9000, vec![(mac(1), LinkMtu { bytes: 1500, ports: PortSet::NONE })])),
            Some(1500)
        );
    }
}
