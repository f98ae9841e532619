//! Segments that are given back when a store is closed, cut off at every step, with either copy of the superblock damaged
//! afterwards.

use std::collections::BTreeMap;

use chimera::{EngineKind, Error};

use super::*;
use crate::tools::fill;

/// Bytes from one copy of the superblock to the other.
const COPY_BYTES: u64 = 4096;
/// Words of a copy that may be in use.
const COPY_WORDS: u64 = 48;
/// Segments that are made ahead of use, so that there are some to give back.
const AHEAD_SEGMENTS: u64 = 3;

/// What is wrong with the superblock when the store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    None,
    /// A bit of a word of a copy is flipped.
    Flipped {
        copy: u64,
        word: u64,
    },
    /// A copy is all zeros.
    Zeroed {
        copy: u64,
    },
}

impl Damage {
    /// One bit of each word that means something, and the whole of each copy.
    fn all() -> Vec<Self> {
        let of_copy = |copy| {
            let words = [0, 1, 4, 6, 7, 8, 15, 16];
            let flipped = words.into_iter().map(move |word| Self::Flipped { copy, word });
            flipped.chain([Self::Zeroed { copy }])
        };
        [Self::None].into_iter().chain((0..2).flat_map(of_copy)).collect()
    }

    fn apply(self, rig: &Rig) {
        match self {
            Self::None => {}
            Self::Flipped { copy, word } => {
                rig.damage(copy * COPY_BYTES + 8 * word, |value| value ^ 1 << (word % 3));
            }
            Self::Zeroed { copy } => {
                for word in 0..COPY_WORDS {
                    rig.damage(copy * COPY_BYTES + 8 * word, |_| 0);
                }
            }
        }
    }
}

/// Small stores of each engine, which make segments ahead of use.
fn engines() -> Vec<(EngineKind, Options, u64)> {
    let with = |engine: EngineKind, options: Options, segment_bytes: u64| {
        let ahead =
            options.populate_ahead_bytes(AHEAD_SEGMENTS * segment_bytes).recovery_threads(1);
        (engine, ahead.reclaim_percent(0), segment_bytes)
    };
    let of_runs = |engine| Options::new().engine(engine).segment_bytes(8192);
    vec![
        with(EngineKind::Viper, small(), SMALL.segment_bytes),
        with(
            EngineKind::Hikv,
            of_runs(EngineKind::Hikv)
                .hikv(|hikv| hikv.partitions(1).index_segment_bytes(512).heap_run_bytes(1024)),
            8192,
        ),
        with(
            EngineKind::Chameleon,
            of_runs(EngineKind::Chameleon).segment_bytes(16 << 10).chameleon(|chameleon| {
                chameleon.shards(1).memtable_bytes(256).levels(2).ratio(2).log_run_bytes(1024)
            }),
            16 << 10,
        ),
        with(
            EngineKind::PmemHash,
            of_runs(EngineKind::PmemHash)
                .log_hash(|log_hash| log_hash.index_segment_bytes(512).log_run_bytes(1024)),
            8192,
        ),
    ]
}

/// A machine whose store has some records, and segments that nothing needs.
fn grown(options: &Options, segment_bytes: u64) -> (Rig, Db<Simulated>) {
    let rig = Rig::new(8192 + 14 * segment_bytes);
    let db = rig.open(options).expect("the store opens");
    fill(&mut db.session(), 0..12, 1);
    while rig.environment().step_tasks() {}
    let stats = db.stats();
    let needed = (stats.blocks_used * stats.block_bytes).div_ceil(segment_bytes) + 1;
    assert!(stats.segments > needed, "nothing to give back: {} segments", stats.segments);
    (rig, db)
}

/// What was found: everything, or damage. Anything else fails the test.
fn judge(rig: &Rig, options: &Options, before: &Model, what: &str) -> bool {
    match rig.open(options) {
        Ok(db) => {
            assert!(contents(&db) == *before, "{what}: records are missing without a word");
            assert_sound(&db);
            // Goes on: grows again, and closes again.
            fill(&mut db.session(), 100..130, 2);
            db.close().expect("nobody else has it");
            let db = rig.open(options).expect("it was closed in order");
            assert_eq!(contents(&db).len(), before.len() + 30, "{what}");
            true
        }
        Err(Error::Corrupted { .. } | Error::Incomplete { .. }) => false,
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn segments_given_back_at_close_are_missed_by_nobody() {
    for (engine, options, segment_bytes) in engines() {
        let (rig, db) = grown(&options, segment_bytes);
        let before = contents(&db);
        let segments = db.stats().segments;
        rig.skip();
        db.close().expect("nobody else has it");
        let mut steps: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut opened, mut refused) = (0, 0);
        rig.crashes(|crash| {
            *steps.entry(crash.before()).or_default() += 1;
            // All damage where few states are left of a point, else some.
            for (number, damage) in Damage::all().into_iter().enumerate() {
                let is_chosen = (number as u64 + steps[crash.before()]).is_multiple_of(4);
                if damage != Damage::None && !is_chosen {
                    continue;
                }
                let rig = crash.rig();
                damage.apply(&rig);
                let what = format!("{engine}, before {}, {damage:?}", crash.before());
                let is_open = judge(&rig, &options, &before, &what);
                assert!(is_open || damage != Damage::None, "{what}: does not open");
                // Once it is closed either copy alone is enough.
                assert!(is_open || !crash.is_at_the_end(), "{what}: does not open");
                opened += u64::from(is_open);
                refused += u64::from(!is_open);
            }
        });
        println!("{engine}: {segments} segments, {steps:?}, {opened} opened, {refused} refused");
        assert!(steps["a change of files"] >= 4, "{engine}: no segments were removed: {steps:?}");
        assert!(steps["pool.superblock"] > 4 && opened > 40, "{engine}: {steps:?}, {opened}");
    }
}

/// As if a close had removed a segment before the superblock said so: the missing file is named.
#[test]
fn a_segment_that_is_missing_is_damage() {
    for (engine, options, segment_bytes) in engines() {
        let (rig, db) = grown(&options, segment_bytes);
        rig.skip();
        let segments = db.stats().segments;
        let path = std::path::Path::new(chimera_crashlab::rig::STORE);
        let last = path.join(format!("segment-{:06}", segments - 1));
        let count = rig.crashes(|crash| {
            let left = crash.rig();
            chimera_pmem::Environment::remove(&**left.environment(), &last).expect("it is there");
            match left.open(&options) {
                Err(error) => {
                    let text = error.to_string();
                    let is_named = text.contains("segment-") && text.contains("missing");
                    assert!(is_named, "{engine}: {text}");
                }
                Ok(_) => panic!("{engine}: opened without its last segment"),
            }
        });
        assert!(count > 0, "{engine}: no crash");
        drop(db);
    }
}
