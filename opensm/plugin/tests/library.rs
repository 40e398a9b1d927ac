//! A test of the library as Cargo has built it for this test. Tests with OpenSM load the same one.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

/// The name by which OpenSM looks up what a plugin does.
const ENTRY: &[u8] = b"\0osm_event_plugin\0";

#[test]
fn the_library_has_the_entry_that_opensm_looks_up() {
    if !mapper_needs::file("/usr/include/infiniband/opensm/osm_opensm.h") {
        return;
    }
    let library = std::env::current_exe().unwrap().with_file_name("libmapper_plugin.so");
    let bytes = fs::read(&library).unwrap();
    assert!(bytes.windows(ENTRY.len()).any(|name| name == ENTRY), "{}", library.display());
}
