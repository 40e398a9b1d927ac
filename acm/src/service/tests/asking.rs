//! What agents are asked to find out, and what clients are told that wait for it.

use super::*;

fn named(text: &str) -> Address {
    Address::Name(text.to_owned())
}

/// All that agents are to be asked now.
fn polled(service: &mut Service, now: Instant) -> Vec<Address> {
    let all = std::iter::from_fn(|| service.poll_ask(now));
    all.map(|asked| match asked.wanted {
        Wanted::Address(address) => address,
        Wanted::Lid(lid) => panic!("LID {lid}"),
    })
    .collect()
}

/// Has a client ask for a name that nobody has told.
fn wait_for(service: &mut Service, now: Instant, client: ClientId, name: &str) {
    let bytes = question(None, named(name), EntryFlags::default()).to_bytes(client).unwrap();
    let handled = service.handle_request(now, client, &bytes, &mut Vec::new()).unwrap();
    assert_eq!(handled, Handled::Waits, "{name}");
}

/// Who has been told what.
fn told(service: &mut Service) -> Vec<(ClientId, Reply)> {
    let all = std::iter::from_fn(|| service.poll_reply());
    all.map(|(client, bytes)| (client, Reply::parse(&bytes).unwrap().1)).collect()
}

#[test]
fn agents_are_asked_for_what_they_have_not_told() {
    let settings = Settings { most_asked: 2, ..Settings::default() };
    let mut service = Service::new(settings);
    service.set_unit(Instant::ZERO, 0, unit(4));
    let named = |text: &str| Address::Name(text.to_owned());
    let learned = |n| Learned { mac: mac(n), rate_mbps: 5_000, mtu_bytes: 600 };
    // A client that does not wait gets the answer the next time it asks.
    let no_delay = question(None, named("Alias"), EntryFlags::NO_DELAY);
    assert_eq!(ask(&mut service, Instant::ZERO, &no_delay), Some(Reply::Failed(Status::NO_DATA)));
    let Settings { timeout, retries, .. } = Settings::default();
    let asked = service.poll_ask(Instant::ZERO);
    assert_eq!(
        asked,
        Some(Ask { unit: 0, wanted: Wanted::Address(named("alias")), seeks_path: false, timeout, retries })
    );
    assert_eq!(resolve(&mut service, None, named("ALIAS")), None);
    assert_eq!(service.poll_ask(Instant::ZERO), None, "it is under way");
    service.handle_asked(Instant::ZERO, 0, &named("alias"), Some(&[learned(3)]));
    let (record, _) = path(late(&mut service));
    // The path is no better than what both ends can do.
    assert_eq!((record.dgid, record.mtu.value, record.rate.value), (gid_of(mac(3)), 2, 5));
    assert_eq!(path(ask(&mut service, Instant::ZERO, &no_delay)).0, record);
    // What nobody has is told when the agent says so, and not asked again for a while.
    assert_eq!(resolve(&mut service, None, named("nobody")), None);
    assert_eq!(
        service.poll_ask(Instant::ZERO).map(|asked| asked.wanted),
        Some(Wanted::Address(named("nobody")))
    );
    service.handle_asked(Instant::ZERO, 0, &named("nobody"), Some(&[]));
    assert_eq!(late(&mut service), Some(Reply::Failed(Status::TIMED_OUT)));
    assert_eq!(resolve(&mut service, None, named("nobody")), Some(Reply::Failed(Status::TIMED_OUT)));
    assert_eq!(service.poll_ask(Instant::ZERO), None);
    // Two have it: it is answered as neither's.
    assert_eq!(resolve(&mut service, None, named("both")), None);
    assert!(service.poll_ask(Instant::ZERO).is_some());
    service.handle_asked(Instant::ZERO, 0, &named("both"), Some(&[learned(4), learned(2)]));
    assert_eq!(late(&mut service), Some(Reply::Failed(Status::DESTINATION_ADDRESS)));
    assert_eq!(service.clashes(0), [(named("both"), vec![mac(2), mac(4)])]);
    // No more are asked at once than may be.
    for name in ["one", "two", "three"] {
        assert_eq!(resolve(&mut service, None, named(name)), None);
    }
    assert_eq!(polled(&mut service, Instant::ZERO), [named("one"), named("two")]);
    service.handle_asked(Instant::ZERO, 0, &named("one"), Some(&[]));
    assert_eq!(polled(&mut service, Instant::ZERO), [named("three")]);
}

