//! Warnings of what keeps users' frames from passing: interfaces that somebody took down or changed, and
//! hosts that are set differently.

use std::collections::BTreeMap;

use mapper_host::healing::LossyCable;
use mapper_host::kernel_path::Shortened;
use mapper_proto::Mac;
use mapper_proto::map::{Map, PortRef};
use tracing::warn;

use super::kernel_side::KernelSide;
use super::state::Driver;
use super::user_interface::UserInterface;
use crate::agent::DaemonError;
use crate::agent::status::{NarrowCable, unequal_mtus};
use crate::hosts_file::told::HostsFile;

impl Driver {
    /// What keeps users' frames from passing on this machine, in words.
    pub(super) fn warnings(&self) -> Vec<String> {
        [self.warnings_to_log(&|mac| self.called(mac)), self.troubled_cables()].concat()
    }

    /// What is wrong with the cables, in words.
    fn troubled_cables(&self) -> Vec<String> {
        let own = self.named_cable().and_then(|cable| cable.trouble(self.attachment.link.name()));
        let ports = self.named_ports();
        let of_ports = ports.iter().filter_map(|port| port.cable.trouble(&port.interface));
        own.into_iter().chain(of_ports).collect()
    }

    /// The warnings that the driver logs. What is wrong with cables is logged where it is found out. `called` names hosts; their
    /// number and order do not depend on it.
    fn warnings_to_log(&self, called: &dyn Fn(Mac) -> String) -> Vec<String> {
        let tap = self.users.as_ref().zip(self.host.tap_mtu());
        let mut warnings = tap.map(|(users, mtu)| users.warnings(mtu)).unwrap_or_default();
        let attachment = &self.attachment;
        let mtu = match &attachment.crossbar {
            Some(switch) => switch.least_mtu(),
            None => attachment.link.mtu(),
        };
        let needed = self.config.needed_mtu();
        if let Some(mtu) = mtu.filter(|&mtu| mtu < needed) {
            warnings.push(format!(
                "an interface of {} carries {mtu} bytes, but messages of the mapper need {needed}: they are lost; raise \
                 its MTU again",
                attachment.link.name(),
            ));
        }
        if let Some(map) = self.host.newest_map() {
            warnings.extend(describe_differing(map, self.host.own(), self.config.settings.non_clos, called));
        }
        // A warning that names the cables of the map says more than one that names the ports that differ.
        let of_host = |mac: &str| mac.parse().map_or_else(|_| mac.to_owned(), called);
        let narrow = NarrowCable::warning(&self.narrow_cables(), &of_host);
        warnings.extend(narrow.or_else(|| unequal_mtus(&attachment.outer_ports())));
        warnings.extend(self.kernel.iter().flat_map(KernelSide::warnings));
        warnings.extend(self.shortened_warnings(called));
        warnings.extend(self.warning_without_v4(called));
        warnings.extend(self.address_warnings(called));
        warnings
    }

    /// To which hosts only shorter frames get through than the ends of all cables say, in words.
    fn shortened_warnings(&self, called: &dyn Fn(Mac) -> String) -> Vec<String> {
        let path = self.kernel.as_ref().ok().and(self.host.kernel_path());
        path.map_or_else(Vec::new, |path| describe_shortened(path.shortened(), called))
    }

    /// To which hosts the kernel sends packets of IPv6 alone, in words.
    fn warning_without_v4(&self, called: &dyn Fn(Mac) -> String) -> Option<String> {
        let path = self.kernel.as_ref().ok().and(self.host.kernel_path())?;
        let hosts: Vec<Mac> = path.v4_not_carried().collect();
        (!hosts.is_empty()).then(|| describe_without_v4(&hosts, called))
    }

    /// What a cable loses, in words.
    fn lossy_warning(&self, cable: LossyCable) -> Option<String> {
        Some(describe_lossy(&self.both_ends(cable.at)?, cable))
    }

    /// The two ends of the cable in this port, in words.
    fn both_ends(&self, at: PortRef) -> Option<String> {
        let table = self.host.table()?;
        let ends = [Some(at), table.far_port(at)];
        let mut ends = self.ends_in_words(table.basis().map(), ends.iter().flatten());
        ends.extend(table.host_at(at).map(|mac| format!("host {}", self.called(mac))));
        Some(ends.join(" and "))
    }

