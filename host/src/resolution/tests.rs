//! Hosts that ask each other for what is not announced, over a tree that loses messages.

use mapper_fabric::generate;
use rand::RngExt;

use super::asking::MOST_WAITS;
use super::*;
use crate::directory::table_with;

const TWICE: Patience = Patience { timeout: Duration::from_millis(200), retries: 1 };
const OFTEN: Patience = Patience { timeout: Duration::from_millis(200), retries: 20 };
const ONCE: Patience = Patience { timeout: Duration::from_millis(100), retries: 0 };
/// How long a message and its answer take.
const ROUND_TRIP: Duration = Duration::from_micros(100);

fn mac(host: usize) -> Mac {
    Mac::from_position(host as u32 + 1)
}

fn wanted(text: &str) -> Wanted {
    Wanted::parse(text).unwrap()
}

/// The services of the hosts of one map, and the messages between them.
struct Tree {
    hosts: Vec<Resolver>,
    index: BTreeMap<Mac, usize>,
    now: Instant,
    /// How many messages each host has sent.
    sent: Vec<usize>,
    /// How many of a hundred messages get lost.
    loss: u32,
    rng: ChaCha8Rng,
    found: Vec<(usize, Found)>,
    /// What all know of each other's revisions.
    directory: Directory,
}

impl Tree {
    fn new(count: usize) -> Self {
        let hosts = (0..count).map(|host| Resolver::new(mac(host), host as u64)).collect();
        let mut tree = Self {
            hosts,
            index: (0..count).map(|host| (mac(host), host)).collect(),
            now: Instant::ZERO,
            sent: vec![0; count],
            loss: 0,
            rng: ChaCha8Rng::seed_from_u64(1),
            found: Vec::new(),
            directory: Directory::default(),
        };
        tree.install(count);
        tree
    }

    /// Puts a map of the first `count` hosts into force.
    fn install(&mut self, count: usize) {
        let mut map = generate(&format!("clos:hosts={count},ports=64")).unwrap().map;
        map.sort_canonical();
        let basis = Arc::new(Basis::new(Arc::new(map)).unwrap());
        for host in &mut self.hosts[..count] {
            let place = Place::new(&basis, host.own).unwrap();
            host.map_changed(self.now, &place);
        }
    }

    /// Gives a host names and forgets that it asked who else has them, so that others have yet to ask.
    fn hide(&mut self, host: usize, all: &[&str]) {
        self.give(host, all);
        self.hosts[host].pending.clear();
        self.hosts[host].outbox = Outbox::default();
    }

    /// Says what a host has that nobody is told of.
    fn give(&mut self, host: usize, all: &[&str]) -> bool {
        self.hosts[host].set_owned(self.now, all.iter().map(|text| (wanted(text), false)).collect())
    }

    fn ask(&mut self, host: usize, text: &str, patience: Patience) {
        self.hosts[host].ask(self.now, wanted(text), patience).unwrap();
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            let mut messages = Vec::new();
            for (at, host) in self.hosts.iter_mut().enumerate() {
                host.handle_timeout(self.now, &self.directory);
                self.found.extend(std::iter::from_fn(|| host.poll_found()).map(|found| (at, found)));
                messages.extend(std::iter::from_fn(|| host.poll_question(self.now)).map(|it| (at, it)));
            }
            let is_quiet = messages.is_empty();
            for (from, Question { to, body, .. }) in messages {
                self.sent[from] += 1;
                let to_index = self.index[&to];
                let arrives = self.rng.random_range(0..100) >= self.loss;
                let answer = arrives.then(|| self.hosts[to_index].asked(self.now, mac(from), &body, 0));
                self.hosts[from].answered(self.now, to, answer.flatten().as_deref());
            }
            let due = self.hosts.iter().filter_map(Resolver::deadline).min();
            let next = self.now + ROUND_TRIP;
            self.now = if is_quiet { due.unwrap_or(end).clamp(next, end.max(next)) } else { next };
        }
    }

    /// The owners that a host was told last.
    fn told(&mut self, host: usize) -> Option<Vec<Mac>> {
        let at = self.found.iter().position(|(at, _)| *at == host)?;
        Some(self.found.remove(at).1.owners.iter().map(|owner| owner.mac).collect())
    }

    /// The owners that a host remembers, where the directory has these revisions.
    fn remembered(&self, host: usize, text: &str) -> Vec<Mac> {
        let owners = self.hosts[host].owners(self.now, &Directory::default(), &wanted(text));
        owners.iter().map(|owner| owner.mac).collect()
    }
}

