//! A test for each hole of the paper and of its public prototype that concerns records of fixed size.
//!
//! | hole | test |
//! | --- | --- |
//! | 1 two live copies after a crash | `crashes`, `duplicates` |
//! | 2 the last line of a slot is not flushed | `crashes::hole_02_..` |
//! | 3 deletes that delete nothing | `sessions::hole_03_..` |
//! | 5 updates and deletes that look once | `sessions::hole_05_..` |
//! | 7 locks and short versions on media | `sessions::hole_07_..` |
//! | 8 no magic number, version, checksum | `sessions::hole_08_..`, and `bad_input` |
//! | 9 fixed numbers of DIMMs and threads | `sessions::hole_09_..` |
//! | 10 page locks that deadlock | `sessions::hole_10_..` |
//! | 11 a lock left set by a killed process | `crashes::hole_11_..`, and `chimera-crashlab kill9` |
//! | 12 no client, large values, full disks | `sessions::hole_12_..`, and `bad_input`, `concurrency` |
//! | 13 first touches in the way of inserts | `growth::hole_13_..` |

#[path = "../tools/mod.rs"]
mod tools;

mod crashes;
mod duplicates;
mod growth;
mod sessions;
