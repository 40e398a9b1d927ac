//! The kernel of this machine as a way for users' packets: opens it, installs routes in it, and puts right what
//! others change there.

mod before;
mod connected;
mod left;
mod read_back;
mod recheck;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::path::Path;

use mapper_fabric::wording::with_causes;
use mapper_fib::{Change, NexthopId, Objects};
use mapper_host::kernel_path::{ByDestination, KernelAbilities, PortInterface, Preference};
use mapper_machine::clock::Clock;
use mapper_machine::kernel::{Abilities, Ability, FibMonitor, InUse, Kernel, KernelError};
use mapper_machine::options::DataPathChoice;
use mapper_machine::sysctl::{ForwardingNeeds, KeptSettings, SettingsError, forwards_v6_beside};
use mapper_machine::timer::Timer;
use mapper_proto::Instant;
use thiserror::Error;
use tracing::{debug, info, warn};

use super::speedups::Speedups;
use before::RoutesBefore;
use connected::ConnectedRoutes;
pub(crate) use left::take_away_what_is_left;
pub(crate) use read_back::ReadBack;
use read_back::Renewals;
use recheck::RETRY_AFTER;

/// Why the kernel cannot be used where the user wants it to be.
#[derive(Debug, Error)]
pub enum ForwardingError {
    /// The kernel cannot do what was chosen.
    #[error(
        "--data-path {choice}: the kernel of this machine {lacks}; choose `auto`, and users' packets go by what it \
         can do"
    )]
    Lacks {
        /// What was chosen.
        choice: DataPathChoice,
        /// What the kernel lacks, in words.
        lacks: &'static str,
    },
    /// The kernel does not let its tables be changed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The kernel's settings cannot be kept.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

/// The kernel's forwarding of users' packets.
#[derive(Debug)]
pub(crate) struct Forwarding {
    choice: DataPathChoice,
    /// Whether this machine sends users' packets itself, and not only on.
    sends: bool,
    kernel: Kernel,
    /// Says, as long as it lives, that this daemon uses the kernel, so that others leave its objects alone.
    _in_use: InUse,
    monitor: FibMonitor,
    settings: KeptSettings,
    abilities: Abilities,
    clock: Clock,
    timer: Timer,
    /// What the settings are for.
    needs: ForwardingNeeds,
    /// When what is installed is compared next.
    recheck_at: Instant,
    /// What an earlier run had left when this was opened.
    found: Objects,
    speedups: Speedups,
    connected: ConnectedRoutes,
    before: RoutesBefore,
    /// What was wrong when it was last compared, in words.
    troubles: Vec<String>,
    /// How often something of ours was not there, or was another, and was put right.
    put_right: u64,
    renewals: Renewals,
}

/// What the kernel is to be used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelUse {
    /// What the user chose.
    pub choice: DataPathChoice,
    /// Which abilities of the kernel are not used, as if it lacked them.
    pub avoid: Vec<Ability>,
    /// Whether packets go on to other machines, as at a crossbar.
    pub forwards: bool,
    /// Whether this machine sends users' packets itself.
    pub sends: bool,
}

/// The kernel, if users' packets may go by it.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Users' packets may go by the kernel.
    Used(Box<Forwarding>),
    /// They may not, for this reason, in words for a person.
    NotUsed(String),
}

/// What a board shows of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForwardingStatus {
    /// What is wrong, in words.
    pub troubles: Vec<String>,
    /// How often something of ours was not there, or was another, and was put right.
    pub put_right: u64,
}

impl Forwarding {
    /// Opens the kernel for what the user chose. What a run left that crashed stays for a while, and is taken over.
    /// `record` is the file that tells which settings were changed. If users' packets are to go by the tap interface
    /// alone, or can go by nothing else, it says why, and what an earlier run left is taken away, unless another daemon
    /// may have it.
    ///
    /// # Errors
    /// If the user chose what the kernel cannot do.
    pub(crate) fn open(wanted: KernelUse, record: &Path) -> Result<Opened, ForwardingError> {
        let choice = wanted.choice;
        if choice == DataPathChoice::Tap {
            take_away_what_is_left(record);
            return Ok(Opened::NotUsed("data-path is tap".to_owned()));
        }
        match Self::try_open(wanted, record) {
            Ok(forwarding) => Ok(Opened::Used(Box::new(forwarding))),
            Err(error) if choice == DataPathChoice::Auto => {
                let why = with_causes(&error);
                warn!("users' packets go by the tap interface alone: {why}");
                take_away_what_is_left(record);
                Ok(Opened::NotUsed(why))
            }
            Err(error) => Err(error),
        }
    }

