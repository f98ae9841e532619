use super::super::Profile;
use super::{SITE, counted, extent, instance, persist};
use crate::{Operation, Pmem};

/// A record of 216 bytes at 64 covers lines 1 to 4, which lie in units 0 and 1; its bit is in line 0.
#[test]
fn a_put_of_a_record_and_a_bit() {
    let pmem = instance(|_| {});
    let insert = counted(&pmem, Operation::Insert, || {
        persist(&pmem, 64, 216);
        pmem.store_u64(0, 1, SITE);
        pmem.flush(extent(0, 8), SITE);
        pmem.fence(SITE);
    });
    assert_eq!(insert.operations, 1);
    assert_eq!((insert.stores, insert.bytes_stored), (2, 216 + 8));
    assert_eq!(
        (insert.lines_flushed, insert.lines_reflushed, insert.lines_flushed_clean),
        (5, 0, 0)
    );
    assert_eq!((insert.fences, insert.nontemporal_lines, insert.lines_evicted), (2, 0, 0));
    assert_eq!((insert.lines_read_write_allocate, insert.lines_missed), (5, 5));
    assert_eq!((insert.lines_read_demand, insert.lines_read_prefetched), (0, 0));
    assert_eq!(insert.media_reads, 2);
    assert_eq!((insert.media_writes_full, insert.media_writes_partial()), (1, 0));

    pmem.drain(Operation::Insert);
    let insert = pmem.snapshot().of(Operation::Insert);
    assert_eq!((insert.media_writes_full, insert.media_writes_partial()), (1, 1));
}

#[test]
fn a_tail_is_stored_as_a_whole_word() {
    let pmem = instance(|_| {});
    let other = counted(&pmem, Operation::Insert, || pmem.copy(extent(56, 9), &[1; 9], SITE));
    assert_eq!((other.bytes_stored, other.lines_missed), (16, 2));
    let zero = counted(&pmem, Operation::Insert, || pmem.zero(extent(0, 128), SITE));
    assert_eq!((zero.stores, zero.bytes_stored), (1, 128));
}

#[test]
fn flushing_again_is_counted_apart() {
    let pmem = instance(|_| {});
    let update = counted(&pmem, Operation::Update, || {
        persist(&pmem, 0, 128);
        pmem.flush(extent(120, 16), SITE);
        pmem.store_u64(0, 1, SITE);
        pmem.flush(extent(0, 8), SITE);
        pmem.fence(SITE);
    });
    assert_eq!(update.lines_flushed, 3, "lines 0, 1 and 2");
    assert_eq!(update.lines_reflushed, 2, "line 1, and line 0 with something new");
    assert_eq!(update.lines_flushed_clean, 2, "line 1 the second time, and line 2");

    let again = counted(&pmem, Operation::Update, || persist(&pmem, 0, 8));
    assert_eq!((again.lines_flushed, again.lines_reflushed), (1, 0), "another operation");
}

#[test]
fn an_empty_flush_is_no_line() {
    let pmem = instance(|_| {});
    let other = counted(&pmem, Operation::Update, || pmem.flush(extent(64, 0), SITE));
    assert_eq!((other.lines_flushed, other.lines_flushed_clean), (0, 0));
}

#[test]
fn copies_past_the_cache() {
    let pmem = instance(|_| {});
    pmem.load_u64(0);
    let insert = counted(&pmem, Operation::Insert, || {
        pmem.copy_nt(extent(0, 256), &[1; 256], SITE);
        pmem.fence(SITE);
    });
    assert_eq!((insert.stores, insert.bytes_stored, insert.nontemporal_lines), (1, 256, 4));
    assert_eq!((insert.lines_flushed, insert.lines_read(), insert.media_reads), (0, 0, 0));
    assert_eq!(insert.media_writes_full, 1);
    let get = counted(&pmem, Operation::Get, || {
        pmem.load_u64(0);
    });
    assert_eq!(get.lines_missed, 1, "no longer cached");
}

#[test]
fn lines_read_are_distinct_and_belong_to_their_first_touch() {
    let pmem = instance(|_| {});
    let get = counted(&pmem, Operation::Get, || {
        pmem.load_u64(0);
        pmem.load_u64(56);
        pmem.prefetch(extent(256, 216));
        assert!(pmem.compare(extent(256, 16), &[0; 16]));
        pmem.read(extent(256, 300), &mut [0; 300]);
    });
    assert_eq!((get.lines_read_demand, get.lines_read_prefetched), (1 + 1, 4));
    assert_eq!((get.lines_missed, get.media_reads), (6, 3));

    let again = counted(&pmem, Operation::Get, || {
        pmem.read(extent(256, 216), &mut [0; 216]);
    });
    assert_eq!((again.lines_read_demand, again.lines_missed, again.media_reads), (4, 0, 0));
}

