//! [`Findings`]: what was found damaged, when a store is opened or its free space is rebuilt.

/// What was found damaged.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) damages: u64,
    /// The first damage by position.
    pub(super) first: Option<(u64, &'static str)>,
}

impl Findings {
    pub(super) fn damage(&mut self, at: u64, what: &'static str) {
        self.damages += 1;
        if self.first.is_none_or(|(first, _)| at < first) {
            self.first = Some((at, what));
        }
    }

    /// Logs all of it together.
    pub(super) fn say(&self) {
        if let Some((at, what)) = self.first {
            let count = self.damages;
            log::error!("damage was found {count} times, first at byte {at}: {what}");
        }
    }
}
