//! Models of [`VersionLock`].

use std::sync::Arc;

use loom::thread;

use super::VersionLock;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::under_loom::model;

/// Two words that belong together, as those of a record do: changed by relaxed stores under the lock.
#[derive(Default)]
struct Pair {
    lock: VersionLock,
    words: [AtomicU64; 2],
}

impl Pair {
    fn write(&self) {
        let environment = model::environment();
        let _guard = self.lock.lock(&*environment);
        for word in &self.words {
            // Not one step: a second holder would be noticed.
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Reads the words, and writes them if nobody was at them meanwhile.
    fn write_if_unchanged(&self) -> bool {
        let Some(version) = self.lock.read_begin() else { return false };
        let words = [1, 0].map(|number| self.words[number].load(Ordering::Relaxed));
        let Some(_guard) = self.lock.word().upgrade(version) else { return false };
        assert_eq!(words[0], words[1], "words of two writers");
        for word in &self.words {
            // What was read before the lock was taken must still be right.
            word.store(words[0] + 1, Ordering::Relaxed);
        }
        true
    }

    /// The words, if nobody was at them meanwhile.
    fn read(&self) -> Option<[u64; 2]> {
        let version = self.lock.read_begin()?;
        let words = [1, 0].map(|number| self.words[number].load(Ordering::Relaxed));
        self.lock.read_is_valid(version).then_some(words)
    }
}

#[test]
fn loom_readers_see_the_words_of_one_writer() {
    model::check(3, || {
        let pair = Arc::new(Pair::default());
        let writer = thread::spawn({
            let pair = pair.clone();
            move || {
                pair.write();
                pair.write();
            }
        });
        let mut last = 0;
        for _ in 0..2 {
            if let Some([second, first]) = pair.read() {
                assert_eq!(first, second, "words of two writers");
                assert!(first >= last, "back in time");
                last = first;
            }
        }
        writer.join().expect("no panic");
        assert_eq!(pair.read(), Some([2, 2]));
    });
}

#[test]
fn loom_writers_exclude_each_other() {
    model::check(3, || {
        let pair = Arc::new(Pair::default());
        let writers = [(); 2].map(|()| {
            let pair = pair.clone();
            thread::spawn(move || pair.write())
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        assert_eq!(pair.read(), Some([2, 2]));
    });
}

#[test]
fn loom_a_reader_between_two_writers() {
    model::check(2, || {
        let pair = Arc::new(Pair::default());
        let writers = [(); 2].map(|()| {
            let pair = pair.clone();
            thread::spawn(move || pair.write())
        });
        if let Some([second, first]) = pair.read() {
            assert_eq!(first, second, "words of two writers");
        }
        for writer in writers {
            writer.join().expect("no panic");
        }
    });
}

#[test]
fn loom_what_was_read_before_an_upgrade_is_right() {
    model::check(3, || {
        let pair = Arc::new(Pair::default());
        let writers = [(); 2].map(|()| {
            let pair = pair.clone();
            thread::spawn(move || u64::from(pair.write_if_unchanged()))
        });
        pair.write();
        let written: u64 = writers.into_iter().map(|writer| writer.join().expect("no panic")).sum();
        assert_eq!(pair.read(), Some([written + 1; 2]), "a change is lost");
    });
}
