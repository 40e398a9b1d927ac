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
            // The plugin is a workspace of its own.
            let of_plugin = target.join("plugin");
            cargo(&["build", "--manifest-path", "opensm/plugin/Cargo.toml"], &of_plugin);
            // The program is built for its own test, and with the features that the whole workspace has: what `cargo
            // test --workspace` has made is taken, and the engines need not be compiled once more.
            cargo(&["test", "--workspace", "--no-run", "--test", "engine"], &target);
            Self {
                plugin: of_plugin.join("debug/libmapper_plugin.so"),
                engine: target.join("debug/mapper-opensm-engine"),
            }
        })
    }
}

/// Runs Cargo in the folder of the workspace, for this folder of what it makes.
fn cargo(arguments: &[&str], target: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments).args(["--quiet", "--locked"]);
    let status = cargo.arg("--target-dir").arg(target).status().unwrap();
    assert!(status.success(), "{arguments:?} fails");
}
