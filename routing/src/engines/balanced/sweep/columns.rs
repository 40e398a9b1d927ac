//! A target's entries while they are chosen. They are grouped by xbar, whereas tables are grouped by slot.

use super::LANES;
use crate::Tables;

/// The entries of an xbar, by slot.
pub(super) type Column = [u8; LANES];

/// No entries.
pub(super) const EMPTY: Column = [Tables::NONE; LANES];

/// How many xbars are written at once.
const STRIP: usize = 32;

/// The entries of all xbars. Xbars whose entries are the same may have one column together.
pub(super) struct Columns {
    columns: Vec<Column>,
    /// For each xbar the number of its column.
    of_xbar: Vec<u32>,
}

impl Columns {
    pub(super) fn new(xbars: usize) -> Self {
        Self { columns: vec![EMPTY], of_xbar: vec![0; xbars] }
    }

    /// Forgets all entries.
    pub(super) fn clear(&mut self) {
        self.columns.truncate(1);
        self.of_xbar.fill(0);
    }

    /// The entries of an xbar.
    pub(super) fn of(&self, xbar: u32) -> &Column {
        &self.columns[self.of_xbar[xbar as usize] as usize]
    }

    /// Gives an xbar entries of its own. Others that had a column together with it keep theirs.
    pub(super) fn put(&mut self, xbar: u32, column: Column) {
        self.of_xbar[xbar as usize] = self.columns.len() as u32;
        self.columns.push(column);
    }

    /// Gives an xbar the entries of another.
    pub(super) fn share(&mut self, xbar: u32, of: u32) {
        self.of_xbar[xbar as usize] = self.of_xbar[of as usize];
    }

    /// Writes all entries as rows, one a slot.
    pub(super) fn write(&self, lanes: usize, rows: &mut [u8]) {
        let xbars = self.of_xbar.len();
        for (strip, of_xbar) in self.of_xbar.chunks(STRIP).enumerate() {
            let one = of_xbar.iter().all(|of| *of == of_xbar[0]);
            let mut columns = [&self.columns[of_xbar[0] as usize]; STRIP];
            for (column, &of) in columns.iter_mut().zip(of_xbar) {
                *column = &self.columns[of as usize];
            }
            for lane in 0..lanes {
                let row = &mut rows[lane * xbars + strip * STRIP..][..of_xbar.len()];
                if one {
                    row.fill(columns[0][lane]);
                } else {
                    row.iter_mut().zip(&columns).for_each(|(entry, column)| *entry = column[lane]);
                }
            }
        }
    }
}