    fn try_open(wanted: KernelUse, record: &Path) -> Result<Self, ForwardingError> {
        let KernelUse { choice, avoid, forwards, sends } = wanted;
        let mut kernel = Kernel::open()?;
        // This is said before anything is tried or taken over: two daemons would take away each other's objects, and one that starts
        // meanwhile takes away what it holds for left.
        let in_use = InUse::say()?;
        let monitor = FibMonitor::new(&kernel)?;
        let segments = choice.allows_segments() && !avoid.contains(&Ability::Segments);
        let abilities = Abilities::try_out(&mut kernel, segments)?.without(&avoid);
        let lacks = match choice {
            _ if !abilities.nexthops => Some("has no nexthop objects (Linux 5.3)"),
            DataPathChoice::Srv6 if !abilities.segments => {
                Some("has no SRv6 (CONFIG_IPV6_SEG6_LWTUNNEL, and seg6local of Linux 4.14)")
            }
            DataPathChoice::Srv6 if sends && !abilities.marks => Some(
                "has no nftables (CONFIG_NF_TABLES, Linux 5.12), without which datagrams longer than a route's MTU \
                 would be lost",
            ),
            _ => None,
        };
        if let Some(lacks) = lacks {
            return Err(ForwardingError::Lacks { choice, lacks });
        }
        let settings = KeptSettings::open(record)?;
        match kernel.remove_what_older_versions_left() {
            Ok(0) => {}
            Ok(objects) => info!(objects, "took away what an older version had left in the kernel"),
            // Packets pass although something of an older version is left.
            Err(error) => warn!("{}", with_causes(&error)),
        }
        let there = kernel.dump()?;
        let clock = Clock::start();
        let force_forwarding = abilities.force_forwarding;
        let has_shortcuts = forwards && abilities.compression && !avoid.contains(&Ability::Shortcuts);
        Ok(Self {
            choice,
            sends,
            kernel,
            _in_use: in_use,
            monitor,
            settings,
            abilities,
            timer: Timer::new(clock),
            clock,
            speedups: Speedups::new(has_shortcuts),
            connected: ConnectedRoutes::default(),
            before: RoutesBefore::default(),
            found: there,
            needs: ForwardingNeeds { ports: BTreeMap::new(), tap: None, forwards, force_forwarding },
            recheck_at: Instant::ZERO,
            troubles: Vec::new(),
            put_right: 0,
            renewals: Renewals::default(),
        })
    }

    /// What an earlier run had left when this was opened. It is given away once.
    pub(crate) fn take_found(&mut self) -> Objects {
        std::mem::take(&mut self.found)
    }

    /// What was chosen.
    pub(crate) const fn choice(&self) -> DataPathChoice {
        self.choice
    }

    /// Whether segments are used. A machine that sends packets by them also needs a way for those that are too long for
    /// an outer header.
    pub(crate) const fn segments(&self) -> bool {
        self.choice.allows_segments() && self.abilities.segments && (self.abilities.marks || !self.sends)
    }

    /// Whether several elements stand in one segment.
    pub(crate) const fn compressed(&self) -> bool {
        self.segments() && self.abilities.compression
    }

    /// What the kernel can do, as far as it may be used.
    pub(crate) const fn abilities(&self) -> KernelAbilities {
        KernelAbilities {
            segments: self.segments(),
            compressed: self.compressed(),
            by_destination: self.routes(),
            left_unused: self.abilities.left_unused,
        }
    }

