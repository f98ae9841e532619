//! Pages of records of any size in an [`Image`], and values in chunks, by docs/FORMAT.md.

use super::format::{
    CHUNK_HEADER_BYTES, DESCRIPTOR_BYTES, END_SHIFT, IN_CHUNKS, LARGE, LOG_AT,
    LOG_RECORD_HEADER_BYTES, PIECE_BYTES_MAX, Shape, checked_word, checked_word_at, key_check,
    key_hash, value_check,
};
use super::image::{Image, key_of, segment_name, set_bytes, set_word, value_of, word};

/// Fields of a chunk.
pub(super) const CHUNK_NAME_AT: usize = 8;
pub(super) const CHUNK_RECORD_AT: usize = 16;
pub(super) const CHUNK_NEXT_AT: usize = 24;
pub(super) const CHUNK_POSITION_AT: usize = 32;
/// A chunk is begun where so many bytes of a value have room.
const CHUNK_BYTES_MIN: usize = 64;

/// A page with a log, or a block that is one page.
#[derive(Clone, Copy, Debug)]
struct LogPage {
    block: usize,
    page: usize,
    segment: usize,
    /// In its segment.
    at: usize,
    length: usize,
    is_large: bool,
}

/// A record or chunk in a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    page: LogPage,
    /// In its page.
    inside: usize,
    /// What the word in front says.
    pub(super) lengths: u32,
}

/// The number of the word in front of a record that counts; of a chunk for a key of no bytes.
fn lengths_of(key_bytes: usize, field: u32) -> u32 {
    1 | (key_bytes as u32) << 1 | field << 16
}

/// The number of a page's first word, with the flags it has, when its log ends at `tail`.
fn sealed(number: u32, tail: usize) -> u32 {
    number & ((1 << END_SHIFT) - 1) | (tail as u32 / 8) << END_SHIFT
}

impl Entry {
    pub(super) fn is_chunk(&self) -> bool {
        self.key_bytes() == 0
    }

    pub(super) fn is_in_chunks(&self) -> bool {
        !self.is_chunk() && self.lengths >> 16 == IN_CHUNKS
    }

    fn key_bytes(&self) -> usize {
        (self.lengths >> 1 & 0x7fff) as usize
    }

    /// Bytes of a chunk, or of what lies beside the key of a record.
    fn bytes(&self) -> usize {
        if self.is_in_chunks() { DESCRIPTOR_BYTES } else { (self.lengths >> 16) as usize }
    }

    fn header_bytes(&self) -> usize {
        if self.is_chunk() { CHUNK_HEADER_BYTES } else { LOG_RECORD_HEADER_BYTES }
    }

    pub(super) fn span(&self) -> usize {
        self.beside_at() + self.bytes().next_multiple_of(8)
    }

    /// Where in the entry the bytes of a chunk begin, or what lies beside the key of a record.
    pub(super) fn beside_at(&self) -> usize {
        self.header_bytes() + self.key_bytes().next_multiple_of(8)
    }

    pub(super) fn location(&self) -> u64 {
        let LogPage { block, page, .. } = self.page;
        (block << 19 | page << 16 | (self.inside / 8 + 1)) as u64
    }

    pub(super) fn file(&self) -> String {
        segment_name(self.page.segment)
    }

    /// Where in its file it begins.
    pub(super) fn at(&self) -> usize {
        self.page.at + self.inside
    }

    pub(super) fn place(&self, shape: &Shape) -> u64 {
        shape.place(self.page.segment, self.at())
    }
}

impl Image {
    /// All pages that lie in the files, by the flags of their blocks.
    fn log_pages(&self, shape: &Shape) -> Vec<LogPage> {
        let mut pages = Vec::new();
        for segment in 0..self.files.len() {
            let Some(bytes) = self.files.get(&segment_name(segment)) else { continue };
            for number in 0..shape.blocks_per_segment() {
                let block = segment * shape.blocks_per_segment() + number;
                let block_at = shape.block_shift_bytes + number * shape.block_bytes();
                if block_at + shape.block_bytes() > bytes.len() {
                    break;
                }
                let is_large = word(bytes, block_at) as u32 & LARGE != 0;
                let count = if is_large { 1 } else { shape.pages_per_block };
                let length = if is_large { shape.block_bytes() } else { shape.page_bytes };
                pages.extend((0..count).map(|page| {
                    let at = block_at + page * shape.page_bytes;
                    LogPage { block, page, segment, at, length, is_large }
                }));
            }
        }
        pages
    }

    /// The entries of a page as far as its lengths can be followed, and where they end.
    fn page_entries(&self, page: LogPage) -> (Vec<Entry>, usize) {
        let bytes = &self.files[&segment_name(page.segment)];
        let (mut entries, mut inside) = (Vec::new(), LOG_AT);
        while inside + 8 <= page.length {
            let lengths = word(bytes, page.at + inside) as u32;
            let entry = Entry { page, inside, lengths };
            if lengths == 0 || inside + entry.span() > page.length {
                break;
            }
            entries.push(entry);
            inside += entry.span();
        }
        (entries, inside)
    }

