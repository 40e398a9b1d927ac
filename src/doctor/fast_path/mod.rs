//! What the kernel's forwarding of users' packets lacks on this machine, and what will break it.
//!
//! Most of it looks like a dead cable to who only sees that packets do not arrive: a firewall that drops what it
//! should forward, a filter of source addresses, a network manager that takes addresses away.

mod chains;
mod firewall;
mod iptables;
mod nft;
mod offloads;
mod owners;
mod queues;
mod settings;
mod tables;
mod users_packets;

use std::collections::BTreeSet;
use std::path::Path;

use mapper_fib::LEAST_MTU_OF_IPV6;
use mapper_fib::segments::OUTER_HEADER_BYTES;
use mapper_machine::kernel::{Abilities, Ability};
use mapper_machine::link::interface::Interface;
use mapper_machine::link::uses;
use mapper_machine::options::DataPathChoice;

use super::Check;

/// What is examined.
#[derive(Debug)]
pub(super) struct Examined<'a> {
    /// The ports that are there.
    pub(super) ports: Vec<Interface>,
    /// The interfaces whose daemons leave the kernel's forwarding to another daemon of the machine.
    pub(super) left_alone: BTreeSet<String>,
    /// What users' packets are to go by.
    pub(super) choice: DataPathChoice,
    /// Which abilities of the kernel are not to be used.
    pub(super) avoid: &'a [Ability],
    /// Whether packets go on from one port to another, as at a node or a crossbar.
    pub(super) forwards: bool,
    /// Whether a daemon works on some port.
    pub(super) is_at_work: bool,
    /// Whether any daemon of the machine has the kernel carry packets, and so needs what stands in the kernel's tables.
    pub(super) holds_objects: bool,
    /// What daemons say of the cables of their ports: the interface, and what is wrong, and what to do.
    pub(super) cables: Vec<(&'a str, String, String)>,
    /// The interface over the fabric, if there is to be one.
    pub(super) tap: Option<&'a str>,
}

/// Examines the fast path, if users' packets are to go by it at all.
pub(super) fn check(examined: &Examined<'_>) -> Vec<Check> {
    if examined.choice == DataPathChoice::Tap || examined.ports.is_empty() {
        return Vec::new();
    }
    let mut checks = check_kernel(examined);
    checks.extend(firewall::check(examined));
    checks.extend(check_mtus(&examined.ports, examined.choice));
    checks.extend(
        examined
            .cables
            .iter()
            .map(|(interface, trouble, remedy)| Check::failed("cable", trouble, remedy).of(interface)),
    );
    let uplinks = uses::default_route_interfaces().unwrap_or_default();
    for port in &examined.ports {
        // Whoever took the machine's way out from its manager would be without one after the next start.
        let owners = if uplinks.contains(&port.name) { Vec::new() } else { owners::check(port) };
        let found = owners.into_iter().chain(offloads::check(port)).chain(queues::check(port));
        checks.extend(found.map(|check| check.of(&port.name)));
    }
    let tap = examined.tap.and_then(|tap| Interface::look_up(tap).ok().flatten());
    checks.extend(tap.iter().flat_map(|tap| owners::check(tap).into_iter().map(|check| check.of(&tap.name))));
    checks
}

/// Examines what does not depend on the ports, where none is known yet.
pub(super) fn check_without_ports(examined: &Examined<'_>) -> Vec<Check> {
    if examined.choice == DataPathChoice::Tap {
        return Vec::new();
    }
    let mut checks = check_kernel(examined);
    checks.extend(firewall::check_without_ports(examined));
    checks
}

fn check_kernel(examined: &Examined<'_>) -> Vec<Check> {
    let abilities = Abilities::try_apart().map(|abilities| abilities.without(examined.avoid));
    let mut checks = vec![tables::check_abilities(examined, &abilities)];
    checks.push(tables::check_foreign(examined));
    // Who may not try what the kernel can still sees whether it has this setting. Without it the advice would be to have the whole
    // machine forward.
    let has_setting = |_| Path::new("/proc/sys/net/ipv6/conf/default/force_forwarding").exists();
    let force_forwarding = abilities.map_or_else(has_setting, |abilities| abilities.force_forwarding);
    checks.extend(settings::check(examined, force_forwarding));
    checks
}

/// Checks whether the ports carry packets that are long enough, and alike.
fn check_mtus(ports: &[Interface], choice: DataPathChoice) -> Vec<Check> {
    let most = ports.iter().map(|port| port.mtu).max().unwrap_or_default();
    let (least, of_what) = match choice.allows_segments() {
        true => (LEAST_MTU_OF_IPV6 + OUTER_HEADER_BYTES, "a packet of IPv6 and its outer header need"),
        false => (LEAST_MTU_OF_IPV6, "a packet of IPv6 needs"),
    };
    let mut checks = Vec::new();
    for Interface { name, mtu, .. } in ports {
        if *mtu < least {
            let what = format!("{mtu} bytes, but {of_what} {least}");
            let fix = format!("`ip link set {name} mtu 1500`, at both ends of the cable");
            checks.push(Check::failed("MTU of the fast path", what, fix).of(name));
        } else if *mtu < most {
            let what = format!("{mtu} bytes, where another port carries {most}: routes over it carry less");
            let fix = format!("`ip link set {name} mtu {most}`, at both ends of the cable, if both can");
            checks.push(Check::warning("MTU of the fast path", what, fix).of(name));
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;
    use crate::doctor::interface::tests::port;

    #[test]
    fn ports_that_carry_less_than_others_or_too_little_are_named() {
        let ports = [port("eth1", 9000), port("eth2", 1500), port("eth3", 1300)];
        let checks = check_mtus(&ports, DataPathChoice::Auto);
        let found: Vec<_> =
            checks.iter().map(|check| (check.interface.as_deref().unwrap(), check.status)).collect();
        assert_eq!(found, [("eth2", Outcome::Warning), ("eth3", Outcome::Failed)]);
        assert!(checks[0].fix.as_ref().unwrap().contains("ip link set eth2 mtu 9000"));
        assert_eq!(check_mtus(&[port("eth1", 1500), port("eth2", 1500)], DataPathChoice::Auto), []);
        let by_destination = check_mtus(&ports[2..], DataPathChoice::Routes);
        assert_eq!(by_destination, [], "these packets have no outer header");
    }
}
