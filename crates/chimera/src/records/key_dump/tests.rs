//! What is written is read again, and nothing else is.

use std::sync::Arc;

use chimera_pmem::Site;

use super::*;
use crate::pool::runs::FoundRun;
use crate::pool::small::media_pool;
use crate::pool::tests::media::{Asked, Media};

const DUMP: BlockKind = BlockKind::new(4, "dump");
const SITE: Site = Site::new("test");
/// Two blocks of 256 bytes, of which a line is the pool's and one is the header.
const RUN_BYTES: u32 = 512;
const ROOM: usize = 512 - 64 - 64;

fn new_pool() -> (Media, Arc<Pool<Media>>) {
    let media = Media::default();
    let pool = media_pool(&media, &[], 16 << 10, 256 << 10);
    (media, pool)
}

fn key(number: u64, bytes: usize) -> Vec<u8> {
    let mut key = vec![0x5a; bytes];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn write(pool: &Pool<Media>, keys: &[Vec<u8>]) -> Dump {
    let mut writer = Writer::new(pool, DUMP, RUN_BYTES);
    for key in keys {
        writer.push(key).unwrap();
    }
    writer.finish().unwrap()
}

/// The runs of a pool, the last one first.
fn runs(pool: &Pool<Media>) -> Vec<Run> {
    let mut runs = Vec::new();
    pool.recover_runs(&[DUMP], false, |run| {
        let FoundRun::InUse(run) = run else { panic!("a word of a run is damaged") };
        runs.push(run);
        Ok(())
    })
    .unwrap();
    runs.reverse();
    runs
}

fn found(pool: &Pool<Media>, runs: &[Run], dump: Dump) -> Option<Vec<Vec<u8>>> {
    let parts = read(pool, runs, dump, |key| key.len() >= 8)?;
    Some(parts.iter().flat_map(|part| entries(part)).map(<[u8]>::to_vec).collect())
}

#[test]
fn a_dump_has_all_keys_in_runs_that_are_full() {
    // Keys of 28 bytes have 32 with their lengths: 12 in a run.
    for (count, bytes, in_use) in [(0, 28, 0), (1, 28, 1), (12, 28, 1), (13, 28, 2), (40, 8, 2)] {
        let (_media, pool) = new_pool();
        let keys: Vec<_> = (0..count).map(|number| key(number, bytes)).collect();
        let sequence = pool.superblock().sequence;
        let dump = write(&pool, &keys);
        assert_eq!(dump.keys(), count);
        let runs = runs(&pool);
        assert_eq!(runs.len(), in_use, "{count} keys of {bytes} bytes");
        assert_eq!(found(&pool, &runs, dump), Some(keys));
        let words = dump.to_words();
        assert_eq!(words, [sequence + 1, count]);
        assert_eq!(Dump::from_words(words), Some(dump));
    }
    assert_eq!(Dump::from_words([0, 7]), None);
    assert_eq!(Dump::from_words([1, 0]).map(Dump::to_words), Some([1, 0]));
}

#[test]
fn a_run_has_the_bytes_that_are_published_and_costs_a_fence() {
    let (media, pool) = new_pool();
    let mut writer = Writer::new(&pool, DUMP, RUN_BYTES);
    for number in 0..12 {
        let ((), asked) = media.watch(|| writer.push(&key(number, 28)).unwrap());
        assert_eq!(asked, [], "it is gathered");
    }
    let ((), asked) = media.watch(|| writer.push(&key(12, 28)).unwrap());
    let run = writer.runs[0].first();
    let at = pool.map.block_at(run) + 64;
    let written = [Asked::Flush(at..at + 448), Asked::Fence];
    assert_eq!(asked[asked.len() - 2..], written);
    let number = writer.dump.number;
    let word = |word: u64| media.load_u64(at + 8 * word);
    let mut keys = vec![0; ROOM];
    media.read(pool.extent(at + 64, ROOM as u64), &mut keys);
    let expected: Vec<u8> = (0..12)
        .flat_map(|number| [28_u32.to_le_bytes().to_vec(), key(number, 28)].concat())
        .collect();
    assert_eq!(keys, expected);
    let summed = [number, 0, 12, ROOM as u64, xxh3_64_with_seed(&keys, number)];
    assert_eq!([0, 1, 2, 3, 4].map(word), summed);
    assert_eq!(word(5), xxh3_64_with_seed(zerocopy::IntoBytes::as_bytes(&summed), 0));
    assert_eq!([word(6), word(7)], [0, 0]);
    // The next one is counted from it, and the last one is as long as it needs to be.
    let dump = writer.finish().unwrap();
    assert_eq!(dump, Dump { number, keys: 13 });
    let at = pool.map.block_at(writer.runs[1].first()) + 64;
    assert_eq!([1, 2, 3].map(|word| media.load_u64(at + 8 * word)), [1, 1, 32]);
    assert_eq!(writer.runs.iter().map(Run::blocks).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_run_has_the_blocks_that_its_bytes_need() {
    for (bytes, blocks) in [(124, 1), (125, 2), (380, 2)] {
        let (_media, pool) = new_pool();
        let mut writer = Writer::new(&pool, DUMP, RUN_BYTES);
        writer.push(&key(1, bytes)).unwrap();
        writer.finish().unwrap();
        assert_eq!(writer.runs[0].blocks(), blocks, "a key of {bytes} bytes");
    }
    // Runs have at least a block, and no more than the pool's may have.
    let (_media, pool) = new_pool();
    let bytes_max = |run_bytes| Writer::new(&pool, DUMP, run_bytes).bytes_max;
    assert_eq!([0, 256, 257, u32::MAX].map(bytes_max), [192, 192, 448, 48 * 256 - 64]);
}

#[test]
fn a_key_that_no_run_takes_is_refused() {
    let (_media, pool) = new_pool();
    let mut writer = Writer::new(&pool, DUMP, RUN_BYTES);
    let error = writer.push(&key(0, ROOM - 3)).unwrap_err();
    assert!(matches!(&error, Error::PoolFull { reason } if reason.contains("381")), "{error}");
    assert_eq!((writer.keys, writer.runs.len()), (0, 0));
    writer.push(&key(0, ROOM - 4)).unwrap();
    assert!(writer.push(&key(1, ROOM - 3)).is_err());
    writer.push(&key(1, 8)).unwrap();
    let dump = writer.finish().unwrap();
    assert_eq!(found(&pool, &runs(&pool), dump), Some(vec![key(0, ROOM - 4), key(1, 8)]));
}

#[test]
fn a_dump_that_is_given_up_leaves_no_run() {
    let (_media, pool) = new_pool();
    let mut writer = Writer::new(&pool, DUMP, RUN_BYTES);
    (0..40).for_each(|number| writer.push(&key(number, 28)).unwrap());
    assert_eq!(pool.count_runs(&[DUMP]).kinds[0].runs, 3);
    writer.give_up().unwrap();
    assert_eq!(pool.count_runs(&[DUMP]).kinds[0].runs, 0);
}

#[test]
fn nothing_of_an_earlier_use_is_left_in_the_last_line_of_a_run() {
    let (media, pool) = new_pool();
    let mut writer = Writer::new(&pool, DUMP, RUN_BYTES);
    writer.push(&key(1, 100)).unwrap();
    writer.finish().unwrap();
    let at = pool.run_bytes(&writer.runs[0]).offset();
    writer.give_up().unwrap();
    let dump = write(&pool, &[key(2, 8)]);
    let runs = runs(&pool);
    assert_eq!((pool.run_bytes(&runs[0]).offset(), dump.keys()), (at, 1));
    let mut rest = [1; 52];
    let mut line = [1; 64];
    media.read(pool.extent(at + 64, 64), &mut line);
    rest.copy_from_slice(&line[12..]);
    assert_eq!(rest, [0; 52]);
}

#[test]
fn a_dump_that_is_not_whole_is_none() {
    let (media, pool) = new_pool();
    let keys: Vec<_> = (0..30).map(|number| key(number, 28)).collect();
    let dump = write(&pool, &keys);
    let mut runs = runs(&pool);
    assert_eq!(runs.len(), 3);
    for run in &runs {
        let place = pool.run_bytes(run);
        let used = 64 + media.load_u64(place.offset() + 24);
        for at in (0..used).step_by(8).map(|at| place.offset() + at) {
            for bit in 0..64 {
                let word = media.load_u64(at);
                media.store_u64(at, word ^ 1 << bit, SITE);
                let is_padding = (48..64).contains(&(at - place.offset()));
                assert_eq!(found(&pool, &runs, dump).is_some(), is_padding, "bit {bit} at {at}");
                media.store_u64(at, word, SITE);
            }
        }
    }
    for (number, count) in [(dump.number, 29), (dump.number, 31), (dump.number + 1, 30)] {
        assert_eq!(found(&pool, &runs, Dump { number, keys: count }), None);
    }
    assert_eq!(read(&pool, &runs, dump, |found| found[7] != 17), None, "one of them is no key");
    assert_eq!(found(&pool, &runs, dump), Some(keys), "whatever the order of the runs");
    drop(runs.remove(1));
    assert_eq!(found(&pool, &runs, dump), None);
    runs.clear();
    assert_eq!(found(&pool, &runs, Dump { number: 9, keys: 0 }), Some(vec![]));
}

/// A part with right sums, as whoever can forge them writes it.
fn forge(
    media: &Media,
    pool: &Pool<Media>,
    run: &Run,
    [number, part, keys]: [u64; 3],
    bytes: &[u8],
) {
    let at = pool.run_bytes(run).offset();
    let summed = [number, part, keys, bytes.len() as u64, xxh3_64_with_seed(bytes, number)];
    for (word, value) in (0..).zip([&summed[..], &[header_sum(&summed)]].concat()) {
        media.store_u64(at + 8 * word, value, SITE);
    }
    media.copy(pool.extent(at + 64, bytes.len() as u64), bytes, SITE);
}

#[test]
fn parts_that_nobody_wrote_are_no_dump() {
    let (media, pool) = new_pool();
    let runs = [2, 2].map(|blocks| pool.take_bare_run(DUMP, blocks).unwrap());
    let of = |keys: &[u64]| -> Vec<u8> {
        keys.iter().flat_map(|it| [8_u32.to_le_bytes().to_vec(), key(*it, 8)].concat()).collect()
    };
    let read = |first: (u64, &[u8]), second: (u64, &[u8]), keys| {
        forge(&media, &pool, &runs[0], [5, 0, first.0], first.1);
        forge(&media, &pool, &runs[1], [5, 1, second.0], second.1);
        found(&pool, &runs, Dump { number: 5, keys }).is_some()
    };
    assert!(read((2, &of(&[1, 2])), (1, &of(&[3])), 3));
    assert!(!read((2, &of(&[1, 3])), (1, &of(&[3])), 3), "a key twice");
    assert!(!read((2, &of(&[2, 1])), (1, &of(&[3])), 3), "out of order");
    assert!(!read((2, &of(&[1, 3])), (1, &of(&[2])), 3), "out of order from run to run");
    assert!(!read((1, &of(&[1, 2])), (2, &of(&[3])), 3), "other numbers of keys");
    let rest = [&of(&[1, 2])[..], &[1, 0, 0]].concat();
    assert!(!read((2, &rest), (1, &of(&[3])), 3), "bytes behind the last key");
    let longer = [&of(&[1, 2])[..], &9_u32.to_le_bytes(), &[7; 8]].concat();
    assert!(!read((2, &longer), (1, &of(&[3])), 3), "a key that reaches beyond its part");
    // A length that reaches up to the end of the run, and one beyond.
    let summed = |bytes| [5, 0, 0, bytes, 0];
    for bytes in [ROOM as u64 + 1, u64::MAX] {
        let header = summed(bytes);
        let header = [&header[..], &[header_sum(&header)]].concat().try_into().unwrap();
        assert_eq!(read_part(&pool, header, pool.run_bytes(&runs[0])), None);
    }
    let place = pool.run_bytes(&runs[0]);
    forge(&media, &pool, &runs[0], [5, 0, 0], &[0; ROOM + 8]);
    assert_eq!(read_part(&pool, read_header(&pool, place), place), None, "behind its run");
    let all = vec![0; ROOM];
    forge(&media, &pool, &runs[0], [5, 0, 0], &all);
    assert_eq!(read_part(&pool, read_header(&pool, place), place), Some(all));
}
