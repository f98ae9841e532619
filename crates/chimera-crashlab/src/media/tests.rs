//! What may be left of hand-made traces.

use std::collections::BTreeSet;
use std::path::Path;

use chimera_pmem::Site;

use super::{LINE_WORDS, Media, States};
use crate::chance::Chance;
use crate::simulated::{Change, Event, FileChange, Machine, Mark, Name, Order, Tree};

const SITE: Site = Site::new("test");
/// Words of memory.
const WORDS: usize = 32;

fn store(word: u32, value: u64, order: Order) -> Event {
    Event::Store { word, value, order, thread: 0, site: SITE }
}

fn ordered(word: u32, value: u64) -> Event {
    store(word, value, Order::Ordered)
}

fn unordered(word: u32, value: u64) -> Event {
    store(word, value, Order::Unordered)
}

fn flush(line: u32, thread: u8) -> Event {
    Event::Flush { line, thread, site: SITE }
}

fn fence(thread: u8) -> Event {
    Event::Fence { thread, site: SITE }
}

/// Every memory that a crash after these steps can leave, of words that are zero at first.
fn left(events: &[Event]) -> BTreeSet<Vec<u64>> {
    let mut media = Media::new(Machine::new(8 * WORDS as u64));
    for event in events {
        media.apply(event, &[]);
    }
    let mut left = BTreeSet::new();
    States::new(&media).for_each(&mut Chance::new(1), &mut |patch| {
        let mut words: Vec<u64> = (0..WORDS as u32).map(|word| media.durable.peek(word)).collect();
        for (word, value) in &patch.words {
            words[*word as usize] = *value;
        }
        left.insert(words);
    });
    left
}

/// Memories, each given by the words that are not zero.
fn memories(of: &[&[(usize, u64)]]) -> BTreeSet<Vec<u64>> {
    let memory = |words: &&[(usize, u64)]| {
        let mut memory = vec![0; WORDS];
        words.iter().for_each(|(word, value)| memory[*word] = *value);
        memory
    };
    of.iter().map(memory).collect()
}

#[test]
fn atomic_stores_of_a_line_survive_in_order() {
    let events = [ordered(0, 1), ordered(1, 2), ordered(0, 3)];
    let expected: &[&[_]] = &[&[], &[(0, 1)], &[(0, 1), (1, 2)], &[(0, 3), (1, 2)]];
    assert_eq!(left(&events), memories(expected));
}

#[test]
fn words_of_a_copy_survive_in_any_order() {
    let events = [unordered(0, 1), unordered(1, 2), unordered(2, 3)];
    let left = left(&events);
    for mask in 0..8_u32 {
        let survivors = (0..3).filter(|word| mask >> word & 1 == 1);
        let words: Vec<_> = survivors.map(|word| (word, word as u64 + 1)).collect();
        let memory = memories(&[&words]).pop_first().expect("one memory");
        assert!(left.contains(&memory), "{words:?} never survive");
    }
    assert_eq!(left.len(), 8);
}

#[test]
fn the_halves_of_a_wide_swap_can_be_torn() {
    let left = left(&[unordered(2, 1), unordered(3, 2)]);
    assert_eq!(left, memories(&[&[], &[(2, 1)], &[(3, 2)], &[(2, 1), (3, 2)]]));
}

#[test]
fn nothing_goes_before_what_was_ordered_before_it() {
    let left = left(&[ordered(0, 1), unordered(1, 2)]);
    assert_eq!(left, memories(&[&[], &[(0, 1)], &[(0, 1), (1, 2)]]));
}

#[test]
fn lines_survive_independently_of_each_other() {
    let left = left(&[ordered(0, 1), ordered(LINE_WORDS, 2)]);
    let second = LINE_WORDS as usize;
    assert_eq!(left, memories(&[&[], &[(0, 1)], &[(second, 2)], &[(0, 1), (second, 2)]]));
}

#[test]
fn a_cut_in_the_order_of_the_program_is_one_of_them() {
    let (b, c) = (LINE_WORDS, 2 * LINE_WORDS);
    let left = left(&[ordered(0, 1), ordered(b, 2), ordered(1, 3), ordered(c, 4)]);
    let cut = [(0, 1), (b as usize, 2)];
    assert!(left.is_superset(&memories(&[&cut])));
    // Parts of two lines at a time: of three, two and two stores each, in order.
    assert_eq!(left.len(), 3 * 2 * 2);
}

#[test]
fn what_goes_past_the_cache_waits_for_nobody_and_nobody_for_it() {
    let left = left(&[store(0, 1, Order::NonTemporal), ordered(1, 2)]);
    assert_eq!(left, memories(&[&[], &[(0, 1)], &[(0, 1), (1, 2)], &[(1, 2)]]));
}

#[test]
fn a_flush_alone_makes_nothing_durable() {
    assert_eq!(left(&[ordered(0, 1), flush(0, 0)]), memories(&[&[], &[(0, 1)]]));
}

