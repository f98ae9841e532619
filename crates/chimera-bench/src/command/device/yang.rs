//! What Yang et al. measured of one DIMM (FAST 2020).

use chimera_pmem::instrumented::{Device, DeviceParameters, OperationCounters, Profile};

use super::DeviceArguments;
use crate::published::paper;
use crate::report::DeviceReport;
use crate::simulation::{Chunks, Load, Logs, Uniform, persists, reads};
use crate::workload::random::Random;

const THREADS_REASON: &str =
    "many threads on one DIMM get in each other's way there; nothing is lost to that here";
const EVICTION_REASON: &str =
    "a full buffer gives up what was used least recently here, and not always there";

const PAPER: &str = "yang-fast20";

fn one_dimm() -> DeviceParameters {
    Profile::Optane100 { dimms: 1 }.device()
}

fn load(arguments: &DeviceArguments, threads: usize, dram: &str) -> Load {
    arguments.load(threads, paper(PAPER).value(dram))
}

pub(super) fn measure(arguments: &DeviceArguments, report: &mut DeviceReport) {
    let write = |threads| load(arguments, threads, "figure2.dram_ntstore_ns");
    let read = |threads| load(arguments, threads, "figure2.dram_read_random_ns");
    let one = persists(one_dimm(), write(1), &mut Uniform { bytes: 64 });
    let alone = persists(Profile::OPTANE_100.device(), write(1), &mut Uniform { bytes: 64 });
    report.compare((PAPER, "figure2.ntstore_ns"), alone.ns, None);
    let random = reads(one_dimm(), read(1), &mut Uniform { bytes: 64 });
    report.compare((PAPER, "figure2.read_random_ns"), random.ns, None);
    report.compare((PAPER, "figure5.one_dimm_ntstore_64_gbps"), one.gb_per_s, None);
    for bytes in [128, 256, 512, 4096] {
        let id = format!("figure5.one_dimm_ntstore_{bytes}_gbps");
        let one = persists(one_dimm(), write(1), &mut Uniform { bytes });
        report.compare((PAPER, &id), one.gb_per_s, None);
    }
    for bytes in [64, 128, 256, 512, 4096] {
        let id = format!("figure5.one_dimm_read_{bytes}_gbps");
        let many = reads(one_dimm(), read(24), &mut Uniform { bytes });
        report.compare((PAPER, &id), many.gb_per_s, None);
    }
    for threads in [1, 4, 24] {
        let id = format!("figure4.one_dimm_ntstore_{threads}_gbps");
        let mut logs = Logs::new(threads, &mut Random::new(arguments.seed, threads as u64));
        let reason = (threads == 24).then_some(THREADS_REASON);
        let many = persists(one_dimm(), Load { dram_ns: 20, ..write(threads) }, &mut logs);
        report.compare((PAPER, &id), many.gb_per_s, reason);
    }
    let mut chunks = Chunks::new(16, 0, &mut Random::new(arguments.seed, 16));
    let all = persists(Profile::OPTANE_100.device(), write(16), &mut chunks);
    report.compare((PAPER, "figure4.six_dimms_write_gbps"), all.gb_per_s, None);
    for bytes in [16384, 20480, 32768] {
        let id = format!("buffer.amplification_{bytes}");
        let reason = (bytes == 20480).then_some(EVICTION_REASON);
        report.compare((PAPER, &id), halves(bytes), reason);
    }
}

/// Bytes written to the media over bytes stored, where the first halves of all units of a region are written, then the second
/// halves, again and again.
fn halves(region_bytes: u64) -> f64 {
    let device = Device::new(one_dimm().untimed());
    let mut counters = OperationCounters::default();
    let mut lines = 0;
    for half in (0..100).map(|turn| turn % 2) {
        for unit in 0..region_bytes / 256 {
            for line in [0, 1] {
                device.write(unit * 4 + half * 2 + line, 0, &mut counters);
                lines += 1;
            }
        }
    }
    device.drain(&mut counters);
    (counters.media_writes() * 256) as f64 / f64::from(lines * 64)
}
