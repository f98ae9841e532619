use std::time::Instant;

use super::super::{CacheParameters, DeviceParameters, Profile, ReadCounts, ReadModel};

fn counting(cache: Option<CacheParameters>) -> ReadModel {
    ReadModel::new(DeviceParameters::default(), cache)
}

fn of(reads: u64, reads_fetching: u64, media_reads: u64) -> ReadCounts {
    ReadCounts { reads, reads_fetching, media_reads, ..ReadCounts::default() }
}

#[test]
fn each_unit_is_fetched_once() {
    let model = counting(None);
    model.read(0, 0);
    assert_eq!(model.counts(), of(0, 0, 0), "nothing is read");
    model.read(0, 4096);
    assert_eq!(model.counts(), of(1, 1, 16));
    // Two bytes of two units.
    model.read(8191, 2);
    assert_eq!(model.counts(), of(2, 2, 18));
    // The device's read buffer has it.
    model.read(8191, 2);
    assert_eq!(model.counts(), of(3, 3, 18));
}

#[test]
fn a_processor_cache_keeps_what_was_read_and_stored() {
    let model = counting(Some(CacheParameters::default()));
    model.read(100, 300);
    assert_eq!(model.counts(), of(1, 1, 2));
    model.read(100, 300);
    assert_eq!(model.counts(), of(2, 1, 2));
    model.stored(1 << 20, 1024);
    model.read(1 << 20, 1024);
    assert_eq!(model.counts(), of(3, 1, 2));
    model.read(1 << 20, 1025);
    assert_eq!(model.counts(), of(4, 2, 3), "one line more");
}

#[test]
fn a_small_processor_cache_forgets() {
    let model = counting(Some(CacheParameters { bytes: 64 << 10, ..CacheParameters::default() }));
    model.read(0, 64);
    // More than the read buffers of the device have room for.
    model.read(1 << 20, 1 << 20);
    let before = model.counts().media_reads;
    model.read(0, 64);
    assert_eq!(model.counts().media_reads, before + 1);
}

#[test]
fn latency_is_random_or_sequential() {
    // In a thread of its own: what it fetched last is nothing.
    std::thread::spawn(|| {
        let model = ReadModel::new(Profile::OPTANE_100.device(), None);
        let timing = Profile::OPTANE_100.device().timing.unwrap();
        let (random, next) =
            (u64::from(timing.read_random_ns), u64::from(timing.read_sequential_ns));
        let start = Instant::now();
        model.read(0, 4096);
        assert_eq!(model.counts().latency_ns, random);
        model.read(4096, 256);
        assert_eq!(model.counts().latency_ns, random + next);
        model.read(1 << 20, 1);
        assert_eq!(model.counts().latency_ns, 2 * random + next);
        // Fifteen units of one DIMM wait for those before them, as long as its media takes for them.
        let unit_ns = 256 * 1000 / u64::from(timing.media_read_mb_per_s);
        let least_ns = 15 * unit_ns + 2 * random + next;
        assert!(start.elapsed().as_nanos() as u64 >= least_ns, "less was waited than that");
    })
    .join()
    .unwrap();
}

#[test]
fn threads_share_the_device() {
    let model = counting(None);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let model = &model;
            scope.spawn(move || {
                (0..1000).for_each(|at| model.read((thread * 1000 + at) << 12, 256));
            });
        }
    });
    assert_eq!(model.counts(), of(4000, 4000, 4000));
}
