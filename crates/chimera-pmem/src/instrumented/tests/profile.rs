use std::time::{Duration, Instant};

use super::super::clock::now_ns;
use super::super::pace::Charge;
use super::super::{HIKV_PERSIST_NS, OPTANE_DIMMS, Profile, Timing};
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
    instance(|options| options.device = Some(profile.device()))
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
        ("optane-100", Profile::OPTANE_100),
        ("optane-100:1", Profile::Optane100 { dimms: 1 }),
        ("optane-100:64", Profile::Optane100 { dimms: 64 }),
        ("cxl-nvcmm", Profile::CxlNvcmm),
    ] {
        assert_eq!(text.parse(), Ok(profile));
        assert_eq!(profile.to_string(), text);
        assert!(text.starts_with(profile.name()));
    }
    assert_eq!("hikv-nvm:600:0".parse(), Ok(Profile::HIKV_NVM));
    let of_hikv = ["hikv-nvm:", "hikv-nvm:49", "hikv-nvm:1401", "hikv-nvm:600:1"];
    assert_eq!("optane-100:6".parse(), Ok(Profile::OPTANE_100));
    let of_optane = ["optane", "optane-100:", "optane-100:0", "optane-100:65", "optane-100:2:2"];
    for text in ["", "DRAM"].into_iter().chain(of_hikv).chain(of_optane) {
        let error = text.parse::<Profile>().unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}")) && error.contains("optane-100"), "{error}");
    }
}

fn timing(profile: Profile) -> Timing {
    profile.device().timing.unwrap()
}

#[test]
fn constants_are_those_of_the_papers() {
    assert!(Profile::Dram.device().timing.is_none());
    let optane = timing(Profile::OPTANE_100);
    assert_eq!((optane.read_random_ns, optane.read_sequential_ns), (260, 10));
    assert_eq!(optane.persist_ns, 5);
    assert_eq!((optane.media_read_mb_per_s, optane.media_write_mb_per_s), (6666, 2166));
    let (six, two) = (Profile::OPTANE_100.device(), Profile::Optane100 { dimms: 2 }.device());
    assert_eq!((six.dimms, six.xpline_bytes), (OPTANE_DIMMS, 256));
    assert_eq!((two.dimms, two.timing), (2, six.timing), "of each DIMM");
    let hikv = timing(Profile::HIKV_NVM);
    assert_eq!((hikv.read_random_ns, hikv.persist_ns), (0, 600));
    let cxl = Profile::CxlNvcmm.device();
    let timing = cxl.timing.unwrap();
    assert_eq!((timing.read_random_ns, timing.persist_ns, cxl.xpline_bytes), (100, 100, 64));
}

#[test]
fn a_missing_read_is_random_or_sequential() {
    let pmem = with(Profile::OPTANE_100);
    assert_eq!(charged_by(&pmem, || read(&pmem, 0, 64)), 260);
    assert_eq!(charged_by(&pmem, || read(&pmem, 0, 64)), 0, "cached");
    assert_eq!(charged_by(&pmem, || read(&pmem, 64, 64)), 10, "the same unit");
    assert_eq!(charged_by(&pmem, || read(&pmem, 256, 64)), 10, "the next unit");
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 64)), 260);
    assert_eq!(charged_by(&pmem, || read(&pmem, 65_536 + 128, 512)), 260, "three units at once");
}

#[test]
fn overlapping_misses_are_charged_once() {
    let pmem = with(Profile::OPTANE_100);
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
    let pmem = with(Profile::OPTANE_100);
    read(&pmem, 0, 8);
    pmem.prefetch(extent(8192, 64));
    assert_eq!(charged_by(&pmem, || read(&pmem, 0, 8)), 0);
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 8)), 260);
}

#[test]
fn a_miss_overlaps_with_prefetches_before_it() {
    let pmem = with(Profile::OPTANE_100);
    pmem.prefetch(extent(8192, 64));
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192 + 256, 8)), 260, "not 10, and not 270");
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 8)), 0);
}

