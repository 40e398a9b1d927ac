//! Tables filled xbar by xbar, as dumps and switches have them.

use rayon::prelude::*;

use super::Tables;

/// Xbars whose ports are put in at once. Those of a slot lie side by side in [`Tables`], so that single ones would each take a
/// line of the cache.
const XBARS: usize = 64;
/// The least number of slots for which a thread is worth its cost.
const MIN_SLOTS: usize = 1024;

/// Fills [`Tables`] one xbar after another.
pub struct ByXbar {
    tables: Tables,
    slots: usize,
    /// Xbars that are not in `tables` yet, and their ports by slot, xbar by xbar.
    xbars: Vec<u32>,
    ports: Vec<u8>,
}

impl ByXbar {
    /// Begins with tables that lead nowhere.
    pub fn new(xbars: usize, slots: usize) -> Self {
        Self { tables: Tables::empty(xbars, slots), slots, xbars: Vec::new(), ports: Vec::new() }
    }

    /// Begins the table of an xbar, which leads nowhere yet. What was said of that xbar before is forgotten.
    ///
    /// # Panics
    /// If there is no such xbar.
    pub fn begin(&mut self, xbar: u32) {
        assert!((xbar as usize) < self.tables.xbar_count(), "xbar {xbar} has a table");
        if self.xbars.len() == XBARS {
            self.put_in();
        }
        self.xbars.push(xbar);
        self.ports.resize(self.xbars.len() * self.slots, Tables::NONE);
    }

    /// Sets the port of a slot at the xbar that was begun last.
    ///
    /// # Panics
    /// If none was, or there is no such slot.
    pub fn set(&mut self, slot: u32, port: u8) {
        let begun = self.ports.len().saturating_sub(self.slots);
        self.ports[begun..][slot as usize] = port;
    }

    /// The tables, all xbars in them.
    pub fn finish(mut self) -> Tables {
        self.put_in();
        self.tables
    }

    fn put_in(&mut self) {
        let all = self.tables.xbar_count();
        let rows = self.tables.as_mut_slice().par_chunks_mut(all.max(1)).enumerate().with_min_len(MIN_SLOTS);
        rows.for_each(|(slot, row)| {
            for (&xbar, ports) in self.xbars.iter().zip(self.ports.chunks_exact(self.slots)) {
                row[xbar as usize] = ports[slot];
            }
        });
        self.xbars.clear();
        self.ports.clear();
    }
}
