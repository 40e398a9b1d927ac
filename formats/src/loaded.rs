//! What readers make of files about a subnet: tables, service levels, hops, lists of nodes.

/// What a file says of a subnet, and what a user should know of how it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded<T> {
    /// What the file says.
    pub found: T,
    /// What a user should know: what was passed over, discarded, moved or is missing.
    pub notes: Vec<String>,
}

/// How many lines of a file are of one kind, and the first of them.
#[derive(Debug, Default)]
pub(super) struct LineCount {
    pub(super) count: u64,
    pub(super) first_line: usize,
}

impl LineCount {
    /// Counts the line of this number.
    pub(super) fn add(&mut self, line: usize) {
        self.add_all(&Self { count: 1, first_line: line });
    }

    /// Adds the lines of a later part of the file.
    pub(super) fn add_all(&mut self, later: &Self) {
        if self.count == 0 {
            self.first_line = later.first_line;
        }
        self.count += later.count;
    }
}
