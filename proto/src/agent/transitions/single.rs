//! What agents do in single situations, each of which was once got wrong.

use std::time::Duration;

use super::bench::*;
use crate::agent::timers::Timer;
use crate::agent::{Agent, Event, Settings};
use crate::map::{LinkMtu, host_type};
use crate::wire::{AgentState, Message, Reason, Scout};
use crate::{Instant, Mac, PortSet};

#[test]
fn a_map_that_is_wrong_about_this_host_does_not_hold() {
    let right = Settings::new(rank(OWN).mac);
    for settings in
        [Settings { host_type: host_type::MX, ..right.clone() }, Settings { level: 0, ..right.clone() }]
    {
        let mut bench = Bench::new(1);
        bench.agent = Agent::new(settings, 1, Instant::ZERO);
        [Input::Offer(LEADER, 1), Input::Pieces].into_iter().for_each(|input| bench.put(input));
        assert!(bench.installed.is_some());
        assert_eq!(bench.place(), At::Refuted);
    }
    let mut bench = Bench::new(1);
    bench.agent = Agent::new(right, 1, Instant::ZERO);
    [Input::Offer(LEADER, 1), Input::Pieces].into_iter().for_each(|input| bench.put(input));
    assert_eq!(bench.place(), At::Routing);
}

/// A phantom has this agent's own address here, so every map that it makes has two hosts of one address.
#[test]
fn a_mapper_whose_maps_others_would_refuse_hands_none_out_and_maps_less_and_less_often() {
    let mut bench = Bench::new(1);
    let settings = Settings { extra_hosts: 1, ..Settings::new(Mac::from_u64(1)) };
    bench.agent = Agent::new(settings, 1, Instant::ZERO);
    let failed_by = |bench: &mut Bench, end_ms| {
        let end = Instant::ZERO + Duration::from_millis(end_ms);
        while bench.agent.poll_timeout().is_some_and(|due| due <= end) {
            bench.step();
        }
        bench.agent.failed_mappings
    };
    let [soon, later] = [1000, 2000].map(|end_ms| failed_by(&mut bench, end_ms));
    assert!(soon > 3, "{soon}");
    assert!(later - soon <= 2, "{soon}, then {later}");
    assert_eq!(bench.installed, None);
    assert_eq!(bench.place(), At::Mapping);
    let cause = bench.agent.mapping_cause.to_string();
    assert!(cause.contains("two hosts have the address"), "{cause}");
}

/// All others may have had the map for long, while an agent that has started again has no routes yet.
#[test]
fn no_agent_says_that_the_network_is_complete_before_it_has_routes() {
    let verify = |bench: &mut Bench| {
        let mut info = Bench::info(LEADER, 1, AgentState::Configured);
        info.flags.network_complete = true;
        let way = way(LEADER).reversed();
        bench.agent.handle_frame(
            bench.now,
            &Message::Scout(Scout { id: 7, info, way, reason: Reason::Verify }).encode(),
        );
        let events = std::iter::from_fn(|| bench.agent.poll_event());
        let is_told = events.filter(|event| matches!(event, Event::NetworkComplete { .. })).count() > 0;
        (is_told, bench.agent.status().network_complete)
    };
    let mut bench = Bench::at(At::Routing);
    assert_eq!(verify(&mut bench), (false, false));
    bench.put(Input::Routes);
    assert_eq!(bench.place(), At::Configured);
    assert_eq!(verify(&mut bench), (true, true));
}

#[test]
fn an_agent_of_level_0_waits_to_be_found() {
    let mut bench = Bench::new(0);
    bench.put(Input::Silence);
    assert_eq!(bench.place(), At::Starting);
    bench.put(Input::Offer(LEADER, 1));
    assert_eq!(bench.place(), At::Fetching);
    bench.put(Input::Silence);
    assert_eq!(bench.place(), At::Starting);
}

#[test]
fn why_there_are_no_routes_is_not_forgotten() {
    let mut bench = Bench::at(At::Unroutable);
    assert!(bench.agent.timers[Timer::Patience as usize].is_none());
    bench.agent.lose_patience(bench.now);
    assert!(bench.agent.status().unreachable.iter().any(|missing| missing.why == "too far"));
    // If the driver delivers no routes in time, the status says so, and routes that come later are still taken.
    let mut bench = Bench::at(At::Routing);
    bench.agent.lose_patience(bench.now);
    assert!(bench.agent.status().unreachable.iter().any(|missing| missing.why.contains("not computed yet")));
    bench.put(Input::Routes);
    assert_eq!(bench.place(), At::Configured);
}

#[test]
fn who_offers_a_refuted_map_is_told_over_the_way_of_the_offer() {
    // The host that answers is first the parent in the tree, and then another one over another way.
    for host in [LEADER, OTHER] {
        let mut bench = Bench::at(At::Refuted);
        bench.asked.clear();
        bench.put(Input::Offer(host, 1));
        let told = bench.asked.iter().any(|scout| {
            scout.way.there == way(host).there
                && matches!(scout.reason, Reason::QueryMapVersion { seen, .. } if seen == version(1))
        });
        assert!(told, "host {host} in {:?}", bench.asked);
    }
}

#[test]
fn a_mapper_that_is_met_with_a_refuted_map_is_told() {
    let mut bench = Bench::at(At::Refuted);
    bench.put(Input::Silence);
    assert_eq!(bench.place(), At::Mapping);
    bench.asked.clear();
    bench.put(Input::MapperMet(LEADER, 1));
    assert_eq!(bench.place(), At::Passive);
    let report =
        |scout: &Scout| matches!(scout.reason, Reason::QueryMapVersion { seen, .. } if seen == version(1));
    assert!(bench.take(report).is_some());
}