    /// When routes by destination are used: where they were chosen, or where the kernel has no segments; and at a node, unless the
    /// user wants segments, with others whose kernels have none.
    const fn routes(&self) -> ByDestination {
        let preference = match self.choice {
            DataPathChoice::Auto => Preference::Best,
            DataPathChoice::Routes => Preference::Destination,
            DataPathChoice::Srv6 | DataPathChoice::Tap => Preference::NotDestination,
        };
        ByDestination::of(preference, self.segments(), self.needs.forwards)
    }

    /// Keeps the settings of these interfaces, by number and name, as forwarding needs them. The kernel forwards nothing at those
    /// that are too small for IPv6.
    pub(crate) fn keep_settings_of(&mut self, interfaces: &[PortInterface]) {
        let ports = interfaces.iter().filter(|it| it.speaks_v6());
        let ports = ports.map(|it| (it.index, it.name.clone())).collect();
        if self.needs.ports != ports {
            self.needs.ports = ports;
            self.keep_settings();
        }
    }

    /// Says which interface is the tap, which carries what the kernels do not: the routes to the networks of its addresses are
    /// kept, and its settings.
    pub(crate) fn set_tap(&mut self, tap: u32) {
        self.connected.keep_of(tap);
        if self.needs.tap.replace(tap) != Some(tap) && !self.needs.ports.is_empty() {
            self.keep_settings();
        }
    }

    /// Has the outer headers of packets by segments come from this address of the machine.
    pub(crate) fn keep_outer_source(&mut self, own: Ipv6Addr) {
        if self.segments() && self.sends {
            self.speedups.keep_outer_source(&mut self.kernel, own);
        }
    }

    fn keep_settings(&mut self) {
        let failed = self.settings.keep(&self.needs);
        let mut troubles: Vec<_> = failed.iter().map(|error| with_causes(error)).collect();
        troubles.extend(self.keep_strangers_out());
        self.tell(troubles);
    }

    /// Has segments that come in by no port of the fabric dropped, where the machine forwards IPv6 for other interfaces. Returns
    /// what the kernel refuses, in words.
    fn keep_strangers_out(&mut self) -> Option<String> {
        let is_needed = self.segments() && self.sends;
        let is_needed = is_needed.then(|| forwards_v6_beside(&self.needs.ports)).transpose();
        let is_needed = match is_needed {
            Ok(is_needed) => is_needed == Some(true),
            Err(error) => return Some(with_causes(&error)),
        };
        let ports: BTreeSet<u32> = self.needs.ports.keys().copied().collect();
        let dropped = self.kernel.drop_strangers_segments(is_needed.then_some(&ports));
        dropped.err().map(|error| with_causes(&error))
    }

    /// Carries changes out, in their order.
    pub(crate) fn carry_out(&mut self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        self.renewals.begin_another();
        let failed = self.kernel.apply(changes);
        for (_, error) in &failed {
            debug!("{}", with_causes(error));
        }
        if !failed.is_empty() {
            // A port may have gone a moment ago, and the host not have heard of it yet.
            self.recheck_at = self.recheck_at.min(self.clock.now() + RETRY_AFTER);
        }
        self.speedups.follow(&mut self.kernel, changes);
    }

    /// How many packets each nexthop has taken since it is there; nothing if the kernel does not count or answer.
    pub(crate) fn packets(&mut self) -> BTreeMap<NexthopId, u64> {
        match self.kernel.packets() {
            Ok(packets) => packets,
            Err(error) => {
                debug!("{}", with_causes(&error));
                BTreeMap::new()
            }
        }
    }

    /// What a board shows.
    pub(crate) fn status(&self) -> ForwardingStatus {
        ForwardingStatus { troubles: self.troubles.clone(), put_right: self.put_right }
    }

    /// Takes away all that was installed, and puts settings back; or leaves all as it is, for packets to go on.
    pub(crate) fn close(mut self, keep: bool) {
        if keep {
            return;
        }
        match self.kernel.remove_all_of_ours() {
            Ok(failed) => failed.iter().for_each(|(_, error)| warn!("{}", with_causes(error))),
            Err(error) => warn!("{}", with_causes(&error)),
        }
        self.speedups.release_outer_source(&mut self.kernel);
        self.settings.restore().iter().for_each(|error| warn!("{}", with_causes(error)));
    }
}
