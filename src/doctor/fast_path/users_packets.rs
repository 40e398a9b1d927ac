//! Firewalls that accept users' packets by the tap interface and drop them where kernels carry them.

use std::collections::BTreeSet;

use super::Examined;
use super::chains::{Chain, Rule, Verdict, rules_of};
use crate::doctor::repair::in_words;
use crate::doctor::{Check, Repair};

/// Names a chain that accepts users' packets where they come in by the tap interface, and drops them where kernels carry them:
/// then they come in by the ports.
pub(super) fn judge(chain: &Chain, all: &[Chain], examined: &Examined<'_>) -> Option<Check> {
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
    let ports: BTreeSet<&str> = lacking.iter().map(|(port, _)| *port).collect();
    let what = format!(
        "the chain {} accepts packets of users that come in by {tap}, and drops them where kernels carry them, as they come in by \
         {} then",
        chain.title(),
        ports.into_iter().collect::<Vec<_>>().join(" and ")
    );
    // A repair puts its rules at the head of the chain, so each rule that it copies must have none before it that may drop packets.
    let comes_first = |rule: &Rule| {
        let at = chain.rules.iter().position(|it| it == rule);
        at.is_some_and(|at| chain.rules[..at].iter().all(|before| before.verdict == Verdict::Accept))
    };
    if !lacking.iter().all(|(_, rule)| rule.more.is_empty() && comes_first(rule)) {
        let fix = format!(
            "repeat each rule that names {tap} for the ports, by which packets come in as well, or go by the tap interface alone: \
             `--data-path tap`"
        );
        return Some(Check::failed("firewall", what, fix));
    }
    let commands: Vec<String> =
        lacking.iter().map(|(port, rule)| accepting(chain, port, rule.udp_port)).collect();
    let repair = chain.program.map(|_| Repair {
        commands: commands.clone(),
        undo: commands.iter().map(|command| command.replacen(" -I ", " -D ", 1)).collect(),
    });
    Some(Check { repair, ..Check::failed("firewall", what, in_words(&commands)) })
}

/// The command that has a chain accept what comes in by a port, all of it or what goes to a port of UDP.
fn accepting(chain: &Chain, port: &str, udp_port: Option<u16>) -> String {
    match chain.program {
        Some(program) => {
            let udp = udp_port.map_or_else(String::new, |to| format!(" -p udp --dport {to}"));
            format!("{program} -I {} -i {port}{udp} -j ACCEPT", chain.name)
        }
        None => {
            let udp = udp_port.map_or_else(String::new, |to| format!(" udp dport {to}"));
            format!("nft insert rule {} iifname {port}{udp} accept", chain.title())
        }
    }
}
