//! The interfaces of a node that are ports because they match a pattern: they come and go while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mapper_fabric::wording::with_causes;
use mapper_machine::link::LinkError;
use mapper_machine::link::held_address::HeldAddress;
use mapper_machine::link::interface::{Interface, InterfaceMonitor};
use mapper_machine::link::uses;
use mapper_machine::notify::Notifier;
use mapper_machine::signals::{Signal, Signals};
use mapper_machine::{clock::Clock, log};
use mapper_proto::Instant;
use std::time::Duration;
use tracing::{error, info, warn};

use super::state::Driver;
use crate::agent::DaemonError;
use crate::agent::options::Config;
use crate::xbar::ports;

/// How often the daemon looks whether the machine now reaches other networks by a port. It does not have the
/// kernel tell of each route, as there may be thousands.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// How long an interface that led to other networks is no port yet, as its route or address may be gone for a moment only.
const LED_ELSEWHERE_FOR: Duration = Duration::from_secs(60);

/// The interfaces of the machine, as far as patterns are concerned.
#[derive(Debug)]
pub(super) struct Candidates {
    interfaces: Vec<Interface>,
    /// The interfaces by which the machine reaches other networks.
    uplinks: BTreeSet<String>,
    /// The numbers of the interfaces that have an address which they were given for a while, by a server or of what a router said.
    /// Neither is at the other end of a cable between two machines, and an interface may have it before there is a route.
    leased: BTreeSet<u32>,
}

impl Candidates {
    /// The interfaces as they are now, in the order of their names.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(super) fn now() -> Result<Self, LinkError> {
        let mut interfaces = Interface::all()?;
        interfaces.sort_by(|a, b| a.name.cmp(&b.name));
        let uplinks = uses::default_route_interfaces().map_err(LinkError::Netlink)?;
        let leased = HeldAddress::all()?.into_iter().filter(is_leased).map(|it| it.index).collect();
        Ok(Self { interfaces, uplinks, leased })
    }

    /// Why an interface leads to another network than this fabric, in words, if it does.
    fn why_elsewhere(&self, interface: &Interface) -> Option<&'static str> {
        if self.uplinks.contains(&interface.name) {
            return Some(
                "the default route leads there; name it without pattern if it shall be a port all the same",
            );
        }
        self.leased.contains(&interface.index).then_some(
            "it has an address that a server or a router of another network gave it; name it without pattern if it shall be a \
             port all the same",
        )
    }

    /// The interfaces that match a pattern and are not named, each with the reason if it can be no port.
    pub(super) fn matching<'a>(
        &'a self,
        config: &'a Config,
    ) -> impl Iterator<Item = (&'a Interface, Option<&'static str>)> {
        let matches = |interface: &&Interface| {
            let name = &interface.name;
            config.patterns.iter().any(|pattern| ports::matches(pattern, name))
                && !config.ports.contains(name)
        };
        self.interfaces.iter().filter(matches).map(|interface| (interface, self.why_not(interface, config)))
    }

    /// Why an interface that matches a pattern is no port, in words; `None` if it may be one.
    fn why_not(&self, interface: &Interface, config: &Config) -> Option<&'static str> {
        let Interface { name, ethernet, master, kind, .. } = interface;
        match kind.as_deref() {
            _ if !ethernet => Some("it is not Ethernet"),
            _ if config.tap.as_ref() == Some(name) => Some("it is this node's own interface over the fabric"),
            Some("tun") => Some("it is a tap interface, and leads to a program of this machine"),
            Some("bridge") => Some("it is a bridge"),
            _ if master.is_some() => Some("it belongs to a bridge or bond"),
            Some("vlan" | "macvlan" | "macvtap" | "ipvlan") => Some(
                "it shares the wire of another interface; name it without pattern if it shall be a port all the same",
            ),
            _ if uses::is_wireless(name) => Some("it is wireless"),
            _ => self.why_elsewhere(interface),
        }
    }
}

