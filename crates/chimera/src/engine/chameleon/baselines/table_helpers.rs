//! [`TableHelpers`]: a helper in DRAM for each table, a copy or a filter, in place of a bypass index: for ChameleonDB's
//! comparison points (ChameleonDB, section 3.2), which have none.
//!
//! Each table above the last level has a fixed place, for a copy or for a filter. It is written while no table in force has
//! that place, by the holder of the lock of the shard's tables. Readers validate afterwards that tables stayed where they
//! were. A last table has a filter of its own, whose number the shard keeps. Nothing of this is on media.

use chimera_pmem::Pmem;

use crate::engine::ChameleonOptions;
use crate::engine::chameleon::shape::{Shape, Upper};
use crate::engine::options::variants::{Compaction, UpperIndex};
use crate::index::OutOfSpace;
use crate::index::probing_table::{Slot, Tables, VolatileTable};
use crate::index::table_filter::{FilterKind, Filters, SizedFilters, TableFilter};
use crate::pool::Pool;
use crate::types::error::{Error, Result};

/// What of tables is in DRAM.
#[derive(Debug)]
pub(crate) enum TableHelpers {
    /// The entries of all that are above the last level, in bypass indexes.
    Bypass,
    /// Nothing.
    Nothing,
    /// A copy of each table above the last level.
    Copies(Levels<Tables>),
    /// A filter of each table: of those above the last level, and of last tables. Dumps, which another process has left, have
    /// none.
    Filters { uppers: Levels<Filters>, lasts: SizedFilters },
}

/// Something for each table above the last level.
#[derive(Debug)]
pub(crate) struct Levels<T>(Box<[Level<T>]>);

#[derive(Debug)]
struct Level<T> {
    slots: u32,
    /// Places that a shard has. A table behind them has none.
    per_shard: u32,
    all: T,
}

/// Where a reader looks for what a table has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look<'a> {
    InTable,
    InCopy(VolatileTable<'a>),
    /// The table has no entry of the hash.
    Nowhere,
}

/// The helper of a table, which is being made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HelperBuilder<'a> {
    Nothing,
    Copy(VolatileTable<'a>),
    Filter(TableFilter<'a>),
}

impl TableHelpers {
    /// Those of a store of this shape. A store that is open for reading only makes no table, so it has bypass indexes.
    ///
    /// # Errors
    /// When there is no memory.
    pub(crate) fn of<P: Pmem>(
        pool: &Pool<P>,
        options: &ChameleonOptions,
        shape: &Shape,
        huge_pages: bool,
    ) -> Result<Self> {
        if pool.read_only {
            return Ok(Self::Bypass);
        }
        let no_memory = |_| Error::no_memory("filters or copies");
        Self::new(options, shape, huge_pages).map_err(no_memory)
    }

    fn new(
        options: &ChameleonOptions,
        shape: &Shape,
        huge_pages: bool,
    ) -> std::result::Result<Self, OutOfSpace> {
        let compaction = options.compaction;
        Ok(match options.upper_index {
            UpperIndex::Bypass => Self::Bypass,
            UpperIndex::Tables => Self::Nothing,
            UpperIndex::Pinned => Self::Copies(Levels::new(
                shape,
                compaction,
                |slots| Tables::new(slots, huge_pages),
                Tables::take,
            )?),
            UpperIndex::Filters(kind) => Self::Filters {
                uppers: Levels::new(
                    shape,
                    compaction,
                    |slots| Filters::new(kind, kind.lines_for(slots), huge_pages),
                    Filters::take,
                )?,
                lasts: SizedFilters::new(kind),
            },
        })
    }

    #[inline(always)]
    pub(crate) fn is_bypass(&self) -> bool {
        matches!(self, Self::Bypass)
    }

    /// Whether something has to be made of tables that were found.
    pub(crate) fn are_made_of_tables(&self) -> bool {
        !matches!(self, Self::Nothing)
    }

    // ---- readers -------------------------------------------------------------------------------

    /// Where to look for the entries of a hash that a table above the last level may have.
    #[inline(always)]
    pub(crate) fn look(&self, upper: Upper, hash: u64) -> Look<'_> {
        match self {
            Self::Copies(copies) => copies.copy(upper).map_or(Look::InTable, Look::InCopy),
            Self::Filters { uppers, .. } => match uppers.filter(upper) {
                Some(filter) if !filter.may_have(hash) => Look::Nowhere,
                _ => Look::InTable,
            },
            Self::Bypass | Self::Nothing => Look::InTable,
        }
    }

    /// Whether a last table of so many slots, whose filter has this number, has no entry of a hash.
    #[inline(always)]
    pub(crate) fn rules_out_last(&self, number: u32, slots: u32, hash: u64) -> bool {
        let Self::Filters { lasts, .. } = self else { return false };
        lasts.filter(number, slots).is_some_and(|filter| !filter.may_have(hash))
    }

    /// The copy of a table above the last level.
    pub(crate) fn copy(&self, upper: Upper) -> Option<VolatileTable<'_>> {
        let Self::Copies(copies) = self else { return None };
        copies.copy(upper)
    }

    // ---- makers of tables ----------------------------------------------------------------------

    /// Begins the helper of a table above the last level, in whose place no table is in force.
    pub(crate) fn begin_upper(&self, upper: Upper) -> HelperBuilder<'_> {
        let builder = match self {
            Self::Copies(copies) => copies.copy(upper).map(HelperBuilder::Copy),
            Self::Filters { uppers, .. } => uppers.filter(upper).map(HelperBuilder::Filter),
            Self::Bypass | Self::Nothing => None,
        };
        builder.unwrap_or(HelperBuilder::Nothing).clear()
    }

    /// Begins the helper of a last table of so many slots, and its number; 0 where last tables have none, or there is no memory
    /// for it.
    pub(crate) fn begin_last(&self, slots: u32) -> (u32, HelperBuilder<'_>) {
        let Self::Filters { lasts, .. } = self else { return (0, HelperBuilder::Nothing) };
        let number = lasts.take(slots).unwrap_or(0);
        let builder =
            lasts.filter(number, slots).map_or(HelperBuilder::Nothing, HelperBuilder::Filter);
        (number, builder.clear())
    }

    /// The helper of a last table is not used any more.
    pub(crate) fn give_back_last(&self, number: u32) {
        if let Self::Filters { lasts, .. } = self {
            lasts.give_back(number);
        }
    }

    // ---- reports -------------------------------------------------------------------------------

    /// Bytes of DRAM of copies, or of filters.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Copies(copies) => copies.0.iter().map(|level| level.all.bytes()).sum(),
            Self::Filters { uppers, lasts } => {
                lasts.bytes() + uppers.0.iter().map(|level| level.all.bytes()).sum::<u64>()
            }
            Self::Bypass | Self::Nothing => 0,
        }
    }

    pub(crate) fn upper_index(&self) -> UpperIndex {
        match self {
            Self::Bypass => UpperIndex::Bypass,
            Self::Nothing => UpperIndex::Tables,
            Self::Copies(_) => UpperIndex::Pinned,
            Self::Filters { lasts, .. } => UpperIndex::Filters(lasts.kind()),
        }
    }

    /// Of what kind filters are, if there are any.
    pub(crate) fn filter_kind(&self) -> Option<FilterKind> {
        let Self::Filters { lasts, .. } = self else { return None };
        Some(lasts.kind())
    }
}

