//! Which interfaces a node takes by patterns, and which it leaves out.

use mapper_daemon::agent::driver::{self, MatchingInterface};
use mapper_daemon::agent::options::Config;

use super::Check;

/// Says of each pattern of a node whether an interface matches that can be a port, and of interfaces that are left out
/// why. Patterns that were asked for are to match now; those of a file may be for interfaces that come later.
pub(super) fn check(node: &Config, is_asked_for: bool) -> Vec<Check> {
    let matched = |pattern: &String| {
        // Interfaces that are named, too, are left out of those that match.
        let alone = Config { patterns: vec![pattern.clone()], ports: Vec::new(), ..node.clone() };
        driver::matching_interfaces(&alone)
    };
    let judged = |pattern: &String| match matched(pattern) {
        Ok(candidates) => judge(pattern, &candidates, &node.ports, is_asked_for),
        Err(error) => Some(Check::error("interfaces", &error)),
    };
    node.patterns.iter().filter_map(judged).collect()
}

fn judge(
    pattern: &str,
    matching: &[MatchingInterface],
    named: &[String],
    is_asked_for: bool,
) -> Option<Check> {
    let name = "interfaces";
    let left_out =
        |candidate: &&MatchingInterface| candidate.why_not.is_some() && !named.contains(&candidate.interface);
    let tell = |it: &MatchingInterface| format!("{}: {}", it.interface, it.why_not.unwrap_or_default());
    let left: Vec<String> = matching.iter().filter(left_out).map(tell).collect();
    if left.len() < matching.len() {
        let what = || format!("left out of what matches {pattern}: {}", left.join("; "));
        return (!left.is_empty()).then(|| Check::ok(name, what()));
    }
    let what = match left.is_empty() {
        true => format!("none here matches {pattern}"),
        false => format!("none that matches {pattern} can be a port: {}", left.join("; ")),
    };
    if is_asked_for {
        let fix = "`ip link` lists the interfaces of this network namespace: name those that are cabled to the fabric";
        return Some(Check::failed(name, what, fix));
    }
    let fix =
        "nothing, if one is still to come: the node waits for it; or name another in `ports` of its file";
    Some(Check::warning(name, what, fix))
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    fn candidate(interface: &str, why_not: Option<&'static str>) -> MatchingInterface {
        MatchingInterface { interface: interface.to_owned(), why_not }
    }

    #[test]
    fn a_pattern_without_ports_is_told_with_what_it_leaves_out() {
        let uplink = candidate("eth0", Some("the default route leads there"));
        let check = judge("eth*", std::slice::from_ref(&uplink), &[], true).unwrap();
        assert_eq!(check.status, Outcome::Failed);
        assert_eq!(check.what, "none that matches eth* can be a port: eth0: the default route leads there");
        assert_eq!(judge("zz*", &[], &[], true).unwrap().what, "none here matches zz*");
        assert_eq!(judge("zz*", &[], &[], false).unwrap().status, Outcome::Warning, "it may come");
        let both = [uplink.clone(), candidate("eth1", None)];
        let check = judge("eth*", &both, &[], true).unwrap();
        assert_eq!(check.status, Outcome::Ok);
        assert_eq!(check.what, "left out of what matches eth*: eth0: the default route leads there");
        assert_eq!(judge("eth*", &both[1..], &[], true), None, "all of them are ports");
        assert_eq!(judge("eth*", &[uplink], &["eth0".to_owned()], true), None, "it is named in full");
    }
}
