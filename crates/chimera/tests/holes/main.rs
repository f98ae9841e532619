//! A test for each hole of the paper and of its public prototype, on records of one size and of any size
//! where it concerns both. Those that a crash opens are tested on the simulated machine of the crash lab
//! (`crates/chimera-crashlab/tests/crashes`, by the same names).
//!
//! | hole | test |
//! | --- | --- |
//! | 1 two live copies after a crash | `duplicates`, and the crash lab |
//! | 2 the last line of a slot is not flushed | the crash lab |
//! | 3 deletes that delete nothing | `sessions::hole_03_..` |
//! | 4 compaction loses updates | the crash lab, and `tests/reclaim` |
//! | 5 updates and deletes that look once | `sessions::hole_05_..` |
//! | 6 recovery and updates in place of any size | the crash lab, and `tests/variable` |
//! | 7 locks and short versions on media | `sessions::hole_07_..` |
//! | 8 no magic number, version, checksum | `sessions::hole_08_..`, and `bad_input` |
//! | 9 fixed numbers of DIMMs and threads | `sessions::hole_09_..` |
//! | 10 page locks that deadlock | `sessions::hole_10_..` |
//! | 11 a lock left set by a killed process | the crash lab, and `chimera-crashlab kill9` |
//! | 12 no client, large values, reclamation, full disks | `sessions::hole_12_..`, `reclaim::hole_12_..`, and `bad_input`, `concurrency` |
//! | 13 first touches in the way of inserts | the crash lab |
//! | 14 one code for empty, next page, end and too long | `records::hole_14_..`, and `tests/variable` |

#[path = "../tools/mod.rs"]
mod tools;

mod duplicates;
mod reclaim;
mod records;
mod sessions;
