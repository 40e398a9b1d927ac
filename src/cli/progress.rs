//! What a command is at, for who waits at a terminal longer than a second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Who gets the answer sooner sees nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the time that has passed is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// A bar on standard error, if that is a terminal, until it is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    /// Hangs up when the command is done.
    running: Option<Sender<()>>,
    showing: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins; the bar is full after so many steps.
    pub(super) fn new(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:30} {msg}, {elapsed}");
        // A template that could not be read would leave the default style, and be none the worse.
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let (running, ended) = mpsc::channel();
        let shown = bar.clone();
        let show = move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Draws nothing unless standard error is a terminal.
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        };
        // Where no thread can be had, the command does without a bar.
        let showing = thread::Builder::new().name("progress".to_owned()).spawn(show).ok();
        Self { bar, running: Some(running), showing }
    }

    /// Says what is done next.
    pub(super) fn begin(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// A step is done.
    pub(super) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(showing) = self.showing.take() {
            // It draws, and holds nothing that its panic could leave half done.
            let _ = showing.join();
        }
        self.bar.finish_and_clear();
    }
}