    /// Everything in logs, as far as lengths can be followed.
    pub(super) fn entries(&self, shape: &Shape) -> Vec<Entry> {
        let pages = self.log_pages(shape);
        pages.into_iter().flat_map(|page| self.page_entries(page).0).collect()
    }

    pub(super) fn bytes_of(&mut self, entry: &Entry) -> &mut [u8] {
        let (at, span) = (entry.at(), entry.span());
        let bytes = self.files.get_mut(&entry.file()).expect("it was found there");
        &mut bytes[at..at + span]
    }

    /// Where so many bytes have room: behind the log of a page of this kind, or in an empty block, which
    /// becomes one of this kind.
    fn room(&mut self, shape: &Shape, is_large: bool, bytes: usize) -> Option<(LogPage, usize)> {
        let pages = self.log_pages(shape);
        for page in pages.iter().filter(|page| page.is_large == is_large) {
            let (entries, tail) = self.page_entries(*page);
            let is_begun = is_large || !entries.is_empty() || page.page > 0;
            if is_begun && tail + bytes <= page.length {
                return Some((*page, tail));
            }
        }
        let blank = pages.iter().filter(|page| page.page == 0).find(|page| {
            let block = &self.files[&segment_name(page.segment)][page.at..];
            let mut pages = block[..shape.block_bytes()].chunks(shape.page_bytes);
            // But for the first words of its pages.
            pages.all(|page| page[LOG_AT..].iter().all(|byte| *byte == 0))
        })?;
        let page = if is_large {
            let file = self.files.get_mut(&segment_name(blank.segment)).expect("it was found");
            file[blank.at..][..shape.block_bytes()].fill(0);
            let place = shape.place(blank.segment, blank.at);
            set_word(file, blank.at, checked_word_at(LARGE, place));
            LogPage { length: shape.block_bytes(), is_large, ..*blank }
        } else {
            *blank
        };
        (LOG_AT + bytes <= page.length).then_some((page, LOG_AT))
    }

    /// Puts an entry with these lengths where there is room.
    fn place_entry(&mut self, shape: &Shape, lengths: u32, is_large: bool) -> Option<Entry> {
        let blank = LogPage { block: 0, page: 0, segment: 0, at: 0, length: 0, is_large };
        let span = Entry { page: blank, inside: 0, lengths }.span();
        let (page, inside) = self.room(shape, is_large, span)?;
        let entry = Entry { page, inside, lengths };
        let word = checked_word_at(lengths, entry.place(shape));
        set_word(self.bytes_of(&entry), 0, word);
        Some(entry)
    }

    /// Writes a record with right checks behind what there is. Nothing, or only a part of its chunks, where
    /// there is no room.
    pub(super) fn append(&mut self, shape: &Shape, number: u8, version: u64) {
        let (key, value) = (key_of(shape, number), value_of(shape, number, version));
        let is_beside = value.len() <= shape.beside_bytes_max();
        let field = if is_beside { value.len() as u32 } else { IN_CHUNKS };
        let beside_bytes = if is_beside { value.len() } else { DESCRIPTOR_BYTES };
        let span = LOG_RECORD_HEADER_BYTES
            + key.len().next_multiple_of(8)
            + beside_bytes.next_multiple_of(8);
        let is_large = LOG_AT + span > shape.page_bytes;
        let lengths = lengths_of(key.len(), field);
        let Some(record) = self.place_entry(shape, lengths, is_large) else { return };
        let beside = if is_beside {
            value.clone()
        } else {
            let name = version.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ u64::from(number);
            let first = self.append_chunks(shape, &record, name, &value);
            let words = [first, name, checked_word(value.len() as u32)];
            words.into_iter().flat_map(u64::to_le_bytes).collect()
        };
        let beside_at = record.beside_at();
        let bytes = self.bytes_of(&record);
        set_word(bytes, 16, version);
        set_bytes(bytes, LOG_RECORD_HEADER_BYTES, &key);
        set_bytes(bytes, beside_at, &beside);
        self.fix_log_record(shape, &record);
    }

