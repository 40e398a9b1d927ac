//! Takes users' frames from the tap interface to the fabric, and from the fabric to the tap interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::map::{Map, MapVersion, PortRef};
use mapper_proto::wire::{Data, RoundTrip};
use mapper_proto::{Instant, Mac};

use super::destinations::{Destinations, MappedLengths};
use super::sent::SentFrames;
use super::sources::{Sources, points_elsewhere};
use super::upkeep::is_upkeep;
use super::waiting::Waiting;
use super::{DataCount, DataDrop, DataDropKind, DataStatus, PathId, ethernet, flow, too_big};
use crate::routes::{RoutePath, RouteTable};

/// A path counts as in use for this long after its last frame.
pub(super) const IN_USE: Duration = Duration::from_secs(1);
/// A path that carries frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathInUse {
    /// The number that names the path as long as it is in the table.
    pub id: PathId,
    /// The way there and back.
    pub way: RoundTrip,
    /// The host at its end.
    pub to: Mac,
    /// The longest frame that took the path since the last question, or before it if none has since, in bytes
    /// with its route.
    pub longest_bytes: usize,
}

/// Carries one host's frames over the fabric, by the table of routes that was installed last.
///
/// The host is an end station: frames from other sources than its own address are dropped, as
/// nobody could answer them. So nothing can be bridged to the tap interface, and no loop of bridges can
/// lead through the fabric.
///
/// A broadcast or multicast goes to each host of the map once, as a copy made here.
pub struct DataPath {
    own: Mac,
    /// The longest frames that this host's link carries, in bytes.
    link_mtu: usize,
    /// The longest frames that ports of this host's own crossbar carry, in bytes, as far as that is known.
    own_ports: BTreeMap<u8, usize>,
    pub(super) destinations: Option<Destinations>,
    /// How long frames may be by the newest map, until a table of that map is installed.
    lengths: Option<(MapVersion, MappedLengths)>,
    /// The hosts whose frames are delivered to the user.
    sources: Sources,
    /// The paths that carried unicast frames lately, each with the host at its end.
    pub(super) in_use: BTreeMap<PathId, Mac>,
    pub(super) sent: SentFrames,
    /// Undelivered frames for which there is no other route until the next table.
    pub(super) waiting: Waiting,
    /// The user's frame that is being sent again. It is a field so that its memory is used again.
    pub(super) again: Vec<u8>,
    /// The reply to the kernel about the frame that was taken from it last, if there is one.
    answer: Option<Vec<u8>>,
    pub(super) status: DataStatus,
}

impl DataPath {
    /// The data path of the host with the address `own`, over a link that carries payloads of
    /// `link_mtu` bytes. `secret` makes tokens that nobody can guess, so it must be random.
    pub fn new(own: Mac, link_mtu: u32, secret: u64) -> Self {
        Self {
            own,
            link_mtu: link_mtu as usize,
            own_ports: BTreeMap::new(),
            destinations: None,
            lengths: None,
            sources: Sources::none(),
            in_use: BTreeMap::new(),
            sent: SentFrames::new(secret),
            waiting: Waiting::default(),
            again: Vec::new(),
            answer: None,
            status: DataStatus::default(),
        }
    }

    /// Takes in how long the payloads are that the link carries from now on, in bytes. Flows keep their paths.
    pub(crate) fn set_link_mtu(&mut self, link_mtu: u32) {
        self.link_mtu = link_mtu as usize;
        if let Some(destinations) = &mut self.destinations {
            destinations.set_link_mtu(self.link_mtu);
        }
    }

    /// Takes in how long the payloads are that ports of this host's own crossbar carry, in bytes, where they may carry longer ones
    /// than the link as a whole. Flows keep their paths.
    pub(crate) fn set_own_ports(&mut self, own_ports: BTreeMap<u8, usize>) {
        if let Some(destinations) = &mut self.destinations {
            destinations.set_own_ports(own_ports.clone());
        }
        self.own_ports = own_ports;
    }

