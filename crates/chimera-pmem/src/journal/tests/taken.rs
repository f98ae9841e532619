//! Places that are taken: what is stored there goes to the data file at once, until the next sync.

use super::direct::found;
use super::mapped::Mapped;
use super::staged::append;
use super::watched::{Step, WatchedPool, file_of};
use super::*;

/// Bytes of an entry that names one direct run.
const DIRECT_ENTRY: u64 = 32 + 24;
const PAGE: u64 = 4096;

/// A pool of one file with room for its journal.
fn watched() -> WatchedPool {
    let watched = WatchedPool::create(CAPACITY, 256 << 10);
    watched.take_log();
    watched
}

fn take(memory: &Hardware, place: std::ops::Range<u64>, emptied: Fenced) {
    let place = memory.check(place.start, place.end - place.start).unwrap();
    memory.take_new(place, place, emptied);
}

fn is_taken(memory: &Hardware, at: u64) -> bool {
    memory.journal().unwrap().pages.get().unwrap().is_shared(at / PAGE)
}

/// No page has stores of its own, and no entry is pending.
fn give_all_back(pool: &Pool) {
    let journal = pool.journal();
    journal.checkpoint().unwrap();
    journal.give_pages_back(&mut lock(&journal.checkpoint), 0).unwrap();
    assert_eq!(journal.pages.get().unwrap().private_bytes(), 0);
}

fn word(bytes: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(*bytes[at as usize..].first_chunk().unwrap())
}

/// What a machine finds in these files that is in this start: the words at some places.
fn found_words<const N: usize>(
    (journal, data): (&[u8], &[u8]),
    boot_id: u64,
    at: [u64; N],
) -> [u64; N] {
    let found = found(journal, data, boot_id);
    assert_eq!(found.damage(), None);
    let mut bytes = data.to_vec();
    let end = bytes.len() as u64;
    found.lines().put_over(0..end, &mut bytes);
    at.map(|at| word(&bytes, at))
}

#[test]
fn what_is_stored_is_in_the_file_and_passes_no_journal() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    // Whole pages only.
    take(&pool.memory, PAGE + 64..4 * PAGE + 64, Fenced::default());
    assert_eq!(
        [PAGE, 2 * PAGE, 3 * PAGE, 4 * PAGE].map(|at| is_taken(&pool.memory, at)),
        [false, true, true, false]
    );
    assert_eq!(journal.figures().appended_bytes, DIRECT_ENTRY);
    pool.put(2 * PAGE + 8, 7);
    pool.put(2 * PAGE + 8, 8);
    assert_eq!(word(&watched.data.now(), 2 * PAGE + 8), 8);
    let figures = journal.figures();
    assert_eq!((figures.appended_bytes, figures.direct_bytes), (DIRECT_ENTRY, 128));
    // Of a flush over two pages one passes the journal.
    let both = pool.memory.check(4 * PAGE - 64, 128).unwrap();
    pool.memory.copy(both, &[9; 128], SITE);
    pool.memory.flush(both, SITE);
    pool.memory.fence(SITE);
    let figures = journal.figures();
    assert_eq!(figures.appended_bytes, DIRECT_ENTRY + 32 + 8 + 64);
    assert_eq!(figures.direct_bytes, 3 * 64);
    assert_eq!(word(&watched.data.now(), 4 * PAGE - 8), u64::from_le_bytes([9; 8]));
    assert_eq!(word(&watched.data.now(), 4 * PAGE), 0);
    // The same place once more costs nothing.
    take(&pool.memory, 2 * PAGE..4 * PAGE, Fenced::default());
    assert_eq!(journal.figures().appended_bytes, DIRECT_ENTRY + 32 + 8 + 64);
}

