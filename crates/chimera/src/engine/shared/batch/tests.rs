//! Batches that cannot be made: one change fails, and one that takes another back.

use std::sync::Arc;

use chimera_pmem::{Environment, Hardware, RealEnvironment};

use crate::types::batch::Batch;
use crate::{Db, Error, ErrorKind, Options};

/// A store in anonymous memory, nearly full.
fn store(options: &Options) -> Db<Hardware> {
    let options = options.clone().anonymous(256 << 10).segment_bytes(64 << 10).reclaim_percent(0);
    let environment: Arc<dyn Environment> = Arc::new(RealEnvironment::new());
    let hardware = Hardware::new(options.hardware_options()).unwrap();
    Db::open_on(hardware, &environment, "", &options).unwrap()
}

#[test]
fn a_batch_that_is_too_large_is_refused_before_anything_is_written() {
    let db = store(&Options::new());
    let mut batch = Batch::new();
    for number in 0..80_u8 {
        batch.put([number], vec![number; 1 << 20]);
    }
    let error = db.write(&batch).unwrap_err();
    assert!(matches!(error, Error::BatchSize { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(db.is_empty());
}

/// Each of many batches in a store without room changes all of its keys, or none; and nothing is in doubt.
#[test]
fn batches_without_room_are_taken_back() {
    let mut refused = 0;
    for round in 0..6_u64 {
        let db = store(&Options::new());
        let key = |number: u64| number.to_le_bytes();
        let value =
            |number: u64, version: u64| vec![version as u8; 40 + (number % 7 * 50) as usize];
        let mut version = 1;
        while db.put(key(1000 + version), value(version, 1)).is_ok() {
            version += 1;
        }
        let mut held = [0_u64; 40];
        for version in 1..60 {
            let mut batch = Batch::new();
            let numbers: Vec<u64> =
                (0..40).filter(|number| (number + version) % 3 != round % 3).collect();
            for number in &numbers {
                batch.put(key(*number), value(*number, version));
            }
            match db.write(&batch) {
                Ok(()) => numbers.iter().for_each(|number| held[*number as usize] = version),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                    refused += 1;
                }
            }
            for (number, version) in (0..).zip(held) {
                let expected = (version > 0).then(|| value(number, version));
                assert_eq!(db.get(key(number)).unwrap(), expected);
            }
            // Room for a part of one.
            db.delete(key(1000 + version)).unwrap();
        }
        assert!(db.check(None).is_sound());
    }
    assert!(refused > 50, "{refused}");
}
