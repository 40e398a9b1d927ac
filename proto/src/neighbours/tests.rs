//! Ports on cables of every kind, in virtual time.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Crossbars whose ports are on wires, each of which carries any number of them.
struct Room {
    now: Instant,
    nodes: Vec<Neighbours>,
    /// Which wire each port is on.
    wires: BTreeMap<(usize, u8), u32>,
    /// Ports that hear nothing.
    deaf: BTreeSet<(usize, u8)>,
    events: Vec<(usize, CableChange)>,
    hellos: Vec<(Instant, usize, u8)>,
}

fn mac(node: usize, port: u8) -> Mac {
    Mac([2, 0, 0, 0, node as u8, port])
}

fn end(node: usize, port: u8) -> HelloEnd {
    match node % 3 {
        2 => HelloEnd::Host { mac: mac(node, port) },
        _ => HelloEnd::Xbar { tag: Some(node as u64), port },
    }
}

fn own(node: usize, port: u8) -> Own {
    Own { end: end(node, port), mac: mac(node, port), mtu: 1500, flags: HelloFlags::NONE }
}

fn neighbour(node: usize, port: u8) -> Neighbour {
    let Own { end, mac, mtu, flags } = own(node, port);
    Neighbour { end, mac, mtu, flags }
}

impl Room {
    fn new(nodes: usize) -> Self {
        Self {
            now: Instant::ZERO,
            nodes: (0..nodes).map(|_| Neighbours::new()).collect(),
            wires: BTreeMap::new(),
            deaf: BTreeSet::new(),
            events: Vec::new(),
            hellos: Vec::new(),
        }
    }

    fn plug(&mut self, node: usize, port: u8, wire: u32) {
        self.unplug(node, port);
        self.wires.insert((node, port), wire);
        self.nodes[node].set_port(self.now, port, Some(own(node, port)));
        self.settle();
    }

    fn unplug(&mut self, node: usize, port: u8) {
        self.wires.remove(&(node, port));
        self.nodes[node].set_port(self.now, port, None);
        self.settle();
    }

    /// A port stops without a word, and its wire keeps its signal.
    fn kill(&mut self, node: usize, port: u8) {
        self.wires.remove(&(node, port));
        self.nodes[node] = Neighbours::new();
    }

