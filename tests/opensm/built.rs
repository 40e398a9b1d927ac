//! OpenSM's plugin and the program that computes for it, which no build of the other tests makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The plugin and the program that computes for it.
pub(crate) struct Built {
    pub(crate) plugin: PathBuf,
    pub(crate) engine: PathBuf,
}

impl Built {
    /// Builds both, once for all tests.
    pub(crate) fn get() -> &'static Self {
        static BUILT: OnceLock<Built> = OnceLock::new();
        BUILT.get_or_init(|| {
            let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
            // They are built for tests of their own, and with the features that the whole workspace has: what `cargo test
            // --workspace` has made is taken, and the engines need not be compiled once more.
            let tests = ["--test", "engine", "--test", "library"];
            cargo(&[&["test", "--workspace", "--no-run"][..], &tests].concat());
            Self {
                plugin: target.join("debug/deps/libmapper_plugin.so"),
                engine: target.join("debug/mapper-opensm-engine"),
            }
        })
    }
}

/// Runs Cargo in the folder of the workspace.
fn cargo(arguments: &[&str]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).args(["--quiet", "--locked"]);
    assert!(cargo.status().unwrap().success(), "{arguments:?} fails");
}
