//! The doc comment of [`Host`](super::Host) is its contract: all that changes a host must be named there.

/// The source of all methods of a host.
const SOURCES: [&str; 10] = [
    include_str!("../host.rs"),
    include_str!("carriers.rs"),
    include_str!("ending.rs"),
    include_str!("heal.rs"),
    include_str!("kernel.rs"),
    include_str!("paths.rs"),
    include_str!("resolution.rs"),
    include_str!("sounding.rs"),
    include_str!("tables.rs"),
    include_str!("tap_mtu.rs"),
];

/// The public methods that change a host.
fn changing() -> Vec<&'static str> {
    let methods = SOURCES.iter().flat_map(|source| source.split("    pub fn ").skip(1));
    let named = methods.filter_map(|method| method.split_once('('));
    named.filter(|(_, rest)| rest.trim_start().starts_with("&mut self")).map(|(name, _)| name).collect()
}

#[test]
fn all_that_changes_a_host_is_named_in_its_contract() {
    let changing = changing();
    assert!(changing.contains(&"handle_frame") && changing.contains(&"set_mtu"), "{changing:?}");
    let is_named = |name: &&str| {
        name.starts_with("handle_")
            || name.starts_with("poll_")
            || SOURCES[0].contains(&format!("[`Self::{name}`]"))
    };
    let missing: Vec<_> = changing.into_iter().filter(|name| !is_named(name)).collect();
    assert!(missing.is_empty(), "the doc comment of Host does not name {missing:?}");
}
