//! Backups that are cut off.

use std::sync::Arc;

use chimera::{BackupOptions, Error};
use chimera_crashlab::rig::{Rig, STORE};
use chimera_pmem::Environment;

use crate::tools::{assert_sound, contents, fill, small};
use crate::{MEMORY_BYTES, quiet, rig};

/// At every step of it, whatever a power loss takes of what was not fenced.
#[test]
fn after_a_power_loss_a_backup_is_whole_or_says_that_it_is_not() {
    let (_source, db) = rig(&small());
    fill(&mut db.session(), 0..40, 1);
    let whole = contents(&db);
    let rig = Rig::new(MEMORY_BYTES);
    let environment: Arc<dyn Environment> = rig.environment().clone();
    db.backup_on(rig.pmem(), &environment, STORE, &BackupOptions::new()).expect("a backup");
    let (mut refused, mut opened) = (0, 0);
    rig.crashes(|crash| match crash.open(&quiet(&small()).create(false)) {
        Ok(db) => {
            assert!(contents(&db) == whole, "before {}", crash.before());
            assert_sound(&db);
            opened += 1;
        }
        Err(Error::Incomplete { .. } | Error::NotFound { .. }) => {
            assert!(!crash.is_at_the_end());
            refused += 1;
        }
        Err(error) => panic!("before {}: {error}", crash.before()),
    });
    assert!(refused > 500 && opened > 5, "{refused} refused, {opened} opened");
    assert!(contents(&rig.open(&quiet(&small())).expect("the backup opens")) == whole);
}
