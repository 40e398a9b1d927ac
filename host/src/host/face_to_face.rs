//! Two hosts on one cable, driven as the contract of `Host` says.

use std::collections::VecDeque;
use std::time::Duration;

use mapper_fib::probe::Datagram;
use mapper_proto::agent::{Event, Settings};
use mapper_proto::map::LinkMtu;
use mapper_proto::wire::AgentState;
use mapper_proto::{Instant, IpNetworkAddress, Mac};
use mapper_routing::RouteOptions;

use crate::data::DataDropKind;
use crate::kernel_path::{KernelAbilities, KernelStart, LeftRoutes};
use crate::{Host, HostEvent, Task, UserFrames};

/// How long a frame takes over the cable.
const LATENCY: Duration = Duration::from_micros(50);
/// How many steps a run may take. One that takes more is stuck at one moment.
const MOST_STEPS: usize = 200_000;

/// A host, and what its driver keeps for it.
struct Driven {
    host: Host,
    events: Vec<HostEvent>,
    users: Vec<Vec<u8>>,
    tasks: Vec<Task>,
}

/// Two hosts, and the cable between them.
struct Pair {
    ends: [Driven; 2],
    now: Instant,
    /// The frames on the cable, each with when and at which end it arrives.
    cable: VecDeque<(Instant, usize, Vec<u8>)>,
    /// Whether routes are computed as soon as a host has a task for it.
    computes: bool,
}

impl Pair {
    fn new() -> Self {
        let end = |n: u32| {
            let settings = Settings::new(Mac::from_position(n));
            let users = UserFrames { link_mtu: 1500, secret: n.into() };
            let host = Host::new(settings, RouteOptions::default(), Some(users), n.into(), Instant::ZERO);
            Driven { host, events: Vec::new(), users: Vec::new(), tasks: Vec::new() }
        };
        Self { ends: [end(1), end(2)], now: Instant::ZERO, cable: VecDeque::new(), computes: true }
    }

    /// Polls in the order of the contract.
    fn drain(&mut self, at: usize) {
        let Driven { host, events, users, tasks } = &mut self.ends[at];
        while let Some(outgoing) = host.poll_transmit() {
            let payload = [outgoing.route, outgoing.frame].concat();
            self.cable.push_back((self.now + LATENCY, 1 - at, payload));
        }
        users.extend(std::iter::from_fn(|| host.poll_user_frame().map(<[u8]>::to_vec)));
        events.extend(std::iter::from_fn(|| host.poll_event()));
        tasks.extend(host.poll_task());
        if self.computes
            && let Some(task) = tasks.pop()
        {
            host.handle_computed(self.now, task.run());
            self.drain(at);
        }
    }

    /// Runs until `done`, or for ten seconds of virtual time. Returns whether it was done.
    fn run_until(&mut self, done: impl Fn(&[Driven; 2]) -> bool) -> bool {
        let end = self.now + Duration::from_secs(10);
        for _ in 0..MOST_STEPS {
            if done(&self.ends) {
                return true;
            }
            let arrival = self.cable.front().map(|&(at, ..)| at);
            let timeouts = self.ends.iter().map(|end| end.host.poll_timeout());
            let Some(next) = timeouts.chain([arrival]).flatten().min().filter(|&at| at <= end) else {
                return false;
            };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, to, payload) = self.cable.pop_front().unwrap();
                self.ends[to].host.handle_frame(self.now, &payload);
                self.drain(to);
                continue;
            }
            for at in 0..2 {
                if self.ends[at].host.poll_timeout().is_some_and(|due| due <= self.now) {
                    self.ends[at].host.handle_timeout(self.now);
                    self.drain(at);
                }
            }
        }
        unreachable!("time does not pass at {:?}", self.now)
    }

    fn send(&mut self, from: usize, text: &[u8]) {
        let (own, to) = (self.ends[from].host.own(), self.ends[1 - from].host.own());
        let ethernet = [&to.0[..], &own.0, &[0x88, 0xb6], text].concat();
        self.ends[from].host.handle_user_frame(self.now, &ethernet);
        self.drain(from);
    }
}