    /// Writes the chunks of a value. Returns the location of the first one.
    fn append_chunks(&mut self, shape: &Shape, record: &Entry, name: u64, value: &[u8]) -> u64 {
        let mut chunks: Vec<Entry> = Vec::new();
        let mut rest = value;
        while !rest.is_empty() {
            let least = CHUNK_HEADER_BYTES + CHUNK_BYTES_MIN;
            let Some((page, tail)) = self.room(shape, true, least) else { break };
            let room = (page.length - tail - CHUNK_HEADER_BYTES).min(PIECE_BYTES_MAX) & !7;
            let (piece, after) = rest.split_at(rest.len().min(room));
            let lengths = lengths_of(0, piece.len() as u32);
            let chunk = Entry { page, inside: tail, lengths };
            let bytes = self.bytes_of(&chunk);
            set_word(bytes, 0, checked_word_at(lengths, chunk.place(shape)));
            set_word(bytes, CHUNK_NAME_AT, name);
            set_word(bytes, CHUNK_RECORD_AT, record.location());
            set_bytes(bytes, CHUNK_HEADER_BYTES, piece);
            chunks.push(chunk);
            rest = after;
        }
        for (number, chunk) in chunks.iter().enumerate() {
            let after = (chunks.len() - 1 - number) as u32;
            let bytes = self.bytes_of(chunk);
            set_word(bytes, CHUNK_POSITION_AT, checked_word(after));
            set_word(bytes, CHUNK_NEXT_AT, chunks.get(number + 1).map_or(0, Entry::location));
        }
        chunks.first().map_or(0, Entry::location)
    }

    /// The value of a record: beside its key, or in chunks that are all there.
    fn value_in_log(&mut self, record: &Entry, entries: &[Entry]) -> Option<Vec<u8>> {
        let beside_at = record.beside_at();
        let beside = self.bytes_of(record)[beside_at..][..record.bytes()].to_vec();
        if !record.is_in_chunks() {
            return Some(beside);
        }
        let (mut next, bytes) = (word(&beside, 0), word(&beside, 16) as u32 as usize);
        let mut value = Vec::new();
        // A chain that does not end has more steps than there are chunks.
        for _ in 0..entries.len() {
            if value.len() >= bytes {
                break;
            }
            let is_next = |entry: &&Entry| entry.is_chunk() && entry.location() == next;
            let chunk = entries.iter().find(is_next)?;
            let content = self.bytes_of(chunk);
            value.extend_from_slice(&content[CHUNK_HEADER_BYTES..][..chunk.bytes()]);
            next = word(content, CHUNK_NEXT_AT);
        }
        (value.len() == bytes).then_some(value)
    }

    /// Makes the checks of a record right, that of the value where it can be found.
    pub(super) fn fix_log_record(&mut self, shape: &Shape, record: &Entry) {
        let entries = if record.is_in_chunks() { self.entries(shape) } else { Vec::new() };
        self.fix_record_among(shape, record, &entries);
    }

    fn fix_record_among(&mut self, shape: &Shape, record: &Entry, entries: &[Entry]) {
        let value = self.value_in_log(record, entries);
        let (place, key_bytes) = (record.place(shape), record.key_bytes());
        let bytes = self.bytes_of(record);
        let hash = key_hash(shape.hash_seed, &bytes[LOG_RECORD_HEADER_BYTES..][..key_bytes]);
        let version_word = word(bytes, 16);
        let of_key = u64::from(key_check(place, version_word, hash));
        let of_value = value
            .map_or(word(bytes, 8) >> 32, |value| value_check(place, version_word, &value).into());
        set_word(bytes, 8, of_key | of_value << 32);
    }

    /// Says where the log of each page ends that holds anything.
    pub(super) fn seal_logs(&mut self, shape: &Shape) {
        for page in self.log_pages(shape) {
            let (entries, tail) = self.page_entries(page);
            if entries.is_empty() {
                continue;
            }
            let bytes = self.files.get_mut(&segment_name(page.segment)).expect("it was found");
            let number = sealed(word(bytes, page.at) as u32, tail);
            set_word(bytes, page.at, checked_word_at(number, shape.place(page.segment, page.at)));
        }
    }

    /// Makes the checks of flags and lengths right, or those of records.
    pub(super) fn fix_logs(&mut self, shape: &Shape, words: bool, records: bool) {
        let pages = self.log_pages(shape);
        if words {
            for page in &pages {
                let (entries, tail) = self.page_entries(*page);
                let bytes = self.files.get_mut(&segment_name(page.segment)).expect("it was found");
                let number = word(bytes, page.at) as u32;
                // What was appended lies in front of the end.
                let is_longer =
                    number >> END_SHIFT != 0 && tail > (number >> END_SHIFT) as usize * 8;
                let number = if is_longer { sealed(number, tail) } else { number };
                set_word(
                    bytes,
                    page.at,
                    checked_word_at(number, shape.place(page.segment, page.at)),
                );
                for entry in entries {
                    set_word(bytes, entry.at(), checked_word_at(entry.lengths, entry.place(shape)));
                }
            }
        }
        if records {
            let entries = self.entries(shape);
            for record in entries.iter().filter(|entry| !entry.is_chunk()) {
                self.fix_record_among(shape, record, &entries);
            }
        }
    }
}
