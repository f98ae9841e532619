//! [`judge`]: what a damaged store may show, and the [`Allowance`]s for what a format cannot tell.

use std::collections::BTreeSet;

use super::harm::{Act, Harm, Unit};
use super::history::{Contents, Write};
use super::image::{JOURNAL, SEGMENT, SUPERBLOCK};
use super::life::Subject;
use super::look::{Seen, Step, View, Way};

/// What a format cannot tell, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Allowance {
    /// The word of a value that is updated in place changes by itself, so no check can cover it: the value differs in this
    /// word alone.
    UncheckedWord,
    /// The published layout is that of the paper, and has no check of a record, of a bit or of an item: anything in blocks.
    PublishedLayout,
    /// A killed session leaves the end of its last page or run as a crash in the middle of a record does. So damage
    /// there looks as if the last records had never been complete: the last writes of a session, and no others. A session of
    /// Viper that ends seals its page; the next session goes on with the run of a log.
    OpenTail,
    /// A part of a killed store that is as it was at an earlier moment of the same store is right by all of its own checks. A
    /// store that is open has no sum over all parts, which would change with each write. A value is one that the key had.
    OlderPart,
    /// A record of a closed store that lies where an older one of the same key lay, and is as it was then. What is kept of
    /// a closed store sums up keys and places: a sum over versions would have to know what each overwrite replaces.
    OlderValue,
    /// Both copies of the superblock are as they were at an earlier moment of the same store. They alone say that the store was
    /// closed, and what it held then.
    OlderSuperblock,
    /// The end of the journal of a killed store looks as if a crash had cut it off: the store as a whole is as it was behind
    /// an earlier write that was not known to be durable.
    JournalEnd,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All is there, and nobody says otherwise.
    Unharmed,
    /// This step was the first to say that something is wrong.
    Noticed(Step),
    Allowed(Allowance),
    Violation(String),
}

/// Judges what a store showed.
pub(super) fn judge(subject: &Subject, harm: &Harm, way: Way, seen: &Seen) -> Verdict {
    if let Some(what) = seen.says_more.as_ref().filter(|_| harm.is_told_by_its_places()) {
        return Verdict::Violation(format!("damage at one place is told of twice: {what}"));
    }
    let mut allowed = None;
    for view in &seen.views {
        if let (Some(key), None) = (&view.twice, &seen.noticed) {
            return Verdict::Violation(tell(subject, way, view, key));
        }
        let keys: BTreeSet<_> = subject.history.now.keys().chain(view.found.keys()).collect();
        for key in keys {
            let (found, expected) = (view.found.get(key), subject.history.now.get(key));
            if found == expected || view.refused.contains(key) {
                continue;
            }
            if let Some(allowance) = allowance(subject, harm, view, key) {
                allowed = Some(allowance);
            } else if !is_told(subject, way, seen, view, key) {
                return Verdict::Violation(tell(subject, way, view, key));
            }
        }
    }
    match (&seen.noticed, allowed) {
        (Some((step, _)), _) => Verdict::Noticed(*step),
        (None, Some(allowance)) => Verdict::Allowed(allowance),
        (None, None) => Verdict::Unharmed,
    }
}

/// Whether a difference that nothing allows is no violation. An export that succeeds has everything, whatever else was said.
/// What is salvaged is something that the store once held, and the report says that more is left out.
fn is_told(subject: &Subject, way: Way, seen: &Seen, view: &View, key: &[u8]) -> bool {
    if way == Way::Salvage {
        return seen.has_losses && subject.history.had(key, view.found.get(key));
    }
    seen.noticed.is_some() && view.step != Step::Export
}

fn allowance(subject: &Subject, harm: &Harm, view: &View, key: &[u8]) -> Option<Allowance> {
    let (history, found) = (&subject.history, view.found.get(key));
    if let (Some(word), Some(expected), Some(found)) =
        (history.unchecked_word(key), history.now.get(key), found)
        && differ_in_word(expected, found, word)
    {
        return Some(Allowance::UncheckedWord);
    }
    let is_in_segment = harm.touches(subject, SEGMENT);
    if is_in_segment && !subject.shape.abilities().finds_damage {
        return Some(Allowance::PublishedLayout);
    }
    if !history.had(key, found) {
        return None;
    }
    let is_older = harm.kind.act == Act::Older;
    if is_older && harm.kind.unit == Unit::File && harm.touches(subject, SUPERBLOCK) {
        return Some(Allowance::OlderSuperblock);
    }
    if subject.is_closed {
        let has_value = found.is_some() && history.now.contains_key(key);
        let is_allowed = is_older && has_value && subject.overwrites_places();
        return is_allowed.then_some(Allowance::OlderValue);
    }
    if is_in_segment && is_in_tail(subject, key) {
        return Some(Allowance::OpenTail);
    }
    if harm.touches(subject, JOURNAL) && is_cut_off(subject, &view.found) {
        return Some(Allowance::JournalEnd);
    }
    is_older.then_some(Allowance::OlderPart)
}

/// Whether values of one length are the same but for one word.
fn differ_in_word(expected: &[u8], found: &[u8], word: usize) -> bool {
    let (start, end) = (8 * word, 8 * word + 8);
    expected.len() == found.len()
        && expected.len() >= end
        && expected[..start] == found[..start]
        && expected[end..] == found[end..]
}

/// Whether one of the last writes of a session that had not ended is of this key.
fn is_in_tail(subject: &Subject, key: &[u8]) -> bool {
    let history = &subject.history;
    history.writes.iter().enumerate().any(|(number, write)| {
        let is_later = |later: &&Write| {
            later.session == write.session
                && subject.is_record(later)
                && subject.is_large(later) == subject.is_large(write)
        };
        write.key == key
            && !subject.is_sealed(write)
            && history.writes[number + 1..].iter().filter(is_later).count()
                < subject.tail(subject.is_large(write))
    })
}

/// Whether the store is as it was behind a write that was not known to be durable.
fn is_cut_off(subject: &Subject, found: &Contents) -> bool {
    let history = &subject.history;
    let first = if subject.place.is_immediate() {
        history.writes.len().saturating_sub(1)
    } else {
        history.synced
    };
    subject.place.has_journal() && history.held(found, first)
}

fn tell(subject: &Subject, way: Way, view: &View, key: &[u8]) -> String {
    let (history, found) = (&subject.history, view.found.get(key));
    let what = match (history.now.get(key), found) {
        _ if view.twice.as_deref() == Some(key) => "comes twice",
        (Some(_), None) => "is missing",
        (None, Some(_)) if history.had(key, found) => "is back",
        (Some(_), Some(_)) if history.had(key, found) => "has an older value",
        _ => "has a value that nobody wrote",
    };
    let number = u64::from_le_bytes(key[..8].try_into().unwrap_or_default());
    let how = format!("{way:?}, {:?}", view.step).to_lowercase();
    format!("key {number} {what} without a word ({how})")
}
