//! Streams as bytes: every cut, every flipped bit, lengths that lie. What goes through stores is tested in
//! tests/transfer.

use std::io::{self, Read};

use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use super::format::{
    CONTENT_BYTES_MAX, End, FRAME_HEAD_BYTES, Frame, FrameKind, HEADER_BYTES, Header,
    content_checksum, record_head,
};
use super::reader::StreamReader;
use super::writer::StreamWriter;
use crate::engine::contract::listed::Listed;
use crate::types::error::Error;
use crate::types::stream::StreamKind;

const ANY: StreamKind = StreamKind { key_bytes: 0, value_bytes: 0 };
const HEADER: Header = Header { kind: ANY, pool_id: 7, stream_id: 0x1234_5678_9abc_def0 };

type Record = (Vec<u8>, Vec<u8>);

fn records(count: u8) -> Vec<Record> {
    (0..count).map(|number| (vec![number; 3], vec![number; usize::from(number) * 9])).collect()
}

/// A stream with frames of up to 64 bytes.
fn stream(header: &Header, records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::begin(&mut bytes, header, 64).unwrap();
    for (number, (key, value)) in records.iter().enumerate() {
        writer
            .record(&Listed { key, value, position: number as u64, done_below: number as u64 + 1 })
            .unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// The records of all right frames, and what came after them.
fn read(bytes: &[u8]) -> (Vec<Record>, Result<(), Error>) {
    let mut found = Vec::new();
    let mut reader = match StreamReader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (found, Err(error)),
    };
    loop {
        match reader.next_frame() {
            Ok(Some(records)) => {
                found.extend(records.map(|(key, value)| (key.to_vec(), value.to_vec())));
            }
            Ok(None) => return (found, Ok(())),
            Err(error) => return (found, Err(error)),
        }
    }
}

#[test]
fn what_is_written_is_read() {
    for count in [0, 1, 2, 12] {
        let records = records(count);
        let bytes = stream(&HEADER, &records);
        let (found, end) = read(&bytes);
        end.unwrap();
        assert_eq!(found, records);
        let verified = StreamReader::new(&bytes[..]).unwrap().verify().unwrap();
        assert!(verified.is_complete());
        assert_eq!((verified.records(), verified.bytes()), (u64::from(count), bytes.len() as u64));
    }
}

/// Byte by byte as docs/STREAM.md says.
#[test]
fn the_bytes_are_as_documented() {
    let bytes = stream(&HEADER, &[(b"key".to_vec(), b"value".to_vec())]);
    assert_eq!((HEADER_BYTES, FRAME_HEAD_BYTES), (64, 48));
    assert_eq!(bytes[..16], *b"CHIMSTR1\x01\0\0\0\0\0\0\0");
    assert_eq!(bytes[24..32], 7_u64.to_le_bytes());
    assert_eq!(bytes[32..40], HEADER.stream_id.to_le_bytes());
    let hash = xxhash_rust::xxh3::xxh3_64_with_seed;
    let digest = hash(&bytes[..56], 0);
    assert_eq!(bytes[56..64], digest.to_le_bytes());
    let frame = &bytes[64..112];
    let words: Vec<u64> =
        frame.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    let content = b"\x03\0\0\0\x05\0\0\0keyvalue";
    assert_eq!(bytes[112..128], *content);
    let expected =
        [1 | 1 << 32, 0, 16, 1, hash(content, HEADER.stream_id), hash(&frame[..40], digest)];
    assert_eq!(words, expected);
    let end = &bytes[128..];
    assert_eq!(end.len(), 64);
    assert_eq!(end[..4], 2_u32.to_le_bytes());
    assert_eq!(end[48..56], 1_u64.to_le_bytes());
    assert_eq!(end[56..], words[5].to_le_bytes());
}

#[test]
fn every_cut_is_noticed_and_loses_no_whole_frame() {
    let records = records(9);
    let bytes = stream(&HEADER, &records);
    let mut longest = 0;
    for length in 0..bytes.len() {
        let (found, end) = read(&bytes[..length]);
        let at = match end {
            Err(Error::StreamTruncated { at }) => at,
            other => panic!("{length} bytes: {other:?}"),
        };
        assert_eq!(at, length as u64);
        assert_eq!(found, records[..found.len()], "{length} bytes");
        assert!(found.len() >= longest, "{length} bytes");
        longest = found.len();
    }
    assert_eq!(longest, records.len(), "only the end is missing");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let records = records(6);
    let bytes = stream(&HEADER, &records);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let (found, end) = read(&damaged);
        assert!(end.is_err(), "bit {bit}");
        assert_eq!(found, records[..found.len()], "bit {bit}");
    }
}

#[test]
fn a_byte_behind_the_end_is_noticed() {
    let mut bytes = stream(&HEADER, &records(3));
    bytes.push(0);
    let (found, end) = read(&bytes);
    assert_eq!(found, records(3));
    assert!(matches!(end, Err(Error::StreamDamaged { .. })), "{end:?}");
}