#[test]
fn a_question_comes_to_every_host_and_none_sends_it_to_more_than_three() {
    let mut tree = Tree::new(100);
    tree.hide(77, &["alias", "10.9.0.1"]);
    tree.hide(5, &["five"]);
    tree.ask(5, "ALIAS", TWICE);
    tree.run(Duration::from_millis(100));
    assert_eq!(tree.told(5), Some(vec![mac(77)]));
    assert_eq!((tree.sent.iter().sum::<usize>(), tree.sent.iter().max()), (99 + 1, Some(&3)));
    // All hosts have learned the name of the asker, and need not ask for it any more.
    assert!((0..100).filter(|&host| host != 5).all(|host| tree.remembered(host, "five") == [mac(5)]));
    assert_eq!(tree.remembered(5, "alias"), [mac(77)]);
    tree.ask(6, "10.9.0.1", TWICE);
    tree.ask(6, "nobody", TWICE);
    tree.run(Duration::from_secs(1));
    assert_eq!([tree.told(6), tree.told(6)], [Some(vec![mac(77)]), Some(vec![])]);
    assert_eq!(tree.hosts[6].deadline(), None);
}

#[test]
fn who_joins_a_question_that_is_nearly_over_finds_an_owner_that_has_come_meanwhile() {
    let mut tree = Tree::new(3);
    tree.ask(2, "alias", ONCE);
    tree.run(ONCE.timeout / 2);
    tree.hide(0, &["alias"]);
    tree.ask(2, "alias", ONCE);
    tree.run(4 * ONCE.timeout);
    assert_eq!((tree.told(2), tree.told(2)), (Some(vec![mac(0)]), None));
    // Others who ask again and again do not keep the first asker waiting for ever.
    for _ in 0..20 {
        tree.ask(2, "nobody", ONCE);
        tree.run(ONCE.timeout / 2);
    }
    assert_eq!(tree.told(2), Some(vec![]));
}

#[test]
fn what_gets_lost_is_asked_again() {
    let mut tree = Tree::new(40);
    tree.loss = 10;
    for host in 0..40 {
        tree.hide(host, &[&format!("alias{host}")]);
    }
    for host in 0..40 {
        tree.ask(host, &format!("alias{}", (host + 7) % 40), OFTEN);
    }
    tree.run(Duration::from_secs(6));
    for host in 0..40 {
        assert_eq!(tree.told(host), Some(vec![mac((host + 7) % 40)]), "host {host}");
    }
}

#[test]
fn both_owners_of_one_name_are_named_also_when_the_second_answers_late() {
    let mut tree = Tree::new(20);
    tree.hide(3, &["both"]);
    tree.hide(14, &["both"]);
    tree.ask(8, "both", TWICE);
    tree.run(Duration::from_millis(100));
    let mut told = tree.told(8).unwrap();
    told.sort_unstable();
    assert_eq!(told, [mac(3), mac(14)]);
    assert!(tree.hosts[8].take_changed());
    // A host that gets the name asks for it itself, so all who know of other owners hear of it, and the other
    // owners do, too.
    tree.give(9, &["both"]);
    tree.run(Duration::from_millis(100));
    assert_eq!(tree.remembered(8, "both").len(), 3);
    assert!([3, 14].iter().all(|&host| tree.hosts[host].take_changed()));
    assert_eq!(tree.told(9).map(|owners| owners.len()), Some(2));
}

#[test]
fn what_a_host_said_at_an_earlier_revision_counts_no_more() {
    let mut tree = Tree::new(10);
    tree.hide(4, &["alias"]);
    tree.hosts[4].set_revision(7);
    tree.ask(2, "alias", TWICE);
    tree.run(Duration::from_millis(100));
    let directory = crate::directory::table_with(mac(4), 7);
    let known = |tree: &Tree, directory: &Directory| {
        tree.hosts[2].owners(tree.now, directory, &wanted("alias")).len()
    };
    assert_eq!(known(&tree, &directory), 1);
    assert!(tree.give(4, &[]), "others may have learned it, so the revision must rise");
    assert_eq!(known(&tree, &crate::directory::table_with(mac(4), 8)), 0);
    assert!(!tree.give(4, &["new"]), "nobody can have learned that before");
    // A host that has left the map owns nothing.
    tree.install(4);
    assert_eq!(known(&tree, &directory), 0);
}

