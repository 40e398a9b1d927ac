//! Users' frames: from the tap interface to the fabric and back.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mapper_proto::agent::{Agent, PathId, PathUse};
use mapper_proto::map::{Map, PortRef};
use mapper_proto::wire::{Data, FrameKind, Undeliverable};
use mapper_proto::{Instant, Mac};
use tracing::info;

use super::random_seed;
use crate::daemon::DaemonError;
use crate::daemon::options::Config;
use crate::daemon::routes::RouteTable;
use crate::daemon::status;
use crate::data::{DataPath, DeadPort, PathInUse, PathTraffic, tap_mtu};
use crate::link::Link;
use crate::link::interface::{Change, Interface};
use crate::link::tap::Tap;

/// How often the agent is told which paths are in use: well before it forgets them.
const WATCH_INTERVAL: Duration = Duration::from_millis(400);

/// The host's Ethernet interface over the fabric.
pub(super) struct UserData {
    tap: Tap,
    mtu: u32,
    mac: Mac,
    /// The tap as the kernel described it last; `None` if it is gone.
    seen: Option<Interface>,
    path: DataPath,
    /// When the agent is told next which paths are in use; `None` while none is.
    watch_at: Option<Instant>,
    /// How many were in use when it was told last.
    watched: u64,
}

impl UserData {
    /// Makes the tap interface, if one is wanted, for the host with this address and a link of this
    /// MTU.
    ///
    /// # Errors
    /// If it cannot be made, or too little of a frame is left for IP.
    pub(super) fn open(config: &Config, mac: Mac, link_mtu: u32) -> Result<Option<Self>, DaemonError> {
        let Some(name) = &config.tap else { return Ok(None) };
        let mtu = tap_mtu(link_mtu, config.settings.max_hops as u8)?;
        let tap = Tap::create(name, mac, mtu)?;
        for address in &config.addresses {
            tap.add_address(*address)?;
            info!(tap = name, %address, "the tap interface has its address");
        }
        let secret = random_seed().map_err(DaemonError::Runtime)?;
        info!(tap = name, mtu, "the tap interface is up");
        let path = DataPath::new(mac, link_mtu, secret);
        let seen = Interface::look_up(name)?;
        Ok(Some(Self { tap, mtu, mac, seen, path, watch_at: None, watched: 0 }))
    }

    /// Takes in a change of any interface.
    pub(super) fn apply(&mut self, change: &Change) {
        let Some(seen) = &self.seen else { return };
        match change {
            Change::Now(now) if now.index == seen.index => self.seen = Some(now.clone()),
            Change::Gone { index } if *index == seen.index => self.seen = None,
            Change::Now(_) | Change::Gone { .. } => {}
            Change::Missed => {
                if let Ok(now) = Interface::look_up(self.tap.name()) {
                    self.seen = now;
                }
            }
        }
    }

    /// Whether somebody removed the tap interface.
    pub(super) const fn is_gone(&self) -> bool {
        self.seen.is_none()
    }

