//! Notes that several commands print.

use std::path::Path;

/// What `--switch-destinations` does not do.
pub(super) const SWITCH_PAIRS: &str = "--switch-destinations: the proof is of routes to and from switches too; quality counts routes between hosts";

/// A note that begins with the file that it is about.
pub(super) fn named(path: &Path, note: &str) -> String {
    format!("{}: {note}", path.display())
}
