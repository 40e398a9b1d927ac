//! Gives memory that is not needed any more back to the system.
#![allow(unsafe_code, reason = "no safe crate offers malloc_trim")]

/// Gives back what was freed in the middle of the heap, which the allocator would keep for ever. An
/// exploration may need a hundred times the memory of its map, and a daemon runs for months. Takes about a
/// millisecond.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it touches nothing but the allocator's own free memory, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