/// A long run begins where something ahead of it was taken with the one before.
#[test]
fn of_a_place_the_part_is_taken_that_was_not() {
    let watched = watched();
    let memory = &watched.pool.memory;
    let taken = || (1..8).filter(|page| is_taken(memory, page * PAGE)).collect::<Vec<_>>();
    let range = |pages: std::ops::Range<u64>| {
        memory.check(pages.start * PAGE, (pages.end - pages.start) * PAGE).unwrap()
    };
    memory.take_new(range(1..2), range(1..3), Fenced::default());
    assert_eq!(taken(), [1, 2]);
    // All of the range was taken: nothing is taken ahead.
    memory.take_new(range(2..3), range(2..5), Fenced::default());
    assert_eq!(taken(), [1, 2]);
    memory.take_new(range(2..4), range(2..6), Fenced::default());
    assert_eq!(taken(), [1, 2, 3, 4, 5]);
    // Less than a page is asked for, and what is ahead is more.
    let (less, ahead) = (memory.check(6 * PAGE, 64).unwrap(), range(6..7));
    memory.take_new(less, ahead, Fenced::default());
    assert_eq!(taken(), [1, 2, 3, 4, 5, 6]);
    // No whole page is there.
    memory.take_new(less, less, Fenced::default());
    assert_eq!(watched.pool.journal().figures().appended_bytes, 3 * DIRECT_ENTRY);
}

#[test]
fn a_sync_takes_it_back_syncs_its_file_says_so_and_syncs_the_journal() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 1);
    watched.take_log();
    journal.sync().unwrap();
    let steps = watched.take_log();
    assert_eq!(steps[0], Step::Sync("data"));
    assert!(matches!(steps[1], Step::Write("journal", _)), "{steps:?}");
    assert_eq!(steps.last(), Some(&Step::Sync("journal")));
    assert_eq!(steps.iter().filter(|step| matches!(step, Step::Sync(_))).count(), 2);
    let figures = journal.figures();
    assert_eq!((figures.unsynced_bytes, figures.appended_bytes), (0, DIRECT_ENTRY + 32));
    assert_eq!(word(&watched.data.survives(), PAGE), 1);
    // From now on it is a place like any other.
    assert!(!is_taken(&pool.memory, PAGE));
    pool.put(PAGE, 2);
    assert_eq!(word(&watched.data.now(), PAGE), 1);
    assert_eq!(pool.memory.load_u64(PAGE), 2);
    assert_eq!(journal.figures().appended_bytes, DIRECT_ENTRY + 32 + 104);
    journal.checkpoint().unwrap();
    assert_eq!(word(&watched.data.survives(), PAGE), 2);
    // And can be taken again once nothing pending names it, and it was given back.
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, PAGE), "it is in memory");
    give_all_back(pool);
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    assert!(is_taken(&pool.memory, PAGE));
    assert_eq!(pool.memory.load_u64(PAGE), 2, "readers see no change");
}

#[test]
fn a_power_loss_before_the_sync_ends_the_journal_and_a_kill_does_not() {
    let watched = watched();
    let pool = &watched.pool;
    pool.put(0, 1);
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 2);
    pool.put(8, 3);
    let (journal, data) = (watched.journal.now(), watched.data.now());
    let at = [0, 8, PAGE];
    assert_eq!(found_words((&journal, &data), BOOT, at), [1, 3, 2]);
    // Whatever became of the page, nothing leads to it.
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, at)[..2], [1, 0]);
    // What a process left is durable before it is relied on: written again, as after a sync that failed.
    let killed = found(&journal, &data, BOOT);
    assert_eq!(killed.new_lines(), [NewLines { file: 0, offset: PAGE, length: PAGE }]);
    assert!(found(&journal, &data, NEXT_BOOT).new_lines().is_empty());
}

