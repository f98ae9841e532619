//! [`Bar`]: a progress bar on standard error, for work that takes long, on a terminal only.

use std::io::{self, IsTerminal};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use chimera::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// Work that is done sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);

/// A progress bar that appears after a moment and disappears when dropped.
pub(crate) struct Bar {
    shared: Arc<Shared>,
}

struct Shared {
    what: &'static str,
    unit: &'static str,
    started: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    /// A bar for `what`, such as "checking", of so many `unit`, such as "blocks"; `None` when standard error is no terminal.
    pub(crate) fn new(what: &'static str, unit: &'static str) -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let shared = Shared { what, unit, started: Instant::now(), bar: OnceLock::new() };
        Some(Self { shared: Arc::new(shared) })
    }

    /// What the library is to call with (done, of how much).
    pub(crate) fn callback(&self) -> Progress {
        let shared = Arc::clone(&self.shared);
        Arc::new(move |done, whole| shared.show(done, whole))
    }

    /// As [`callback`](Self::callback), of work that follows on other work. The bar of that disappears.
    pub(crate) fn callback_after(&self, earlier: &Self) -> Progress {
        let (show, earlier) = (self.callback(), Arc::clone(&earlier.shared));
        Arc::new(move |done, whole| {
            earlier.clear();
            show(done, whole);
        })
    }
}

impl Shared {
    fn show(&self, done: u64, whole: u64) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let of = format!("{{human_len}} {}", self.unit);
            let template = format!("{{msg}} [{{wide_bar}}] {{percent:>3}}% of {of}, {{eta}} left");
            let style = ProgressStyle::with_template(&template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ");
            ProgressBar::new(whole).with_style(style).with_message(self.what)
        });
        // Threads report in any order.
        bar.set_position(done.max(bar.position()));
    }

    fn clear(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.shared.clear();
    }
}
