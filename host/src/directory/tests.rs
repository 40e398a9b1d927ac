//! Hosts that tell each other their names and addresses, over a tree that loses messages.

pub(crate) mod tree;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use tree::{Tree, address, mac, ms, name};

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
    tree.hosts[17].set_name(name("other"), 50);
    tree.run_ms(1);
    assert_eq!(tree.missing(40), 0, "though its clock stands behind");
    assert!(tree.hosts[3].directory().hosts_called("OTHER").eq([mac(17)]));
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
fn a_host_that_starts_again_joins_what_its_children_and_its_parent_know() {
    let mut tree = Tree::new(15);
    // The second host of the tree tells nothing, so that its children and the first one do not hear of each other.
    let silent = tree.index(tree.order[1]);
    tree.hosts[silent].neighbours.clear();
    tree.run_ms(2000);
    assert!(tree.missing(15) > 50);
    tree.hosts[silent] = Gossip::new(mac(silent));
    tree.hosts[silent].set_name(name("again"), 200);
    // All others have the map already.
    tree.install_at(15, silent..silent + 1);
    tree.run_ms(1500);
    assert_eq!(tree.missing(15), 0);
    let before = tree.asked;
    tree.run_ms(20_000);
    assert_eq!(tree.asked - before, 2 * 14, "nothing but comparisons of each child with its parent");
}

#[test]
fn hosts_that_get_a_map_one_after_the_other_know_all_soon_after_the_last() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for round in 0..300 {
        let mut tree = Tree::new(12);
        if rng.random_bool(0.5) {
            tree.run_ms(1000);
        }
        // Two hosts, which are leaves of the tree, are away, and known or not; some others know nothing, as they have started again.
        tree.install_without(&[0, 1], 12, 2..12);
        tree.run_ms(1000);
        let mut late: Vec<usize> = (0..12).collect();
        late.shuffle(&mut rng);
        for &host in &late[..rng.random_range(0..3)] {
            tree.hosts[host] = Gossip::new(mac(host));
            tree.hosts[host].set_name(name(&format!("again{host}")), 200);
            if host > 1 && rng.random_bool(0.5) {
                tree.install_without(&[0, 1], 12, host..host + 1);
            }
        }
        late.shuffle(&mut rng);
        for host in late {
            tree.install_at(12, host..host + 1);
            tree.run_ms(rng.random_range(0..200));
        }
        tree.run_ms(4000);
        assert_eq!(tree.missing(12), 0, "round {round}");
    }
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
    tree.hosts[7] = Gossip::new(mac(7));
    // The host's clock shows less than when the host first started.
    tree.hosts[7].set_name(name("n7b"), 3);
    tree.install(30);
    tree.run_ms(COMPARE_EVERY.as_millis() as u64 + 2000);
    assert_eq!(tree.missing(30), 0);
    assert_eq!(tree.hosts[0].directory().name_of(mac(7)), Some(&name("n7b")));
}

#[test]
fn a_host_without_a_name_knows_those_of_others_and_who_left_is_named_still() {
    let mut tree = Tree::new(20);
    tree.hosts[5] = Gossip::new(mac(5));
    tree.install(20);
    tree.run_ms(1000);
    assert_eq!(tree.missing(20), 0);
    assert_eq!(tree.hosts[5].directory().iter().count(), 19);
    tree.install(10);
    tree.run_ms(1000);
    assert_eq!(tree.hosts[2].directory().name_of(mac(15)), Some(&name("n15")));
    assert_eq!(tree.hosts[2].directory().hosts_called("n15").next(), None, "it is not in the map");
}

