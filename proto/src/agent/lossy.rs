//! Cables that lose frames, as this agent's maps show them.

use super::cause::Cause;
use super::event::Event;
use super::held::Held;
use super::machine::Agent;
use crate::Instant;
use crate::map::{TaggedPort, decode_pieces, encode_pieces};

impl Agent {
    /// Says which ports hold cables that carry frames and lose many, those first that were found first. The maps that this agent
    /// makes show these cables, so that all hosts route around them. If it is the global mapper and its map shows others,
    /// it makes a new one of the same fabric: what loses frames would be missed if the fabric were explored for that.
    pub fn set_lossy(&mut self, now: Instant, ports: Vec<TaggedPort>) {
        self.note_time(now);
        if self.lossy == ports {
            return;
        }
        self.lossy = ports;
        self.show_lossy(now);
        self.pump(now);
    }

    fn show_lossy(&mut self, now: Instant) {
        let own = self.held.as_ref().filter(|held| held.valid && held.version.mac == self.settings.mac);
        let Some(mut map) = own.and_then(|held| decode_pieces(held.version, &held.pieces).ok()) else {
            return;
        };
        let lossy = map.cables_in(&self.lossy);
        if map.lossy == lossy {
            return;
        }
        map.lossy = lossy;
        self.leave_tree(now, Cause::LossyCables);
        self.mapping_cause = Cause::LossyCables;
        map.version = self.next_version();
        let pieces = encode_pieces(&map, self.settings.piece_bytes);
        match Held::new(&map, pieces, self.settings.mac, self.settings.xbar_check) {
            Some(held) => {
                self.event(Event::Mapped { version: map.version });
                self.install(now, held, map);
            }
            None => self.map_again(now, Cause::SelfNotFound),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Mac;
    use crate::agent::Settings;
    use crate::agent::checks::Check;
    use crate::map::{Cable, Host, Map, MapVersion, PortRef, Xbar, host_type};
    use crate::port_set::PortSet;
    use crate::wire::AgentState;

    fn mac(position: u32) -> Mac {
        Mac::from_position(position)
    }

    /// A ring of four tagged xbars with a host each, made by this host.
    fn ring(mapper: u32) -> Map {
        let host = |n: u32| Host {
            mac: mac(n + 1),
            level: 1,
            host_type: host_type::ETHERNET,
            at: Some(PortRef { xbar: n, port: 1 }),
        };
        let cable = |xbar| Cable::new(PortRef { xbar, port: 3 }, PortRef { xbar: (xbar + 1) % 4, port: 2 });
        let mut map = Map {
            version: MapVersion { mac: mac(mapper), counter: 5 },
            hosts: (0..4).map(host).collect(),
            xbars: (0..4).map(|n| Xbar { ports: 4, tag: Some(70 + n), ports_known: true }).collect(),
            cables: (0..4).map(cable).collect(),
            ..Map::default()
        };
        map.sort_canonical();
        map
    }

    /// The host at this place of the ring, which holds this map.
    fn holder(own: u32, map: Map) -> Agent {
        let mut agent = Agent::new(Settings::new(mac(own)), 1, Instant::ZERO);
        agent.counter = 5;
        let held = Held::new(&map, encode_pieces(&map, 1300), mac(own), true).unwrap();
        agent.install(Instant::ZERO, held, map);
        while agent.poll_event().is_some() {}
        agent
    }

    fn installed(agent: &mut Agent) -> Option<Arc<Map>> {
        std::iter::from_fn(|| agent.poll_event()).find_map(|event| match event {
            Event::MapInstalled { map, .. } => Some(map),
            _ => None,
        })
    }

    #[test]
    fn its_mapper_makes_a_new_map_of_the_same_fabric_at_once() {
        let mut agent = holder(4, ring(4));
        let port = TaggedPort { tag: 71, port: 3 };
        agent.set_lossy(Instant::ZERO, vec![port]);
        let map = installed(&mut agent).unwrap();
        let lossy = map.cables_in(&[port]);
        assert_eq!((&map.lossy, lossy.len(), map.version.counter), (&lossy, 1, 6));
        assert_eq!((agent.state, agent.mapping.is_some()), (AgentState::Routing, false));
        assert_eq!(agent.mapping_cause, Cause::LossyCables);
        agent.set_lossy(Instant::ZERO, vec![port]);
        agent.set_lossy(Instant::ZERO, vec![port, TaggedPort { tag: 99, port: 1 }]);
        assert_eq!(installed(&mut agent), None, "the map shows these already");
        agent.set_lossy(Instant::ZERO, vec![]);
        let map = installed(&mut agent).unwrap();
        assert_eq!((&*map, map.version.counter), (&Map { version: map.version, ..ring(4) }, 7));
        let mut of_another = holder(4, ring(3));
        of_another.set_lossy(Instant::ZERO, vec![port]);
        assert_eq!(installed(&mut of_another), None);
    }

    #[test]
    fn a_cable_that_is_left_out_is_not_verified_and_its_ports_are_in_use() {
        let crossing = |agent: &Agent, end: PortRef| {
            let share = &agent.held.as_ref().unwrap().share;
            let suspects = share.iter().filter_map(|check| match check {
                Check::Returns(probe) | Check::Silent(probe) => probe.suspect,
                Check::Stamped { probe, in_use: None, .. } => probe.suspect,
                Check::Host { suspect, .. } => *suspect,
                Check::Stamped { .. } | Check::Unproved { .. } => None,
            });
            suspects.filter(|&suspect| suspect == end).count()
        };
        let whole = ring(4);
        let cables: Vec<Cable> = whole.cables.clone();
        let checked = |lossy: Vec<Cable>, cable: Cable| {
            let agent = holder(1, Map { lossy, ..whole.clone() });
            crossing(&agent, cable.a) + crossing(&agent, cable.b)
        };
        let own: Vec<Cable> = cables.iter().copied().filter(|&cable| checked(vec![], cable) > 0).collect();
        assert!(!own.is_empty(), "this host verifies some cable");
        for cable in own {
            assert_eq!(checked(vec![cable], cable), 0, "{cable:?}");
            let agent = holder(1, Map { lossy: vec![cable], ..whole.clone() });
            let in_use: Vec<&PortSet> = (agent.held.as_ref().unwrap().share.iter())
                .filter_map(|check| match check {
                    Check::Stamped { in_use, .. } => in_use.as_deref(),
                    _ => None,
                })
                .collect();
            assert!(in_use.iter().all(|ports| ports.contains(2) && ports.contains(3)), "{in_use:?}");
        }
    }
}
