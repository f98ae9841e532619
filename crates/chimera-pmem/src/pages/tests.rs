use super::*;
use crate::mapping::{Sharing, Source};

const PAGE: u64 = 4096;
const PAGES: u64 = 64;

/// Private pages of a file, and what readers of the file see.
struct Mapped {
    pages: Pages,
    file: std::fs::File,
}

impl Mapped {
    fn new() -> Self {
        use std::os::fd::AsFd;
        let file = tempfile::tempfile().unwrap();
        file.set_len(PAGES * PAGE).unwrap();
        let memory = Reservation::new(1 << 30).unwrap();
        let sharing = Sharing::Private;
        let source = Source::File { file: file.as_fd(), offset: 0, sharing, read_only: false };
        memory.map(0, (PAGES * PAGE) as usize, source).unwrap();
        let pages = Pages::new(Arc::new(memory));
        pages.add(PAGES * PAGE).unwrap();
        Self { pages, file }
    }

    fn store(&self, at: u64, value: u64) {
        self.pages.begin_store(at, 8, |_| panic!("nobody is in the way"));
        self.word(at).store(value, Ordering::Relaxed);
        self.pages.end_store(at, 8);
    }

    /// Calls `during` while somebody stores.
    fn during_store<T>(&self, at: u64, length: u64, during: impl FnOnce() -> T) -> T {
        self.pages.begin_store(at, length, |_| std::thread::yield_now());
        let done = during();
        self.pages.end_store(at, length);
        done
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        &self.pages.words(at / PAGE)[(at % PAGE / 8) as usize]
    }

    fn load(&self, at: u64) -> u64 {
        self.word(at).load(Ordering::Relaxed)
    }

    /// Writes to the file, as a checkpoint does.
    fn write(&self, at: u64, value: u64) {
        std::os::unix::fs::FileExt::write_all_at(&self.file, &value.to_le_bytes(), at).unwrap();
    }

    /// Gives back what can be of the pages, all entries up to `reached` being written back. How many bytes.
    fn give_back(&self, pages: Range<u64>, reached: u64) -> u64 {
        let mut content = vec![0; ((pages.end - pages.start) * PAGE) as usize];
        let at = pages.start * PAGE;
        std::os::unix::fs::FileExt::read_exact_at(&self.file, &mut content, at).unwrap();
        let before = self.pages.given_bytes();
        self.pages.give_back(pages.start, &content, reached, Backing::Mapped);
        self.pages.given_bytes() - before
    }
}

#[test]
fn pages_are_counted_by_their_first_store() {
    let mapped = Mapped::new();
    assert_eq!(mapped.pages.private_bytes(), 0);
    for at in [8, 16, PAGE, 5 * PAGE - 8, 8] {
        mapped.store(at, 1);
    }
    assert_eq!(mapped.pages.private_bytes(), 3 * PAGE);
    mapped.during_store(10 * PAGE - 8, 2 * PAGE, || ());
    assert_eq!(mapped.pages.private_bytes(), 6 * PAGE, "a store to several pages");
    mapped.during_store(20 * PAGE, 0, || ());
    assert_eq!(mapped.pages.private_bytes(), 6 * PAGE, "a store to none");
}

#[test]
fn a_page_whose_content_is_in_the_file_is_given_back_and_shows_the_file() {
    let mapped = Mapped::new();
    for page in 0..4 {
        mapped.store(page * PAGE + 8, 7);
        mapped.write(page * PAGE + 8, 7);
    }
    assert_eq!(mapped.give_back(0..4, 0), 4 * PAGE);
    assert_eq!(mapped.pages.private_bytes(), 0);
    assert_eq!(mapped.load(2 * PAGE + 8), 7);
    mapped.write(2 * PAGE + 8, 9);
    assert_eq!(mapped.load(2 * PAGE + 8), 9, "memory is the page of the file");
    mapped.store(2 * PAGE + 16, 1);
    mapped.write(2 * PAGE + 8, 10);
    assert_eq!(mapped.load(2 * PAGE + 8), 9, "memory has a copy again");
    assert_eq!(mapped.pages.private_bytes(), PAGE);
}

#[test]
fn a_page_that_the_file_does_not_have_stays() {
    let mapped = Mapped::new();
    for page in 0..4 {
        mapped.store(page * PAGE, 7);
        mapped.write(page * PAGE, 7);
    }
    // Stored to, and not written back: whether it was flushed or not.
    mapped.store(2 * PAGE - 8, 8);
    assert_eq!(mapped.give_back(0..4, 0), 3 * PAGE, "each page by itself");
    assert_eq!(mapped.load(2 * PAGE - 8), 8);
    assert_eq!(mapped.pages.private_bytes(), PAGE);
}

#[test]
fn a_page_of_a_pending_entry_stays() {
    let mapped = Mapped::new();
    let last = 4 * PAGE;
    for at in [0, last] {
        mapped.store(at, 7);
        mapped.write(at, 7);
    }
    mapped.pages.name(last - 64, 128, 1000);
    for reached in [0, 992] {
        assert!(!mapped.pages.may_give_back(4, reached));
        assert_eq!(mapped.give_back(4..5, reached), 0, "pending at {reached}");
    }
    assert!(mapped.pages.may_give_back(0, 0), "another page");
    assert!(mapped.pages.may_give_back(4, 1000));
    assert_eq!(mapped.give_back(4..5, 1000), PAGE);
}

