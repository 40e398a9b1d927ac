//! The unicast cache: tables that stay right while hosts and leaves come and go.
//!
//! OpenSM's rules (its option `-A`): a host that reboots, or a leaf that is off for a while, needs no new
//! routes. The cache holds the fabric that was last routed as a whole, with its tables. Each fabric is
//! compared with that one, so it does not matter in which order nodes went and came back.

mod compare;
mod file;
mod held;
mod settings;

pub use compare::WhyNot;
pub use file::CacheFileError;

use compare::Correspondence;
use held::Held;
use mapper_proto::map::Fabric;
use rayon::prelude::*;

use super::engines::{Engine, Routing, Settings};
use super::tables::{Layers, Tables};
use super::{Attachment, Subnet};

/// The fabric that was last routed, and its tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnicastCache {
    held: Held,
    /// The tables as [`Tables::to_ports`] gives them, with the xbars and slots of the fabric held.
    ports: Vec<u8>,
    /// A layer for each pair of xbars, unless all is in layer 0.
    layers: Vec<u8>,
}

/// Tables from the cache.
#[derive(Clone, Debug)]
pub struct Reused {
    /// The engine that computed them.
    pub engine: Engine,
    /// The tables, for the fabric as it is now. They are not proved yet.
    pub routing: Routing,
}

impl UnicastCache {
    /// Holds a fabric and its tables. `engines` are those that were to be tried, by these settings, and
    /// `engine` served.
    pub fn new(
        fabric: &Fabric,
        subnet: &Subnet,
        engines: &[Engine],
        settings: &Settings,
        engine: Engine,
        routing: &Routing,
    ) -> Self {
        let xbars = 0..subnet.topology.xbar_count() as u32;
        let held = Held::new(fabric, subnet, engines, settings, engine, routing);
        let layers = if held.has_layers() {
            let pairs = xbars.clone().flat_map(|from| xbars.clone().map(move |to| (from, to)));
            pairs.map(|(from, to)| routing.layers.of(from, to)).collect()
        } else {
            Vec::new()
        };
        Self { held, ports: routing.tables.to_ports(), layers }
    }

    /// The tables for a fabric that differs from the held one only by hosts and whole leaves that are gone.
    /// Nothing is computed. A node that was gone and is back has its old entries.
    ///
    /// # Errors
    /// If the fabric differs otherwise, or other engines or settings are asked for: the tables must be
    /// computed anew.
    pub fn reuse(
        &self,
        fabric: &Fabric,
        subnet: &Subnet,
        engines: &[Engine],
        settings: &Settings,
    ) -> Result<Reused, WhyNot> {
        let same = Correspondence::of(&self.held, fabric, subnet)?;
        if !settings::agree(&self.held.settings, &settings::held(engines, settings), &same) {
            return Err(WhyNot::OtherSettings);
        }
        let engine: Engine = self.held.engine.parse().map_err(|_| WhyNot::OtherSettings)?;
        let tables = self.tables(subnet, &same);
        let layers = self.layers(&same);
        Ok(Reused { engine, routing: Routing { tables, layers, notes: self.held.notes.clone() } })
    }

    fn tables(&self, subnet: &Subnet, same: &Correspondence) -> Tables {
        let held_xbars = self.held.xbars.len();
        let mut tables = Tables::empty(subnet.topology.xbar_count(), subnet.destinations.slot_count());
        let xbars = tables.xbar_count();
        if xbars == 0 {
            return tables;
        }
        let slots = same.slots(&self.held, subnet);
        tables.as_mut_slice().par_chunks_mut(xbars).zip(slots).for_each(|(ports, slot)| {
            let held = &self.ports[slot as usize * held_xbars..][..held_xbars];
            for (port, &xbar) in ports.iter_mut().zip(&same.xbars) {
                *port = held[xbar as usize];
            }
        });
        tables
    }

    fn layers(&self, same: &Correspondence) -> Layers {
        if self.layers.is_empty() {
            return Layers::single();
        }
        let held_xbars = self.held.xbars.len();
        let pairs = same.xbars.iter().flat_map(|&to| same.xbars.iter().map(move |&from| (from, to)));
        let of = pairs.map(|(from, to)| self.layers[from as usize * held_xbars + to as usize]).collect();
        Layers::by_destination(self.held.layer_count, self.held.first_layer, of, same.xbars.len())
    }
}

/// Where a host is cabled.
fn place(subnet: &Subnet, host: u32) -> Option<(u32, u8)> {
    match subnet.topology.attachment(host) {
        Attachment::Port(at) => Some((at.xbar, at.port)),
        Attachment::Host(_) | Attachment::Nothing => None,
    }
}

#[cfg(test)]
mod tests;
