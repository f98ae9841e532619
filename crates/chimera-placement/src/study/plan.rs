//! [`plan`]: which workloads the study runs, with which placements.

use crate::error::Result;
use crate::placement::Placement;
use crate::study::result::Part;
use crate::workload::Mix;

/// One workload, run with each of some placements by turns.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Part of the study.
    pub(super) part: Part,
    /// The mix of operations.
    pub(super) mix: Mix,
    /// Bytes of a key.
    pub(super) key_bytes: usize,
    /// Threads.
    pub(super) threads: usize,
    /// The placements.
    pub(super) placements: Vec<Placement>,
}

/// Bytes of a value in the paper.
pub(super) const VALUE_BYTES: usize = 1024;
/// Key sizes of the paper.
const KEY_BYTES: [usize; 2] = [8, 16];
/// Threads of the paper.
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// Shares of a block cache and of memtables, under the published load with 16-byte keys and two threads.
const SHARES: [&str; 8] =
    ["dram", "cache-40", "cache-60", "memtable-40", "memtable-60", "both-40", "both-60", "both"];
/// Placements under YCSB.
const YCSB: [&str; 4] = ["dram", "cache", "both", "tier"];
/// Placements where most reads hit.
const HITS: [&str; 12] = [
    "dram",
    "cache",
    "both",
    "cache-40",
    "cache-60",
    "tier",
    "tier-exclusive",
    "tier-lz4",
    "tier-lz4-exclusive",
    "tier-whole",
    "tier-double",
    "tier-exclusive-double",
];
/// Threads of all parts that are not the paper's.
const OWN_THREADS: usize = 2;

fn named(names: &[&str]) -> Result<Vec<Placement>> {
    names.iter().map(|name| name.parse()).collect()
}

/// The groups of a part.
///
/// # Errors
/// Never: the names of placements are those above.
pub(super) fn plan(part: Part) -> Result<Vec<Group>> {
    let own =
        |mix, placements| Group { part, mix, key_bytes: 16, threads: OWN_THREADS, placements };
    match part {
        Part::Published => {
            let pairs = KEY_BYTES.into_iter().flat_map(|key| THREADS.map(|threads| (key, threads)));
            let group = |(key_bytes, threads)| Group {
                part,
                mix: Mix::ReadRandomWriteRandom,
                key_bytes,
                threads,
                placements: Placement::PUBLISHED.to_vec(),
            };
            Ok(pairs.map(group).collect())
        }
        Part::Shares => Ok(vec![own(Mix::ReadRandomWriteRandom, named(&SHARES)?)]),
        Part::Ycsb => [Mix::YcsbA, Mix::YcsbB, Mix::YcsbC, Mix::YcsbD]
            .into_iter()
            .map(|mix| Ok(own(mix, named(&YCSB)?)))
            .collect(),
        Part::Hits => Ok(vec![own(Mix::YcsbC, named(&HITS)?)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_has_24_workloads() {
        let groups = plan(Part::Published).unwrap();
        let runs: usize = groups.iter().map(|group| group.placements.len()).sum();
        assert_eq!((groups.len(), runs), (8, 24));
    }

    #[test]
    fn all_parts_compare_with_dram() {
        for part in [Part::Published, Part::Shares, Part::Ycsb, Part::Hits] {
            for group in plan(part).unwrap() {
                assert_eq!(group.placements[0], Placement::DRAM, "{part:?}");
            }
        }
    }
}