/// Whether somebody at the interface's cable gave it the address for a while. One that a machine makes up by itself where no server
/// answers (RFC 3927) says the contrary.
fn is_leased(held: &HeldAddress) -> bool {
    let is_made_up = matches!(held.address.ip(), IpAddr::V4(ip) if ip.is_link_local());
    held.is_for_others && !held.is_permanent && !is_made_up
}

/// What has become of interfaces that match a pattern.
#[derive(Debug, Default)]
pub(super) struct Matched {
    /// Interfaces that are no ports, and why, as it was logged.
    left_out: BTreeMap<String, String>,
    /// The interfaces left out that would be ports if nothing kept them from it.
    kept_from_it: BTreeSet<String>,
    /// When to look again though nobody told of a change.
    look_at: Option<Instant>,
    /// The interfaces that led to other networks, and when each may be a port again.
    led_elsewhere: BTreeMap<String, Instant>,
}

impl Matched {
    /// Takes in whether an interface leads to another network now, and returns whether it did so a moment ago.
    fn led_elsewhere(&mut self, now: Instant, interface: &str, leads_elsewhere: bool) -> bool {
        if leads_elsewhere {
            self.led_elsewhere.insert(interface.to_owned(), now + LED_ELSEWHERE_FOR);
        }
        self.led_elsewhere.get(interface).is_some_and(|&until| now < until)
    }

    /// Logs why an interface is no port by what it is, unless that was logged before.
    pub(super) fn leave_out(&mut self, interface: &str, why: &str) {
        self.kept_from_it.remove(interface);
        if self.left_out.insert(interface.to_owned(), why.to_owned()).as_deref() != Some(why) {
            info!(interface, "matches a pattern and is no port: {why}");
        }
    }

    /// Logs what keeps an interface from being a port that would be one else, unless that was logged before.
    pub(super) fn keep_from_it(&mut self, interface: &str, why: &str) {
        self.kept_from_it.insert(interface.to_owned());
        if self.left_out.insert(interface.to_owned(), why.to_owned()).as_deref() != Some(why) {
            warn!(interface, "matches a pattern and cannot be a port: {why}");
        }
    }

    /// Whether this is known to keep an interface from being a port that was one or would be one else.
    fn keeps(&self, interface: &str, why: &str) -> bool {
        self.kept_from_it.contains(interface)
            && self.left_out.get(interface).is_some_and(|known| known == why)
    }

    /// Logs that an interface is a port no more, and why. Whoever put it into a bridge is to see that on the board, too.
    fn give_up(&mut self, interface: &str, bridge: Option<u32>, why: &str) {
        match bridge {
            Some(_) => self.keep_from_it(interface, why),
            None => self.leave_out(interface, why),
        }
    }

    /// Takes in that an interface is a port now.
    pub(super) fn take(&mut self, interface: &str) {
        self.kept_from_it.remove(interface);
        self.left_out.remove(interface);
    }

    /// Forgets interfaces that are gone, or match no pattern any more.
    fn forget_others(&mut self, matching: &BTreeSet<&str>) {
        self.kept_from_it.retain(|name| matching.contains(name.as_str()));
        self.left_out.retain(|name, _| matching.contains(name.as_str()));
        self.led_elsewhere.retain(|name, _| matching.contains(name.as_str()));
    }

    /// Which interfaces would be ports if nothing kept them from it, in words.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        let whys = self.kept_from_it.iter().filter_map(|name| Some((name, self.left_out.get(name)?)));
        whys.map(|(name, why)| format!("{name} matches a pattern of --ports and cannot be a port: {why}"))
    }

    /// Why a node has no port whose patterns match these interfaces alone.
    pub(super) fn no_port(self, config: &Config) -> DaemonError {
        DaemonError::NoPort(no_port(&config.patterns, &self.left_out))
    }
}

