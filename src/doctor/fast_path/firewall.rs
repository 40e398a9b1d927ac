//! Firewalls that drop what the kernel is to forward from one port to another, or the probes that prove a path.
//!
//! What is read is what `nft` and `iptables-save` tell, as far as it can be judged without being a firewall: chains
//! that drop whatever no rule accepts, and rules that accept by interfaces and the port of UDP alone.

use std::collections::BTreeSet;

use mapper_fib::probe::UDP_PORT;
use mapper_machine::link::interface::Interface;
use mapper_proto::Mac;

use super::{Examined, iptables, nft};
use crate::doctor::{Check, Repair};

/// What stands in commands for ports that are not known yet.
const STAND_IN: &str = "IF";

/// Which packets a chain sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hook {
    /// Those that are for this machine.
    Input,
    /// Those that go on.
    Forward,
    /// Those that other chains send there.
    None,
}

/// The versions of IP that a table sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
    Both,
}

impl Family {
    /// Its name, as `nft` has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
            Self::Both => "inet",
        }
    }
}

/// What becomes of a packet that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Drop,
    /// Something else, such as another chain that decides.
    Other,
}

/// A rule, as far as it is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// The interfaces that a packet comes in by; all, if there is none. An asterisk at the end matches any rest.
    pub(super) came_in: Vec<String>,
    /// The interfaces that it leaves by.
    pub(super) leaves: Vec<String>,
    /// The port of UDP that it goes to.
    pub(super) udp_port: Option<u16>,
    /// Whether it matches by something else, too.
    pub(super) has_more: bool,
    pub(super) verdict: Verdict,
}

impl Rule {
    /// A rule that matches everything.
    pub(super) const fn of_all(verdict: Verdict) -> Self {
        Self { came_in: Vec::new(), leaves: Vec::new(), udp_port: None, has_more: false, verdict }
    }

    /// Whether it decides about all packets.
    fn is_for_all(&self) -> bool {
        *self == Self::of_all(self.verdict)
    }

    /// Whether it accepts packets that come in by this port and are not meant for a single port of UDP, or are for
    /// this one.
    fn accepts(&self, came_in: &str, leaves: Option<&str>, udp_port: Option<u16>) -> bool {
        let matches = |patterns: &[String], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| is_match(pattern, name))
        };
        self.verdict == Verdict::Accept
            && !self.has_more
            && matches(&self.came_in, came_in)
            && leaves.map_or(self.leaves.is_empty(), |leaves| matches(&self.leaves, leaves))
            && (self.udp_port.is_none() || self.udp_port == udp_port)
    }
}

fn is_match(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// A chain of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) family: Family,
    pub(super) table: String,
    pub(super) name: String,
    pub(super) hook: Hook,
    /// What becomes of packets that no rule decides about.
    pub(super) policy: Verdict,
    pub(super) rules: Vec<Rule>,
    /// The program that changes it, if it is one that chains of this name and table are made by.
    pub(super) program: Option<&'static str>,
}

impl Chain {
    /// Whether it drops what no rule accepts.
    fn drops_the_rest(&self) -> bool {
        self.policy == Verdict::Drop
            || self.rules.iter().any(|rule| rule.verdict == Verdict::Drop && rule.is_for_all())
    }

    fn title(&self) -> String {
        format!("{} {} {}", self.family.name(), self.table, self.name)
    }
}

/// Examines the firewall where no port is known yet. Commands name a stand-in, and nothing is mended with it.
pub(super) fn check_without_ports(examined: &Examined<'_>) -> Vec<Check> {
    let port = Interface {
        name: STAND_IN.to_owned(),
        index: 0,
        mac: Mac::default(),
        mtu: 1500,
        ethernet: true,
        up: true,
        carrier: true,
        master: None,
        kind: None,
    };
    let (cables, avoid) = (Vec::new(), examined.avoid);
    let Examined { choice, forwards, is_at_work, holds_objects, .. } = *examined;
    let checks = check(&Examined {
        ports: vec![port],
        left_alone: BTreeSet::new(),
        choice,
        avoid,
        forwards,
        is_at_work,
        holds_objects,
        cables,
    });
    let without_port = |check: Check| {
        let names_it = |fix: &String| fix.contains(&format!(" {STAND_IN} "));
        let told = |fix: String| match names_it(&fix) {
            true => {
                format!("{fix}, where {STAND_IN} stands for each port; `mapper doctor --ports ..` names them")
            }
            false => fix,
        };
        Check { repair: None, fix: check.fix.map(told), ..check }
    };
    checks.into_iter().map(without_port).collect()
}

