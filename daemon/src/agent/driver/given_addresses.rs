//! The addresses that this process has given its tap interface, which it is to have as long as the process runs, and no others
//! of an earlier one.

use std::time::Duration;

use mapper_fabric::wording::with_causes;
use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::link::held_address::HeldAddress;
use mapper_machine::link::tap::{Tap, TapError};
use mapper_proto::{Instant, IpNetworkAddress};
use tracing::{info, warn};

/// The least time from one moment at which addresses are put back to the next, as somebody may take them away each time.
const PUT_BACK_EVERY: Duration = Duration::from_secs(1);

/// The addresses of the tap interface that this process gave it.
#[derive(Debug, Default)]
pub(super) struct GivenAddresses {
    all: Vec<InterfaceAddress>,
    /// When some were put back last.
    put_back_at: Option<Instant>,
    /// When to look again, as some are missing that were put back only just now.
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
        if let Some(again_at) = self.put_back_at.map(|at| at + PUT_BACK_EVERY).filter(|&at| now < at) {
            self.look_at = Some(again_at);
            return;
        }
        self.put_back_at = Some(now);
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

    /// When [`Self::put_back`] wants to be called again.
    pub(super) const fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// Why some are missing, in words.
    pub(super) fn warnings(&self) -> &[String] {
        &self.missing
    }
}
