//! What the kernel can, found by trying: versions say nothing of what was left out, or came later by an update.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use mapper_fib::segments::{self, BLOCK_BITS, ELEMENT_BITS, Element, LeftUnused, Packing};
use mapper_fib::{
    GroupId, IpPrefix, Nexthop, NexthopId, Objects, Route, RouteKey, Rule, Strips, Table, changes,
};

use super::{Kernel, KernelError, left_unused};
use crate::link::interface::Interface;
use crate::sysctl;

/// Something that a kernel has or lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Nexthops that are objects of their own, and that routes of IPv4 lead to by IPv6 (Linux 5.3).
    Nexthops,
    /// Packets are wrapped for segments, and segments are obeyed (Linux 6.1, if SRv6 was built in).
    Segments,
    /// Several elements stand in one address (NEXT-C-SID; Linux 6.6).
    Compression,
    /// Packets that are too long for an outer header get a mark, and by it another way (nftables whose tables have an
    /// owner; Linux 5.12).
    Marks,
    /// A single interface forwards IPv6, and the machine goes on as before (`force_forwarding`, Linux 6.17).
    ForceForwarding,
    /// Packets by segments are sent on at the port that they come in by, before routes are looked up (nftables at
    /// ports). It is not tried: packets go by the routes where the kernel refuses it.
    Shortcuts,
}

impl Ability {
    const ALL: [Self; 6] = [
        Self::Nexthops,
        Self::Segments,
        Self::Compression,
        Self::Marks,
        Self::ForceForwarding,
        Self::Shortcuts,
    ];

    /// The name that a user gives.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nexthops => "nexthops",
            Self::Segments => "segments",
            Self::Compression => "compression",
            Self::Marks => "marks",
            Self::ForceForwarding => "force-forwarding",
            Self::Shortcuts => "shortcuts",
        }
    }
}

impl FromStr for Ability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|ability| ability.name() == text);
        found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// What the kernel can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// Whether nexthops are objects of their own. Without them nothing of `mapper-fib` can be installed but plain
    /// routes.
    pub nexthops: bool,
    /// Whether packets are wrapped for segments, and segments obeyed.
    pub segments: bool,
    /// Whether several elements may stand in one address.
    pub compression: bool,
    /// Whether packets that are too long for an outer header can go another way.
    pub marks: bool,
    /// Whether a single interface can forward IPv6.
    pub force_forwarding: bool,
    /// What it takes off the MTU of a route by segments; nothing if that cannot be told.
    pub left_unused: LeftUnused,
}

impl Abilities {
    /// Those of a kernel that can all that is asked of it, and takes nothing off the MTU of a route.
    pub const ALL: Self = Self {
        nexthops: true,
        segments: true,
        compression: true,
        marks: true,
        force_forwarding: true,
        left_unused: LeftUnused::NOTHING,
    };
}

/// The destinations of two routes that are tried, with full and with compressed segments. They stand in the table
/// that only packets from a port of the fabric look up, and no packet has such an address: `f3pp` is no element of
/// a route.
const TRIED: [u16; 2] = [0xf300, 0xf301];
/// The nexthop that is tried, whose number is the last one.
const TRIED_NEXTHOP: NexthopId = NexthopId(GroupId::BIT - 1);
/// The length above which packets are marked for trial, which none has.
const TRIED_LENGTH: u32 = u32::MAX - 1;

impl Abilities {
    /// Finds out what the kernel can: installs one object of each kind where no packet is led by it, reads back
    /// what the kernel made of it, and takes it away. Some interface must be up and have carrier, if only `lo`.
    /// Nothing is left; what a crash leaves is ours, and is found at the next start.
    ///
    /// Rules are tried only where `segments` may be used and the kernel has them: a kernel that has had a rule looks each
    /// packet up the long way from then on, also when the rule is gone.
    ///
    /// # Errors
    /// If this process may not change forwarding tables, the kernel does not answer, or no interface is up.
    pub fn try_out(kernel: &mut Kernel, segments: bool) -> Result<Self, KernelError> {
        let nexthops = kernel.knows_nexthops()?;
        let all = Interface::all().map_err(|source| KernelError::NoInterface { source: Some(source) })?;
        let up = all.iter().find(|interface| interface.carrier);
        let up = up.ok_or(KernelError::NoInterface { source: None })?;
        let force_forwarding = sysctl::is_there(&format!("ipv6/conf/{}/force_forwarding", up.name));
        let without_segments = Self {
            nexthops,
            segments: false,
            compression: false,
            marks: false,
            force_forwarding,
            left_unused: LeftUnused::NOTHING,
        };
        if !segments {
            return Ok(without_segments);
        }
        let tried = tried_segments(up.index);
        let there = try_objects(kernel, &tried, |there| there)?;
        let route = |bits| there.routes.get(&key(bits)) == tried.routes.get(&key(bits));
        let has_segments =
            there.nexthops.get(&TRIED_NEXTHOP) == tried.nexthops.get(&TRIED_NEXTHOP) && route(TRIED[0]);
        let compression = has_segments && route(TRIED[1]);
        if !has_segments {
            return Ok(without_segments);
        }
        let tried = tried_marks(up.index);
        let (marks, left_unused) = try_objects(kernel, &tried, |there| {
            let marks = there.marked_above == tried.marked_above
                && there.routes.get(&tried_link()) == tried.routes.get(&tried_link())
                && tried.rules.is_subset(&there.rules);
            (marks, left_unused::ask(&there))
        })?;
        Ok(Self { segments: true, compression, marks, left_unused, ..without_segments })
    }

