//! The entries of forwarding tables that OpenSM dumps, and the entries of our tables to compare with them.

use std::collections::BTreeMap;

use mapper_routing::{Subnet, Tables};

/// The out port for each GUID of an xbar and LID.
pub(crate) type Entries = BTreeMap<(u64, u32), u8>;

/// The entries of a dump of forwarding tables (`opensm-lfts.dump`).
pub(crate) fn entries(dump: &str) -> Entries {
    let mut guid = 0;
    let mut entries = Entries::new();
    for line in dump.lines() {
        if let Some((_, rest)) = line.split_once(" guid 0x").filter(|_| line.starts_with("Unicast lids")) {
            guid = u64::from_str_radix(&rest[..16], 16).unwrap();
        } else if line.starts_with("0x") {
            let mut words = line.split_ascii_whitespace();
            let lid = u32::from_str_radix(&words.next().unwrap()[2..], 16).unwrap();
            entries.insert((guid, lid), words.next().unwrap().parse().unwrap());
        }
    }
    entries
}

/// The entries of our tables. As in OpenSM's, an xbar sends to itself by its port 0.
pub(crate) fn of_tables(subnet: &Subnet, tables: &Tables) -> Entries {
    let mut entries = Entries::new();
    for (xbar, &guid) in (0..).zip(&subnet.xbar_guids) {
        for slot in 0..subnet.destinations.slot_count() as u32 {
            let own = subnet.destinations.slot_of_xbar(xbar) == slot;
            let port = if own { 0 } else { tables.port(xbar, slot) };
            if port != Tables::NONE {
                entries.insert((guid, subnet.destinations.lid(slot)), port);
            }
        }
    }
    entries
}

/// Fails with the first entries that differ.
pub(crate) fn assert_same(ours: &Entries, theirs: &Entries, what: &str) {
    let keys = ours.keys().chain(theirs.keys().filter(|key| !ours.contains_key(key)));
    let differ: Vec<_> = keys.filter(|key| ours.get(key) != theirs.get(key)).collect();
    let show = |key: &&(u64, u32)| {
        format!("{:#x} to LID {}: {:?}, theirs {:?}", key.0, key.1, ours.get(*key), theirs.get(*key))
    };
    let first: Vec<_> = differ.iter().take(8).map(show).collect();
    assert!(!theirs.is_empty(), "{what}: OpenSM dumped nothing");
    assert!(differ.is_empty(), "{what}: {} of {} differ:\n{}", differ.len(), theirs.len(), first.join("\n"));
}
