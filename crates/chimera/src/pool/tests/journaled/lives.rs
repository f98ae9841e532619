//! When a journal comes, goes, and fails.

use super::*;

#[test]
fn a_loss_is_kept_durably_before_what_is_left_of_the_journal_is_emptied() {
    let place = Place::killed(1);
    place.lose_the_last_entry();
    let error = place.open(&journaled()).err().unwrap();
    assert!(matches!(error, Error::Corrupted { .. }), "{error}");
    place.files.take(|_| false);
    let (pool, opened) = place.open(&salvaging()).unwrap();
    assert!(opened.journal_loss.is_some());
    let deeds = place.deeds();
    let emptied = first(&deeds, is_written("journal"));
    let kept = first(&deeds, is_written("superblock"));
    assert!(kept < emptied && deeds[kept..emptied].contains(&synced("superblock")), "{deeds:?}");
    let [at, _] = JOURNAL_MARK_AT;
    let mark = Deed::Written("superblock".to_owned(), at..at + 32);
    assert_eq!(deeds[kept], mark, "before anything is replayed");
    assert!(place.mark().0);
    drop(pool);
    // Until an opening with salvage has ended.
    assert!(place.open(&journaled()).is_err());
    let (pool, _) = place.open(&salvaging()).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    assert!(!place.mark().0);
    pool.close().unwrap();
    drop(pool);
    assert!(place.open(&journaled()).is_ok());
}

#[test]
fn a_journal_goes_once_nothing_says_any_more_that_it_is_in_use() {
    let place = Place::killed(1);
    for copy in [0, 4096] {
        place.flip("journal", copy + 40);
    }
    assert!(matches!(place.mark(), (false, MarkState::Used { .. })));
    let (files, seen) = (place.files.files.clone(), Arc::new(Mutex::new(None)));
    let noted = seen.clone();
    place.files.refuse(move |deed| {
        if *deed == Deed::Removed("journal".to_owned()) {
            let path = Path::new("/pool/superblock");
            let file = files.open(path, OpenMode::Read).unwrap();
            let (mark, kept) = Mark::read(file, JOURNAL_MARK_AT).unwrap();
            *noted.lock().unwrap() = Some((mark.is_lost(), kept.unwrap().unwrap()));
        }
        None
    });
    let (_pool, opened) = place.open(&salvaging()).unwrap();
    assert!(opened.journal_loss.is_some());
    assert_eq!(*seen.lock().unwrap(), Some((true, MarkState::Unused)));
}

#[test]
fn a_journal_of_another_pool_is_replaced_by_one_that_is_durable_with_its_name() {
    let (place, other) = (Place::closed(1), Place::new());
    let (pool, _) = other.open_as(&journaled(), 78).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    pool.close().unwrap();
    place.file("journal").write_at(0, &other.bytes("journal")).unwrap();
    let (pool, _) = place.open(&journaled()).unwrap();
    let deeds = place.files.take(|_| true);
    let removed = first(&deeds, |deed| *deed == Deed::Removed("journal".to_owned()));
    // The new one has its name durably before anything leads to it.
    let rest = &deeds[removed..];
    let made = first(rest, is_written("journal"));
    let kept = first(rest, is_written("superblock"));
    assert!(rest[made..kept].contains(&Deed::SyncedEntries("pool".to_owned())), "{rest:?}");
    assert_eq!(place.bytes("journal").len() as u64, ENTRIES_AT + FIRST_BYTES);
    // It belongs to the open pool.
    pool.check_in_place().unwrap();
    place.files.files.remove(Path::new("/pool/journal")).unwrap();
    let error = pool.check_in_place().unwrap_err();
    assert!(matches!(&error, Error::Removed { path } if path.ends_with("journal")), "{error}");
}

#[test]
fn a_journal_that_cannot_be_emptied_is_not_used() {
    let place = Place::closed(1);
    place.files.refuse(|deed| is_written("journal")(deed).then_some(io::ErrorKind::StorageFull));
    let error = place.open(&journaled()).err().unwrap();
    assert!(matches!(error, Error::Io { action: "empty", .. }), "{error}");
}