pub(super) fn check(examined: &Examined<'_>) -> Vec<Check> {
    let mut chains = Vec::new();
    let mut unread = Vec::new();
    for read in [nft::read(), iptables::read()] {
        match read {
            Ok(found) => chains.extend(found),
            Err(why) => unread.push(why),
        }
    }
    let mut checks = judge(&chains, examined);
    if checks.is_empty() && unread.is_empty() {
        checks.push(Check::ok("firewall", "nothing that it forwards between ports is dropped"));
    }
    checks.extend(unread.into_iter().map(|why| {
        let fix = match rustix::process::geteuid().is_root() {
            true => "`apt-get install nftables iptables`; in a container, run `mapper doctor` on the machine itself",
            false => "run `mapper doctor` as root, with nftables and iptables installed",
        };
        Check::warning("firewall", format!("not looked at: {why}"), fix)
    }));
    checks
}

/// Names the chains that drop what the fast path needs.
fn judge(chains: &[Chain], examined: &Examined<'_>) -> Vec<Check> {
    let is_of_use = |chain: &&Chain| match (chain.hook, chain.family) {
        // IPv4 goes from one port to another without an outer header only by plain routes.
        (Hook::Forward, Family::V4) => examined.forwards && examined.choice.allows_routes(),
        (Hook::Forward, _) => examined.forwards,
        (Hook::Input, Family::V4) | (Hook::None, _) => false,
        (Hook::Input, _) => true,
    };
    let dropping = chains.iter().filter(is_of_use).filter(|chain| chain.drops_the_rest());
    dropping.filter_map(|chain| judge_chain(chain, chains, &examined.ports)).collect()
}

fn judge_chain(chain: &Chain, all: &[Chain], ports: &[Interface]) -> Option<Check> {
    let of_table = |it: &&Chain| {
        let is_here = (it.family, &it.table, it.program) == (chain.family, &chain.table, chain.program);
        is_here && (it.hook == Hook::None || it.name == chain.name)
    };
    let rules = || all.iter().filter(of_table).flat_map(|chain| &chain.rules);
    let outs: Vec<Option<&str>> = match chain.hook {
        Hook::Forward => ports.iter().map(|port| Some(port.name.as_str())).collect(),
        Hook::Input | Hook::None => vec![None],
    };
    let udp_port = (chain.hook == Hook::Input).then_some(UDP_PORT);
    let pairs = ports.iter().flat_map(|port| outs.iter().map(move |&out| (port.name.as_str(), out)));
    let dropped: Vec<_> =
        pairs.filter(|&(port, out)| !rules().any(|rule| rule.accepts(port, out, udp_port))).collect();
    if dropped.is_empty() {
        return None;
    }
    let what = match chain.hook {
        Hook::Forward => "what comes in by one port and leaves by another or the same",
        Hook::Input | Hook::None => "the probes that prove paths through kernels",
    };
    let what = format!(
        "the chain {} drops what no rule accepts, and no rule that this program understands accepts {what}",
        chain.title()
    );
    // Other chains, and rules that match by more, may accept it all the same.
    let is_sure = !rules().any(|rule| rule.verdict != Verdict::Drop);
    let repair = repair(chain, &dropped);
    let commands = match &repair {
        Some(repair) => repair.commands.clone(),
        None => dropped.iter().map(|&(port, out)| by_nft(chain, port, out)).collect(),
    };
    let fix = commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ");
    let check =
        if is_sure { Check::failed("firewall", what, fix) } else { Check::warning("firewall", what, fix) };
    Some(Check { repair, ..check })
}

/// The rules that let the fast path pass, for chains that `iptables` makes. They concern nothing but packets between
/// ports of the fabric, and probes.
fn repair(chain: &Chain, dropped: &[(&str, Option<&str>)]) -> Option<Repair> {
    let (program, name) = (chain.program?, &chain.name);
    let rule = |&(port, out): &(&str, Option<&str>)| match out {
        Some(out) => format!("{name} -i {port} -o {out} -j ACCEPT"),
        None => format!("{name} -i {port} -p udp --dport {UDP_PORT} -j ACCEPT"),
    };
    let all = |option: &str| dropped.iter().map(|it| format!("{program} {option} {}", rule(it))).collect();
    Some(Repair { commands: all("-I"), undo: all("-D") })
}

fn by_nft(chain: &Chain, port: &str, out: Option<&str>) -> String {
    let rule = match out {
        Some(out) => format!("iifname {port} oifname {out} accept"),
        None => format!("iifname {port} udp dport {UDP_PORT} accept"),
    };
    format!("nft insert rule {} {rule}", chain.title())
}

