//! What all daemons let their user set, and how a configuration file is read.
//!
//! Options that agents, nodes and crossbars have alike are one type a group, flattened into each of their
//! types; with the defaults they make a [`ServiceConfig`].

mod file;
mod keys_of_file;
mod service_config;
mod shared;
mod values;

pub use file::{ConfigFileError, read_file_or_dir, read_if_there, read_toml};
pub use keys_of_file::FileOptions;
pub use service_config::{LogOptions, ServiceConfig, ZeroDestination, changed_keys};
pub use shared::{FrameKeys, LogKeys, MetricsKeys, ProcessKeys, Shared};
pub use values::{Bounded, EtherType, LogFormat, LogLevel, MetricsAddress, Text, one_or_more};

use std::path::PathBuf;

/// Where status sockets are, unless the user says otherwise.
pub const DEFAULT_RUN_DIR: &str = "/run/mapper";
/// The environment variable that overrides [`DEFAULT_RUN_DIR`].
pub const RUN_DIR_VARIABLE: &str = "MAPPER_RUN_DIR";

/// The run directory that holds where neither command line nor file names one.
pub fn default_run_dir() -> PathBuf {
    std::env::var_os(RUN_DIR_VARIABLE).map_or_else(|| DEFAULT_RUN_DIR.into(), PathBuf::from)
}
