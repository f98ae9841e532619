//! What records of batches promise. Crashes are the crash lab's.

use std::sync::Arc;

use chimera_pmem::{Hardware, SteppedEnvironment};

use super::*;
use crate::pool::small::small_pool;

const SECRET: u64 = 7;

fn new_pool() -> Arc<Pool<Hardware>> {
    small_pool(Arc::new(SteppedEnvironment::in_memory(1)), 64 << 10, 256 << 10)
}

fn hash() -> KeyHash {
    KeyHash::new(SECRET)
}

fn change(key: &[u8], value: Option<&[u8]>) -> FoundChange {
    FoundChange { key: key.to_vec(), value: value.map(<[u8]>::to_vec), is_new: false }
}

fn insert(key: &[u8], value: &[u8]) -> FoundChange {
    FoundChange { is_new: true, ..change(key, Some(value)) }
}

/// Pieces with room for so many bytes, each of one block of the pool.
fn pieces(pool: &Pool<Hardware>, bytes: usize) -> Vec<Piece> {
    let (mut pieces, mut found) = (Vec::new(), 0);
    while found < bytes as u64 {
        let piece = pool.take_piece(256).unwrap();
        found += room(&piece);
        pieces.push(piece);
    }
    pieces
}

fn bytes_of(changes: &[FoundChange]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for FoundChange { key, value, is_new } in changes {
        push(&mut bytes, key, value.as_deref(), *is_new);
    }
    bytes
}

fn write_to(pool: &Pool<Hardware>, pieces: &[Piece], changes: &[FoundChange]) {
    write((pool, hash()), pieces, &bytes_of(changes), |_, work| work());
}

fn found(pool: &Pool<Hardware>, pieces: &[Piece]) -> Vec<Vec<FoundChange>> {
    let records = find(pool, hash(), pieces);
    records.iter().map(|record| read(pool, hash(), record).unwrap()).collect()
}

fn some_changes(values: usize) -> Vec<FoundChange> {
    let long = vec![9; values];
    vec![
        change(b"a", Some(b"")),
        insert(b"new", b"value"),
        insert(b"newer", b""),
        change(b"bb", None),
        change(&[1; 300], Some(&long)),
        change(b"a key", Some(b"a value")),
    ]
}

#[test]
fn a_record_comes_back_from_one_piece_or_many() {
    for values in [0, 5, 3000, 30_000] {
        let pool = new_pool();
        let changes = some_changes(values);
        let mut pieces = pieces(&pool, bytes_of(&changes).len());
        assert!(found(&pool, &pieces).is_empty(), "nothing was written");
        write_to(&pool, &pieces, &changes);
        assert_eq!(found(&pool, &pieces), std::slice::from_ref(&changes));
        // Opening finds pieces in any order.
        let first = pieces[0].bytes.offset();
        pieces.reverse();
        assert_eq!(found(&pool, &pieces), [changes]);
        clear(&pool, first);
        assert!(found(&pool, &pieces).is_empty(), "{} pieces", pieces.len());
    }
}

#[test]
fn records_beside_each_other_are_told_apart_and_the_last_one_of_a_piece_counts() {
    let pool = new_pool();
    let (one, other) = (some_changes(5000), vec![change(b"x", None), change(b"y", Some(b"1"))]);
    let first = pieces(&pool, bytes_of(&one).len());
    let second = pieces(&pool, bytes_of(&other).len());
    write_to(&pool, &first, &some_changes(9));
    write_to(&pool, &first, &one);
    write_to(&pool, &second, &other);
    let all: Vec<Piece> = first.into_iter().chain(second).collect();
    let mut both = found(&pool, &all);
    both.sort_unstable_by_key(Vec::len);
    assert_eq!(both, [other, one.clone()]);
    // A shorter one, of fewer pieces, over the longer one.
    write_to(&pool, &all[..1], &some_changes(9));
    assert!(!found(&pool, &all).contains(&one));
    assert_eq!(found(&pool, &all).len(), 2);
}

#[test]
fn every_changed_word_makes_it_none() {
    let pool = new_pool();
    let changes = some_changes(6000);
    let pieces = pieces(&pool, bytes_of(&changes).len());
    assert!(pieces.len() > 1, "it has two pieces at least");
    write_to(&pool, &pieces, &changes);
    let whole: Vec<Extent> =
        find(&pool, hash(), &pieces)[0].pieces.iter().map(|(_, whole)| *whole).collect();
    for extent in whole {
        let last = extent.length().div_ceil(8) - u64::from(!extent.length().is_multiple_of(8));
        for word in (0..8).chain([20, last - 1]) {
            let at = extent.offset() + 8 * word;
            let before = pool.pmem.load_u64(at);
            for changed in [before ^ 1, before ^ 1 << 63, 0, u64::MAX] {
                pool.pmem.store_u64(at, changed, sites::RECORD);
                let is_whole = !found(&pool, &pieces).is_empty();
                assert_eq!(is_whole, changed == before, "word {word} of a piece");
            }
            pool.pmem.store_u64(at, before, sites::RECORD);
        }
    }
    assert_eq!(found(&pool, &pieces), [changes]);
}

#[test]
fn what_another_store_or_another_place_has_is_none() {
    let pool = new_pool();
    let changes = some_changes(5);
    let pieces = pieces(&pool, 2 * bytes_of(&changes).len());
    write_to(&pool, &pieces, &changes);
    assert!(find(&pool, KeyHash::new(SECRET + 1), &pieces).is_empty(), "the secret is another");
    let whole = find(&pool, hash(), &pieces)[0].pieces[0].1;
    let mut bytes = vec![0; whole.length() as usize];
    pool.pmem.read(whole, &mut bytes);
    let elsewhere = pool.extent(whole.offset() + 4096, whole.length());
    pool.pmem.copy(elsewhere, &bytes, sites::RECORD);
    let piece = pool.take_piece(256).unwrap();
    let copied = Piece { bytes: pool.extent(whole.offset() + 4096, 4096), of: piece.of };
    assert!(find(&pool, hash(), &[copied]).is_empty(), "it lies elsewhere");
}

/// Bytes with a right check that no program writes.
#[test]
fn nonsense_in_a_record_is_said_to_be_none() {
    let words = |words: [u32; 4]| words.as_bytes().to_vec();
    let nonsense = [
        words([0, 1, 0, 0]),
        words([4, 0, 0, 0]),
        words([PUT, 1, 0, 0]),
        words([PUT, u32::MAX, u32::MAX, 0]),
        [words([DELETE, 1, 1, 0]), vec![1, 2]].concat(),
        vec![1, 2, 3],
    ];
    for (number, bytes) in nonsense.into_iter().enumerate() {
        let pool = new_pool();
        let pieces = pieces(&pool, bytes.len());
        write((&pool, hash()), &pieces, &bytes, |_, work| work());
        let records = find(&pool, hash(), &pieces);
        assert_eq!(records.len(), 1, "its check is right");
        assert_eq!(read(&pool, hash(), &records[0]), None, "{number}");
    }
}