fn is_configured(end: &Driven) -> bool {
    end.host.agent().status().state == AgentState::Configured
}

fn all_configured(ends: &[Driven; 2]) -> bool {
    ends.iter().all(is_configured)
}

#[test]
fn users_reach_each_other_once_there_are_routes() {
    let mut pair = Pair::new();
    pair.send(0, b"too early");
    assert!(pair.run_until(all_configured));
    assert!(pair.ends[1].users.is_empty());
    pair.send(0, b"hello");
    assert!(pair.run_until(|ends| !ends[1].users.is_empty()));
    assert!(pair.ends[1].users[0].ends_with(b"hello"));
    let dropped = pair.ends[0].host.data().unwrap().status().dropped;
    assert_eq!(dropped[DataDropKind::NoRoute], 1, "the frame that came before the routes was counted");
}

#[test]
fn an_agent_that_begins_anew_watches_the_paths_in_use_at_once() {
    let mut pair = Pair::new();
    assert!(pair.run_until(all_configured));
    pair.send(0, b"hello");
    let other = pair.ends[1].host.own();
    let is_watched = |ends: &[Driven; 2]| ends[0].host.agent().path_answered_at(other).is_some();
    assert!(pair.run_until(is_watched));
    let settings = Settings::new(pair.ends[0].host.own());
    let interval = settings.liveness_interval;
    let begun = pair.now;
    pair.ends[0].host.begin_anew(begun, settings, 3);
    pair.drain(0);
    assert!(!is_watched(&pair.ends), "the new agent has heard no answer");
    assert!(pair.run_until(is_watched));
    assert!(pair.now.since(begun) <= interval + 2 * LATENCY, "{:?}", pair.now.since(begun));
}

#[test]
fn a_host_without_users_lets_time_pass_when_its_agent_begins_anew() {
    let settings = || Settings::new(Mac::from_position(1));
    let mut host = Host::new(settings(), RouteOptions::default(), None, 1, Instant::ZERO);
    host.begin_anew(Instant::ZERO, settings(), 2);
    host.handle_timeout(Instant::ZERO);
    assert!(host.poll_timeout().is_none_or(|at| at > Instant::ZERO));
}

#[test]
fn there_is_one_task_at_a_time_and_without_its_result_no_host_is_configured() {
    let mut pair = Pair::new();
    pair.computes = false;
    assert!(pair.run_until(|ends| ends.iter().all(|end| !end.tasks.is_empty())));
    assert!(!pair.run_until(|ends| ends.iter().any(is_configured)));
    assert!(pair.ends.iter().all(|end| end.tasks.len() == 1 && end.host.table().is_none()));
    pair.computes = true;
    for at in 0..2 {
        let task = pair.ends[at].tasks.pop().unwrap();
        pair.ends[at].host.handle_computed(pair.now, task.run());
        pair.drain(at);
    }
    assert!(pair.run_until(all_configured));
}

#[test]
fn a_computation_that_breaks_off_is_told_and_the_next_one_counts() {
    let mut pair = Pair::new();
    pair.computes = false;
    assert!(pair.run_until(|ends| !ends[0].tasks.is_empty()));
    pair.ends[0].tasks.clear();
    pair.ends[0].host.handle_lost_computation(pair.now);
    pair.drain(0);
    let told = |end: &Driven| end.events.iter().any(|event| matches!(event, HostEvent::RoutingFailed { .. }));
    assert!(told(&pair.ends[0]));
    assert!(pair.ends[0].host.routing_failure().is_some());
    // Other route options have the routes computed again.
    pair.ends[0].host.set_route_options(RouteOptions { passes: 2, ..RouteOptions::default() });
    pair.computes = true;
    (0..2).for_each(|at| pair.drain(at));
    assert!(pair.run_until(all_configured));
    assert_eq!(pair.ends[0].host.routing_failure(), None);
}

