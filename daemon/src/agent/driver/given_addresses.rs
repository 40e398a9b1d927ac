//! The addresses that this process has given its tap interface, which it is to have as long as the process runs, and no others
//! of an earlier one.

use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_host::directory::Directory;
use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::link::held_address::HeldAddress;
use mapper_machine::link::tap::{Tap, TapError};
use mapper_proto::{Instant, IpNetworkAddress};
use tracing::{info, warn};

/// In this time addresses are put back so often at most, as somebody may take them away each time. Who takes all away, does so
/// one by one, and each is put back as soon as that is told.
const PUT_BACK_WITHIN: (Duration, usize) = (Duration::from_secs(1), 2 * Directory::MOST_ADDRESSES);

/// The addresses of the tap interface that this process gave it.
#[derive(Debug, Default)]
pub(super) struct GivenAddresses {
    all: Vec<InterfaceAddress>,
    /// Since when put-backs are counted, and how often some were put back since.
    put_back: (Option<Instant>, usize),
    /// When to look again, as some are missing that were put back too often just now.
    look_at: Option<Instant>,
    /// Why some are missing, in words.
    missing: Vec<String>,
}

impl GivenAddresses {
    /// Gives the interface an address, which it is to keep.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn give(&mut self, tap: &Tap, address: InterfaceAddress) -> Result<(), TapError> {
        tap.add_address(address)?;
        self.keep(address);
        Ok(())
    }

    /// Has the interface get an address when that can be, as it is up, say.
    pub(super) fn keep(&mut self, address: InterfaceAddress) {
        if !self.all.contains(&address) {
            self.all.push(address);
        }
    }

    /// Takes an address away from the interface, for good.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn take_away(&mut self, tap: &Tap, address: InterfaceAddress) -> Result<(), TapError> {
        self.all.retain(|given| *given != address);
        tap.remove_address(address)
    }

    /// Takes away the addresses among `held` that a run of the daemon gave the interface and this one did not: an earlier run
    /// crashed, and its interface stayed. `may_stay` says which of them this run may want yet.
    pub(super) fn take_away_left(
        &self,
        tap: &Tap,
        held: &[HeldAddress],
        may_stay: impl Fn(IpNetworkAddress) -> bool,
    ) {
        let left = held.iter().filter(|held| held.index == tap.index() && held.is_ours);
        for address in left.map(|held| held.address).filter(|&address| !may_stay(address)) {
            let Some(address) = InterfaceAddress::new(address).filter(|it| !self.all.contains(it)) else {
                continue;
            };
            match tap.remove_address(address) {
                Ok(()) => {
                    info!(tap = tap.name(), %address, "took away an address that an earlier run had left");
                }
                Err(error) => warn!("{}", with_causes(&error)),
            }
        }
    }

    /// Puts back those that are not among `held`, which somebody took away.
    pub(super) fn put_back(&mut self, now: Instant, tap: &Tap, held: &[HeldAddress]) {
        self.look_at = None;
        let has = |address: InterfaceAddress| {
            held.iter().any(|held| held.index == tap.index() && held.address == address.into())
        };
        let lacking: Vec<_> = self.all.iter().copied().filter(|&address| !has(address)).collect();
        if lacking.is_empty() {
            self.missing.clear();
            return;
        }
        if let Err(again_at) = self.count_put_back(now) {
            self.look_at = Some(again_at);
            return;
        }
        let before = std::mem::take(&mut self.missing);
        for address in lacking {
            match tap.add_address(address) {
                Ok(()) => {
                    info!(tap = tap.name(), %address, "the tap interface had lost its address and gets it again");
                }
                Err(error) => {
                    let (name, causes) = (tap.name(), with_causes(&error));
                    let why =
                        format!("{causes}: `ip address add {address} dev {name}`, or restart the agent");
                    if !before.contains(&why) {
                        warn!("{why}");
                    }
                    self.missing.push(why);
                }
            }
        }
    }

    /// Counts that addresses are put back now. If that was done too often, it returns when it may be done again.
    fn count_put_back(&mut self, now: Instant) -> Result<(), Instant> {
        let (within, most) = PUT_BACK_WITHIN;
        match self.put_back {
            (Some(since), times) if now < since + within => {
                if times == most {
                    return Err(since + within);
                }
                self.put_back.1 += 1;
            }
            _ => self.put_back = (Some(now), 1),
        }
        Ok(())
    }

    /// When [`Self::put_back`] wants to be called again.
    pub(super) const fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// Why some are missing, in words.
    pub(super) fn warnings(&self) -> &[String] {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_put_back_at_once_but_not_without_end() {
        let mut given = GivenAddresses::default();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let (_, most) = PUT_BACK_WITHIN;
        assert!((0..most as u64).all(|ms| given.count_put_back(at(ms)).is_ok()));
        assert_eq!(given.count_put_back(at(999)), Err(at(1000)));
        assert_eq!(given.count_put_back(at(1000)), Ok(()));
    }
}
