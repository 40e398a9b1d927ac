//! Requests and traps that come to this manager.

use mapper_proto::time::Instant;

use super::{Event, SubnetCount, SubnetManager};
use crate::mad::{
    self, Attribute, Command, ManagerMethod, Notice, RoutedByLid, SmInfo, SmState, Smp, WrongKey,
};
use crate::packet::Packet;

impl SubnetManager {
    /// Acts on a request or a trap, which may have come by a directed route or by LID.
    pub(super) fn handle_request(&mut self, packet: &Packet, now: Instant) {
        let by_lid = || RoutedByLid::<ManagerMethod>::parse(&packet.mad).map(|routed| routed.0);
        let Ok(smp) = Smp::<ManagerMethod>::parse(&packet.mad).or_else(|_| by_lid()) else { return };
        match (smp.method, smp.attribute) {
            (ManagerMethod::Get, Attribute::SmInfo) => self.answer_info(packet),
            (ManagerMethod::Set, Attribute::SmInfo) => {
                self.answer_info(packet);
                if let Some(command) = Command::of(smp.modifier) {
                    self.obey(command, &SmInfo::parse(&smp.data), now);
                }
            }
            (ManagerMethod::Trap, Attribute::Notice) => self.handle_trap(packet, &smp, now),
            _ => {}
        }
    }

    fn answer_info(&mut self, packet: &Packet) {
        let mad = mad::answer(&packet.mad, 0, &self.info().emit());
        self.out.push_back(Packet { address: packet.address, mad });
    }

    fn handle_trap(&mut self, packet: &Packet, trap: &Smp<ManagerMethod>, now: Instant) {
        if self.role != SmState::Master {
            return;
        }
        self.counts.count(SubnetCount::Traps);
        if RoutedByLid::<ManagerMethod>::parse(&packet.mad).is_ok() {
            let repress = Smp { method: ManagerMethod::TrapRepress, status: 0, ..trap.clone() };
            self.out.push_back(Packet { address: packet.address, mad: RoutedByLid(repress).emit() });
        }
        self.administration.pass_on(&trap.data);
        let notice = Notice::parse(&trap.data);
        let Some(number) = notice.number else { return };
        if let Some(told) = WrongKey::parse(&trap.data) {
            return self.take_wrong_key(&told);
        }
        self.tell(Event::Trap { number, issuer: notice.issuer });
        match number {
            Notice::LINK_STATE => self.switch_changed(notice.subject, now),
            Notice::CAPABILITIES => self.suspect(now),
            _ => {}
        }
    }
}
