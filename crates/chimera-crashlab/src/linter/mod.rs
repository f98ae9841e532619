//! [`Linter`]: rules that a trace must keep whatever a crash would leave.
//!
//! - **A1**: every line that an operation dirtied is durable when it is acknowledged.
//! - **A2**: what a publishing store makes reachable is durable before it, or stored before it to its own
//!   line, and is not stored into afterwards, but in place, until it is withdrawn.
//! - **A3**: no lookup is acknowledged with data that another thread has not made durable.
//! - **A4**: no flush of a line without news, no fence without a flush.
//! - **A5**: the recorded steps add up to the memory as it is.
//!
//! When a process is killed, its operations are over without being acknowledged, and nothing waits for its
//! flushes. What it stored is still visible:
//!
//! - A1 asks the next process for its own stores only.
//! - A2 goes on: what was published by either process is reachable until it is withdrawn, and a store of the
//!   next process publishes nothing that the killed one stored and nobody made durable.
//! - A3: the killed process is another thread. A lookup does not return its stores before they are durable.
//! - A4: a line that it left without a fence has news.
//!
//! What a rule must know of a site is an attribute of the [`Site`].
//!
//! A1 to A3 hold for durability `Immediate`, which is what simulated media give.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use chimera_pmem::{Extent, Operation, Site};

use crate::media::Media;
use crate::simulated::{Event, Machine, Mark};

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lint {
    pub(crate) rule: &'static str,
    pub(crate) site: &'static str,
    pub(crate) what: String,
}

/// An operation that is under way.
struct Running {
    operation: Operation,
    /// Stores up to this number were made before it.
    begin: u32,
    /// Words, and the stores so far when they were read.
    reads: Vec<(std::ops::Range<u32>, u32)>,
}

#[derive(Default)]
struct Thread {
    running: Vec<Running>,
    flushes: u32,
}

/// What is reachable, through which word.
struct Published {
    words: std::ops::Range<u32>,
    by: u32,
    mask: u64,
}

/// See the module.
pub(crate) struct Linter {
    threads: BTreeMap<u8, Thread>,
    published: Vec<Published>,
    /// Announced; the store that does it comes next.
    announced: Vec<Extent>,
    /// Whether A4 is checked.
    counts: bool,
    found: Vec<Lint>,
}

impl Linter {
    /// `counts`: whether redundant flushes and fences are errors; not while mutants run.
    pub(crate) fn new(counts: bool) -> Self {
        Self {
            threads: BTreeMap::new(),
            published: Vec::new(),
            announced: Vec::new(),
            counts,
            found: Vec::new(),
        }
    }

    /// What was found.
    pub(crate) fn into_found(self) -> Vec<Lint> {
        self.found
    }

    fn report(&mut self, rule: &'static str, site: &'static str, what: String) {
        if !self.found.iter().any(|lint| lint.rule == rule && lint.site == site) {
            self.found.push(Lint { rule, site, what });
        }
    }

    /// Looks at a step before `media` takes it.
    pub(crate) fn step(&mut self, event: &Event, media: &Media) {
        match *event {
            Event::Begin { thread, operation } => {
                let begin = media.sequence();
                let running = Running { operation, begin, reads: Vec::new() };
                self.threads.entry(thread).or_default().running.push(running);
            }
            Event::Acknowledge { thread } => self.acknowledge(thread, media),
            Event::Read { first, count, thread } => {
                if let Some(running) = self.innermost(thread) {
                    running.reads.push((first..first + count, media.sequence()));
                }
            }
            Event::Reread { thread } => {
                if let Some(running) = self.innermost(thread) {
                    running.reads.clear();
                }
            }
            Event::Publish { depends_on, .. } => self.announced.push(depends_on),
            Event::Store { word, value, site, .. } => self.store(word, value, site, media),
            Event::Withdrawn { range } => {
                let words = words_of(range);
                self.published.retain(|published| !words.contains(&published.words.start));
            }
            Event::Flush { line, thread, site } => self.flush(line, thread, site, media),
            Event::Fence { thread, site } => {
                let thread = self.threads.entry(thread).or_default();
                let flushes = std::mem::take(&mut thread.flushes);
                if flushes == 0 && self.counts && !site.line_may_be_clean() {
                    self.report("A4", site.name(), "a fence with nothing to wait for".to_owned());
                }
            }
            Event::Mark(Mark::Killed) => {
                self.threads.clear();
                self.announced.clear();
            }
            Event::Decided
            | Event::MapFresh { .. }
            | Event::File(_)
            | Event::Mark(_)
            | Event::History(_) => {}
        }
    }

