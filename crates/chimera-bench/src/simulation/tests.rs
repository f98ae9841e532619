use chimera_pmem::instrumented::Profile;

use super::*;

fn load(threads: usize, dram_ns: u64) -> Load {
    Load { threads, dram_ns, operations: 20_000, seed: 42 }
}

fn optane(dimms: u32) -> DeviceParameters {
    Profile::Optane100 { dimms }.device()
}

fn is_near(found: f64, expected: f64, part: f64) -> bool {
    (found / expected - 1.0).abs() <= part
}

#[test]
fn one_thread_waits_for_the_latency_alone() {
    let persist = persists(optane(6), load(1, 100), &mut Uniform { bytes: 64 });
    assert!(is_near(persist.ns, 105.0, 0.01), "{}", persist.ns);
    let read = reads(optane(6), load(1, 100), &mut Uniform { bytes: 64 });
    assert!(is_near(read.ns, 360.0, 0.01), "{}", read.ns);
    let mut random = Random::new(1, 1);
    let read = reads(optane(6), load(1, 100), &mut Logs::new(1, &mut random));
    assert!(is_near(read.ns, 110.0, 0.01), "{}", read.ns);
}

#[test]
fn many_threads_wait_for_the_media() {
    let persist = persists(optane(1), load(16, 100), &mut Uniform { bytes: 64 });
    // 256 bytes for each 64.
    assert!(is_near(persist.gb_per_s, 2.166 / 4.0, 0.01), "{}", persist.gb_per_s);
    assert!(is_near(persist.ns, 16.0 * 256.0 / 2.166, 0.01), "{}", persist.ns);
    let read = reads(optane(1), load(64, 100), &mut Uniform { bytes: 256 });
    assert!(is_near(read.gb_per_s, 6.666, 0.01), "{}", read.gb_per_s);
}

#[test]
fn a_fixed_latency_is_the_same_for_any_number_of_threads() {
    let hikv = Profile::HikvNvm { persist_ns: 1000, read_ns: 60 }.device();
    for threads in [1, 32] {
        let persist = persists(hikv, load(threads, 100), &mut Uniform { bytes: 64 });
        assert!(is_near(persist.ns, 1100.0, 0.01), "{}", persist.ns);
    }
    let dram = persists(Profile::Dram.device(), load(4, 100), &mut Uniform { bytes: 64 });
    assert!(is_near(dram.ns, 100.0, 0.01), "{}", dram.ns);
}

#[test]
fn small_writes_are_amplified() {
    for (bytes, amplification) in [(64, 4.0), (128, 2.0), (256, 1.0), (1024, 1.0)] {
        let one = persists(optane(6), load(4, 100), &mut Uniform { bytes });
        // Some units are in the buffers still.
        assert!(is_near(one.amplification, amplification, 0.03), "{bytes}: {one:?}");
    }
}

#[test]
fn only_a_thread_that_goes_on_is_read_ahead_for() {
    for bytes in [256, 512] {
        let read = reads(optane(1), load(64, 100), &mut Uniform { bytes });
        assert!(is_near(read.gb_per_s, 6.666, 0.01), "{bytes}: {}", read.gb_per_s);
    }
    let mut random = Random::new(1, 1);
    let read = reads(optane(1), load(64, 10), &mut Chunks::new(64, 0, &mut random));
    assert!(is_near(read.gb_per_s, 6.666, 0.02), "{}", read.gb_per_s);
}

#[test]
fn patterns_are_what_they_say() {
    let mut random = Random::new(3, 3);
    let lines = Uniform { bytes: 128 }.next(0, &mut random);
    assert_eq!((lines.start % 4, lines.end - lines.start), (0, 2));
    let mut logs = Logs::new(2, &mut random);
    let first: Vec<_> = (0..4).map(|thread| logs.next(thread, &mut random).start).collect();
    assert_eq!((first[2], first[3]), (first[0] + 1, first[1] + 1), "threads 0 and 2 share a log");
    assert_eq!(first[0] % 64, 0);
    let mut chunks = Chunks::new(2, 2048, &mut random);
    let (one, other) = (chunks.next(1, &mut random), chunks.next(1, &mut random));
    assert_eq!((one.start % 64, one.end - one.start, other.start), (32, 64, one.end));
}

#[test]
fn the_same_seed_gives_the_same() {
    let run = || persists(optane(2), load(8, 100), &mut Uniform { bytes: 64 });
    let (one, other) = (run(), run());
    assert!((one.ns - other.ns).abs() < f64::EPSILON);
    assert!((one.amplification - other.amplification).abs() < f64::EPSILON);
}
