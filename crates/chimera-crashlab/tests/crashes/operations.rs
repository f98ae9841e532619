//! Crashes at every step of every operation: whatever of what was not yet durable survives.

use chimera::baselines::RecordLayout;
use chimera::{Geometry, Options, Session};
use chimera_crashlab::rig::{Rig, Simulated};

use crate::tools::{
    Chance, SMALL, assert_sound, contents, fill, from_environment, key, key_of, small_with, value,
    value_of,
};
use crate::{MEMORY_BYTES, Model, Work, assert_atomic, quiet, recovered, rig, stores, versioned};

fn records_per_block(options: &Options) -> u64 {
    let in_slots = u64::from(rig(options).1.stats().viper().expect("Viper").records_per_block);
    if in_slots > 0 { in_slots } else { 8 }
}

/// Does an operation on a store with keys `0..12` and checks every crash.
fn crash_everywhere(options: &Options, prepare: Work<'_>, work: Work<'_>) -> u64 {
    let (rig, db) = rig(options);
    let mut session = db.session();
    fill(&mut session, 0..12, 1);
    prepare(&mut session);
    let before = contents(&db);
    rig.skip();
    work(&mut session);
    assert_atomic(&rig, &before, &db, options)
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
            assert!(session.update(key(3), |old| old.copy_from_slice(&new)).expect("update"));
        };
        assert!(crash_everywhere(&options, &|_| (), update) > 0);
    }
}

/// Once both copies are durable the newer one is in force, and stays so.
#[test]
fn hole_01_of_two_copies_the_newer_one_wins() {
    for options in versioned() {
        let (rig, db) = rig(&options);
        let mut session = db.session();
        fill(&mut session, 0..12, 1);
        rig.skip();
        fill(&mut session, [3], 2);
        assert!(newer_wins(&rig, &options) > 0, "no crash has left two copies");
    }
}

/// A session whose clock is behind overwrites what a session ahead of it has written.
#[test]
fn hole_01_the_newer_one_wins_although_its_session_was_behind() {
    for options in versioned() {
        let (rig, db) = rig(&options);
        let mut behind = db.session();
        fill(&mut behind, [50], 1);
        let mut ahead = db.session();
        fill(&mut ahead, 0..12, 1);
        rig.skip();
        fill(&mut behind, [3], 2);
        assert!(newer_wins(&rig, &options) > 0, "no crash has left two copies");
    }
}

/// Asserts that key 3 has its second value once both records are durable. How often both were there.
fn newer_wins(rig: &Rig, options: &Options) -> u64 {
    let mut seen = 0;
    rig.crashes(|crash| {
        let db = recovered(crash, options);
        assert_sound(&db);
        let found = db.get(key(3)).expect("get");
        let is_durable = crash.before() == "vpage.retire" || crash.is_at_the_end();
        assert!(found == Some(value(3, 2)) || found == Some(value(3, 1)) && !is_durable);
        if is_durable {
            seen += db.stats().recovery.duplicates_cleared;
        }
    });
    seen
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
            &|session| assert!(session.delete(key(3)).expect("delete"), "it is there");
        let add: Work<'_> = &|session| {
            session.fetch_add_u64(key(3), 8, 77).expect("in place").expect("it is there");
        };
        crash_everywhere(&options, &|_| (), delete);
        crash_everywhere(&options, &|_| (), add);
        crash_everywhere(&options, add, add);
        crash_everywhere(&options, add, delete);
        crash_everywhere(&options, add, &|session| fill(session, [3], 2));
    }
}

/// Blocks of records that were updated in place, emptied and taken again.
#[test]
fn blocks_are_taken_again_atomically() {
    let prepare: Work<'_> = &|session| {
        fill(session, 12..20, 1);
        for number in 0..10 {
            session.fetch_add_u64(key(number), 8, 1).expect("in place");
        }
        for number in 0..10 {
            session.delete(key(number)).expect("delete");
        }
    };
    for options in stores() {
        crash_everywhere(&options, prepare, &|session| fill(session, [100], 1));
    }
}

