//! Keeps the names of the fabric's hosts in the file of hosts' names.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use mapper_host::directory::Directory;
use mapper_proto::{IpNetworkAddress, Mac};

use super::state::Driver;
use crate::hosts_file::KeptHost;

/// How long after a name or an address came the file is written, as many come at a time.
const WRITE_AFTER: Duration = Duration::from_millis(200);

impl Driver {
    /// Takes in that names or addresses have changed, and has the file written soon, if there is one.
    pub(super) fn write_hosts_soon(&mut self) {
        if self.hosts_file.is_some() && self.write_hosts_at.is_none() {
            self.write_hosts_at = Some(self.now() + WRITE_AFTER);
        }
    }

    /// Has the file written if that is due.
    pub(super) fn write_hosts_if_due(&mut self) {
        if self.write_hosts_at.is_none_or(|at| at > self.now()) {
            return;
        }
        self.write_hosts_at = None;
        if let Some(file) = &self.hosts_file {
            file.keep(entries(self.host.directory(), self.host.own()));
        }
    }
}

/// The entries of the file: the hosts of the map that have a name and an address that no other host has.
fn entries(directory: &Directory, own: Mac) -> Vec<KeptHost> {
    let clashing: BTreeSet<IpAddr> = directory.clashes().map(|clash| clash.ip).collect();
    let entry = |mac: Mac| {
        let all = directory.addresses_of(mac).iter().map(IpNetworkAddress::ip);
        let addresses: Vec<_> = all.filter(|ip| !clashing.contains(ip)).collect();
        let name = directory.name_of(mac)?.to_string();
        (!addresses.is_empty()).then_some(KeptHost { name, addresses, is_own: mac == own })
    };
    directory.hosts().filter_map(entry).collect()
}
