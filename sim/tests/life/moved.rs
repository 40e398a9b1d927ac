//! Cables that are moved between plain crossbars, which cannot be asked who they are. Ways of the old map
//! then lead elsewhere. An agent that notices must be heard, though its own way to its parent may be one of
//! these.

use std::collections::BTreeSet;

use mapper_fabric::generate;
use mapper_proto::map::{Fabric, PortRef};
use mapper_sim::fabric::Xbars;

use crate::lab::{Happening, Plan, ms};

/// When the cable is moved.
const MOVED_MS: u64 = 5000;
/// When all must agree again, if anybody has noticed by [`NOTICED_MS`].
const AGREED_MS: u64 = 25_000;
const NOTICED_MS: u64 = 8000;

/// All moves of one end of a cable between xbars to a free port.
fn moves(fabric: &Fabric) -> Vec<(String, String)> {
    let map = &fabric.map;
    let name = |at: PortRef| {
        let label = &fabric.xbars[at.xbar as usize];
        format!("{}:{}", label.name, at.port)
    };
    let used = |at| {
        map.hosts.iter().any(|host| host.at == Some(at)) || map.cables.iter().any(|c| c.a == at || c.b == at)
    };
    let first = if map.cables.iter().any(|c| c.a.port == 0 || c.b.port == 0) { 0 } else { 1 };
    let all = (0..)
        .zip(&map.xbars)
        .flat_map(|(xbar, x)| (first..first + x.ports).map(move |port| PortRef { xbar, port }));
    let free: Vec<_> = all.filter(|at| !used(*at)).collect();
    let ends = map.cables.iter().flat_map(|cable| [cable.a, cable.b]);
    ends.flat_map(|end| free.iter().map(move |to| (end, *to)))
        .map(|(end, to)| (name(end), name(to)))
        .collect()
}

/// Moves a cable. Returns what is wrong afterwards, or `None` if nobody noticed the move.
fn moved(spec: &str, from: &str, to: &str) -> Option<Result<(), String>> {
    let fault = format!("at {MOVED_MS}ms move {from} to {to}");
    let mut lab = Plan::new(spec, Xbars::Plain).faults(&fault).start();
    lab.agree_at(ms(MOVED_MS - 1));
    lab.run_to(ms(NOTICED_MS));
    if lab.count("invalid", ms(MOVED_MS)) == 0 {
        return None;
    }
    lab.run_to(ms(AGREED_MS));
    let verdict = lab.world.verdict();
    let wrong = if verdict.configured && verdict.map_matches_fabric {
        taken_again(&lab.happenings())
    } else {
        Some(verdict.why_not)
    };
    Some(wrong.map_or(Ok(()), |why| Err(format!("{spec}: move {from} to {to}: {why}"))))
}

/// What is wrong if an agent took a map again that it had itself found invalid.
fn taken_again(happened: &[Happening]) -> Option<String> {
    let mut refuted = BTreeSet::new();
    for Happening { place, what, detail, .. } in happened {
        let version = detail.split(": ").next().unwrap_or_default();
        if what == "invalid" && detail.contains("answers where") {
            refuted.insert((place, version));
        } else if what == "map" && refuted.contains(&(place, version)) {
            return Some(format!("{place} takes {version} once more"));
        }
    }
    None
}

#[test]
fn whoever_notices_a_moved_cable_is_heard() {
    for spec in ["xgft:h=2;m=2,2;w=1,2;ports=6", "xgft:h=2;m=2,4;w=1,2;ports=8", "ring:n=3,hosts=1,ports=5"] {
        let all = moves(&generate(spec).unwrap());
        let found: Vec<_> = all.iter().filter_map(|(from, to)| moved(spec, from, to)).collect();
        let wrong: Vec<_> = found.iter().filter_map(|result| result.as_ref().err().cloned()).collect();
        assert!(found.len() * 2 > all.len(), "{spec}: {} of {} moves noticed", found.len(), all.len());
        assert!(wrong.is_empty(), "{} of {} moves:\n{}", wrong.len(), found.len(), wrong.join("\n"));
    }
}