impl<T> Levels<T> {
    fn new(
        shape: &Shape,
        compaction: Compaction,
        make: impl Fn(u32) -> T,
        take: impl Fn(&T) -> std::result::Result<u32, OutOfSpace>,
    ) -> std::result::Result<Self, OutOfSpace> {
        let level = |level: usize| {
            // Direct Compaction fills no level but the first one.
            let is_filled = level == 0 || compaction == Compaction::LevelByLevel;
            let per_shard = if is_filled { shape.ratio } else { shape.ratio - 1 };
            let slots = shape.table_slots(level);
            let all = make(slots);
            for number in 0..shape.shards() * per_shard {
                assert_eq!(take(&all)?, number, "they are handed out in order");
            }
            Ok(Level { slots, per_shard, all })
        };
        Ok(Self((0..shape.upper_levels()).map(level).collect::<Result<_, _>>()?))
    }

    /// What has the place of a table, and its number there.
    #[inline(always)]
    fn place(&self, upper: Upper) -> Option<(&Level<T>, u32)> {
        let level = self.0.get(upper.level)?;
        let has_place = upper.table < level.per_shard;
        has_place.then(|| (level, upper.shard * level.per_shard + upper.table))
    }
}

impl Levels<Tables> {
    #[inline(always)]
    fn copy(&self, upper: Upper) -> Option<VolatileTable<'_>> {
        self.place(upper).map(|(level, number)| level.all.table(number))
    }
}

impl Levels<Filters> {
    #[inline(always)]
    fn filter(&self, upper: Upper) -> Option<TableFilter<'_>> {
        let (level, number) = self.place(upper)?;
        level.all.filter(number, level.slots)
    }
}

impl HelperBuilder<'_> {
    fn clear(self) -> Self {
        match self {
            Self::Nothing => {}
            Self::Copy(copy) => copy.clear(),
            Self::Filter(filter) => filter.clear(),
        }
        self
    }

    /// Enters all entries of the table.
    pub(crate) fn fill(self, entries: impl Iterator<Item = Slot>) {
        if !matches!(self, Self::Nothing) {
            entries.for_each(|slot| self.enter(slot));
        }
    }

    /// Enters an entry of the table.
    #[inline]
    pub(crate) fn enter(self, slot: Slot) {
        match self {
            Self::Nothing => {}
            Self::Copy(copy) => {
                copy.insert(slot, u32::MAX).expect("a copy has as many slots as the table");
            }
            Self::Filter(filter) => filter.enter(slot.hash),
        }
    }
}
