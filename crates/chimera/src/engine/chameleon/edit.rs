//! [`Edit`]: how the tables of a shard change. Pure: the tables before go in, and the tables afterwards come out.

use std::ops::Range;

use crate::index::persistent::shard_manifest::{DUMPS_MAX, LevelAt, ShardTables, TableAt};

/// A change of the tables of a shard. Tables that come are written before it is installed, and those that go are freed after
/// that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// A level, which had none, has room for tables.
    Level { level: usize, at: u64 },
    /// The levels, which have no tables, have no room for any.
    NoLevels,
    /// A MemTable became a table of the first level. All of the shard up to this version is in tables now, with so many keys.
    Flush { version: u64, records: u64 },
    /// The tables of these levels became one of the level behind them.
    Upper(Range<usize>),
    /// Bypass index and levels became a dump.
    Dump(TableAt),
    /// All tables became the last one; none, if nothing is left.
    Last(Option<TableAt>),
}

impl Edit {
    /// The tables afterwards.
    pub(super) fn apply(self, before: &ShardTables) -> ShardTables {
        let mut tables = *before;
        match self {
            Self::Level { level, at } => tables.levels[level] = LevelAt { at, tables: 0 },
            Self::NoLevels => tables.levels = Default::default(),
            Self::Flush { version, records } => {
                tables.flushed_version = version;
                tables.records = records;
                tables.levels[0].tables += 1;
            }
            Self::Upper(from) => {
                tables.levels[from.end].tables += 1;
                empty(&mut tables.levels[from]);
            }
            Self::Dump(dump) => {
                // The oldest one lies first, and all vanish at once.
                let place = tables.dumps.iter_mut().find(|dump| dump.is_none());
                *place.expect("room for a dump") = Some(dump);
                empty(&mut tables.levels);
            }
            Self::Last(last) => {
                tables.last = last;
                tables.dumps = [None; DUMPS_MAX];
                empty(&mut tables.levels);
            }
        }
        tables
    }
}

fn empty(levels: &mut [LevelAt]) {
    for level in levels {
        level.tables = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(counts: [u32; 3]) -> ShardTables {
        let mut tables = ShardTables::default();
        for (level, count) in counts.into_iter().enumerate() {
            tables.levels[level] = LevelAt { at: 4096 * (level as u64 + 1), tables: count };
        }
        tables
    }

    fn counts(tables: &ShardTables) -> [u32; 3] {
        [0, 1, 2].map(|level: usize| tables.levels[level].tables)
    }

    #[test]
    fn levels_keep_their_room_whatever_becomes_of_their_tables() {
        let (before, last) = (tables([3, 2, 1]), TableAt { at: 512, bytes: 256 });
        let flushed = Edit::Flush { version: 7, records: 5 }.apply(&before);
        assert_eq!((counts(&flushed), flushed.flushed_version, flushed.records), ([4, 2, 1], 7, 5));
        let edits = [
            (Edit::Upper(0..1), [0, 3, 1]),
            (Edit::Upper(0..2), [0, 0, 2]),
            (Edit::Upper(1..2), [3, 0, 2]),
            (Edit::Dump(last), [0; 3]),
            (Edit::Last(Some(last)), [0; 3]),
        ];
        for (edit, expected) in edits {
            let after = edit.clone().apply(&before);
            assert_eq!(counts(&after), expected, "{edit:?}");
            assert!(after.levels.iter().zip(before.levels).all(|(it, was)| it.at == was.at));
        }
    }

    #[test]
    fn dumps_lie_in_their_order_and_a_last_table_takes_all_along() {
        let table = |at| TableAt { at, bytes: 256 };
        let one = Edit::Dump(table(512)).apply(&tables([1, 0, 0]));
        let two = Edit::Dump(table(1024)).apply(&one);
        assert_eq!(two.dumps[..2], [Some(table(512)), Some(table(1024))]);
        let last = Edit::Last(Some(table(2048))).apply(&two);
        assert_eq!((last.last, last.dumps), (Some(table(2048)), [None; DUMPS_MAX]));
    }
}
