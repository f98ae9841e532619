//! Stores on a DAX device of a simulated machine, crashed at every step.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chimera::{Db, EngineKind, Error, Options, Result};
use chimera_crashlab::rig::{Rig, STORE, Simulated};
use chimera_pmem::environment::{File, FileProvider, OpenMode};
use chimera_pmem::{Environment, Medium, Pmem};

use crate::tools::{SMALL, assert_sound, contents, fill, key, small, value};
use crate::{quiet, recovered};

/// Where segments begin.
const AREA_BYTES: u64 = 2 << 20;
/// Room for three small segments.
const CAPACITY: u64 = AREA_BYTES + 3 * SMALL.segment_bytes;

/// A machine with a blank device, which holds `word` everywhere where a store does not look for a superblock.
fn device(word: u64) -> Rig {
    let blank = 8192 / 8;
    let words: Vec<u64> =
        (0..CAPACITY / 8).map(|number| if number < blank { 0 } else { word }).collect();
    Rig::with_device(&words, Arc::new(DeviceFiles))
}

fn open(rig: &Rig) -> Db<Simulated> {
    rig.open(&quiet(&small())).expect("a blank device")
}

#[test]
fn an_interrupted_creation_is_done_again() {
    let rig = device(u64::MAX);
    let db = open(&rig);
    let count = rig.crashes(|crash| {
        let db = recovered(crash, &small());
        fill(&mut db.session(), 0..10, 1);
        assert_eq!(contents(&db).len(), 10);
    });
    assert!(count > 40, "only {count} crashes: the superblock was made");
    drop(db);
}

/// Whatever the device held before, also when it is cut off while the manifest is made.
#[test]
fn a_manifest_on_a_device_that_was_in_use_begins_without_tables() {
    let options = Options::new()
        .engine(EngineKind::Chameleon)
        .segment_bytes(SMALL.segment_bytes)
        .chameleon(|it| it.shards(2).memtable_bytes(256).levels(2).ratio(2).log_run_bytes(512));
    for word in [u64::MAX, 0x0123_4567_89ab_cdef] {
        let rig = device(word);
        let db = rig.open(&quiet(&options)).expect("a blank device");
        db.put(b"key", b"value").expect("room");
        let count = rig.crashes(|crash| {
            let db = recovered(crash, &options);
            let found = db.get(b"key").expect("sound");
            assert!(found.is_none_or(|value| value == b"value"));
            db.put(b"other", b"value").expect("room");
            assert_eq!(db.get(b"other").expect("sound").as_deref(), Some(&b"value"[..]));
            assert_sound(&db);
        });
        assert!(count > 40, "only {count} crashes: the manifest was made");
    }
}

fn destroy(rig: &Rig) -> Result<()> {
    let environment: Arc<dyn Environment> = rig.environment().clone();
    Db::destroy_on(&rig.pmem(), &environment, STORE)
}

#[test]
fn an_interrupted_destroying_leaves_the_store_or_what_can_be_destroyed() {
    let rig = device(0);
    let db = open(&rig);
    fill(&mut db.session(), 0..30, 1);
    let records = contents(&db);
    db.close().expect("nobody else has it");
    rig.skip();
    destroy(&rig).expect("nobody has it");
    let mut outcomes = [0; 3];
    rig.crashes(|crash| {
        match crash.open(&quiet(&small()).create(false)) {
            Ok(db) => {
                assert_eq!(contents(&db), records, "the whole store or none");
                outcomes[0] += 1;
            }
            Err(Error::Corrupted { .. }) => outcomes[1] += 1,
            Err(Error::NotFound { .. }) => outcomes[2] += 1,
            Err(error) => panic!("before {}: {error}", crash.before()),
        }
        match destroy(&crash.rig()) {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => panic!("before {}: {error}", crash.before()),
        }
    });
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[test]
fn what_a_device_held_before_never_comes_back() {
    // Records of an earlier store, whose superblock was wiped, lie where the new store grows.
    let old = device(0);
    let db = open(&old);
    fill(&mut db.session(), 1000..1400, 9);
    let word = |number: u64| {
        let extent = db.pmem().check(8 * number, 8);
        extent.map_or(0, |_| db.pmem().load_u64(8 * number))
    };
    let words: Vec<u64> = (0..CAPACITY / 8)
        .map(|number| if number < AREA_BYTES / 8 { 0 } else { word(number) })
        .collect();
    assert!(words.iter().filter(|word| **word != 0).count() > 1000, "the old records are there");
    let rig = Rig::with_device(&words, Arc::new(DeviceFiles));
    let db = open(&rig);
    let mut session = db.session();
    let slots = u64::from(db.stats().viper().expect("Viper").records_per_block);
    rig.skip();
    fill(&mut session, 0..=slots, 1);
    let mut fresh = 0;
    rig.crashes(|crash| {
        let db = recovered(crash, &small());
        let found = contents(&db);
        assert!(found.keys().all(|found| (0..=slots).any(|number| *found == key(number))));
        assert_sound(&db);
        fresh = fresh.max(found.len() as u64);
    });
    assert!(fresh > slots, "the last crashes find the new records");
}

#[test]
fn growth_on_a_device_is_atomic() {
    let rig = device(u64::MAX);
    let db = open(&rig);
    let slots = 24 * u64::from(db.stats().viper().expect("Viper").records_per_block);
    fill(&mut db.session(), 0..slots, 1);
    assert_eq!(db.stats().segments, 1);
    rig.skip();
    db.put(key(slots), value(slots, 1)).expect("a second segment");
    assert_eq!(db.stats().segments, 2);
    rig.crashes(|crash| {
        let db = recovered(crash, &small());
        let found = contents(&db).len() as u64;
        assert!(found == slots + 1 || found == slots && !crash.is_at_the_end(), "{found}");
        assert_sound(&db);
    });
}

/// One device, which can be opened, locked and mapped and nothing else.
#[derive(Debug)]
struct DeviceFiles;

impl FileProvider for DeviceFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        assert_eq!(path, Path::new(STORE), "only the device is opened");
        assert_ne!(mode, OpenMode::CreateNew, "a device is never created");
        Ok(Arc::new(DeviceFile))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        panic!("directory {} created", path.display())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        panic!("{} listed", path.display())
    }

    fn is_directory(&self, path: &Path) -> io::Result<Option<bool>> {
        Ok((path == Path::new(STORE)).then_some(false))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        panic!("{} removed", path.display())
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        panic!("{} synced", path.display())
    }
}

#[derive(Debug)]
struct DeviceFile;

impl File for DeviceFile {
    fn length(&self) -> io::Result<u64> {
        Ok(CAPACITY)
    }

    fn allocate(&self, _offset: u64, _length: u64) -> io::Result<()> {
        panic!("storage of a device allocated")
    }

    fn punch(&self, _offset: u64, _length: u64) -> io::Result<()> {
        panic!("a hole punched into a device")
    }

    fn read_at(&self, _offset: u64, _into: &mut [u8]) -> io::Result<()> {
        panic!("a device read")
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        panic!("a device written")
    }

    fn set_length(&self, _length: u64) -> io::Result<()> {
        panic!("a device cut or extended")
    }

    fn sync(&self) -> io::Result<()> {
        panic!("a device synced")
    }

    fn try_lock(&self, _exclusive: bool) -> io::Result<bool> {
        Ok(true)
    }

    fn medium(&self) -> io::Result<Medium> {
        Ok(Medium::DevDax)
    }

    fn mapping_alignment(&self) -> u64 {
        4096
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_read_only(&self) -> bool {
        false
    }
}
