//! The persistence seam of Chimera.
//!
//! Everything the store does to persistent memory goes through the trait [`Pmem`]: loads, stores,
//! copies, flushes, fences. The trait gives out values, never references, so that the same engine
//! code runs on mapped hardware ([`Hardware`]), on hardware with exact counters, a device model and
//! injected latency ([`Instrumented`]), and on the simulated power failures of the crash lab.
//!
//! Everything else a store needs from the machine (clock, randomness, background tasks, files) goes
//! through [`Environment`], so that any run can be replayed from one seed.
//!
//! # Rooms
//! - `seam`, `extent`, `site`: the contract; no code of any backend.
//! - `hardware/`: mapped memory; `arch/`: the instructions, chosen at run time.
//! - `journal/`: power-safe memory on ordinary files, for `hardware/`.
//! - `mapping/`: address space, mapped parts of files, copies to and from them.
//! - `instrumented/`: counters, device model, latency profiles around `Hardware`.
//! - `environment/`: the contract of clock, randomness, tasks and files; the real one and the
//!   stepped one.
//! - [`bus_error`]: what a SIGBUS in a mapped pool means, said before the process ends.
//! - `sum`: what checksums are made of, taken while bytes are copied.
//! - `transaction`: hardware transactions on DRAM, where the machine has them.
//! - `arena`, `prefetch`: never-moving DRAM tables for indexes, and starting to load their elements.
//!
//! This is the only crate of the workspace that contains `unsafe` code.

/// What is stored as words must mean the same on every machine.
const _: () = assert!(cfg!(target_endian = "little"), "stores are little-endian");

mod arch;
mod arena;
pub mod bus_error;
pub mod environment;
mod extent;
pub mod file_size_signal;
mod hardware;
pub mod instrumented;
pub mod journal;
mod mapping;
mod medium;
mod pages;
mod prefetch;
mod seam;
mod site;
mod sum;
mod transaction;

pub use arch::FlushInstruction;
pub use arena::{Arena, AtomicWords};
pub use environment::{Environment, RealEnvironment, SteppedEnvironment};
pub use extent::{CACHE_LINE, Extent};
pub use hardware::{FlushChoice, Hardware, HardwareOptions};
pub use instrumented::Instrumented;
pub use journal::Fenced;
pub use mapping::limit_of_memory;
pub use medium::Medium;
pub use prefetch::prefetch_read;
pub use seam::{Operation, PersistenceCounts, Pmem};
pub use site::Site;
pub use sum::{sum, term};
pub use transaction::{transactions_commit, try_transaction};
