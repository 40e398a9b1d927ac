//! Hosts that pick addresses out of one network, over a directory that loses messages.

use proptest::prelude::*;

use super::*;
use crate::directory::Clash;
use crate::directory::tests::tree::{Tree, address, mac, ms};

/// All that a host may have in a network, in the order in which it tries them.
fn tried_by(host: usize, network: IpNetworkAddress) -> impl Iterator<Item = Ipv4Addr> {
    tried(mac(host), network).unwrap()
}

/// Hosts that all pick out of these networks, from the start on.
fn picking(count: usize, networks: &[IpNetworkAddress]) -> Tree {
    let mut tree = Tree::new(count);
    tree.pickers.iter_mut().for_each(|picker| picker.set_networks(networks, &[]));
    tree
}

/// Lets hosts talk until they all have an address, know the same, and have nothing to change.
fn settle(tree: &mut Tree, count: usize) {
    for _ in 0..60 {
        let before = tree.picked.len();
        tree.run_ms(12_000);
        let all_have_one = tree.taps.iter().all(|tap| !tap.is_empty());
        if all_have_one && tree.missing(count) == 0 && tree.picked.len() == before {
            return;
        }
    }
    panic!("still changing after 12 minutes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn in_the_end_no_picked_address_clashes_and_nobody_moved_without_need(
        count in 2..60usize,
        prefix_bits in 16..=25u8,
        third in 0..=1u8,
        loss in 0..15u32,
        stated in 0..6usize,
        restarted in proptest::collection::vec(0..60usize, 0..6),
    ) {
        let ip = Ipv4Addr::new(10, 1, third << 7, 0);
        let network = IpNetworkAddress::new(
            IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & !(u32::MAX >> prefix_bits))),
            prefix_bits,
        ).unwrap();
        let mut tree = picking(count, &[network]);
        tree.loss = loss;
        // Some hosts were told to have just what others will try first. They pick nothing.
        for host in 0..stated.min(count / 2) {
            let first = tried_by(count - 1 - host, network).next().unwrap();
            tree.pickers[host].set_networks(&[], &[]);
            tree.say(host, &[&format!("{first}/{prefix_bits}")]);
        }
        settle(&mut tree, count);
        let all_differ = |tree: &Tree| {
            let all: BTreeSet<IpAddr> = tree.taps.iter().flatten().map(IpNetworkAddress::ip).collect();
            tree.taps.iter().all(|tap| tap.len() == 1 && network.contains(tap[0].ip())) && all.len() == count
        };
        // Two hosts that were told to have the same address both keep it, so such cases are left to another
        // test.
        let told: BTreeSet<_> = tree.taps[..stated.min(count / 2)].iter().collect();
        prop_assume!(told.len() == stated.min(count / 2));
        prop_assert!(all_differ(&tree), "{:?}", tree.taps);
        // What a host gave up, another one has whose claim comes first: its MAC is lower, or it was told to
        // have the address.
        for (host, picked) in &tree.picked {
            if let Some((_, Lost::To(other))) = picked.given_up {
                prop_assert!(other < mac(*host) || told.iter().any(|tap| tree.taps[tree.index(other)] == ***tap));
            }
        }

        // A host that starts again makes no other host change its address, and if it had the one that it
        // tries first, it has it again.
        let before = tree.taps.clone();
        let restarted: BTreeSet<_> = restarted.into_iter().filter(|host| (stated..count).contains(host)).collect();
        for &host in &restarted {
            tree.restart(host, &[network]);
            settle(&mut tree, count);
            prop_assert!(all_differ(&tree));
            for other in (0..count).filter(|other| !restarted.contains(other)) {
                prop_assert_eq!(&tree.taps[other], &before[other]);
            }
            if IpAddr::V4(tried_by(host, network).next().unwrap()) == before[host][0].ip() {
                prop_assert_eq!(&tree.taps[host], &before[host]);
            }
        }
    }

    #[test]
    fn every_address_of_a_network_is_tried_and_no_other(host in 0..1000usize, prefix_bits in 24..=30u8) {
        let network = IpNetworkAddress::new("10.1.0.0".parse().unwrap(), prefix_bits).unwrap();
        let all: BTreeSet<Ipv4Addr> = tried_by(host, network).collect();
        prop_assert_eq!(all.len(), (1 << (32 - prefix_bits)) - 2);
        let of_hosts = |&ip: &Ipv4Addr| {
            let on_network = IpNetworkAddress::new(IpAddr::V4(ip), prefix_bits).unwrap();
            network.contains(on_network.ip()) && on_network.is_of_host()
        };
        prop_assert!(all.iter().all(of_hosts));
    }
}