    /// Logs that this cable loses frames, which was just found.
    pub(super) fn warn_of_lossy(&self, at: PortRef) {
        let found = self.host.healing().lossy_cables().find(|cable| cable.at == at);
        if let Some(words) = found.and_then(|cable| self.lossy_warning(cable)) {
            warn!("{words}");
        }
    }

    /// All that a board warns of. Beside the warnings that are logged, that is what is logged when it happens: which cables lose
    /// frames, what is wrong with the files of hosts' names and of maps, which interfaces cannot be ports, and which ports may
    /// lead to another network.
    pub(super) fn all_warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings();
        let healing = self.host.healing();
        warnings.extend(healing.lossy_cables().filter_map(|cable| self.lossy_warning(cable)));
        let left_out = healing.left_out_by_others().filter_map(|at| self.both_ends(at));
        warnings.extend(left_out.map(|ends| describe_left_out(&ends)));
        warnings.extend(self.hosts_file.iter().flat_map(HostsFile::warnings));
        warnings.extend(self.maps.failure());
        warnings.extend(self.attachment.outer.matched.warnings());
        warnings.extend(self.lonely_ports());
        warnings
    }

    /// Cables of the newest map that carry shorter frames than some host sends.
    pub(super) fn narrow_cables(&self) -> Vec<NarrowCable> {
        let Some(map) = self.host.newest_map() else { return Vec::new() };
        let attachment = &self.attachment;
        NarrowCable::of(map, self.host.own(), attachment.link.name(), &attachment.outer_ports())
    }

    /// Logs what is new about the interfaces, after a change of any of them.
    ///
    /// # Errors
    /// If the tap interface is gone.
    pub(super) fn look_around(&mut self) -> Result<(), DaemonError> {
        if self.users.as_ref().is_some_and(UserInterface::is_gone) {
            return Err(DaemonError::TapGone);
        }
        self.follow_cable();
        self.warn_of_changes();
        Ok(())
    }

    /// Logs the warnings that are new since this was last called.
    pub(super) fn warn_of_changes(&mut self) {
        // A name that comes later does not make another warning, so they are told apart by addresses.
        let warnings = self.warnings_to_log(&|mac| mac.to_string());
        let in_words = self.warnings_to_log(&|mac| self.called(mac));
        let is_settled = self.host.agent().status().network_complete;
        let new = self.warned.see(warnings.clone(), is_settled);
        for (_, words) in warnings.iter().zip(in_words).filter(|(warning, _)| new.contains(warning)) {
            warn!("{words}");
        }
    }
}

/// The warnings that were logged and count as being in force still, the oldest first.
///
/// While the network is mapped again, a map may lack for a moment what a warning is of, such as a cable of a
/// host that answered too late. So a warning ends only when all hosts have a map without it.
#[derive(Debug, Default)]
pub(super) struct Warned(Vec<String>);

impl Warned {
    /// The most warnings that are kept, for a network that all hosts never have one map of.
    const MOST: usize = 64;

    /// Takes in all `warnings` in force, and returns those that are new. `is_settled` says whether all hosts
    /// have the newest map.
    fn see(&mut self, warnings: Vec<String>, is_settled: bool) -> Vec<String> {
        let new: Vec<_> = warnings.iter().filter(|warning| !self.0.contains(warning)).cloned().collect();
        if is_settled {
            self.0 = warnings;
        } else {
            self.0.extend(new.iter().cloned());
            self.0.drain(..self.0.len().saturating_sub(Self::MOST));
        }
        new
    }
}

