//! What whoever drives a manager calls: what it has to send, when it is to act, and what came.

use mapper_proto::time::Instant;

use super::asking::FIRST_TABLE;
use super::{FIRST_COMMAND, Stage, SubnetManager};
use crate::mad::{AGENT_CLASS, ManagerMethod, RoutedByLid, Smp, sa};
use crate::packet::{Address, Packet};

impl SubnetManager {
    /// The next datagram to send, if one may go out now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let packet = self.out.pop_front().or_else(|| {
            let mad = match &mut self.stage {
                Stage::Sweeping(sweep) => sweep.poll_transmit(now).map(|smp| smp.emit()),
                Stage::Reading(reading) => reading.poll_transmit(now),
                Stage::Writing(writing) => writing.poll_transmit(now),
                Stage::Watching(watch) => watch.poll_transmit(now),
                Stage::Glancing(glances) => glances.poll_transmit(now),
                Stage::Polling(polling) => polling.poll_transmit(now),
                Stage::Waiting { .. } | Stage::Computing { .. } => None,
            };
            let mad = mad.or_else(|| self.commands.poll_transmit(now)).or_else(|| self.poll_table(now));
            let directed = mad.map(|mad| Packet { address: Address::Directed, mad });
            directed.or_else(|| self.share.as_mut()?.poll_transmit(now))
        });
        if packet.is_none() {
            return self.administration.poll_transmit(now).or_else(|| self.inquiries.poll_transmit());
        }
        self.datagrams.sent += 1;
        packet
    }

    /// The moment at which to call [`Self::handle_timeout`]; `None` if nothing is waited for but a task.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let stage = match &self.stage {
            Stage::Waiting { until } => Some(*until),
            Stage::Sweeping(sweep) => sweep.poll_timeout(),
            Stage::Reading(reading) => reading.poll_timeout(),
            Stage::Writing(writing) => writing.poll_timeout(),
            Stage::Watching(watch) => watch.poll_timeout(),
            Stage::Glancing(glances) => glances.poll_timeout(),
            Stage::Polling(polling) => polling.poll_timeout(),
            Stage::Computing { .. } => None,
        };
        let share = self.share.as_ref().and_then(|share| share.poll_timeout());
        let services = [self.administration.poll_timeout(), self.inquiries.poll_timeout()];
        let others =
            [self.commands.poll_timeout(), self.tables.poll_timeout(), share].into_iter().chain(services);
        stage.into_iter().chain(others.flatten()).min()
    }

    /// Acts on what time brings.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(done) = self.commands.handle_timeout(now) {
            self.command_ended(&done, now);
        }
        self.time_tables(now);
        self.administration.handle_timeout(now);
        self.time_share(now);
        self.inquiries.handle_timeout(now);
        match &mut self.stage {
            Stage::Waiting { until } if *until <= now => self.stop_waiting(now),
            Stage::Waiting { .. } | Stage::Computing { .. } => {}
            Stage::Sweeping(sweep) => {
                sweep.handle_timeout(now);
                self.end_sweep(now);
            }
            Stage::Reading(_) => self.time_reading(now),
            Stage::Writing(_) => self.time_writing(now),
            Stage::Watching(_) => self.time_watch(now),
            Stage::Glancing(_) => self.time_glance(now),
            Stage::Polling(_) => self.time_polling(now),
        }
    }

    /// Takes a datagram that came from the subnet. One that answers no open question, and that is no request which
    /// the manager knows, is ignored.
    pub fn handle_packet(&mut self, packet: &Packet, now: Instant) {
        self.datagrams.received += 1;
        if packet.mad[sa::CLASS_AT] == sa::CLASS {
            if self.inquiries.handle_packet(packet, now) {
                return;
            }
            self.administration.handle_packet(packet, now);
            return self.take_groups(now);
        }
        if packet.mad[sa::CLASS_AT] == AGENT_CLASS {
            return self.handle_agent(packet, now);
        }
        if let Ok(RoutedByLid(smp)) = RoutedByLid::<ManagerMethod>::parse(&packet.mad)
            && smp.method == ManagerMethod::GetResponse
        {
            return self.answer_share(&smp);
        }
        if let Ok(smp) = Smp::<ManagerMethod>::parse(&packet.mad)
            && smp.method == ManagerMethod::GetResponse
        {
            return self.handle_answer(packet, &smp, now);
        }
        self.handle_request(packet, now);
    }

    fn handle_answer(&mut self, packet: &Packet, smp: &Smp<ManagerMethod>, now: Instant) {
        if smp.tid as u32 >= FIRST_TABLE {
            return self.answer_table(smp, now);
        }
        if smp.tid as u32 >= FIRST_COMMAND {
            if let Some(done) = self.commands.handle(smp, |_, _| true) {
                self.command_ended(&done, now);
            }
            return;
        }
        match &mut self.stage {
            Stage::Sweeping(sweep) => {
                sweep.handle_mad(&packet.mad);
                self.end_sweep(now);
            }
            Stage::Reading(_) => self.answer_reading(smp, now),
            Stage::Writing(_) => self.answer_writing(smp, now),
            Stage::Watching(_) => self.answer_watch(smp, now),
            Stage::Glancing(_) => self.answer_glance(smp, now),
            Stage::Polling(_) => self.answer_polling(smp, now),
            Stage::Waiting { .. } | Stage::Computing { .. } => {}
        }
    }
}
