//! The tap interface by which users send and receive.

use std::io;

use mapper_host::TapMtu;
use mapper_host::data::{DataStatus, tap_mtu};
use mapper_proto::{Instant, IpNetworkAddress, Mac};
use tracing::{info, warn};

use super::given_addresses::GivenAddresses;
use crate::agent::DaemonError;
use crate::agent::options::Config;
use crate::agent::status;
use mapper_fabric::wording::with_causes;
use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::link::held_address::HeldAddress;
use mapper_machine::link::interface::{Interface, InterfaceChange};
use mapper_machine::link::tap::{Tap, TapError};

/// The host's Ethernet interface over the fabric.
pub(super) struct UserInterface {
    tap: Tap,
    /// Why the tap does not have the MTU that the cables carry, in words.
    mtu_kept: Option<String>,
    mac: Mac,
    /// The tap as the kernel described it last; `None` if it is gone.
    seen: Option<Interface>,
    given: GivenAddresses,
}

impl UserInterface {
    /// Makes the tap interface for the host with this address and a link of this MTU, if the configuration
    /// names a tap interface.
    ///
    /// # Errors
    /// If the interface cannot be made, or the MTU leaves too little for IP.
    pub(super) fn open(config: &Config, mac: Mac, link_mtu: u32) -> Result<Option<Self>, DaemonError> {
        let Some(name) = &config.tap else { return Ok(None) };
        let mtu = tap_mtu(link_mtu, config.settings.max_hops as u8)?;
        let tap = Tap::create(name, mac, mtu)?;
        let mut given = GivenAddresses::default();
        for address in &config.addresses {
            given.give(&tap, *address)?;
            info!(tap = name, %address, "the tap interface has its address");
        }
        if let Some(address) = config.fabric_prefix.address_of(mac) {
            // The user did not ask for this address, and IPv4 works without it. It is tried again, and the board says why it is missing.
            if let Err(error) = given.give(&tap, address) {
                warn!("{}", with_causes(&error));
                given.keep(address);
            }
        }
        info!(tap = name, mtu, "the tap interface is up");
        let seen = Interface::look_up(name)?;
        Ok(Some(Self { tap, mtu_kept: None, mac, seen, given }))
    }

    /// Takes in a change of any interface of the machine; it need not be the tap.
    pub(super) fn apply(&mut self, change: &InterfaceChange) {
        let Some(seen) = &self.seen else { return };
        match change {
            InterfaceChange::Now(now) if now.index == seen.index => self.seen = Some(now.clone()),
            InterfaceChange::Gone { index } if *index == seen.index => self.seen = None,
            InterfaceChange::Now(_) | InterfaceChange::Gone { .. } => {}
            InterfaceChange::Missed => {
                if let Ok(now) = Interface::look_up(self.tap.name()) {
                    self.seen = now;
                }
            }
        }
    }

    /// Puts back addresses that the interface is to have, of which somebody took away some, if it is up: `held` are those of all
    /// interfaces. When one is set down, the kernel removes its addresses of IPv6.
    pub(super) fn put_addresses_back(&mut self, now: Instant, held: &[HeldAddress]) {
        if self.seen.as_ref().is_some_and(|seen| seen.up) {
            self.given.put_back(now, &self.tap, held);
        }
    }

    /// The addresses that this process gave the interface.
    pub(super) const fn given(&self) -> &GivenAddresses {
        &self.given
    }

