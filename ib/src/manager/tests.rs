//! Switches get the right tables, whatever happens to datagrams.

mod asking;
mod failures;
mod groups;
mod layers;
mod managers;
mod traps;
mod wrong_keys;

use std::collections::BTreeMap;
use std::time::Duration;

use mapper_opensm::{Adapter, Asker, Request, Switch};
use mapper_proto::time::Instant;
use proptest::prelude::*;

use super::*;
use crate::mad::sa::{Gid, JoinState, McMemberRecord, RECORD_BYTES, Rmpp, SaAttribute, SaMad, SaMethod};
use crate::mad::{
    AgentMad, AgentWord, Attribute, Command, DATA_BYTES, MAD_BYTES, ManagerMethod, NodeKind, Notice,
    PortSettings, PortState, Route, RoutedByLid, ShareSwitch, SmInfo, Smp, SubnetVersion,
};
use crate::packet::Address;
use crate::record::{Direction, Recorded};
use crate::simulated::{self, Model, settings, trap_of};

/// The tables that the engines of the fault search make, proved.
pub(crate) fn routes(task: &Task) -> Result<Routes, String> {
    routes_by(simulated::ENGINES, task)
}

/// The tables that engines with these options make, proved.
fn routes_by(options: &str, task: &Task) -> Result<Routes, String> {
    let switches = task.switches.iter().map(|switch| Switch {
        guid: switch.guid,
        system_guid: switch.system_guid,
        description: switch.description.clone(),
        lid: switch.lid,
        lmc: 0,
        ports: switch.ports,
        links: switch
            .links
            .iter()
            .map(|link| mapper_opensm::Link { port: link.port, peer: link.peer, peer_port: link.peer_port })
            .collect(),
        in_force: switch.in_force.clone(),
        before: switch.before.clone(),
    });
    let adapters = task.adapters.iter().map(|adapter| Adapter {
        node_guid: adapter.node_guid,
        port_guid: adapter.port_guid,
        port: adapter.port,
        lid: adapter.lid,
        system_guid: adapter.system_guid,
        description: adapter.description.clone(),
        lmc: adapter.lmc,
    });
    let levels =
        |levels: &Levels| mapper_opensm::Levels { switches: levels.switches.clone(), of: levels.of.clone() };
    let request = Request {
        asker: Asker::Agent,
        options: options.parse().unwrap(),
        serving: task.serving.clone(),
        is_urgent: task.is_urgent,
        told: task.told.as_ref().map(|told| told.iter().map(levels).collect()),
        lanes: task.lanes,
        switches: switches.collect(),
        adapters: adapters.collect(),
    };
    let answer = mapper_opensm::answer(&request).map_err(|declined| declined.said.join("; "))?;
    Ok(Routes {
        engine: answer.engine,
        tables: answer.tables.into_iter().map(|table| (table.guid, table.ports)).collect(),
        emptied_first: answer.emptied_first,
        last: answer.last.into_iter().collect(),
        must_wait: answer.must_wait,
        layers: answer.layer_count,
        places: answer.places,
        levels: Levels {
            switches: task.switches.iter().map(|switch| switch.guid).collect(),
            of: answer.levels,
        },
    })
}

/// What happens to a datagram.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Fine,
    RequestLost,
    AnswerLost,
    Refused,
    Twice,
    WrongTransaction,
    OtherBytes(usize, u8),
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        12 => Just(Fate::Fine),
        1 => Just(Fate::RequestLost),
        1 => Just(Fate::AnswerLost),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Twice),
        1 => Just(Fate::WrongTransaction),
        1 => (0..MAD_BYTES, any::<u8>()).prop_map(|(at, value)| Fate::OtherBytes(at, value)),
    ];
    prop::collection::vec(fate, 0..400)
}

/// A manager and its subnet.
struct Trial {
    manager: SubnetManager,
    model: Model,
    now: Instant,
    events: Vec<Event>,
    fates: std::vec::IntoIter<Fate>,
    /// The record of all datagrams, if one is kept.
    record: Option<String>,
    /// The answers to hosts.
    answers: Vec<Packet>,
    /// The routes that were computed first, by whose levels hosts go as long as the manager has told them no others.
    first: Option<Routes>,
    /// The options of the engines.
    engines: &'static str,
}

