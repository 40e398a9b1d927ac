//! Forwarding tables: which port each xbar sends each destination's frames to.

mod destinations;

pub use destinations::{Destinations, End, LidError, MAX_LMC};

/// An out port for each xbar and each slot of [`Destinations`].
///
/// The ports of one destination stand together, by xbar, so that what leads to it can be computed and
/// proved in one sweep, and all slots of a destination's xbar are one block. At a host's own xbar the
/// entry is the host's port. At an xbar's own slot the entry is not used: frames for it have arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tables {
    xbars: usize,
    ports: Vec<u8>,
}

impl Tables {
    /// No port: no route leads on.
    pub const NONE: u8 = u8::MAX;

    /// Tables that lead nowhere.
    pub fn empty(xbars: usize, slots: usize) -> Self {
        Self { xbars, ports: vec![Self::NONE; xbars * slots] }
    }

    /// Tables of these ports: slot by slot, by xbar within, so many xbars.
    pub fn from_ports(xbars: usize, ports: Vec<u8>) -> Self {
        debug_assert!(ports.is_empty() || ports.len().is_multiple_of(xbars), "whole slots");
        Self { xbars, ports }
    }

    /// How many xbars have a table.
    pub fn xbar_count(&self) -> usize {
        self.xbars
    }

    /// How many slots each table has.
    pub fn slot_count(&self) -> usize {
        self.ports.len().checked_div(self.xbars).unwrap_or_default()
    }

    /// The port that an xbar sends a slot's frames to, or [`Self::NONE`].
    pub fn port(&self, xbar: u32, slot: u32) -> u8 {
        self.ports[slot as usize * self.xbars + xbar as usize]
    }

    /// Sets the port that an xbar sends a slot's frames to.
    pub fn set_port(&mut self, xbar: u32, slot: u32, port: u8) {
        self.ports[slot as usize * self.xbars + xbar as usize] = port;
    }

    /// A slot's ports, by xbar.
    pub fn of_slot(&self, slot: u32) -> &[u8] {
        &self.ports[slot as usize * self.xbars..][..self.xbars]
    }

    /// All ports, slot by slot, by xbar within.
    pub fn as_slice(&self) -> &[u8] {
        &self.ports
    }

    /// All ports, slot by slot, by xbar within.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.ports
    }

    /// How many entries differ from other tables of the same size.
    pub fn changed_entries(&self, other: &Self) -> usize {
        self.ports.iter().zip(&other.ports).filter(|(a, b)| a != b).count()
    }
}

/// The layer (InfiniBand: service level) that frames travel in, by the xbars of source and destination.
///
/// Frames in different layers have buffers of their own and cannot wait for each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layers {
    /// How many layers there are, at least 1.
    pub count: u8,
    /// The number of the first one; the others follow.
    pub first: u8,
    /// The layer of frames from xbar s to xbar d, counted from 0: `by_pair[s * xbars + d]`. Empty if there
    /// is one layer only.
    by_pair: Vec<u8>,
    xbars: usize,
}

impl Layers {
    /// Most layers: InfiniBand has so many service levels.
    pub const MAX: u8 = 16;

    /// Everything in layer 0.
    pub fn single() -> Self {
        Self { count: 1, first: 0, by_pair: Vec::new(), xbars: 0 }
    }

    /// A layer for each pair of `xbars` xbars, counted from 0: `by_pair[source * xbars + destination]`.
    pub fn by_pair(count: u8, first: u8, by_pair: Vec<u8>, xbars: usize) -> Self {
        debug_assert_eq!(by_pair.len(), xbars * xbars, "a layer for each pair");
        Self { count, first, by_pair, xbars }
    }

    /// The layer of frames between two xbars, counted from 0.
    pub fn of(&self, source: u32, destination: u32) -> u8 {
        let at = source as usize * self.xbars + destination as usize;
        self.by_pair.get(at).copied().unwrap_or_default()
    }

    /// Whether these are layers of a fabric of so many xbars.
    pub fn fit(&self, xbars: usize) -> bool {
        self.by_pair.is_empty() || self.xbars == xbars && self.by_pair.len() == xbars * xbars
    }

    /// The highest layer that any pair is in, counted from 0.
    pub fn highest(&self) -> u8 {
        self.by_pair.iter().copied().max().unwrap_or_default()
    }

    /// The layer of frames between two xbars as frames carry it.
    pub fn service_level(&self, source: u32, destination: u32) -> u8 {
        self.first + self.of(source, destination)
    }
}