    /// Takes in to which hosts only shorter frames get through than the ends of all cables on the way say, and how long these are,
    /// in bytes. Flows keep their paths.
    pub(crate) fn set_shortened(&mut self, shortened: BTreeMap<Mac, u32>) {
        if let Some(destinations) = &mut self.destinations {
            destinations.set_shortened(shortened);
        }
    }

    /// Puts a table of this host to use, at once and for all flows. A flow whose route is also in the
    /// new table stays on it.
    pub fn install(&mut self, table: Arc<RouteTable>) {
        self.status.counts.count(DataCount::RouteSwaps);
        let of_map = self.lengths.take_if(|(version, _)| *version == table.version());
        let lengths = of_map.map(|(_, lengths)| lengths);
        match &mut self.destinations {
            Some(destinations) => destinations.install(table, lengths),
            None => {
                let destinations = self.destinations.insert(Destinations::new(table, self.link_mtu, lengths));
                destinations.set_own_ports(self.own_ports.clone());
            }
        }
    }

    /// Takes in a new map. From now on only frames from its hosts are delivered, and for another second those
    /// from hosts of the map before. To be called as soon as the map is there, before its routes are
    /// computed, as other hosts may use theirs already.
    pub(crate) fn take_map(&mut self, now: Instant, map: &Map) {
        self.sources.take_map(now, map);
        self.lengths = Some((map.version, MappedLengths::of(map)));
    }

    /// Uses no route any more, until a table is installed, and delivers nothing until a map comes.
    pub fn forget_routes(&mut self) {
        self.sources = Sources::none();
        self.destinations = None;
        self.in_use.clear();
    }

    /// Makes all flows leave the paths over the cable in this port of the map, where there are
    /// others, for a second or until the table of another map is installed. To be called as soon as
    /// a cable is known to be dead, before a table without it is computed.
    pub fn avoid(&mut self, now: Instant, port: PortRef) {
        if let Some(destinations) = &mut self.destinations {
            destinations.avoid(now, port);
        }
    }

    /// Takes a frame of the user, from its destination address on. `send` gets the route and the
    /// frame of each frame for the fabric. What cannot be sent is dropped and counted.
    pub(crate) fn outbound(&mut self, now: Instant, frame: &[u8], send: &mut impl FnMut(&[u8], &[u8])) {
        match self.try_outbound(now, frame, send) {
            Ok(()) => {
                self.status.counts.count(DataCount::FramesOut);
                self.status.counts.add(DataCount::BytesOut, frame.len() as u64);
            }
            Err(reason) => {
                self.status.dropped.count(reason.into());
                if let DataDrop::TooLong { most_bytes } | DataDrop::TooLongForCable { most_bytes } = reason {
                    self.answer = too_big::answer(frame, most_bytes);
                }
            }
        }
    }

    /// A frame to be given to the kernel as if it came off the fabric: the reply to the user's frame that was
    /// taken last, if that was too long for a cable.
    pub(crate) fn take_answer(&mut self) -> Option<Vec<u8>> {
        self.answer.take()
    }

    fn try_outbound(
        &mut self,
        now: Instant,
        frame: &[u8],
        send: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), DataDrop> {
        let (to, from) = ethernet::addresses(frame).ok_or(DataDrop::Malformed)?;
        if from != self.own {
            return Err(DataDrop::ForeignSource);
        }
        if ethernet::is_group(to) {
            return self.broadcast(now, frame, send);
        }
        let table = self.destinations.as_ref().ok_or(DataDrop::NoRoute)?.table();
        let host = table.host(to).ok_or(DataDrop::UnknownDestination)?;
        let outgoing = UserFrame { host, to, hash: flow::hash(frame), tries: 0, frame };
        let path = self.send_to(now, &outgoing, send)?;
        if let Some(id) = path {
            self.in_use.insert(id, to);
        }
        Ok(())
    }

