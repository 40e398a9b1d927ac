//! Chains as `iptables-save` tells them, where the kernel holds tables of the kind before nftables.

use super::chains::{Chain, Family, Hook, Rule, Verdict};
use crate::doctor::repair::output_of;

/// The chains of the tables before nftables; none where the kernel holds no such tables. What `iptables` makes in
/// nftables, `nft` tells.
pub(super) fn read() -> Result<Vec<Chain>, String> {
    let kinds = [
        (Family::V4, "/proc/net/ip_tables_names", "iptables-legacy"),
        (Family::V6, "/proc/net/ip6_tables_names", "ip6tables-legacy"),
    ];
    let mut chains = Vec::new();
    for (family, names, program) in kinds {
        if std::fs::read_to_string(names).unwrap_or_default().trim().is_empty() {
            continue;
        }
        let save = format!("{program}-save");
        let output = output_of(&save, &[]).ok_or_else(|| format!("there is no program {save}"))??;
        if !output.status.success() {
            return Err(format!("{save}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        chains.extend(parse(&String::from_utf8_lossy(&output.stdout), family, program));
    }
    Ok(chains)
}

fn parse(text: &str, family: Family, program: &'static str) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    let mut table = "";
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [first] if first.starts_with('*') => table = &first[1..],
            [first, policy, ..] if first.starts_with(':') => {
                let name = first[1..].to_owned();
                let hook = match (table, name.as_str()) {
                    ("filter", "FORWARD") => Hook::Forward,
                    ("filter", "INPUT") => Hook::Input,
                    _ => Hook::None,
                };
                let policy = if *policy == "DROP" { Verdict::Drop } else { Verdict::Accept };
                let program = Some(program);
                chains.push(Chain {
                    family,
                    table: table.to_owned(),
                    name,
                    hook,
                    policy,
                    rules: Vec::new(),
                    program,
                });
            }
            ["-A", chain, rest @ ..] => {
                let is_here = |it: &&mut Chain| it.table == table && it.name == *chain;
                if let Some(chain) = chains.iter_mut().find(is_here) {
                    chain.rules.push(rule(rest));
                }
            }
            _ => {}
        }
    }
    chains
}

fn rule(words: &[&str]) -> Rule {
    let mut rule = Rule::of_all(Verdict::Other);
    let pattern = |name: &str| match name.strip_suffix('+') {
        Some(start) => format!("{start}*"),
        None => name.to_owned(),
    };
    let mut rest = words;
    let mut is_of_udp = false;
    while let [option, value, after @ ..] = rest {
        rest = after;
        match *option {
            "-i" => rule.came_in = vec![pattern(value)],
            "-o" => rule.leaves = vec![pattern(value)],
            "-p" if *value == "udp" => is_of_udp = true,
            "-m" if *value == "udp" || *value == "comment" => {}
            "--dport" => rule.udp_port = value.parse().ok(),
            "-j" => {
                rule.verdict = match *value {
                    "ACCEPT" => Verdict::Accept,
                    "DROP" | "REJECT" => Verdict::Drop,
                    _ => Verdict::Other,
                };
                if is_of_udp && rule.udp_port.is_none() {
                    rule.more.push("-p udp".to_owned());
                }
                // The words that follow say how to reject.
                return rule;
            }
            _ => rule.more.push(format!("{option} {value}")),
        }
    }
    rule.more.push(words.join(" "));
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read_with_their_rules() {
        let text = "*nat\n:FORWARD ACCEPT [0:0]\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [3:180]\n\
                    :DOCKER - [0:0]\n-A INPUT -i eth1 -p udp -m udp --dport 34997 -j ACCEPT\n\
                    -A FORWARD -i eth1 -o eth+ -j ACCEPT\n-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
                    -A FORWARD ! -i eth9 -j ACCEPT\n-A FORWARD -j REJECT --reject-with icmp6-port-unreachable\nCOMMIT\n";
        let chains = parse(text, Family::V6, "ip6tables-legacy");
        let [_nat, input, forward, docker] = chains.as_slice() else { panic!("{chains:?}") };
        assert_eq!((forward.hook, forward.policy, docker.hook), (Hook::Forward, Verdict::Drop, Hook::None));
        assert_eq!(input.rules[0].udp_port, Some(34997));
        assert!(input.rules[0].more.is_empty());
        assert_eq!(forward.rules[0].leaves, ["eth*"]);
        assert!(!forward.rules[1].more.is_empty() && !forward.rules[2].more.is_empty());
        assert_eq!(forward.rules[3], Rule::of_all(Verdict::Drop));
        assert!(
            !rule(&["-p", "udp", "-j", "ACCEPT"]).more.is_empty(),
            "a rule for all of UDP is none for all packets"
        );
    }
}
