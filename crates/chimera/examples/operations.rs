//! What docs/OPERATIONS.md shows: backups, a restore drill, metrics, and what to do with an error.
//!
//! `cargo run -p chimera --example operations`

use std::error::Error;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use chimera::{BackupOptions, Db, ErrorKind, Options};

/// Makes a backup at `path`, beside the writers, and says how many records it has.
fn back_up(db: &Db, path: &Path) -> chimera::Result<u64> {
    let report = db.backup(path, &BackupOptions::new())?;
    Ok(report.records)
}

/// As `back_up`, of one moment: each writer holds `writers` for reading while it changes what belongs together.
fn back_up_one_moment(db: &Db, writers: &RwLock<()>, path: &Path) -> chimera::Result<u64> {
    let _nobody_writes = writers.write().unwrap_or_else(PoisonError::into_inner);
    back_up(db, path)
}

/// Opens a backup as a restore would, verifies every checksum, and reads a record that must be there.
fn drill(backup: &Path, key: &[u8]) -> Result<u64, Box<dyn Error>> {
    let db = Db::open(backup, &Options::new().create(false).read_only(true))?;
    let report = db.check(None);
    if let Some(damage) = report.first_damage {
        return Err(format!("damaged at byte {}: {}", damage.at, damage.what).into());
    }
    db.get(key)?.ok_or("the backup lacks a record that must be there")?;
    Ok(report.records)
}

/// Opens a store whose metrics others can read: `chimera stats --watch` and collectors.
fn open_with_metrics(path: &Path) -> chimera::Result<Db> {
    Db::open(path, &Options::new().publish_metrics(Duration::from_secs(10)))
}

/// What calls for a person: damage that the scrub has found, and places that damage has kept out.
fn alarms(db: &Db) -> u64 {
    let stats = db.stats();
    stats.scrub.damages + stats.losses.count
}

/// What a program does about an error of a write.
#[derive(Debug, PartialEq)]
enum Answer {
    /// Tell the caller: the request cannot be carried out, and nothing has changed.
    Refuse,
    /// Make room, or wait for somebody who does, and try again. Nothing has changed.
    MakeRoom,
    /// Close the store and open it again.
    Reopen,
    /// Stop writing, and get a person.
    Stop,
}

fn answer(error: &chimera::Error) -> Answer {
    match error.kind() {
        ErrorKind::InvalidArgument => Answer::Refuse,
        ErrorKind::Full => Answer::MakeRoom,
        ErrorKind::WritesRefused => Answer::Reopen,
        _ => Answer::Stop,
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let path = |name: &str| directory.path().join(name);
    let db = open_with_metrics(&path("users"))?;
    db.put(b"alice", b"the first user")?;
    db.put(b"bob", b"the second one")?;

    assert_eq!(back_up(&db, &path("monday"))?, 2);
    assert_eq!(back_up_one_moment(&db, &RwLock::new(()), &path("tuesday"))?, 2);
    for backup in ["monday", "tuesday"] {
        println!("{backup}: {} records, sound", drill(&path(backup), b"alice")?);
    }
    assert!(drill(&path("monday"), b"carol").is_err());
    assert_eq!(alarms(&db), 0);
    assert!(db.metrics_text().contains("chimera_records 2"));

    let refused = db.put(b"", b"a key has one byte at least").expect_err("an empty key");
    assert_eq!(answer(&refused), Answer::Refuse);
    let taken = db.backup(path("monday"), &BackupOptions::new()).expect_err("a taken path");
    assert_eq!(answer(&taken), Answer::Stop);
    db.close()?;
    Ok(())
}
