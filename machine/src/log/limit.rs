//! Limits how many lines of each kind are written in a minute.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::SUPPRESSED;

/// How long lines are counted before the count begins again.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// How many lines of one kind are written in a window at most.
const LINES_PER_WINDOW: u32 = 60;
/// How many characters of a line that was not written are remembered, as an example of its kind.
const MAX_LIKE_CHARS: usize = 100;

/// The kind of a line: the place in the program that it comes from, as file and line.
type Kind = (&'static str, u32);

/// Counts lines by kind. There are only as many kinds as there are places in the program that log.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    windows: Mutex<BTreeMap<Kind, Window>>,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    written: u32,
    suppressed: u64,
    like: String,
}

/// Lines of one kind that were not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Suppressed {
    /// How many lines there were.
    pub(super) lines: u64,
    /// The last of them.
    pub(super) like: String,
}

impl Limiter {
    /// Whether a line of this kind may be written now. `like` is called only if not.
    fn allows(&self, now: Instant, kind: Kind, like: impl FnOnce() -> String) -> bool {
        let mut windows = self.lock();
        let fresh = Window { began: now, written: 0, suppressed: 0, like: String::new() };
        let window = windows.entry(kind).or_insert(fresh);
        if now.saturating_duration_since(window.began) >= WINDOW {
            window.began = now;
            window.written = 0;
        }
        let allowed = window.written < LINES_PER_WINDOW;
        if allowed {
            window.written += 1;
        } else {
            window.suppressed += 1;
            window.like = like();
        }
        allowed
    }

    /// The lines that were not written in windows that are over. Each is told only once.
    pub(super) fn take_suppressed(&self, now: Instant) -> Vec<Suppressed> {
        let mut windows = self.lock();
        let over = windows
            .values_mut()
            .filter(|w| w.suppressed > 0 && now.saturating_duration_since(w.began) >= WINDOW);
        let told = over.map(|window| Suppressed {
            lines: std::mem::take(&mut window.suppressed),
            like: std::mem::take(&mut window.like),
        });
        told.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Kind, Window>> {
        // A thread that panicked while it held the lock left the counts consistent.
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kind_of(metadata: &Metadata<'static>) -> Kind {
    (metadata.file().unwrap_or_else(|| metadata.target()), metadata.line().unwrap_or(0))
}

/// Formats a line as `inner` does, or leaves it empty if there were too many of its kind.
#[derive(Debug)]
pub(super) struct Limited<F> {
    pub(super) inner: F,
    pub(super) limiter: Arc<Limiter>,
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let unlimited = *metadata.level() == Level::TRACE || metadata.target() == SUPPRESSED;
        if unlimited || self.limiter.allows(Instant::now(), kind_of(metadata), || message_of(event)) {
            self.inner.format_event(context, writer, event)
        } else {
            Ok(())
        }
    }
}

/// The words of an event, without its fields.
fn message_of(event: &Event<'_>) -> String {
    struct Message(String);
    impl Visit for Message {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            if field.name() == "message" {
                self.0 = format!("{value:?}").chars().take(MAX_LIKE_CHARS).collect();
            }
        }
    }
    let mut message = Message(String::new());
    event.record(&mut message);
    message.0
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;
    use crate::options::LogFormat;
    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::prelude::*;

    const KIND: Kind = ("a.rs", 1);

    #[test]
    fn so_many_lines_of_a_kind_a_minute_and_then_it_is_said_how_many_were_not_written() {
        let limiter = Limiter::default();
        let start = Instant::now();
        let allows = |now, kind| limiter.allows(now, kind, || "like this".to_owned());
        let written = (0..200).filter(|_| allows(start, KIND)).count();
        assert_eq!(written, LINES_PER_WINDOW as usize);
        assert!(allows(start, ("a.rs", 2)), "another kind");
        assert!(limiter.take_suppressed(start).is_empty(), "not before the minute is over");
        let later = start + WINDOW;
        assert_eq!(limiter.take_suppressed(later), [Suppressed { lines: 140, like: "like this".to_owned() }]);
        assert!(limiter.take_suppressed(later).is_empty(), "once");
        assert!(allows(later, KIND));
    }

    #[test]
    fn lines_that_a_new_minute_overtakes_are_still_told() {
        let limiter = Limiter::default();
        let start = Instant::now();
        for _ in 0..=LINES_PER_WINDOW {
            limiter.allows(start, KIND, String::new);
        }
        limiter.allows(start + WINDOW, KIND, String::new);
        assert_eq!(limiter.take_suppressed(start + 2 * WINDOW)[0].lines, 1);
    }

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Written {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_flood_of_one_kind_leaves_room_for_others_in_both_formats() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let written = Written::default();
            let limiter = Arc::new(Limiter::default());
            let sink = super::super::sink(format, false, written.clone(), &limiter);
            tracing::subscriber::with_default(tracing_subscriber::registry().with(vec![sink]), || {
                for number in 0..1000 {
                    tracing::warn!(number, "flood");
                }
                tracing::warn!("drop");
            });
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.lines().count(), LINES_PER_WINDOW as usize + 1);
            assert!(text.lines().last().unwrap().contains("drop"), "{text}");
            if format == LogFormat::Json {
                let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
                assert_eq!((&line["message"], &line["level"]), (&"flood".into(), &"WARN".into()));
            }
            let kind = limiter.take_suppressed(Instant::now() + WINDOW).remove(0);
            assert_eq!((kind.lines, kind.like.as_str()), (1000 - u64::from(LINES_PER_WINDOW), "flood"));
        }
    }
}
