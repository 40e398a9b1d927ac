//! The directory's services at the hosts of one map, for tests.

use std::collections::VecDeque;

use mapper_fabric::generate;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::*;
use crate::picking::{Picked, Picker};
use crate::routes::Basis;

pub(crate) fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

pub(crate) fn mac(host: usize) -> Mac {
    Mac::from_position(host as u32 + 1)
}

pub(crate) fn name(text: &str) -> HostName {
    text.parse().unwrap()
}

pub(crate) fn address(text: &str) -> IpNetworkAddress {
    text.parse().unwrap()
}

/// The services of the hosts of one map, and the messages between them.
pub(crate) struct Tree {
    pub(crate) hosts: Vec<Gossip>,
    /// The addresses of the hosts in the order of the map, which is their place in its tree.
    pub(crate) order: Vec<Mac>,
    pub(crate) now: Instant,
    pub(crate) asked: usize,
    /// How many of a hundred messages get lost.
    pub(crate) loss: u32,
    rng: ChaCha8Rng,
    /// What picks addresses at each host.
    pub(crate) pickers: Vec<Picker>,
    /// The addresses that each host's interface has.
    pub(crate) taps: Vec<Vec<IpNetworkAddress>>,
    /// What was picked, in order, and by which host.
    pub(crate) picked: Vec<(usize, Picked)>,
}

impl Tree {
    pub(crate) fn new(count: usize) -> Self {
        let hosts = (0..count).map(|host| Gossip::new(mac(host))).collect();
        let mut tree = Self {
            hosts,
            order: Vec::new(),
            now: ms(0),
            asked: 0,
            loss: 0,
            rng: ChaCha8Rng::seed_from_u64(1),
            pickers: (0..count).map(|host| Picker::new(mac(host))).collect(),
            taps: vec![Vec::new(); count],
            picked: Vec::new(),
        };
        for host in 0..count {
            tree.hosts[host].set_name(name(&format!("n{host}")), 100);
        }
        tree.install(count);
        tree
    }

    /// Puts a map of the first `count` hosts into force at all hosts.
    pub(crate) fn install(&mut self, count: usize) {
        self.install_at(count, 0..count);
    }

    /// Puts a map of the first `count` hosts into force at the hosts in `heard`.
    pub(crate) fn install_at(&mut self, count: usize, heard: std::ops::Range<usize>) {
        self.install_without(&[], count, heard);
    }

    /// The same of a map that lacks some of these hosts.
    pub(crate) fn install_without(&mut self, lacking: &[usize], count: usize, heard: std::ops::Range<usize>) {
        let mut map = generate(&format!("clos:hosts={count},ports=64")).unwrap().map;
        map.hosts.retain(|host| lacking.iter().all(|&lacking| host.mac != mac(lacking)));
        map.sort_canonical();
        self.order = map.hosts.iter().map(|host| host.mac).collect();
        let basis = std::sync::Arc::new(Basis::new(std::sync::Arc::new(map)).unwrap());
        for host in &mut self.hosts[heard] {
            let place = Place::new(&basis, host.own).unwrap();
            host.map_changed(self.now, &place);
        }
    }

    /// Has a host say that it has these addresses.
    pub(crate) fn say(&mut self, host: usize, addresses: &[&str]) {
        self.taps[host] = addresses.iter().map(|text| address(text)).collect();
        self.tell(host);
    }

    /// Has a host tell which addresses its interface has.
    fn tell(&mut self, host: usize) {
        let Self { hosts, pickers, taps, .. } = self;
        hosts[host].set_addresses(taps[host].iter().copied(), |ip| pickers[host].has_picked(ip));
    }

    /// Starts a host again, which has forgotten everything, and puts the map into force there.
    pub(crate) fn restart(&mut self, host: usize, picks: &[IpNetworkAddress]) {
        self.hosts[host] = Gossip::new(mac(host));
        self.pickers[host] = Picker::new(mac(host));
        self.pickers[host].set_networks(picks, &[]);
        self.taps[host].clear();
        self.install_at(self.hosts.len(), host..host + 1);
    }

    /// Has all hosts pick addresses, and gives what they pick to their interfaces, as a driver would.
    pub(crate) fn pick(&mut self) {
        for host in 0..self.hosts.len() {
            for picked in self.pickers[host].look(self.now, &self.hosts[host]) {
                self.picked.push((host, picked));
                let before = picked.given_up.map(|(before, _)| before);
                self.taps[host].retain(|&address| Some(address) != before);
                self.taps[host].extend(picked.address);
                self.tell(host);
            }
        }
    }

    pub(crate) fn index(&self, mac: Mac) -> usize {
        self.hosts.iter().position(|host| host.own == mac).unwrap()
    }

    /// Lets all hosts ask each other for this long.
    pub(crate) fn run_ms(&mut self, span_ms: u64) {
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
            self.pick();
            let asking = self.hosts.iter().filter_map(Service::poll_timeout);
            let picking = self.pickers.iter().zip(&self.hosts).filter_map(|(it, host)| it.poll_timeout(host));
            let next = asking.chain(picking).min().unwrap_or(Instant::FAR);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
        }
    }

    pub(crate) fn missing(&self, count: usize) -> usize {
        let knows = |host: &Gossip, other: usize| {
            host.directory().get(mac(other)) == self.hosts[other].directory().get(mac(other))
        };
        let hosts = self.hosts[..count].iter();
        hosts.map(|host| (0..count).filter(|&other| !knows(host, other)).count()).sum()
    }
}