    /// Sends a copy of a broadcast or multicast to each other host of the map.
    fn broadcast(
        &mut self,
        now: Instant,
        frame: &[u8],
        send: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), DataDrop> {
        let table = Arc::clone(self.destinations.as_ref().ok_or(DataDrop::NoRoute)?.table());
        let hash = flow::hash(frame);
        let (mut copies, mut too_long, mut failed) = (0, 0, Ok(()));
        for (to, host) in table.hosts() {
            match self.send_to(now, &UserFrame { host, to, hash, tries: 0, frame }, send) {
                Ok(_) => copies += 1,
                Err(reason) => {
                    too_long += u64::from(matches!(reason, DataDrop::TooLongForCable { .. }));
                    failed = Err(reason);
                }
            }
        }
        if copies == 0 {
            return failed;
        }
        // Copies that were too long for a cable are counted, although others were sent.
        self.status.dropped.add(DataDropKind::TooLongForCable, too_long);
        self.status.counts.count(DataCount::Broadcasts);
        self.status.counts.add(DataCount::BroadcastCopies, copies);
        Ok(())
    }

    /// Sends a frame to one host. Returns the path that it took if that comes into use by it. A path is in use if it carries
    /// users' unicast frames: broadcasts and what hosts send on their own account do not tell which paths are worth watching.
    pub(super) fn send_to(
        &mut self,
        now: Instant,
        outgoing: &UserFrame<'_>,
        send: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<Option<PathId>, DataDrop> {
        let &UserFrame { host, to, hash, tries, frame } = outgoing;
        let destinations = self.destinations.as_mut().ok_or(DataDrop::NoRoute)?;
        let longest_of_own = destinations.longest_of_own();
        let destination = destinations.get(now, host, to).ok_or(DataDrop::NoRoute)?;
        let place = destination.choose(now, hash);
        let path = destination.paths.get_mut(place).ok_or(DataDrop::NoRoute)?;
        if tries > 0 && !path.alive {
            return Err(DataDrop::NoRoute);
        }
        let frame_bytes = Data::len_bytes(&path.way.back, frame);
        let link_bytes = path.way.there.as_bytes().len() + frame_bytes;
        let most_bytes = (path.most_bytes + frame.len()).saturating_sub(link_bytes);
        if link_bytes > longest_of_own {
            return Err(DataDrop::TooLong { most_bytes });
        }
        if link_bytes > path.most_bytes {
            return Err(DataDrop::TooLongForCable { most_bytes });
        }
        let write = |token, room: &mut [u8]| Data::write(token, &path.way.back, frame, room).ok();
        let (route, data) = self
            .sent
            .push(now, (to, tries), path.way.there.as_bytes(), frame_bytes, write)
            .ok_or(DataDrop::TooLong { most_bytes })?;
        send(route, data);
        path.longest.0 = path.longest.0.max(link_bytes);
        path.frames += 1;
        let group = ethernet::addresses(frame).is_none_or(|(to, _)| ethernet::is_group(to));
        if group || is_upkeep(frame) {
            return Ok(None);
        }
        path.used = now;
        let was_listed = std::mem::replace(&mut path.listed, true);
        Ok((!was_listed).then_some(path.id))
    }

    /// Takes a data frame off the fabric, from its type on. Returns the user's frame that is in
    /// it. What is not for this host, or from no host of the map, is dropped and counted.
    ///
    /// # Errors
    /// The reason why the frame was dropped.
    pub(crate) fn inbound<'a>(&mut self, now: Instant, frame: &'a [u8]) -> Result<&'a [u8], DataDrop> {
        let result = self.try_inbound(now, frame);
        match result {
            Ok(frame) => {
                self.status.counts.count(DataCount::FramesIn);
                self.status.counts.add(DataCount::BytesIn, frame.len() as u64);
            }
            Err(reason) => self.status.dropped.count(reason.into()),
        }
        result
    }

    fn try_inbound<'a>(&self, now: Instant, frame: &'a [u8]) -> Result<&'a [u8], DataDrop> {
        let frame = Data::ethernet_of(frame).map_err(|_| DataDrop::Malformed)?;
        let (to, from) = ethernet::addresses(frame).ok_or(DataDrop::Malformed)?;
        if ethernet::is_group(from) {
            return Err(DataDrop::Malformed);
        }
        if from == self.own || !(to == self.own || ethernet::is_group(to)) {
            return Err(DataDrop::NotForMe);
        }
        if !self.sources.knows(now, from) {
            return Err(DataDrop::UnknownSource);
        }
        if points_elsewhere(frame, from) {
            return Err(DataDrop::ForgedNeighbour);
        }
        Ok(frame)
    }

    /// The paths that carried frames for one host lately, at most `limit` of them, the one used last
    /// first. To be called every few hundred milliseconds while there are any.
    pub(crate) fn paths_in_use(&mut self, now: Instant, limit: usize) -> Vec<PathInUse> {
        self.status.counts.add(DataCount::GivenUp, self.waiting.expire(now));
        let Some(destinations) = &mut self.destinations else { return Vec::new() };
        destinations.forgive(now);
        let mut paths = Vec::new();
        self.in_use.retain(|&id, &mut mac| {
            let Some(path) = destinations.path(now, mac, id) else { return false };
            path.listed = now.since(path.used) < IN_USE;
            if path.listed {
                let (way, longest_bytes) = (path.way.clone(), path.take_longest());
                paths.push((path.used, PathInUse { id, way, to: mac, longest_bytes }));
            }
            path.listed
        });
        paths.sort_by_key(|&(used, _)| std::cmp::Reverse(used));
        paths.into_iter().take(limit).map(|(_, path)| path).collect()
    }

    /// Takes in that the kernel sends packets along the paths to this host, which this type does not see.
    pub(crate) fn use_paths_to(&mut self, now: Instant, mac: Mac) {
        let Some(destinations) = &mut self.destinations else { return };
        let Some(host) = destinations.table().host(mac) else { return };
        let Some(destination) = destinations.get(now, host, mac) else { return };
        for path in &mut destination.paths {
            path.used = now;
            path.longest.0 = path.longest.0.max(path.most_bytes);
            path.listed = true;
            self.in_use.insert(path.id, mac);
        }
    }

    /// The host that a path leads to, and the path on the map of the table in use. `None` if it is not in use or no longer in
    /// that table.
    pub(crate) fn path_in_table(&self, id: PathId) -> Option<(Mac, RoutePath)> {
        let &mac = self.in_use.get(&id)?;
        let destinations = self.destinations.as_ref()?;
        let path = destinations.listed(mac, id)?;
        let found = destinations.look_up(mac, path.way.there.as_bytes())?;
        (found.way.back == path.way.back).then_some((mac, found))
    }

    /// How many paths carried frames for one host lately.
    pub fn routes_in_use(&self) -> u64 {
        self.in_use.len() as u64
    }

    /// What the data path has done since its start.
    pub fn status(&self) -> DataStatus {
        let flows_moved = self.destinations.as_ref().map_or(0, |destinations| destinations.flows_moved);
        let mut status = self.status;
        status.counts.add(DataCount::FlowsMoved, flows_moved);
        status.counts.add(DataCount::RoutesInUse, self.in_use.len() as u64);
        status
    }
}

/// A frame for one host.
pub(super) struct UserFrame<'a> {
    /// The host's number in the table.
    pub(super) host: u32,
    pub(super) to: Mac,
    /// The hash of the flow that the frame belongs to.
    pub(super) hash: u64,
    /// How often it was sent before.
    pub(super) tries: u8,
    pub(super) frame: &'a [u8],
}
