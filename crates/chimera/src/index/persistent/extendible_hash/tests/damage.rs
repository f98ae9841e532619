//! Damage: said and never silent, nor a panic.

use super::*;

fn filled(count: u64) -> (Arc<Pool<Hardware>>, ExtendibleHash<Hardware>) {
    let pool = new_pool(1 << 20);
    let index = new_index(&pool);
    (0..count).for_each(|number| insert(&index, hash_of(number), number).unwrap());
    (pool, index)
}

fn is_corrupted<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Corrupted { .. }))
}

#[test]
fn every_flipped_bit_of_a_slot_is_said() {
    let (pool, index) = filled(200);
    let hash = hash_of(17);
    let slots = index.slots(index.lock(hash).unwrap().unwrap().at);
    let at = slots.offset(slots.find(hash, record(17).offset()).unwrap());
    for word_at in [at, at + 8] {
        let word = pool.pmem.load_u64(word_at);
        for bit in 0..64 {
            pool.pmem.store_u64(word_at, word ^ 1 << bit, SITE);
            assert!(is_corrupted(&positions(&index, hash)), "bit {bit}");
            assert_eq!(listed(&index).1, [at]);
            let (salvaged, _, damages) = recovered(&pool, true).unwrap();
            assert_eq!((damages, salvaged.len()), (1, 199));
            assert_eq!(positions(&salvaged, hash).unwrap(), [0; 0]);
        }
        pool.pmem.store_u64(word_at, word, SITE);
    }
    assert_eq!(positions(&index, hash).unwrap(), [record(17).offset()]);
}

#[test]
fn every_flipped_bit_of_a_header_or_of_the_directory_is_said() {
    let (pool, index) = filled(200);
    let hash = hash_of(17);
    let segment = index.lock(hash).unwrap().unwrap().at;
    let directory = index.directory().unwrap();
    for word_at in [segment, directory.word_at(hash), directory.at] {
        let word = pool.pmem.load_u64(word_at);
        for bit in 0..64 {
            pool.pmem.store_u64(word_at, word ^ 1 << bit, SITE);
            assert!(is_corrupted(&recovered(&pool, false)), "bit {bit} of {word_at}");
            let (salvaged, _, damages) = recovered(&pool, true).unwrap();
            assert!(damages > 0);
            listed(&salvaged);
            for number in 0..200 {
                let found = positions(&salvaged, hash_of(number)).unwrap();
                assert!(found.is_empty() || found == [record(number).offset()]);
            }
            if word_at != directory.at {
                assert!(is_corrupted(&index.insert(hash, record(500))));
                assert!(!listed(&index).1.is_empty());
            }
            if word_at == directory.word_at(hash) {
                assert!(is_corrupted(&positions(&index, hash)));
            }
        }
        pool.pmem.store_u64(word_at, word, SITE);
    }
    assert_eq!(recovered(&pool, false).unwrap().0.len(), 200);
}

#[test]
fn a_word_of_the_directory_that_is_another_ones_is_said() {
    let (pool, index) = filled(200);
    let directory = index.directory().unwrap();
    let (one, other) = (directory.number_at(0), directory.number_at(3));
    let word = pool.pmem.load_u64(one);
    pool.pmem.store_u64(one, pool.pmem.load_u64(other), SITE);
    assert!(is_corrupted(&recovered(&pool, false)));
    assert!(is_corrupted(&positions(&index, 0)));
    // As it would be written there, of a place where nothing is.
    for wrong in [64, 128, pool.pmem.mapped() - 64, 1 << 47] {
        pool.pmem.store_u64(one, buckets::position(one, wrong), SITE);
        assert!(is_corrupted(&recovered(&pool, false)));
    }
    pool.pmem.store_u64(one, word, SITE);
    recovered(&pool, false).unwrap();
}

#[test]
fn every_line_that_is_zeroed_is_said_or_leaves_all_that_is_there() {
    let (pool, index) = filled(60);
    let segments: Vec<_> =
        (0..60).map(|number| index.lock(hash_of(number)).unwrap().unwrap().at).collect();
    let directory = index.directory().unwrap();
    for line_at in segments.iter().copied().chain([directory.at, directory.number_at(0)]) {
        let words: Vec<_> = (0..8).map(|word| pool.pmem.load_u64(line_at + 8 * word)).collect();
        pool.pmem.zero(pool.extent(line_at, CACHE_LINE), SITE);
        assert!(is_corrupted(&recovered(&pool, false)), "line {line_at}");
        for (word, number) in words.into_iter().zip(0..) {
            pool.pmem.store_u64(line_at + 8 * number, word, SITE);
        }
    }
    assert_eq!(recovered(&pool, false).unwrap().0.len(), 60);
}

#[test]
fn a_damaged_slot_is_said_also_after_its_segment_was_split() {
    for victim in 0..12 {
        let (pool, index) = filled(12);
        let hash = hash_of(victim);
        let slots = index.slots(index.lock(hash).unwrap().unwrap().at);
        let at = slots.offset(slots.find(hash, record(victim).offset()).unwrap());
        pool.pmem.store_u64(at + 8, pool.pmem.load_u64(at + 8) ^ 1 << 20, SITE);
        for number in 100..500 {
            insert(&index, hash_of(number), number).unwrap();
            assert!(is_corrupted(&positions(&index, hash)), "{victim} seems to be gone");
        }
        assert!(index.segments() > 20);
    }
}

/// What a crash leaves between the word of a split and the directory, in a store that takes no writes.
#[test]
fn a_segment_that_the_directory_does_not_lead_to_is_found_beside_it() {
    let (pool, index) = filled(200);
    let (one, other, behind) = (0, hash_of(17), hash_of(99));
    let directory = index.directory().unwrap();
    let place = |hash| index.lock(hash).unwrap().map(|locked| (locked.at, locked.prefix)).unwrap();
    let (first, (its_own, prefix), (damaged, _)) = (place(one).0, place(behind), place(other));
    assert!(its_own != first && its_own != damaged && first != damaged);
    let words = directory.words_of(prefix);
    for at in (words.offset()..words.end()).step_by(8) {
        pool.pmem.store_u64(at, buckets::position(at, first), SITE);
    }
    let header = pool.pmem.load_u64(damaged);
    pool.pmem.store_u64(damaged, header ^ 1, SITE);
    let (salvaged, _, damages) = recovered(&pool, true).unwrap();
    assert!(damages > 0);
    for number in (0..200).filter(|number| prefix.covers(hash_of(*number))) {
        assert_eq!(positions(&salvaged, hash_of(number)).unwrap(), [record(number).offset()]);
    }
    let is_inside = |number: &u64| prefix.covers(hash_of(*number));
    let expected = (0..200).filter(is_inside).count();
    let inside = listed(&salvaged).0.into_iter().filter(|(hash, _)| prefix.covers(*hash));
    assert_eq!(inside.count(), expected);
    // Without damage the directory is completed.
    pool.pmem.store_u64(damaged, header, SITE);
    let again = recovered(&pool, false).unwrap().0;
    assert_eq!(pool.pmem.load_u64(words.offset()), buckets::position(words.offset(), its_own));
    assert_eq!((again.len(), positions(&again, behind).unwrap()), (200, vec![record(99).offset()]));
}