#[test]
fn what_an_agent_had_found_out_is_found_out_anew_after_it_was_gone() {
    let mut service = service(3);
    let alias = Address::Name("alias".to_owned());
    let learned = Learned { mac: mac(3), rate_mbps: 0, mtu_bytes: 0 };
    assert_eq!(resolve(&mut service, None, alias.clone()), None);
    assert!(service.poll_ask(Instant::ZERO).is_some());
    service.handle_asked(Instant::ZERO, 0, &alias, Some(&[learned]));
    path(late(&mut service));
    service.lose(0);
    assert_eq!(service.poll_ask(Instant::ZERO), None, "nobody is there to ask");
    // The agent is back, and has forgotten what it had found out.
    service.set_unit(Instant::ZERO, 0, unit(3));
    assert_eq!(service.poll_ask(Instant::ZERO).map(|ask| ask.wanted), Some(Wanted::Address(alias.clone())));
    service.handle_asked(Instant::ZERO, 0, &alias, Some(&[learned]));
    let at_once = question(None, alias, EntryFlags::NO_DELAY);
    assert_eq!(path(ask(&mut service, Instant::ZERO, &at_once)).0.dgid, gid_of(mac(3)));
    // What an agent that was there all the time does not tell any more is given up.
    service.set_unit(Instant::ZERO, 0, unit(3));
    assert_eq!(service.poll_ask(Instant::ZERO), None);
}

#[test]
fn one_that_asks_for_much_holds_up_nobody() {
    let mut service = service(3);
    let Settings { most_asked, .. } = Settings::default();
    for n in 0..64 {
        wait_for(&mut service, Instant::ZERO, 1, &format!("nobody{n}"));
    }
    let first = polled(&mut service, Instant::ZERO);
    assert_eq!(first.len(), most_asked);
    wait_for(&mut service, Instant::ZERO, 2, "alias");
    // As soon as one answer has come, the other client has its turn.
    service.handle_asked(Instant::ZERO, 0, &first[0], Some(&[]));
    assert_eq!(polled(&mut service, Instant::ZERO), [named("alias")]);
    // Nobody waits for what is asked without delay, and all of that has one turn, however many ask.
    for client in 10..20 {
        let no_delay = question(None, named(&format!("later{client}")), EntryFlags::NO_DELAY);
        let bytes = no_delay.to_bytes(0).unwrap();
        service.handle_request(Instant::ZERO, client, &bytes, &mut Vec::new()).unwrap();
    }
    wait_for(&mut service, Instant::ZERO, 2, "other");
    for (nth, expected) in ["later10", "nobody16", "other", "later11", "nobody17"].iter().enumerate() {
        service.handle_asked(Instant::ZERO, 0, &first[1 + nth], Some(&[]));
        assert_eq!(polled(&mut service, Instant::ZERO), [named(expected)]);
    }
}

#[test]
fn what_was_not_asked_is_not_said_to_be_nobodys_and_has_all_its_time_once_it_is() {
    let mut service = Service::new(Settings { most_asked: 1, ..Settings::default() });
    let patience = Settings::default().patience();
    service.set_unit(Instant::ZERO, 0, unit(3));
    wait_for(&mut service, Instant::ZERO, 1, "nobody");
    wait_for(&mut service, Instant::ZERO, 2, "alias");
    assert_eq!(polled(&mut service, Instant::ZERO), [named("nobody")]);
    let later = Instant::ZERO + patience;
    service.handle_timeout(later);
    assert_eq!(told(&mut service), [(1, Reply::Failed(Status::TIMED_OUT))], "the other was not asked yet");
    service.handle_asked(later, 0, &named("nobody"), Some(&[]));
    assert_eq!(polled(&mut service, later), [named("alias")]);
    assert_eq!(service.poll_timeout(), Some(later + patience));
    let owner = Learned { mac: mac(3), rate_mbps: 0, mtu_bytes: 0 };
    service.handle_asked(later, 0, &named("alias"), Some(&[owner]));
    assert!(matches!(told(&mut service)[..], [(2, Reply::Path { .. })]));
}

