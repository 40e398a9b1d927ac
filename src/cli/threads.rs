//! How many threads a command that computes takes.

use super::CliError;

/// Calls `run` with `threads` threads for parallel work, or with one thread a core.
pub(super) fn on_threads<T: Send>(
    threads: Option<u16>,
    run: impl FnOnce() -> Result<T, CliError> + Send,
) -> Result<T, CliError> {
    match threads {
        None => run(),
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build();
            pool.map_err(|error| format!("cannot start {threads} threads: {error}"))?.install(run)
        }
    }
}
