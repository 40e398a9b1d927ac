//! The tap interface by which users send and receive.

use std::io;

use mapper_host::data::{DataStatus, tap_mtu};
use mapper_proto::Mac;
use tracing::{info, warn};

use crate::agent::DaemonError;
use crate::agent::options::Config;
use crate::agent::status;
use mapper_fabric::wording::with_causes;
use mapper_machine::link::address::InterfaceAddress;
use mapper_machine::link::interface::{Interface, InterfaceChange};
use mapper_machine::link::tap::Tap;

/// The host's Ethernet interface over the fabric.
pub(super) struct UserInterface {
    tap: Tap,
    mtu: u32,
    mac: Mac,
    /// The tap as the kernel described it last; `None` if it is gone.
    seen: Option<Interface>,
    /// The address that the fabric's prefix makes.
    by_prefix: Option<InterfaceAddress>,
    /// Why the tap does not have the address that the fabric's prefix makes, in words.
    without: Option<String>,
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
        for address in &config.addresses {
            tap.add_address(*address)?;
            info!(tap = name, %address, "the tap interface has its address");
        }
        let by_prefix = config.fabric_prefix.address_of(mac);
        let without = by_prefix.and_then(|address| tap.add_address(address).err());
        if let Some(error) = &without {
            // The user did not ask for this address, and IPv4 works without it.
            warn!("{}", with_causes(error));
        }
        info!(tap = name, mtu, "the tap interface is up");
        let seen = Interface::look_up(name)?;
        let without = without.map(|error| with_causes(&error));
        Ok(Some(Self { tap, mtu, mac, seen, by_prefix, without }))
    }

    /// Takes in a change of any interface of the machine; it need not be the tap.
    pub(super) fn apply(&mut self, change: &InterfaceChange) {
        let Some(seen) = &self.seen else { return };
        match change {
            InterfaceChange::Now(now) if now.index == seen.index => {
                // When an interface is set down, the kernel removes its IPv6 addresses and keeps those of
                // IPv4.
                if now.up && !seen.up {
                    self.give_address_again();
                }
                self.seen = Some(now.clone());
            }
            InterfaceChange::Gone { index } if *index == seen.index => self.seen = None,
            InterfaceChange::Now(_) | InterfaceChange::Gone { .. } => {}
            InterfaceChange::Missed => {
                if let Ok(now) = Interface::look_up(self.tap.name()) {
                    self.seen = now;
                }
            }
        }
    }

    /// Gives the interface the address of the fabric's prefix again, as far as this process may still do so: an agent
    /// that only carries frames has given up the privilege.
    fn give_address_again(&self) {
        let Some(address) = self.by_prefix else { return };
        let tap = self.tap.name();
        match self.tap.add_address(address) {
            Ok(()) => info!(tap, %address, "the tap interface was set up again and gets its address again"),
            Err(error) => warn!("{}; set it again, or restart the agent", with_causes(&error)),
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
    pub(super) fn warnings(&self) -> Vec<String> {
        let Some(seen) = &self.seen else { return Vec::new() };
        let (name, mtu, mac) = (self.tap.name(), self.mtu, self.mac);
        let Interface { name: now, .. } = seen;
        let found = [
            (now != name, format!("the tap interface {name} is called {now} now")),
            (!seen.up, format!("the tap interface is down; `ip link set {now} up`")),
            (
                seen.mtu > mtu,
                format!(
                    "the tap interface's MTU was set to {}, but only {mtu} bytes fit into a frame of the fabric: \
                     longer packets are lost; `ip link set {now} mtu {mtu}`",
                    seen.mtu
                ),
            ),
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
        found.chain(self.without.clone()).collect()
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

    /// What a board shows of the tap interface; `counters` are those of its frames.
    pub(super) fn status(&self, counters: DataStatus) -> status::Tap {
        status::Tap { name: self.tap.name().to_owned(), mtu: self.mtu, counters, refused: self.tap.refused() }
    }
}
