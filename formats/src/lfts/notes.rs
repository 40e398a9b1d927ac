//! What a user should know of a dump that was read.

use mapper_fabric::wording::counted;

use crate::loaded::LineCount;

/// What was not as in the fabric, and is to be told.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) unknown_xbars: LineCount,
    pub(super) unknown_lids: LineCount,
    pub(super) unknown_guids: LineCount,
    pub(super) moved: LineCount,
    pub(super) own: LineCount,
}

impl Notes {
    pub(super) fn texts(&self) -> Vec<String> {
        let kinds = [
            (
                &self.unknown_xbars,
                "table of a switch that the fabric does not have is passed over",
                "tables of switches that the fabric does not have are passed over",
            ),
            (
                &self.unknown_lids,
                "row to a LID that the fabric does not have is passed over",
                "rows to LIDs that the fabric does not have are passed over",
            ),
            (
                &self.moved,
                "row is moved to the LID that its port GUID has in the fabric",
                "rows are moved to the LID that their port GUID has in the fabric",
            ),
            (
                &self.unknown_guids,
                "row has a port GUID that the fabric does not have, and counts by its LID",
                "rows have a port GUID that the fabric does not have, and count by their LID",
            ),
            (
                &self.own,
                "row leads a switch's own LID out of a port; it is passed over",
                "rows lead a switch's own LID out of a port; they are passed over",
            ),
        ];
        let text = |(LineCount { count, first_line }, one, many): (&LineCount, &str, &str)| {
            let first = if *count == 1 { "at line" } else { "the first at line" };
            format!("{} ({first} {first_line})", counted(*count, one, many))
        };
        kinds.into_iter().filter(|(count, ..)| count.count > 0).map(text).collect()
    }
}
