use std::time::{Duration, Instant};

use super::super::clock::{Started, now_ns};
use super::super::pace::{Charge, Throttle};
use super::super::{HIKV_PERSIST_NS, Latencies, Profile};
use super::{Heap, Instrumented, SITE, extent, instance, persist};
use crate::{Operation, Pmem};

const HIKV_READS: Profile = Profile::HikvNvm { persist_ns: HIKV_PERSIST_NS, read_ns: 60 };

/// Latency charged so far.
fn charged(pmem: &Instrumented<Heap>) -> u64 {
    pmem.snapshot().total().latency_ns
}

fn charged_by(pmem: &Instrumented<Heap>, work: impl FnOnce()) -> u64 {
    let before = charged(pmem);
    work();
    charged(pmem) - before
}

fn with(profile: Profile) -> Instrumented<Heap> {
    instance(|options| options.profile = profile)
}

fn read(pmem: &Instrumented<Heap>, at: u64, length: usize) {
    pmem.read(extent(at, length as u64), &mut vec![0; length]);
}

#[test]
fn names_are_parsed_and_written() {
    for (text, profile) in [
        ("dram", Profile::Dram),
        ("hikv-nvm", Profile::HIKV_NVM),
        ("hikv-nvm:50", Profile::HikvNvm { persist_ns: 50, read_ns: 0 }),
        ("hikv-nvm:1400:60", Profile::HikvNvm { persist_ns: 1400, read_ns: 60 }),
        ("optane-100", Profile::Optane100),
        ("optane-100:24", Profile::Optane100Part { parts: 24 }),
        ("cxl-nvcmm", Profile::CxlNvcmm),
    ] {
        assert_eq!(text.parse(), Ok(profile));
        assert_eq!(profile.to_string(), text);
        assert!(text.starts_with(profile.name()));
    }
    assert_eq!("hikv-nvm:600:0".parse(), Ok(Profile::HIKV_NVM));
    let of_hikv = ["hikv-nvm:", "hikv-nvm:49", "hikv-nvm:1401", "hikv-nvm:600:1"];
    let of_optane = ["optane", "optane-100:", "optane-100:1", "optane-100:1001", "optane-100:2:2"];
    for text in ["", "DRAM"].into_iter().chain(of_hikv).chain(of_optane) {
        let error = text.parse::<Profile>().unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}")) && error.contains("optane-100"), "{error}");
    }
}

#[test]
fn constants_are_those_of_the_papers() {
    assert!(Profile::Dram.latencies().is_none());
    let optane = Profile::Optane100.latencies().unwrap();
    assert_eq!((optane.read_random_ns, optane.read_sequential_ns), (260, 10));
    assert_eq!((optane.persist_random_ns, optane.persist_sequential_ns), (730, 120));
    let bandwidth = optane.bandwidth.unwrap();
    assert_eq!((bandwidth.read_mb_per_s, bandwidth.write_mb_per_s), (40_000, 13_000));
    let part = Profile::Optane100Part { parts: 24 }.latencies().unwrap();
    let bandwidth = part.bandwidth.unwrap();
    assert_eq!((bandwidth.read_mb_per_s, bandwidth.write_mb_per_s), (1666, 541));
    assert_eq!(Latencies { bandwidth: optane.bandwidth, ..part }, optane, "nothing else differs");
    let hikv = Profile::HIKV_NVM.latencies().unwrap();
    assert_eq!((hikv.read_random_ns, hikv.persist_random_ns), (0, 600));
    let cxl = Profile::CxlNvcmm.latencies().unwrap();
    assert_eq!((cxl.read_random_ns, cxl.persist_sequential_ns, cxl.unit_bytes), (100, 100, 64));
}

#[test]
fn a_missing_read_is_random_or_sequential() {
    let pmem = with(Profile::Optane100);
    assert_eq!(charged_by(&pmem, || read(&pmem, 0, 64)), 260);
    assert_eq!(charged_by(&pmem, || read(&pmem, 0, 64)), 0, "cached");
    assert_eq!(charged_by(&pmem, || read(&pmem, 64, 64)), 10, "the same unit");
    assert_eq!(charged_by(&pmem, || read(&pmem, 256, 64)), 10, "the next unit");
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 64)), 260);
    assert_eq!(charged_by(&pmem, || read(&pmem, 65_536 + 128, 512)), 260 + 10 + 10, "three units");
}

#[test]
fn overlapping_misses_are_charged_once() {
    let pmem = with(Profile::Optane100);
    let prefetches = charged_by(&pmem, || {
        for page in 0..16 {
            pmem.prefetch(extent(page * 8192, 216));
        }
    });
    assert_eq!(prefetches, 0, "nobody waits yet");
    read(&pmem, 0, 64);
    assert_eq!(charged(&pmem), 260);
    for page in 0..16 {
        read(&pmem, page * 8192, 216);
    }
    assert_eq!(charged(&pmem), 260, "all of them have come");
}

#[test]
fn a_cached_read_does_not_wait_for_prefetches_of_other_lines() {
    let pmem = with(Profile::Optane100);
    read(&pmem, 0, 8);
    pmem.prefetch(extent(8192, 64));
    assert_eq!(charged_by(&pmem, || read(&pmem, 0, 8)), 0);
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 8)), 260);
}

