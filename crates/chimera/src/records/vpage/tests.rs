//! Pages by themselves, without an engine: [`slots`] and [`slot_blocks`], [`logs`], [`log_blocks`], [`log_damage`] and
//! [`chunks`].

mod chunks;
mod log_blocks;
mod log_damage;
mod logs;
mod slot_blocks;
mod slots;

use std::sync::Arc;

use chimera_pmem::{Site, SteppedEnvironment};

use super::*;
use crate::pool::Purpose;
use crate::pool::small::media_pool_of;
use crate::pool::tests::media::{Asked, Media};
use crate::records::block_flags;
use crate::records::checksum::Summed;
use crate::records::header::RecordHeader;
use crate::records::key_hash::KeyHash;
use crate::records::unchecked_word::UncheckedWord;
use crate::sync::VersionLock;

/// Stores of a test, as if by nobody.
const SITE: Site = Site::new("test");
const SEGMENT_BYTES: u64 = 64 << 10;
const PAGES: u32 = 3;

/// A pool with pages of one kind.
struct Fixture<V> {
    media: Media,
    pool: Arc<Pool<Media>>,
    pages: V,
}

fn parameters(page_bytes: u32, layout: RecordLayout, key: u32, value: u32) -> PageParameters {
    let geometry = Geometry {
        page_bytes,
        pages_per_block: PAGES,
        block_shift_bytes: 0,
        segment_bytes: SEGMENT_BYTES,
    };
    PageParameters { geometry, layout, key_bytes: key, value_bytes: value }
}

impl<V: Pages> Fixture<V> {
    fn new(parameters: &PageParameters) -> Self {
        let media = Media::default();
        let block_bytes = parameters.geometry.page_bytes * PAGES;
        let pool = media_pool_of(&media, &[], (SEGMENT_BYTES, block_bytes), 1 << 20, false);
        assert!(V::takes(parameters));
        let pages = V::of(&*pool, parameters).unwrap();
        Self { media, pool, pages }
    }

    /// A fresh block that held something else before.
    fn block(&self, flags: u32) -> u64 {
        let prepare = |block| {
            let all = self.pool.extent(self.pool.map.block_at(block), self.pool.map.block_bytes);
            self.media.copy(all, &vec![0x77; all.length() as usize], SITE);
            self.pages.format(&self.pool, block, flags);
        };
        self.pool.take_block(Purpose::Put, prepare).unwrap()
    }

    fn page_at(&self, block: u64, page: u64) -> u64 {
        self.pool.map.block_at(block)
            + page * self.pool.map.block_bytes / self.pages.pages_per_block()
    }

    fn enter(&self, kind: usize, point: &mut InsertPoint) {
        let (lock, environment) = (VersionLock::default(), SteppedEnvironment::in_memory(1));
        self.pages.enter(&self.pool, kind, point, || lock.lock(&environment));
    }

    /// A point at which the first page, or part of one, of a block was entered.
    fn entered(&self, block: u64, is_reused: bool, kind: usize) -> InsertPoint {
        let mut point = self.pages.begin(block, is_reused, kind, 0);
        self.enter(kind, &mut point);
        point
    }

    /// Writes a record at the point and makes it live, as an engine does; none where it does not fit.
    fn put(&self, point: &mut InsertPoint, key: &[u8], value: &[u8]) -> Option<Place> {
        let place = self.pages.room(point, key.len(), value.len())?;
        self.write(&place, key, &stored(value));
        self.pages.consume(point, key.len(), value.len());
        Some(place)
    }

    fn write(&self, place: &Place, key: &[u8], stored: &Stored<'_>) {
        self.write_body(place, key, stored);
        if self.pages.flush_record(&self.pool, place, key, stored) {
            self.media.fence(sites::RECORD);
        }
        self.pages.commit(&self.pool, place, key, stored).unwrap();
    }

    fn write_body(&self, place: &Place, key: &[u8], stored: &Stored<'_>) {
        let checksum = self.pages.write_body(&self.pool, place, key, stored);
        let header =
            RecordHeader::new(place.record_at, hash(key), VERSION, stored.unchecked, checksum);
        self.pages.write_header(&self.pool, place, &header);
    }

