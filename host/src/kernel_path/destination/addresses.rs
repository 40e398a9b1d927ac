//! The addresses of a host, and which of them are known to be at the end of its ways.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of a host that packets are sent to.
#[derive(Debug, Default)]
pub(in super::super) struct Addresses {
    /// The addresses that the host is known to have.
    told: Vec<IpAddr>,
    /// The addresses that it had when it last answered a probe, and has had ever since. While no address of it is known, these stay.
    proved: Vec<IpAddr>,
    /// The address of IPv4 that was told last to which probes of IPv4 went, or are to go.
    v4: Option<Ipv4Addr>,
}

/// What other addresses mean for what is known of the ways to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Taken {
    /// They are the same as before.
    Same,
    /// Some have come or gone, and what is at the end of the ways has others of them.
    Changed,
    /// What answered at the end of the ways has none of them, so they may be another host's. A host that had the MAC of
    /// another for a while tells its own addresses under it.
    Anothers,
}

impl Addresses {
    /// Takes in the host's addresses.
    pub(super) fn take(&mut self, told: Vec<IpAddr>) -> Taken {
        if self.told == told {
            return Taken::Same;
        }
        self.told = told;
        // The host answers probes of IPv4 at the first address that it tells. One that starts again tells its addresses one after
        // the other, and for a moment none of IPv4.
        self.v4 = self.first_v4().or(self.v4);
        let had_some = !self.proved.is_empty();
        if !self.told.is_empty() {
            self.proved.retain(|ip| self.told.contains(ip));
        }
        if had_some && self.proved.is_empty() { Taken::Anothers } else { Taken::Changed }
    }

    /// Takes in that the host has answered a probe, so its addresses are at the end of its ways. If none is known just now, those
    /// of before are.
    pub(super) fn prove(&mut self) {
        if !self.told.is_empty() && self.proved != self.told {
            self.proved.clone_from(&self.told);
        }
    }

    /// Of addresses that the host tells, and those that are known of it, what packets are sent to while nothing that is known
    /// is to be lost. Addresses of which none is known may be another host's, and nothing would find that out.
    pub(super) fn kept_beside(&self, told: Vec<IpAddr>) -> Vec<IpAddr> {
        let is_known = |ip: &IpAddr| self.told.contains(ip);
        let mut kept = if self.told.is_empty() || told.iter().any(is_known) { told } else { Vec::new() };
        let missing: Vec<IpAddr> = self.told.iter().filter(|ip| !kept.contains(ip)).copied().collect();
        kept.extend(missing);
        kept
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &IpAddr> {
        self.told.iter()
    }

    /// The address to which probes of IPv4 go: the first that the host tells, as it answers them there.
    pub(super) fn v4(&self) -> Option<Ipv4Addr> {
        self.v4.filter(|&ip| self.told.contains(&ip.into()))
    }

    /// The address of which it was last found out whether packets of IPv4 get there.
    pub(super) const fn last_v4(&self) -> Option<Ipv4Addr> {
        self.v4
    }

    fn first_v4(&self) -> Option<Ipv4Addr> {
        self.told.iter().find_map(|address| match address {
            IpAddr::V4(ip) => Some(*ip),
            IpAddr::V6(_) => None,
        })
    }

    /// The first address of IPv6, to which probes go.
    pub(super) fn first_v6(&self) -> Option<Ipv6Addr> {
        self.told.iter().find_map(|address| match address {
            IpAddr::V6(ip) => Some(*ip),
            IpAddr::V4(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(numbers: &[u8]) -> Vec<IpAddr> {
        numbers.iter().map(|&number| IpAddr::from([10, 1, 0, number])).collect()
    }

    /// What becomes of addresses that were proved, when these are told one after the other.
    fn taken(told: &[&[u8]]) -> Vec<Taken> {
        let mut all = Addresses::default();
        assert_eq!(all.take(addresses(&[1, 2])), Taken::Changed);
        all.prove();
        told.iter().map(|numbers| all.take(addresses(numbers))).collect()
    }

    #[test]
    fn addresses_are_anothers_if_none_of_those_that_were_proved_is_left() {
        assert_eq!(taken(&[&[1, 2]]), [Taken::Same]);
        assert_eq!(taken(&[&[2, 3]]), [Taken::Changed]);
        assert_eq!(taken(&[&[3]]), [Taken::Anothers]);
        // Whatever came beside one that was proved has not answered yet.
        assert_eq!(taken(&[&[2, 3], &[3]]), [Taken::Changed, Taken::Anothers]);
        // That nothing is known of a host for a moment says nothing of what is at the end of its ways.
        assert_eq!(taken(&[&[], &[2]]), [Taken::Changed, Taken::Changed]);
        assert_eq!(taken(&[&[], &[3]]), [Taken::Changed, Taken::Anothers]);
        let mut answered_late = Addresses::default();
        answered_late.take(addresses(&[1]));
        answered_late.prove();
        answered_late.take(Vec::new());
        answered_late.prove();
        assert_eq!(answered_late.take(addresses(&[2])), Taken::Anothers);
    }

    #[test]
    fn probes_of_ipv4_go_to_the_first_address_as_the_host_answers_them_there() {
        let mut all = Addresses::default();
        let v4 = |number: u8| Some(Ipv4Addr::new(10, 1, 0, number));
        let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
        let mut after = |told: Vec<IpAddr>| {
            all.take(told);
            (all.v4(), all.last_v4())
        };
        assert_eq!(after(vec![v6]), (None, None));
        assert_eq!(after(addresses(&[2, 3])), (v4(2), v4(2)));
        assert_eq!(
            after(addresses(&[1, 2])),
            (v4(1), v4(1)),
            "it has picked an address beside those of its ports, say"
        );
        assert_eq!(after(vec![v6]), (None, v4(1)), "it has just started again, say");
        assert_eq!(after(addresses(&[1, 2])), (v4(1), v4(1)));
        assert_eq!(after(addresses(&[2])), (v4(2), v4(2)));
    }

    #[test]
    fn where_nothing_known_is_to_be_lost_addresses_that_may_be_anothers_are_not_taken_in() {
        let mut all = Addresses::default();
        assert_eq!(all.kept_beside(addresses(&[1])), addresses(&[1]));
        all.take(addresses(&[1, 2]));
        assert_eq!(all.kept_beside(addresses(&[])), addresses(&[1, 2]));
        assert_eq!(all.kept_beside(addresses(&[3, 2])), addresses(&[3, 2, 1]));
        assert_eq!(all.kept_beside(addresses(&[3])), addresses(&[1, 2]));
    }
}
