//! Forwarding tables, which say to which port each xbar sends each destination's frames.

mod by_xbar;
mod destinations;
mod service_levels;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rayon::prelude::*;

pub use by_xbar::ByXbar;
pub use destinations::{Destinations, LidError, MAX_LMC, SlotEnd};
pub use service_levels::ServiceLevels;

/// An out port for each xbar and each slot of [`Destinations`].
///
/// The ports of one destination stand together in a *row*, by xbar, so that what leads to it can be computed
/// and proved in one sweep, and all slots of a destination's xbar are one block. At a host's own xbar the
/// entry is the host's port. At an xbar's own slot the entry is not used: frames for it have arrived.
///
/// Clones share their rows, and a row is copied when it is first written to: tables in which little changed
/// take little time and memory.
#[derive(Clone, Debug)]
pub struct Tables {
    xbars: usize,
    /// All rows in the order of slots, perhaps those of other tables, too.
    shared: Arc<Vec<u8>>,
    /// Rows that were written to while the others were shared.
    own: Vec<u8>,
    /// Where each slot's row is in `own`, counted in rows, or [`Self::SHARED`]. Empty if no row is there.
    places: Vec<u32>,
}

/// The least number of rows for which a thread is worth its cost.
const MIN_ROWS: usize = 64;

/// An entry of tables: the port by which an xbar sends on what goes to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) slot: u32,
    pub(crate) xbar: u32,
    pub(crate) port: u8,
}

impl Tables {
    /// Stands for no port, where no route leads on.
    pub const NONE: u8 = u8::MAX;

    const SHARED: u32 = u32::MAX;

    /// Tables that lead nowhere.
    pub fn empty(xbars: usize, slots: usize) -> Self {
        Self::from_ports(xbars, vec![Self::NONE; xbars * slots])
    }

    /// Tables of these ports. They stand slot by slot, and within a slot by xbar.
    pub fn from_ports(xbars: usize, ports: Vec<u8>) -> Self {
        debug_assert!(ports.is_empty() || ports.len().is_multiple_of(xbars), "whole slots");
        Self { xbars, shared: Arc::new(ports), own: Vec::new(), places: Vec::new() }
    }

    /// How many xbars have a table.
    pub fn xbar_count(&self) -> usize {
        self.xbars
    }

    /// How many slots each table has.
    pub fn slot_count(&self) -> usize {
        self.shared.len().checked_div(self.xbars).unwrap_or_default()
    }

    /// How many entries there are.
    pub fn entry_count(&self) -> usize {
        self.shared.len()
    }

    /// The port that an xbar sends a slot's frames to, or [`Self::NONE`].
    pub fn port(&self, xbar: u32, slot: u32) -> u8 {
        self.of_slot(slot)[xbar as usize]
    }

    /// Sets the port that an xbar sends a slot's frames to.
    pub fn set_port(&mut self, xbar: u32, slot: u32, port: u8) {
        self.row_mut(slot)[xbar as usize] = port;
    }

    /// Sets an entry.
    pub(crate) fn set(&mut self, Entry { slot, xbar, port }: Entry) {
        self.set_port(xbar, slot, port);
    }

    /// The ports of a slot, by xbar.
    pub fn of_slot(&self, slot: u32) -> &[u8] {
        match self.places.get(slot as usize) {
            None | Some(&Self::SHARED) => &self.shared[slot as usize * self.xbars..][..self.xbars],
            Some(&place) => &self.own[place as usize * self.xbars..][..self.xbars],
        }
    }

    /// Sets the ports of a slot, by xbar.
    pub fn set_row(&mut self, slot: u32, ports: &[u8]) {
        if self.of_slot(slot) != ports {
            self.row_mut(slot).copy_from_slice(ports);
        }
    }

    /// Gets these rows ready to be written to, by rising slot. Shared ones are copied by all threads, as the system gives the memory
    /// for them page by page.
    pub(crate) fn own_rows(&mut self, slots: &[u32]) {
        debug_assert!(slots.is_sorted(), "slots rise");
        let are_written_in_place = self.places.is_empty() && Arc::get_mut(&mut self.shared).is_some();
        if slots.is_empty() || are_written_in_place {
            return;
        }
        let mut places = std::mem::take(&mut self.places);
        places.resize(self.slot_count(), Self::SHARED);
        let mut shared: Vec<u32> = slots.to_vec();
        shared.dedup();
        shared.retain(|&slot| places[slot as usize] == Self::SHARED);
        let first = self.own.len() / self.xbars.max(1);
        for (&slot, place) in shared.iter().zip(first as u32..) {
            places[slot as usize] = place;
        }
        let mut own = vec![0; self.own.len() + shared.len() * self.xbars];
        let (before, rows) = own.split_at_mut(self.own.len());
        before.copy_from_slice(&self.own);
        let rows = rows.par_chunks_mut(self.xbars.max(1)).zip(&shared).with_min_len(MIN_ROWS);
        rows.for_each(|(row, &slot)| {
            row.copy_from_slice(&self.shared[slot as usize * self.xbars..][..self.xbars]);
        });
        (self.own, self.places) = (own, places);
    }

