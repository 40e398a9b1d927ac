//! Whether a host whose kernel knows segments goes by destination, for the sake of those whose kernels know none.
//!
//! A kernel without segments shares no faster path than the tap interface with others that go by segments. So where all
//! crossbars of the map are those of nodes that can go by destination, and the kernel of a host does nothing else, all of them do. Hosts
//! without a crossbar, which forward nothing, must do nothing else then. It is all or none:
//! a packet that comes in by a port with nothing but a destination must not meet a route by segments. The kernel
//! would wrap it, and take the first element for one that the neighbour had obeyed.
//!
//! A host that goes its own way again first says so to its neighbours, and sends by segments only when none of them sends
//! it packets by their destination any more.

use std::collections::BTreeSet;
use std::time::Duration;

use mapper_proto::map::Map;
use mapper_proto::{Instant, Mac};

use super::surroundings::ByDestination;
use super::unlisted::UNLISTED_FOR;
use super::way::Course;
use super::{KernelAbilities, KernelPath};

/// How long after neighbours were told that a host goes by destination no more it sends by segments: each of them has
/// heard it by then, and changed its routes, also where machines are busy.
const PARTING_FOR: Duration = Duration::from_secs(1);

/// Whether this host goes by destination for the sake of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Company {
    /// No: it goes by segments.
    #[default]
    Apart,
    /// Yes, as others need it, or did so a while ago. Their daemons may have crashed, and their kernels go on.
    Together {
        /// A host that needs it, or did; `None` if that is not known, as it was before this run.
        whom: Option<Mac>,
        /// Since when nobody needs it; `None` if somebody does.
        unneeded_since: Option<Instant>,
    },
    /// It goes by destination until then, but has told its neighbours not to send it anything so.
    Parting {
        /// When it goes by segments again.
        until: Instant,
    },
}

impl Company {
    /// Whether packets go by their destination.
    pub(super) const fn is_kept(self) -> bool {
        !matches!(self, Self::Apart)
    }

    /// Whether neighbours are told not to send packets by their destination any more.
    pub(super) const fn is_parting(self) -> bool {
        matches!(self, Self::Parting { .. })
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub(super) fn poll_timeout(self) -> Option<Instant> {
        match self {
            Self::Apart => None,
            Self::Together { unneeded_since, .. } => unneeded_since.map(|since| since + UNLISTED_FOR),
            Self::Parting { until } => Some(until),
        }
    }

    /// Takes in who needs it now.
    fn follow(self, now: Instant, whom: Option<Mac>) -> Self {
        match self {
            _ if whom.is_some() => Self::Together { whom, unneeded_since: None },
            Self::Together { whom, unneeded_since: None } => {
                Self::Together { whom, unneeded_since: Some(now) }
            }
            other => other,
        }
    }

    /// Does what is due.
    fn handle_timeout(self, now: Instant) -> Self {
        if self.poll_timeout().is_none_or(|due| now < due) {
            return self;
        }
        match self {
            Self::Together { .. } => Self::Parting { until: now + PARTING_FOR },
            Self::Apart | Self::Parting { .. } => Self::Apart,
        }
    }
}

/// For whose sake nodes whose kernels know segments are to go by destination: that of a host whose kernel does nothing else, if all
/// hosts of the map are nodes that can, or have no crossbar and do nothing else. `of` says when each host goes by destination. A
/// fabric with crossbars that are no nodes', and so know no destinations, goes by segments as far as it can.
pub(crate) fn needed_by(map: &Map, of: impl Fn(Mac) -> ByDestination) -> Option<Mac> {
    let hosts = || map.hosts.iter().filter(|host| !host.is_phantom());
    let whom = hosts().find(|host| of(host.mac).is_needed())?.mac;
    let nodes = || hosts().filter(|host| of(host.mac).forwards());
    let of_nodes: BTreeSet<u32> = nodes().filter_map(|host| Some(host.at?.xbar)).collect();
    let all_are_nodes_xbars = of_nodes.len() == map.xbars.len() && of_nodes.len() == nodes().count();
    (all_are_nodes_xbars && hosts().all(|host| of(host.mac) != ByDestination::Never)).then_some(whom)
}

impl KernelPath {
    /// Takes in who needs this host to go by destination. Returns whether its table must have next hops now, and may have none.
    pub(crate) fn keep_company(&mut self, now: Instant, whom: Option<Mac>) -> bool {
        let went_by_destination = self.goes_by_destination();
        self.change_company(now, |company| company.follow(now, whom));
        !went_by_destination && self.goes_by_destination()
    }

    /// Takes it that others needed this host to go by destination until now, as an earlier run did so.
    pub(super) fn go_on_by_destination(&mut self, now: Instant) {
        self.change_company(now, |_| Company::Together { whom: None, unneeded_since: Some(now) });
    }

    /// When [`Self::part_company`] wants to be called.
    pub(super) fn company_at(&self) -> Option<Instant> {
        self.company.poll_timeout().filter(|_| !self.is_holding())
    }

    /// Does what is due.
    pub(super) fn part_company(&mut self, now: Instant) {
        self.change_company(now, |company| company.handle_timeout(now));
    }

    fn change_company(&mut self, now: Instant, change: impl Fn(Company) -> Company) {
        if self.is_holding() {
            return;
        }
        let went_by_destination = self.goes_by_destination();
        self.company = change(self.company);
        if went_by_destination == self.goes_by_destination() {
            return;
        }
        // Ways of the other course are of no use any more, and must not come back.
        let goes_by_destination = self.goes_by_destination();
        let is_of_other = |course: &Course| (*course == Course::Destination) != goes_by_destination;
        for destination in self.destinations.values_mut() {
            destination.forget_set_aside(&mut self.numbers);
            destination.lose_ways(|way| is_of_other(&way.course), &mut self.numbers);
        }
        if goes_by_destination {
            self.change_unlisted(|it, numbers| {
                it.destination.lose_ways(|way| is_of_other(&way.course), numbers)
            });
        }
        self.revision += 1;
        self.renew_ports();
        self.renew_all(now);
    }

    /// Whether the kernel forwards others' packets by their destination.
    pub(super) const fn passes_by_destination(&self) -> bool {
        self.agent_port.is_some() && self.goes_by_destination()
    }

    /// Whether neighbours are told not to send packets by their destination any more. A kernel that does nothing else goes on.
    pub(super) fn is_parting(&self) -> bool {
        self.abilities.by_destination == ByDestination::WithOthers && self.company.is_parting()
    }

    /// For the sake of which host this one goes by destination, though its kernel knows segments.
    pub(super) const fn goes_along_for(&self) -> Option<Mac> {
        match (self.abilities.by_destination, self.company) {
            (ByDestination::WithOthers, Company::Together { whom, .. }) => whom,
            _ => None,
        }
    }

    /// What the kernel can do, as far as it is used for this host's own packets now.
    pub(super) const fn used_abilities(&self) -> KernelAbilities {
        KernelAbilities { segments: self.abilities.segments && !self.goes_by_destination(), ..self.abilities }
    }
}
