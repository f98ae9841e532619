//! The slope of persists in HiKV's emulation (ATC 2017, Figure 10).

use chimera_pmem::instrumented::{HIKV_PERSIST_NS_MAX, HIKV_PERSIST_NS_MIN, Profile};

use super::DeviceArguments;
use crate::published::paper;
use crate::report::{DeviceCurve, DeviceReport};
use crate::simulation::{Uniform, persists};

const LATENCIES: [u32; 6] = [50, 200, 400, 600, 1000, 1400];

pub(super) fn measure(arguments: &DeviceArguments, report: &mut DeviceReport) {
    let mut curve = DeviceCurve::new("HiKV, Figure 10: time of a persist, ns by ns of latency");
    let threads = 16;
    let mut ends = [0.0; 2];
    for latency_ns in LATENCIES {
        let ns = persist(arguments, threads, latency_ns);
        curve.add("16 threads", f64::from(latency_ns), ns);
        if latency_ns == HIKV_PERSIST_NS_MIN {
            ends[0] = ns;
        }
        if latency_ns == HIKV_PERSIST_NS_MAX {
            ends[1] = ns;
        }
    }
    report.curves.push(curve);
    let slope = (ends[1] - ends[0]) / f64::from(HIKV_PERSIST_NS_MAX - HIKV_PERSIST_NS_MIN);
    let what = "time of a persist over the latency that is added";
    report.direction("hikv, Section 4.1", what, "once for each persist", slope);
}

fn persist(arguments: &DeviceArguments, threads: usize, latency_ns: u32) -> f64 {
    let dram_ns = paper("yang-fast20").value("figure2.dram_clwb_ns");
    let profile = Profile::HikvNvm { persist_ns: latency_ns, read_ns: 0 };
    let load = arguments.load(threads, dram_ns);
    persists(profile.device(), load, &mut Uniform { bytes: 64 }).ns
}
