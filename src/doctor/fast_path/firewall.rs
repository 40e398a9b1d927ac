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

    /// Whether it decides about all packets that come in by this port and are not meant for a single port of UDP, or are for
    /// this one.
    fn decides(&self, came_in: &str, leaves: Option<&str>, udp_port: Option<u16>) -> bool {
        !self.has_more
            && is_any_match(&self.came_in, came_in)
            && leaves.map_or(self.leaves.is_empty(), |leaves| is_any_match(&self.leaves, leaves))
            && (self.udp_port.is_none() || self.udp_port == udp_port)
    }

    /// Whether it accepts them.
    fn accepts(&self, came_in: &str, leaves: Option<&str>, udp_port: Option<u16>) -> bool {
        self.verdict == Verdict::Accept && self.decides(came_in, leaves, udp_port)
    }

    /// Whether it accepts packets because they come in by this interface.
    fn accepts_for(&self, interface: &str) -> bool {
        let is_named = !self.came_in.is_empty() && is_any_match(&self.came_in, interface);
        self.verdict == Verdict::Accept && is_named
    }

    /// Whether it accepts, of what comes in by this port, at least what `other` accepts elsewhere. Of what rules match by
    /// beside interfaces and ports of UDP no more is known than that there is something.
    fn accepts_as_well(&self, came_in: &str, other: &Self) -> bool {
        self.verdict == Verdict::Accept
            && is_any_match(&self.came_in, came_in)
            && (!self.has_more || other.has_more)
            && (self.udp_port.is_none() || self.udp_port == other.udp_port)
    }
}