    fn innermost(&mut self, thread: u8) -> Option<&mut Running> {
        self.threads.entry(thread).or_default().running.last_mut()
    }

    fn acknowledge(&mut self, thread: u8, media: &Media) {
        let Some(ended) = self.threads.entry(thread).or_default().running.pop() else { return };
        if let Some(store) = media.pending_since(thread, ended.begin) {
            let what = format!(
                "{:?} is acknowledged while its store to word {} is not durable",
                ended.operation, store.word
            );
            self.report("A1", store.site.name(), what);
        }
        if ended.operation != Operation::Get {
            return;
        }
        for (words, read) in ended.reads {
            if let Some(store) = media.pending_in(words, read)
                && store.thread != thread
                && !store.site.is_unread()
                && !store.site.is_deferred()
            {
                let what = format!("a lookup returns word {}, which is not durable", store.word);
                self.report("A3", store.site.name(), what);
            }
        }
    }

    /// What a store to `word` makes reachable is durable before it, or reaches media with it.
    fn publish(&mut self, depends_on: Extent, word: u32, site: Site, media: &Media) {
        if let Some(store) = media.pending_without(words_of(depends_on), word) {
            let what = format!(
                "what it makes reachable is not durable: word {} of {}",
                store.word,
                store.site.name()
            );
            self.report("A2", site.name(), what);
        }
    }

    fn store(&mut self, word: u32, value: u64, site: Site, media: &Media) {
        let old = media.stored(word);
        for announced in std::mem::take(&mut self.announced) {
            self.publish(announced, word, site, media);
            let news = value & !old;
            // The upper half of a checked word is its check.
            let low = news & u64::from(u32::MAX);
            let mask = if low == 0 { news } else { low };
            self.published.push(Published { words: words_of(announced), by: word, mask });
        }
        // Withdrawn only once a crash does not bring it back.
        self.published.retain(|published| {
            let is_withdrawn = |now: u64| now & published.mask != published.mask;
            let now = if published.by == word { value } else { media.stored(published.by) };
            !(is_withdrawn(now) && is_withdrawn(media.durable.peek(published.by)))
        });
        let is_published = self.published.iter().any(|published| published.words.contains(&word));
        if is_published && value != old && !site.is_in_place() {
            let what = format!("a store to word {word}, which is reachable");
            self.report("A2", site.name(), what);
        }
    }

    fn flush(&mut self, line: u32, thread: u8, site: Site, media: &Media) {
        self.threads.entry(thread).or_default().flushes += 1;
        if self.counts && !site.line_may_be_clean() && !media.has_news(line) {
            self.report("A4", site.name(), format!("line {line} is flushed without news"));
        }
    }

    /// A5, at the end of a trace.
    pub(crate) fn compare(&mut self, media: &Media, working: &Machine) {
        let differs = |word: &u32| media.stored(*word) != working.peek(*word);
        if let Some(word) = (0..working.len() as u32).find(differs) {
            let what = format!("word {word} was changed by nobody");
            self.report("A5", "", what);
        }
    }
}

fn words_of(extent: Extent) -> std::ops::Range<u32> {
    (extent.offset() / 8) as u32..extent.end().div_ceil(8) as u32
}