#[test]
fn a_power_loss_behind_the_sync_ends_nothing() {
    let watched = watched();
    let pool = &watched.pool;
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 2);
    pool.put(0, 1);
    pool.journal().sync().unwrap();
    let at = [0, PAGE, PAGE + 8];
    let survived = (watched.journal.survives(), watched.data.survives());
    assert_eq!(found_words((&survived.0, &survived.1), NEXT_BOOT, at), [1, 2, 0]);
    assert!(found(&survived.0, &survived.1, NEXT_BOOT).new_lines().is_empty());
    pool.put(PAGE + 8, 3);
    let (journal, data) = (watched.journal.now(), watched.data.survives());
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, at), [1, 2, 3]);
    // Of a place that is taken later nothing is known.
    take(&pool.memory, 4 * PAGE..5 * PAGE, Fenced::default());
    pool.put(0, 4);
    let journal = watched.journal.now();
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, at), [1, 2, 3]);
    assert_eq!(found_words((&journal, &data), BOOT, at), [4, 2, 3]);
}

/// What is appended while the files are synced lies behind the entry of a place that is taken meanwhile, or before it.
#[test]
fn what_is_taken_during_a_sync_is_for_the_next_one() {
    let watched = watched();
    let pool = &watched.pool;
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 1);
    let (memory, thread) = (pool.clone(), std::thread::current().id());
    watched.data.during_sync(move || {
        assert_eq!(std::thread::current().id(), thread);
        memory.put(0, 2);
        take(&memory.memory, 2 * PAGE..3 * PAGE, Fenced::default());
        assert!(is_taken(&memory.memory, 2 * PAGE));
        memory.put(2 * PAGE, 3);
        memory.put(8, 4);
    });
    pool.journal().sync().unwrap();
    assert!(pool.journal().figures().unsynced_bytes > 0);
    let (journal, data) = (watched.journal.survives(), watched.data.survives());
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, [PAGE, 0, 8]), [1, 2, 0]);
    pool.journal().sync().unwrap();
    let (journal, data) = (watched.journal.survives(), watched.data.survives());
    let at = [PAGE, 0, 8, 2 * PAGE];
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, at), [1, 2, 4, 3]);
}

#[test]
fn what_an_entry_names_is_not_taken() {
    let watched = watched();
    let pool = &watched.pool;
    pool.put(PAGE + 8, 1);
    let emptied = pool.memory.fenced();
    take(&pool.memory, 2 * PAGE..3 * PAGE, emptied);
    assert!(!is_taken(&pool.memory, 2 * PAGE), "a crash may bring back what was there");
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, PAGE), "a checkpoint would write over it");
    give_all_back(pool);
    take(&pool.memory, PAGE..2 * PAGE, emptied);
    assert!(is_taken(&pool.memory, PAGE));
    assert_eq!(word(&watched.data.now(), PAGE + 8), 1);
}

/// A thread that has just seen what was there flushes a line, and fences when the place has another owner.
#[test]
fn a_late_fence_of_others_writes_nothing_over_it() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    pool.memory.flush(pool.memory.check(PAGE, 64).unwrap(), SITE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
            pool.put(PAGE, 1);
        });
    });
    assert!(is_taken(&pool.memory, PAGE));
    let before = journal.figures().appended_bytes;
    pool.memory.fence(SITE);
    assert_eq!(journal.figures().appended_bytes, before);
    pool.put(PAGE, 2);
    journal.checkpoint().unwrap();
    assert_eq!(word(&watched.data.survives(), PAGE), 2);
}

/// Of a place what is in memory is left out, not what lies behind it.
#[test]
fn what_was_stored_before_is_left_out() {
    let watched = watched();
    let pool = &watched.pool;
    for page in [1, 4, 5] {
        pool.memory.store_u64(page * PAGE, 1, SITE);
    }
    take(&pool.memory, PAGE..8 * PAGE, Fenced::default());
    let taken: Vec<_> = (0..10).filter(|page| is_taken(&pool.memory, page * PAGE)).collect();
    assert_eq!(taken, [2, 3, 6, 7]);
    assert_eq!(pool.journal().figures().appended_bytes, 2 * DIRECT_ENTRY);
    assert_eq!(word(&watched.data.now(), 4 * PAGE), 0);
    pool.put(4 * PAGE, 2);
    assert_eq!(word(&watched.data.now(), 4 * PAGE), 0);
    let killed = found(&watched.journal.now(), &watched.data.now(), BOOT);
    let places = [2 * PAGE, 6 * PAGE].map(|offset| NewLines { file: 0, offset, length: 2 * PAGE });
    assert_eq!(killed.new_lines(), places);
    // What is only taken ahead ends there.
    let pool = Pool::create(GROUP);
    pool.memory.store_u64(3 * PAGE, 1, SITE);
    let range = |pages: u64| pool.memory.check(2 * PAGE, pages * PAGE).unwrap();
    pool.memory.take_new(range(1), range(4), Fenced::default());
    let taken: Vec<_> = (0..8).filter(|page| is_taken(&pool.memory, page * PAGE)).collect();
    assert_eq!(taken, [2]);
}