#[test]
fn an_mtu_that_the_next_map_does_not_show_is_told_again() {
    // The mapper had asked this host already when its MTU changed, whatever this host held then.
    for place in [At::Passive, At::GivenUp, At::Configured] {
        let mut bench = Bench::at(place);
        bench.agent.set_mtu(bench.now, LinkMtu { bytes: 1500, ports: PortSet::NONE });
        bench.drain();
        bench.asked.clear();
        bench.put(Input::Offer(LEADER, 2));
        bench.put(Input::Pieces);
        assert_eq!(bench.place(), At::Refuted, "from {place:?}");
    }
}

#[test]
fn a_map_of_before_a_change_of_mtu_that_comes_back_is_not_held() {
    // This host maps by itself while it is cut off, with its new MTU; then its mapper is back with the map of
    // before.
    let mut bench = Bench::at(At::Passive);
    bench.agent.set_mtu(bench.now, LinkMtu { bytes: 1500, ports: PortSet::NONE });
    bench.drain();
    bench.asked.clear();
    bench.put(Input::Offer(LEADER, 2));
    bench.put(Input::Pieces);
    bench.asked.clear();
    bench.put(Input::Offer(LEADER, 3));
    bench.put(Input::Pieces);
    assert_eq!(bench.place(), At::Refuted);
}

#[test]
fn a_parent_that_offers_maps_and_gives_none_is_left_in_time() {
    let mut bench = Bench::at(At::Fetching);
    let end = bench.now + Duration::from_millis(20_000);
    while bench.now < end && bench.place() != At::Mapping {
        match bench.agent.status().state {
            AgentState::Fetching => bench.put(Input::NoPiece),
            _ => {
                bench.asked.clear();
                bench.step();
                bench.put(Input::Version(LEADER, 1));
            }
        }
    }
    assert_eq!(bench.place(), At::Mapping);
}

#[test]
fn a_silent_parent_is_left_before_the_limit_on_silence_whoever_noticed_first() {
    // The parent is dead. Its child may learn from another host that the map does not hold, before the child
    // itself has asked the parent in vain; and a query may take longer than the time between two.
    for probe_timeout_ms in [10, 500] {
        let mut bench = Bench::at(At::Configured);
        let settings = Settings {
            probe_timeout: Duration::from_millis(probe_timeout_ms),
            silence_limit: Duration::from_secs(60),
            ..bench.agent.settings.clone()
        };
        bench.agent.set_settings(&settings);
        bench.put(Input::Report(OTHER, 1));
        assert_eq!(bench.place(), At::Refuted);
        let began = bench.now;
        bench.put(Input::Silence);
        assert_eq!(bench.place(), At::Mapping);
        let tries = u32::from(bench.agent.verify_tries());
        let limit = settings.query_interval * 2 + settings.probe_timeout * (2 * tries);
        assert!(bench.now.since(began) <= limit, "{:?} of {limit:?}", bench.now.since(began));
    }
}

#[test]
fn verification_waits_for_a_host_that_answers_late() {
    let mut bench = Bench::at(At::Configured);
    let timeout = bench.agent.settings.probe_timeout;
    let asked = bench.next_verification(CHILD).unwrap();
    let began = bench.now;
    while bench.now.since(began) < timeout * 15 {
        bench.step();
        assert_eq!(bench.place(), At::Configured, "after {:?}", bench.now.since(began));
    }
    bench.answer(asked.id, CHILD, 1, crate::wire::Answer::Verify);
    assert_eq!(bench.place(), At::Configured);
}

#[test]
fn an_agent_that_is_called_late_waits_longer_for_others_as_they_may_have_no_time_either() {
    let mut bench = Bench::at(At::Configured);
    let timeout = bench.agent.settings.probe_timeout;
    assert_eq!(bench.agent.answer_wait(bench.now), timeout);
    bench.now = bench.agent.poll_timeout().unwrap() + timeout;
    bench.agent.handle_timeout(bench.now);
    assert_eq!(bench.agent.answer_wait(bench.now), timeout * 4);
    assert_eq!(bench.agent.answer_wait(bench.now + Duration::from_secs(9)), timeout);
}

#[test]
fn a_parent_that_answers_every_other_query_is_waited_for() {
    let mut bench = Bench::at(At::Refuted);
    let began = bench.now;
    bench.asked.clear();
    let mut queries = 0;
    while bench.now.since(began) < Duration::from_secs(8) {
        bench.step();
        let is_query = |scout: &Scout| matches!(scout.reason, Reason::QueryMapVersion { .. });
        if let Some(query) = bench.take(is_query) {
            // The other tries of the same query are left as they are.
            bench.asked.clear();
            queries += 1;
            if queries % 7 == 0 {
                bench.answer(query.id, LEADER, 1, crate::wire::Answer::QueryMapVersion);
            }
        }
        assert_eq!(bench.place(), At::Refuted, "after {:?}", bench.now.since(began));
    }
    assert!(queries > 20, "{queries}");
}

#[test]
fn a_cable_that_is_plugged_in_anew_while_an_agent_maps_has_it_map_anew() {
    let mut bench = Bench::at(At::Mapping);
    bench.drain();
    bench.agent.own_carrier_is_back(bench.now);
    assert_eq!(bench.place(), At::Mapping);
    assert!(bench.agent.poll_transmit().is_some(), "it looks where its cable leads now");
    bench.drain();
    [Input::Silence, Input::Routes].into_iter().for_each(|input| bench.put(input));
    assert_eq!(bench.place(), At::Isolated, "nobody answers there");
}
