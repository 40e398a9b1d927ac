//! What identifies an xbar from one file of a fabric to the next.

use mapper_proto::map::Xbar;

/// The first of the tags that xbars without a GUID in a file get by position. No generator uses them.
pub const INVENTED_TAGS: u64 = 0x0600_0000_0000_0000;

/// What identifies an xbar: its tag, unless a reader invented it for want of a GUID.
pub fn identity(xbar: &Xbar) -> Option<u64> {
    xbar.tag.filter(|tag| tag >> 32 != INVENTED_TAGS >> 32)
}
