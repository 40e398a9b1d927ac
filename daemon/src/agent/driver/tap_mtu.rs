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

use mapper_host::data::tap_mtu;
use mapper_proto::map::Map;

use super::state::Driver;

/// What the tap interface's MTU is to be, and what it was set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TapMtu {
    /// The longest packet that all cables carry in a frame, in bytes.
    fits: u32,
    /// What the interface was to have when that was last settled, so that nothing is tried again and again.
    wanted: u32,
    /// What this process gave the interface last, or found it to have.
    given: u32,
    /// What the user gave the interface, if that is less than what all cables carry.
    by_user: Option<u32>,
}

impl TapMtu {
    /// The state of an interface that was made with this MTU, in bytes.
    pub(super) const fn new(mtu: u32) -> Self {
        Self { fits: mtu, wanted: mtu, given: mtu, by_user: None }
    }

    /// The longest packet that all cables carry in a frame, in bytes.
    pub(super) const fn fits(&self) -> u32 {
        self.fits
    }

    /// What this process gave the interface last, or found it to have, in bytes.
    pub(super) const fn given(&self) -> u32 {
        self.given
    }

    /// Takes in that this process gave the interface this MTU.
    pub(super) const fn give(&mut self, mtu: u32) {
        self.given = mtu;
    }

    /// Takes in which MTU the interface was found with. Returns whether somebody else gave it that. One that is smaller
    /// than what cables carry stays, as the user chose it.
    pub(super) fn found(&mut self, mtu: u32) -> bool {
        if std::mem::replace(&mut self.given, mtu) == mtu {
            return false;
        }
        self.by_user = Some(mtu).filter(|&mtu| mtu < self.fits);
        self.wanted = self.by_user.unwrap_or(self.fits);
        true
    }

    /// Takes in that the longest packets that all cables carry have `fits` bytes now. Less counts at once, and more once
    /// `is_settled` says that it will stay. Returns what to give the interface, if that is something else now.
    pub(super) fn follow(&mut self, fits: u32, is_settled: impl FnOnce() -> bool) -> Option<u32> {
        if fits < self.fits || fits > self.fits && is_settled() {
            self.fits = fits;
        }
        let wanted = self.by_user.map_or(self.fits, |chosen| chosen.min(self.fits));
        (std::mem::replace(&mut self.wanted, wanted) != wanted && wanted != self.given).then_some(wanted)
    }
}

impl Driver {
    /// Gives the tap interface the MTU that all cables carry, if that is something else now.
    pub(super) fn follow_tap_mtu(&mut self) {
        let Some(least) = self.least_cable() else { return };
        let (agent, max_hops) = (self.host.agent(), self.config.settings.max_hops as u8);
        let Some(users) = &mut self.users else { return };
        let is_other = users.follow_cables(tap_mtu(least, max_hops), || agent.status().network_complete);
        self.host.set_tap_limit(users.limit());
        if is_other && let (Ok(side), Some(path)) = (&mut self.kernel, self.host.kernel_path()) {
            side.forwarding.put_too_long_again(&path.wanted());
        }
    }

    /// The longest frame that all cables of the fabric carry, as far as they are known, in bytes; `None` while no
    /// interface to it has carrier.
    pub(super) fn least_cable(&self) -> Option<u32> {
        let own = self.attachment.least_cable()?;
        let least = self.host.newest_map().and_then(|map| least_of_map(map));
        Some(least.map_or(own, |least| least.min(own)))
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

    /// What to give the interface, which is then given it.
    fn follow(mtu: &mut TapMtu, fits: u32, is_settled: fn() -> bool) -> Option<u32> {
        let wanted = mtu.follow(fits, is_settled);
        wanted.into_iter().for_each(|wanted| mtu.give(wanted));
        wanted
    }

    #[test]
    fn less_counts_at_once_and_more_once_it_is_settled() {
        let mut mtu = TapMtu::new(8917);
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
        let mut mtu = TapMtu::new(8917);
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
        let mut mtu = TapMtu::new(8917);
        assert_eq!(mtu.follow(1417, SETTLED), Some(1417));
        assert_eq!(mtu.follow(1417, SETTLED), None);
        assert!(mtu.found(1417));
        assert_eq!(mtu.follow(8917, SETTLED), Some(8917));
        assert_eq!(mtu.follow(1417, SETTLED), None, "it has that still");
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
