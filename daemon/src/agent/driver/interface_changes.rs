//! What becomes of a change of an interface or a carrier.

use std::future::pending;

use mapper_machine::link::interface::InterfaceChange;
use mapper_proto::PortSet;
use mapper_proto::map::LinkMtu;
use mapper_proto::wire::CrossbarKind;
use tokio::sync::watch;

use super::state::Driver;

impl Driver {
    /// Takes in a change of any interface.
    pub(super) fn apply(&mut self, change: &InterfaceChange) {
        if let Some(users) = &mut self.users {
            users.apply(change);
        }
        let changed = self.attachment.link.apply(change);
        if changed && self.attachment.link.carrier() {
            self.host.own_carrier_is_back(self.now());
        }
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
        self.follow_tap_mtu();
    }

    /// How long frames may be at this host, which other hosts are told; `None` if it carries no users'
    /// frames, or there is no interface.
    pub(super) fn mtu_said(&self) -> Option<LinkMtu> {
        self.users.as_ref().and_then(|_| self.attachment.link_mtu())
    }

    /// Tells the host which carriers of the node's own crossbar have changed.
    pub(super) fn follow_carriers(&mut self) {
        let now = self.now();
        let Some((carriers, before)) = &mut self.carriers else { return };
        let after = *carriers.borrow_and_update();
        let changes = before.changes_to(after);
        *before = after;
        let Some(tag) = self.own_tag() else { return };
        for (port, up) in changes {
            self.host.handle_carrier(now, tag, port, up);
        }
    }

    /// The tag of the node's own crossbar.
    pub(super) fn own_tag(&self) -> Option<u64> {
        match self.attachment.crossbar.as_ref().map(|switch| switch.kind()) {
            Some(CrossbarKind::Tagged { tag }) => Some(tag),
            Some(CrossbarKind::Plain) | None => None,
        }
    }
}

/// Waits until a carrier of the own crossbar changes, for ever if there is no crossbar.
pub(super) async fn carrier_changed(carriers: &mut Option<(watch::Receiver<PortSet>, PortSet)>) {
    if let Some((carriers, _)) = carriers
        && carriers.changed().await.is_ok()
    {
        return;
    }
    pending::<()>().await;
}