#[test]
fn a_fence_waits_for_overlapping_misses_too() {
    let pmem = with(Profile::OPTANE_100);
    pmem.prefetch(extent(8192, 64));
    assert_eq!(charged_by(&pmem, || pmem.fence(SITE)), 260);
    assert_eq!(charged_by(&pmem, || pmem.fence(SITE)), 0);
    assert_eq!(charged_by(&pmem, || read(&pmem, 8192, 8)), 0);
    pmem.prefetch(extent(16_384, 64));
    assert_eq!(charged_by(&pmem, || persist(&pmem, 65_536, 8)), 260, "at the same time");
}

#[test]
fn a_persist_is_charged_once() {
    let pmem = with(Profile::OPTANE_100);
    read(&pmem, 0, 16_384);
    assert_eq!(charged_by(&pmem, || persist(&pmem, 0, 216)), 5);
    assert_eq!(charged_by(&pmem, || persist(&pmem, 8192, 8)), 5, "anywhere");
    let two = charged_by(&pmem, || {
        pmem.store_u64(8192, 1, SITE);
        pmem.store_u64(0, 1, SITE);
        pmem.flush(extent(8192, 8), SITE);
        pmem.flush(extent(0, 8), SITE);
        pmem.fence(SITE);
    });
    assert_eq!(two, 5, "once for each fence");
    let streamed = charged_by(&pmem, || {
        pmem.copy_nt(extent(256, 256), &[1; 256], SITE);
        pmem.fence(SITE);
    });
    assert_eq!(streamed, 5);
    assert_eq!(charged_by(&pmem, || pmem.fence(SITE)), 0, "nothing to persist");
}

/// One DIMM, whose media takes 128 us for a unit.
fn slow() -> Instrumented<Heap> {
    instance(|options| {
        let device = Profile::Optane100 { dimms: 1 }.device();
        let timing = Timing { media_write_mb_per_s: 2, ..device.timing.unwrap() };
        options.device = Some(super::DeviceParameters { timing: Some(timing), ..device });
    })
}

#[test]
fn a_fence_waits_until_the_device_has_taken_all_lines() {
    let pmem = slow();
    let start = Instant::now();
    for unit in 0..4 {
        pmem.copy_nt(extent(unit * 256, 256), &[1; 256], SITE);
    }
    let before = start.elapsed();
    pmem.fence(SITE);
    assert!(start.elapsed() >= Duration::from_micros(250), "two units are written, two taken");
    assert!(before < start.elapsed(), "the copies wait for nothing");
    pmem.fence(SITE);
    assert_eq!(charged(&pmem), 5, "waits for the media are not latency");
}

#[test]
fn a_flush_of_what_is_clean_gives_the_device_nothing() {
    let pmem = slow();
    for _ in 0..4 {
        pmem.flush(extent(0, 4096), SITE);
    }
    pmem.fence(SITE);
    assert_eq!(pmem.snapshot().total().media_writes(), 0);
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
fn the_cache_is_modelled_where_it_makes_a_difference() {
    assert!(!timing(Profile::HIKV_NVM).needs_cache());
    for profile in [HIKV_READS, Profile::OPTANE_100, Profile::CxlNvcmm] {
        assert!(timing(profile).needs_cache());
    }
}

#[test]
fn at_least_the_latency_asked_for_passes() {
    let pmem = instance(|options| {
        options.counters = false;
        options.device = Some(Profile::HikvNvm { persist_ns: 1400, read_ns: 0 }.device());
    });
    let start = Instant::now();
    for _ in 0..1000 {
        persist(&pmem, 0, 8);
    }
    // 1400 us but a tenth, for the calibration of the counter.
    assert!(start.elapsed() >= Duration::from_micros(1260));
}

#[test]
fn a_call_waits_until_its_time() {
    let start = Instant::now();
    Charge { latency_ns: 1, until_ps: (now_ns() + 1_000_000) * 1000 }.wait();
    assert!(start.elapsed() >= Duration::from_micros(900));
    Charge::default().wait();
}