/// Says that no interface is a port by these patterns, and of those that match why they are none.
fn no_port(patterns: &[String], left_out: &BTreeMap<String, String>) -> String {
    let patterns = patterns.join(", ");
    if left_out.is_empty() {
        return format!("no interface matches {patterns}");
    }
    let whys: Vec<String> = left_out.iter().map(|(interface, why)| format!("{interface}: {why}")).collect();
    format!("no interface that matches {patterns} can be a port ({})", whys.join("; "))
}

/// Waits until an interface exists that can be a port of the node. Returns false if it was told to stop.
///
/// # Errors
/// If the kernel does not tell of its interfaces.
pub(super) async fn wait_for_port(
    config: &Config,
    monitor: &InterfaceMonitor,
    signals: &mut Signals,
) -> Result<bool, DaemonError> {
    let (clock, mut notifier, mut matched) = (Clock::start(), Notifier::new(), Matched::default());
    let mut told = None;
    loop {
        let candidates = Candidates::now()?;
        let named = candidates.interfaces.iter().any(|interface| config.ports.contains(&interface.name));
        let (mut found, mut left_out) = (named, BTreeMap::new());
        for (interface, why_not) in candidates.matching(config) {
            match why_not {
                Some(why) => {
                    matched.leave_out(&interface.name, why);
                    left_out.insert(interface.name.clone(), why.to_owned());
                }
                None => found = true,
            }
        }
        if found {
            return Ok(true);
        }
        let lacks = no_port(&config.patterns, &left_out);
        if told.as_ref() != Some(&lacks) {
            warn!("{lacks} yet; waiting for one");
            notifier.ready();
            notifier.status(&format!("waiting for an interface: {lacks}"));
            told = Some(lacks);
        }
        let look_at = clock.now() + LOOK_INTERVAL;
        let wake_at = notifier.feed_at().map_or(look_at, |feed_at| feed_at.min(look_at));
        tokio::select! {
            changes = monitor.changes() => drop(changes?),
            signal = signals.next() => match signal {
                Signal::Stop => {
                    notifier.stopping();
                    return Ok(false);
                }
                // There is nothing to apply yet: the configuration is read at the start.
                Signal::Reload => warn!("the configuration is read again once there is a port"),
                Signal::ReopenLog => log::reopen(),
            },
            () = clock.sleep_until(Some(wake_at)) => notifier.feed_if_due(clock.now()),
        }
    }
}

impl Driver {
    /// When to look again which interfaces match the patterns.
    pub(super) const fn patterns_due_at(&self) -> Option<Instant> {
        self.attachment.outer.matched.look_at
    }

    /// Follows the patterns if it is time to.
    pub(super) fn follow_patterns_if_due(&mut self) {
        if self.patterns_due_at().is_some_and(|at| self.now() >= at) {
            self.follow_patterns();
        }
    }