/// A place that needs more direct runs than an entry holds is taken by several.
#[test]
fn a_long_place_is_taken_by_several_entries() {
    let watched = WatchedPool::create(CAPACITY, 8 << 20);
    let (memory, journal) = (&watched.pool.memory, watched.pool.journal());
    let length = 7 << 20;
    assert!(entry::direct_bytes_max(journal.capacity()) < length);
    take(memory, PAGE..PAGE + length, Fenced::default());
    let taken = (0..8 << 20).step_by(PAGE as usize).filter(|at| is_taken(memory, *at)).count();
    assert_eq!(taken as u64, length / PAGE);
    assert_eq!(journal.figures().appended_bytes, 2 * 32 + 24 * length.div_ceil(64 << 10));
}

#[test]
fn nothing_is_taken_where_it_would_be_of_no_use() {
    // Each operation waits for a sync.
    let pool = Pool::create(SyncPolicy::Immediate);
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, PAGE));
    // Everything is to pass the journal.
    let pool = Pool::create(GROUP);
    pool.journal().write_new_from(u64::MAX);
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, PAGE));
    pool.journal().write_new_from(PAGE);
    take(&pool.memory, PAGE + 8..2 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, PAGE), "less than a page");
    // The journal is full.
    append(&pool, pool.journal().free_bytes() - DIRECT_ENTRY + 8);
    take(&pool.memory, 8 * PAGE..9 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, 8 * PAGE));
    assert_eq!(pool.journal().free_bytes(), DIRECT_ENTRY - 8);
}

#[test]
fn there_is_room_to_say_what_is_in_its_place() {
    let pool = Pool::create(GROUP);
    append(&pool, pool.journal().free_bytes() - DIRECT_ENTRY);
    take(&pool.memory, 8 * PAGE..9 * PAGE, Fenced::default());
    assert!(is_taken(&pool.memory, 8 * PAGE));
    assert_eq!(pool.journal().free_bytes(), 0);
    pool.put(8 * PAGE, 1);
    pool.journal().sync().unwrap();
    assert_eq!(pool.journal().figures().unsynced_bytes, 0);
    assert_eq!(pool.journal().pending_bytes(), CAPACITY - 16 - 32, "there is room for another one");
    assert_eq!(pool.replayed()[8 * 512], 1);
    pool.put(0, 2);
    assert_eq!(pool.replayed()[0], 2);
}

#[test]
fn where_no_start_of_the_machine_is_known_nothing_is_taken() {
    let files: Arc<dyn FileProvider> = Arc::new(MemoryFiles::new().on(Medium::File));
    let (data, file) = (open(&files, "data"), open(&files, "journal"));
    data.allocate(0, DATA_BYTES).unwrap();
    Journal::format(&*file, 7, 99, CAPACITY, 0).unwrap();
    let environment = Arc::new(SteppedEnvironment::with_files(1, files.clone()));
    let journal = Journal::open(file, CAPACITY, GROUP, environment).unwrap();
    let memory = Hardware::new(HardwareOptions::default()).unwrap();
    memory.use_journal(journal).unwrap();
    memory.map(0, &data, 0, DATA_BYTES).unwrap();
    take(&memory, PAGE..2 * PAGE, Fenced::default());
    assert!(!is_taken(&memory, PAGE));
}