#[cfg(test)]
mod tests {
    use mapper_machine::options::DataPathChoice;

    use super::super::super::Outcome;
    use super::*;
    use crate::doctor::interface::tests::port;

    fn judged(chains: &[Chain], choice: DataPathChoice, forwards: bool) -> Vec<Check> {
        let ports = vec![port("eth1", 1500), port("eth2", 1500)];
        judge(
            chains,
            &Examined {
                ports,
                left_alone: BTreeSet::new(),
                choice,
                avoid: &[],
                forwards,
                is_at_work: false,
                holds_objects: false,
                cables: Vec::new(),
            },
        )
    }

    fn chain(family: Family, hook: Hook, policy: Verdict, rules: Vec<Rule>) -> Chain {
        let name = if hook == Hook::Forward { "FORWARD" } else { "INPUT" };
        let program = Some(if family == Family::V4 { "iptables" } else { "ip6tables" });
        Chain { family, table: "filter".to_owned(), name: name.to_owned(), hook, policy, rules, program }
    }

    fn between(came_in: &str, leaves: &str) -> Rule {
        let names = |name: &str| vec![name.to_owned()];
        Rule { came_in: names(came_in), leaves: names(leaves), ..Rule::of_all(Verdict::Accept) }
    }

    #[test]
    fn a_chain_that_drops_by_default_is_named_with_rules_for_the_ports_alone() {
        let drops = chain(Family::V6, Hook::Forward, Verdict::Drop, Vec::new());
        let checks = judged(std::slice::from_ref(&drops), DataPathChoice::Auto, true);
        let [check] = checks.as_slice() else { panic!("{checks:?}") };
        assert_eq!(check.status, Outcome::Failed);
        let repair = check.repair.as_ref().unwrap();
        assert_eq!(repair.commands.len(), 4);
        assert_eq!(repair.commands[1], "ip6tables -I FORWARD -i eth1 -o eth2 -j ACCEPT");
        assert_eq!(repair.undo[1], "ip6tables -D FORWARD -i eth1 -o eth2 -j ACCEPT");
        assert_eq!(judged(&[drops], DataPathChoice::Auto, false), [], "who does not forward");
    }

    #[test]
    fn rules_that_accept_what_goes_between_ports_are_understood() {
        let with = |rules| {
            judged(&[chain(Family::V6, Hook::Forward, Verdict::Drop, rules)], DataPathChoice::Auto, true)
        };
        assert_eq!(with(vec![between("eth*", "eth*")]), []);
        assert_eq!(with(vec![between("eth1", "eth*"), between("eth2", "eth*")]), []);
        assert_eq!(with(vec![Rule { leaves: Vec::new(), ..between("eth*", "") }]), []);
        assert_eq!(with(vec![between("eth1", "eth*")])[0].repair.as_ref().unwrap().commands.len(), 2);
        let established = Rule { has_more: true, ..between("eth*", "eth*") };
        assert_eq!(with(vec![established])[0].status, Outcome::Warning, "it may accept some");
        let rejects = vec![Rule::of_all(Verdict::Drop)];
        let checks =
            judged(&[chain(Family::V6, Hook::Forward, Verdict::Accept, rejects)], DataPathChoice::Auto, true);
        assert_eq!(checks.len(), 1, "a rule that drops all is like a policy");
    }

    #[test]
    fn ipv4_is_forwarded_by_plain_routes_alone_and_probes_are_ipv6() {
        let v4 = chain(Family::V4, Hook::Forward, Verdict::Drop, Vec::new());
        assert_eq!(judged(std::slice::from_ref(&v4), DataPathChoice::Srv6, true), []);
        assert_eq!(judged(&[v4], DataPathChoice::Routes, true).len(), 1);
        let input = chain(Family::Both, Hook::Input, Verdict::Drop, Vec::new());
        let input = Chain { program: None, ..input };
        let checks = judged(std::slice::from_ref(&input), DataPathChoice::Srv6, false);
        let wanted = "`nft insert rule inet filter INPUT iifname eth1 udp dport 34997 accept`";
        assert!(checks[0].fix.as_ref().unwrap().contains(wanted), "{checks:?}");
        assert!(checks[0].repair.is_none(), "a rule of nft is undone by a number that is not known before");
        let probes = Rule { udp_port: Some(UDP_PORT), leaves: Vec::new(), ..between("eth*", "") };
        assert_eq!(judged(&[Chain { rules: vec![probes], ..input }], DataPathChoice::Srv6, false), []);
    }
}
