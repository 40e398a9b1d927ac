//! Memory that is not needed any more, given back to the system.
#![allow(unsafe_code, reason = "no safe crate offers malloc_trim")]

/// Gives back what was freed in the middle of the heap, which the allocator else keeps for ever: an exploration may
/// need a hundred times what its map does, and a daemon runs for months. Takes about a millisecond.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches nothing but the allocator's own free memory, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