    /// Gives the interface an address, which it is to keep.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn give(&mut self, address: InterfaceAddress) -> Result<(), TapError> {
        self.given.give(&self.tap, address)
    }

    /// Takes an address away from the interface, for good.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn take_away(&mut self, address: InterfaceAddress) -> Result<(), TapError> {
        self.given.take_away(&self.tap, address)
    }

    /// Takes away the addresses of the interface that an earlier run, which crashed, gave it and this one did not, as far as
    /// they `may_go`.
    pub(super) fn take_away_left(&self, may_go: impl Fn(IpNetworkAddress) -> bool) {
        match HeldAddress::all() {
            Ok(held) => self.given.take_away_left(&self.tap, &held, |address| !may_go(address)),
            Err(error) => warn!("addresses that an earlier run left stay: {}", with_causes(&error)),
        }
    }

    /// The MTU that the interface has, if it was seen with another one than it was `given`. It is looked up again: what was seen may
    /// be of the time before, and must not be taken for the user's choice.
    pub(super) fn other_mtu_than(&mut self, given: u32) -> Option<u32> {
        let seen = self.seen.as_mut().filter(|seen| seen.mtu != given)?;
        let now = Interface::look_up(&seen.name).ok()??;
        if seen.index != now.index {
            return None;
        }
        seen.mtu = now.mtu;
        Some(now.mtu)
    }

    /// Takes in that somebody gave the interface this MTU.
    pub(super) fn mtu_is_of_others(&mut self, mtu: u32) {
        self.mtu_kept = None;
        info!(tap = self.tap.name(), mtu, "somebody gave the tap interface another MTU");
    }

    /// Gives the interface the MTU that all cables carry. Returns whether it has it now.
    pub(super) fn set_mtu(&mut self, mtu: u32) -> bool {
        match self.tap.set_mtu(mtu) {
            Ok(()) => {
                info!(tap = self.tap.name(), mtu, "the tap interface gets the MTU that all cables carry");
                self.mtu_kept = None;
                self.seen.iter_mut().for_each(|seen| seen.mtu = mtu);
                true
            }
            Err(error) => {
                self.mtu_kept = Some(with_causes(&error));
                false
            }
        }
    }

    /// What is wrong with the tap interface's MTU, in words. It is called `name`, and was seen with the MTU `now`.
    fn mtu_warning(&self, mtu: &TapMtu, name: &str, now: u32) -> Option<String> {
        let fits = mtu.fits();
        let set = format!("`ip link set {name} mtu {fits}`");
        match (mtu.too_small(), &self.mtu_kept) {
            (Some(why), _) => Some(format!("packets of the tap interface may be lost: {why}")),
            (None, Some(why)) if now != fits => Some(format!(
                "the tap interface's MTU is {now}, and the cables of the fabric carry packets of {fits} bytes, but \
                 this process could not set it: {why}; {set}"
            )),
            (None, None) if now > fits => Some(format!(
                "the tap interface's MTU was set to {now}, but only {fits} bytes fit into a frame that all cables of \
                 the fabric carry: longer packets may be lost; {set}"
            )),
            _ => None,
        }
    }

    /// The tap interface.
    pub(super) const fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Whether somebody removed the tap interface.
    pub(super) const fn is_gone(&self) -> bool {
        self.seen.is_none()
    }

    /// What others did to the tap interface that keeps frames from passing, in words.
    pub(super) fn warnings(&self, mtu: &TapMtu) -> Vec<String> {
        let Some(seen) = &self.seen else { return Vec::new() };
        let (name, mac) = (self.tap.name(), self.mac);
        let Interface { name: now, .. } = seen;
        let found = [
            (now != name, format!("the tap interface {name} is called {now} now")),
            (!seen.up, format!("the tap interface is down; `ip link set {now} up`")),
            (
                seen.mac != mac,
                format!(
                    "the tap interface's address was changed to {}, but others reach this host by {mac}: nothing \
                     passes; `ip link set {now} address {mac}`",
                    seen.mac
                ),
            ),
            (
                seen.master.is_some(),
                format!(
                    "the tap interface is a port of a bridge or bond: frames of others behind it are dropped; \
                     `ip link set {now} nomaster`"
                ),
            ),
        ];
        let found = found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, warning)| warning);
        found
            .chain(self.mtu_warning(mtu, now, seen.mtu))
            .chain(self.given.warnings().iter().cloned())
            .collect()
    }

    /// Waits until the user has a frame to send.
    pub(super) async fn ready(&self) -> io::Result<()> {
        self.tap.ready().await
    }

    /// Reads the next frame that the user has to send into `buffer`, which has room for the longest. The
    /// caller must send it: the kernel does not give it a second time.
    pub(super) fn try_read<'a>(&self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let bytes = self.tap.try_read(buffer).ok()?;
        Some(&buffer[..bytes])
    }

    /// Hands the kernel a frame for the user, at the latest with [`Self::flush`].
    pub(super) fn queue(&self, ethernet: &[u8]) {
        self.tap.queue(ethernet);
    }

    /// Hands the kernel what was queued. The caller does so when no more frames have arrived.
    pub(super) fn flush(&self) {
        self.tap.flush();
    }

    /// What a board shows of the tap interface, which was given this MTU last; `counters` are those of its frames.
    pub(super) fn status(&self, given_mtu: u32, counters: DataStatus) -> status::Tap {
        let mtu = self.seen.as_ref().map_or(given_mtu, |seen| seen.mtu);
        status::Tap { name: self.tap.name().to_owned(), mtu, counters, refused: self.tap.refused() }
    }
}
