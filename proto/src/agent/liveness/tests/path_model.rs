//! One path against a simple model of it.

use super::*;
use crate::agent::liveness::path::{Due, Pace, Path, State};

const PACE: Pace = Pace { interval: Duration::from_millis(20), misses: 3 };

/// What becomes of a check, or of the timer before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Answered,
    AnsweredLate,
    Lost,
    /// The timer before it comes 30 ms late, and the check is lost.
    Overslept,
}

const FATES: [Fate; 4] = [Fate::Answered, Fate::AnsweredLate, Fate::Lost, Fate::Overslept];

/// All that a path's state may depend on, kept in the plainest way.
#[derive(Debug)]
struct Model {
    /// Silence that this host was awake for, in milliseconds.
    silent_ms: u64,
    checks: u32,
    down: bool,
    answers: u32,
    /// Whether it has answered since it was last said to be down.
    has_answered: bool,
}

/// Runs one path through these fates, and holds it against the model.
fn run(fates: &[Fate], jittered_ms: u64) {
    let mut path = Path::new(ms(0), PathUse::default(), ms(0));
    let mut model = Model { silent_ms: 0, checks: 0, down: false, answers: 0, has_answered: true };
    let mut now = ms(0);
    let mut late_answer: Option<Instant> = None;
    let peer = Mac::from_position(1);
    let hear = |path: &mut Path, model: &mut Model, now| {
        model.answers += 1;
        let up = model.down && model.answers == PACE.misses;
        assert_eq!(path.hear(now, peer, PACE), Some(up), "{fates:?}: {model:?}");
        model.down &= !up;
        (model.silent_ms, model.checks, model.has_answered) = (0, 0, true);
    };
    for &fate in fates {
        if let Some(at) = late_answer.take_if(|at| *at <= path.due_at) {
            now = now.max(at);
            hear(&mut path, &mut model, now);
        }
        let due_at = path.due_at.max(now);
        model.silent_ms += due_at.since(now).as_millis() as u64;
        now = if fate == Fate::Overslept { due_at + Duration::from_millis(30) } else { due_at };
        if model.down && model.checks > 0 {
            model.answers = 0;
        }
        let must_fall = model.has_answered && model.silent_ms >= 60 && model.checks >= PACE.misses;
        let due = path.fire(now, PACE, Duration::from_millis(jittered_ms));
        // No xbar ever answers here, so what was told once is no news.
        let is_news = must_fall && !model.down;
        assert_eq!(due == Due::Down, is_news, "{fates:?}: {model:?}");
        if must_fall {
            (model.down, model.answers, model.has_answered) = (true, 0, false);
        }
        if !is_news {
            model.checks += 1;
            match fate {
                Fate::Answered => hear(&mut path, &mut model, now),
                Fate::AnsweredLate => late_answer = Some(now + Duration::from_millis(12)),
                Fate::Lost | Fate::Overslept => {}
            }
        }
        let is_waiting = model.has_answered && model.checks > 1;
        assert_eq!(path.state() == State::Down, model.down && !is_waiting, "{fates:?}: {model:?}");
        assert!(path.due_at.since(now) <= PACE.interval, "it is never left alone");
    }
}

#[test]
fn a_path_falls_when_silent_for_the_whole_time_and_never_else() {
    // All lives of seven checks, after a prefix that has brought the path to the brink or below.
    let prefixes: [&[Fate]; 3] = [&[], &[Fate::Lost; 11], &[Fate::Lost; 14]];
    for prefix in prefixes {
        for life in 0..FATES.len().pow(7) {
            let fate = |n: u32| FATES[life / FATES.len().pow(n) % FATES.len()];
            let fates: Vec<_> = prefix.iter().copied().chain((0..7).map(fate)).collect();
            for jittered_ms in [15, 18] {
                run(&fates, jittered_ms);
            }
        }
    }
}
