//! [`Mutation`]: one persistence step made wrong, to see whether anybody notices.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use chimera_pmem::Site;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _};

use super::event::Event;

/// How a step is made wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MutationKind {
    /// Its lines are not flushed.
    DropFlush,
    /// The first line of a range is not flushed, where there are several.
    ShortenFlushFront,
    /// The last line of a range is not flushed, where there are several.
    ShortenFlushBack,
    /// Its lines are flushed only after the thread's next fence.
    DelayFlush,
    /// Its fence is left out.
    DropFence,
    /// Its fence waits until after the thread's next flush.
    DelayFence,
    /// Its store goes before the thread's last fence: what it makes reachable may not be durable.
    AdvanceStore,
    /// A check, comparison or step of recovery is left out.
    Skip,
}

impl MutationKind {
    const ALL: [Self; 8] = [
        Self::DropFlush,
        Self::ShortenFlushFront,
        Self::ShortenFlushBack,
        Self::DelayFlush,
        Self::DropFence,
        Self::DelayFence,
        Self::AdvanceStore,
        Self::Skip,
    ];

    /// What a site must have done for the mutation to make a difference.
    pub(crate) fn of_step(step: &str) -> &'static [Self] {
        match step {
            "flush" => &[Self::DropFlush, Self::DelayFlush],
            "flush of several lines" => &[Self::ShortenFlushFront, Self::ShortenFlushBack],
            "fence" => &[Self::DropFence, Self::DelayFence],
            "publish" => &[Self::AdvanceStore],
            "skip" => &[Self::Skip],
            _ => &[],
        }
    }
}

impl fmt::Display for MutationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DropFlush => "drop-flush",
            Self::ShortenFlushFront => "shorten-flush-front",
            Self::ShortenFlushBack => "shorten-flush-back",
            Self::DelayFlush => "delay-flush",
            Self::DropFence => "drop-fence",
            Self::DelayFence => "delay-fence",
            Self::AdvanceStore => "advance-store",
            Self::Skip => "skip",
        })
    }
}

/// One persistence step made wrong, everywhere it is made. As text: what is done to it, and its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub(crate) struct Mutation {
    pub(crate) kind: MutationKind,
    /// Name of the site.
    pub(crate) site: &'static str,
}

impl Mutation {
    pub(crate) fn skipped_step(self) -> Option<&'static str> {
        (self.kind == MutationKind::Skip).then_some(self.site)
    }
}

impl FromStr for Mutation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a mutation, such as `drop-fence vpage.record`");
        let (kind, site) = text.split_once(' ').ok_or_else(wrong)?;
        let named = |one: &&MutationKind| one.to_string() == kind;
        let kind = *MutationKind::ALL.iter().find(named).ok_or_else(wrong)?;
        // Names of sites are constants of the program; there are few others.
        Ok(Self { kind, site: Box::leak(site.to_owned().into_boxed_str()) })
    }
}

// By hand: derived, a name that is `'static` could only be read from text that is.
impl<'de> Deserialize<'de> for Mutation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl From<Mutation> for String {
    fn from(mutation: Mutation) -> Self {
        mutation.to_string()
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.site)
    }
}

/// Applies a mutation to the steps as they are recorded.
#[derive(Debug, Default)]
pub(crate) struct Mutator {
    mutation: Option<Mutation>,
    /// Steps held back.
    held: Vec<Event>,
}

impl Mutator {
    pub(crate) fn new(mutation: Option<Mutation>) -> Self {
        Self { mutation, held: Vec::new() }
    }

    /// Forgets what is held back.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
    }

    /// The lines of a range that are flushed.
    pub(crate) fn lines(&self, lines: Range<u64>, site: Site) -> Range<u64> {
        let several = lines.end - lines.start > 1;
        match self.mutation {
            Some(mutation) if several && mutation.site == site.name() => match mutation.kind {
                MutationKind::ShortenFlushFront => lines.start + 1..lines.end,
                MutationKind::ShortenFlushBack => lines.start..lines.end - 1,
                _ => lines,
            },
            _ => lines,
        }
    }

    /// Appends `event` to `events`, or does something wrong.
    pub(crate) fn push(&mut self, events: &mut Vec<Event>, event: Event) {
        let Some(mutation) = self.mutation else { return events.push(event) };
        let is_site = |site: Site| site.name() == mutation.site;
        match (mutation.kind, event) {
            (MutationKind::DropFlush, Event::Flush { site, .. })
            | (MutationKind::DropFence, Event::Fence { site, .. })
                if is_site(site) => {}
            (MutationKind::DelayFlush, Event::Flush { site, .. })
            | (MutationKind::DelayFence, Event::Fence { site, .. })
                if is_site(site) =>
            {
                self.held.push(event);
            }
            (MutationKind::DelayFlush, Event::Fence { thread, .. })
            | (MutationKind::DelayFence, Event::Flush { thread, .. }) => {
                events.push(event);
                self.release(events, thread);
            }
            (
                MutationKind::AdvanceStore,
                Event::Store { thread, site, .. } | Event::Publish { thread, site, .. },
            ) if is_site(site) => {
                // Not out of its operation, and not past a store to the same word by anyone.
                let place = events.iter().rposition(|before| match (before, event) {
                    (Event::Fence { thread: of, .. } | Event::Begin { thread: of, .. }, _) => {
                        *of == thread
                    }
                    (Event::Mark(_), _) => true,
                    (Event::Store { word: of, .. }, Event::Store { word, .. }) => *of == word,
                    _ => false,
                });
                let is_fence = |at: &usize| matches!(events[*at], Event::Fence { .. });
                events.insert(place.filter(is_fence).unwrap_or(events.len()), event);
            }
            _ => events.push(event),
        }
    }

    fn release(&mut self, events: &mut Vec<Event>, thread: u8) {
        let is_thread = |event: &mut Event| match event {
            Event::Flush { thread: of, .. } | Event::Fence { thread: of, .. } => *of == thread,
            _ => false,
        };
        events.extend(self.held.extract_if(.., is_thread));
    }
}
