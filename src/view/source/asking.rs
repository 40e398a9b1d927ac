//! Asks several agents at once.

use std::path::Path;
use std::time::Instant;

use mapper_daemon::agent::status::{AgentRequest, requests_socket_path};
use mapper_machine::status;
use serde::de::DeserializeOwned;

/// What an agent answers to a request in JSON of at most `max_bytes`, if it does so in time.
pub(super) fn ask<T: DeserializeOwned>(
    run_dir: &Path,
    unit: u8,
    request: &AgentRequest,
    (deadline, max_bytes): (Instant, usize),
) -> Option<T> {
    let question = status::ask::<T>(requests_socket_path(run_dir, unit)).ok()??;
    let question = question.request(request).ok()?;
    question.answer_json(deadline, max_bytes, "what an agent was asked for").ok()
}

/// Does the same with each of `all`, all at once, and gives what comes of it in their order. Each has a thread of its own, so that an
/// agent that hangs takes no time from the others: answers may be too long for what a socket holds, and those have to be read as
/// they come.
pub(super) fn at_once<T: Sync, R: Send>(all: &[T], ask: impl Fn(&T) -> Option<R> + Sync) -> Vec<Option<R>> {
    let ask = &ask;
    std::thread::scope(|threads| {
        let start = |it| std::thread::Builder::new().spawn_scoped(threads, move || ask(it)).ok();
        let asked: Vec<_> = all.iter().map(start).collect();
        asked.into_iter().map(|thread| thread?.join().ok()?).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn all_are_asked_before_the_first_answers() {
        let all_asked = Barrier::new(3);
        let answers = at_once(&[1, 2, 3], |&number| {
            all_asked.wait();
            (number != 2).then_some(number * 10)
        });
        assert_eq!(answers, [Some(10), None, Some(30)]);
    }
}