    /// Takes the interfaces that match a pattern and are no ports yet, and gives up those that may be ports
    /// no more.
    pub(super) fn follow_patterns(&mut self) {
        let is_wanted = !self.config.patterns.is_empty();
        self.attachment.outer.matched.look_at = is_wanted.then(|| self.now() + LOOK_INTERVAL);
        if !is_wanted {
            self.attachment.outer.matched.forget_others(&BTreeSet::new());
        }
        let Some(switch) = self.attachment.crossbar.clone().filter(|_| is_wanted) else { return };
        let candidates = match Candidates::now() {
            Ok(candidates) => candidates,
            Err(error) => return error!("cannot look at the interfaces: {}", with_causes(&error)),
        };
        let matching =
            candidates.matching(&self.config).map(|(interface, _)| interface.name.as_str()).collect();
        self.attachment.outer.matched.forget_others(&matching);
        let now = self.now();
        for (interface, why_not) in candidates.matching(&self.config) {
            let outer = &mut self.attachment.outer;
            let leads_elsewhere = candidates.why_elsewhere(interface).is_some();
            let led_elsewhere = outer.matched.led_elsewhere(now, &interface.name, leads_elsewhere);
            let why_not =
                why_not.or(led_elsewhere.then_some("it led to another network less than a minute ago"));
            let number = outer.number_of(&interface.name);
            match (number, why_not) {
                (Some(number), Some(why)) => {
                    outer.give_up(number, &switch);
                    outer.matched.give_up(&interface.name, interface.master, why);
                    warn!(port = number, interface = interface.name, "the port is given up: {why}");
                }
                (Some(number), None) => outer.look_at_new(number, interface),
                (None, Some(why)) if outer.matched.keeps(&interface.name, why) => {}
                (None, Some(why)) => outer.matched.leave_out(&interface.name, why),
                (None, None) => {
                    outer.take_matching(interface, &candidates.interfaces, &switch, &self.config);
                }
            }
        }
        self.attachment.keep_new_ports(&self.config);
        self.follow_carriers();
        self.follow_mtu();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_match_and_are_no_ports_are_named_with_the_reason() {
        let told = |left_out: &[(&str, &str)]| {
            let left_out = left_out.iter().map(|&(name, why)| (name.to_owned(), why.to_owned())).collect();
            no_port(&["eth*".to_owned(), "p?".to_owned()], &left_out)
        };
        assert_eq!(told(&[]), "no interface matches eth*, p?");
        assert_eq!(
            told(&[("eth0", "it is a bridge"), ("p1", "it is wireless")]),
            "no interface that matches eth*, p? can be a port (eth0: it is a bridge; p1: it is wireless)"
        );
    }

    #[test]
    fn addresses_that_were_leased_say_that_an_interface_leads_elsewhere() {
        let held = |address: &str, is_permanent| HeldAddress {
            index: 3,
            address: address.parse().unwrap(),
            is_for_others: true,
            is_permanent,
            is_ours: false,
        };
        assert!(is_leased(&held("192.168.1.7/24", false)) && is_leased(&held("2001:db8::7/64", false)));
        assert!(!is_leased(&held("10.9.1.1/24", true)) && !is_leased(&held("169.254.3.4/16", false)));
    }

    #[test]
    fn an_interface_that_led_to_another_network_is_no_port_for_a_minute() {
        let mut matched = Matched::default();
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        assert!(!matched.led_elsewhere(at(0), "eth0", false));
        assert!(matched.led_elsewhere(at(1), "eth0", true));
        assert!(
            matched.led_elsewhere(at(60), "eth0", false) && !matched.led_elsewhere(at(60), "eth1", false)
        );
        assert!(!matched.led_elsewhere(at(61), "eth0", false));
        matched.led_elsewhere(at(70), "eth0", true);
        matched.forget_others(&BTreeSet::from(["eth1"]));
        assert!(!matched.led_elsewhere(at(71), "eth0", false), "another interface may be called so now");
    }

    #[test]
    fn what_keeps_an_interface_from_being_a_port_is_told_until_it_is_one_or_matches_no_more() {
        let mut matched = Matched::default();
        let told = |matched: &Matched| matched.warnings().collect::<Vec<_>>();
        matched.leave_out("br0", "it is a bridge");
        ["p1", "p2", "p3"].iter().for_each(|name| matched.keep_from_it(name, "too short"));
        assert_eq!(told(&matched).len(), 3, "a bridge is none by what it is");
        matched.take("p1");
        let why = "it belongs to a bridge or bond";
        matched.give_up("p1", Some(9), why);
        assert!(matched.keeps("p1", why) && told(&matched)[0].contains(why), "it was a port until then");
        matched.take("p1");
        matched.leave_out("p2", why);
        assert_eq!(told(&matched), ["p3 matches a pattern of --ports and cannot be a port: too short"]);
        matched.forget_others(&BTreeSet::from(["br0"]));
        assert_eq!(told(&matched), Vec::<String>::new());
    }
}