    /// Finds out the same in a network namespace of its own, which is gone afterwards, so that nobody on this machine
    /// sees anything of it. Needs `CAP_SYS_ADMIN` beside `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If this process may not have a namespace, or the kernel does not answer.
    pub fn try_apart() -> Result<Self, KernelError> {
        let apart = || {
            let failed = |source| KernelError::NoNamespace { source };
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET)
                .map_err(|error| failed(error.into()))?;
            let all = Interface::all().map_err(|source| KernelError::NoInterface { source: Some(source) })?;
            for interface in all {
                interface.set_up().map_err(failed)?;
            }
            Self::try_out(&mut Kernel::open()?, true)
        };
        // The namespace is that of the thread, and ends with it.
        match std::thread::spawn(apart).join() {
            Ok(found) => found,
            Err(_panicked) => Err(KernelError::NoNamespace { source: std::io::ErrorKind::Other.into() }),
        }
    }

    /// These without some, for who knows that one of them has a defect here, and as if the kernel lacked it. What
    /// cannot be without it goes with it.
    #[must_use]
    pub fn without(self, avoided: &[Ability]) -> Self {
        let has = |ability| !avoided.contains(&ability);
        let nexthops = self.nexthops && has(Ability::Nexthops);
        let segments = self.segments && nexthops && has(Ability::Segments);
        Self {
            nexthops,
            segments,
            compression: self.compression && segments && has(Ability::Compression),
            marks: self.marks && has(Ability::Marks),
            force_forwarding: self.force_forwarding && has(Ability::ForceForwarding),
            left_unused: self.left_unused,
        }
    }
}

/// Installs these objects, tells `examine` what the kernel holds then, and takes them away. Older kernels pass over what
/// they do not know of a message, so what they take means nothing: it is read back.
fn try_objects<T>(
    kernel: &mut Kernel,
    tried: &Objects,
    examine: impl FnOnce(Objects) -> T,
) -> Result<T, KernelError> {
    let refused = kernel.apply(&changes(&Objects::default(), tried));
    let found = kernel.dump().map(examine);
    let left = kernel.apply(&changes(tried, &Objects::default()));
    for (_, error) in refused.into_iter().chain(left) {
        match error {
            KernelError::Refused { .. } => {}
            error => return Err(error),
        }
    }
    found
}

/// The objects of segments that are tried, on this interface.
fn tried_segments(interface: u32) -> Objects {
    let mut objects = Objects::default();
    if let Some(segments) = segments::segments(&[Element::FirstPort(0)], Packing::Full) {
        objects.nexthops.insert(TRIED_NEXTHOP, Nexthop::Segments { interface, segments });
    }
    for (bits, strips) in TRIED.into_iter().zip([Strips::Segment, Strips::Element]) {
        let towards = segments::towards_port(0);
        objects.routes.insert(key(bits), Route::StripAndLeave { interface, towards, strips });
    }
    objects
}

/// The objects of packets that are too long that are tried, on this interface.
fn tried_marks(interface: u32) -> Objects {
    let mut objects = left_unused::tried(interface);
    objects.routes.insert(tried_link(), Route::Link { interface, source: None, mtu: 0 });
    objects.rules.insert(Rule::TooLong);
    objects.marked_above = Some(TRIED_LENGTH);
    objects
}

/// The route of packets that are too long that is tried: to a segment, as no packet to one bears the mark.
fn tried_link() -> RouteKey {
    RouteKey { table: Table::TooLong, ..key(TRIED[0]) }
}

/// The key of a route that is tried, to the addresses that begin with this element.
pub(super) fn key(element: u16) -> RouteKey {
    let IpPrefix { ip, .. } = segments::all();
    let bits = match ip {
        IpAddr::V6(block) => block.to_bits() | u128::from(element) << (128 - BLOCK_BITS - ELEMENT_BITS),
        IpAddr::V4(_) => 0,
    };
    let to = IpPrefix::v6(Ipv6Addr::from_bits(bits), BLOCK_BITS + ELEMENT_BITS);
    RouteKey { table: Table::Segments, to }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Abilities = Abilities::ALL;

    #[test]
    fn what_cannot_be_without_an_avoided_ability_goes_with_it() {
        assert_eq!(ALL.without(&[]), ALL);
        assert_eq!(ALL.without(&[Ability::Compression]), Abilities { compression: false, ..ALL });
        let plain = Abilities { segments: false, compression: false, ..ALL };
        assert_eq!(ALL.without(&[Ability::Segments]), plain);
        assert_eq!(ALL.without(&[Ability::Nexthops]), Abilities { nexthops: false, ..plain });
        let none = ALL.without(&[Ability::ForceForwarding, Ability::Nexthops]);
        assert_eq!(none, Abilities { nexthops: false, force_forwarding: false, ..plain });
    }

    #[test]
    fn what_is_tried_is_where_no_packet_goes() {
        for route in tried_segments(1).routes.keys().chain(tried_marks(1).routes.keys()) {
            assert_ne!(route.table, Table::Main);
            let IpAddr::V6(ip) = route.to.ip else { panic!("{route:?}") };
            assert_eq!(segments::elements(&[ip]), None);
            assert!(segments::all().contains(ip.into()));
        }
    }
}
