//! Crossbars' notices that they could not send a frame on, and the frames that are sent again because of them.

use mapper_proto::map::PortRef;
use mapper_proto::wire::{Data, Undeliverable};
use mapper_proto::{Instant, Mac};

use super::data_path::{DataPath, UserFrame};
use super::{DataCount, flow};

/// How often a frame is sent again at most.
const MAX_TRIES: u8 = 2;

/// A port that a crossbar could not send a frame out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadPort {
    /// The crossbar's tag.
    pub tag: u64,
    /// The port, with the crossbar's number in the map of the table in use.
    pub at: PortRef,
}

impl DataPath {
    /// Takes a notice off the fabric, from its type on, in which a crossbar says that it could not send a
    /// frame out of a port. If that frame was sent lately, all flows leave the port's cable, and the frame is
    /// sent again along another route. Returns the dead port, if the notice is to be believed and the port
    /// is in the table in use.
    pub fn undeliverable(
        &mut self,
        now: Instant,
        frame: &[u8],
        send: &mut impl FnMut(&[u8], &[u8]),
    ) -> Option<DeadPort> {
        self.status.counts.count(DataCount::Notices);
        let notice = Undeliverable::decode(frame).ok();
        let believed = notice.and_then(|notice| self.believe(now, notice));
        let Some((to, tries, dead)) = believed else {
            self.status.counts.count(DataCount::NoticesIgnored);
            return None;
        };
        if let Some(dead) = dead {
            self.avoid(now, dead.at);
        }
        if self.send_again(now, to, tries, send) {
            self.status.counts.count(DataCount::Resent);
        } else if dead.is_none() || tries >= MAX_TRIES || !self.waiting.push(now, to, tries, &self.again) {
            self.status.counts.count(DataCount::GivenUp);
        }
        dead
    }

    /// Sends the undelivered frames that wait for a new table, which must be installed by now. Frames that
    /// have no route in it either are given up.
    pub(crate) fn send_waiting(&mut self, now: Instant, send: &mut impl FnMut(&[u8], &[u8])) {
        self.status.counts.add(DataCount::GivenUp, self.waiting.expire(now));
        for waiting in self.waiting.take() {
            self.again = waiting.frame;
            match self.send_again(now, waiting.to, waiting.tries, send) {
                true => self.status.counts.count(DataCount::Resent),
                false => self.status.counts.count(DataCount::GivenUp),
            }
        }
    }

    /// Looks up the frame that a notice is about, and puts it into `again`. Returns the host it was sent to,
    /// how often it was sent before, and the dead port unless the frame's route has left the table.
    fn believe(&mut self, now: Instant, notice: Undeliverable) -> Option<(Mac, u8, Option<DeadPort>)> {
        let sent = self.sent.take(now, notice.token)?;
        let destinations = self.destinations.as_ref()?;
        let (route, data) = self.sent.route_and_frame(&sent);
        // No flow takes a route that is no longer in the table, and without that route's map nobody can
        // tell whether the port lies on it.
        let dead = match destinations.look_up(sent.to, route) {
            None => None,
            Some(path) => {
                let at = PortRef { xbar: destinations.table().xbar(notice.tag)?, port: notice.port };
                path.hops.contains(&at).then_some(())?;
                Some(DeadPort { tag: notice.tag, at })
            }
        };
        self.again.clear();
        self.again.extend_from_slice(Data::ethernet_of(data).ok()?);
        Some((sent.to, sent.tries, dead))
    }

    /// Sends the frame in `again` along a path that is alive, if there is one.
    fn send_again(&mut self, now: Instant, to: Mac, tries: u8, send: &mut impl FnMut(&[u8], &[u8])) -> bool {
        let host = self.destinations.as_ref().and_then(|destinations| destinations.table().host(to));
        let Some(host) = host.filter(|_| tries < MAX_TRIES) else { return false };
        let frame = std::mem::take(&mut self.again);
        let outgoing = UserFrame { host, to, hash: flow::hash(&frame), tries: tries + 1, frame: &frame };
        let sent = self.send_to(now, &outgoing, send);
        self.again = frame;
        if let Ok(Some(id)) = sent {
            self.in_use.insert(id, to);
        }
        sent.is_ok()
    }
}