impl Trial {
    fn new(model: Model) -> Self {
        let manager = SubnetManager::new(settings(), Lids::default(), Instant::ZERO);
        Self {
            manager,
            model,
            now: Instant::ZERO,
            events: Vec::new(),
            fates: Vec::new().into_iter(),
            record: None,
            answers: Vec::new(),
            first: None,
            engines: simulated::ENGINES,
        }
    }

    fn note(&mut self, direction: Direction, packet: &Packet) {
        if let Some(record) = &mut self.record {
            let recorded = Recorded { at: self.now, direction, packet: packet.clone() };
            record.push_str(&format!("{recorded}\n"));
        }
    }

    fn receive(&mut self, mad: [u8; MAD_BYTES]) {
        let packet = Packet { address: Address::Directed, mad };
        self.note(Direction::Received, &packet);
        self.manager.handle_packet(&packet, self.now);
    }

    /// Carries a datagram to the subnet and its answer back. After each write the tables are checked.
    fn carry(&mut self, packet: &Packet) {
        self.note(Direction::Sent, packet);
        let Ok(asked) = Smp::<ManagerMethod>::parse(&packet.mad) else {
            return self.answers.push(packet.clone());
        };
        if asked.method == ManagerMethod::GetResponse {
            return;
        }
        let fate = self.fates.next().unwrap_or(Fate::Fine);
        if matches!(fate, Fate::RequestLost) {
            return;
        }
        let answer = self.model.answer(0, &asked, matches!(fate, Fate::Refused));
        if asked.method == ManagerMethod::Set {
            let told = self.manager.routes.as_ref().or(self.first.as_ref());
            let level = |from, to| told.map_or(0, |routes| routes.level(from, to));
            self.model.check_circles_by(level).unwrap();
            self.model.check_storms().unwrap();
        }
        let Some(mut answer) = answer else { return };
        match fate {
            Fate::AnswerLost => return,
            Fate::WrongTransaction => answer.tid = answer.tid.wrapping_add(1),
            Fate::Twice => self.receive(answer.emit()),
            _ => {}
        }
        let mut mad = answer.emit();
        if let Fate::OtherBytes(at, value) = fate {
            // Only data of writes is garbled, as it is read back. Nothing protects against garbled data of
            // reads.
            if asked.method == ManagerMethod::Set || !(64..128).contains(&at) {
                mad[at] = value;
            }
        }
        self.receive(mad);
    }

    /// Lets time pass.
    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            while let Some(packet) = self.manager.poll_transmit(self.now) {
                self.carry(&packet);
            }
            if let Some(task) = self.manager.poll_task() {
                let answer = routes_by(self.engines, &task);
                self.first = self.first.take().or_else(|| answer.clone().ok());
                self.manager.handle_routes(task.number, answer, self.now);
                continue;
            }
            self.events.extend(std::iter::from_fn(|| self.manager.poll_event()));
            match self.manager.poll_timeout().filter(|&at| at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            self.manager.handle_timeout(self.now);
        }
        self.now = end;
    }

    fn ups(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Up { .. })).count()
    }
}

#[test]
fn a_subnet_comes_up_and_nothing_is_written_again() {
    let mut trial = Trial::new(Model::ring(5));
    trial.run(Duration::from_secs(1));
    trial.model.check_up().unwrap();
    assert_eq!((trial.ups(), trial.manager.role()), (1, SmState::Master));
    // As marks were cleared, one look at everything follows, and then only looks at switches.
    let written = trial.model.table_writes;
    trial.run(Duration::from_secs(25));
    let sent = trial.manager.sent();
    trial.run(Duration::from_secs(10));
    assert_eq!((trial.model.table_writes, trial.manager.sent() - sent), (written, 5));
}

#[test]
fn a_host_that_starts_again_changes_no_table_and_keeps_its_lid() {
    let mut trial = Trial::new(Model::ring(4));
    trial.run(Duration::from_secs(15));
    let (written, lids) = (trial.model.table_writes, trial.model.hosts());
    trial.model.cut((2, 1));
    trial.run(Duration::from_secs(15));
    trial.model.nodes[2].ports.insert(1, PortSettings::default());
    trial.model.cable((2, 1), (6, 1));
    trial.run(Duration::from_secs(15));
    trial.model.check_up().unwrap();
    assert_eq!((trial.model.table_writes, trial.model.hosts()), (written, lids));
}

