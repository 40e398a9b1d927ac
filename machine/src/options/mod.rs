//! The options that all daemons have, and how a configuration file is read.
//!
//! The options that agents, nodes and crossbars share come in groups. Each group is one type, which is
//! flattened into the options of each kind of daemon. With all defaults filled in they make a
//! [`ServiceConfig`].

mod acm_keys;
mod data_path;
mod file;
mod keys_of_file;
mod plan_keys;
mod service_config;
mod shared;
mod values;
mod wrong_line;

pub use acm_keys::{AcmKeys, ServerMode};
pub use data_path::DataPathChoice;
pub use file::{ConfigFileError, read_file_or_dir, read_if_there, read_toml};
pub use keys_of_file::FileOptions;
pub use plan_keys::{OnChange, ParseOnChangeError, PlanKeys};
pub use service_config::{LogOptions, ServiceConfig, ZeroDestination, changed_keys};
pub use shared::{FrameKeys, LogKeys, MetricsKeys, ProcessKeys, Shared};
pub use values::{Bounded, EtherType, LogFormat, LogLevel, MetricsAddress, Text, one_or_more};

use std::path::PathBuf;

/// The directory of status sockets, unless the user names another.
pub const DEFAULT_RUN_DIR: &str = "/run/mapper";
/// The environment variable that overrides [`DEFAULT_RUN_DIR`].
const RUN_DIR_VARIABLE: &str = "MAPPER_RUN_DIR";

/// The run directory if neither command line nor file names one.
pub fn default_run_dir() -> PathBuf {
    std::env::var_os(RUN_DIR_VARIABLE).map_or_else(|| DEFAULT_RUN_DIR.into(), PathBuf::from)
}