#[test]
fn positions_are_compared_around_the_end_of_their_low_bits() {
    let mapped = Mapped::new();
    let round = POSITION_UNIT << 32;
    mapped.store(0, 7);
    for (position, reached, is_pending) in [
        (round + 8, round - 8, true),
        (round + 8, round + 8, false),
        (round - 8, round + 8, false),
        (PENDING_BYTES_MAX, 0, true),
        (8, 8 + 3 * PENDING_BYTES_MAX, false),
    ] {
        mapped.pages.name(0, 8, position);
        let may = mapped.pages.may_give_back(0, reached);
        assert_eq!(may, !is_pending, "{position}, {reached}");
    }
}

#[test]
fn a_page_that_somebody_stores_to_stays() {
    let mapped = Mapped::new();
    mapped.store(0, 7);
    mapped.write(0, 7);
    let given = mapped.during_store(8, 8, || mapped.give_back(0..1, 0));
    assert_eq!(given, 0);
    assert_eq!(mapped.give_back(0..1, 0), PAGE);
}

#[test]
fn a_page_is_left_as_it_was_by_a_look_at_it() {
    let mapped = Mapped::new();
    mapped.store(0, 7);
    assert_eq!(mapped.give_back(0..1, 0), 0);
    mapped.store(8, 8);
    mapped.write(0, 7);
    mapped.write(8, 8);
    assert_eq!(mapped.give_back(0..1, 0), PAGE);
}

#[test]
fn pages_that_were_discarded_are_clean() {
    let mapped = Mapped::new();
    for page in 0..4 {
        mapped.store(page * PAGE, 7);
    }
    mapped.pages.discarded(PAGE - 8..3 * PAGE + 8);
    assert_eq!(mapped.pages.private_bytes(), 2 * PAGE, "whole pages only");
}

#[test]
fn where_nothing_is_mapped_clean_pages_show_what_is_written_to_the_file() {
    let mapped = Mapped::new();
    mapped.store(PAGE, 7);
    mapped.pages.show(PAGE - 64, &[1; 128]);
    let one = u64::from_le_bytes([1; 8]);
    assert_eq!((mapped.load(PAGE - 64), mapped.load(PAGE - 8)), (one, one));
    assert_eq!((mapped.load(PAGE), mapped.load(PAGE + 8)), (7, 0), "it has stores of its own");
    assert_eq!(mapped.load(PAGE - 72), 0);
    mapped.store(0, 3);
    assert_eq!(mapped.pages.private_bytes(), 2 * PAGE, "the page is free for writers again");
}

/// Threads store while pages are written to the file and given back, again and again.
#[test]
fn no_store_is_lost_while_pages_go() {
    let mapped = Mapped::new();
    let (rounds, rounds_max) = (3000, 3_000_000);
    let is_done = AtomicBool::new(false);
    let last = std::thread::scope(|scope| {
        let writers = [0, 8].map(|lane| {
            let mapped = &mapped;
            scope.spawn(move || {
                for round in 1..=rounds_max {
                    let at = (round % 4) * PAGE + lane;
                    let store = || mapped.word(at).store(round, Ordering::Relaxed);
                    mapped.during_store(at, 8, store);
                    assert_eq!(mapped.load(at), round, "a store is lost");
                    if round > rounds {
                        if mapped.pages.given_bytes() > 0 {
                            return round;
                        }
                        // The pages have been busy so far.
                        std::thread::yield_now();
                    }
                }
                rounds_max
            })
        });
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                for at in (0..4).flat_map(|page| [page * PAGE, page * PAGE + 8]) {
                    // Of a clean page, this is what is there already.
                    mapped.write(at, mapped.load(at));
                }
                mapped.give_back(0..4, 0);
                std::thread::yield_now();
            }
        });
        let ended = writers.map(std::thread::ScopedJoinHandle::join);
        is_done.store(true, Ordering::Relaxed);
        let [last, _] = ended.map(Result::unwrap);
        last
    });
    for round in last - 3..=last {
        assert_eq!(mapped.load((round % 4) * PAGE), round);
    }
    assert!(mapped.pages.given_bytes() > 0);
}

#[test]
fn clean_pages_are_let_go_of_and_others_stay() {
    let mapped = Mapped::new();
    for page in 0..4 {
        mapped.write(page * PAGE, 7 + page);
        assert_eq!(mapped.load(page * PAGE), 7 + page);
    }
    mapped.store(2 * PAGE, 1);
    mapped.during_store(3 * PAGE, 8, || mapped.pages.forget_clean(0..PAGES * PAGE));
    assert_eq!([0, 1, 2, 3].map(|page| mapped.load(page * PAGE)), [7, 8, 1, 10]);
    mapped.store(0, 3);
    assert_eq!(mapped.pages.private_bytes(), 3 * PAGE, "pages are free for writers again");
}

/// Positions have 31 bits of words here, an entry of others the bit above them.
#[test]
fn who_named_a_page_is_known_until_that_is_written_back_in_any_round_of_the_bits() {
    let mapped = Mapped::new();
    let pages = &mapped.pages;
    mapped.store(0, 1);
    let round = POSITION_UNIT << 31;
    for start in [0, round - 16, round, 5 * round - 8, (5 * round) + (round / 2)] {
        pages.name(0, 8, start + 8);
        pages.name_beside_new(8, 8, start + 16, start);
        assert!(pages.is_named_by_others(0, start), "{start}");
        assert!(!pages.is_named_by_others(0, start + 16), "{start}");
        assert!(!pages.may_give_back(0, start) && pages.may_give_back(0, start + 16), "{start}");
        pages.name_beside_new(8, 8, start + 24, start + 16);
        assert!(!pages.is_named_by_others(0, start + 16), "{start}");
        assert!(!pages.may_give_back(0, start + 16) && pages.may_give_back(0, start + 24));
        let last = start + PENDING_BYTES_MAX;
        pages.name(0, 8, last);
        assert!(pages.is_named_by_others(0, start), "{start}: as many as can be pending");
    }
}
