//! What becomes of datagrams between managers and nodes.

use std::time::Duration;

use rand::RngExt as _;

use super::{Coming, ManagerPlace, World};
use crate::mad::{AGENT_CLASS, Attribute, MAD_BYTES, ManagerMethod, RoutedByLid, Smp};
use crate::packet::{Address, Packet};
use crate::simulated::Violation;

/// How long a datagram takes, unless it is late.
const FLIGHT: Duration = Duration::from_micros(20);
/// How long the engines take to compute tables.
const COMPUTATION: Duration = Duration::from_millis(3);

impl World<'_> {
    /// Has something arrive after the time that it takes on its way.
    pub(super) fn send(&mut self, coming: Coming) {
        let delay = match coming {
            Coming::Computed { .. } => COMPUTATION,
            // A request that is late still arrives before it is sent again, as a manager cannot protect
            // itself against its own writes that arrive after later ones.
            Coming::Request { .. } if self.rng.random_bool(self.noise.late) => Duration::from_millis(60),
            Coming::Arrival { .. } if self.rng.random_bool(self.noise.late) => {
                Duration::from_millis(self.rng.random_range(1..250))
            }
            _ => FLIGHT,
        };
        self.next += 1;
        self.coming.insert((self.now + delay, self.next), coming);
    }

    /// Puts a manager's datagram on its way. The upper half of its transaction number becomes the number of the manager,
    /// which answers bring back.
    pub(super) fn carry(&mut self, from: usize, life: u32, packet: &Packet) {
        let mark = |tid: u64| tid & u64::from(u32::MAX) | (from as u64 + 1) << 32;
        let mad = match Smp::<ManagerMethod>::parse(&packet.mad) {
            Ok(smp) if smp.method == ManagerMethod::GetResponse => {
                // The datagram answers another manager, whose number came with the question.
                let to = (smp.tid >> 32) as usize - 1;
                if self.model.walk(self.places[to].host, &smp.route).is_some() {
                    self.answer(
                        to,
                        self.places[to].life,
                        Packet { address: Address::Directed, mad: packet.mad },
                    );
                }
                return;
            }
            Ok(smp) => Smp { tid: mark(smp.tid), ..smp }.emit(),
            Err(_) => match RoutedByLid::<ManagerMethod>::parse(&packet.mad) {
                Ok(RoutedByLid(smp)) => RoutedByLid(Smp { tid: mark(smp.tid), ..smp }).emit(),
                Err(_) => packet.mad,
            },
        };
        if self.rng.random_bool(self.noise.lost) {
            return;
        }
        let packet = Packet { address: packet.address, mad };
        if self.rng.random_bool(self.noise.twice) {
            self.send(Coming::Request { from, life, packet: packet.clone() });
        }
        self.send(Coming::Request { from, life, packet });
    }

    /// Puts an answer on its way to a manager.
    fn answer(&mut self, to: usize, life: u32, packet: Packet) {
        if self.rng.random_bool(self.noise.lost) {
            return;
        }
        if self.rng.random_bool(self.noise.twice) {
            self.send(Coming::Arrival { to, life, packet: packet.clone() });
        }
        self.send(Coming::Arrival { to, life, packet });
    }

    /// Hands over what has arrived, unless it is for a run of a manager that has ended.
    pub(super) fn take(&mut self, coming: Coming) {
        let now = self.now;
        let alive = |place: &mut ManagerPlace, life: u32| place.life == life;
        match coming {
            Coming::Request { from, life, packet } => match packet.address {
                Address::Directed => self.take_request(from, life, &packet.mad),
                Address::Lid { lid, .. } => self.take_by_lid(from, life, lid, &packet.mad),
            },
            Coming::Arrival { to, .. } if self.deaf.contains(&to) => {}
            Coming::Arrival { to, life, packet } if alive(&mut self.places[to], life) => {
                if let Some(manager) = &mut self.places[to].manager {
                    manager.handle_packet(&packet, now);
                }
            }
            Coming::Computed { to, life, number, routes } if alive(&mut self.places[to], life) => {
                if let Some(manager) = &mut self.places[to].manager {
                    manager.handle_routes(number, routes, now);
                }
            }
            Coming::Arrival { .. } | Coming::Computed { .. } => {}
        }
    }

    /// Takes a request to the node at the end of its route. After each write, all that switches hold is checked.
    fn take_request(&mut self, from: usize, life: u32, mad: &[u8; MAD_BYTES]) {
        let Ok(asked) = Smp::<ManagerMethod>::parse(mad) else { return };
        let host = self.places[from].host;
        let Some((node, _)) = self.model.walk(host, &asked.route) else { return };
        if self.silent.contains(&node) {
            return;
        }
        if asked.attribute == Attribute::SmInfo && self.are_apart {
            return;
        }
        if asked.attribute == Attribute::SmInfo {
            let mut there = self.places.iter().enumerate();
            let Some((to, place)) = there.find(|(_, place)| place.host == node) else { return };
            let (life, packet) = (place.life, Packet { address: Address::Directed, mad: *mad });
            return self.take(Coming::Arrival { to, life, packet });
        }
        let refuse = self.refusing.contains(&node);
        let Some(mut answer) = self.model.answer(host, &asked, refuse) else { return };
        if asked.method == ManagerMethod::Set {
            let checked = self.model.check_circles().and_then(|()| self.model.check_storms());
            if let Err(why) = checked {
                self.wrong.get_or_insert(Violation { at: self.now, why });
            }
            if self.rng.random_bool(self.noise.garbled) {
                answer.data[self.rng.random_range(0..64)] ^= 0x41;
            }
        }
        self.answer(from, life, Packet { address: Address::Directed, mad: answer.emit() });
    }

    /// Takes a datagram to a LID: a question to a switch, or a message from one agent to another. It goes by the tables in
    /// force, and so does its answer.
    fn take_by_lid(&mut self, from: usize, life: u32, lid: u16, mad: &[u8; MAD_BYTES]) {
        let host = self.places[from].host;
        let own = self.model.nodes[host].ports[&1].lid();
        let Some(end) = self.model.reached(host, lid) else { return };
        let from_lid = |lid: u16| Address::Lid { lid, queue_pair: 1, level: 0 };
        if mad[1] == AGENT_CLASS && self.are_apart {
            return;
        }
        if mad[1] == AGENT_CLASS {
            let mut there = self.places.iter().enumerate();
            let Some((to, place)) = there.find(|(_, place)| place.host == end.0) else { return };
            let (life, packet) = (place.life, Packet { address: from_lid(own), mad: *mad });
            return self.take(Coming::Arrival { to, life, packet });
        }
        let Ok(RoutedByLid(asked)) = RoutedByLid::<ManagerMethod>::parse(mad) else { return };
        if asked.method != ManagerMethod::Get {
            // This confirms a trap. No switch waits for it here.
            return;
        }
        let is_back = self.model.reached(end.0, own).is_some_and(|(back, _)| back == host);
        if is_back && !self.silent.contains(&end.0) {
            let answer = RoutedByLid(self.model.answer_at(end, &asked, false));
            self.answer(from, life, Packet { address: from_lid(lid), mad: answer.emit() });
        }
    }
}
