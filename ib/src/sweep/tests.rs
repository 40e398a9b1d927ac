//! A sweep finds what was built, whichever nodes are silent, slow or wrong.

use std::time::Duration;

use proptest::prelude::*;

use super::model::{SPEED, Seen, SweptModel, run};
use super::*;
use crate::mad::{Attribute, MAX_HOPS, NodeInfoError};

const DELAY: Duration = Duration::from_micros(20);

fn settings() -> SweepSettings {
    SweepSettings {
        window: NonZeroUsize::new(8).unwrap(),
        timeout: Duration::from_millis(100),
        retries: 3,
        max_nodes: 1000,
        key: 0,
    }
}

fn explore(model: &SweptModel) -> Found {
    let answers =
        |mad: &[u8]| model.answer(mad).map(|smp| (DELAY, smp.emit().to_vec())).into_iter().collect();
    run(Sweep::new(settings()), answers).0
}

/// A host that asks, at port 1 of a switch of eight ports, which is node 1.
fn at_a_switch() -> SweptModel {
    let mut model = SweptModel::default();
    model.add(NodeKind::Adapter, 1);
    model.add(NodeKind::Switch, 8);
    model.cable((0, 1), (1, 1));
    model
}

/// A few switches and adapters, and cables between ports that are drawn. If a port is drawn twice, the first
/// cable gets it.
fn models() -> impl Strategy<Value = SweptModel> {
    let cables = prop::collection::vec((any::<u16>(), any::<u8>(), any::<u16>(), any::<u8>()), 0..60);
    (1..9_usize, 1..9_usize, cables).prop_map(|(switches, hosts, cables)| {
        let mut model = SweptModel::default();
        model.add(NodeKind::Adapter, 2);
        for switch in 0..switches {
            model.add(NodeKind::Switch, 4 + (switch % 5) as u8);
        }
        for host in 0..hosts {
            model.add(if host == 3 { NodeKind::Router } else { NodeKind::Adapter }, 1 + (host % 3) as u8);
        }
        model.cable((0, 1), (1, 2));
        for (a, a_port, b, b_port) in cables {
            let end = |node: u16, port: u8| {
                let node = usize::from(node) % model.nodes.len();
                (node, 1 + port % model.nodes[node].info.ports)
            };
            let (a, b) = (end(a, a_port), end(b, b_port));
            if a != b && !model.cables.contains_key(&a) && !model.cables.contains_key(&b) {
                model.cable(a, b);
            }
        }
        model
    })
}

proptest! {
    #[test]
    fn what_is_explored_is_what_was_built(model in models(), window in 1..40_usize) {
        let settings = SweepSettings { window: NonZeroUsize::new(window).unwrap(), ..settings() };
        let answers = |mad: &[u8]| {
            model.answer(mad).map(|smp| (DELAY, smp.emit().to_vec())).into_iter().collect()
        };
        let (found, _) = run(Sweep::new(settings), answers);
        prop_assert_eq!(Seen::of(&found), model.reachable());
        prop_assert_eq!(&found.problems, &Vec::new());
    }

    #[test]
    fn answers_that_are_lost_late_or_doubled_change_nothing(
        model in models(),
        fates in prop::collection::vec((0..4_u8, 0..250_u64), 1..200),
    ) {
        let mut turn = 0;
        let answers = |mad: &[u8]| {
            let Some(answer) = model.answer(mad) else { return Vec::new() };
            let answer = answer.emit().to_vec();
            turn += 1;
            let (fate, late_ms) = fates[turn % fates.len()];
            match fate {
                0 => Vec::new(),
                1 => vec![(Duration::from_millis(late_ms), answer)],
                2 => vec![(DELAY, answer.clone()), (Duration::from_millis(late_ms), answer)],
                _ => vec![(DELAY, answer)],
            }
        };
        // No node is given up here, whatever happens to datagrams.
        let settings = SweepSettings { retries: 1000, ..settings() };
        prop_assume!(fates.iter().any(|&(fate, _)| fate >= 2));
        let (found, _) = run(Sweep::new(settings), answers);
        prop_assert_eq!(Seen::of(&found), model.reachable());
        prop_assert_eq!(found.problems, Vec::new());
    }

    #[test]
    fn answers_of_any_bytes_end_and_never_panic(
        model in models(),
        changes in prop::collection::vec((0..256_usize, any::<u8>()), 1..40),
    ) {
        let mut turn = 0;
        let answers = |mad: &[u8]| {
            let Some(answer) = model.answer_misled(mad) else { return Vec::new() };
            let mut answer = answer.emit().to_vec();
            turn += 1;
            let (at, value) = changes[turn % changes.len()];
            answer[at] = value;
            vec![(DELAY, answer)]
        };
        let settings = SweepSettings { max_nodes: 30, ..settings() };
        let (found, _) = run(Sweep::new(settings), answers);
        prop_assert!(found.nodes.len() <= 30);
        let words: Vec<_> = found.problems.iter().map(|problem| found.tell(problem)).collect();
        prop_assert_eq!(words.len(), found.problems.len());
    }
}

