//! The kernel of a machine that is a crossbar and nothing else: its ports obey segments.

use std::collections::BTreeMap;
use std::future::pending;

use mapper_fib::crossbar::{Delivery, Role, by_segments};
use mapper_fib::segments::Packing;
use mapper_fib::takeover::TakingOver;
use mapper_fib::{Objects, changes};
use mapper_host::kernel_path::CabledPorts;
use mapper_proto::neighbours::Neighbour;
use mapper_proto::wire::HelloFlags;
use tokio::sync::watch;
use tracing::warn;

use super::data_path::XbarDataPath;
use super::forwarding::{Forwarding, ForwardingError, KernelUse, Opened, take_away_what_is_left};
use super::port_interfaces::{look_up, too_small};
use super::process::{XbarConfig, XbarKind};
use super::switch::Switch;
use mapper_machine::clock::Clock;
use mapper_machine::kernel::Ability;
use mapper_machine::options::DataPathChoice;

/// The kernel as a crossbar of users' packets.
#[derive(Debug)]
pub(super) struct KernelCrossbar {
    forwarding: Box<Forwarding>,
    /// Who is at the other ends of the cables.
    neighbours: watch::Receiver<BTreeMap<u8, Neighbour>>,
    cabled_ports: CabledPorts,
    /// At which interfaces the kernel carries nothing for their MTU, in words.
    too_small: Option<String>,
    /// What an earlier run left stays for a while. As a crossbar without an agent sends no packets of its own, these are no ways to
    /// hosts.
    taking_over: TakingOver,
    clock: Clock,
    /// What the kernel is to hold.
    wanted: Objects,
    /// Whether ports or neighbours have changed since it was derived.
    stale: bool,
}

impl KernelCrossbar {
    /// Opens the kernel if users' packets may go by it, and otherwise says why not, in words. Needs
    /// `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the user chose what the kernel cannot do.
    pub(super) fn open(
        config: &XbarConfig,
        switch: &Switch,
    ) -> Result<Result<Self, String>, ForwardingError> {
        let choice = config.data_path;
        let record = config.service.run_dir.join(format!("xbar-{}.kernel", config.name));
        if config.kind == XbarKind::Plain && choice != DataPathChoice::Tap {
            let why = "the ports of a plain crossbar have no numbers, so no segment names one; without `--kind plain` \
                       it is tagged";
            take_away_what_is_left(&record);
            return Ok(Err(why.to_owned()));
        }
        let wanted = KernelUse { choice, avoid: config.kernel_avoid.clone(), forwards: true, sends: false };
        let mut forwarding = match Forwarding::open(wanted, &record)? {
            Opened::Used(forwarding) => forwarding,
            Opened::NotUsed(why) => return Ok(Err(why)),
        };
        if !forwarding.segments() {
            // From here on other daemons may use the kernel.
            drop(forwarding);
            take_away_what_is_left(&record);
            return Ok(Err(why_no_segments(config).to_owned()));
        }
        let hellos = switch.hellos();
        // It knows no destinations.
        hellos.set_flags(HelloFlags::of_segments(forwarding.segments(), forwarding.compressed()));
        let neighbours = hellos.neighbours();
        let clock = Clock::start();
        Ok(Ok(Self {
            taking_over: TakingOver::begin(clock.now(), &forwarding.take_found()),
            forwarding,
            neighbours,
            cabled_ports: CabledPorts::default(),
            too_small: None,
            clock,
            wanted: Objects::default(),
            stale: true,
        }))
    }

    /// Takes in that some interface of the machine has changed.
    pub(super) fn interfaces_changed(&mut self) {
        self.stale = true;
        self.forwarding.look_soon();
    }

    /// Has the kernel hold what these ports and their neighbours ask for, if something has changed.
    pub(super) fn follow(&mut self, interfaces: impl IntoIterator<Item = (u8, String)>) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let joined = self.neighbours.borrow_and_update().clone();
        let interfaces = look_up(interfaces);
        let too_small = too_small(&interfaces);
        if let Some(words) = too_small.as_ref().filter(|_| too_small != self.too_small) {
            warn!("{words}");
        }
        self.too_small = too_small;
        let cabled = self.cabled_ports.look(self.clock.now(), &interfaces, &joined);
        self.forwarding.keep_settings_of(&interfaces);
        let ports: Vec<_> = cabled.into_iter().map(|port| port.cabled).collect();
        let packing = Packing::closest(self.forwarding.compressed());
        let wanted = by_segments(&ports, Role::Crossbar, Delivery::default(), packing);
        self.forwarding.carry_out(&changes(&self.wanted, &wanted));
        self.wanted = wanted;
    }

    /// What the status tells of it.
    fn data_path(&self) -> XbarDataPath {
        let Self { forwarding, wanted, too_small, .. } = self;
        let mut path = XbarDataPath::of_kernel(forwarding.choice(), wanted.len(), forwarding.status());
        path.troubles.extend(too_small.clone());
        path
    }

    /// Takes away what was installed.
    pub(super) fn close(self) {
        self.forwarding.close(false);
    }
}

/// Why segments are not used.
fn why_no_segments(config: &XbarConfig) -> &'static str {
    match config.kernel_avoid.contains(&Ability::Segments) {
        true => "kernel-avoid names segments",
        false => {
            "the kernel of this machine has no SRv6 (CONFIG_IPV6_SEG6_LWTUNNEL, and seg6local of Linux 4.14), and \
             without a map a crossbar knows no destinations"
        }
    }
}

/// What users' packets go by at a crossbar with this kernel.
pub(super) fn data_path(kernel: &Result<KernelCrossbar, String>) -> XbarDataPath {
    match kernel {
        Ok(kernel) => kernel.data_path(),
        Err(why) => XbarDataPath::tap(why),
    }
}

/// Waits until neighbours change, and looks meanwhile that the kernel holds what it is to hold; for ever if the
/// kernel is not used.
pub(super) async fn due(kernel: &mut Result<KernelCrossbar, String>) {
    let Ok(KernelCrossbar { forwarding, neighbours, wanted, stale, taking_over, clock, .. }) = kernel else {
        return pending().await;
    };
    tokio::select! {
        changed = neighbours.changed() => match changed {
            Ok(()) => *stale = true,
            Err(_) => pending().await,
        },
        () = forwarding.recheck_due(|| wanted.clone()) => {
            // All is compared here in any case.
            let _ends = taking_over.look(clock.now(), true);
            forwarding.recheck(wanted, |there| taking_over.target(there, wanted.clone(), |_, _| true));
            // Neighbours that have been silent for long are given up.
            *stale = true;
        }
    }
}
