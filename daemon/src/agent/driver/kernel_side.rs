//! The kernel as the way of users' packets: installs what the host wants the kernel to hold, and carries
//! probes.

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::IpAddr;

use mapper_fabric::wording::with_causes;
use mapper_host::kernel_path::{CarriedRoute, KernelPath, KernelStart, LeftRoutes};
use mapper_machine::kernel::probing::{Arrived, EndedHop};
use mapper_proto::Instant;
use mapper_proto::neighbours::Neighbour;
use mapper_proto::wire::HelloFlags;
use tokio::sync::watch;
use tracing::{info, warn};

use super::attachment::Attachment;
use super::state::Driver;
use crate::agent::DaemonError;
use crate::agent::options::Config;
use crate::agent::status::DataPath;
use crate::xbar::forwarding::{Forwarding, KernelUse, Opened, take_away_what_is_left};
use crate::xbar::port_interfaces::{look_up, too_small};
use probes::Probes;

mod counts;
mod probes;

/// The kernel, and all that is needed to use it for users' packets.
#[derive(Debug)]
pub(super) struct KernelSide {
    pub(super) forwarding: Box<Forwarding>,
    /// What the neighbours were last told of this kernel; `None` before they are.
    said: Option<HelloFlags>,
    /// Who is at the other ends of the cables.
    neighbours: watch::Receiver<BTreeMap<u8, Neighbour>>,
    /// At which interfaces the kernel carries nothing for their MTU, in words.
    too_small: Option<String>,
    /// When the packets that the kernel sent are counted next.
    count_at: Instant,
    probes: Probes,
}

impl KernelSide {
    /// What keeps packets from the ways through the kernels on this machine, in words.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        [self.too_small.clone(), self.probes.forbidden()].into_iter().flatten()
    }

    /// Opens the kernel if users' packets may go by it, and otherwise says why not, in words. It needs
    /// `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the user chose what this kernel cannot do.
    pub(super) fn open(
        config: &Config,
        attachment: &Attachment,
    ) -> Result<Result<Self, String>, DaemonError> {
        let record = config.service.run_dir.join(format!("{}.kernel", config.unit));
        if config.tap.is_none() {
            take_away_what_is_left(&record);
            return Ok(Err("this host carries no users' frames".to_owned()));
        }
        let forwards = attachment.crossbar.is_some();
        let neighbours = attachment.hellos.neighbours();
        let wanted =
            KernelUse { choice: config.data_path, avoid: config.kernel_avoid.clone(), forwards, sends: true };
        Ok(match Forwarding::open(wanted, &record)? {
            Opened::Used(forwarding) => Ok(Self {
                forwarding,
                said: None,
                neighbours,
                too_small: None,
                count_at: Instant::ZERO,
                probes: Probes::default(),
            }),
            Opened::NotUsed(why) => Err(why),
        })
    }
}

/// What the kernel has to say.
pub(super) enum FromKernel {
    /// Neighbours came or went.
    Neighbours,
    /// It is time to compare what the kernel holds with what it is to hold.
    Recheck,
    /// A datagram of a probe arrived.
    Datagram(Arrived),
    /// A hop limit ended somewhere; `None` if it was that of no probe.
    EndedHop(Option<EndedHop>),
    /// A socket of probes cannot be read.
    Failed(io::Error),
}

/// Waits until the kernel has something to say, for ever if it is not used.
pub(super) async fn from_kernel(
    side: &mut Result<KernelSide, String>,
    path: Option<&KernelPath>,
) -> FromKernel {
    let (Ok(side), Some(path)) = (side, path) else { return pending().await };
    let KernelSide { forwarding, neighbours, probes, .. } = side;
    tokio::select! {
        changed = neighbours.changed() => match changed {
            Ok(()) => FromKernel::Neighbours,
            Err(_) => pending().await,
        },
        () = forwarding.recheck_due(|| path.wanted()) => FromKernel::Recheck,
        arrived = probes.arrived() => match arrived {
            Ok(arrived) => FromKernel::Datagram(arrived),
            Err(error) => FromKernel::Failed(error),
        },
        ended = probes.ended_hop() => match ended {
            Ok(ended) => FromKernel::EndedHop(ended),
            Err(error) => FromKernel::Failed(error),
        },
    }
}

impl Driver {
    /// Says to the host and to neighbours what the kernel can do.
    pub(super) fn begin_with_kernel(&mut self, seed: u64) {
        self.keep_tap(self.kernel.is_ok());
        let now = self.now();
        let (Ok(side), Some(users)) = (&mut self.kernel, &self.users) else { return self.tell_data_path() };
        let (tap, prefix) = (users.tap().index(), self.config.fabric_prefix);
        side.forwarding.set_tap(tap);
        let left = LeftRoutes::of(side.forwarding.take_found(), |ip| prefix.mac_of(ip));
        let agent_port = self.attachment.crossbar.as_ref().map(|_| self.attachment.outer.agent_port());
        let abilities = side.forwarding.abilities();
        self.host.use_kernel(now, KernelStart { seed, tap, left, abilities, agent_port });
        self.say_flags();
        self.tell_data_path();
    }

    /// Logs what users' packets go by, if that is another way than was logged last.
    fn tell_data_path(&mut self) {
        let Some(DataPath { kind, why, .. }) = self.data_path() else { return };
        if self.told_data_path != kind {
            info!("users' packets go by {kind}: {why}");
            self.told_data_path = kind;
        }
    }

