//! Finds out whether standard output was closed when this process began.
//!
//! If it was closed (`>&-`), Rust's runtime opens `/dev/null` in its place before `main`, and results would
//! be lost without an error. So a function looks at it earlier, when libraries are initialised.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether standard output was closed when [`look`] ran.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed when this process began, so that nothing can be written there.
pub(super) fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    // SAFETY: this call reads the flags of a file descriptor, which need not be open, and changes nothing.
    #[expect(unsafe_code, reason = "rustix asks only of descriptors that are open")]
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions that are called once each before `main`, on the only thread
// there is. This one needs nothing that is initialised later: it makes a system call and stores a flag.
#[expect(unsafe_code, reason = "there is no other way to run before Rust's runtime")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
