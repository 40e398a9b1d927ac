//! Runs that only show that benches work.

/// Whether each bench is to run once only: `cargo bench -- --test`, and `cargo test`, which does not say that it
/// benches.
pub(crate) fn is_smoke_run() -> bool {
    let asks = |wanted: &str| std::env::args().any(|argument| argument == wanted);
    asks("--test") || !asks("--bench")
}
