//! Exports that were interrupted go on where their stream ends.

use std::io::{self, Write};

use chimera::{Db, Error, ExportOptions, ExportReport, Result, StreamReader};

use crate::tools::{contents, fill, key, open, scratch, small, value};
use crate::{any_size, exported, import, store_of};

/// Cuts a stream to what is right of it and goes on with it.
fn resume(db: &Db, stream: &mut Vec<u8>, frame_bytes: usize) -> Result<ExportReport> {
    let verified = StreamReader::new(&stream[..])?.verify()?;
    stream.truncate(verified.bytes() as usize);
    db.export(stream, &ExportOptions::new().frame_bytes(frame_bytes).resume(verified))
}

#[test]
fn after_a_cut_at_any_byte_the_stream_is_completed() {
    let directory = scratch();
    let sizes = [0, 1, 300, 24, 24, 5, 900, 24, 24, 24, 7, 100];
    let (db, model) = store_of(&directory.path().join("one"), &any_size(), &sizes);
    let whole = exported(&db, 100);
    let copy = open(&directory.path().join("copy"), &any_size());
    for length in 64..whole.len() {
        let mut stream = whole[..length].to_vec();
        let report = resume(&db, &mut stream, 100).expect("it goes on");
        assert_eq!((report.bytes, report.records), (stream.len() as u64, sizes.len() as u64));
        let imported = import(&copy, &stream).expect("a whole stream");
        assert_eq!(
            (imported.records, imported.replaced),
            (sizes.len() as u64, 0),
            "{length} bytes"
        );
        assert!(contents(&copy) == model, "{length} bytes");
        for key in model.keys() {
            copy.delete(key).expect("it is there");
        }
    }
}

#[test]
fn what_follows_damage_is_written_again() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    fill(&mut db.session(), 0..100, 1);
    let mut stream = exported(&db, 200);
    let middle = stream.len() / 2;
    stream[middle] ^= 4;
    resume(&db, &mut stream, 200).expect("it goes on");
    let copy = open(&directory.path().join("copy"), &small());
    assert_eq!(import(&copy, &stream).expect("a whole stream").records, 100);
    assert!(contents(&copy) == contents(&db));
}

/// Fails when it is full.
struct Full {
    bytes: Vec<u8>,
    room: usize,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(self.room - self.bytes.len())];
        self.bytes.extend_from_slice(bytes);
        if bytes.is_empty() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The store grows, changes and is opened again in between.
#[test]
fn an_export_goes_on_after_the_store_has_changed() {
    let directory = scratch();
    let path = directory.path().join("one");
    let db = open(&path, &small());
    fill(&mut db.session(), 0..300, 1);
    let mut full = Full { bytes: Vec::new(), room: 5000 };
    let outcome = db.export(&mut full, &ExportOptions::new().frame_bytes(300));
    assert!(matches!(outcome, Err(Error::StreamIo { .. })), "{outcome:?}");
    fill(&mut db.session(), 300..3000, 1);
    fill(&mut db.session(), 0..100, 2);
    for number in 200..300 {
        assert!(db.delete(key(number)).expect("it is there"));
    }
    db.close().expect("nobody else has it");
    let db = open(&path, &small().viper(|viper| viper.index_segment_slots(8)));
    let mut stream = full.bytes;
    resume(&db, &mut stream, 300).expect("it goes on");
    let copy = open(&directory.path().join("copy"), &small());
    let report = import(&copy, &stream).expect("a whole stream");
    assert_eq!(report.replaced, 0, "no key comes twice");
    let copied = contents(&copy);
    for number in 100..200 {
        assert_eq!(copied.get(&key(number)), Some(&value(number, 1)), "it was there all the time");
    }
    for number in 0..100 {
        let found = copied.get(&key(number)).expect("it was there all the time");
        assert!([value(number, 1), value(number, 2)].contains(found));
    }
}

#[test]
fn a_complete_stream_is_left_as_it_is() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    fill(&mut db.session(), 0..30, 1);
    let mut stream = exported(&db, 100);
    let whole = stream.clone();
    let report = resume(&db, &mut stream, 100).expect("nothing to do");
    assert_eq!((report.records, report.records_written), (30, 0));
    assert!(stream == whole);
}

#[test]
fn a_stream_of_another_store_is_not_gone_on_with() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    fill(&mut db.session(), 0..30, 1);
    let mut stream = exported(&db, 100);
    let other = open(&directory.path().join("other"), &small());
    for length in [stream.len(), 500] {
        stream.truncate(length);
        let before = stream.clone();
        let outcome = resume(&other, &mut stream, 100);
        assert!(
            matches!(&outcome, Err(Error::StreamMismatch(text)) if text.contains("another store")),
            "{outcome:?}"
        );
        assert!(before.starts_with(&stream), "nothing was written");
    }
}
