//! [`Progress`]: what goes on, for who watches.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on the standard error stream, if that is a terminal. It is drawn between phases
/// only: nothing disturbs what is timed.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar of `steps` steps.
    pub fn new(steps: usize) -> Self {
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// The next step begins.
    pub fn step(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.inc(1);
        self.bar.force_draw();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
