//! Table 1 and Figure 1 of Viper (PVLDB 2021).

use chimera_pmem::instrumented::{DeviceParameters, Profile};

use super::DeviceArguments;
use crate::published::paper;
use crate::report::{DeviceCurve, DeviceReport};
use crate::simulation::{Chunks, Load, Logs, Outcome, Pattern, Uniform, persists, reads};
use crate::workload::random::Random;

/// Threads of Table 1.
const MANY: usize = 32;
const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 24, 32];

/// Why figures are not reproduced.
const THREADS_REASON: &str = "a DIMM takes less from many threads than from few there (Yang et al., Figure 4); here it does not";
const OFFSET_REASON: &str = "a write to two DIMMs costs nothing by itself here; two share the work, which helps few threads";

fn optane() -> DeviceParameters {
    Profile::OPTANE_100.device()
}

/// What a thread takes on DRAM, of Table 1.
fn load(arguments: &DeviceArguments, threads: usize, dram: &str) -> Load {
    arguments.load(threads, paper("viper").value(dram))
}

fn sequential_write(arguments: &DeviceArguments, threads: usize, logs: usize) -> Outcome {
    let load = load(arguments, threads, "table1.dram_write_sequential_ns");
    let mut random = Random::new(arguments.seed, logs as u64);
    persists(optane(), load, &mut Logs::new(logs, &mut random))
}

fn random_write(arguments: &DeviceArguments, threads: usize) -> Outcome {
    let load = load(arguments, threads, "table1.dram_write_random_ns");
    persists(optane(), load, &mut Uniform { bytes: 64 })
}

/// Writes of 4 KiB, so many bytes behind a multiple of that.
fn chunks(arguments: &DeviceArguments, threads: usize, offset_bytes: u64) -> Outcome {
    let load = load(arguments, threads, "table1.dram_write_sequential_ns");
    // One of them is 64 writes of a line.
    let load = Load { operations: load.operations / 16, ..load };
    let mut random = Random::new(arguments.seed, 7);
    persists(optane(), load, &mut Chunks::new(threads, offset_bytes, &mut random))
}

pub(super) fn measure(arguments: &DeviceArguments, report: &mut DeviceReport) {
    table_1(arguments, report);
    figures_1a_and_1b(arguments, report);
    figure_1c(arguments, report);
    figure_1d(arguments, report);
}

fn table_1(arguments: &DeviceArguments, report: &mut DeviceReport) {
    let write = [sequential_write(arguments, MANY, MANY), random_write(arguments, MANY)];
    report.compare(("viper", "table1.write_sequential_ns"), write[0].ns, Some(THREADS_REASON));
    report.compare(("viper", "table1.write_random_ns"), write[1].ns, None);
    let media = write[1].amplification;
    let what = "bytes of the media over bytes, random persists";
    report.direction("viper, Section 2.1", what, "256 B for 64 B", media);
    let of =
        |dram, pattern: &mut dyn Pattern| reads(optane(), load(arguments, MANY, dram), pattern);
    let mut random = Random::new(arguments.seed, 1);
    let sequential = of("table1.dram_read_sequential_ns", &mut Logs::new(MANY, &mut random));
    report.compare(("viper", "table1.read_sequential_ns"), sequential.ns, None);
    let uniform = of("table1.dram_read_random_ns", &mut Uniform { bytes: 64 });
    report.compare(("viper", "table1.read_random_ns"), uniform.ns, None);
    report.compare(("viper", "table1.read_gbps"), sequential.gb_per_s, None);
    let most = chunks(arguments, MANY, 0).gb_per_s;
    report.compare(("viper", "table1.write_gbps"), most, None);
}

fn figures_1a_and_1b(arguments: &DeviceArguments, report: &mut DeviceReport) {
    let mut curve =
        DeviceCurve::new("Viper, Figures 1a and 1b: persists of 64 B, ns by number of threads");
    let mut over = 0.0;
    for threads in THREADS {
        let sequential = sequential_write(arguments, threads, threads).ns;
        let uniform = random_write(arguments, threads).ns;
        curve.add("sequential", threads as f64, sequential);
        curve.add("random", threads as f64, uniform);
        if threads == 8 {
            over = uniform / sequential;
        }
    }
    for (name, id) in [
        ("sequential, published (Table 1)", "table1.write_sequential_ns"),
        ("random, published (Table 1)", "table1.write_random_ns"),
    ] {
        curve.add(name, MANY as f64, paper("viper").value(id));
    }
    report.curves.push(curve);
    let dram_ns = paper("viper").value("table1.dram_write_sequential_ns");
    let most = sequential_write(arguments, MANY, MANY).ns / dram_ns;
    report.compare(("viper", "figure1.sequential_over_dram_max"), most, Some(THREADS_REASON));
    let what = "persists of 8 threads, random over sequential";
    report.direction("viper, Figures 1a, 1b", what, "much worse even for few threads", over);
}

fn figure_1c(arguments: &DeviceArguments, report: &mut DeviceReport) {
    let mut curve =
        DeviceCurve::new("Viper, Figure 1c: persists of 32 threads, ns by number of logs");
    for logs in [1, 2, 4, 8, 16, 32] {
        curve.add("32 threads", logs as f64, sequential_write(arguments, MANY, logs).ns);
    }
    let over = curve.lines[0].points[0].1 / curve.lines[0].points[5].1;
    report.curves.push(curve);
    let what = "persists of 32 threads, 1 log over 32";
    report.direction("viper, Figure 1c", what, "poor with 1 log", over);
}

fn figure_1d(arguments: &DeviceArguments, report: &mut DeviceReport) {
    let mut curve = DeviceCurve::new("Viper, Figure 1d: writes of 4 KiB, us by KiB of offset");
    for threads in [4, 8, MANY] {
        for offset in (0..4096).step_by(512) {
            let us = chunks(arguments, threads, offset).ns / 1e3;
            curve.add(&format!("{threads} threads"), offset as f64 / 1024.0, us);
        }
    }
    let points = &curve.lines[2].points;
    let percent = (points[4].1 / points[0].1 - 1.0) * 100.0;
    report.curves.push(curve);
    report.compare(("viper", "figure1d.offset_percent"), percent, Some(OFFSET_REASON));
}