/// Which hosts have another setting of `non_clos` than the map, in words. The map's setting counts for all
/// hosts. `own` is this host, whose setting is now `own_non_clos`. `called` names hosts.
fn describe_differing(
    map: &Map,
    own: Mac,
    own_non_clos: bool,
    called: &dyn Fn(Mac) -> String,
) -> Option<String> {
    /// The most hosts that are named.
    const MOST: usize = 16;
    let leader = map.hosts.first()?.mac;
    let rules = &map.rules;
    let others = rules.differ.iter().copied().filter(|mac| *mac != own);
    let this = (own != leader && own_non_clos != rules.non_clos).then_some(own);
    let differ: Vec<Mac> = this.into_iter().chain(others).collect();
    if differ.is_empty() {
        return None;
    }
    let name = |mac: &Mac| if *mac == own { "this host".to_owned() } else { called(*mac) };
    let mut names: Vec<_> = differ.iter().take(MOST).map(name).collect();
    if differ.len() > MOST {
        names.push(format!("{} more", differ.len() - MOST));
    }
    let (theirs, all) = (!rules.non_clos, rules.non_clos);
    Some(format!(
        "non-clos is {theirs} at {}, but all hosts route by that of the global mapper {}, which is {all}: \
         set it alike at all hosts",
        names.join(", "),
        called(leader)
    ))
}

/// To which hosts only shorter frames get through than the ends of all cables say, in words: a sentence for each length.
fn describe_shortened(
    shortened: impl Iterator<Item = (Mac, Shortened)>,
    called: &dyn Fn(Mac) -> String,
) -> Vec<String> {
    let mut by_length: BTreeMap<Shortened, Vec<Mac>> = BTreeMap::new();
    for (mac, length) in shortened {
        by_length.entry(length).or_default().push(mac);
    }
    by_length.iter().map(|(length, hosts)| describe_one_length(*length, hosts, called)).collect()
}

/// Says that no longer frames than these get through to `hosts`.
fn describe_one_length(
    Shortened { to, said }: Shortened,
    hosts: &[Mac],
    called: &dyn Fn(Mac) -> String,
) -> String {
    format!(
        "of frames to {} only those of up to {to} bytes get through, though the ends of all cables on the way say {said}: `mapper \
         trace HOST --size {said}` names the first hop that longer ones do not reach; look there for a switch, a converter or a \
         network card that carries less, or for a narrow cable between two crossbars that have no agent; packets are kept as \
         short until longer ones pass",
        named(hosts, called)
    )
}

/// Says that the kernel sends packets of IPv6 alone to `hosts`.
fn describe_without_v4(hosts: &[Mac], called: &dyn Fn(Mac) -> String) -> String {
    format!(
        "packets of IPv4 to {} go by the tap interface, as probes of IPv4 through the kernels are not answered where those of \
         IPv6 are: a firewall there or on the way drops IPv4 alone, as tools for containers set it up, or IPAddressDeny= of the \
         daemon's unit at either end; `mapper doctor` on each machine says which chain, and what opens it",
        named(hosts, called)
    )
}

/// What these hosts are called; of many, the first few and how many more there are.
fn named(hosts: &[Mac], called: &dyn Fn(Mac) -> String) -> String {
    const MOST: usize = 8;
    let mut names: Vec<_> = hosts.iter().take(MOST).map(|&mac| called(mac)).collect();
    if hosts.len() > MOST {
        names.push(format!("{} more", hosts.len() - MOST));
    }
    names.join(", ")
}

/// What to do about a cable that loses frames.
const LOOK_AT_IT: &str = "look at its plugs, or replace it, unless there is more traffic than it can carry";

/// What a cable with these ends loses, in words.
fn describe_lossy(ends: &str, cable: LossyCable) -> String {
    let routes = if cable.is_left_out {
        "routes of all hosts go around it, until it loses none"
    } else if cable.is_avoided {
        "routes of this host go around it where others lead there that cannot deadlock, until it loses none"
    } else {
        "routes of this host do not go around it"
    };
    format!(
        "the cable between {ends} loses {} % of frames, there and back: {routes}; {LOOK_AT_IT}",
        cable.lost_percent
    )
}

/// Says that other hosts find that the cable with these ends loses frames.
fn describe_left_out(ends: &str) -> String {
    format!(
        "other hosts find that the cable between {ends} loses frames, so routes of all hosts go around it, until it loses none; \
         {LOOK_AT_IT}"
    )
}

#[cfg(test)]
mod tests {
    use mapper_proto::map::{Host, Rules};

    use super::*;