#[test]
fn a_journal_that_has_failed_lets_nobody_read_what_may_go() {
    let place = Place::killed(1);
    let options = PoolOptions { durability: Durability::Immediate, ..journaled() };
    let (pool, _) = place.open(&options).unwrap();
    pool.mark_open().unwrap();
    let journal: &Arc<Journal> = pool.pmem.journal().unwrap();
    pool.settle_read(journal).unwrap();
    place.files.refuse(|deed| {
        (*deed == Deed::Synced("journal".to_owned())).then_some(io::ErrorKind::BrokenPipe)
    });
    take_block(&pool).unwrap();
    assert!(pool.settle_read(journal).is_err(), "it was read before it was durable");
    assert!(pool.settle(journal).is_err());
    // From then on nothing that is read is said to be durable.
    pool.settle_read(journal).unwrap();
}

/// What opening has written is not what the thread's first operation waits for.
#[test]
fn an_operation_after_opening_waits_for_all_that_it_saw() {
    let place = Place::killed(1);
    let options = PoolOptions { durability: Durability::Immediate, ..journaled() };
    let (pool, _) = place.open(&options).unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    let journal: &Arc<Journal> = pool.pmem.journal().unwrap();
    journal.sync().unwrap();
    std::thread::scope(|scope| scope.spawn(|| take_block(&pool).unwrap()).join()).unwrap();
    place.files.take(|_| false);
    pool.settle(journal).unwrap();
    assert_eq!(place.files.take(|deed| *deed == synced("journal")).len(), 1);
}

#[test]
fn a_journal_that_is_not_needed_any_more_is_removed_or_that_is_an_error() {
    let place = Place::closed(1);
    let fails = Arc::new(AtomicBool::new(true));
    let refuses = fails.clone();
    place.files.refuse(move |deed| {
        let is_meant = *deed == Deed::Removed("journal".to_owned());
        (is_meant && refuses.load(Ordering::Relaxed)).then_some(io::ErrorKind::PermissionDenied)
    });
    let pool = place.open_without().unwrap();
    assert!(matches!(pool.mark_open(), Err(Error::Io { action: "remove", .. })));
    fails.store(false, Ordering::Relaxed);
    pool.mark_open().unwrap();
    assert!(!place.has("journal"));
    pool.mark_open().unwrap();
}

/// From then on no entry names a byte of a segment that is about to go.
#[test]
fn segments_are_written_back_before_the_superblock_says_that_they_go() {
    let place = Place::new();
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    (0..11).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
    (1..11).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    place.files.take(|_| false);
    pool.close().unwrap();
    let deeds = place.deeds();
    let last = deeds.iter().rposition(is_written("segment-000002")).expect("it is written back");
    assert!(deeds[last..].iter().any(is_entry), "{deeds:?}");
    assert!(!place.has("segment-000001") && !place.has("segment-000002"));
    drop(pool);
    let (pool, opened) = place.open(&journaled()).unwrap();
    assert!(opened.clean && pool.superblock().segments == 1);
}

#[test]
fn the_tasks_of_a_journal_are_started_and_stopped_with_those_of_the_pool() {
    let place = Place::killed(1);
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    let journal = pool.pmem.journal().unwrap();
    pool.start_background().unwrap();
    while place.environment.step_tasks() {}
    let is_synced = |pool: &Pool<Hardware>| {
        take_block(pool).unwrap();
        pool.settle(journal).unwrap();
        place.files.take(|_| false);
        place.environment.advance(60_000_000);
        while place.environment.step_tasks() {}
        place.deeds().contains(&synced("journal"))
    };
    assert!(is_synced(&pool), "the window is over");
    pool.stop_background();
    assert!(!is_synced(&pool), "nobody syncs any more");
}

/// What a journal has replayed is durable, and need not be written back once more.
#[test]
fn a_pool_with_a_journal_writes_back_what_it_found_only_where_that_is_damaged() {
    for is_damaged in [false, true] {
        let place = Place::killed(1);
        let (pool, _) = place.open(&journaled()).unwrap();
        if is_damaged {
            let word = pool.pmem.load_u64(USED_BLOCKS_AT[1]);
            pool.pmem.store_u64(USED_BLOCKS_AT[1], word ^ 1 << 50, SITE);
        }
        place.files.take(|_| false);
        pool.mark_open().unwrap();
        let deeds = place.deeds();
        // One entry for each change of the superblock, with where it ended; and nothing is synced: the journal has it.
        let entries = deeds.iter().filter(|deed| is_written("superblock")(deed)).count();
        assert_eq!(entries, if is_damaged { 3 } else { 2 }, "{deeds:?}");
        assert!(!deeds.iter().any(|deed| matches!(deed, Deed::Synced(_))), "{deeds:?}");
        let expected = USED_BLOCKS_AT.map(|at| checked_word::encode_at(1, at));
        assert_eq!(USED_BLOCKS_AT.map(|at| pool.pmem.load_u64(at)), expected);
    }
}

