//! Options that cannot be carried out, or do not fit the store.

use std::time::Duration;

use chimera::baselines::RecordLayout;
use chimera::{Db, Durability, Error, Geometry, Options, TypedDb};

use crate::tools::{SMALL, assert_fails, contents, filled_store, open, scratch, small, small_with};

#[test]
fn impossible_options_say_what_is_wrong() {
    let big = Geometry { segment_bytes: 64 << 10, ..SMALL };
    let sized = || small_with(big).fixed_size(8, 8);
    let geometry = |geometry| small_with(geometry).fixed_size(8, 8);
    let cases: Vec<(Options, &[&str])> = vec![
        (
            Options::new().viper(|viper| viper.layout(RecordLayout::Published)),
            &["published layout", "fixed size"],
        ),
        (
            Options::new().viper(|viper| {
                viper.geometry(Geometry { page_bytes: 128 << 10, ..Geometry::default() })
            }),
            &["at most 524272 bytes"],
        ),
        (Options::new().fixed_size(0, 8), &["keys must have 1 to 4096 bytes"]),
        (Options::new().fixed_size(4097, 8), &["keys must have 1 to 4096 bytes"]),
        (Options::new().fixed_size(8, 524_289), &["at most 524288 bytes"]),
        (Options::new().fixed_size(8, u32::MAX), &["at most 524288 bytes"]),
        (geometry(Geometry { page_bytes: 0, ..big }), &["multiple of 64 bytes", "256 to 1 MiB"]),
        (geometry(Geometry { page_bytes: 300, ..big }), &["multiple of 64 bytes", "not 300"]),
        (geometry(Geometry { page_bytes: 2 << 20, ..big }), &["256 to 1 MiB"]),
        (geometry(Geometry { pages_per_block: 0, ..big }), &["1 to 8 pages", "not 0"]),
        (geometry(Geometry { pages_per_block: 9, ..big }), &["1 to 8 pages", "not 9"]),
        (geometry(Geometry { block_shift_bytes: 256, ..big }), &["shift", "below the page size"]),
        (geometry(Geometry { block_shift_bytes: 8, ..big }), &["multiple of 64"]),
        (geometry(Geometry { segment_bytes: 5000, ..big }), &["multiple of 4096", "not 5000"]),
        (geometry(Geometry { segment_bytes: 0, ..big }), &["no room for a block"]),
        (geometry(Geometry { segment_bytes: 4096, ..big }), &["no room for a block"]),
        (sized().segment_bytes(1), &["multiple of 4096"]),
        (sized().segment_bytes(u64::MAX), &["multiple of 4096"]),
        (small_with(big).fixed_size(8, 5000), &["do not hold a record", "leave the geometry out"]),
        (sized().viper(|viper| viper.index_segment_slots(0)), &["power of two"]),
        (sized().viper(|viper| viper.index_segment_slots(100)), &["power of two"]),
        (sized().viper(|viper| viper.index_segment_slots(1 << 20)), &["power of two"]),
        (sized().populate_at_open(true), &["needs a capacity"]),
        (sized().durability(Durability::Immediate), &["cannot be had", "ask for `process`"]),
        (
            sized().durability(Durability::Group { max_delay: Duration::from_millis(50) }),
            &["cannot be had", "ask for `process`"],
        ),
    ];
    for (number, (options, words)) in cases.into_iter().enumerate() {
        let directory = scratch();
        let outcome = Db::open(directory.path(), &options);
        assert!(
            matches!(outcome, Err(Error::InvalidOptions(_))),
            "case {number}, {options:?}: {outcome:?}"
        );
        assert_fails(outcome, words);
        // Nothing that it left behind may be in the way of a better attempt.
        filled_store(directory.path(), &small(), 3);
        assert_eq!(contents(&open(directory.path(), &small())).len(), 3);
    }
}

#[test]
fn a_store_of_other_properties_says_which() {
    let directory = scratch();
    let path = directory.path();
    filled_store(path, &small(), 3);
    let other = Geometry { pages_per_block: 3, ..SMALL };
    let cases: Vec<(Options, &[&str])> = vec![
        (Options::new().fixed_size(16, 24), &["key size of 8", "say 16"]),
        (Options::new().fixed_size(8, 200), &["value size of 24", "say 200"]),
        (
            Options::new().viper(|viper| viper.layout(RecordLayout::Published)),
            &["layout Checked", "say Published"],
        ),
        (Options::new().viper(|viper| viper.geometry(other)), &["geometry", "pages_per_block: 3"]),
        (Options::new().segment_bytes(1 << 20), &["segment size of 16384", "say 1048576"]),
    ];
    for (options, words) in cases {
        let outcome = Db::open(path, &options);
        assert!(matches!(outcome, Err(Error::Mismatch { .. })), "{outcome:?}");
        assert_fails(outcome, words);
        assert_fails(Db::open(path, &options), &["open it without that option"]);
    }
    assert_fails(TypedDb::<u64, u64>::open(path, &Options::new()), &["value size of 24", "say 8"]);
    assert_eq!(contents(&open(path, &Options::new())).len(), 3);
}