#[test]
fn mapped_files_show_what_is_stored_until_a_sync() {
    let Mapped { data, memory, journal, .. } = &Mapped::new();
    let in_file = |at: u64| {
        let mut word = [0; 8];
        data.read_at(at, &mut word).unwrap();
        u64::from_le_bytes(word)
    };
    let put = |at: u64, value: u64| {
        memory.store_u64(at, value, SITE);
        memory.flush(memory.check(at, 8).unwrap(), SITE);
        memory.fence(SITE);
    };
    let pages = journal.pages.get().unwrap();
    take(memory, PAGE..8 * PAGE, Fenced::default());
    for page in 1..8 {
        put(page * PAGE + 8, page);
        assert_eq!(in_file(page * PAGE + 8), page);
    }
    assert_eq!((pages.private_bytes(), in_file(0)), (0, 0));
    journal.sync().unwrap();
    for page in 1..8 {
        put(page * PAGE + 8, 10 * page);
        assert_eq!(in_file(page * PAGE + 8), page);
        assert_eq!(memory.load_u64(page * PAGE + 8), 10 * page);
    }
    assert_eq!(pages.private_bytes(), 7 * PAGE);
    journal.checkpoint().unwrap();
    assert_eq!(in_file(PAGE + 8), 10);
}

/// A store that is under way is waited for, and one that begins meanwhile waits.
#[test]
fn writers_beside_a_sync_lose_nothing() {
    let pool = Arc::new(Pool::create(GROUP));
    pool.environment.set_relax_hook(|attempt| match attempt {
        0..16 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_millis(1)),
    });
    // So few that the ring has room for all: nobody syncs but who is asked to.
    let lines = || (PAGE..9 * PAGE).step_by(1024);
    for round in 1..100_u64 {
        give_all_back(&pool);
        take(&pool.memory, PAGE..9 * PAGE, Fenced::default());
        assert!(is_taken(&pool.memory, PAGE));
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let pool = &pool;
                scope.spawn(move || {
                    for at in lines().skip(writer).step_by(2) {
                        let line = pool.memory.check(at, 64).unwrap();
                        pool.memory.copy(line, &[round as u8; 64], SITE);
                        pool.memory.flush(line, SITE);
                        pool.memory.fence(SITE);
                    }
                });
            }
            scope.spawn(|| pool.journal().sync().unwrap());
        });
        let expected = u64::from_le_bytes([round as u8; 8]);
        let words = pool.replayed();
        for at in lines() {
            assert_eq!((words[(at / 8) as usize], pool.memory.load_u64(at)), (expected, expected));
        }
    }
}

/// Who changes the ring holds the lock of the tail, and syncs.
#[test]
fn a_ring_changes_although_places_are_taken() {
    let pool = Pool::create(GROUP);
    pool.journal().capacity_max.store(4 * CAPACITY, Ordering::Relaxed);
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 1);
    pool.journal().grow(&mut lock(&pool.journal().checkpoint)).unwrap();
    assert_eq!(pool.journal().capacity(), 2 * CAPACITY);
    assert!(!is_taken(&pool.memory, PAGE));
    take(&pool.memory, 2 * PAGE..3 * PAGE, Fenced::default());
    assert!(is_taken(&pool.memory, 2 * PAGE), "places are taken again");
    pool.put(2 * PAGE, 2);
    pool.journal().trim().unwrap();
    assert_eq!(pool.journal().capacity(), CAPACITY);
    take(&pool.memory, 3 * PAGE..4 * PAGE, Fenced::default());
    pool.put(3 * PAGE, 3);
    assert_eq!([512, 1024, 1536].map(|word| pool.replayed()[word]), [1, 2, 3]);
    // Nor does one that was taken after the last sync keep it waiting.
    let ring = Ring::map(&pool.journal().file, CAPACITY).unwrap();
    let mut scratch = lock(&pool.journal().checkpoint);
    pool.journal().change_capacity(&mut scratch, CAPACITY, ring).unwrap();
    assert!(!is_taken(&pool.memory, 3 * PAGE));
    drop(scratch);
    pool.journal().close().unwrap();
    assert_eq!([512, 1024, 1536].map(|word| pool.replayed()[word]), [1, 2, 3]);
}