    /// Delivers all that is due now.
    fn settle(&mut self) {
        loop {
            let mut sent = Vec::new();
            for (node, neighbours) in self.nodes.iter_mut().enumerate() {
                while let Some((port, bytes)) = neighbours.poll_hello(self.now) {
                    self.hellos.push((self.now, node, port));
                    sent.push((node, port, Hello::decode(&bytes).unwrap()));
                }
                while let Some(event) = neighbours.poll_event(self.now) {
                    self.events.push((node, event));
                }
            }
            if sent.is_empty() {
                return;
            }
            for (node, port, hello) in sent {
                let Some(wire) = self.wires.get(&(node, port)) else { continue };
                for (&(to, at), other) in &self.wires {
                    if wire == other && (to, at) != (node, port) && !self.deaf.contains(&(to, at)) {
                        assert!(self.nodes[to].handle_hello(self.now, at, mac(node, port), &hello));
                    }
                }
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let next = self.nodes.iter().filter_map(Neighbours::poll_timeout).min();
            match next.filter(|next| *next <= end) {
                Some(next) => {
                    assert!(next > self.now, "nothing is due that was polled: {next:?}");
                    self.now = next;
                }
                None => break,
            }
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    fn cable(&self, node: usize, port: u8) -> &KnownCable {
        self.nodes[node].cable(port)
    }
}

#[test]
fn two_ends_know_each_other_at_once_and_after_a_cut_no_more() {
    let mut room = Room::new(2);
    room.plug(0, 1, 7);
    assert_eq!(room.cable(0, 1), &KnownCable::Silent);
    room.plug(1, 4, 7);
    assert_eq!(room.cable(0, 1), &KnownCable::Joined(neighbour(1, 4)));
    assert_eq!(room.cable(1, 4), &KnownCable::Joined(neighbour(0, 1)));
    assert_eq!(room.nodes[0].joined(), BTreeMap::from([(1, neighbour(1, 4))]));
    assert!(room.hellos.len() <= 6, "{:?}", room.hellos);
    room.events.clear();
    room.run(Duration::from_secs(100));
    assert_eq!(room.events, []);
    room.unplug(0, 1);
    room.unplug(1, 4);
    assert_eq!((room.cable(0, 1), room.cable(1, 4)), (&KnownCable::Silent, &KnownCable::Silent));
    assert!(room.nodes[0].joined().is_empty());
}

#[test]
fn what_an_end_says_of_itself_is_told_when_it_changes() {
    let mut room = Room::new(2);
    room.plug(0, 1, 7);
    room.plug(1, 4, 7);
    room.events.clear();
    let flags = HelloFlags::ROUTES.with(HelloFlags::SRV6);
    room.nodes[0].set_port(room.now, 1, Some(Own { mtu: 9000, flags, ..own(0, 1) }));
    room.settle();
    let (before, now) = (neighbour(0, 1), Neighbour { mtu: 9000, flags, ..neighbour(0, 1) });
    let event = CableChange { port: 4, before: KnownCable::Joined(before), now: KnownCable::Joined(now) };
    assert_eq!(room.events, [(1, event)]);
}

#[test]
fn a_neighbour_that_falls_silent_is_lost_after_three_seconds_and_one_that_starts_again_before_is_not() {
    let mut room = Room::new(2);
    room.plug(0, 1, 7);
    room.plug(1, 4, 7);
    room.kill(1, 4);
    room.run(Duration::from_millis(2500));
    assert!(matches!(room.cable(0, 1), KnownCable::Joined(_)));
    room.events.clear();
    room.plug(1, 4, 7);
    assert!(room.events.iter().all(|(node, _)| *node == 1), "{:?}", room.events);
    assert_eq!(room.cable(1, 4), &KnownCable::Joined(neighbour(0, 1)));
    room.kill(1, 4);
    room.run(Duration::from_millis(3001));
    assert_eq!(room.cable(0, 1), &KnownCable::Silent);
}

#[test]
fn a_cable_that_works_in_one_direction_is_not_offered_and_both_ends_differ_in_what_they_see() {
    let mut room = Room::new(2);
    room.deaf.insert((1, 4));
    room.plug(0, 1, 7);
    room.plug(1, 4, 7);
    assert_eq!(room.cable(0, 1), &KnownCable::Silent, "it may only not have heard yet");
    room.run(Duration::from_secs(4));
    assert_eq!(room.cable(0, 1), &KnownCable::OneWay(neighbour(1, 4)));
    assert_eq!(room.cable(1, 4), &KnownCable::Silent);
    room.deaf.clear();
    room.run(Duration::from_secs(1));
    assert_eq!(room.cable(0, 1), &KnownCable::Joined(neighbour(1, 4)));
    assert_eq!(room.cable(1, 4), &KnownCable::Joined(neighbour(0, 1)));
    room.deaf.insert((1, 4));
    room.run(Duration::from_millis(6001));
    assert_eq!(room.cable(0, 1), &KnownCable::OneWay(neighbour(1, 4)));
}

#[test]
fn three_on_a_wire_are_named_to_each_also_where_one_alone_hears_two() {
    let mut room = Room::new(3);
    room.plug(0, 1, 7);
    room.plug(1, 4, 7);
    room.plug(2, 1, 7);
    let party = |node, port| Party { mac: mac(node, port), end: Some(end(node, port)) };
    assert_eq!(room.cable(0, 1), &KnownCable::Shared(vec![party(1, 4), party(2, 1)]));
    assert_eq!(room.cable(1, 4), &KnownCable::Shared(vec![party(0, 1), party(2, 1)]));
    assert!(room.nodes.iter().all(|node| node.joined().is_empty()));
    room.unplug(2, 1);
    room.run(Duration::from_secs(5));
    assert_eq!(room.cable(0, 1), &KnownCable::Joined(neighbour(1, 4)));

    // Port 0:1 hears 1:4 alone, as 2:1 does; 1:4 hears both.
    let hello = |node, port, heard: &[Mac]| {
        let Own { end, mac, mtu, flags } = own(node, port);
        Hello { end, mac, mtu, flags, heard: heard.to_vec() }
    };
    let mut port = Neighbours::new();
    port.set_port(Instant::ZERO, 1, Some(own(0, 1)));
    port.handle_hello(Instant::ZERO, 1, mac(1, 4), &hello(1, 4, &[mac(0, 1), mac(2, 1)]));
    let now = port.poll_event(Instant::ZERO).unwrap().now;
    assert_eq!(now, KnownCable::Shared(vec![party(1, 4), Party { mac: mac(2, 1), end: None }]));
}

#[test]
fn a_crossbar_that_hears_itself_says_so() {
    let mut room = Room::new(2);
    room.plug(0, 1, 7);
    room.plug(0, 2, 7);
    assert_eq!(room.cable(0, 1), &KnownCable::Looped { port: 2 });
    assert_eq!(room.cable(0, 2), &KnownCable::Looped { port: 1 });
    room.plug(1, 1, 7);
    assert!(matches!(room.cable(0, 1), KnownCable::Shared(who) if who.len() == 2), "{:?}", room.cable(0, 1));
}

#[test]
fn one_that_takes_another_name_is_no_second_one_unless_both_are_heard() {
    let mut port = Neighbours::new();
    port.set_port(Instant::ZERO, 1, Some(own(0, 1)));
    let hello = |port| {
        let end = HelloEnd::Xbar { tag: Some(1), port };
        Hello { end, mac: mac(1, 4), mtu: 1500, flags: HelloFlags::NONE, heard: vec![mac(0, 1)] }
    };
    let mut hear = |port_there, ms| {
        let now = Instant::ZERO + Duration::from_millis(ms);
        assert!(port.handle_hello(now, 1, mac(1, 4), &hello(port_there)));
        while port.poll_event(now).is_some() {}
        port.cable(1).clone()
    };
    let joined = |port| {
        let Hello { end, mac, mtu, flags, .. } = hello(port);
        KnownCable::Joined(Neighbour { end, mac, mtu, flags })
    };
    assert_eq!(hear(4, 0), joined(4));
    assert_eq!(hear(5, 100), joined(5), "its port has another number now");
    assert!(matches!(hear(4, 200), KnownCable::Shared(who) if who.len() == 2), "both are there");
    assert!(matches!(hear(5, 1200), KnownCable::Shared(_)));
}

#[test]
fn what_is_not_from_whom_it_names_is_not_used() {
    let Own { end, mac: from, mtu, flags } = own(1, 4);
    let hello = Hello { end, mac: from, mtu, flags, heard: Vec::new() };
    let mut port = Neighbours::new();
    let now = Instant::ZERO;
    assert!(!port.handle_hello(now, 1, from, &hello), "there is no such port");
    port.set_port(now, 1, Some(own(0, 1)));
    assert!(!port.handle_hello(now, 1, mac(9, 9), &hello));
    let group = Mac([3, 0, 0, 0, 0, 1]);
    assert!(!port.handle_hello(now, 1, group, &Hello { mac: group, ..hello.clone() }));
    assert!(port.handle_hello(now, 1, from, &hello));
    port.set_port(now, 1, None);
    assert!(!port.handle_hello(now, 1, from, &hello), "it has no carrier");
}

#[test]
fn strangers_without_end_cost_neither_memory_nor_frames() {
    let mut port = Neighbours::new();
    port.set_port(Instant::ZERO, 1, Some(own(0, 1)));
    let mut said = 0;
    for nth in 0..10_000u32 {
        let now = Instant::from_nanos(u64::from(nth) * 1_000_000);
        let mac = Mac::from_position(nth + 1);
        let hello =
            Hello { end: HelloEnd::Host { mac }, mac, mtu: 1, flags: HelloFlags::NONE, heard: vec![mac] };
        port.handle_hello(now, 1, mac, &hello);
        while let Some((_, bytes)) = port.poll_hello(now) {
            assert!(Hello::decode(&bytes).unwrap().heard.len() <= Hello::MOST_HEARD);
            said += 1;
        }
        while port.poll_event(now).is_some() {}
    }
    assert!(said <= 60, "{said} in ten seconds");
    assert!(matches!(port.cable(1), KnownCable::Shared(who) if who.len() <= 2 * Hello::MOST_HEARD));
}

proptest! {
    #[test]
    fn whatever_was_plugged_where_all_ends_know_their_cables_in_the_end(
        steps in proptest::collection::vec((0..4usize, 1..4u8, 0..6u32, 0..4000u64), 1..40),
    ) {
        let mut room = Room::new(4);
        for (node, port, wire, wait_ms) in steps {
            if wire == 0 {
                room.unplug(node, port);
            } else {
                room.plug(node, port, wire);
            }
            room.run(Duration::from_millis(wait_ms));
        }
        room.run(Duration::from_secs(5));
        room.events.clear();
        let before = room.hellos.len();
        room.run(Duration::from_secs(10));
        prop_assert!(room.events.is_empty(), "nothing changes any more: {:?}", room.events);
        prop_assert!(room.hellos.len() - before <= 11 * room.wires.len());
        for (&(node, port), wire) in &room.wires {
            let others: Vec<_> =
                room.wires.iter().filter(|(at, on)| *on == wire && **at != (node, port)).map(|(at, _)| *at).collect();
            let cable = room.cable(node, port);
            match others[..] {
                [] => prop_assert_eq!(cable, &KnownCable::Silent),
                [(other, at)] if other == node => prop_assert_eq!(cable, &KnownCable::Looped { port: at }),
                [(other, at)] => prop_assert_eq!(cable, &KnownCable::Joined(neighbour(other, at))),
                _ => {
                    let all_named =
                        matches!(cable, KnownCable::Shared(who) if who.len() == others.len());
                    prop_assert!(all_named, "{cable:?} with {others:?}");
                }
            }
        }
    }
}
