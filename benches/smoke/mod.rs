//! Smoke runs, which only show that the benches work.

/// Whether each bench is to run only once. That is so with `cargo bench -- --test`, and with `cargo test`,
/// which does not pass `--bench`.
pub(crate) fn is_smoke_run() -> bool {
    let asks = |wanted: &str| std::env::args().any(|argument| argument == wanted);
    asks("--test") || !asks("--bench")
}
