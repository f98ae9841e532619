//! Workloads, drivers and figures for Chimera.
#![forbid(unsafe_code)]
