//! What a daemon says of the objects that it has in the kernel, as text for a person.

use std::fmt::{self, Write as _};

use mapper_fabric::wording::plural;

/// Writes how often others changed what a daemon has in the kernel, and what the kernel refuses it.
pub(super) fn write_put_right(text: &mut String, put_right: u64, troubles: &[String]) -> fmt::Result {
    if put_right > 0 {
        writeln!(
            text,
            "  {} put right in the kernel, as others had changed them",
            plural(put_right, "object")
        )?;
    }
    troubles.iter().try_for_each(|trouble| writeln!(text, "  the kernel: {trouble}"))
}