#[test]
fn routes_that_were_under_way_are_not_used_once_all_are_forgotten() {
    let mut pair = Pair::new();
    pair.computes = false;
    assert!(pair.run_until(|ends| !ends[0].tasks.is_empty()));
    let task = pair.ends[0].tasks.pop().unwrap();
    pair.ends[0].host.forget_routes(pair.now);
    pair.ends[0].host.handle_computed(pair.now, task.run());
    assert!(pair.ends[0].host.table().is_none());
}

#[test]
fn what_the_agent_reports_is_passed_on() {
    let mut pair = Pair::new();
    assert!(pair.run_until(all_configured));
    for end in &pair.ends {
        let version = end.host.table().unwrap().version();
        assert!(end.events.contains(&HostEvent::RoutesInstalled { version }));
        assert!(end.events.contains(&HostEvent::Agent(Event::Configured { version })));
    }
}

#[test]
fn a_name_that_is_being_told_when_the_map_becomes_invalid_is_told_with_the_next_map() {
    let mut pair = Pair::new();
    assert!(pair.run_until(all_configured));
    let now = pair.now;
    pair.ends[0].host.set_name(now, "first".parse().unwrap(), 7);
    let name_at = |ends: &[Driven; 2]| ends[1].host.directory().name_of(Mac::from_position(1)).cloned();
    assert!(pair.run_until(|ends| name_at(ends).is_some()));

    // The message with the other name is lost, and before it is sent again the map no longer holds.
    let now = pair.now;
    pair.ends[0].host.set_name(now, "other".parse().unwrap(), 8);
    pair.drain(0);
    pair.cable.clear();
    pair.ends[0].host.set_mtu(now, LinkMtu::of_ports([(0, 1400)]));
    pair.drain(0);
    assert!(pair.run_until(|ends| name_at(ends).is_some_and(|name| name.as_str() == "other")));
}

#[test]
fn hosts_pick_addresses_and_each_knows_that_of_the_other() {
    let mut pair = Pair::new();
    let network: IpNetworkAddress = "10.1.0.0/24".parse().unwrap();
    for end in &mut pair.ends {
        end.host.pick_addresses(Instant::ZERO, &[network], &[]);
    }
    let picked = |end: &Driven| {
        end.events.iter().find_map(|event| match event {
            HostEvent::AddressPicked(picked) => picked.address,
            _ => None,
        })
    };
    assert!(pair.run_until(|ends| ends.iter().all(|end| picked(end).is_some())));
    let now = pair.now;
    let addresses = pair.ends.each_ref().map(|end| picked(end).unwrap());
    for (end, address) in pair.ends.iter_mut().zip(addresses) {
        assert!(network.contains(address.ip()));
        end.host.set_addresses(now, vec![address], &[]);
    }
    assert!(pair.run_until(|ends| {
        (0..2).all(|at| {
            let other = ends[1 - at].host.own();
            ends[at].host.directory().addresses_of(other) == [addresses[1 - at]]
        })
    }));
}

#[test]
fn a_host_answers_probes_of_kernels_that_are_meant_for_itself_alone() {
    let Pair { ends: [mut asking, _], now, .. } = Pair::new();
    let kernel = KernelStart {
        seed: 1,
        tap: 7,
        left: LeftRoutes::default(),
        abilities: KernelAbilities::default(),
        agent_port: None,
    };
    asking.host.use_kernel(now, kernel);
    let from = std::net::Ipv6Addr::LOCALHOST.into();
    let mut is_answered = |asked| {
        let question = Datagram::Question { nonce: 7, is_last: false, asked };
        asking.host.handle_kernel_datagram(now, from, (&question.to_bytes(), None)).is_some()
    };
    let [own, other] = [1, 2].map(Mac::from_position);
    assert!(is_answered(None) && is_answered(Some(own)), "older hosts do not say whom they ask");
    assert!(!is_answered(Some(other)), "it would prove a way to that host");
}