#[test]
fn silent_nodes_are_named_and_do_not_stall_the_rest() {
    let mut model = at_a_switch();
    // Seven silent adapters fill the window twice over; behind the last port there is a switch with a host.
    for port in 2..8 {
        let host = model.add(NodeKind::Adapter, 1);
        model.nodes[host].is_silent = true;
        model.cable((1, port), (host, 1));
    }
    let far = model.add(NodeKind::Switch, 4);
    let host = model.add(NodeKind::Adapter, 1);
    model.cable((1, 8), (far, 3));
    model.cable((far, 1), (host, 1));
    let window = NonZeroUsize::new(2).unwrap();
    let mut when_all_was_found = Vec::new();
    let mut sent = 0;
    let answers = |mad: &[u8]| {
        sent += 1;
        let answer = model.answer(mad);
        if answer.is_some() {
            when_all_was_found.push(sent);
        }
        answer.map(|smp| (DELAY, smp.emit().to_vec())).into_iter().collect()
    };
    let (found, ended) = run(Sweep::new(SweepSettings { window, ..settings() }), answers);
    assert_eq!(found.nodes.len(), 4);
    let words: Vec<_> = found.problems.iter().map(|problem| found.tell(problem)).collect();
    assert_eq!(words.len(), 6);
    assert_eq!(words[0], "what is behind `node 1` port 2 does not answer (NodeInfo) (directed route 0,1,2)");
    // Each silent node is asked four times, two at a time.
    assert_eq!(ended.since(Instant::ZERO).as_millis(), 6 * 4 * 100 / 2);
    // No question was repeated before all nodes that answer had answered. Until then only the first questions
    // to six silent nodes were without an answer.
    assert_eq!(when_all_was_found.last().map(|&last| last - when_all_was_found.len() as u64), Some(6));
}

#[test]
fn no_more_questions_are_under_way_than_the_window_holds() {
    let model = at_a_switch();
    let mut sweep = Sweep::new(SweepSettings { window: NonZeroUsize::MIN, ..settings() });
    let first = sweep.poll_transmit(Instant::ZERO).unwrap().emit();
    sweep.handle_mad(&model.answer(&first).unwrap().emit());
    // There are two questions to ask now: for the description, and for the state of the port.
    assert!(sweep.poll_transmit(Instant::ZERO).is_some());
    assert!(sweep.poll_transmit(Instant::ZERO).is_none());
}

#[test]
fn the_node_that_asks_may_be_silent() {
    let mut model = at_a_switch();
    model.nodes[0].is_silent = true;
    let found = explore(&model);
    assert!(found.nodes.is_empty());
    assert_eq!(
        found.tell(&found.problems[0]),
        "the port that asks does not answer (NodeInfo) (directed route 0)"
    );
}

#[test]
fn a_host_with_two_ports_is_one_node_by_both_switches() {
    let mut model = at_a_switch();
    let far = model.add(NodeKind::Switch, 4);
    let host = model.add(NodeKind::Adapter, 2);
    model.cable((1, 8), (far, 3));
    model.cable((1, 2), (host, 1));
    model.cable((far, 2), (host, 2));
    let found = explore(&model);
    assert_eq!((found.nodes.len(), found.cables.len(), found.problems.len()), (4, 4, 0));
    let host = found.nodes.iter().find(|node| node.info.ports == 2).unwrap();
    let guids: Vec<_> = host.ports.values().map(|port| port.guid).collect();
    assert_eq!(guids, [Some(host.info.guid + 1), Some(host.info.guid + 2)]);
    assert!(host.ports.values().all(|port| port.info.unwrap().speed == Some(SPEED)));
}