#[test]
fn a_frame_of_another_stream_or_another_place_is_refused() {
    let one = stream(&HEADER, &records(2));
    let other = stream(&Header { stream_id: 1, ..HEADER }, &records(2));
    let mixed = [&one[..HEADER_BYTES], &other[HEADER_BYTES..]].concat();
    assert!(matches!(read(&mixed), (found, Err(Error::StreamDamaged { .. })) if found.is_empty()));
    // The first frame again in place of the second.
    let all = stream(&HEADER, &records(9));
    let first = FRAME_HEAD_BYTES + all[HEADER_BYTES + 16] as usize;
    let frame = &all[HEADER_BYTES..HEADER_BYTES + first];
    let twice = [&all[..HEADER_BYTES + first], frame, &all[HEADER_BYTES + 2 * first..]].concat();
    assert!(matches!(read(&twice).1, Err(Error::StreamDamaged { .. })));
}

#[test]
fn a_newer_version_is_named() {
    let mut bytes = stream(&HEADER, &[]);
    bytes[8] = 2;
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[..56], 0);
    bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(read(&bytes).1, Err(Error::NewerStream { found: 2, supported: 1 })));
}

/// A stream of one frame whose checksums are right, whatever it says.
fn forged(frame: Frame, content: &[u8]) -> Vec<u8> {
    let content_checksum = content_checksum(HEADER.stream_id, &[content]);
    let (head, _) = Frame { content_checksum, ..frame }.encode(HEADER.digest());
    [&HEADER.encode()[..], &head, content].concat()
}

fn frame(records: u32, content_bytes: u64) -> Frame {
    let kind = FrameKind::Records;
    Frame { kind, records, number: 0, content_bytes, done_below: 0, content_checksum: 0 }
}

#[test]
fn lies_with_right_checksums_are_refused() {
    let record = [&record_head(b"k", b"v")[..], b"kv"].concat();
    let whole = record.len() as u64;
    let lengths = |key: u32, value: u32| [key.to_le_bytes(), value.to_le_bytes()].concat();
    let long = [&lengths(u32::MAX, 1)[..], b"kv"].concat();
    let long_value = [&lengths(1, u32::MAX)[..], b"kv"].concat();
    let no_key = [&lengths(0, 2)[..], b"kv"].concat();
    let cases = [
        ("more records", forged(frame(2, whole), &record)),
        ("fewer records", forged(frame(1, 2 * whole), &record.repeat(2))),
        ("no records", forged(frame(0, 0), b"")),
        ("a long key", forged(frame(1, whole), &long)),
        ("a long value", forged(frame(1, whole), &long_value)),
        ("no key", forged(frame(1, whole), &no_key)),
        ("another number", forged(Frame { number: 1, ..frame(1, whole) }, &record)),
        ("endless", forged(frame(1, u64::MAX), &record)),
        ("an end with records", {
            let end = End { records: U64::new(1), digest: U64::new(HEADER.digest()) };
            forged(Frame { kind: FrameKind::End, ..frame(1, 16) }, end.as_bytes())
        }),
        ("an end of more", {
            let end = End { records: U64::new(1), digest: U64::new(HEADER.digest()) };
            forged(Frame { kind: FrameKind::End, ..frame(0, 16) }, end.as_bytes())
        }),
    ];
    for (name, bytes) in cases {
        let (found, end) = read(&bytes);
        assert!(matches!(end, Err(Error::StreamDamaged { .. })), "{name}: {end:?}");
        assert_eq!(found, [], "{name}");
    }
    let fixed = Header { kind: StreamKind { key_bytes: 1, value_bytes: 2 }, ..HEADER };
    assert!(matches!(
        read(&stream(&fixed, &[(vec![1], vec![1])])).1,
        Err(Error::StreamDamaged { .. })
    ));
}

/// Gives what it has, and then nothing more.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = into.len().min(self.0.len()).min(1000);
        into[..bytes].copy_from_slice(&self.0[..bytes]);
        self.0 = &self.0[bytes..];
        Ok(bytes)
    }
}

#[test]
fn a_long_length_takes_no_more_memory_than_what_came() {
    let content = vec![7; 300_000];
    for length in [CONTENT_BYTES_MAX, 1 << 29] {
        let bytes = forged(frame(1, length), &content);
        let mut reader = StreamReader::new(Trickle(&bytes)).unwrap();
        assert!(matches!(reader.next_frame(), Err(Error::StreamTruncated { .. })));
        assert!(reader.memory() <= 2 * content.len(), "{} bytes", reader.memory());
    }
    let bytes = forged(frame(1, CONTENT_BYTES_MAX + 1), &content);
    let mut reader = StreamReader::new(Trickle(&bytes)).unwrap();
    assert!(matches!(reader.next_frame(), Err(Error::StreamDamaged { .. })));
    assert_eq!(reader.memory(), 0);
}
