//! Real DAX in a virtual machine: the store on emulated persistent memory whose power is cut.
//!
//! The host builds a machine from files (a kernel, a busybox, a statically linked test program), gives
//! it two NVDIMMs that are files, and starts it, again and again. Inside, two threads for each store
//! write what follows from a seed and acknowledge each operation by one byte to a serial port, which
//! the host has before the guest goes on. The host ends the machine without warning; in the next
//! start the guest verifies that the store holds exactly what was acknowledged, with the operation in
//! flight done or not done, and goes on writing from there.
//!
//! # Rooms
//! - `plan`: what host and guest say to each other.
//! - `workload`: the operations that follow from a seed, and what a store holds after them.
//! - `guest/`: what runs inside.
//! - `setup`: what is needed on the host, how to get it, building the test program.
//! - `image`, `archive`: NVDIMMs and initial file systems, byte by byte.
//! - `machine`: one start of the machine, from power on to the cut; `patience`: when one that says nothing is given up.
//! - `campaign`: all cuts one after the other; `variants`: of the machine.
//!
//! # What this does not test
//! Missing flushes: in the emulated machine every store reaches the file behind the NVDIMM at once, so
//! a writer that flushes nothing passes. That is the simulator's work.

pub(crate) mod archive;
pub(crate) mod campaign;
pub mod guest;
pub(crate) mod image;
pub(crate) mod machine;
pub(crate) mod patience;
pub(crate) mod plan;
pub(crate) mod setup;
pub(crate) mod variants;
pub(crate) mod workload;