    /// Tells the neighbours at all ports what this kernel does with packets, if it is not what they were told last.
    fn say_flags(&mut self) {
        let (Ok(side), Some(path)) = (&mut self.kernel, self.host.kernel_path()) else { return };
        let flags = path.hello_flags();
        if side.said.replace(flags) == Some(flags) {
            return;
        }
        self.attachment.hellos.set_flags(flags);
    }

    /// Acts on what the kernel has said.
    pub(super) fn take_from_kernel(&mut self, said: FromKernel) {
        match said {
            FromKernel::Neighbours => self.follow_neighbours(),
            FromKernel::Recheck => self.recheck_kernel(),
            FromKernel::Datagram(Arrived { bytes, len, from, arrived_ns }) => {
                let answer =
                    self.host.handle_kernel_datagram(self.now(), from.ip(), (&bytes[..len], arrived_ns));
                if let (Some(answer), Ok(side)) = (answer, &mut self.kernel) {
                    side.probes.answer(&answer, from);
                }
            }
            FromKernel::EndedHop(ended) => {
                if let Some(EndedHop { nonce, at }) = ended {
                    self.host.handle_kernel_hop_limit(self.now(), nonce, at);
                }
            }
            FromKernel::Failed(error) => {
                warn!(%error, "cannot hear of probes through the kernel");
                if let Ok(side) = &mut self.kernel {
                    side.probes.close();
                }
                self.host.set_v4_probes_from(self.clock.now(), None);
            }
        }
    }

    /// Takes in who is at the other ends of the cables, and how the ports are now.
    pub(super) fn follow_neighbours(&mut self) {
        let now = self.now();
        let Ok(side) = &mut self.kernel else { return };
        let heard = side.neighbours.borrow_and_update().clone();
        let interfaces = look_up(self.attachment.outer.interfaces());
        side.too_small = too_small(&interfaces);
        side.forwarding.keep_settings_of(&interfaces);
        self.host.set_kernel_interfaces(now, &interfaces, &heard);
    }

    /// Has the kernel hold what the host wants.
    pub(super) fn serve_kernel(&mut self) {
        let Ok(side) = &mut self.kernel else { return };
        let changes = self.host.take_kernel_changes();
        side.forwarding.carry_out(&changes);
        if self.host.poll_kernel_read() {
            self.read_kernel();
        }
        if !changes.is_empty() {
            self.put_off_rest();
            self.tell_data_path();
        }
        self.say_flags();
    }

    /// Sends the probes of the kernel's ways that are due.
    pub(super) fn send_kernel_probes(&mut self) {
        let Ok(side) = &mut self.kernel else { return };
        while let Some(sent) = self.host.poll_kernel_probe() {
            side.probes.send(self.clock.now(), &sent);
        }
    }

    /// Opens the sockets of probes as soon as this host has addresses, so that it answers those of others.
    pub(super) fn answer_probes(&mut self) {
        let now = self.now();
        let Ok(side) = &mut self.kernel else { return };
        let own = self.host.directory().addresses_of(self.host.own());
        let (mut v4, mut v6) = (None, None);
        for address in own {
            match address.ip() {
                IpAddr::V4(ip) => v4 = v4.or(Some(ip)),
                IpAddr::V6(ip) => v6 = v6.or(Some(ip)),
            }
        }
        if let Some(own) = v6 {
            side.forwarding.keep_outer_source(own);
        }
        let from = side.probes.open(v4, v6);
        self.host.set_v4_probes_from(now, from);
    }

    /// Looks again what others may have changed: who the neighbours are, as those are given up that have been silent for long, and what
    /// the kernel holds.
    fn recheck_kernel(&mut self) {
        self.follow_neighbours();
        self.read_kernel();
    }

    /// Compares what the kernel holds with what it is to hold.
    fn read_kernel(&mut self) {
        let (Ok(side), Some(path)) = (&mut self.kernel, self.host.kernel_path()) else { return };
        let wanted = path.wanted();
        side.forwarding.recheck(&wanted, |there| self.host.handle_kernel_contents(there).unwrap_or_default());
    }

    /// Takes away what was installed in the kernel.
    pub(super) fn leave_kernel(&mut self) {
        if let Ok(side) = std::mem::replace(&mut self.kernel, Err("the daemon ends".to_owned())) {
            let keep = self.config.keep_routes;
            if keep {
                info!("the routes in the kernel stay, as keep-routes says");
            }
            side.forwarding.close(keep);
            self.keep_tap(keep);
        }
    }

    /// Sets whether the tap interface stays with its addresses when this process ends. After a crash the
    /// kernel goes on by its routes only as long as their source address is there.
    fn keep_tap(&self, stays: bool) {
        if let Some(Err(error)) = self.users.as_ref().map(|users| users.tap().set_persistent(stays)) {
            warn!("{}", with_causes(&error));
        }
    }
}

impl Driver {
    /// The routes that the kernel sends users' packets along, and how many have taken each.
    pub(super) fn carried_routes(&self) -> Vec<CarriedRoute> {
        match (&self.kernel, self.host.kernel_path()) {
            (Ok(_), Some(path)) => path.routes().collect(),
            _ => Vec::new(),
        }
    }

    /// What the board shows of the way of users' packets; `None` without a tap interface.
    pub(super) fn data_path(&self) -> Option<DataPath> {
        self.users.as_ref()?;
        Some(match (&self.kernel, self.host.kernel_status()) {
            (Ok(side), Some(path)) => {
                let forwarding = &side.forwarding;
                DataPath::of_kernel(forwarding.choice(), &path, forwarding.status(), |mac| self.called(mac))
            }
            (Ok(_), None) => DataPath::tap("the kernel is not used"),
            (Err(why), _) => DataPath::tap(why),
        })
    }
}
