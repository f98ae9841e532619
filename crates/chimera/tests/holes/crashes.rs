//! Crashes at every step of every operation, with everything, nothing or some of what was not yet
//! durable surviving.

use std::collections::BTreeMap;
use std::path::Path;

use chimera::pmem::{Environment, RealEnvironment};
use chimera::{Db, Geometry, Options, RecordLayout, Session};
use tempfile::TempDir;

use crate::tools::crash::{self, CrashPmem, Image, Survives};
use crate::tools::{
    Chance, SMALL, assert_sound, contents, fill, from_environment, key, key_of, open, scratch,
    small, small_any, small_with, value, value_of,
};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The store that a crash at `image` leaves.
fn after_crash(image: &Image, survives: Survives, options: &Options) -> (TempDir, Db) {
    let directory = scratch();
    image.write(directory.path(), SMALL.segment_bytes, survives);
    let db = Db::open(directory.path(), options)
        .unwrap_or_else(|error| panic!("before {}, {survives:?}: {error}", image.before));
    (directory, db)
}

/// A crash at any step leaves what was there before or after, and at the end what is there after.
/// Returns how many second copies were cleared in all.
pub(crate) fn assert_atomic(
    images: &[Image],
    before: &Model,
    after: &Model,
    options: &Options,
) -> u64 {
    let (last, _) = images.split_last().expect("there is an end");
    let mut cleared = 0;
    for image in images {
        for survives in Survives::several() {
            let (_directory, db) = after_crash(image, survives, options);
            let found = contents(&db);
            let is_done = std::ptr::eq(image, last);
            assert!(
                found == *after || found == *before && !is_done,
                "before {}, {survives:?}: neither before nor after",
                image.before
            );
            assert_sound(&db);
            assert_eq!(db.stats().records, found.len() as u64);
            cleared += db.stats().recovery.duplicates_cleared;
        }
    }
    cleared
}

/// Both layouts of records of one size, and records of any size.
fn stores() -> [Options; 3] {
    [small(), small().layout(RecordLayout::Published), small_any()]
}

/// Stores whose records have versions.
fn versioned() -> [Options; 2] {
    [small(), small_any()]
}

fn records_per_block(options: &Options) -> u64 {
    let directory = scratch();
    let in_slots = u64::from(
        open(directory.path(), options).stats().viper().expect("Viper").records_per_block,
    );
    if in_slots > 0 { in_slots } else { 8 }
}

type Work<'a> = &'a dyn Fn(&mut Session<CrashPmem>);

/// Photographs an operation on a store with keys `0..12` and checks every crash.
fn crash_everywhere(options: &Options, prepare: Work<'_>, work: Work<'_>) -> u64 {
    let directory = scratch();
    let db = crash::open(directory.path(), options);
    let mut session = db.session();
    fill(&mut session, 0..12, 1);
    prepare(&mut session);
    let before = contents(&db);
    let images = db.pmem().photograph(|| work(&mut session));
    assert!(images.len() > 2, "nothing was photographed");
    assert_atomic(&images, &before, &contents(&db), options)
}

#[test]
fn hole_01_a_crash_during_an_overwrite_leaves_one_copy() {
    for options in stores() {
        let cleared = crash_everywhere(&options, &|_| (), &|session| fill(session, [3], 2));
        assert!(cleared > 0, "no crash has left two copies: nothing was tested");
    }
}

#[test]
fn hole_01_a_crash_during_an_update_leaves_one_copy() {
    for options in stores() {
        let update: Work<'_> = &|session| {
            let new = value(3, 2);
            assert!(session.update(&key(3), |old| old.copy_from_slice(&new)).expect("update"));
        };
        assert!(crash_everywhere(&options, &|_| (), update) > 0);
    }
}

/// Once both copies are durable the newer one is in force, and stays so.
#[test]
fn hole_01_of_two_copies_the_newer_one_wins() {
    for options in versioned() {
        let directory = scratch();
        let db = crash::open(directory.path(), &options);
        let mut session = db.session();
        fill(&mut session, 0..12, 1);
        let images = db.pmem().photograph(|| fill(&mut session, [3], 2));
        let mut seen = 0;
        for image in images.iter().filter(|image| image.before == "vpage.retire") {
            for survives in Survives::several() {
                let (_directory, db) = after_crash(image, survives, &options);
                assert_eq!(db.get(&key(3)).expect("get"), Some(value(3, 2)), "{survives:?}");
                seen += db.stats().recovery.duplicates_cleared;
            }
        }
        assert!(seen > 0, "no crash has left two copies");
    }
}

