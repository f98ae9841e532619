//! Verification: all entries of the index, and their items.

use chimera_pmem::Pmem;

use super::items::Items;
use super::rebuild::Rebuild;
use crate::engine::contract::client::SharedClient;
use crate::engine::contract::upkeep::{Point, Scrubbed};
use crate::index::Probe;
use crate::index::persistent::partitioned_hash::Batch;
use crate::types::check::CheckReport;

/// Entries after which a step ends.
const STEP_ENTRIES: usize = 64;

/// Verification of a store.
pub(super) struct Check<'i, P: Pmem> {
    pub(super) items: &'i Items<P>,
    pub(super) rebuild: &'i Rebuild,
}

impl<P: Pmem> Check<'_, P> {
    /// Verifies some entries of a segment, with their items; at its end also what of the segment is no entry. At the end
    /// of a store that is open for reading only also that no two items lie at one place.
    pub(super) fn step(&self, from: Point, report: &mut CheckReport) -> Scrubbed {
        let (mut batch, mut client) = (Batch::default(), SharedClient::new(0));
        self.items.index().list(from.next, &mut batch);
        let mut next = batch.next;
        for (number, alike) in batch.entries.chunk_by(|one, other| one.0 == other.0).enumerate() {
            if number == STEP_ENTRIES {
                next = Some(alike[0].0);
                break;
            }
            self.check_hash(&mut client, alike[0].0, report);
        }
        if next == batch.next {
            for at in batch.damages {
                report.damage(at, "a part of the index is damaged".to_owned());
            }
        }
        let Some(next) = next else {
            // What is damaged in another way was found before.
            if let (Some((at, what)), 0) = (self.rebuild.ask(self.items), report.damages) {
                report.damage(at, what.to_owned());
            }
            report.blocks += self.items.pool().used_blocks();
            return Scrubbed::Done;
        };
        let done = report.index_entries;
        Scrubbed::More {
            next: Point { part: 0, next },
            done,
            whole: self.items.index().len().max(done),
        }
    }

    /// Verifies the entries of a hash.
    fn check_hash(&self, client: &mut SharedClient, hash: u64, report: &mut CheckReport) {
        let _key = self.items.lock_key_to_look(hash);
        let mut positions = Vec::new();
        // A damaged slot is reported with its segment.
        let _ = self.items.index().find(hash, |at| {
            if !positions.contains(&at) {
                positions.push(at);
            }
            Probe::<()>::NotThis
        });
        for at in positions {
            report.index_entries += 1;
            let item = self.items.heap().decode(at).filter(|item| self.items.is_of(item, hash));
            let sound = item
                .filter(|item| self.items.read_item(item, hash, &mut client.value, true).is_ok());
            match sound {
                Some(item) => {
                    report.records += 1;
                    report.bytes += (item.key_bytes + item.value_bytes) as u64;
                }
                None => report.damage(at, "a record does not match its checksum".to_owned()),
            }
        }
    }
}
