//! A bar on the terminal that shows the progress of a command that takes longer than a second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long a command may take before the bar is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the time that has passed is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// A bar on standard error, if that is a terminal, until it is dropped.
pub(super) struct Progress {
    bar: ProgressBar,
    /// The sender of a channel whose end tells the thread that draws that the command is done.
    running: Option<Sender<()>>,
    showing: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins a bar that is full after `steps` steps.
    pub(super) fn new(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:30} {msg}, {elapsed}");
        // If the template could not be read, the bar would have the default style, which serves as well.
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let (running, ended) = mpsc::channel();
        let shown = bar.clone();
        let show = move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // This target draws nothing unless standard error is a terminal.
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(TICK);
            }
        };
        // If no thread can be made, the command runs without a bar.
        let showing = thread::Builder::new().name("progress".to_owned()).spawn(show).ok();
        Self { bar, running: Some(running), showing }
    }

    /// Shows what the command does next.
    pub(super) fn begin(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// Moves the bar on by a step that is done.
    pub(super) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(showing) = self.showing.take() {
            // The thread only draws, so a panic of it leaves nothing half done.
            let _ = showing.join();
        }
        self.bar.finish_and_clear();
    }
}