#[test]
fn a_manager_whose_own_cable_failed_explores_again_once_it_is_mended() {
    let mut trial = Trial::new(Model::ring(4));
    trial.run(Duration::from_secs(15));
    trial.model.cut((0, 1));
    // A look at the switches finds no switch, and no trap reaches the manager any more.
    trial.run(Duration::from_secs(60));
    trial.model.cable((0, 1), (4, 1));
    trial.run(Duration::from_secs(15));
    trial.model.check_up().unwrap();
}

#[test]
fn both_ports_of_adapters_come_up_those_of_the_managers_own_too() {
    let mut model = Model::default();
    let hosts = [0, 1].map(|_| model.add(NodeKind::Adapter, 2));
    let switches = [0, 1].map(|_| model.add(NodeKind::Switch, 4));
    for (host, switch) in hosts.into_iter().zip(switches) {
        model.cable((host, 1), (switch, 1));
        model.cable((host, 2), (switch, 2));
    }
    model.cable((switches[0], 3), (switches[1], 3));
    let mut trial = Trial::new(model);
    trial.run(Duration::from_secs(5));
    let port = |&(node, port): &(usize, u8)| &trial.model.nodes[node].ports[&port];
    for end in trial.model.cables.keys() {
        assert_eq!(port(end).state(), PortState::Active, "{end:?}");
    }
    let lids: BTreeSet<u16> = [(0, 1), (0, 2), (1, 1), (1, 2)].iter().map(|end| port(end).lid()).collect();
    assert!(lids.len() == 4 && !lids.contains(&0), "{lids:?}");
    assert!(trial.events.iter().all(|event| !matches!(event, Event::Problem(_))), "{:?}", trial.events);
}

/// Plays a record again. The datagrams that came then come again, and what is sent must be what was sent
/// then.
fn replay(record: &str) -> SubnetManager {
    let mut manager = SubnetManager::new(settings(), Lids::default(), Instant::ZERO);
    for line in record.lines() {
        let Recorded { at, direction, packet } = line.parse().unwrap();
        while let Some(due) = manager.poll_timeout().filter(|&due| due < at) {
            manager.handle_timeout(due);
        }
        manager.handle_timeout(at);
        if let Some(task) = manager.poll_task() {
            manager.handle_routes(task.number, routes(&task), at);
        }
        match direction {
            Direction::Received => manager.handle_packet(&packet, at),
            Direction::Sent => assert_eq!(manager.poll_transmit(at), Some(packet), "{line}"),
        }
    }
    manager
}

#[test]
fn a_record_of_a_manager_is_played_again_datagram_by_datagram() {
    let mut trial = Trial::new(Model::ring(4));
    trial.fates =
        [Fate::Fine, Fate::RequestLost, Fate::Fine, Fate::Twice, Fate::AnswerLost, Fate::Fine, Fate::Fine]
            .repeat(20)
            .into_iter();
    trial.record = Some(String::new());
    trial.run(Duration::from_secs(20));
    trial.model.check_up().unwrap();
    let record = trial.record.unwrap();
    let is_write = |line: &&str| line.contains(" sent ") && line.contains(" Set ");
    assert!(record.lines().filter(is_write).count() > 20, "{} lines", record.lines().count());
    let again = replay(&record);
    assert_eq!((again.role(), again.lids()), (SmState::Master, trial.manager.lids()));
}

#[test]
fn a_manager_that_takes_over_changes_no_lid_and_no_table() {
    let mut trial = Trial::new(Model::ring(5));
    trial.run(Duration::from_secs(1));
    let (written, lids) = (trial.model.table_writes, trial.model.hosts());
    let mut next = Trial { model: trial.model, ..Trial::new(Model::default()) };
    next.run(Duration::from_secs(15));
    next.model.check_up().unwrap();
    assert_eq!((next.model.table_writes, next.model.hosts()), (written, lids));
}