#[test]
fn forged_and_senseless_messages_are_counted_and_teach_nothing() {
    let mut tree = Tree::new(7);
    let victim = &mut tree.hosts[3];
    let neighbour = victim.neighbours[0];
    let own = Own { number: 5, revision: 9, group: Group::default(), wanted: wanted("alias") };
    let lie = body::fill(&mut VecDeque::from([own]));
    let ask = |asker| Ask {
        asker,
        number: 1,
        hops_left: 9,
        revision: 9,
        groups: vec![Group::default()],
        source: Some(wanted("alias")),
        wanted: wanted("x"),
    };
    let question = |asker| body::fill(&mut VecDeque::from([ask(asker)]));
    let stranger = Mac::from_position(999);
    victim.asked(tree.now, neighbour, &lie, 0);
    victim.asked(tree.now, neighbour, &[9, 9], 0);
    victim.asked(tree.now, stranger, &question(neighbour), 0);
    victim.asked(tree.now, neighbour, &question(stranger), 0);
    for refused in [Refused::Unasked, Refused::Malformed, Refused::NoNeighbour, Refused::NotInMap] {
        assert_eq!(victim.refused()[refused], 1, "{refused:?}");
    }
    assert_eq!(victim.load(), 0);
    // Nor does an answer count that was asked for and comes from a host that is not in the map.
    victim.ask(tree.now, wanted("alias"), TWICE).unwrap();
    let number = *victim.asked.keys().next().unwrap();
    let own = Own { number, revision: 9, group: Group::default(), wanted: wanted("alias") };
    let lie = body::fill(&mut VecDeque::from([own.clone()]));
    victim.asked(tree.now, stranger, &lie, 0);
    // An answer about something else than was asked for is not believed, either.
    let other = body::fill(&mut VecDeque::from([Own { wanted: wanted("other"), ..own }]));
    victim.asked(tree.now, neighbour, &other, 0);
    assert_eq!((victim.refused()[Refused::NotInMap], victim.refused()[Refused::Unasked]), (2, 2));
    assert_eq!(victim.learned.len(), 0);
}

#[test]
fn one_that_asks_without_end_fills_no_queue_and_leaves_room_for_others() {
    let mut tree = Tree::new(3);
    for n in 0..300 {
        let asked = tree.hosts[1].ask(tree.now, wanted(&format!("n{n}")), TWICE);
        assert_eq!(asked.is_ok(), n < MOST_PENDING);
    }
    assert!(tree.hosts[1].most_queued() <= 3 * 64, "{}", tree.hosts[1].most_queued());
    tree.hide(0, &["zero"]);
    tree.ask(2, "zero", OFTEN);
    tree.run(Duration::from_secs(2));
    assert_eq!(tree.told(2), Some(vec![mac(0)]));
    assert!(tree.hosts.iter().all(|host| host.load() < 2 * MOST_SEEN));
}

#[test]
fn a_host_that_can_use_no_group_of_the_askers_does_not_answer() {
    let mut tree = Tree::new(5);
    tree.hide(1, &["one"]);
    let group = |rate_mbps, layer| Group { rate_mbps, mtu_bytes: 1500, layer };
    tree.hosts[1].set_groups(vec![group(10_000, 1)]);
    tree.ask(2, "one", TWICE);
    tree.run(Duration::from_secs(1));
    assert_eq!(tree.told(2), Some(vec![]));
    tree.hosts[2].set_groups(vec![group(25_000, 0), group(25_000, 1)]);
    tree.ask(2, "one", TWICE);
    tree.run(Duration::from_secs(1));
    let owner = tree.found[0].1.owners[0];
    assert_eq!((owner.mac, owner.group), (mac(1), group(10_000, 1)));
}