#[test]
fn who_is_no_neighbour_tells_nothing_and_nobody_fills_the_memory() {
    let mut tree = Tree::new(4);
    tree.run_ms(1000);
    let leader = tree.index(tree.order[0]);
    let stranger = Mac([2, 9, 9, 9, 9, 9]);
    let told = |mac, text: &str, revision| {
        let mut teller = body::Teller::new();
        let addresses = RecordAddresses::new([address("10.1.0.66/24")], |_| false);
        assert!(teller.push(&Told::new(mac, Record { name: Some(name(text)), revision, addresses })));
        teller.finish()
    };
    let lie = told(mac(1), "lie", u32::MAX);
    assert_eq!(tree.hosts[leader].asked(tree.now, stranger, &lie, 99), None);
    assert_eq!(tree.hosts[leader].asked(tree.now, stranger, &body::compare(&Buckets::default()), 999), None);
    let neighbour = tree.order[1];
    // Hosts that are in no map have no name.
    assert_eq!(tree.hosts[leader].asked(tree.now, neighbour, &told(stranger, "x", 1), 99), Some(vec![1]));
    assert_eq!(tree.hosts[leader].directory().name_of(stranger), None);
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
fn what_is_refused_is_counted() {
    let mut tree = Tree::new(3);
    tree.run_ms(1000);
    let leader = tree.index(tree.order[0]);
    let (own, neighbour, now) = (tree.order[0], tree.order[1], tree.now);
    let leader = &mut tree.hosts[leader];
    let tell = |mac| {
        let mut teller = body::Teller::new();
        let lie = Record { name: Some(name("lie")), revision: 9, ..Record::default() };
        assert!(teller.push(&Told::new(mac, lie)));
        teller.finish()
    };
    leader.asked(now, neighbour, &[7, 7], 99);
    leader.asked(now, mac(77), &tell(own), 99);
    leader.asked(now, neighbour, &tell(mac(77)), 99);
    leader.asked(now, neighbour, &tell(own), 99);
    for refusal in [Refusal::Malformed, Refusal::NoNeighbour, Refusal::NotInMap, Refusal::OfThisHost] {
        assert_eq!(leader.directory().refused()[refusal], 1, "{refusal:?}");
    }
}

#[test]
fn addresses_are_known_to_all_and_follow_their_host() {
    let mut tree = Tree::new(40);
    for host in 0..40 {
        tree.say(host, &[&format!("10.1.0.{}/24", host + 1), &format!("fd00::{host}/64")]);
    }
    tree.run_ms(1000);
    assert_eq!(tree.missing(40), 0);
    assert_eq!(
        tree.hosts[9].directory().addresses_of(mac(3)),
        [address("10.1.0.4/24"), address("fd00::3/64")]
    );
    assert!(tree.hosts[9].directory().host_with("10.1.0.4".parse().unwrap()).eq([mac(3)]));
    tree.say(3, &["10.1.0.77/24"]);
    tree.run_ms(10);
    let directory = tree.hosts[20].directory();
    assert_eq!(directory.addresses_of(mac(3)), [address("10.1.0.77/24")]);
    assert_eq!(directory.host_with("10.1.0.4".parse().unwrap()).next(), None);
    assert_eq!(directory.name_of(mac(3)), Some(&name("n3")));
    tree.say(3, &[]);
    tree.run_ms(10);
    assert!(tree.hosts[20].directory().addresses_of(mac(3)).is_empty());
    assert_eq!(tree.hosts[20].directory().addresses_of(mac(99)), []);
}

#[test]
fn an_address_of_two_hosts_clashes_until_one_gives_it_up_or_leaves_the_map() {
    let mut tree = Tree::new(20);
    for host in [4, 7, 15] {
        tree.say(host, &["10.1.0.5/24"]);
    }
    tree.say(8, &["10.1.0.8/24", "10.1.0.9/24"]);
    tree.run_ms(1000);
    let clashes = |tree: &Tree| tree.hosts[1].directory().clashes().collect::<Vec<_>>();
    let clash = |hosts: &[usize]| Clash {
        ip: "10.1.0.5".parse().unwrap(),
        hosts: hosts.iter().copied().map(mac).collect(),
        is_lasting: true,
    };
    assert_eq!(clashes(&tree), [clash(&[4, 7, 15])]);
    // The prefix may differ: an address is one host's, whatever network it takes it to be on.
    tree.say(7, &["10.1.0.5/16"]);
    tree.run_ms(10);
    assert_eq!(clashes(&tree), [clash(&[4, 7, 15])]);
    tree.say(7, &[]);
    tree.install(12);
    tree.run_ms(1000);
    assert_eq!(clashes(&tree), [], "host 15 is not in the map");
    tree.install(20);
    tree.run_ms(1000);
    assert_eq!(clashes(&tree), [clash(&[4, 15])]);
}

#[test]
fn what_a_host_had_before_it_started_again_is_forgotten_though_it_says_nothing() {
    let mut tree = Tree::new(10);
    tree.say(5, &["10.1.0.5/24"]);
    tree.run_ms(1000);
    tree.hosts[5] = Gossip::new(mac(5));
    tree.install(10);
    tree.run_ms(2000);
    assert_eq!(tree.missing(10), 0);
    assert!(tree.hosts[0].directory().addresses_of(mac(5)).is_empty());
    assert_eq!(tree.hosts[0].directory().name_of(mac(5)), None);
}

#[test]
fn a_host_is_in_step_once_it_knows_what_a_neighbour_knows_and_alone_only_without_one() {
    let mut tree = Tree::new(100);
    tree.run_ms(50);
    assert!(tree.hosts.iter().all(|host| !host.is_in_step() && host.alone_since().is_none()));
    tree.run_ms(950);
    assert_eq!(tree.missing(100), 0);
    assert!(tree.hosts.iter().all(Gossip::is_in_step));
    let mut alone = Tree::new(1);
    alone.run_ms(50);
    alone.install(1);
    assert_eq!((alone.hosts[0].is_in_step(), alone.hosts[0].alone_since()), (false, Some(ms(0))));
}

#[test]
fn hosts_that_share_a_map_share_its_records_and_what_one_is_told_wrongly_no_other_knows() {
    let mut tree = Tree::new(20);
    tree.run_ms(1000);
    let record = |tree: &Tree, host: usize| {
        let directory = tree.hosts[host].directory();
        Arc::clone(directory.at_rank(directory.rank(mac(3)).unwrap()).unwrap())
    };
    assert!((0..20).all(|host| Arc::ptr_eq(&record(&tree, host), &record(&tree, 3))));
    // Another revision that a neighbour makes up is read in place of the true one, and believed by nobody else.
    let leader = tree.index(tree.order[0]);
    let lie = Record { name: Some(name("lie")), revision: 9, ..Record::default() };
    let mut teller = body::Teller::new();
    assert!(teller.push(&Told::new(mac(3), lie)));
    tree.hosts[leader].asked(tree.now, tree.order[1], &teller.finish(), 99);
    assert_eq!(tree.missing(20), 0, "the revision is an older one");
    tree.hosts[3].set_name(name("new"), 200);
    tree.run_ms(100);
    assert_eq!(tree.missing(20), 0);
    assert!((0..20).all(|host| Arc::ptr_eq(&record(&tree, host), &record(&tree, 3))));
}

#[test]
fn what_comes_one_by_one_is_told_together() {
    let mut tree = Tree::new(2);
    tree.run_ms(1000);
    let before = tree.asked;
    for revision in 0..20 {
        tree.hosts[0].set_name(name(&format!("name{revision}")), 200 + revision);
        tree.run_ms(1);
    }
    tree.run_ms(10);
    assert_eq!((tree.missing(2), tree.asked - before), (0, 5), "the first at once, then one each 5 ms");
}
