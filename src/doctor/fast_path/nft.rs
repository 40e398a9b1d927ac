//! Chains as `nft -j list` tells them.

use serde_json::Value;

use super::chains::{Chain, Family, Hook, Rule, Verdict};
use crate::doctor::repair::output_of;

/// The chains of nftables, those that `iptables` makes there among them.
pub(super) fn read() -> Result<Vec<Chain>, String> {
    match parse(&list(&["ruleset"])?) {
        Some(chains) => Ok(chains),
        None => read_one_by_one(),
    }
}

/// The same, chain by chain. Version 1.0.6 was seen to break off the list of all where it comes to a table that belongs to a
/// process, as that of a daemon does whose packets take shortcuts; lists of chains name no table by itself.
fn read_one_by_one() -> Result<Vec<Chain>, String> {
    let understood = |text: &[u8]| parse(text).ok_or_else(|| "what nft says is not understood".to_owned());
    let mut chains = understood(&list(&["chains"])?)?;
    for chain in &mut chains {
        let found = understood(&list(&["chain", chain.family.name(), &chain.table, &chain.name])?)?;
        chain.rules = found.into_iter().flat_map(|found| found.rules).collect();
    }
    Ok(chains)
}

/// What `nft` lists.
fn list(what: &[&str]) -> Result<Vec<u8>, String> {
    let output = output_of("nft", &[&["-j", "list"], what].concat()).ok_or("there is no program nft")??;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("nft: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// What `nft` says; `None` if it is something else.
fn parse(text: &[u8]) -> Option<Vec<Chain>> {
    let said: Value = serde_json::from_slice(text).ok()?;
    let all = said.get("nftables")?.as_array()?;
    let mut chains: Vec<Chain> = all.iter().filter_map(|it| chain(it.get("chain")?)).collect();
    for said in all.iter().filter_map(|it| it.get("rule")) {
        let place = |key: &str| said.get(key).and_then(Value::as_str);
        let is_here = |chain: &&mut Chain| {
            place("family") == Some(chain.family.name())
                && place("table") == Some(chain.table.as_str())
                && place("chain") == Some(chain.name.as_str())
        };
        if let Some(chain) = chains.iter_mut().find(is_here) {
            chain.rules.push(rule(said));
        }
    }
    Some(chains)
}

fn chain(said: &Value) -> Option<Chain> {
    let text = |key: &str| said.get(key).and_then(Value::as_str);
    let family = match text("family")? {
        "ip" => Family::V4,
        "ip6" => Family::V6,
        "inet" => Family::Both,
        _ => return None,
    };
    let hook = match text("hook") {
        Some("forward") => Hook::Forward,
        Some("input") => Hook::Input,
        _ => Hook::None,
    };
    let (table, name) = (text("table")?.to_owned(), text("name")?.to_owned());
    let policy = if text("policy") == Some("drop") { Verdict::Drop } else { Verdict::Accept };
    // Chains by these names are those of iptables, which lists its tables no more once other rules stand there.
    let is_of_iptables = table == "filter" && matches!(name.as_str(), "FORWARD" | "INPUT");
    let program = match family {
        Family::V4 => Some("iptables"),
        Family::V6 => Some("ip6tables"),
        Family::Both => None,
    };
    let program = program.filter(|_| is_of_iptables || hook == Hook::None && table == "filter");
    Some(Chain { family, table, name, hook, policy, rules: Vec::new(), program })
}

fn rule(said: &Value) -> Rule {
    let mut rule = Rule::of_all(Verdict::Other);
    let mut is_of_udp = false;
    for statement in said.get("expr").and_then(Value::as_array).into_iter().flatten() {
        let Some((kind, what)) = statement.as_object().and_then(|it| it.iter().next()) else { continue };
        match kind.as_str() {
            // Rules that match a port also match the protocol UDP, which says nothing more.
            "match" if is_that_it_is_udp(what) => is_of_udp = true,
            "match" => take_match(&mut rule, what),
            "accept" => rule.verdict = Verdict::Accept,
            "drop" | "reject" => rule.verdict = Verdict::Drop,
            "counter" | "comment" | "log" => {}
            _ => rule.more.push(statement.to_string()),
        }
    }
    if is_of_udp && rule.udp_port.is_none() {
        rule.more.push("udp".to_owned());
    }
    rule
}

fn is_that_it_is_udp(what: &Value) -> bool {
    let text = |at: &str| what.pointer(at).and_then(Value::as_str);
    (text("/op"), text("/left/meta/key"), text("/right")) == (Some("=="), Some("l4proto"), Some("udp"))
}

fn take_match(rule: &mut Rule, what: &Value) {
    let is_equal = what.get("op").and_then(Value::as_str) == Some("==");
    let right = what.get("right").unwrap_or(&Value::Null);
    let meta = what.pointer("/left/meta/key").and_then(Value::as_str).filter(|_| is_equal);
    let payload = |key: &str| what.pointer(&format!("/left/payload/{key}")).and_then(Value::as_str);
    match meta {
        Some("iifname" | "iif") => rule.came_in = names(right),
        Some("oifname" | "oif") => rule.leaves = names(right),
        _ if is_equal && (payload("protocol"), payload("field")) == (Some("udp"), Some("dport")) => {
            rule.udp_port = right.as_u64().and_then(|port| port.try_into().ok());
            if rule.udp_port.is_none() {
                rule.more.push(what.to_string());
            }
        }
        _ => rule.more.push(what.to_string()),
    }
}

/// The names in a match: one, or a set of them. One that is not understood is a name that nothing has.
fn names(right: &Value) -> Vec<String> {
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match right.get("set").and_then(Value::as_array) {
        Some(set) => set.iter().map(name).collect(),
        None => vec![name(right)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nft 1.0.6 says of a table of ip6tables and one of its own.
    const SAID: &str = r#"{"nftables": [
        {"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"table": {"family": "ip6", "name": "filter", "handle": 1}},
        {"chain": {"family": "ip6", "table": "filter", "name": "FORWARD", "handle": 1, "type": "filter",
                   "hook": "forward", "prio": 0, "policy": "drop"}},
        {"rule": {"family": "ip6", "table": "filter", "chain": "FORWARD", "handle": 2, "expr": [
            {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "eth1"}},
            {"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "eth*"}},
            {"counter": {"packets": 0, "bytes": 0}}, {"accept": null}]}},
        {"table": {"family": "inet", "name": "f", "handle": 2}},
        {"chain": {"family": "inet", "table": "f", "name": "in", "handle": 1, "type": "filter",
                   "hook": "input", "prio": 0, "policy": "accept"}},
        {"rule": {"family": "inet", "table": "f", "chain": "in", "handle": 3, "expr": [
            {"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": {"set": ["eth1", "eth2"]}}},
            {"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 34997}},
            {"accept": null}]}},
        {"rule": {"family": "inet", "table": "f", "chain": "in", "handle": 6, "expr": [
            {"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established"]}},
            {"accept": null}]}},
        {"rule": {"family": "inet", "table": "f", "chain": "in", "handle": 5, "expr": [
            {"counter": {"packets": 0, "bytes": 0}}, {"reject": {"type": "icmpx"}}]}}]}"#;

    #[test]
    fn chains_are_read_with_their_rules() {
        let chains = parse(SAID.as_bytes()).unwrap();
        let [forward, input] = chains.as_slice() else { panic!("{chains:?}") };
        assert_eq!(
            (forward.hook, forward.policy, forward.program),
            (Hook::Forward, Verdict::Drop, Some("ip6tables"))
        );
        let between = Rule {
            came_in: vec!["eth1".to_owned()],
            leaves: vec!["eth*".to_owned()],
            ..Rule::of_all(Verdict::Accept)
        };
        assert_eq!(forward.rules, [between]);
        assert_eq!((input.family, input.hook, input.program), (Family::Both, Hook::Input, None));
        assert_eq!((input.rules[0].came_in.len(), input.rules[0].udp_port), (2, Some(34997)));
        assert!(!input.rules[1].more.is_empty());
        assert_eq!(input.rules[2], Rule::of_all(Verdict::Drop));
    }

    #[test]
    fn a_rule_for_all_of_udp_is_none_for_all_packets() {
        let udp = r#"{"match": {"op": "==", "left": {"meta": {"key": "l4proto"}}, "right": "udp"}}"#;
        let port = r#"{"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 53}}"#;
        let read = |expr: &str| {
            rule(&serde_json::from_str(&format!(r#"{{"expr": [{expr}, {{"accept": null}}]}}"#)).unwrap())
        };
        assert!(!read(udp).more.is_empty());
        let of_port = read(&format!("{udp}, {port}"));
        assert_eq!((of_port.udp_port, of_port.more.is_empty()), (Some(53), true));
    }

    #[test]
    fn what_is_no_ruleset_is_refused() {
        for text in ["", "{}", "[]", r#"{"nftables": 7}"#] {
            assert_eq!(parse(text.as_bytes()), None);
        }
        assert_eq!(parse(br#"{"nftables": [{"rule": 7}, {"chain": {}}, 7]}"#), Some(Vec::new()));
    }
}
