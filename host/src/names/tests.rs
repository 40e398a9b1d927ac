//! Hosts that tell each other what they are called, over a tree that loses messages.

use std::collections::VecDeque;

use mapper_fabric::generate;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::routes::Basis;

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn mac(host: usize) -> Mac {
    Mac::from_position(host as u32 + 1)
}

fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

/// The services of the hosts of one map, and the messages between them.
struct Tree {
    hosts: Vec<Names>,
    /// The addresses of the hosts in the order of the map, which is their place in its tree.
    order: Vec<Mac>,
    now: Instant,
    asked: usize,
    /// How many of a hundred messages get lost.
    loss: u32,
    rng: ChaCha8Rng,
}

impl Tree {
    fn new(count: usize) -> Self {
        let hosts = (0..count).map(|host| Names::new(mac(host))).collect();
        let mut tree = Self {
            hosts,
            order: Vec::new(),
            now: ms(0),
            asked: 0,
            loss: 0,
            rng: ChaCha8Rng::seed_from_u64(1),
        };
        for host in 0..count {
            tree.hosts[host].set_own(name(&format!("n{host}")), 100);
        }
        tree.install(count);
        tree
    }

    /// Puts a map of the first `count` hosts into force at all hosts.
    fn install(&mut self, count: usize) {
        self.install_at(count, 0..count);
    }

    /// Puts a map of the first `count` hosts into force at the hosts in `heard`.
    fn install_at(&mut self, count: usize, heard: std::ops::Range<usize>) {
        let mut map = generate(&format!("clos:hosts={count},ports=64")).unwrap().map;
        map.sort_canonical();
        self.order = map.hosts.iter().map(|host| host.mac).collect();
        let basis = std::sync::Arc::new(Basis::new(std::sync::Arc::new(map)).unwrap());
        for host in &mut self.hosts[heard] {
            let place = Place::new(&basis, host.own).unwrap();
            host.map_changed(self.now, &place);
        }
    }

    fn index(&self, mac: Mac) -> usize {
        self.hosts.iter().position(|host| host.own == mac).unwrap()
    }

    /// Lets all hosts ask each other for this long.
    fn run_ms(&mut self, span_ms: u64) {
        let end = self.now + Duration::from_millis(span_ms);
        loop {
            let mut asked: VecDeque<(usize, Question)> = VecDeque::new();
            for host in 0..self.hosts.len() {
                while let Some(question) = self.hosts[host].poll_question(self.now) {
                    asked.push_back((host, question));
                }
            }
            for (from, Question { to, body, .. }) in asked {
                self.asked += 1;
                let (to_index, from_mac) = (self.index(to), self.hosts[from].own);
                let heard = self.rng.random_range(0..100) >= self.loss;
                let answer = heard.then(|| self.hosts[to_index].asked(self.now, from_mac, &body, body.len()));
                let answer = answer.flatten().filter(|_| self.rng.random_range(0..100) >= self.loss);
                assert!(answer.as_ref().is_none_or(|answer| answer.len() <= body.len()));
                self.hosts[from].answered(self.now, to, answer.as_deref());
            }
            let next = self.hosts.iter().filter_map(Service::poll_timeout).min().unwrap_or(Instant::FAR);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
        }
    }

    fn missing(&self, count: usize) -> usize {
        let knows = |host: &Names, other: usize| {
            host.table().name_of(mac(other)) == self.hosts[other].table().name_of(mac(other))
        };
        let hosts = self.hosts[..count].iter();
        hosts.map(|host| (0..count).filter(|&other| !knows(host, other)).count()).sum()
    }
}

#[test]
fn all_know_all_names_and_each_crosses_a_cable_of_the_tree_about_once() {
    let mut tree = Tree::new(100);
    tree.run_ms(90);
    assert_eq!(tree.asked, 0, "the map comes first");
    tree.run_ms(500);
    assert_eq!(tree.missing(100), 0);
    // Each of 100 names crosses each of 99 edges. A message carries only a few, as hosts pass on at once what
    // they hear.
    assert!(tree.asked < 99 * 15, "{}", tree.asked);
    let before = tree.asked;
    tree.run_ms(10_000);
    assert_eq!(tree.asked - before, 99, "nothing but a comparison of each child with its parent");
}

