//! Figure 1 of ChameleonDB (EuroSys 2021): random writes of several sizes on one DIMM.

use chimera_pmem::instrumented::Profile;

use super::DeviceArguments;
use crate::published::paper;
use crate::report::{DeviceCurve, DeviceReport};
use crate::simulation::{Uniform, persists};

const SIZES: [u64; 8] = [64, 128, 256, 512, 1024, 2048, 4096, 8192];
const THREADS: [usize; 4] = [1, 2, 4, 8];

pub(super) fn measure(arguments: &DeviceArguments, report: &mut DeviceReport) {
    let mut curve =
        DeviceCurve::new("ChameleonDB, Figure 1: random writes on one DIMM, GB/s by log2 of bytes");
    let peaks = SIZES.map(|bytes| {
        let rates = THREADS.map(|threads| {
            let rate = rate(arguments, threads, bytes);
            curve.add(&format!("{threads} threads"), (bytes as f64).log2(), rate);
            rate
        });
        rates.into_iter().fold(0.0, f64::max)
    });
    for bytes in SIZES.into_iter().filter(|bytes| *bytes <= 512 || *bytes == 4096) {
        let published = format!("figure5.one_dimm_ntstore_{bytes}_gbps");
        let value = paper("yang-fast20").value(&published);
        curve.add("published (Yang et al., Figure 5)", (bytes as f64).log2(), value);
    }
    report.curves.push(curve);
    let over = "random writes of 128 B over 64 B";
    report.compare_as(over, ("chameleondb", "figure1.write_128"), peaks[1] / peaks[0]);
    let over = "random writes of 256 B over 64 B";
    report.compare_as(over, ("chameleondb", "figure1.write_256"), peaks[2] / peaks[0]);
    report.direction(
        "chameleondb, Figure 1",
        "random writes of 4 KiB over 256 B",
        "flat above 256 B",
        peaks[6] / peaks[2],
    );
}

/// Bytes in a nanosecond.
fn rate(arguments: &DeviceArguments, threads: usize, bytes: u64) -> f64 {
    let dram_ns = paper("yang-fast20").value("figure2.dram_ntstore_ns");
    let load = arguments.load(threads, dram_ns);
    persists(Profile::Optane100 { dimms: 1 }.device(), load, &mut Uniform { bytes }).gb_per_s
}
