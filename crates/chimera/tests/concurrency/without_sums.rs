//! Gets that verify no sums: what keeps them from torn values is that the page stays the same, and that the record
//! is live when it was read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chimera::baselines::RecordLayout;
use chimera::{Durability, Geometry, Options, VerifyReads};
use tempfile::TempDir;

use crate::at_once;
use crate::tools::{Chance, SMALL, assert_sound, key, open, scratch, scratch_on_disk, small_with};

const KEYS: u64 = 4;

/// A value of so many words, each of which is `number`, but for the first one, which is updated in place.
fn value(number: u64, words: usize) -> Vec<u8> {
    let mut value = number.to_le_bytes().repeat(words);
    value[..8].fill(0);
    value
}

/// Asserts that all words but the first one are alike.
fn assert_whole(found: &[u8]) {
    let (words, rest) = found.as_chunks::<8>();
    assert!(rest.is_empty() && words.len() > 1, "{} bytes", found.len());
    let number = u64::from_le_bytes(words[1]);
    assert!(
        words[1..].iter().all(|word| u64::from_le_bytes(*word) == number),
        "a torn value: {words:x?}"
    );
}

/// Writers put, delete, update and add; readers look for values that are not whole. Values have so many
/// words, or few.
fn no_value_is_torn(options: &Options, words: Option<usize>) {
    let words_of = |chance: u64| words.unwrap_or(2 + chance as usize % 12);
    none_is_torn_in(&scratch(), options, words_of, 25_000);
}

/// As [`no_value_is_torn`], in this directory, with values of the lengths that follow from a chance.
fn none_is_torn_in(
    directory: &TempDir,
    options: &Options,
    words_of: impl Fn(u64) -> usize + Sync,
    steps: u64,
) {
    let options = options.clone().verify_reads(VerifyReads::Never).scrub_every(None);
    let db = open(directory.path(), &options);
    let (writers, over) = (2, AtomicU64::new(0));
    at_once(writers + 2, |thread| {
        let (mut session, mut chance) = (db.session(), Chance::new(thread));
        if thread >= writers {
            while over.load(Ordering::Acquire) < writers {
                let number = chance.below(KEYS);
                session.get_with(key(number), assert_whole).expect("nothing is damaged");
                let keys = [key(number), key(0), key(1)];
                let check = |_, found: Option<&[u8]>| found.into_iter().for_each(assert_whole);
                session.multi_get_with(&keys, check).expect("nothing is damaged");
            }
            return;
        }
        for step in 0..steps {
            let key = key(chance.below(KEYS));
            let number = thread << 32 | step;
            match chance.below(10) {
                0 => drop(session.delete(&key).expect("a delete")),
                1..4 => drop(session.fetch_add_u64(&key, 0, 1).expect("an addition")),
                4 => {
                    let all = |old: &mut Vec<u8>| *old = value(number, old.len() / 8);
                    session.update(&key, all).expect("an update");
                }
                _ => {
                    let value = value(number, words_of(chance.word()));
                    session.put(&key, &value).expect("room");
                }
            }
        }
        over.fetch_add(1, Ordering::Release);
    });
    assert_sound(&db);
}

fn reclaimed() -> Options {
    small_with(SMALL).populate_ahead_bytes(8 << 10).reclaim_percent(20)
}

/// One record to a page, so that a place is used again soon.
#[test]
fn values_of_one_size_are_whole() {
    no_value_is_torn(&reclaimed().fixed_size(8, 104), Some(13));
}

#[test]
fn values_of_the_published_layout_are_whole() {
    let options = reclaimed().viper(|viper| viper.layout(RecordLayout::Published));
    no_value_is_torn(&options.fixed_size(8, 104), Some(13));
}

#[test]
fn values_of_any_size_are_whole() {
    no_value_is_torn(&reclaimed(), None);
}

/// In several chunks, which lie in pages whose versions no reader looks at.
#[test]
fn spilled_values_are_whole() {
    no_value_is_torn(&reclaimed(), Some(200));
}

/// A journal leaves in a block what was there before, so chunks come to lie where a reader may still copy a record that
/// needed a block with a few others.
#[test]
fn large_and_spilled_values_on_a_plain_file_are_whole() {
    let geometry = Geometry { pages_per_block: 8, segment_bytes: 64 << 10, ..SMALL };
    let group = Durability::Group { max_delay: Duration::from_millis(50) };
    let options = small_with(geometry).reclaim_percent(20).durability(group);
    // Of 60 words a block has four records; 300 words are spilled.
    let words_of = |chance: u64| [60, 60, 60, 300][chance as usize % 4];
    none_is_torn_in(&scratch_on_disk(), &options, words_of, 20_000);
}
