//! Packets that reach a host that once had its address taken by the one they are for.
//!
//! A host that has the address of another tells its own addresses of IP under it. When each has its own address again, some
//! hosts may hear of that record only then, and send packets for the one to the other. The other one raises its own
//! record above the false one as soon as it hears of it, so this must soon be over.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use mapper_proto::Instant;

/// How long packets of a host may go to the wrong one after the first that did.
const FALSELY_TOLD: Duration = Duration::from_millis(250);

/// Since when packets of a host to an address go to the wrong one.
#[derive(Debug, Default)]
pub(in crate::world) struct Astray {
    since: BTreeMap<(u32, IpAddr), Instant>,
}

impl Astray {
    /// Takes in that a packet from a host reached another than the one with the address `meant`. Returns whether that
    /// has gone on for longer than it may.
    pub(super) fn is_too_long(&mut self, now: Instant, from: u32, meant: IpAddr) -> bool {
        let since = *self.since.entry((from, meant)).or_insert(now);
        now > since + FALSELY_TOLD
    }

    /// Takes in that a packet from a host reached the one with the address `meant`.
    pub(in crate::world) fn arrived(&mut self, from: u32, meant: IpAddr) {
        self.since.remove(&(from, meant));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_may_go_astray_for_a_moment_and_once_they_arrive_for_another_one() {
        let mut astray = Astray::default();
        let meant = "10.77.0.2".parse().unwrap();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        assert!(!astray.is_too_long(at(1000), 2, meant));
        assert!(!astray.is_too_long(at(1250), 2, meant));
        assert!(astray.is_too_long(at(1251), 2, meant));
        assert!(!astray.is_too_long(at(1251), 3, meant), "another sender's are others");
        astray.arrived(2, meant);
        assert!(!astray.is_too_long(at(1400), 2, meant));
    }
}