#[test]
fn who_waits_for_a_turn_that_does_not_come_is_told_so_in_the_end() {
    let mut service = Service::new(Settings { most_asked: 1, ..Settings::default() });
    service.set_unit(Instant::ZERO, 0, unit(3));
    wait_for(&mut service, Instant::ZERO, 1, "first");
    wait_for(&mut service, Instant::ZERO, 2, "second");
    assert_eq!(polled(&mut service, Instant::ZERO), [named("first")]);
    let end = Instant::ZERO + Settings::default().patience() + super::super::asking::QUEUED_FOR;
    while let Some(at) = service.poll_timeout() {
        assert!(at <= end);
        service.handle_timeout(at);
    }
    let clients: Vec<_> = told(&mut service).into_iter().map(|(client, _)| client).collect();
    assert_eq!(clients, [1, 2]);
    // Nobody is remembered to have neither, and nobody waits for the second any more.
    service.handle_asked(end, 0, &named("first"), None);
    assert_eq!(service.cached(), (0, 0));
    service.handle_timeout(end + Duration::from_secs(1));
    assert_eq!(polled(&mut service, end + Duration::from_secs(1)), []);
}

#[test]
fn an_agent_that_could_not_ask_is_asked_again_after_a_pause() {
    let mut service = service(3);
    wait_for(&mut service, Instant::ZERO, 1, "one");
    wait_for(&mut service, Instant::ZERO, 1, "two");
    assert_eq!(polled(&mut service, Instant::ZERO), [named("one"), named("two")]);
    service.handle_asked(Instant::ZERO, 0, &named("one"), None);
    assert!(!service.has_to_ask());
    assert_eq!(polled(&mut service, Instant::ZERO), []);
    let again = service.poll_timeout().unwrap();
    service.handle_timeout(again);
    assert!(service.has_to_ask());
    assert_eq!(polled(&mut service, again), [named("one")]);
    // A client that is gone wants to know nothing any more.
    for name in ["one", "two"] {
        service.handle_asked(again, 0, &named(name), None);
    }
    service.drop_client(1);
    let again = again + Duration::from_secs(1);
    service.handle_timeout(again);
    assert_eq!((polled(&mut service, again), service.poll_timeout()), (Vec::new(), None));
}

#[test]
fn what_is_told_while_it_waits_for_its_turn_is_not_asked() {
    let mut service = Service::new(Settings { most_asked: 1, ..Settings::default() });
    service.set_unit(Instant::ZERO, 0, unit(2));
    wait_for(&mut service, Instant::ZERO, 1, "first");
    let no_delay = question(None, named("n3"), EntryFlags::NO_DELAY);
    ask(&mut service, Instant::ZERO, &no_delay);
    assert_eq!(polled(&mut service, Instant::ZERO), [named("first")]);
    service.set_unit(Instant::ZERO, 0, unit(3));
    service.handle_asked(Instant::ZERO, 0, &named("first"), Some(&[]));
    assert_eq!(polled(&mut service, Instant::ZERO), []);
}

#[test]
fn an_answer_ends_the_waiting_of_all_who_asked_for_it_and_looks_at_no_other_question() {
    let settings = Settings { most_asked: 4_096, ..Settings::default() };
    let mut service = Service::new(settings);
    service.set_unit(Instant::ZERO, 0, unit(3));
    for client in 0..64 {
        for n in 0..64 {
            wait_for(&mut service, Instant::ZERO, client, &format!("alias{}", (client / 2) * 64 + n));
        }
    }
    let wanted = polled(&mut service, Instant::ZERO);
    assert_eq!(wanted.len(), 2_048);
    let looked = |service: &Service| service.total().0[Counter::AddressQuery as usize];
    let before = looked(&service);
    let owner = Learned { mac: mac(3), rate_mbps: 0, mtu_bytes: 0 };
    for wanted in &wanted {
        service.handle_asked(Instant::ZERO, 0, wanted, Some(&[owner]));
    }
    assert_eq!((told(&mut service).len(), service.waiting()), (4_096, 0));
    assert_eq!(looked(&service) - before, 2_048, "each name was looked up once more");
}
