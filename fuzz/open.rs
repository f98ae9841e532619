//! libFuzzer over hostile store files. What is done with the bytes: `chimera_crashlab::hostile`.
#![no_main]

use std::alloc::System;

use cap::Cap;

/// Hostile files must not make a store take more: files of an input have at most 512 KiB.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 64 << 20);

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| chimera_crashlab::hostile::run(bytes));