    #[test]
    fn a_warning_ends_when_all_hosts_have_a_map_without_it() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let mut warned = Warned::default();
        assert_eq!(warned.see(texts(&["narrow"]), true), texts(&["narrow"]));
        assert_eq!(warned.see(texts(&[]), false), texts(&[]), "a map that lacks a host");
        assert_eq!(warned.see(texts(&["narrow", "taken down"]), false), texts(&["taken down"]));
        assert_eq!(warned.see(texts(&["taken down"]), true), texts(&[]));
        assert_eq!(warned.see(texts(&["narrow"]), false), texts(&["narrow"]), "it was mended, and is back");
    }

    #[test]
    fn hosts_that_are_set_otherwise_are_named() {
        let mac = Mac::from_position;
        let called =
            |mac: Mac| if mac == Mac::from_position(2) { format!("n2 ({mac})") } else { mac.to_string() };
        let host = |n| Host { mac: mac(n), level: 1, host_type: 4, at: None };
        let map = |non_clos, differ: &[u32]| Map {
            hosts: vec![host(9), host(5), host(2)],
            rules: Rules { non_clos, differ: differ.iter().map(|&n| mac(n)).collect() },
            ..Map::default()
        };
        assert_eq!(describe_differing(&map(false, &[]), mac(5), false, &called), None);
        // This host's setting has changed since the map was made, and no longer differs.
        assert_eq!(describe_differing(&map(false, &[5]), mac(5), false, &called), None);
        let words = describe_differing(&map(false, &[2, 5]), mac(5), true, &called).unwrap();
        let expected = "non-clos is true at this host, n2 (02:00:00:00:00:02), but all hosts route by that of the \
                        global mapper 02:00:00:00:00:09, which is false: set it alike at all hosts";
        assert_eq!(words, expected);
        let words = describe_differing(&map(true, &[2]), mac(9), true, &called).unwrap();
        assert!(words.starts_with("non-clos is false at n2 (02:00:00:00:00:02), but"), "{words}");
    }

    #[test]
    fn a_cable_that_loses_frames_is_named_by_its_ends_with_what_is_done_about_it() {
        let cable = LossyCable {
            at: PortRef { xbar: 0, port: 1 },
            since: mapper_proto::Instant::ZERO,
            lost_percent: 20,
            is_avoided: true,
            is_left_out: false,
        };
        let ends = "port 1 of the xbar of a and port 3 of the xbar of b";
        let both = format!("the cable between {ends} loses 20 % of frames, there and back: ");
        for (is_avoided, is_left_out, routes) in [
            (true, false, "routes of this host go around it"),
            (false, false, "routes of this host do not go around it"),
            (true, true, "routes of all hosts go around it"),
        ] {
            let words = describe_lossy(ends, LossyCable { is_avoided, is_left_out, ..cable });
            assert!(words.starts_with(&format!("{both}{routes}")), "{words}");
        }
        let words = describe_left_out(ends);
        assert!(
            words.starts_with(&format!("other hosts find that the cable between {ends} loses")),
            "{words}"
        );
    }

    #[test]
    fn hosts_that_long_frames_do_not_reach_are_named_with_what_does() {
        let mac = Mac::from_position;
        let to = |n| (mac(n), Shortened { to: 1500, said: 9000 });
        let called = |mac: Mac| format!("h{}", mac.0[5]);
        assert!(describe_shortened([].into_iter(), &called).is_empty());
        let other = (mac(3), Shortened { to: 1500, said: 4000 });
        let told = describe_shortened([to(1), other, to(2)].into_iter(), &called);
        let expected = [("h3", 4000), ("h1, h2", 9000)].map(|(hosts, said)| {
            format!("of frames to {hosts} only those of up to 1500 bytes get through, though the ends of all cables on the way say {said}")
        });
        assert_eq!(told.len(), expected.len());
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(&expected), "{told}");
        }
        let told = describe_shortened((1..=10).map(to), &called);
        assert!(told[0].contains("h8, 2 more only") && told.len() == 1, "{told:?}");
        let told = describe_without_v4(&[mac(1), mac(2)], &called);
        assert!(told.starts_with("packets of IPv4 to h1, h2 go by the tap interface"), "{told}");
    }
}