/// A session whose clock is behind overwrites what a session ahead of it has written.
#[test]
fn hole_01_the_newer_one_wins_although_its_session_was_behind() {
    for options in versioned() {
        let directory = scratch();
        let db = crash::open(directory.path(), &options);
        let mut behind = db.session();
        fill(&mut behind, [50], 1);
        let mut ahead = db.session();
        fill(&mut ahead, 0..12, 1);
        let before = contents(&db);
        let images = db.pmem().photograph(|| fill(&mut behind, [3], 2));
        assert!(assert_atomic(&images, &before, &contents(&db), &options) > 0);
        let mut seen = 0;
        for image in images.iter().filter(|image| image.before == "vpage.retire") {
            let (_directory, db) = after_crash(image, Survives::Everything, &options);
            assert_eq!(db.get(&key(3)).expect("get"), Some(value(3, 2)));
            seen += db.stats().recovery.duplicates_cleared;
        }
        assert!(seen > 0, "no crash has left two copies");
    }
}

#[test]
fn hole_11_a_crash_during_a_put_leaves_no_lock() {
    for options in stores() {
        crash_everywhere(&options, &|_| (), &|session| fill(session, [100], 2));
        // With a new block, and a new segment.
        let records = 2 * records_per_block(&options);
        let fill_block: Work<'_> = &|session| fill(session, 12..records, 1);
        crash_everywhere(&options, fill_block, &|session| fill(session, [records], 1));
        let records = 24 * records_per_block(&options);
        let fill_segment: Work<'_> = &|session| fill(session, 12..records, 1);
        crash_everywhere(&options, fill_segment, &|session| fill(session, [records], 1));
    }
}

#[test]
fn deletes_and_updates_in_place_are_atomic() {
    for options in stores() {
        let delete: Work<'_> =
            &|session| assert!(session.delete(&key(3)).expect("delete"), "it is there");
        let add: Work<'_> = &|session| {
            session.fetch_add_u64(&key(3), 8, 77).expect("in place").expect("it is there");
        };
        crash_everywhere(&options, &|_| (), delete);
        crash_everywhere(&options, &|_| (), add);
        crash_everywhere(&options, add, add);
        crash_everywhere(&options, add, delete);
        crash_everywhere(&options, add, &|session| fill(session, [3], 2));
    }
}

/// Blocks that were updated in place, emptied and taken again: their flag and their bits go together.
#[test]
fn blocks_are_taken_again_atomically() {
    let prepare: Work<'_> = &|session| {
        fill(session, 12..20, 1);
        for number in 0..10 {
            session.fetch_add_u64(&key(number), 8, 1).expect("in place");
        }
        for number in 0..10 {
            session.delete(&key(number)).expect("delete");
        }
    };
    for options in stores() {
        crash_everywhere(&options, prepare, &|session| fill(session, [100], 1));
    }
}

#[test]
fn closing_is_atomic() {
    let directory = scratch();
    let db = crash::open(directory.path(), &small());
    fill(&mut db.session(), 0..12, 1);
    let model = contents(&db);
    // What the end of a session does; the rest of closing is the change of a superblock.
    let images = db.pmem().photograph(|| {
        let mut session = db.session();
        fill(&mut session, [1], 1);
        drop(session);
        db.sync().expect("memory does not fail");
    });
    assert_atomic(&images, &model, &model, &small());
}

fn open_new(path: &Path, options: &Options) -> Db<CrashPmem> {
    let environment: std::sync::Arc<dyn Environment> =
        std::sync::Arc::new(RealEnvironment::with_seed(1));
    let options = options.clone().populate_ahead_bytes(0);
    let pmem = CrashPmem::new(&options);
    pmem.start();
    Db::open_on(pmem, &environment, path, &options).expect("the store opens")
}

/// There is nothing to lose yet: a crash during creation must not be in the way of the next attempt.
#[test]
fn a_crash_during_creation_leaves_an_empty_store_or_none() {
    for options in stores() {
        let directory = scratch();
        let db = open_new(directory.path(), &options);
        let images = db.pmem().take_images();
        assert!(images.len() > 20, "{} steps", images.len());
        for image in &images {
            for survives in Survives::several() {
                let (_directory, db) = after_crash(image, survives, &options);
                assert!(contents(&db).is_empty());
                db.put(&key(1), &value(1, 1)).expect("it is a store");
            }
        }
    }
}

