//! The state diagram of [`super`], edge by edge, and the promise that no state waits for ever.

mod bench;
mod single;

use std::time::Duration;

use proptest::prelude::*;

use crate::agent::transitions::bench::*;

#[test]
fn every_state_is_reached() {
    use At::*;
    for place in [
        Starting, Mapping, Passive, GivenUp, Refuted, Fetching, Routing, Unroutable, Configured, Isolated,
        Contested,
    ] {
        assert_eq!(Bench::at(place).place(), place);
    }
}

/// The edges of the diagram: a state, an input, and the state that it leads to. `Silence` is the way out of
/// each state by its deadline.
const TABLE: &[(At, Input, At)] = {
    use At::*;
    use Input::*;
    &[
        (Starting, Silence, Mapping),
        (Starting, MapperMet(LEADER, 0), Passive),
        (Starting, MapperMet(OTHER, 0), Starting),
        (Starting, Offer(LEADER, 1), Fetching),
        (Starting, Twin, Contested),
        // The exploration ends without an answer of any other host.
        (Mapping, Silence, Routing),
        (Mapping, Pause(LEADER), Passive),
        (Mapping, Pause(OTHER), Mapping),
        (Mapping, MapperMet(LEADER, 0), Passive),
        (Mapping, MapperMet(OTHER, 0), Mapping),
        (Mapping, Verify(LEADER, 0), Passive),
        (Mapping, Verify(LEADER, 1), Fetching),
        (Mapping, Offer(LEADER, 1), Fetching),
        (Mapping, Offer(OTHER, 1), Fetching),
        (Mapping, Twin, Contested),
        (Passive, Silence, Mapping),
        (Passive, Offer(LEADER, 1), Fetching),
        (Passive, Offer(OTHER, 1), Fetching),
        (Passive, MapperMet(HIGHEST, 0), Passive),
        (Passive, Twin, Contested),
        (GivenUp, Silence, Mapping),
        (GivenUp, Offer(LEADER, 1), Fetching),
        (GivenUp, Offer(LEADER, 2), Fetching),
        (GivenUp, Report(CHILD, 1), Refuted),
        (GivenUp, Report(OTHER, 1), Refuted),
        (Refuted, Silence, Mapping),
        (Refuted, Offer(LEADER, 1), Refuted),
        (Refuted, Offer(OTHER, 1), Refuted),
        (Refuted, Version(LEADER, 1), Refuted),
        (Refuted, Version(LEADER, 2), Fetching),
        (Refuted, Offer(LEADER, 2), Fetching),
        (Fetching, Silence, Mapping),
        (Fetching, Pieces, Routing),
        (Fetching, NoPiece, Passive),
        (Fetching, PieceOf(OTHER), Fetching),
        (Fetching, Offer(LEADER, 2), Fetching),
        (Fetching, MapperMet(HIGHEST, 0), Passive),
        (Fetching, Twin, Contested),
        (Routing, Routes, Configured),
        (Routing, NoRoutes, Unroutable),
        (Routing, Silence, Mapping),
        (Routing, Report(CHILD, 1), Refuted),
        (Routing, Verify(LEADER, 0), GivenUp),
        (Routing, Twin, Contested),
        (Unroutable, Routes, Configured),
        (Unroutable, Silence, Mapping),
        (Unroutable, Verified(CHILD, OTHER), Refuted),
        (Configured, Silence, Mapping),
        (Configured, Verify(LEADER, 1), Configured),
        (Configured, Verify(LEADER, 0), GivenUp),
        (Configured, Verify(LEADER, 2), Fetching),
        (Configured, Offer(LEADER, 2), Fetching),
        (Configured, Verified(CHILD, CHILD), Configured),
        (Configured, Verified(CHILD, OTHER), Refuted),
        (Configured, Verified(OTHER, HIGHEST), Refuted),
        (Configured, Verified(LEADER, OTHER), Mapping),
        (Configured, Report(CHILD, 1), Refuted),
        (Configured, Report(OTHER, 1), Refuted),
        (Configured, Report(CHILD, 2), Configured),
        (Configured, Report(OTHER, 2), Configured),
        (Configured, CableDown, Refuted),
        (Configured, NoRoutes, Configured),
        (Configured, MapperMet(HIGHEST, 0), Passive),
        (Configured, MapperMet(OTHER, 0), Configured),
        (Configured, Twin, Contested),
        (Isolated, Silence, Isolated),
        (Isolated, MapperMet(LEADER, 0), Passive),
        (Isolated, Offer(LEADER, 1), Fetching),
        (Isolated, Twin, Contested),
        (Contested, Silence, Mapping),
        (Contested, MapperMet(LEADER, 0), Contested),
        (Contested, Offer(LEADER, 1), Contested),
    ]
};

#[test]
fn each_input_leads_where_the_diagram_says() {
    let wrong: Vec<_> = TABLE
        .iter()
        .filter_map(|&(before, input, after)| {
            let mut bench = Bench::at(before);
            bench.put(input);
            let found = bench.place();
            (found != after).then(|| format!("{before:?}, {input:?}: {found:?} instead of {after:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn any_input() -> impl Strategy<Value = Input> {
    let host = || prop::sample::select(vec![CHILD, OTHER, LEADER, HIGHEST]);
    let counter = || 0_u32..3;
    let some = || 1_u32..3;
    prop_oneof![
        (host(), counter()).prop_map(|(host, counter)| Input::MapperMet(host, counter)),
        (host(), some()).prop_map(|(host, counter)| Input::Offer(host, counter)),
        (host(), some()).prop_map(|(host, counter)| Input::Report(host, counter)),
        (host(), counter()).prop_map(|(host, counter)| Input::Verify(host, counter)),
        (host(), counter()).prop_map(|(host, counter)| Input::Version(host, counter)),
        (host(), host()).prop_map(|(host, by)| Input::Verified(host, by)),
        host().prop_map(Input::Pause),
        host().prop_map(Input::PieceOf),
        Just(Input::Pieces),
        Just(Input::NoPiece),
        Just(Input::Routes),
        Just(Input::NoRoutes),
        Just(Input::CableDown),
        Just(Input::Twin),
        Just(Input::Silence),
    ]
}

proptest! {
    #[test]
    fn silence_ends_every_wait(
        level in 0_u8..2,
        place in prop::sample::select(vec![
            At::Starting, At::Mapping, At::Fetching, At::Routing, At::Configured, At::Refuted, At::Contested,
        ]),
        inputs in prop::collection::vec(any_input(), 0..16),
    ) {
        let mut bench = Bench::new(level);
        place.way().into_iter().chain(inputs).for_each(|input| bench.put(input));
        // Nobody answers any more, not even the driver.
        let end = bench.now + Duration::from_millis(LONGEST_WAIT_MS);
        loop {
            let waits = level > 0 || bench.place() != At::Starting;
            prop_assert!(!waits || bench.agent.poll_timeout().is_some(), "{:?} for ever", bench.place());
            if bench.agent.poll_timeout().is_none_or(|due| due > end) {
                break;
            }
            bench.step();
        }
        let alone = if level > 0 { At::Isolated } else { At::Starting };
        prop_assert_eq!(bench.place(), alone);
    }
}