#[test]
fn a_miss_overlaps_with_prefetches_before_it() {
    let pmem = with(Profile::Optane100);
    pmem.prefetch(extent(8192, 64));
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192 + 256, 8)), 260, "not 10, and not 270");
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 8)), 0);
}

#[test]
fn a_fence_waits_for_overlapping_misses_too() {
    let pmem = with(Profile::Optane100);
    pmem.prefetch(extent(8192, 64));
    assert_eq!(charged_by(&pmem, || pmem.fence(SITE)), 260);
    assert_eq!(charged_by(&pmem, || pmem.fence(SITE)), 0);
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 8)), 0);
    pmem.prefetch(extent(16_384, 64));
    assert_eq!(charged_by(&pmem, || persist(&pmem, 65_536, 8)), 730, "at the same time");
}

#[test]
fn a_persist_is_random_or_sequential() {
    let pmem = with(Profile::Optane100);
    read(&pmem, 0, 16_384);
    assert_eq!(charged_by(&pmem, || persist(&pmem, 0, 216)), 730, "nothing before it");
    assert_eq!(charged_by(&pmem, || persist(&pmem, 0, 8)), 120, "the same unit");
    assert_eq!(charged_by(&pmem, || persist(&pmem, 256, 600)), 120, "next to it, and on");
    assert_eq!(charged_by(&pmem, || persist(&pmem, 8192, 8)), 730);
    let two = charged_by(&pmem, || {
        pmem.store_u64(8192, 1, SITE);
        pmem.store_u64(0, 1, SITE);
        pmem.flush(extent(8192, 8), SITE);
        pmem.flush(extent(0, 8), SITE);
        pmem.fence(SITE);
    });
    assert_eq!(two, 730, "once for each fence");
    let streamed = charged_by(&pmem, || {
        pmem.copy_nt(extent(256, 256), &[1; 256], SITE);
        pmem.fence(SITE);
    });
    assert_eq!(streamed, 120);
}

#[test]
fn hikv_charges_each_persist_and_optionally_each_read() {
    let pmem = with(Profile::HIKV_NVM);
    read(&pmem, 0, 4096);
    assert_eq!(charged(&pmem), 0);
    persist(&pmem, 0, 216);
    persist(&pmem, 8192, 8);
    pmem.fence(SITE);
    assert_eq!(charged(&pmem), 1200, "the last fence had nothing to persist");

    let pmem = with(HIKV_READS);
    read(&pmem, 0, 4096);
    assert_eq!(charged(&pmem), 60);
}

#[test]
fn cxl_charges_reads_and_persists_alike() {
    let pmem = with(Profile::CxlNvcmm);
    read(&pmem, 0, 256);
    assert_eq!(charged(&pmem), 100, "the lines of one call overlap");
    read(&pmem, 256, 8);
    assert_eq!(charged(&pmem), 200);
    persist(&pmem, 0, 8);
    assert_eq!(charged(&pmem), 300);
}

#[test]
fn latency_is_booked_to_the_operation() {
    let pmem = with(Profile::HIKV_NVM);
    pmem.operation_begin(Operation::Delete, 0);
    persist(&pmem, 0, 8);
    pmem.operation_acknowledge();
    assert_eq!(pmem.snapshot().of(Operation::Delete).latency_ns, 600);
}

#[test]
fn the_cache_is_modelled_where_reads_cost_something() {
    let charges = |profile: Profile| profile.latencies().unwrap().charges_reads();
    assert!(!charges(Profile::HIKV_NVM));
    assert!(charges(HIKV_READS) && charges(Profile::Optane100) && charges(Profile::CxlNvcmm));
}

#[test]
fn transfers_queue_for_bandwidth() {
    let throttle = Throttle::new(13_000);
    assert_eq!(throttle.reserve(0, 13_000), 1000);
    assert_eq!(throttle.reserve(0, 13_000), 2000, "after the first");
    assert_eq!(throttle.reserve(5000, 26_000), 7000, "idle in between");
    assert!(throttle.is_idle(0) && !throttle.is_idle(1));
    assert!(Throttle::new(0).is_idle(1 << 40), "no limit");
}

#[test]
fn at_least_the_latency_asked_for_passes() {
    let pmem = instance(|options| {
        options.counters = false;
        options.profile = Profile::HikvNvm { persist_ns: 1400, read_ns: 0 };
    });
    let start = Instant::now();
    for _ in 0..1000 {
        persist(&pmem, 0, 8);
    }
    // 1400 us but a tenth, for the calibration of the counter.
    assert!(start.elapsed() >= Duration::from_micros(1260));
}

#[test]
fn a_call_waits_for_latency_and_transfer() {
    let charge = |latency_ns, transferred_ns| Charge { latency_ns, transferred_ns };
    let start = Instant::now();
    charge(1_000_000, 0).wait(Started::now());
    assert!(start.elapsed() >= Duration::from_micros(900));
    let start = Instant::now();
    charge(1, now_ns() + 1_000_000).wait(Started::now());
    assert!(start.elapsed() >= Duration::from_micros(900));
}