    fn row_mut(&mut self, slot: u32) -> &mut [u8] {
        let slots = self.slot_count();
        let at = slot as usize * self.xbars;
        if self.places.is_empty() {
            // Ports that nobody else holds are written in place.
            if Arc::get_mut(&mut self.shared).is_some() {
                return &mut Arc::make_mut(&mut self.shared)[at..][..self.xbars];
            }
            self.places = vec![Self::SHARED; slots];
        }
        let place = &mut self.places[slot as usize];
        if *place == Self::SHARED {
            *place = (self.own.len() / self.xbars) as u32;
            self.own.extend_from_slice(&self.shared[at..at + self.xbars]);
        }
        let at = *place as usize * self.xbars;
        &mut self.own[at..at + self.xbars]
    }

    /// All ports, slot by slot, and within a slot by xbar.
    pub fn to_ports(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.entry_count());
        (0..self.slot_count() as u32).for_each(|slot| all.extend_from_slice(self.of_slot(slot)));
        all
    }

    /// All ports, slot by slot, and within a slot by xbar. If any are shared, all are copied first.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        if !self.places.is_empty() {
            *self = Self::from_ports(self.xbars, self.to_ports());
        }
        Arc::make_mut(&mut self.shared).as_mut_slice()
    }

    /// How many entries differ from other tables of the same size.
    pub fn changed_entries(&self, other: &Self) -> usize {
        let differ = |slot: u32| {
            let pairs = self.of_slot(slot).iter().zip(other.of_slot(slot));
            pairs.filter(|(one, other)| one != other).count()
        };
        (0..self.slot_count() as u32).map(differ).sum()
    }
}

impl PartialEq for Tables {
    fn eq(&self, other: &Self) -> bool {
        let same_size = self.xbars == other.xbars && self.entry_count() == other.entry_count();
        same_size && (0..self.slot_count() as u32).all(|slot| self.of_slot(slot) == other.of_slot(slot))
    }
}

impl Eq for Tables {}

/// The layer (InfiniBand: service level) that frames travel in, by the xbars of source and destination.
///
/// Frames in different layers have buffers of their own and cannot wait for each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layers {
    /// How many layers there are, at least 1.
    pub count: u8,
    /// The number of the first one; the others follow.
    pub first: u8,
    /// The layer of frames from xbar s to xbar d, counted from 0: `of[d * xbars + s]`, by destination as
    /// tables are. Empty if there is one layer only.
    of: Vec<u8>,
    xbars: usize,
}

impl Layers {
    /// The most layers. InfiniBand has so many service levels.
    pub const MAX: u8 = 16;

    /// Layers of which only one is used, layer 0.
    pub fn single() -> Self {
        Self::starting_at(0)
    }

    /// Layers of which only one is used, which has this number.
    pub fn starting_at(first: u8) -> Self {
        Self { count: 1, first, of: Vec::new(), xbars: 0 }
    }

    /// A layer for each pair of `xbars` xbars, counted from 0: `of[destination * xbars + source]`.
    pub fn by_destination(count: u8, first: u8, of: Vec<u8>, xbars: usize) -> Self {
        debug_assert_eq!(of.len(), xbars * xbars, "a layer for each pair");
        Self { count, first, of, xbars }
    }

    /// The layer of frames between two xbars, counted from 0.
    pub fn of(&self, source: u32, destination: u32) -> u8 {
        let at = destination as usize * self.xbars + source as usize;
        self.of.get(at).copied().unwrap_or_default()
    }

    /// Whether these layers fit a fabric of so many xbars.
    pub fn fit(&self, xbars: usize) -> bool {
        self.of.is_empty() || self.xbars == xbars && self.of.len() == xbars * xbars
    }

    /// The highest layer that any pair is in, counted from 0.
    pub fn highest(&self) -> u8 {
        self.of.iter().copied().max().unwrap_or_default()
    }

    /// The layer of frames between two xbars as frames carry it.
    pub fn service_level(&self, source: u32, destination: u32) -> u8 {
        self.first + self.of(source, destination)
    }
}
