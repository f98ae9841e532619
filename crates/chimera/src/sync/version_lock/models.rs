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
    fn write(&self, mark: bool) {
        let environment = model::environment();
        let mut guard = self.lock.lock(&*environment);
        for word in &self.words {
            // Not one step: a second holder would be noticed.
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        guard.set_mark(mark);
    }

    /// The words and the mark, if nobody was at them meanwhile.
    fn read(&self) -> Option<([u64; 2], bool)> {
        let version = self.lock.read_begin()?;
        let words = [1, 0].map(|number| self.words[number].load(Ordering::Relaxed));
        self.lock.read_is_valid(version).then(|| (words, VersionLock::is_marked(version)))
    }
}

#[test]
fn loom_readers_see_the_words_of_one_writer() {
    model::check(3, || {
        let pair = Arc::new(Pair::default());
        let writer = thread::spawn({
            let pair = pair.clone();
            move || {
                pair.write(false);
                pair.write(true);
            }
        });
        let mut last = 0;
        for _ in 0..2 {
            if let Some(([second, first], mark)) = pair.read() {
                assert_eq!(first, second, "words of two writers");
                assert!(first >= last, "back in time");
                assert_eq!(mark, first == 2, "the mark of another version");
                last = first;
            }
        }
        writer.join().expect("no panic");
        assert_eq!(pair.read(), Some(([2, 2], true)));
    });
}

#[test]
fn loom_writers_exclude_each_other() {
    model::check(3, || {
        let pair = Arc::new(Pair::default());
        let writers = [(); 2].map(|()| {
            let pair = pair.clone();
            thread::spawn(move || pair.write(false))
        });
        for writer in writers {
            writer.join().expect("no panic");
        }
        assert_eq!(pair.read(), Some(([2, 2], false)));
    });
}

#[test]
fn loom_a_reader_between_two_writers() {
    model::check(2, || {
        let pair = Arc::new(Pair::default());
        let writers = [(); 2].map(|()| {
            let pair = pair.clone();
            thread::spawn(move || pair.write(false))
        });
        if let Some(([second, first], _)) = pair.read() {
            assert_eq!(first, second, "words of two writers");
        }
        for writer in writers {
            writer.join().expect("no panic");
        }
    });
}
