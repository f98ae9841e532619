//! A pool as large as `Options::pool_bytes_for` says has room for what was asked for, and is not much larger.

use chimera::baselines::RecordLayout;
use chimera::{Db, Demand, EngineKind, Error, Geometry, Options};

const RECORDS: u64 = 4000;

/// The key of a record.
fn key(number: u64, bytes: u32) -> Vec<u8> {
    let mut key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec();
    key.resize(bytes as usize, 0);
    key
}

/// A store in a pool that is exactly large enough for `demand`, which nobody enlarges or tidies up.
fn store(options: Options, demand: &Demand) -> Db {
    let options = options.reclaim_percent(0).populate_ahead_bytes(0).huge_pages(false);
    let bytes = options.pool_bytes_for(demand).expect("possible");
    Db::open("unused", &options.anonymous(bytes)).expect("opens")
}

#[test]
fn records_of_every_size_fit() {
    for (key_bytes, value_bytes) in
        [(8, 8), (16, 200), (16, 1000), (32, 3900), (16, 5000), (16, 21_000), (16, 100_000)]
    {
        for is_fixed in [true, false] {
            let records = RECORDS.min(40_000_000 / u64::from(value_bytes));
            let options = if is_fixed {
                Options::new().fixed_size(key_bytes, value_bytes)
            } else {
                Options::new()
            };
            let demand = Demand {
                live: records,
                rewritten: 0,
                written: records,
                key_bytes,
                value_bytes,
                sessions: 1,
            };
            let db = store(options, &demand);
            let mut session = db.session();
            for number in 0..records {
                let put = session.put(key(number, key_bytes), vec![7; value_bytes as usize]);
                put.unwrap_or_else(|error| panic!("{key_bytes} + {value_bytes}: {error}"));
            }
            let user_bytes = records * u64::from(key_bytes + value_bytes);
            let pmem_bytes = db.stats().pmem_bytes;
            assert!(pmem_bytes >= user_bytes, "{key_bytes} + {value_bytes}");
        }
    }
}

fn engines() -> Vec<Options> {
    let of = |kind| Options::new().engine(kind);
    let chameleon = |keys| of(EngineKind::Chameleon).chameleon(|it| it.expected_keys(keys));
    let hashes = [EngineKind::PmemHash, EngineKind::DramHash].map(of);
    let mut engines = vec![of(EngineKind::Hikv), chameleon(100_000), chameleon(1_000_000)];
    engines.extend(hashes);
    engines
}

/// Where a record is hardly longer than its entry in the index.
#[test]
fn small_records_of_every_engine_fit() {
    for options in engines() {
        for (records, key_bytes, value_bytes) in
            [(150_000, 8, 0), (150_000, 8, 8), (60_000, 16, 8), (100, 16, 8)]
        {
            let demand = Demand {
                live: records,
                rewritten: 0,
                written: records,
                key_bytes,
                value_bytes,
                sessions: 1,
            };
            let db = store(options.clone().segment_bytes(4 << 20), &demand);
            let mut session = db.session();
            for number in 0..records {
                let put = session.put(key(number, key_bytes), vec![7; value_bytes as usize]);
                put.unwrap_or_else(|error| {
                    panic!("{options:?}, {number} of {key_bytes} + {value_bytes}: {error}")
                });
            }
        }
    }
}

#[test]
fn random_overwrites_fit() {
    for is_fixed in [true, false] {
        let options = if is_fixed { Options::new().fixed_size(16, 200) } else { Options::new() };
        let rounds = 5;
        let demand = Demand {
            live: RECORDS,
            rewritten: RECORDS,
            written: RECORDS * (rounds + 1),
            key_bytes: 16,
            value_bytes: 200,
            sessions: 1,
        };
        let db = store(options, &demand);
        let mut session = db.session();
        for number in 0..RECORDS {
            session.put(key(number, 16), [0; 200]).expect("room");
        }
        let mut random = 1_u64;
        for _ in 0..rounds * RECORDS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            session.put(key((random >> 33) % RECORDS, 16), [1; 200]).expect("room");
        }
    }
}

#[test]
fn a_pool_is_not_much_larger_than_its_records() {
    let demand = Demand {
        live: 1_000_000,
        rewritten: 0,
        written: 1_000_000,
        key_bytes: 16,
        value_bytes: 200,
        sessions: 2,
    };
    for options in [
        Options::new(),
        Options::new().fixed_size(16, 200),
        Options::new().fixed_size(16, 200).viper(|viper| viper.layout(RecordLayout::Published)),
    ] {
        let bytes = options.pool_bytes_for(&demand).expect("possible");
        let ratio = bytes as f64 / 216e6;
        assert!((1.0..1.25).contains(&ratio), "{ratio}: {options:?}");
    }
}

#[test]
fn what_no_pool_can_hold_is_refused() {
    let of = |options: Options, demand: Demand| options.pool_bytes_for(&demand);
    let one = Demand { live: 1, written: 1, ..Demand::default() };
    let small = Geometry { page_bytes: 256, ..Geometry::default() };
    let odd = Geometry { page_bytes: 100, ..Geometry::default() };
    for outcome in [
        of(Options::new(), Demand { written: u64::MAX, ..Demand::default() }),
        of(Options::new(), Demand { sessions: u64::MAX, ..one }),
        of(Options::new().fixed_size(8, 8), Demand { live: u64::MAX, rewritten: 9, ..one }),
        of(Options::new().fixed_size(u32::MAX, u32::MAX), one),
        of(Options::new().fixed_size(16, 300).viper(|viper| viper.geometry(small)), one),
        of(Options::new().viper(|viper| viper.geometry(odd)), one),
    ] {
        assert!(matches!(outcome, Err(Error::InvalidOptions(_))), "{outcome:?}");
    }
}

/// The longest value that a store of HiKV takes, whose segments have so many bytes. Nothing is written.
fn longest_value(segment_bytes: Option<u64>) -> usize {
    let directory = tempfile::tempdir().expect("a directory");
    let options = Options::new().engine(EngineKind::Hikv).populate_ahead_bytes(0).huge_pages(false);
    let options = match segment_bytes {
        Some(bytes) => options.segment_bytes(bytes),
        None => options,
    };
    let db = Db::open(directory.path().join("store"), &options).expect("opens");
    // Never touched, so it takes no memory.
    match db.put(b"key", vec![0; (1 << 30) + 1]) {
        Err(Error::ValueLength { most, .. }) => most,
        other => panic!("{other:?}"),
    }
}

/// As docs/FORMAT.md and `Options::segment_bytes` say.
#[test]
fn a_value_of_hikv_fits_into_a_segment() {
    let most = longest_value(None);
    assert_eq!(most, 1_073_733_536);
    assert_eq!(longest_value(Some((1 << 30) + (2 << 20))), 1 << 30);
}
