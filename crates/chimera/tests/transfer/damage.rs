//! Streams that are cut or damaged, and stores that are full: what was verified is kept.

use std::io::{self, Read};

use chimera::{Db, Error, ImportOptions, StreamReader};

use crate::tools::{contents, fill, open, scratch, small};
use crate::{Model, exported, import};

const RECORDS: u64 = 12;

/// A store's content, and its stream with three records in a frame.
fn original(directory: &std::path::Path) -> (Model, Vec<u8>) {
    let db = open(&directory.join("original"), &small());
    fill(&mut db.session(), 0..RECORDS, 1);
    let bytes = exported(&db, 3 * 40);
    assert_eq!(bytes.len(), 64 + 4 * (48 + 120) + 64);
    (contents(&db), bytes)
}

fn clear(db: &Db) {
    for key in contents(db).into_keys() {
        db.delete(&key).expect("it is there");
    }
}

fn is_part_of(part: &Model, whole: &Model) -> bool {
    part.iter().all(|(key, value)| whole.get(key) == Some(value))
}

#[test]
fn of_a_stream_that_is_cut_the_whole_frames_are_kept() {
    let directory = scratch();
    let (model, bytes) = original(directory.path());
    let db = open(&directory.path().join("copy"), &small());
    for length in 0..bytes.len() {
        clear(&db);
        if length < 64 {
            let outcome = import(&db, &bytes[..length]);
            assert!(matches!(outcome, Err(Error::StreamTruncated { at }) if at == length as u64));
            continue;
        }
        let Err(Error::ImportStopped { at, frame, records, position, why }) =
            import(&db, &bytes[..length])
        else {
            panic!("{length} bytes were taken for a whole stream")
        };
        assert!(matches!(*why, Error::StreamTruncated { at } if at == length as u64), "{why}");
        assert!(at <= length as u64);
        let whole = (length as u64 - 64) / 168;
        assert_eq!((frame, records, at), (whole.min(4), 3 * whole.min(4), 64 + 168 * whole.min(4)));
        let kept = contents(&db);
        assert!(kept.len() as u64 == records && is_part_of(&kept, &model), "{length} bytes");
        // The rest, once there is a whole stream.
        let mut reader = StreamReader::new(&bytes[..]).expect("a stream");
        let report = db.import(&mut reader, &ImportOptions::new().resume(position));
        let report = report.expect("a whole stream");
        assert_eq!((report.skipped, report.records), (records, RECORDS - records));
        assert_eq!(report.replaced, 0);
        assert!(contents(&db) == model, "{length} bytes");
    }
}

#[test]
fn of_a_stream_with_a_flipped_bit_what_comes_before_is_kept() {
    let directory = scratch();
    let (model, bytes) = original(directory.path());
    let db = open(&directory.path().join("copy"), &small());
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let records = match import(&db, &damaged) {
            Err(Error::ImportStopped { records, at, .. }) => {
                assert!(at <= bit as u64 / 8, "bit {bit}: {at}");
                records
            }
            Err(Error::StreamDamaged { .. }) if bit < 64 * 8 => 0,
            outcome => panic!("bit {bit}: {outcome:?}"),
        };
        let kept = contents(&db);
        assert!(kept.len() as u64 == records && is_part_of(&kept, &model), "bit {bit}");
        clear(&db);
    }
}

#[test]
fn a_position_of_another_stream_is_refused() {
    let directory = scratch();
    let (_, bytes) = original(directory.path());
    let db = open(&directory.path().join("copy"), &small());
    let Err(Error::ImportStopped { position, .. }) = import(&db, &bytes[..500]) else {
        panic!("it was cut")
    };
    assert_eq!(position.to_string().parse(), Ok(position));
    clear(&db);
    let other = open(&directory.path().join("original"), &small());
    let other = exported(&other, 3 * 40);
    let mut reader = StreamReader::new(&other[..]).expect("a stream");
    let outcome = db.import(&mut reader, &ImportOptions::new().resume(position));
    assert!(matches!(outcome, Err(Error::StreamMismatch(_))), "{outcome:?}");
    assert!(contents(&db).is_empty());
}

#[test]
fn a_full_store_keeps_what_it_took_and_goes_on_when_there_is_room() {
    let directory = scratch();
    let db = open(&directory.path().join("original"), &small());
    fill(&mut db.session(), 0..400, 1);
    let bytes = exported(&db, 500);
    let path = directory.path().join("copy");
    let copy = open(&path, &small().capacity_bytes(8 << 10));
    let Err(Error::ImportStopped { records, position, why, .. }) = import(&copy, &bytes) else {
        panic!("there is not so much room")
    };
    assert!(matches!(*why, Error::PoolFull { .. }), "{why}");
    assert!(records > 0 && contents(&copy).len() as u64 == records);
    copy.close().expect("nobody else has it");
    let copy = open(&path, &small());
    let mut reader = StreamReader::new(&bytes[..]).expect("a stream");
    let report = copy.import(&mut reader, &ImportOptions::new().resume(position));
    let report = report.expect("there is room");
    assert!(report.skipped > 0 && report.skipped <= records);
    assert_eq!(report.skipped + report.records, 400);
    assert!(contents(&copy) == contents(&db));
}

/// Fails after some bytes.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = into.len().min(self.0.len());
        if bytes == 0 {
            return Err(io::Error::other("the line is dead"));
        }
        into[..bytes].copy_from_slice(&self.0[..bytes]);
        self.0 = &self.0[bytes..];
        Ok(bytes)
    }
}

#[test]
fn a_source_that_fails_is_told_from_a_stream_that_ends() {
    let directory = scratch();
    let (_, bytes) = original(directory.path());
    let db = open(&directory.path().join("copy"), &small());
    let mut reader = StreamReader::new(Broken(&bytes[..400])).expect("a header");
    match db.import(&mut reader, &ImportOptions::new()) {
        Err(Error::ImportStopped { records: 6, why, .. }) => {
            assert!(why.to_string().contains("the line is dead"), "{why}");
        }
        outcome => panic!("{outcome:?}"),
    }
    assert_eq!(contents(&db).len(), 6);
    let reader = StreamReader::new(Broken(&bytes[..400])).expect("a header");
    assert!(matches!(reader.verify(), Err(Error::StreamIo { .. })), "nothing is to be cut off");
}

#[test]
fn what_is_no_stream_is_refused() {
    let directory = scratch();
    let db = open(&directory.path().join("copy"), &small());
    for bytes in [
        &b"short"[..],
        b"something else, and long enough to have been a header of a stream ..",
        &[0; 200],
    ] {
        let outcome = import(&db, bytes);
        assert!(matches!(outcome, Err(Error::StreamDamaged { at: 0, .. })), "{outcome:?}");
    }
}