    /// The key and the value at a place, if the record is sound.
    fn read(&self, place: &Place) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut key, mut value) = (vec![9; 3], vec![9; 300]);
        let record = self.pages.decode(&self.pool, place)?;
        self.pages.read_key(&self.pool, &record, &mut key);
        let summed = self.pages.read_value(&self.pool, &record, &mut value)?;
        assert_eq!(summed.sum, Summed::of(summed.bytes).sum);
        record.verify(hash(&key), Some(summed)).ok()?;
        Some((key, value))
    }

    fn is_live(&self, place: &Place) -> bool {
        self.pages.is_live(&self.pool, place).unwrap()
    }

    fn retire(&self, place: &Place) -> u32 {
        let mut units = 0;
        self.pages.retire(&self.pool, place, |retired| units += retired).unwrap();
        units
    }

    fn places(&self, block: u64) -> Vec<Place> {
        let mut places = Vec::new();
        self.pages.places(&self.pool, block, &mut places);
        places
    }

    /// Flips bits of a word, as damage does.
    fn flip(&self, at: u64, bits: u64) {
        self.media.store_u64(at, self.media.load_u64(at) ^ bits, SITE);
    }

    /// What a scan of a block finds.
    fn scan(&self, block: u64, is_salvage: bool) -> Found {
        let mut found = Found::default();
        let is_sound = |record: &Record, key: &[u8]| record.verify(hash(key), None).is_ok();
        let flags = block_flags::read(&self.pool, block).unwrap_or_default();
        let scan = Scan { flags, salvage: is_salvage, values: true, is_sound: &is_sound };
        let room =
            self.pages.scan(&self.pool, &scan, block, &mut PageBuffers::default(), &mut |one| {
                match one {
                    Scanned::Record { record, key, value } => {
                        let summed = value.map(Summed::of);
                        assert_eq!(record.header.is_some(), self.pages.is_checked());
                        assert_eq!(record.verify(hash(key), summed), Ok(()));
                        found.records.push((record.place, key.to_vec(), value.map(<[u8]>::to_vec)));
                    }
                    Scanned::Damage { at, what } => found.damages.push((at, what)),
                }
            });
        found.room = [room.free, room.fillable, room.fillable_if_starved];
        found
    }

    /// Free units of a block, those worth filling, and those worth filling when starved.
    fn room_in(&self, block: u64) -> [u32; 3] {
        let room = self.pages.room_in(&self.pool, block);
        [room.free, room.fillable, room.fillable_if_starved]
    }

    /// Pages, filled ones, damaged ones; live records and bytes; dead bytes and room.
    fn usage(&self, block: u64) -> [u64; 7] {
        let usage = self.pages.usage(&self.pool, block);
        let pages = [usage.pages, usage.pages_filled, usage.pages_damaged];
        let bytes = [usage.live_records, usage.live_bytes, usage.dead_bytes, usage.room_bytes];
        [&pages[..], &bytes[..]].concat().try_into().unwrap()
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    records: Vec<(Place, Vec<u8>, Option<Vec<u8>>)>,
    damages: Vec<(u64, &'static str)>,
    room: [u32; 3],
}

impl Found {
    fn keys(&self) -> Vec<&[u8]> {
        self.records.iter().map(|(_, key, _)| &key[..]).collect()
    }
}

const VERSION: u64 = 7;

fn hash(key: &[u8]) -> u64 {
    KeyHash::new(1).of(key)
}

/// A value that lies beside its key.
fn stored(value: &[u8]) -> Stored<'_> {
    Stored { value, beside: value, chunks: &[], unchecked: UncheckedWord::NONE }
}

/// The place and the word of the damage that an error tells of.
fn damaged_at<T: std::fmt::Debug>(result: Result<T>) -> u64 {
    match result.unwrap_err() {
        Error::Corrupted { at, .. } => at,
        other => panic!("{other}"),
    }
}
