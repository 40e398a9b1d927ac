//! Which entries of tables a change changes, by name.

use mapper_fabric::names::Names;
use mapper_proto::map::Fabric;
use mapper_routing::tables::SlotEnd;
use serde_json::{Value, json};

use crate::consequences::Routed;
use crate::consequences::entries::ChangedEntry;

/// The most entries that are listed as JSON, of all tables together, and in text.
const MOST_ENTRIES: usize = 10_000;
const MOST_SHOWN: usize = 8;

/// The table of an xbar of which entries change.
#[derive(Debug)]
struct Table {
    xbar: u32,
    changed: usize,
    /// The first of these entries; none once too many are listed of all tables together.
    entries: Vec<ChangedEntry>,
}

/// Tables of which entries change, those with the most first.
#[derive(Debug)]
pub(super) struct ChangedTables(Vec<Table>);

impl ChangedTables {
    /// What differs between a fabric before a change and after it; `None` if either has no tables.
    pub(super) fn of(before: &Routed, after: &Routed) -> Option<Self> {
        let counts = after.changed_by_xbar(before)?;
        let mut tables: Vec<(u32, usize)> = (0..).zip(counts).filter(|&(_, count)| count > 0).collect();
        tables.sort_by_key(|&(xbar, count)| (std::cmp::Reverse(count), xbar));
        let mut left = MOST_ENTRIES;
        let table = |(xbar, changed): (u32, usize)| {
            let entries = after.changed_of(before, xbar, left);
            left -= entries.len();
            Table { xbar, changed, entries }
        };
        Some(Self(tables.into_iter().map(table).collect()))
    }

    /// How many entries change.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|table| table.changed).sum()
    }

    /// All tables that change, and their entries as far as there are not too many.
    pub(super) fn json(&self, fabric: &Fabric) -> Value {
        let xbar = |xbar: u32| fabric.xbars.get(xbar as usize).map(|label| label.name.as_str());
        let host = |host: u32| fabric.hosts.get(host as usize).map(|label| label.name.as_str());
        let to = |end: SlotEnd| match end {
            SlotEnd::Host { host: number, .. } => host(number),
            SlotEnd::Xbar(number) => xbar(number),
        };
        let entry = |entry: &ChangedEntry| json!({ "to": to(entry.to), "was": entry.was, "now": entry.now });
        let table = |table: &Table| {
            let entries: Vec<Value> = table.entries.iter().map(entry).collect();
            json!({ "xbar": xbar(table.xbar), "changed": table.changed, "entries": entries })
        };
        json!(self.0.iter().map(table).collect::<Vec<_>>())
    }

    /// The tables that change most, and the first entries of the first, a line each.
    pub(super) fn lines(&self, names: &Names) -> Vec<String> {
        let tables = self.0.iter().take(MOST_SHOWN);
        let mut said: Vec<String> =
            tables.map(|table| format!("{} {}", names.xbar(table.xbar), table.changed)).collect();
        if self.0.len() > MOST_SHOWN {
            said.push("..".to_owned());
        }
        let Some(first) = self.0.first() else { return Vec::new() };
        let port =
            |port: Option<u8>| port.map_or_else(|| "nowhere".to_owned(), |port| format!("port {port}"));
        let to = |end: SlotEnd| match end {
            SlotEnd::Host { host, .. } => names.host(host),
            SlotEnd::Xbar(xbar) => names.xbar(xbar),
        };
        let entry = |entry: &ChangedEntry| {
            let (was, now) = (port(entry.was), port(entry.now));
            format!("{} to {}: {was} before, {now} after", names.xbar(first.xbar), to(entry.to))
        };
        let tables = format!("of {}", said.join(", "));
        let mut lines: Vec<String> =
            [tables].into_iter().chain(first.entries.iter().take(MOST_SHOWN).map(entry)).collect();
        if self.count() > MOST_SHOWN {
            lines.push("and so on; --format json lists them".to_owned());
        }
        lines
    }
}
