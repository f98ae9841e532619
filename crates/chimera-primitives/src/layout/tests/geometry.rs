//! Table 4.

use super::*;

const SIZES: [u32; 5] = table4::NODE_BYTES;

fn rounded(percent: f64) -> i64 {
    percent.round() as i64
}

#[test]
fn entries_are_those_of_table_4() {
    assert_eq!(SIZES.map(table4::base), [9, 19, 41, 83, 169]);
    assert_eq!(SIZES.map(table4::aligned), [8, 18, 40, 82, 168]);
    for (kind, expected) in [
        (LayoutKind::Sorted, [8, 18, 40, 82, 168]),
        (LayoutKind::Unsorted, [8, 18, 40, 82, 168]),
        (LayoutKind::Bitmap, [8, 18, 40, 82, 168]),
        (LayoutKind::Indirection, [8, 18, 37, 79, 160]),
        (LayoutKind::Hashing, [8, 18, 37, 79, 160]),
        // A count of 8 bytes is smaller than a bitmap of 9 to 16: Figure 2 has 80 entries at 2 KiB.
        (LayoutKind::HashingCounted, [8, 18, 37, 80, 160]),
    ] {
        assert_eq!(SIZES.map(|size| published(kind, size).entries), expected, "{kind}");
    }
}

/// A bit for each entry would leave room for 80 entries at 2 KiB; words of 8 bytes leave room for 79.
#[test]
fn figure_2_has_80_entries_where_table_4_has_79() {
    assert_eq!(SIZES.map(table4::by_figure_2), [8, 18, 37, 80, 160]);
}

#[test]
fn memory_overheads_are_those_of_table_4() {
    let overheads = |entries: [u32; 5]| {
        let base = SIZES.map(table4::base);
        std::array::from_fn::<_, 5, _>(|at| {
            rounded(table4::overhead_percent(base[at], entries[at]))
        })
    };
    assert_eq!(overheads(SIZES.map(table4::aligned)), [13, 6, 3, 1, 1]);
    // By the entries of the table; its own 8 and 6 % at 1 and 2 KiB follow from its gigabytes.
    assert_eq!(overheads([8, 18, 37, 79, 160]), [13, 6, 11, 5, 6]);
    let gigabytes = |entries: [u32; 5]| {
        std::array::from_fn::<_, 5, _>(|at| {
            (table4::chain_gib(SIZES[at], entries[at]) * 100.0).round() as i64
        })
    };
    let base = gigabytes(SIZES.map(table4::base));
    assert_eq!(base, [132, 125, 116, 115, 113]);
    assert_eq!(gigabytes(SIZES.map(table4::aligned)), [149, 132, 119, 116, 114]);
    // 1.25 and 1.22 GB belong to 38 and 78 entries.
    let published = [149, 132, 125, 122, 119];
    assert_eq!(gigabytes([8, 18, 38, 78, 160]), published);
    let from_gigabytes: [i64; 5] =
        std::array::from_fn(|at| rounded((published[at] as f64 / base[at] as f64 - 1.0) * 100.0));
    assert_eq!(from_gigabytes, [13, 6, 8, 6, 5]);
}

#[test]
fn nothing_overlaps_and_keys_begin_at_lines() {
    for kind in LayoutKind::ALL {
        for (key_bytes, value_bytes) in [(1, 1), (8, 16), (12, 7), (16, 200), (100, 900)] {
            for node_bytes in [256, 512, 1024, 2048, 4096, 16384] {
                let shape = NodeShape { kind, key_bytes, value_bytes, node_bytes };
                let Ok(it) = Geometry::new(shape) else {
                    assert!(node_bytes < 4096, "{shape:?}");
                    continue;
                };
                assert!(it.entries >= 2 && it.keys_at.is_multiple_of(64), "{it:?}");
                assert!(it.prev_at + 16 <= it.keys_at);
                assert_eq!(it.values_at, it.keys_at + it.entries as u64 * it.key_stride);
                let end = it.values_at + it.entries as u64 * it.value_stride;
                assert!(end <= it.node_bytes(), "{it:?}");
                let of_entries = Geometry::of_entries(shape, it.entries).expect("it fits");
                assert!(of_entries.node_bytes() <= it.node_bytes());
                assert_eq!(Geometry { shape: it.shape, ..of_entries }, it);
            }
        }
    }
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let shape = NodeShape::published(LayoutKind::Hashing, 256);
    for wrong in [
        NodeShape { key_bytes: 0, ..shape },
        NodeShape { value_bytes: 0, ..shape },
        NodeShape { node_bytes: 100, ..shape },
        NodeShape { node_bytes: 32 << 10, ..shape },
        NodeShape { value_bytes: 200, ..shape },
    ] {
        assert!(Geometry::new(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn keys_of_bytes_have_their_order() {
    let keys: [&[u8]; 6] = [b"", b"\0", b"a", b"aaaaaaaa", b"aaaaaaaab", b"b"];
    let words = keys.map(|key| {
        let mut words = [0; 2];
        key_words(key, &mut words);
        words
    });
    assert!(words[1..].is_sorted());
    let mut bytes = [0; 9];
    key_bytes(&words[4], &mut bytes);
    assert_eq!(&bytes, b"aaaaaaaab");
}