#[test]
fn what_a_host_tries_first_is_the_same_in_every_version_of_this_program() {
    let first = |host, network| tried_by(host, address(network)).next().unwrap().to_string();
    assert_eq!(first(0, "10.1.0.0/24"), "10.1.0.240");
    assert_eq!(first(1, "10.1.0.0/24"), "10.1.0.211");
    assert_eq!(first(0, "10.0.0.0/8"), "10.251.74.203");
    assert!(tried(mac(0), address("fd00::/64")).is_none());
}

#[test]
fn a_host_that_was_told_its_address_keeps_it_whatever_its_mac_and_two_of_them_keep_it_too() {
    let network = address("10.1.0.0/24");
    let first = tried_by(0, network).next().unwrap();
    let mut tree = picking(4, &[network]);
    for host in [2, 3] {
        tree.pickers[host].set_networks(&[], &[]);
    }
    tree.run_ms(1000);
    let kept = format!("{first}/24");
    assert_eq!(tree.taps[0], [address(&kept)]);
    tree.say(2, &[&kept]);
    tree.say(3, &[&kept]);
    tree.run_ms(1000);
    assert_ne!(tree.taps[0], [address(&kept)]);
    assert_eq!(tree.picked.last().unwrap().1.given_up, Some((address(&kept), Lost::To(mac(2)))));
    assert_eq!((&tree.taps[2], &tree.taps[3]), (&vec![address(&kept)], &vec![address(&kept)]));
    let clashes: Vec<_> = tree.hosts[1].directory().clashes().collect();
    let ip = IpAddr::V4(first);
    assert_eq!(clashes, [Clash { ip, hosts: vec![mac(2), mac(3)], is_lasting: true }]);
}

#[test]
fn nothing_is_picked_before_a_neighbour_has_been_heard_or_the_host_has_been_alone_for_a_moment() {
    let network = address("10.1.0.0/24");
    let mut tree = picking(2, &[network]);
    tree.loss = 100;
    tree.run_ms(30_000);
    assert_eq!(tree.picked, []);
    tree.loss = 0;
    tree.run_ms(30_000);
    assert_eq!(tree.picked.len(), 2);
    let mut alone = picking(1, &[network]);
    alone.run_ms(999);
    assert_eq!(alone.picked, []);
    alone.run_ms(1);
    assert_eq!(alone.picked.len(), 1);
    assert_eq!(alone.pickers[0].poll_timeout(&alone.hosts[0]), None);
    assert_eq!(alone.now, ms(1000));
}

#[test]
fn an_address_that_the_machine_has_elsewhere_is_not_picked_and_given_up() {
    let network = address("10.1.0.0/24");
    let tries: Vec<_> = tried_by(0, network).take(2).map(IpAddr::V4).collect();
    let mut tree = picking(1, &[network]);
    tree.pickers[0].set_elsewhere([tries[0]].into());
    tree.run_ms(2000);
    assert_eq!(tree.taps[0][0].ip(), tries[1]);
    tree.pickers[0].set_elsewhere([tries[1]].into());
    tree.pick();
    assert_eq!(tree.taps[0][0].ip(), tries[0]);
    assert_eq!(tree.picked[1].1.given_up.unwrap().1, Lost::Elsewhere);
}

#[test]
fn a_network_without_a_free_address_is_told_once_and_one_is_taken_when_it_is_free() {
    let network = address("10.1.0.0/30");
    let mut tree = picking(3, &[network]);
    tree.run_ms(30_000);
    assert_eq!(tree.taps.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 0]);
    let said = tree.picked.iter().filter(|(host, picked)| *host == 2 && picked.address.is_none());
    assert_eq!(said.count(), 1);
    tree.pickers[0].set_networks(&[], &[]);
    tree.say(0, &[]);
    tree.run_ms(1000);
    assert_eq!(tree.taps[2].len(), 1);
}

