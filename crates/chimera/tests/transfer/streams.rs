//! Round trips: between stores of fixed sizes and of any size.

use chimera::{Error, Options, StreamReader};

use crate::tools::{assert_sound, contents, fill, key, open, scratch, small};
use crate::{any_size, exported, import, store_of};

#[test]
fn fixed_records_go_to_a_store_like_theirs() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    fill(&mut db.session(), 0..1000, 1);
    for frame_bytes in [1, 100, 1 << 20] {
        let bytes = exported(&db, frame_bytes);
        let reader = StreamReader::new(&bytes[..]).expect("a stream");
        assert_eq!((reader.kind().key_bytes, reader.kind().value_bytes), (8, 24));
        assert_eq!(reader.verify().expect("readable").records(), 1000);
        let copy = open(&directory.path().join(format!("copy-{frame_bytes}")), &small());
        let report = import(&copy, &bytes).expect("a whole stream");
        assert_eq!((report.records, report.replaced, report.skipped), (1000, 0, 0));
        assert_eq!(report.bytes, bytes.len() as u64);
        assert!(contents(&copy) == contents(&db));
        assert_sound(&copy);
        // Once more: nothing new.
        assert_eq!(import(&copy, &bytes).expect("a whole stream").replaced, 1000);
        assert!(contents(&copy) == contents(&db));
    }
}

#[test]
fn an_empty_store_is_a_stream_too() {
    let directory = scratch();
    let db = open(&directory.path().join("one"), &small());
    let bytes = exported(&db, 100);
    assert_eq!(bytes.len(), 64 + 48 + 16);
    let copy = open(&directory.path().join("copy"), &small());
    assert_eq!(import(&copy, &bytes).expect("a whole stream").records, 0);
}

/// On both sides of every bound: a page, a block, what lies beside a key, a frame.
#[test]
fn records_of_any_size_go_round() {
    let directory = scratch();
    let around = |size: usize| [size - 1, size, size + 1];
    let mut sizes: Vec<usize> = [4096, 24 << 10, 64 << 10, 1 << 20].map(around).concat();
    sizes.extend([0, 1, 200, 3 << 20, 5 << 20]);
    let options = Options::new().segment_bytes(64 << 20);
    let (db, model) = store_of(&directory.path().join("one"), &options, &sizes);
    let bytes = exported(&db, 1 << 20);
    let copy = open(&directory.path().join("copy"), &options);
    assert_eq!(import(&copy, &bytes).expect("a whole stream").records, model.len() as u64);
    assert!(contents(&copy) == model);
    assert_sound(&copy);
}

#[test]
fn records_of_fixed_sizes_go_to_a_store_of_any_size_and_back() {
    let directory = scratch();
    let db = open(&directory.path().join("fixed"), &small());
    fill(&mut db.session(), 0..300, 1);
    let any = open(&directory.path().join("any"), &any_size());
    import(&any, &exported(&db, 500)).expect("it takes every size");
    assert!(contents(&any) == contents(&db));
    let back = open(&directory.path().join("back"), &small());
    import(&back, &exported(&any, 500)).expect("all have the right size");
    assert!(contents(&back) == contents(&db));
    assert_sound(&back);
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let directory = scratch();
    let db = open(&directory.path().join("fixed"), &small());
    fill(&mut db.session(), 0..10, 1);
    let other = open(&directory.path().join("other"), &small().fixed_size(8, 16));
    match import(&other, &exported(&db, 100)) {
        Err(Error::StreamMismatch(text)) => {
            assert!(text.contains("8 + 24") && text.contains("8 + 16"), "{text}");
        }
        outcome => panic!("{outcome:?}"),
    }
    assert!(contents(&other).is_empty());

    // Of any size, one does not fit: what comes before stays.
    let any = open(&directory.path().join("any"), &any_size());
    fill(&mut any.session(), 0..40, 1);
    any.put(key(7), b"short").expect("room");
    match import(&open(&directory.path().join("third"), &small()), &exported(&any, 1)) {
        Err(Error::ImportStopped { records, frame, why, .. }) => {
            assert!(matches!(*why, Error::ValueSize { found: 5, expected: 24 }), "{why}");
            assert_eq!(records, frame, "a record in each frame");
        }
        outcome => panic!("{outcome:?}"),
    }
}

/// Of a store's files, copied.
#[test]
fn the_order_of_records_stays_the_same() {
    let directory = scratch();
    let path = directory.path().join("one");
    let db = open(&path, &small());
    fill(&mut db.session(), 0..500, 1);
    let bytes = exported(&db, 1);
    db.close().expect("nobody else has it");
    let db = open(&path, &small().viper(|viper| viper.index_segment_slots(16)).recovery_threads(2));
    let again = exported(&db, 1);
    let order = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let frame = 48 + 8 + 8 + 24;
        bytes[64..].chunks_exact(frame).map(|frame| frame[56..].to_vec()).collect()
    };
    assert_eq!(order(&bytes).len(), 500);
    assert!(order(&bytes) == order(&again));
}