/// Two nodes of a kind with one GUID, behind ports 2 and 3 of the switch.
fn twins(kind: NodeKind, ports: [u8; 2], enter_by: [u8; 2]) -> Vec<String> {
    let mut model = at_a_switch();
    let twins = ports.map(|ports| model.add(kind, ports));
    model.nodes[twins[1]].info.guid = model.nodes[twins[0]].info.guid;
    model.cable((1, 2), (twins[0], enter_by[0]));
    model.cable((1, 3), (twins[1], enter_by[1]));
    let found = explore(&model);
    assert_eq!((found.nodes.len(), found.cables.len()), (3, 2), "the first of them is kept");
    found.problems.iter().map(|problem| found.tell(problem)).collect()
}

#[test]
fn nodes_with_one_guid_are_named() {
    let elsewhere = "what is behind `node 1` port 3 says that it is `node 2` port 1, but that is cabled to \
                     `node 1` port 2: two nodes have one GUID, or a cable was moved (directed route 0,1,3)";
    assert_eq!(twins(NodeKind::Adapter, [1, 1], [1, 1]), [elsewhere]);
    assert_eq!(twins(NodeKind::Switch, [4, 4], [1, 1]), [elsewhere]);
    let other = "what is behind `node 1` port 3 has GUID 0x1200, which another node has as well (directed route \
                 0,1,2) (directed route 0,1,3)";
    assert_eq!(twins(NodeKind::Switch, [4, 5], [1, 1]), [other]);
}

#[test]
fn switches_with_one_guid_and_different_ports_are_named() {
    let mut model = at_a_switch();
    let twins = [model.add(NodeKind::Switch, 4), model.add(NodeKind::Switch, 4)];
    model.nodes[twins[1]].info.guid = model.nodes[twins[0]].info.guid;
    model.cable((1, 2), (twins[0], 1));
    model.cable((1, 3), (twins[1], 2));
    let found = explore(&model);
    let kinds: Vec<_> = found.problems.iter().map(|problem| problem.kind.clone()).collect();
    assert_eq!(kinds, [ProblemKind::NotCabled { end: (2, 2) }]);
}

#[test]
fn wrong_and_refused_answers_are_named() {
    let mut model = at_a_switch();
    let hosts = [2, 3].map(|port| {
        let host = model.add(NodeKind::Adapter, 1);
        model.cable((1, port), (host, 1));
        host
    });
    model.nodes[hosts[0]].info.ports = 0;
    let answers = |mad: &[u8]| {
        let mut answer = model.answer(mad).unwrap();
        if answer.route.ports() == [1, 3] && answer.attribute == Attribute::NodeInfo {
            answer.status = 0x1c;
        }
        vec![(DELAY, answer.emit().to_vec())]
    };
    let (found, _) = run(Sweep::new(settings()), answers);
    assert_eq!(found.nodes.len(), 2);
    let kinds: Vec<_> = found.problems.iter().map(|problem| problem.kind.clone()).collect();
    assert_eq!(kinds, [ProblemKind::Wrong(NodeInfoError::Ports(0)), ProblemKind::Refused { status: 0x1c }]);
}

#[test]
fn what_is_farther_than_routes_lead_or_beyond_the_bound_is_told() {
    let mut model = at_a_switch();
    for _ in 0..MAX_HOPS {
        let node = model.add(NodeKind::Switch, 2);
        model.cable((node - 1, 2), (node, 1));
    }
    let found = explore(&model);
    assert_eq!(found.nodes.len(), 1 + MAX_HOPS);
    assert_eq!(
        found.problems.iter().map(|problem| &problem.kind).collect::<Vec<_>>(),
        [&ProblemKind::TooFar; 2]
    );
    let few = SweepSettings { max_nodes: 5, ..settings() };
    let answers =
        |mad: &[u8]| model.answer(mad).map(|smp| (DELAY, smp.emit().to_vec())).into_iter().collect();
    let (found, _) = run(Sweep::new(few), answers);
    assert_eq!((found.nodes.len(), found.problems.len()), (5, 1));
    assert_eq!(found.problems[0].kind, ProblemKind::TooMany { most: 5 });
}