/// One sync says so while another place is taken, and the ring is filled: the next one says so before anything is freed.
#[test]
fn there_is_room_for_what_two_syncs_say() {
    let watched = WatchedPool::create(CAPACITY, 256 << 10);
    let pool = &watched.pool;
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 1);
    let memory = pool.clone();
    watched.data.during_sync(move || {
        take(&memory.memory, 2 * PAGE..3 * PAGE, Fenced::default());
        memory.put(2 * PAGE, 2);
        append(&memory, memory.journal().free_bytes());
    });
    pool.journal().sync().unwrap();
    assert_eq!(pool.journal().free_bytes(), 0);
    pool.journal().checkpoint().unwrap();
    let (journal, data) = (watched.journal.survives(), watched.data.survives());
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, [PAGE, 2 * PAGE]), [1, 2]);
}

/// Recovery is interrupted when it has written its end mark: over the entry of a place, behind which it had read that an
/// earlier place is durable.
#[test]
fn what_was_read_behind_the_end_is_kept_before_the_end_mark() {
    let watched = watched();
    let pool = &watched.pool;
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 1);
    pool.put(0, 2);
    let memory = pool.clone();
    watched.data.during_sync(move || take(&memory.memory, 2 * PAGE..3 * PAGE, Fenced::default()));
    pool.journal().sync().unwrap();
    let (journal, data) = (watched.journal.survives(), watched.data.survives());
    let at = [PAGE, 0];
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, at), [1, 2]);
    let first = found(&journal, &data, NEXT_BOOT);
    let file = file_of(&journal);
    first.make_durable(&*file).unwrap();
    // The mark that `empty` writes, without its header.
    let place = DATA_AT + (first.end() + 8) % CAPACITY;
    file.write_at(place, &[0x5a; 8]).unwrap();
    let mut journal = vec![0; journal.len()];
    file.read_at(0, &mut journal).unwrap();
    assert_eq!(found_words((&journal, &data), NEXT_BOOT, at), [1, 2]);
}

/// Whoever takes a place between the two halves of a failure is refused.
#[test]
fn a_failure_that_has_begun_lets_nobody_take_a_place() {
    let pool = Pool::create(GROUP);
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.journal().take_back_for_ever();
    take(&pool.memory, 2 * PAGE..3 * PAGE, Fenced::default());
    assert_eq!([PAGE, 2 * PAGE].map(|at| is_taken(&pool.memory, at)), [false; 2]);
    // Nor does the end of a sync let anybody.
    pool.journal().sync().unwrap();
    take(&pool.memory, 2 * PAGE..3 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, 2 * PAGE));
}

/// What is stored after a failure stays in memory, as entries of it would be missing.
#[test]
fn a_failure_takes_all_places_back() {
    let watched = watched();
    let (pool, journal) = (&watched.pool, watched.pool.journal());
    take(&pool.memory, PAGE..2 * PAGE, Fenced::default());
    pool.put(PAGE, 1);
    watched.journal.fails.store(true, Ordering::Relaxed);
    let memory = pool.clone();
    watched.data.during_sync(move || take(&memory.memory, 2 * PAGE..3 * PAGE, Fenced::default()));
    assert!(journal.sync().is_err());
    for at in [PAGE, 2 * PAGE] {
        assert!(!is_taken(&pool.memory, at));
        pool.put(at + 8, 3);
        assert_eq!(word(&watched.data.now(), at + 8), 0);
    }
    take(&pool.memory, 4 * PAGE..5 * PAGE, Fenced::default());
    assert!(!is_taken(&pool.memory, 4 * PAGE));
    let (journal, data) = (watched.journal.now(), watched.data.now());
    assert_eq!(found_words((&journal, &data), BOOT, [PAGE, PAGE + 8]), [1, 0]);
}
