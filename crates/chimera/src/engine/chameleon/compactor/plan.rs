//! [`Plan`]: which tables of a shard are put together next. Pure: it looks at nothing but how many tables levels have.

use std::ops::Range;

use crate::engine::chameleon::shape::Shape;
use crate::engine::options::variants::Compaction;
use crate::index::persistent::shard_manifest::ShardTables;

/// The next compaction of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The tables of these levels become one of the level behind them.
    Upper(Range<usize>),
    /// All tables become the last one.
    Last,
}

/// Whether a level has no room for another table.
pub(super) fn is_full(tables: &ShardTables, level: usize, shape: &Shape) -> bool {
    tables.levels[level].tables >= shape.ratio
}

impl Plan {
    /// What makes room in the first level; none, where there is room.
    pub(super) fn next(
        tables: &ShardTables,
        shape: &Shape,
        compaction: Compaction,
    ) -> Option<Self> {
        match compaction {
            Compaction::Direct => Self::direct(tables, shape),
            #[cfg(feature = "baselines")]
            Compaction::LevelByLevel => Self::level_by_level(tables, shape),
        }
    }

    /// The first levels become one table of the next level that has room; the last table, where none has. A level that would
    /// become full is passed.
    fn direct(tables: &ShardTables, shape: &Shape) -> Option<Self> {
        if !is_full(tables, 0, shape) {
            return None;
        }
        let has_room = |level: &usize| tables.levels[*level].tables + 1 < shape.ratio;
        let target = (1..shape.upper_levels()).find(has_room);
        Some(target.map_or(Self::Last, |level| Self::Upper(0..level)))
    }

    /// Each level that is full becomes a table of the next one. The lowest one first: after a crash, or without room, two may
    /// be full.
    #[cfg(feature = "baselines")]
    fn level_by_level(tables: &ShardTables, shape: &Shape) -> Option<Self> {
        let upper = shape.upper_levels();
        let level = (0..upper).rev().find(|level| is_full(tables, *level, shape))?;
        Some(if level + 1 == upper { Self::Last } else { Self::Upper(level..level + 1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ChameleonOptions;

    fn next(counts: [u32; 3], compaction: Compaction) -> Option<Plan> {
        let mut tables = ShardTables::default();
        for (level, count) in tables.levels.iter_mut().zip(counts) {
            level.tables = count;
        }
        Plan::next(&tables, &Shape::of(&ChameleonOptions::default()), compaction)
    }

    #[test]
    fn direct_compaction_passes_levels_that_would_become_full() {
        let direct = |counts| next(counts, Compaction::Direct);
        assert_eq!(direct([3, 3, 3]), None);
        assert_eq!(direct([4, 0, 0]), Some(Plan::Upper(0..1)));
        assert_eq!(direct([4, 2, 3]), Some(Plan::Upper(0..1)));
        assert_eq!(direct([4, 3, 2]), Some(Plan::Upper(0..2)));
        assert_eq!(direct([4, 3, 3]), Some(Plan::Last));
    }

    #[cfg(feature = "baselines")]
    #[test]
    fn level_by_level_the_lowest_full_one_comes_first() {
        let level_by_level = |counts| next(counts, Compaction::LevelByLevel);
        assert_eq!(level_by_level([3, 3, 3]), None);
        assert_eq!(level_by_level([4, 3, 0]), Some(Plan::Upper(0..1)));
        assert_eq!(level_by_level([4, 4, 0]), Some(Plan::Upper(1..2)));
        assert_eq!(level_by_level([4, 0, 4]), Some(Plan::Last));
    }
}