#[test]
fn who_comes_with_a_new_map_is_asked_at_once() {
    let mut tree = Tree::new(6);
    tree.install(3);
    let asker = (0..3).find(|&host| tree.hosts[host].neighbours.len() == 2).unwrap();
    tree.hide(5, &["late"]);
    let long = Patience { timeout: Duration::from_secs(100), retries: 0 };
    tree.ask(asker, "late", long);
    tree.run(Duration::from_millis(100));
    assert_eq!(tree.told(asker), None);
    tree.install(6);
    tree.run(Duration::from_millis(100));
    assert_eq!(tree.told(asker), Some(vec![mac(5)]));
}

#[test]
fn who_is_asked_for_may_be_heard_of_before_it_answers() {
    let mut tree = Tree::new(20);
    let long = Patience { timeout: Duration::from_secs(100), retries: 0 };
    tree.ask(3, "late", long);
    tree.run(Duration::from_millis(100));
    assert_eq!(tree.told(3), None, "nobody has it");
    // A host that gets the name asks who else has it, and this question answers all who wait.
    tree.give(17, &["late"]);
    tree.run(Duration::from_millis(100));
    assert_eq!(tree.told(3), Some(vec![mac(17)]));
}

#[test]
fn an_answer_that_was_on_its_way_while_its_owner_gave_the_name_up_is_not_told_and_the_owner_of_now_is() {
    let mut tree = Tree::new(6);
    tree.ask(2, "alias", TWICE);
    // The owner answers at once, and gives the name up before the answer arrives; all hear of its new record.
    let number = *tree.hosts[2].asked_order.back().unwrap();
    let before = Own { number, revision: 0, group: Group::default(), wanted: wanted("alias") };
    let now = tree.now;
    tree.hosts[2].take(now, mac(4), before);
    tree.directory = table_with(mac(4), 1);
    tree.hide(5, &["alias"]);
    tree.run(Duration::from_secs(1));
    assert_eq!(tree.told(2), Some(vec![mac(5)]));
    assert_eq!(tree.told(2), None);
}

/// An owner gives a name up while its answer is under way to a question of the third host, which asks again `after` that, and the
/// directory tells that late. Returns whom the third host is told then.
fn told_after_asking_again(first: Patience, after: Duration) -> Vec<Mac> {
    let mut tree = Tree::new(6);
    tree.ask(2, "alias", first);
    let number = *tree.hosts[2].asked_order.back().unwrap();
    tree.run(after);
    tree.found.clear();
    tree.hide(5, &["alias"]);
    tree.ask(2, "alias", ONCE);
    let before = Own { number, revision: 0, group: Group::default(), wanted: wanted("alias") };
    let now = tree.now;
    tree.hosts[2].take(now, mac(4), before);
    let refused = tree.hosts[2].refused()[Refused::Unasked];
    tree.run(Duration::from_secs(1));
    let told = tree.told(2).unwrap();
    assert_eq!((tree.remembered(2, "alias"), refused == 0), (told.clone(), told.contains(&mac(4))));
    told
}

#[test]
fn an_answer_to_an_earlier_question_is_none_to_a_later_one() {
    assert_eq!(told_after_asking_again(ONCE, Duration::from_secs(1)), [mac(5)], "the question was over");
    assert_eq!(told_after_asking_again(OFTEN, Duration::from_secs(1)), [mac(5)], "it was still asked");
    // Whoever asks at the same time is told the same, and the question goes out once.
    assert_eq!(told_after_asking_again(OFTEN, Duration::from_millis(1)), [mac(4)]);
}

#[test]
fn an_answer_counts_that_comes_after_its_question_was_sent_once_more() {
    let mut tree = Tree::new(6);
    tree.ask(2, "alias", OFTEN);
    let number = *tree.hosts[2].asked_order.back().unwrap();
    tree.run(3 * OFTEN.timeout);
    let late = Own { number, revision: 0, group: Group::default(), wanted: wanted("alias") };
    let now = tree.now;
    tree.hosts[2].take(now, mac(4), late);
    tree.run(Duration::from_secs(1));
    assert_eq!(tree.told(2), Some(vec![mac(4)]));
}

#[test]
fn a_question_that_is_asked_anew_goes_out_once() {
    let mut tree = Tree::new(6);
    for _ in 0..5 {
        tree.ask(2, "alias", ONCE);
        tree.now = tree.now + Duration::from_secs(1);
    }
    assert_eq!(tree.hosts[2].outbox.len(), tree.hosts[2].neighbours.len());
}