#[test]
fn paths_from_the_masters_own_port_are_found_and_hold_until_the_subnet_changes() {
    let mut trial = Trial::new(Model::ring(4));
    let find = |trial: &mut Trial, to: Destination| {
        trial.manager.find_path(7, &to, trial.now);
        trial.manager.poll_found()
    };
    assert_eq!(find(&mut trial, Destination::Lid(1)), Some((7, FoundPath::Unavailable)));
    assert!(!trial.manager.can_find_paths());
    trial.run(Duration::from_secs(15));
    assert!(trial.manager.can_find_paths());
    let own = trial.manager.own_port().unwrap();
    let generation = trial.manager.paths_generation();
    let (host, lid) = trial.model.hosts()[2];
    let gid = Gid::of_port(Gid::LINK_PREFIX, trial.model.nodes[host].info.port_guid + 1);
    let Some((7, FoundPath::Path(path))) = find(&mut trial, Destination::Gid(gid)) else { panic!("no path") };
    assert_eq!((path.source_lid, path.destination_lid, path.destination), (own.lid, lid, gid));
    assert_eq!(path.source, Gid::of_port(own.prefix, own.guid));
    assert_eq!(find(&mut trial, Destination::Lid(lid)), Some((7, FoundPath::Path(path))));
    assert_eq!(find(&mut trial, Destination::Lid(9999)), Some((7, FoundPath::Nobody)));
    assert_eq!(find(&mut trial, Destination::Name("nobody".to_owned())), Some((7, FoundPath::Nobody)));
    assert_eq!(trial.manager.paths_generation(), generation);
    trial.model.cut((host, 1));
    trial.run(Duration::from_secs(15));
    assert!(trial.manager.paths_generation() > generation);
    assert_eq!(find(&mut trial, Destination::Gid(gid)), Some((7, FoundPath::Nobody)));
}

#[test]
fn a_switch_that_refuses_a_block_is_named_and_asked_again() {
    let mut trial = Trial::new(Model::ring(3));
    // For a while all writes are refused, however often they are tried.
    trial.fates = vec![Fate::Refused; 2000].into_iter();
    trial.run(Duration::from_secs(60));
    let named = trial.events.iter().any(|event| {
        matches!(event, Event::Problem(told) if told.contains("block 0 of its forwarding table: refused"))
    });
    assert!(named, "{:?}", trial.events);
    trial.fates = Vec::new().into_iter();
    trial.run(Duration::from_secs(30));
    trial.model.check_up().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_write_that_is_lost_refused_or_answered_wrongly_makes_a_circle_and_all_heals(
        count in 3..7_usize,
        first in fates(),
        then in fates(),
        changes in prop::collection::vec((0..3_u8, any::<u8>()), 0..4),
    ) {
        let mut trial = Trial::new(Model::ring(count));
        trial.fates = first.into_iter();
        trial.run(Duration::from_secs(40));
        let mut is_cut = BTreeMap::new();
        for (kind, which) in changes {
            let at = count + usize::from(which) % count;
            match kind {
                0 => trial.model.reset(at),
                // At most one cable of the ring may be missing, so that all still reach each other.
                1 if is_cut.is_empty() => {
                    is_cut.insert((at, 2_u8), trial.model.cables[&(at, 2)]);
                    trial.model.cut((at, 2));
                }
                _ => {
                    for (a, b) in std::mem::take(&mut is_cut) {
                        trial.model.cable(a, b);
                    }
                }
            }
            if which % 4 > 0 {
                let lid = trial.model.nodes[at].ports[&0].lid();
                trial.manager.handle_packet(&trap_of(Notice::LINK_STATE, lid), trial.now);
            }
            trial.run(Duration::from_millis(u64::from(which) * 150));
        }
        trial.fates = then.into_iter();
        trial.run(Duration::from_secs(40));
        trial.fates = Vec::new().into_iter();
        trial.run(Duration::from_secs(60));
        trial.model.check_up().unwrap();
        trial.model.check_circles().unwrap();
    }

    #[test]
    fn any_bytes_are_taken(mads in prop::collection::vec(prop::collection::vec(any::<u8>(), MAD_BYTES), 1..20)) {
        let mut trial = Trial::new(Model::ring(3));
        for mut mad in mads {
            let (method, attribute) = (mad[3], 0x10 + mad[17] % 0x11);
            mad[..4].copy_from_slice(&[1, 0x81, 1, method]);
            mad[16..18].copy_from_slice(&[0, attribute]);
            trial.receive(mad.try_into().unwrap());
            trial.run(Duration::from_millis(1));
        }
    }
}