/// Recovery is interrupted at every step, and then tried again.
#[test]
fn a_crash_during_recovery_loses_nothing() {
    for options in versioned() {
        let directory = scratch();
        let db = crash::open(directory.path(), &options);
        let mut session = db.session();
        fill(&mut session, 0..40, 1);
        let before = contents(&db);
        let images = db.pmem().photograph(|| fill(&mut session, [3], 2));
        let after = contents(&db);
        for image in images.iter().step_by(3) {
            let crashed = scratch();
            image.write(crashed.path(), SMALL.segment_bytes, Survives::Everything);
            let recovered = open_new(crashed.path(), &options);
            let expected = contents(&recovered);
            assert!(expected == before || expected == after);
            for again in recovered.pmem().take_images().iter().step_by(5) {
                for survives in [Survives::Everything, Survives::Fenced, Survives::Some(1)] {
                    let (_directory, db) = after_crash(again, survives, &options);
                    assert!(contents(&db) == expected, "recovery twice is not recovery once");
                    assert_sound(&db);
                }
            }
        }
    }
}

/// One random operation; what it does to the model.
fn random_step(
    chance: &mut Chance,
    session: &mut Session<CrashPmem>,
    model: &mut Model,
    size: (usize, usize),
) {
    let key = key_of(chance.below(30), size.0);
    let new = value_of(chance.below(1 << 30), 1, size.1);
    match chance.below(10) {
        0..5 => {
            session.put(&key, &new).expect("put");
            model.insert(key, new);
        }
        5 | 6 => {
            session.delete(&key).expect("delete");
            model.remove(&key);
        }
        7 if size.1 >= 16 => {
            let added = session.fetch_add_u64(&key, 8, 3).expect("in place");
            if let (Some(added), Some(value)) = (added, model.get_mut(&key)) {
                value[8..16].copy_from_slice(&added.wrapping_add(3).to_le_bytes());
            }
        }
        _ => {
            session.update(&key, |old| old.copy_from_slice(&new)).expect("update");
            model.entry(key).and_modify(|old| *old = new);
        }
    }
}

/// Slots and records of odd sizes share lines with their neighbours: all that is acknowledged must be durable, and
/// nothing else may be needed.
#[test]
fn hole_02_every_line_of_an_acknowledged_record_is_flushed() {
    for (key_bytes, value_bytes) in [(1, 0), (3, 5), (8, 24), (9, 33), (16, 150)] {
        let any = small_with(Geometry { block_shift_bytes: 64, ..SMALL });
        let fixed = any.clone().fixed_size(key_bytes as u32, value_bytes as u32);
        for sized in [fixed.clone(), fixed.layout(RecordLayout::Published), any] {
            let directory = scratch();
            let db = crash::open(directory.path(), &sized);
            let mut session = db.session();
            let mut model = Model::new();
            let mut chance = Chance::new(7);
            for step in 0..60 {
                random_step(&mut chance, &mut session, &mut model, (key_bytes, value_bytes));
                let image = db.pmem().image();
                for survives in [Survives::Fenced, Survives::Some(step)] {
                    let (_directory, db) = after_crash(&image, survives, &sized);
                    assert!(contents(&db) == model, "{key_bytes} + {value_bytes}, step {step}");
                }
            }
        }
    }
}

/// Random operations, photographed at every step.
#[test]
fn every_step_of_random_operations_is_atomic() {
    let seeds = from_environment("CHIMERA_TEST_CRASH_SEEDS", 2);
    for (seed, options) in (0..seeds).flat_map(|seed| stores().map(|options| (seed, options))) {
        let directory = scratch();
        let db = crash::open(directory.path(), &options);
        let mut session = db.session();
        let mut model = Model::new();
        let mut chance = Chance::new(seed);
        for _ in 0..60 {
            random_step(&mut chance, &mut session, &mut model, (8, 24));
        }
        for _ in 0..25 {
            let before = model.clone();
            let images = db.pmem().photograph(|| {
                random_step(&mut chance, &mut session, &mut model, (8, 24));
            });
            assert_atomic(&images, &before, &model, &options);
        }
        drop(session);
        db.close().expect("nobody else has it");
        assert!(contents(&open(directory.path(), &options)) == model);
    }
}
