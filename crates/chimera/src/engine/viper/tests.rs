//! A small store on memory of tests.

use super::store::AnySize;
use crate::engine::{Core, Engine, Options};
use crate::pool::small::media_pool_of;
use crate::pool::tests::media::Media;
use crate::records::vpage::{PageParameters, Place};
use crate::types::layout::{Geometry, RecordLayout};

const SEGMENT_BYTES: u64 = 64 << 10;
const PAGE_BYTES: u32 = 256;
const PAGES: u32 = 8;

fn store(is_journaled: bool) -> AnySize<Media> {
    let media = Media::default();
    if is_journaled {
        media.set_journaled();
    }
    let geometry = Geometry {
        page_bytes: PAGE_BYTES,
        pages_per_block: PAGES,
        block_shift_bytes: 0,
        segment_bytes: SEGMENT_BYTES,
    };
    let layout = RecordLayout::Checked;
    let parameters = PageParameters { geometry, layout, key_bytes: 0, value_bytes: 0 };
    let pool = media_pool_of(&media, &[], (SEGMENT_BYTES, PAGE_BYTES * PAGES), 1 << 20, false);
    let options = Options::new();
    AnySize::open(Core::new(pool, &options), parameters, &options).expect("a new store").0
}

/// Who reads a record that was in a block, without its sum, finds out by the version of the page that something else came there.
/// Elsewhere the block was cleared, under the same lock, when it was entered.
#[test]
fn under_a_journal_a_chunk_changes_the_version_of_its_page() {
    let versions_of_second_put = |is_journaled| {
        let engine = store(is_journaled);
        let mut client = engine.client(0);
        let put = |client: &mut _, key: &[u8]| engine.put(client, key, &[1; 2100]).expect("room");
        put(&mut client, b"first");
        // One chunk fills a block, and the other one begins the next: there the chunks of the second value go on.
        let hash = engine.core().hash.of(b"first");
        let found = engine.records().find_locked(hash, b"first", |_| {}).expect("sound");
        let record = found.expect("it is there").record;
        let chunks = engine.records().pages().chunks_of(&engine.core().pool, &record);
        let (block, _) = chunks[0];
        let page = Place { block, page: 0, slot: 0, page_at: 0, record_at: 0 };
        let version = || engine.records().page_lock(&page).read_begin().expect("nobody has it");
        let before = version();
        put(&mut client, b"second");
        version() - before
    };
    let [journaled, other] = [true, false].map(versions_of_second_put);
    assert_eq!(journaled, other + 2, "one lock more, of the chunk that is written there");
}