#[test]
fn a_fence_makes_durable_what_its_thread_flushed() {
    assert_eq!(left(&[ordered(0, 1), flush(0, 0), fence(0)]), memories(&[&[(0, 1)]]));
    assert_eq!(left(&[ordered(0, 1), flush(0, 0), fence(1)]), memories(&[&[], &[(0, 1)]]));
    assert_eq!(left(&[ordered(0, 1), fence(0)]), memories(&[&[], &[(0, 1)]]));
    assert_eq!(left(&[ordered(0, 1), flush(1, 0), fence(0)]), memories(&[&[], &[(0, 1)]]));
}

#[test]
fn a_flush_does_not_cover_later_stores() {
    let events = [ordered(0, 1), flush(0, 0), ordered(0, 2), fence(0)];
    assert_eq!(left(&events), memories(&[&[(0, 1)], &[(0, 2)]]));
}

#[test]
fn what_another_thread_flushed_waits_for_its_fence() {
    let events = [ordered(0, 1), flush(0, 1), fence(0), fence(1)];
    assert_eq!(left(&events[..3]), memories(&[&[], &[(0, 1)]]));
    assert_eq!(left(&events), memories(&[&[(0, 1)]]));
}

#[test]
fn a_new_file_has_nothing_of_an_old_one() {
    let events = [ordered(0, 1), flush(0, 0), fence(0), ordered(1, 2)];
    let fresh = Event::MapFresh { first: 0, count: LINE_WORDS };
    assert_eq!(left(&[&events[..], &[fresh]].concat()), memories(&[&[]]));
}

#[test]
fn many_lines_are_sampled_with_each_alone_and_all_but_each() {
    let mut media = Media::new(Machine::new(8 * 8 * u64::from(LINE_WORDS)));
    for line in 0..8 {
        media.apply(&ordered(line * LINE_WORDS, 1), &[]);
    }
    let mut sizes = BTreeSet::new();
    States::new(&media).for_each(&mut Chance::new(1), &mut |patch| {
        sizes.insert(patch.words.len());
    });
    assert!([0, 1, 7, 8].iter().all(|size| sizes.contains(size)), "{sizes:?}");
}

#[test]
fn equal_memories_have_equal_hashes_however_they_came_about() {
    let hashes = |events: &[Event]| {
        let mut media = Media::new(Machine::new(8 * WORDS as u64));
        for event in events {
            media.apply(event, &[]);
        }
        let mut hashes = BTreeSet::new();
        States::new(&media).for_each(&mut Chance::new(1), &mut |patch| {
            hashes.insert(patch.hash);
        });
        hashes
    };
    let durable = [ordered(0, 1), flush(0, 0), fence(0)];
    let pending = hashes(&[ordered(0, 1)]);
    assert_eq!(pending.len(), 2);
    assert!(hashes(&durable).is_subset(&pending));
    assert_eq!(hashes(&[ordered(0, 2), ordered(0, 1), flush(0, 0), fence(0)]), hashes(&durable));
}

#[test]
fn what_a_killed_process_flushed_waits_for_no_fence_of_the_next_one() {
    let killed = [ordered(0, 1), flush(0, 0), Event::Mark(Mark::Killed)];
    assert_eq!(left(&[&killed[..], &[fence(0)]].concat()), memories(&[&[], &[(0, 1)]]));
    let written_back = [&killed[..], &[flush(0, 0), fence(0)]].concat();
    assert_eq!(left(&written_back), memories(&[&[(0, 1)]]));
}

#[test]
fn what_a_killed_process_stored_is_seen_and_pending() {
    let mut media = Media::new(Machine::new(8 * WORDS as u64));
    for event in [ordered(0, 1), flush(0, 0), Event::Mark(Mark::Killed)] {
        media.apply(&event, &[]);
    }
    assert_eq!((media.stored(0), media.durable.peek(0)), (1, 0));
    assert!(media.has_news(0));
}

#[test]
fn a_synced_name_is_durable_once_its_directory_is() {
    let name = |name: &str| -> Name { Path::new(name).into() };
    let changes = [
        Change::CreateDirectory(name("store")),
        Change::Create(name("store/file"), 1),
        Change::Sync(name("store")),
        Change::Sync(name("")),
    ];
    let mut media = Media::new(Machine::new(8 * WORDS as u64));
    let mut apply = |change| {
        media.apply(&Event::File(change), &changes);
        let names = |tree: &Tree| tree.nodes.len();
        media.files.states().iter().map(|(tree, _)| names(tree)).collect::<BTreeSet<_>>()
    };
    assert_eq!(apply(FileChange::Made(0)), BTreeSet::from([0, 1]));
    assert_eq!(apply(FileChange::Made(1)), BTreeSet::from([0, 1, 2]));
    assert_eq!(apply(FileChange::DirectorySynced(2)), BTreeSet::from([0, 2]));
    assert_eq!(apply(FileChange::DirectorySynced(3)), BTreeSet::from([2]));
}
