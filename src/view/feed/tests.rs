use mapper_fabric::generate;
use serde_json::Value;

use super::*;

fn moment(what: &str, state: HostState) -> Moment {
    Moment { what: what.to_owned(), hosts: vec![state], ..Moment::default() }
}

fn ring(feed: &Feed, n: u32) {
    feed.tell_fabric(generate(&format!("ring:n={n}")).unwrap(), "ring".to_owned());
}

/// What is new to a page, read.
fn news(feed: &Feed, seen: &mut Seen) -> Vec<Value> {
    feed.update(seen).iter().map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// What a page is told that opens.
fn all(feed: &Feed) -> Value {
    news(feed, &mut Seen::default()).remove(0)
}

#[test]
fn a_page_gets_all_at_first_and_then_what_is_new() {
    let (feed, mut seen) = (Feed::new(1), Seen::default());
    ring(&feed, 3);
    assert!(news(&feed, &mut seen).is_empty());
    feed.tell(moment("one", HostState::Configured));
    feed.tell(moment("two", HostState::Silent));
    let first = news(&feed, &mut seen).remove(0);
    assert_eq!((&first["seq"], &first["hosts"]), (&2.into(), &"3".into()));
    assert_eq!(first["history"].as_array().unwrap().len(), 2);
    assert!(news(&feed, &mut seen).is_empty());
    feed.tell(moment("again", HostState::Silent));
    assert!(news(&feed, &mut seen).is_empty(), "what is as it was is no news");
    feed.tell(moment("three", HostState::Missing));
    let next = news(&feed, &mut seen).remove(0);
    assert_eq!((&next["what"], &next["history"]), (&"three".into(), &Value::Null));
}

#[test]
fn what_goes_over_cables_is_told_after_a_moment_and_is_no_part_of_the_history() {
    let (feed, mut seen) = (Feed::new(1), Seen::default());
    ring(&feed, 3);
    feed.tell_traffic(&json!({ "cables": [] }));
    assert!(news(&feed, &mut seen).is_empty());
    feed.tell(moment("one", HostState::Configured));
    let told = news(&feed, &mut seen);
    assert_eq!((told.len(), &told[1]["traffic"]["scene"]), (2, &told[0]["scene"]));
    feed.tell_traffic(&json!({ "cables": [[0, 1, 2, 0, 0]] }));
    let told = news(&feed, &mut seen);
    assert_eq!((told.len(), &told[0]["traffic"]["cables"][0][2]), (1, &2.into()));
    assert!(news(&feed, &mut seen).is_empty());
    assert_eq!(all(&feed)["history"].as_array().unwrap().len(), 1);
    ring(&feed, 4);
    feed.tell(moment("two", HostState::Configured));
    assert_eq!(news(&feed, &mut Seen::default()).len(), 1, "it was another fabric's");
}

#[test]
fn fabrics_of_two_servers_have_different_numbers_in_every_event() {
    let told = |server| {
        let feed = Feed::new(server);
        ring(&feed, 3);
        feed.tell(moment("one", HostState::Configured));
        all(&feed)
    };
    let (one, other) = (told(1), told(u32::MAX));
    assert!(one["server"] != other["server"] && one["scene"] != other["scene"], "{one} {other}");
    assert!(other["scene"].as_u64().unwrap() < 1 << 53, "scripts count so far without a mistake");
}

#[test]
fn what_is_kept_is_bounded() {
    let feed = Feed::new(1);
    for number in 0..3 * MOST_MOMENTS {
        if number % 10 == 0 {
            ring(&feed, 3);
        }
        feed.tell(moment(&number.to_string(), HostState::Silent));
        feed.tell(moment(&number.to_string(), HostState::Missing));
    }
    let state = feed.state();
    assert_eq!((state.moments.len(), state.scenes.len()), (MOST_MOMENTS, MOST_SCENES));
    drop(state);
    for moment in all(&feed)["history"].as_array().unwrap() {
        assert!(feed.scene(moment["scene"].as_u64().unwrap()).is_some(), "it can be shown");
    }
}

#[test]
fn fabrics_of_before_are_found_again_when_they_are_looked_at_and_few_of_them_are_kept() {
    let feed = Feed::new(1);
    let found =
        |n: u32| -> Recall { Arc::new(move || (n > 3).then(|| generate(&format!("ring:n={n}")).unwrap())) };
    for n in 3..12 {
        feed.tell_past(&moment(&n.to_string(), HostState::Unknown), "ring".to_owned(), found(n));
    }
    // More fabrics than are kept, each of which can be found again.
    for n in 12..40 {
        let fabric = generate(&format!("ring:n={n}")).unwrap();
        feed.tell_fabric_with(fabric.clone(), &fabric, "ring".to_owned(), found(n));
        feed.tell(moment(&n.to_string(), HostState::Configured));
    }
    let told = all(&feed);
    let history = told["history"].as_array().unwrap();
    assert_eq!(history.len(), 37);
    for (n, moment) in (3..).zip(history) {
        let scene = moment["scene"].as_u64().unwrap();
        let hosts = feed.recall(scene).map(|told| told.fabric.map.hosts.len());
        assert_eq!(hosts, (n > 3).then_some(n), "the first is not to be had");
        assert_eq!(feed.scene(scene).is_some(), n > 3, "engines can route it then");
    }
    assert_eq!(feed.state().recalled.len(), MOST_RECALLED);
    // A fabric that no moment is of any more cannot be recalled.
    for number in 0..MOST_MOMENTS {
        feed.tell(moment(
            &format!("later {number}"),
            if number % 2 == 0 { HostState::Silent } else { HostState::Missing },
        ));
    }
    assert_eq!(feed.state().past.len(), 1);
}