#[test]
fn reading_what_was_just_stored() {
    let pmem = instance(|_| {});
    let missing = counted(&pmem, Operation::Update, || {
        pmem.store_u64(0, 1, SITE);
        pmem.load_u64(0);
    });
    assert_eq!((missing.lines_read_write_allocate, missing.lines_read_demand), (1, 0));
    let cached = counted(&pmem, Operation::Update, || {
        pmem.store_u64(0, 1, SITE);
        pmem.load_u64(0);
    });
    assert_eq!((cached.lines_read_write_allocate, cached.lines_read_demand), (0, 1));
}

#[test]
fn compare_and_swap_loads_and_perhaps_stores() {
    let pmem = instance(|_| {});
    let counters = counted(&pmem, Operation::Update, || {
        assert_eq!(pmem.cas_u64(0, 0, 5, SITE), Ok(0));
        assert_eq!(pmem.cas_u64(0, 0, 6, SITE), Err(5));
        assert_eq!(pmem.cas_u128(64, 0, 1 << 64, SITE), Ok(0));
        assert_eq!(pmem.publish_cas(72, 1, 2, &[], SITE), Ok(1));
        pmem.publish(128, 1, &[], SITE);
    });
    assert_eq!((counters.stores, counters.bytes_stored), (4, 8 + 16 + 8 + 8));
    assert_eq!((counters.lines_read_demand, counters.lines_read_write_allocate), (2, 1));
    assert_eq!(pmem.load_u64(72), 2);
}

#[test]
fn dirty_lines_that_make_room_are_written_back() {
    let pmem = instance(|options| {
        options.cache.bytes = 4 * 64;
        options.cache.ways = 4;
    });
    let counters = counted(&pmem, Operation::Insert, || {
        pmem.copy(extent(0, 8 * 64), &[1; 512], SITE);
    });
    assert_eq!((counters.lines_evicted, counters.media_writes_full), (4, 1));
}

#[test]
fn an_emptied_cache_misses_everything() {
    let pmem = instance(|_| {});
    pmem.store_u64(64, 1, SITE);
    pmem.load_u64(0);
    pmem.empty_cache();
    assert_eq!(pmem.snapshot().total().lines_evicted, 1);
    let get = counted(&pmem, Operation::Get, || {
        pmem.read(extent(0, 256), &mut [0; 256]);
    });
    assert_eq!((get.lines_missed, get.media_reads), (4, 1));
}

#[test]
fn flushing_may_drop_the_line() {
    let pmem = instance(|options| options.cache.flush_keeps_line = false);
    let counters = counted(&pmem, Operation::Update, || {
        persist(&pmem, 0, 8);
        persist(&pmem, 0, 8);
    });
    assert_eq!((counters.lines_read_write_allocate, counters.lines_missed), (1, 2));
    assert_eq!((counters.lines_flushed, counters.lines_reflushed), (1, 1));
}

#[test]
fn punched_lines_are_forgotten() {
    let pmem = instance(|_| {});
    pmem.store_u64(4096, 1, SITE);
    pmem.punch(extent(4096, 4096), SITE).unwrap();
    pmem.empty_cache();
    assert_eq!(pmem.snapshot().total().lines_evicted, 0);
}

#[test]
fn without_counters_nothing_is_counted() {
    for profile in [Profile::Dram, Profile::CxlNvcmm] {
        let pmem = instance(|options| {
            options.counters = false;
            options.device = Some(profile.device());
        });
        pmem.operation_begin(Operation::Insert, 0);
        persist(&pmem, 0, 216);
        pmem.operation_acknowledge();
        pmem.user_bytes(Operation::Insert, 216);
        assert_eq!(pmem.snapshot(), super::Counters::default());
        assert_eq!(pmem.load_u64(0), 0x0707_0707_0707_0707);
    }
}

#[test]
fn without_a_device_no_media_access_is_counted() {
    let pmem = instance(|options| options.device = None);
    let counters = counted(&pmem, Operation::Insert, || persist(&pmem, 0, 216));
    assert_eq!((counters.lines_flushed, counters.lines_missed), (4, 4));
    assert_eq!((counters.media_reads, counters.media_writes()), (0, 0));
    pmem.drain(Operation::Insert);
    let counters = pmem.snapshot();
    assert!(counters.sessions.is_empty());
    assert_eq!(counters.media_unit_bytes, 0);
}
