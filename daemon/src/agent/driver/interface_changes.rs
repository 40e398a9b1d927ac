//! What becomes of a change of an interface or a carrier.

use std::future::pending;

use mapper_host::OwnCrossbar;
use mapper_machine::link::interface::InterfaceChange;
use mapper_proto::PortSet;
use mapper_proto::map::LinkMtu;
use tokio::sync::watch;

use super::state::Driver;

impl Driver {
    /// Takes in a change of any interface.
    pub(super) fn apply(&mut self, change: &InterfaceChange) {
        if let Some(users) = &mut self.users {
            users.apply(change);
        }
        self.look_at_tap_mtu();
        self.attachment.link.apply(change);
        self.host.handle_own_carrier(self.now(), self.attachment.link.carrier());
        if let Some(switch) = &self.attachment.crossbar {
            switch.apply(change);
        }
        self.follow_carriers();
        self.follow_neighbours();
        if let Ok(side) = &mut self.kernel {
            side.forwarding.look_soon();
        }
        self.follow_mtu();
        self.follow_rates();
        self.followers.changed();
    }

    /// Tells the host how long frames may be now, and has the tap interface follow. As long as no interface has carrier all
    /// stays as it was, as nobody knows then by which cables frames will go.
    pub(super) fn follow_mtu(&mut self) {
        if let Some(mtu) = self.mtu_said().filter(|_| self.attachment.least_cable().is_some()) {
            self.host.set_mtu(self.now(), mtu);
        }
        self.follow_own_cables();
    }

    /// Tells the host what the cables of this machine carry.
    pub(super) fn follow_own_cables(&mut self) {
        self.host.set_own_cables(self.attachment.least_cable());
    }

    /// Tells the host if somebody gave the tap interface another MTU.
    fn look_at_tap_mtu(&mut self) {
        let (Some(users), Some(mtu)) = (&mut self.users, self.host.tap_mtu()) else { return };
        if let Some(found) = users.other_mtu_than(mtu.given())
            && self.host.handle_tap_mtu(found)
        {
            users.mtu_is_of_others(found);
        }
    }

    /// Gives the tap interface the MTU that the host wants it to have.
    pub(super) fn set_tap_mtu(&mut self) {
        while let (Some(users), Some(mtu)) = (&mut self.users, self.host.poll_tap_mtu()) {
            if users.set_mtu(mtu) {
                self.host.tap_mtu_was_set(mtu);
            }
        }
    }

    /// How long frames may be at this host, which other hosts are told; `None` if it carries no users'
    /// frames, or there is no interface.
    pub(super) fn mtu_said(&self) -> Option<LinkMtu> {
        self.users.as_ref().and_then(|_| self.attachment.link_mtu())
    }

    /// Tells the host the carriers of the node's own crossbar.
    pub(super) fn follow_carriers(&mut self) {
        let (Some(carriers), Some(tag)) = (&mut self.carriers, self.attachment.tag()) else { return };
        let carriers = *carriers.borrow_and_update();
        let crossbar = OwnCrossbar { tag, ports: self.attachment.ports(), carriers };
        self.host.handle_carriers(self.clock.now(), Some(crossbar));
    }
}

/// Waits until a carrier of the own crossbar changes, for ever if there is no crossbar.
pub(super) async fn carrier_changed(carriers: &mut Option<watch::Receiver<PortSet>>) {
    if let Some(carriers) = carriers
        && carriers.changed().await.is_ok()
    {
        return;
    }
    pending::<()>().await;
}