/// Nothing is made beside a store of which writes may be missing.
#[test]
fn a_store_that_lost_power_gets_no_journal_before_that_is_told() {
    let place = Place::new();
    let pool = place.open_without().unwrap();
    pool.mark_open().unwrap();
    pool.mark_recovered().unwrap();
    let image = pool.pmem.image();
    drop(pool);
    place.file("superblock").write_at(0, &image[..FILE_BYTES as usize]).unwrap();
    place.environment.reboot();
    place.files.take(|_| false);
    assert!(matches!(place.open(&journaled()), Err(Error::PowerLost { .. })));
    assert!(!place.has("journal"));
    let deeds = place.deeds();
    assert!(deeds.iter().all(is_written("lock")), "{deeds:?}");
}

/// What is written back after the storage has gone would bring it back, and with it what the blocks held.
#[test]
fn storage_goes_back_behind_a_checkpoint() {
    let place = Place::new();
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    (0..9).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
    let at = pool.map.block_at(8) + 64;
    store(&pool, at, 7);
    pool.pmem.fence(SITE);
    (2..9).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    place.files.take(|_| false);

    pool.release_storage();
    let deeds = place.deeds();
    let segment = |number: u64| format!("segment-{number:06}");
    let is_punched = |deed: &Deed| matches!(deed, Deed::Punched(..));
    let punched = first(&deeds, is_punched);
    let is_data = |deed: &Deed| matches!(deed, Deed::Written(name, _) if name.contains("segment"));
    assert!(deeds[..punched].iter().any(is_data), "{deeds:?}");
    assert!(!deeds[punched..].iter().any(is_data), "{deeds:?}");
    let last = deeds.iter().rposition(is_punched).unwrap();
    // A power loss would bring back what was there, under what is stored where there are zeros now.
    assert!(deeds[last..].contains(&synced(&segment(0))), "{deeds:?}");
    // One block is kept ready; the header at the end of a segment stays.
    let inside = |block: u64| pool.map.block_in_segment(block);
    let last = pool.map.block_in_segment(pool.map.blocks_per_segment);
    let kept = Deed::Punched(segment(0), inside(3)..last);
    assert_eq!(deeds.iter().find(|deed| is_punched(deed)), Some(&kept));
    assert_eq!((pool.used_blocks(), pool.ready_blocks()), (2, 3));

    (2..9).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
    assert_eq!(pool.pmem.load_u64(at), 0, "it has storage again, with nothing in it");
    store(&pool, at, 8);
    pool.pmem.fence(SITE);
    drop(pool);
    let (pool, _) = place.open(&journaled()).unwrap();
    assert_eq!(pool.pmem.load_u64(at), 8);
}

#[test]
fn storage_stays_where_the_journal_cannot_be_written_back() {
    let place = Place::new();
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    (0..9).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
    (2..9).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    place.files.refuse(|deed| matches!(deed, Deed::Synced(_)).then_some(io::ErrorKind::Other));
    place.files.take(|_| false);
    pool.release_storage();
    assert_eq!(pool.ready_blocks(), 9);
    assert!(!place.deeds().iter().any(|deed| matches!(deed, Deed::Punched(..))));
}

/// Nobody is handed what a power loss may fill with what was there before.
#[test]
fn storage_that_is_not_durably_given_back_is_not_used_again() {
    let place = Place::new();
    let (pool, _) = place.open(&journaled()).unwrap();
    pool.mark_open().unwrap();
    (0..9).for_each(|block| assert_eq!(take_block(&pool).unwrap(), block));
    (2..9).rev().for_each(|block| assert!(pool.give_back(block, || Ok(()))));
    let has_punched = AtomicBool::new(false);
    place.files.refuse(move |deed| {
        let is_punched = matches!(deed, Deed::Punched(..));
        let before = has_punched.fetch_or(is_punched, Ordering::Relaxed);
        (before && matches!(deed, Deed::Synced(_))).then_some(io::ErrorKind::Other)
    });
    pool.release_storage();
    place.files.refuse(|_| None);
    assert_eq!(take_block(&pool).unwrap(), 2, "it was ready, and stays so");
    assert!(matches!(take_block(&pool), Err(Error::PoolFull { .. })));
    let written = pool.pmem.journal().unwrap().settle();
    assert!(written.is_err(), "nothing is written any more");
}
