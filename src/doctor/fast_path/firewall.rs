//! Firewalls that drop what the kernel is to forward from one port to another, or the probes that prove a path.
//!
//! What is read is what `nft` and `iptables-save` tell, as far as it can be judged without being a firewall: chains
//! that drop whatever no rule accepts, and rules that accept by interfaces and the port of UDP alone.

use std::collections::BTreeSet;

use mapper_fib::probe::UDP_PORT;
use mapper_machine::link::interface::Interface;
use mapper_proto::Mac;

use super::chains::{Chain, Family, Hook, Verdict, rules_of};
use super::{Examined, iptables, nft, users_packets};
use crate::doctor::repair::in_words;
use crate::doctor::{Check, Repair};

/// What stands in commands for ports that are not known yet.
const STAND_IN: &str = "IF";

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
        // Probes of IPv4 matter where anybody may use IPv4.
        (Hook::Input, Family::V4) => {
            let may_accept = |tap| rules_of(chain, chains).any(|rule| rule.may_accept_from(tap));
            examined.tap.is_some_and(may_accept)
        }
        (Hook::Input, _) => true,
        (Hook::None, _) => false,
    };
    let of_users: Vec<Check> = chains
        .iter()
        .filter(|chain| chain.hook == Hook::Input)
        .filter_map(|chain| users_packets::judge(chain, chains, examined))
        .collect();
    // Once probes pass, users' packets come in by the ports, too, and would be lost where they are not accepted there.
    let may_open = of_users.iter().all(|check| check.repair.is_some());
    let judged = chains.iter().filter(is_of_use).filter_map(|chain| {
        let check = judge_chain(chain, chains, &examined.ports)?;
        Some(match may_open || chain.hook != Hook::Input {
            true => check,
            false => {
                let fix = format!(
                    "once users' packets are accepted by the ports, and not before: {}",
                    check.fix.unwrap_or_default()
                );
                Check { repair: None, fix: Some(fix), ..check }
            }
        })
    });
    let judged: Vec<Check> = judged.collect();
    of_users.into_iter().chain(judged).collect()
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
    let what = match (chain.hook, chain.family) {
        (Hook::Forward, _) => "what comes in by one port and leaves by another or the same",
        (Hook::Input | Hook::None, Family::V4) => {
            "the probes that show that IPv4 gets through, without which its packets go by the tap interface"
        }
        (Hook::Input | Hook::None, Family::V6 | Family::Both) => {
            "the probes that prove paths through kernels"
        }
    };
    let what = match drops_the_rest {
        true => format!(
            "the chain {} drops what no rule accepts, and no rule that this program understands accepts {what}",
            chain.title()
        ),
        false => format!("a rule of the chain {} drops {what}", chain.title()),
    };
    // Other chains, and rules that match by more, may accept it all the same. Without probes of IPv4 packets are slower, and get
    // there.
    let is_sure = (chain.hook, chain.family) != (Hook::Input, Family::V4)
        && !rules().any(|rule| rule.verdict != Verdict::Drop);
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
    use super::super::chains::Rule;
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
        let established = Rule { more: vec!["ct state established".to_owned()], ..between("eth*", "eth*") };
        assert_eq!(with(vec![established])[0].status, Outcome::Warning, "it may accept some");
        let rejects = vec![Rule::of_all(Verdict::Drop)];
        let checks =
            judged(&[chain(Family::V6, Hook::Forward, Verdict::Accept, rejects)], DataPathChoice::Auto, true);
        assert_eq!(checks.len(), 1, "a rule that drops all is like a policy");
    }

    #[test]
    fn ipv4_is_forwarded_by_plain_routes_alone_and_its_probes_come_in_where_it_is_used() {
        let v4 = chain(Family::V4, Hook::Forward, Verdict::Drop, Vec::new());
        assert_eq!(judged(std::slice::from_ref(&v4), DataPathChoice::Srv6, true), []);
        assert_eq!(judged(&[v4], DataPathChoice::Routes, true).len(), 1);
        let v4 = |rules| {
            judged(&[chain(Family::V4, Hook::Input, Verdict::Drop, rules)], DataPathChoice::Srv6, false)
        };
        assert_eq!(v4(Vec::new()), [], "nothing of IPv4 is accepted at all");
        let checks =
            v4(vec![Rule { more: vec!["tcp dport 22".to_owned()], ..Rule::of_all(Verdict::Accept) }]);
        assert_eq!((checks.len(), checks[0].status), (1, Outcome::Warning));
        let command = "iptables -I INPUT -i eth1 -p udp --dport 34997 -j ACCEPT";
        assert_eq!(checks[0].repair.as_ref().unwrap().commands[0], command);
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
        assert_eq!(
            with(vec![drops("eth9"), Rule { more: vec!["tcp dport 22".to_owned()], ..drops("eth1") }]),
            []
        );
        let other = Rule::of_all(Verdict::Other);
        let of_some = Rule { more: vec!["tcp dport 22".to_owned()], ..other.clone() };
        for other in [other, of_some] {
            assert_eq!(with(vec![other, drops("eth1")]), [], "another chain decides first");
        }
        // Such a chain may accept what the last rule of this one drops.
        let jump = Rule { more: vec!["tcp dport 22".to_owned()], ..Rule::of_all(Verdict::Other) };
        let last = chain(Family::V6, Hook::Forward, Verdict::Accept, vec![jump, Rule::of_all(Verdict::Drop)]);
        let mine = Chain {
            name: "MINE".to_owned(),
            ..chain(Family::V6, Hook::None, Verdict::Accept, vec![between("eth*", "eth*")])
        };
        assert_eq!(judged(&[last, mine], DataPathChoice::Auto, true), []);
    }

    #[test]
    fn who_accepts_packets_by_the_tap_interface_is_told_to_accept_them_by_ports() {
        let by = |came_in: &str| Rule { leaves: Vec::new(), ..between(came_in, "") };
        let with = |family, rules| {
            judged(&[chain(family, Hook::Input, Verdict::Drop, rules)], DataPathChoice::Auto, true)
        };
        let checks = with(Family::V4, vec![by("fabric0")]);
        let [check, of_probes] = checks.as_slice() else { panic!("{checks:?}") };
        assert_eq!((of_probes.status, of_probes.repair.is_some()), (Outcome::Warning, true));
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
        let of_some = Rule { more: vec!["tcp dport 22".to_owned()], ..Rule::of_all(Verdict::Drop) };
        let behind = with(Family::V4, vec![of_some, by("fabric0")]);
        assert!(behind[0].repair.is_none(), "what is dropped before stays dropped: {behind:?}");
        // Of IPv6 probes have to come in as well. As long as users' packets would be dropped, nothing opens the way to them.
        let ssh = Rule { more: vec!["tcp dport 22".to_owned()], ..by("fabric0") };
        let checks = with(Family::V6, vec![ssh]);
        assert_eq!(checks.len(), 2);
        assert!(checks.iter().all(|check| check.repair.is_none()), "{checks:?}");
        // A rule for connections that are there already accepts nothing that is new.
        let established =
            Rule { more: vec!["ct state established".to_owned()], ..Rule::of_all(Verdict::Accept) };
        let ssh = Rule { more: vec!["tcp dport 22".to_owned()], ..by("fabric0") };
        let checks = with(Family::Both, vec![established.clone(), ssh.clone()]);
        let [of_users, of_probes] = checks.as_slice() else { panic!("{checks:?}") };
        assert!(of_users.fix.as_ref().unwrap().starts_with("repeat each rule that names fabric0"));
        assert!(of_probes.fix.as_ref().unwrap().starts_with("once users' packets are accepted by the ports"));
        let by_ports = Rule { came_in: vec!["fabric0".to_owned(), "eth*".to_owned()], ..ssh };
        assert_eq!(with(Family::Both, vec![established, by_ports]).len(), 1, "only the probes are dropped");
        assert!(with(Family::V6, vec![by("fabric0")]).iter().all(|check| check.repair.is_some()));
    }
}