#[test]
fn what_was_to_be_said_of_a_name_is_not_said_once_it_is_given_up() {
    for gives_up in [false, true] {
        let mut tree = Tree::new(2);
        tree.hide(1, &["printer", "scanner"]);
        tree.ask(0, "printer", ONCE);
        let asked = tree.hosts[0].poll_question(tree.now).unwrap();
        assert!(tree.hosts[1].asked(tree.now, mac(0), &asked.body, 0).is_some());
        // A question of its own tells what it has, too.
        tree.ask(1, "printer", ONCE);
        tree.hosts[0].answered(tree.now, mac(1), None);
        if gives_up {
            assert!(tree.give(1, &["scanner"]));
        }
        tree.run(Duration::from_secs(1));
        let owners = if gives_up { Vec::new() } else { vec![mac(1)] };
        assert_eq!(tree.told(0), Some(owners.clone()));
        assert_eq!(tree.remembered(0, "printer"), owners);
    }
}

#[test]
fn nobody_is_said_to_have_what_has_not_left_this_host() {
    let mut tree = Tree::new(20);
    tree.hide(3, &["alias"]);
    tree.ask(8, "alias", ONCE);
    // While the agent maps, its services ask nothing.
    for _ in 0..5 {
        tree.now = tree.hosts[8].deadline().unwrap();
        let now = tree.now;
        tree.hosts[8].handle_timeout(now, &tree.directory);
        assert_eq!(tree.hosts[8].poll_found(), None);
    }
    tree.run(Duration::from_millis(100));
    assert_eq!(tree.told(8), Some(vec![mac(3)]));
    // A question that found no room in the queues is sent as soon as there is room.
    for n in 0..100 {
        tree.ask(8, &format!("nobody{n}"), ONCE);
    }
    tree.hide(4, &["late"]);
    tree.ask(8, "late", ONCE);
    tree.run(3 * ONCE.timeout);
    let late = tree.found.iter().find(|(_, found)| found.wanted == wanted("late")).unwrap();
    assert_eq!(late.1.owners[0].mac, mac(4));
    // A question does not wait for ever for an agent that never lets services ask.
    tree.found.clear();
    tree.ask(8, "other", ONCE);
    let deadlines = std::iter::from_fn(|| {
        let at = tree.hosts[8].deadline()?;
        tree.hosts[8].handle_timeout(at, &tree.directory);
        Some(at)
    });
    assert_eq!(deadlines.count(), usize::from(MOST_WAITS) + 1);
    assert_eq!(tree.hosts[8].poll_found().map(|found| found.owners.len()), Some(0));
}

#[test]
fn a_new_map_gives_those_who_come_with_it_time_to_answer() {
    let mut tree = Tree::new(6);
    tree.install(3);
    let asker = (0..3).find(|&host| tree.hosts[host].neighbours.len() == 2).unwrap();
    tree.hide(5, &["late"]);
    tree.ask(asker, "late", ONCE);
    tree.run(ONCE.timeout - ROUND_TRIP);
    tree.install(6);
    tree.run(ONCE.timeout);
    assert_eq!(tree.told(asker), Some(vec![mac(5)]));
}

/// What the service of names of each machine asks for by default.
const AS_SERVICES_ASK: Patience = Patience { timeout: Duration::from_secs(2), retries: 2 };

#[test]
fn a_thousand_hosts_that_all_ask_at_once_for_each_others_unannounced_names_are_told_at_the_first_try() {
    const HOSTS: usize = 1024;
    let mut tree = Tree::new(HOSTS);
    for host in 0..HOSTS {
        tree.hide(host, &[&format!("alias{host}")]);
    }
    for host in 0..HOSTS {
        tree.ask(host, &format!("alias{}", (host * 7 + 1) % HOSTS), AS_SERVICES_ASK);
    }
    tree.run(Duration::from_millis(1900));
    for host in 0..HOSTS {
        assert_eq!(tree.told(host), Some(vec![mac((host * 7 + 1) % HOSTS)]), "host {host}");
    }
    let frames = tree.sent.iter().max().unwrap();
    let queued = tree.hosts.iter().map(Resolver::most_queued).max().unwrap();
    assert!(*frames <= 4 * HOSTS && queued <= HOSTS, "{frames} frames of one host, {queued} queued");
    assert!(tree.hosts.iter().all(|host| host.refused()[Refused::Full] == 0));
}