#[test]
fn a_name_that_changes_is_told_to_all_at_once() {
    let mut tree = Tree::new(40);
    tree.run_ms(1000);
    tree.hosts[17].set_own(name("other"), 50);
    tree.run_ms(1);
    assert_eq!(tree.missing(40), 0, "though its clock stands behind");
    assert!(tree.hosts[3].table().hosts_called("OTHER").eq([mac(17)]));
}

#[test]
fn a_parent_that_has_routes_of_the_map_later_is_asked_again_soon() {
    let mut tree = Tree::new(2);
    let parent = tree.index(tree.order[0]);
    // The parent has not heard of the map yet.
    tree.hosts[parent].neighbours.clear();
    tree.run_ms(1500);
    assert!(tree.missing(2) > 0);
    tree.install_at(2, parent..parent + 1);
    tree.run_ms(1500);
    assert_eq!(tree.missing(2), 0);
}

#[test]
fn what_gets_lost_is_told_again() {
    let mut tree = Tree::new(30);
    // The agent asks three times, so a message that is lost here stands for three lost ones.
    tree.loss = 10;
    tree.run_ms(30_000);
    assert_eq!(tree.missing(30), 0);
}

#[test]
fn a_host_that_starts_again_learns_all_names_and_keeps_its_own() {
    let mut tree = Tree::new(30);
    tree.run_ms(1000);
    tree.hosts[7] = Names::new(mac(7));
    // The host's clock shows less than when the host first started.
    tree.hosts[7].set_own(name("n7b"), 3);
    tree.install(30);
    tree.run_ms(COMPARE_EVERY.as_millis() as u64 + 2000);
    assert_eq!(tree.missing(30), 0);
    assert_eq!(tree.hosts[0].table().name_of(mac(7)), Some(&name("n7b")));
}

#[test]
fn a_host_without_a_name_knows_those_of_others_and_who_left_is_named_still() {
    let mut tree = Tree::new(20);
    tree.hosts[5] = Names::new(mac(5));
    tree.install(20);
    tree.run_ms(1000);
    assert_eq!(tree.missing(20), 0);
    assert_eq!(tree.hosts[5].table().iter().count(), 19);
    tree.install(10);
    tree.run_ms(1000);
    assert_eq!(tree.hosts[2].table().name_of(mac(15)), Some(&name("n15")));
    assert_eq!(tree.hosts[2].table().hosts_called("n15").next(), None, "it is not in the map");
}

#[test]
fn who_is_no_neighbour_tells_nothing_and_nobody_fills_the_memory() {
    let mut tree = Tree::new(4);
    tree.run_ms(1000);
    let leader = tree.index(tree.order[0]);
    let stranger = Mac([2, 9, 9, 9, 9, 9]);
    let told = |mac, text: &str, revision| {
        let mut teller = body::Teller::default();
        assert!(teller.push(&Named { mac, name: name(text), revision }));
        teller.finish()
    };
    let lie = told(mac(1), "lie", u32::MAX);
    assert_eq!(tree.hosts[leader].asked(tree.now, stranger, &lie, 99), None);
    assert_eq!(tree.hosts[leader].asked(tree.now, stranger, &body::compare(&Buckets::default()), 999), None);
    let neighbour = tree.order[1];
    // Hosts that are in no map have no name.
    assert_eq!(tree.hosts[leader].asked(tree.now, neighbour, &told(stranger, "x", 1), 99), Some(vec![]));
    assert_eq!(tree.hosts[leader].table().name_of(stranger), None);
    // A host that is told a wrong name of itself keeps its own, and all others do too: whatever the revision.
    let own = tree.hosts[leader].own;
    for revision in [7_000, u32::MAX / 2, u32::MAX / 2 + 9_000, u32::MAX - 1, u32::MAX, 0] {
        for liar in [leader, tree.index(neighbour)] {
            let from = if liar == leader { neighbour } else { own };
            let answer = tree.hosts[liar].asked(tree.now, from, &told(own, "lie", revision), 99);
            assert_eq!(answer, Some(vec![]));
        }
        tree.run_ms(COMPARE_EVERY.as_millis() as u64);
        assert_eq!(tree.missing(4), 0, "revision {revision}");
    }
}

#[test]
fn names_are_text_for_people() {
    assert_eq!("".parse::<HostName>(), Err(NotAName::Empty));
    assert_eq!("x".repeat(65).parse::<HostName>(), Err(NotAName::TooLong(65)));
    assert_eq!("a\nb".parse::<HostName>(), Err(NotAName::Control));
    assert_eq!(name("knoten-ä 3").as_str(), "knoten-ä 3");
}