#[test]
fn closing_is_atomic() {
    for options in stores() {
        let (rig, db) = rig(&options);
        fill(&mut db.session(), 0..12, 1);
        let model = contents(&db);
        rig.skip();
        let mut session = db.session();
        fill(&mut session, [1], 1);
        drop(session);
        db.sync().expect("memory does not fail");
        db.close().expect("nobody else has it");
        let count = rig.crashes(|crash| {
            let db = recovered(crash, &options);
            assert!(contents(&db) == model, "before {}", crash.before());
            assert_sound(&db);
            assert!(db.stats().recovery.clean || !crash.is_at_the_end());
        });
        assert!(count > 10, "only {count} crashes");
    }
}

/// There is nothing to lose yet: a crash during creation must not be in the way of the next attempt.
#[test]
fn a_crash_during_creation_leaves_an_empty_store_or_none() {
    for options in stores() {
        let (rig, db) = rig(&options);
        let count = rig.crashes(|crash| {
            let db = recovered(crash, &options);
            assert!(contents(&db).is_empty());
            db.put(key(1), value(1, 1)).expect("it is a store");
        });
        assert!(count > 60, "only {count} crashes");
        drop(db);
    }
}

/// Recovery is interrupted at every step, and then tried again.
#[test]
fn a_crash_during_recovery_loses_nothing() {
    for options in versioned() {
        let (rig, db) = rig(&options);
        let mut session = db.session();
        fill(&mut session, 0..40, 1);
        let before = contents(&db);
        rig.skip();
        fill(&mut session, [3], 2);
        let after = contents(&db);
        let mut count = 0;
        rig.crashes(|crash| {
            let rig = crash.rig();
            let recovering = rig.open(&quiet(&options)).expect("the store opens");
            let expected = contents(&recovering);
            assert!(expected == before || expected == after);
            count += rig.crashes(|crash| {
                let db = recovered(crash, &options);
                assert!(contents(&db) == expected, "recovery twice is not recovery once");
                assert_sound(&db);
            });
        });
        assert!(count > 300, "only {count} crashes");
    }
}

/// One random operation; what it does to the model.
fn random_step(
    chance: &mut Chance,
    session: &mut Session<Simulated>,
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
        for sized in
            [fixed.clone(), fixed.viper(|viper| viper.layout(RecordLayout::Published)), any]
        {
            let (rig, db) = rig(&sized);
            let mut session = db.session();
            let mut model = Model::new();
            let mut chance = Chance::new(7);
            for step in 0..60 {
                random_step(&mut chance, &mut session, &mut model, (key_bytes, value_bytes));
                rig.crashes(|crash| {
                    let db = recovered(crash, &sized);
                    let is_done = contents(&db) == model;
                    let about = format!("{key_bytes} + {value_bytes}, step {step}");
                    assert!(is_done || !crash.is_at_the_end(), "{about}");
                });
            }
        }
    }
}

/// Random operations, crashed at every step.
#[test]
fn every_step_of_random_operations_is_atomic() {
    let seeds = from_environment("CHIMERA_TEST_CRASH_SEEDS", 2);
    for (seed, options) in (0..seeds).flat_map(|seed| stores().map(|options| (seed, options))) {
        let rig = Rig::new(MEMORY_BYTES);
        let db = rig.open(&quiet(&options)).expect("the store opens");
        let mut session = db.session();
        let mut model = Model::new();
        let mut chance = Chance::new(seed);
        for _ in 0..60 {
            random_step(&mut chance, &mut session, &mut model, (8, 24));
        }
        rig.skip();
        for _ in 0..25 {
            let before = model.clone();
            random_step(&mut chance, &mut session, &mut model, (8, 24));
            assert_eq!(contents(&db), model);
            assert_atomic(&rig, &before, &db, &options);
        }
        drop(session);
        db.close().expect("nobody else has it");
        assert!(contents(&rig.open(&quiet(&options)).expect("the store opens")) == model);
    }
}
