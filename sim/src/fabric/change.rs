//! Changes of the plant: what faults do to it.

use mapper_proto::map::Fabric;
use mapper_proto::wire::{CrossbarKind, PassedChecks};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

use super::{CableState, Plant, PlantPort, Xbars};

/// Why the plant's state does not allow a change.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The fabric has no such port.
    #[error("{0} is no port of this fabric")]
    NoSuchPort(String),
    /// No cable is plugged into the port.
    #[error("no cable is plugged into {0}")]
    NoCable(String),
    /// A cable is already plugged into the port.
    #[error("a cable is already plugged into {0}")]
    Taken(String),
}

impl Plant {
    /// Sets the state of the cable that is plugged in at `end`.
    ///
    /// # Errors
    /// If there is no such port or no cable in it.
    pub(crate) fn set_cable(&mut self, end: PlantPort, state: CableState) -> Result<(), ChangeError> {
        let (near, far) = self.cable_at(end)?;
        self.sockets[near as usize].cable = state;
        self.sockets[far as usize].cable = state;
        self.changed();
        Ok(())
    }

    /// Pulls the cable's end out at `from` and plugs it in at `to`. The cable keeps its state.
    ///
    /// # Errors
    /// If there is no such port, if no cable is plugged in at `from`, or if one is at `to`.
    pub(crate) fn move_end(&mut self, from: PlantPort, to: PlantPort) -> Result<(), ChangeError> {
        let (near, far) = self.cable_at(from)?;
        let target = self.socket(to).ok_or_else(|| ChangeError::NoSuchPort(self.end_name(to)))?;
        if self.sockets[target as usize].peer.is_some() {
            return Err(ChangeError::Taken(self.end_name(to)));
        }
        let state = self.sockets[near as usize].cable;
        self.sockets[near as usize].peer = None;
        self.sockets[near as usize].cable = CableState::Up;
        self.sockets[target as usize].peer = Some(far);
        self.sockets[target as usize].cable = state;
        self.sockets[far as usize].peer = Some(target);
        self.changed();
        Ok(())
    }

    /// Switches an xbar's power on or off.
    pub(crate) fn set_power(&mut self, xbar: u32, powered: bool) {
        self.xbars[xbar as usize].powered = powered;
        self.xbars[xbar as usize].passed = PassedChecks::default();
        self.changed();
    }

    /// Starts or ends what forwards an xbar's frames. Its cables keep their carrier.
    pub(crate) fn set_running(&mut self, xbar: u32, is_running: bool) {
        self.xbars[xbar as usize].is_running = is_running;
        self.xbars[xbar as usize].passed = PassedChecks::default();
        self.generation += 1;
    }

    /// Puts a host's interface in or takes it out. While it is out, the host's cable has no carrier.
    pub(crate) fn set_present(&mut self, host: u32, present: bool) {
        self.present[host as usize] = present;
        self.changed();
    }

    /// Replaces an xbar by another of the same kind and size, cabled alike: a tagged one has
    /// another identity, a plain one cannot be told from the old one.
    pub(crate) fn swap_xbar(&mut self, xbar: u32) {
        if let CrossbarKind::Tagged { tag } = &mut self.xbars[xbar as usize].crossbar.kind {
            // The increment is odd, so this xbar has no identity twice within 2^64 swaps.
            *tag = tag.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        self.xbars[xbar as usize].passed = PassedChecks::default();
        self.changed();
    }

    /// Mends all cables, powers all xbars and puts all interfaces in. Cables stay where they are
    /// plugged in.
    pub fn heal(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.cable = CableState::Up);
        self.xbars.iter_mut().for_each(|xbar| xbar.powered = true);
        self.present.fill(true);
        self.changed();
    }

    /// Whether a host has its interface.
    pub(crate) fn is_present(&self, host: u32) -> bool {
        self.present[host as usize]
    }

    fn cable_at(&self, end: PlantPort) -> Result<(u32, u32), ChangeError> {
        let near = self.socket(end).ok_or_else(|| ChangeError::NoSuchPort(self.end_name(end)))?;
        let far = self.sockets[near as usize].peer.ok_or_else(|| ChangeError::NoCable(self.end_name(end)))?;
        Ok((near, far))
    }
}

/// The tag of each xbar; `None` for plain ones.
pub(super) fn tags(fabric: &Fabric, kinds: Xbars, seed: u64) -> Vec<Option<u64>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x7861_6261_7273);
    let xbars = fabric.map.xbars.iter().enumerate();
    xbars
        .map(|(i, xbar)| {
            let guid = fabric.xbars.get(i).and_then(|label| label.guid);
            let drawn = rng.random_range(0..=u64::MAX);
            let plain = rng.random_bool(0.5);
            let tag = xbar.tag.or(guid).unwrap_or(drawn);
            match kinds {
                Xbars::AsDescribed => xbar.tag,
                Xbars::Plain => None,
                Xbars::Tagged => Some(tag),
                Xbars::Mixed => (!plain).then_some(tag),
            }
        })
        .collect()
}