#[test]
fn several_networks_have_an_address_each_and_one_named_twice_has_two() {
    let networks = [address("10.1.0.0/24"), address("10.2.0.0/16"), address("10.1.0.0/24")];
    let mut tree = picking(3, &networks);
    tree.run_ms(2000);
    for tap in &tree.taps {
        let of = |network: &str| tap.iter().filter(|it| address(network).contains(it.ip())).count();
        assert_eq!((of("10.1.0.0/24"), of("10.2.0.0/16")), (2, 1));
    }
}

#[test]
fn a_host_that_starts_again_keeps_the_address_that_its_interface_still_has() {
    let network = address("10.1.0.0/24");
    let first = tried_by(0, network).next().unwrap();
    let mut tree = picking(1, &[network]);
    // The host was killed, and its interface kept the address.
    tree.say(0, &[&format!("{first}/24")]);
    tree.run_ms(2000);
    assert_eq!(tree.picked[0].1.address.unwrap().ip(), IpAddr::V4(first));
}

#[test]
fn hosts_that_wanted_one_address_have_the_same_as_before_in_whatever_order_they_start() {
    // Hosts 0 and some other try the same address first, and the one with the lower MAC has it.
    let network = address("10.1.0.0/26");
    let first = |host| tried_by(host, network).next().unwrap();
    let rival = (1..500).find(|&host| first(host) == first(0)).unwrap();
    let kept = address(&format!("{}/26", first(0)));
    let [with, without] = [&[address("10.1.0.9/26")][..], &[]].map(|before| {
        let mut tree = Tree::new(rival + 1);
        tree.pickers[rival].set_networks(&[network], before);
        tree.run_ms(2000);
        tree.pickers[0].set_networks(&[network], &[kept]);
        tree.run_ms(30_000);
        [0, rival].map(|host| tree.taps[host][0])
    });
    assert_eq!(with, [kept, address("10.1.0.9/26")]);
    assert_ne!(without[0], kept, "without what was kept the first to start has it");
}

#[test]
fn in_networks_that_overlap_a_host_has_the_same_addresses_as_before() {
    let networks = [address("10.1.0.0/16"), address("10.1.0.0/24")];
    let kept = [address("10.1.0.7/24"), address("10.1.55.3/16")];
    let mut tree = picking(1, &[]);
    tree.pickers[0].set_networks(&networks, &kept);
    tree.run_ms(2000);
    let mut picked = tree.taps[0].clone();
    picked.sort_by_key(IpNetworkAddress::ip);
    assert_eq!(picked, kept);
}

#[test]
fn an_address_of_an_earlier_run_counts_only_in_its_network_and_while_no_other_has_it() {
    let networks = [address("10.1.0.0/24"), address("10.1.0.0/24"), address("10.2.0.0/24")];
    let picked = |before: &[&str]| {
        let before: Vec<_> = before.iter().map(|text| address(text)).collect();
        let mut tree = picking(1, &[]);
        tree.pickers[0].set_networks(&networks, &before);
        tree.run_ms(2000);
        tree.taps[0].iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let kept = ["10.1.0.7/24", "10.1.0.8/24", "10.2.0.9/24"];
    assert_eq!(picked(&kept), kept);
    let others = picked(&[]);
    for useless in ["10.1.0.0/24", "10.1.0.255/24", "10.3.0.1/24", "fd00::1/64"] {
        assert_eq!(picked(&[useless]), others, "{useless}");
    }
    let mut tree = Tree::new(2);
    tree.say(1, &["10.1.0.7/24"]);
    tree.pickers[0].set_networks(&networks[..1], &[address("10.1.0.7/24")]);
    tree.run_ms(30_000);
    assert_eq!(tree.taps[0].iter().map(ToString::to_string).collect::<Vec<_>>(), others[..1]);
}