/// Whether a name matches one of these patterns, or there are none.
fn is_any_match(patterns: &[String], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| is_match(pattern, name))
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

    /// Whether a rule of its own drops what comes in by this port: the first one that decides about all of it.
    fn drops_by_rule(&self, came_in: &str, leaves: Option<&str>, udp_port: Option<u16>) -> bool {
        let first = self.rules.iter().find(|rule| rule.decides(came_in, leaves, udp_port));
        first.is_some_and(|rule| rule.verdict == Verdict::Drop)
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
    let Examined { choice, forwards, is_at_work, holds_objects, tap, .. } = *examined;
    let checks = check(&Examined {
        ports: vec![port],
        left_alone: BTreeSet::new(),
        choice,
        avoid,
        forwards,
        is_at_work,
        holds_objects,
        cables,
        tap,
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
    let of_users: Vec<Check> = chains
        .iter()
        .filter(|chain| chain.hook == Hook::Input)
        .filter_map(|chain| judge_users(chain, chains, examined))
        .collect();
    // Once probes pass, users' packets come in by the ports, too, and would be lost where they are not accepted there.
    let may_open = of_users.iter().all(|check| check.repair.is_some());
    let judged = chains.iter().filter(is_of_use).filter_map(|chain| {
        let check = judge_chain(chain, chains, &examined.ports)?;
        let repair = check.repair.filter(|_| may_open || chain.hook != Hook::Input);
        Some(Check { repair, ..check })
    });
    let judged: Vec<Check> = judged.collect();
    of_users.into_iter().chain(judged).collect()
}

/// The rules of a chain and of those that it may send packets to.
fn rules_of<'a>(chain: &'a Chain, all: &'a [Chain]) -> impl Iterator<Item = &'a Rule> {
    let of_table = |it: &&Chain| {
        let is_here = (it.family, &it.table, it.program) == (chain.family, &chain.table, chain.program);
        is_here && (it.hook == Hook::None || it.name == chain.name)
    };
    all.iter().filter(of_table).flat_map(|chain| &chain.rules)
}

/// Names a chain that accepts users' packets where they come in by the tap interface, and drops them where kernels carry them:
/// then they come in by the ports.
fn judge_users(chain: &Chain, all: &[Chain], examined: &Examined<'_>) -> Option<Check> {
    let tap = examined.tap?;
    if !chain.drops_the_rest() {
        return None;
    }
    let accepted = || rules_of(chain, all).filter(|rule| rule.accepts_for(tap));
    let by_ports =
        examined.ports.iter().flat_map(|port| accepted().map(move |rule| (port.name.as_str(), rule)));
    let lacking: Vec<(&str, &Rule)> = by_ports
        .filter(|(port, wanted)| !rules_of(chain, all).any(|rule| rule.accepts_as_well(port, wanted)))
        .collect();
    if lacking.is_empty() {
        return None;
    }
    let what = format!(
        "the chain {} accepts packets of users that come in by {tap}, and drops them where kernels carry them, as they come in by \
         {} then",
        chain.title(),
        lacking
            .iter()
            .map(|(port, _)| *port)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
            .join(" and ")
    );
    if lacking.iter().any(|(_, rule)| rule.has_more) {
        let fix = format!(
            "repeat each rule that names {tap} for the ports, by which packets come in as well, or go by the tap interface alone: \
             `--data-path tap`"
        );
        return Some(Check::failed("firewall", what, fix));
    }
    let to_port = |rule: &Rule, udp: &dyn Fn(u16) -> String| rule.udp_port.map_or_else(String::new, udp);
    let commands: Vec<String> = match chain.program {
        Some(program) => {
            let udp = |to: u16| format!(" -p udp --dport {to}");
            let lines = lacking.iter().map(|(port, rule)| {
                format!("{program} -I {} -i {port}{} -j ACCEPT", chain.name, to_port(rule, &udp))
            });
            lines.collect()
        }
        None => {
            let udp = |to: u16| format!(" udp dport {to}");
            let lines = lacking.iter().map(|(port, rule)| {
                format!("nft insert rule {} iifname {port}{} accept", chain.title(), to_port(rule, &udp))
            });
            lines.collect()
        }
    };
    let repair = chain.program.map(|_| Repair {
        commands: commands.clone(),
        undo: commands.iter().map(|command| command.replacen(" -I ", " -D ", 1)).collect(),
    });
    Some(Check { repair, ..Check::failed("firewall", what, in_words(&commands)) })
}

/// Commands as they stand in advice.
fn in_words(commands: &[String]) -> String {
    commands.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ")
}

fn judge_chain(chain: &Chain, all: &[Chain], ports: &[Interface]) -> Option<Check> {
    let rules = || rules_of(chain, all);
    let outs: Vec<Option<&str>> = match chain.hook {
        Hook::Forward => ports.iter().map(|port| Some(port.name.as_str())).collect(),
        Hook::Input | Hook::None => vec![None],
    };
    let udp_port = (chain.hook == Hook::Input).then_some(UDP_PORT);
    let pairs = ports.iter().flat_map(|port| outs.iter().map(move |&out| (port.name.as_str(), out)));
    let drops_the_rest = chain.drops_the_rest();
    let is_dropped = |&(port, out): &(&str, Option<&str>)| {
        chain.drops_by_rule(port, out, udp_port)
            || drops_the_rest && !rules().any(|rule| rule.accepts(port, out, udp_port))
    };
    let dropped: Vec<_> = pairs.filter(is_dropped).collect();
    if dropped.is_empty() {
        return None;
    }
    let what = match chain.hook {
        Hook::Forward => "what comes in by one port and leaves by another or the same",
        Hook::Input | Hook::None => "the probes that prove paths through kernels",
    };
    let what = match drops_the_rest {
        true => format!(
            "the chain {} drops what no rule accepts, and no rule that this program understands accepts {what}",
            chain.title()
        ),
        false => format!("a rule of the chain {} drops {what}", chain.title()),
    };
    // Other chains, and rules that match by more, may accept it all the same.
    let is_sure = !rules().any(|rule| rule.verdict != Verdict::Drop);
    let repair = repair(chain, &dropped);
    let commands = match &repair {
        Some(repair) => repair.commands.clone(),
        None => dropped.iter().map(|&(port, out)| by_nft(chain, port, out)).collect(),
    };
    let fix = in_words(&commands);
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
                tap: Some("fabric0"),
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

    #[test]
    fn a_rule_that_drops_what_comes_in_by_a_port_is_like_a_policy_for_it() {
        let drops = |came_in: &str| Rule { came_in: vec![came_in.to_owned()], ..Rule::of_all(Verdict::Drop) };
        let with = |rules| {
            judged(&[chain(Family::V6, Hook::Forward, Verdict::Accept, rules)], DataPathChoice::Auto, true)
        };
        let checks = with(vec![drops("eth1")]);
        assert_eq!(checks[0].status, Outcome::Failed);
        assert!(checks[0].what.starts_with("a rule of the chain ip6 filter FORWARD drops what comes in"));
        let commands = checks[0].repair.as_ref().unwrap().commands.join(";");
        assert_eq!(
            commands,
            "ip6tables -I FORWARD -i eth1 -o eth1 -j ACCEPT;ip6tables -I FORWARD -i eth1 -o eth2 -j ACCEPT"
        );
        assert_eq!(with(vec![between("eth*", "eth*"), drops("eth1")]), [], "the first that matches decides");
        assert_eq!(with(vec![drops("eth9"), Rule { has_more: true, ..drops("eth1") }]), []);
        let other = Rule::of_all(Verdict::Other);
        assert_eq!(with(vec![other, drops("eth1")]), [], "another chain decides first");
    }

    #[test]
    fn who_accepts_packets_by_the_tap_interface_is_told_to_accept_them_by_ports() {
        let by = |came_in: &str| Rule { leaves: Vec::new(), ..between(came_in, "") };
        let with = |family, rules| {
            judged(&[chain(family, Hook::Input, Verdict::Drop, rules)], DataPathChoice::Auto, true)
        };
        let checks = with(Family::V4, vec![by("fabric0")]);
        let [check] = checks.as_slice() else { panic!("{checks:?}") };
        assert_eq!(check.status, Outcome::Failed);
        let repair = check.repair.as_ref().unwrap();
        assert_eq!(
            repair.commands,
            ["eth1", "eth2"].map(|port| format!("iptables -I INPUT -i {port} -j ACCEPT"))
        );
        assert_eq!(repair.undo[0], "iptables -D INPUT -i eth1 -j ACCEPT");
        assert_eq!(with(Family::V4, vec![by("fabric0"), by("eth*")]), []);
        assert_eq!(with(Family::V4, vec![by("lo")]), [], "nothing is accepted by the tap interface");
        let dns = Rule { udp_port: Some(53), ..by("fabric0") };
        let checks = with(Family::V4, vec![dns.clone()]);
        let command = &checks[0].repair.as_ref().unwrap().commands[0];
        assert_eq!(command, "iptables -I INPUT -i eth1 -p udp --dport 53 -j ACCEPT");
        assert_eq!(with(Family::V4, vec![dns, Rule::of_all(Verdict::Accept)]), []);
        // Of IPv6 probes have to come in as well. As long as users' packets would be dropped, nothing opens the way to them.
        let ssh = Rule { has_more: true, ..by("fabric0") };
        let checks = with(Family::V6, vec![ssh]);
        assert_eq!(checks.len(), 2);
        assert!(checks.iter().all(|check| check.repair.is_none()), "{checks:?}");
        assert!(with(Family::V6, vec![by("fabric0")]).iter().all(|check| check.repair.is_some()));
    }
}