    /// What others did to the tap interface that keeps frames from passing, in words.
    pub(super) fn warnings(&self) -> Vec<String> {
        let Some(seen) = &self.seen else { return Vec::new() };
        let (name, mtu, mac) = (self.tap.name(), self.mtu, self.mac);
        let Interface { name: now, .. } = seen;
        let found = [
            (now != name, format!("the tap interface {name} is called {now} now")),
            (!seen.up, format!("the tap interface is down; `ip link set {now} up`")),
            (
                seen.mtu > mtu,
                format!(
                    "the tap interface's MTU was set to {}, but only {mtu} bytes fit into a frame of the fabric: \
                     longer packets are lost; `ip link set {now} mtu {mtu}`",
                    seen.mtu
                ),
            ),
            (
                seen.mac != mac,
                format!(
                    "the tap interface's address was changed to {}, but others reach this host by {mac}: nothing \
                     passes; `ip link set {now} address {mac}`",
                    seen.mac
                ),
            ),
            (
                seen.master.is_some(),
                format!(
                    "the tap interface is a port of a bridge or bond: frames of others behind it are dropped; \
                     `ip link set {now} nomaster`"
                ),
            ),
        ];
        found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, warning)| warning).collect()
    }

    /// Puts routes to use, and sends by them what has waited for them.
    pub(super) fn install(&mut self, now: Instant, link: &Link, table: Arc<RouteTable>) {
        self.path.install(table);
        self.path.send_waiting(now, &mut |route, frame| link.send(route, frame));
    }

    /// A map came, and routes will: see [`DataPath::take_map`].
    pub(super) fn take_map(&mut self, now: Instant, map: &Map) {
        self.path.take_map(now, map);
    }

    /// Uses no route any more, until a table is installed.
    pub(super) fn forget_routes(&mut self) {
        self.path.forget_routes();
    }

    /// Waits until the user has a frame to send.
    pub(super) async fn ready(&self) -> io::Result<()> {
        self.tap.ready().await
    }

    /// Sends what the user has to send, at most `burst` frames. `buffer` has room for one.
    pub(super) fn send_burst(&mut self, now: Instant, link: &Link, buffer: &mut [u8], burst: usize) {
        for _ in 0..burst {
            // Whatever is read must be sent, so it is read here only, and not before a burst ends.
            let Ok(bytes) = self.tap.try_read(buffer) else { break };
            self.path.outbound(now, &buffer[..bytes], &mut |route, frame| link.queue(route, frame));
            if let Some(answer) = self.path.take_answer() {
                self.tap.queue(&answer);
            }
        }
        link.flush();
        self.tap.flush();
        if self.path.routes_in_use() > self.watched {
            // A path that comes into use is watched at once.
            self.watch_at = Some(now);
        }
    }

    /// Takes a frame off the fabric, if it is one of users' data or about one. Returns whether it
    /// was, and the dead port that it tells of.
    pub(super) fn receive(&mut self, now: Instant, link: &Link, frame: &[u8]) -> (bool, Option<DeadPort>) {
        match FrameKind::of(frame) {
            // A check of a path is the agent's.
            Ok(FrameKind::Data) if Data::is_check(frame) => (false, None),
            Ok(FrameKind::Data) => {
                if let Ok(user) = self.path.inbound(now, frame) {
                    self.tap.queue(user);
                }
                (true, None)
            }
            // The sender of a check learns the same by silence.
            Ok(FrameKind::Undeliverable) if is_about_check(frame) => (true, None),
            Ok(FrameKind::Undeliverable) => {
                let dead = self.path.undeliverable(now, frame, &mut |route, frame| link.send(route, frame));
                (true, dead)
            }
            Ok(FrameKind::Mapper | FrameKind::Unknown(_)) | Err(_) => (false, None),
        }
    }

    /// Hands the kernel what was received. To be called when no more frames are there.
    pub(super) fn flush(&self) {
        self.tap.flush();
    }

    /// The ports by which a path leaves its xbars, on the map whose routes are in use.
    pub(super) fn hops(&self, path: PathId) -> Option<Vec<PortRef>> {
        self.path.path_hops(path).map(|(_, hops)| hops)
    }

    /// When [`Self::tell_paths`] wants to be called.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.watch_at
    }

    /// Tells the agent which paths are in use, if it is time.
    pub(super) fn tell_paths(&mut self, now: Instant, agent: &mut Agent, limit: usize) {
        if self.watch_at.is_none_or(|at| now < at) {
            return;
        }
        let paths = self.path.paths_in_use(now, limit);
        self.watched = self.path.routes_in_use();
        self.watch_at = (!paths.is_empty()).then(|| now + WATCH_INTERVAL);
        for path in paths {
            let PathInUse { id, route, way_back, to, longest_bytes } = path;
            agent.watch_path(now, id, PathUse { route, way_back, to, longest_bytes });
        }
    }

    /// What the routes in force are used for.
    pub(super) fn uses(&self, now: Instant) -> Vec<PathTraffic> {
        self.path.uses(now)
    }

    /// What there is to be shown of it.
    pub(super) fn status(&self) -> status::Tap {
        status::Tap {
            name: self.tap.name().to_owned(),
            mtu: self.mtu,
            counters: self.path.status(),
            refused: self.tap.refused(),
        }
    }
}

/// Whether a notice is about a check of a path, and not about a user's frame.
fn is_about_check(frame: &[u8]) -> bool {
    Undeliverable::decode(frame).is_ok_and(|notice| Data::is_check_token(notice.token))
}
