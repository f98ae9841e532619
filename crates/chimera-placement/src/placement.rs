//! [`Placement`]: where block cache and memtables lie, and [`Components`]: what is made for one.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use chimera_pmem::instrumented::ReadModel;

use crate::arena::Arena;
use crate::database::{BYTES_MAX, CacheKind, Database, DatabaseOptions};
use crate::error::{Error, Result};
use crate::heap::{Heap, Share};
use crate::tier::Tier;

/// Where the block cache lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePlace {
    /// In DRAM, with RocksDB's own allocator.
    Dram,
    /// A share of it in persistent memory.
    Pmem(Share),
    /// A quarter in DRAM, in front of a tier in persistent memory.
    Tier {
        /// Bytes of the tier, in quarters of the bytes of the whole cache.
        quarters: u8,
        /// Whether blocks are compressed in the tier.
        is_compressed: bool,
        /// Whether the tier gives up blocks that go back to DRAM.
        is_exclusive: bool,
    },
}

/// Where block cache and memtables lie.
///
/// As text: `dram`; `cache`, `memtable`, `both`, each with `-PERCENT` for a share; `tier`, with `-lz4`, `-exclusive`, and
/// `-whole` or `-double` for a tier of the size of the whole cache, or twice that, instead of three quarters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The block cache.
    pub cache: CachePlace,
    /// The share of memtables in persistent memory. With nothing there, RocksDB's own memtable is used.
    pub memtable: Share,
}

impl Placement {
    /// RocksDB as it is.
    pub const DRAM: Self = Self { cache: CachePlace::Dram, memtable: Share::NOTHING };
    /// The block cache in persistent memory.
    pub const CACHE: Self = Self { cache: CachePlace::Pmem(Share::ALL), memtable: Share::NOTHING };
    /// Block cache and memtables in persistent memory.
    pub const BOTH: Self = Self { cache: CachePlace::Pmem(Share::ALL), memtable: Share::ALL };
    /// The three placements of the paper.
    pub const PUBLISHED: [Self; 3] = [Self::DRAM, Self::CACHE, Self::BOTH];

    /// Whether any persistent memory is used.
    pub fn uses_pmem(self) -> bool {
        self != Self::DRAM
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |f: &mut fmt::Formatter<'_>, name: &str, share: Share| match share {
            Share::ALL => f.write_str(name),
            share => write!(f, "{name}-{}", share.as_percent()),
        };
        match (self.cache, self.memtable) {
            (CachePlace::Dram, Share::NOTHING) => f.write_str("dram"),
            (CachePlace::Dram, memtable) => share(f, "memtable", memtable),
            (CachePlace::Pmem(cache), Share::NOTHING) => share(f, "cache", cache),
            (CachePlace::Pmem(cache), _) => share(f, "both", cache),
            (CachePlace::Tier { quarters, is_compressed, is_exclusive }, _) => {
                f.write_str("tier")?;
                f.write_str(if is_compressed { "-lz4" } else { "" })?;
                f.write_str(if is_exclusive { "-exclusive" } else { "" })?;
                f.write_str(match quarters {
                    4 => "-whole",
                    8 => "-double",
                    _ => "",
                })
            }
        }
    }
}

fn parse_tier(options: &str) -> Option<CachePlace> {
    let (mut quarters, mut is_compressed, mut is_exclusive) = (3, false, false);
    for option in options.split('-').filter(|option| !option.is_empty()) {
        match option {
            "lz4" => is_compressed = true,
            "exclusive" => is_exclusive = true,
            "whole" => quarters = 4,
            "double" => quarters = 8,
            _ => return None,
        }
    }
    Some(CachePlace::Tier { quarters, is_compressed, is_exclusive })
}

impl FromStr for Placement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::Option(format!(
                "no placement is called {text:?}; there are dram, cache, memtable and both, each of the last three with -PERCENT \
                 (1 to 100) for a share, and tier with -lz4, -exclusive, -whole or -double"
            ))
        };
        if text == "dram" {
            return Ok(Self::DRAM);
        }
        if let Some(options) = text.strip_prefix("tier") {
            let cache = parse_tier(options).ok_or_else(wrong)?;
            let placement = Self { cache, memtable: Share::NOTHING };
            // One spelling only, so that results of the same placement have the same name.
            return (placement.to_string() == text).then_some(placement).ok_or_else(wrong);
        }
        let (name, percent) = text.split_once('-').unwrap_or((text, "100"));
        let percent = percent.parse().ok().filter(|percent| (1..=100).contains(percent));
        let share = Share::percent(percent.ok_or_else(wrong)?)?;
        match name {
            "cache" => Ok(Self { cache: CachePlace::Pmem(share), memtable: Share::NOTHING }),
            "memtable" => Ok(Self { cache: CachePlace::Dram, memtable: share }),
            "both" => Ok(Self { cache: CachePlace::Pmem(share), memtable: share }),
            _ => Err(wrong()),
        }
    }
}

/// How large the components of a database are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of the block cache, in DRAM and persistent memory together.
    pub cache_bytes: u64,
    /// Bytes of a memtable.
    pub write_buffer_bytes: u64,
    /// Which block cache.
    pub cache_kind: CacheKind,
}

impl Sizes {
    /// Bytes of persistent memory that are enough for any placement: twice the block cache and four memtables, with a quarter more for
    /// what size classes and fragments take.
    ///
    /// # Errors
    /// When they are more than any process can have.
    pub fn pmem_bytes(&self) -> Result<u64> {
        let (cache, write_buffer) =
            (u128::from(self.cache_bytes), u128::from(self.write_buffer_bytes));
        let components = 2 * cache + 4 * write_buffer;
        self.checked(components + components / 4 + (32 << 20))
    }

    /// Bytes of a tier of so many quarters of the block cache.
    fn tier_bytes(&self, quarters: u8) -> Result<u64> {
        self.checked(u128::from(self.cache_bytes / 4) * u128::from(quarters))
    }

    fn checked(&self, bytes: u128) -> Result<u64> {
        let too_many = || {
            Error::Option(format!(
                "a block cache of {} bytes and memtables of {} bytes are larger than the memory that any process can have",
                self.cache_bytes, self.write_buffer_bytes
            ))
        };
        let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes <= BYTES_MAX);
        bytes.ok_or_else(too_many)
    }
}

/// What is made for a placement.
#[derive(Clone, Debug, Default)]
pub struct Components {
    /// Memory of the block cache, where it is not RocksDB's own.
    pub cache: Option<Arc<Heap>>,
    /// Memory of memtables, where it is not RocksDB's own.
    pub memtable: Option<Arc<Heap>>,
    /// The tier behind the block cache.
    pub tier: Option<Arc<Tier>>,
    options: DatabaseOptions,
}

impl Components {
    /// Makes them from `arena`, which only a placement without persistent memory does without. Reads are charged to `model`.
    ///
    /// # Errors
    /// When an arena is needed and missing, or the sizes are larger than any memory.
    pub fn new(
        placement: Placement,
        sizes: Sizes,
        arena: Option<&Arc<Arena>>,
        model: Option<&Arc<ReadModel>>,
    ) -> Result<Self> {
        let heap = |share| -> Result<Arc<Heap>> {
            let missing = || Error::Option(format!("{placement} needs persistent memory"));
            let arena = arena.ok_or_else(missing)?;
            Ok(Arc::new(Heap::new(Arc::clone(arena), share, model.cloned())))
        };
        let mut made = Self::default();
        let mut dram_bytes = sizes.cache_bytes;
        match placement.cache {
            CachePlace::Dram => {}
            CachePlace::Pmem(share) => made.cache = Some(heap(share)?),
            CachePlace::Tier { quarters, is_compressed, is_exclusive } => {
                dram_bytes = sizes.cache_bytes / 4;
                let capacity = sizes.tier_bytes(quarters)? as usize;
                made.tier = Some(Arc::new(Tier::new(heap(Share::ALL)?, capacity, is_compressed)));
                made.options.tier_is_exclusive = is_exclusive;
            }
        }
        if placement.memtable != Share::NOTHING {
            made.memtable = Some(heap(placement.memtable)?);
        }
        made.options.cache_bytes = dram_bytes;
        made.options.write_buffer_bytes = sizes.write_buffer_bytes;
        made.options.cache_kind = sizes.cache_kind;
        // As published; RocksDB's own memtable alone knows the option.
        made.options.memtable_huge_page_bytes = 2 << 20;
        made.options.cache_heap.clone_from(&made.cache);
        made.options.memtable_heap.clone_from(&made.memtable);
        made.options.tier.clone_from(&made.tier);
        Ok(made)
    }

    /// A block cache in memory of libmemkind in `directory`, where that is built in.
    ///
    /// # Errors
    /// As [`Sizes::pmem_bytes`]. Whether it is built in shows when the database is opened.
    pub fn with_memkind(sizes: Sizes, directory: &Path) -> Result<Self> {
        let mut made = Self::new(Placement::DRAM, sizes, None, None)?;
        made.options.memkind = Some((directory.to_owned(), sizes.pmem_bytes()?));
        Ok(made)
    }

    /// The same, of a database that goes past the system's page cache, where `is_direct`.
    pub fn direct(mut self, is_direct: bool) -> Self {
        self.options.is_direct = is_direct;
        self
    }

    /// Opens a database that uses them.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open(&self, path: &Path) -> Result<Database> {
        Database::open(path, &self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_written() {
        let names = [
            "dram",
            "cache",
            "memtable",
            "both",
            "cache-40",
            "memtable-1",
            "both-60",
            "tier",
            "tier-lz4",
            "tier-exclusive",
            "tier-whole",
            "tier-lz4-exclusive-whole",
            "tier-double",
        ];
        for name in names {
            assert_eq!(name.parse::<Placement>().unwrap().to_string(), name);
        }
        for [placement, name] in
            [[Placement::DRAM, Placement::CACHE], [Placement::BOTH, Placement::BOTH]]
        {
            assert_eq!(placement.to_string().parse::<Placement>().unwrap(), placement);
            assert!(name.uses_pmem());
        }
        for wrong in [
            "",
            "DRAM",
            "cache-0",
            "cache-101",
            "cache-",
            "dram-4",
            "tier-",
            "tiers",
            "tier-whole-lz4",
            "disk",
        ] {
            let text = wrong.parse::<Placement>().unwrap_err().to_string();
            assert!(text.contains("there are dram"), "{wrong}: {text}");
        }
    }

    #[test]
    fn sizes_beyond_any_memory_are_refused() {
        let sizes = |cache_bytes, write_buffer_bytes| Sizes {
            cache_bytes,
            write_buffer_bytes,
            cache_kind: CacheKind::Lru,
        };
        assert_eq!(sizes(8 << 20, 4 << 20).pmem_bytes().unwrap(), 72 << 20);
        for sizes in [
            sizes(u64::MAX, 1),
            sizes(1, u64::MAX),
            sizes(u64::MAX / 2, 1),
            sizes(1, u64::MAX / 4),
            sizes(u64::MAX, u64::MAX),
        ] {
            let error = sizes.pmem_bytes().unwrap_err().to_string();
            assert!(error.contains("any process can have"), "{error}");
            assert!(Components::with_memkind(sizes, Path::new("/nowhere")).is_err());
        }
        assert!(sizes(u64::MAX, 1).tier_bytes(8).is_err());
        assert_eq!(sizes(400, 1).tier_bytes(8).unwrap(), 800);
    }

    #[test]
    fn persistent_memory_is_needed_where_it_is_used() {
        let sizes =
            Sizes { cache_bytes: 1 << 20, write_buffer_bytes: 1 << 20, cache_kind: CacheKind::Lru };
        assert!(Components::new(Placement::DRAM, sizes, None, None).is_ok());
        for placement in ["cache", "memtable", "both", "tier"] {
            let placement: Placement = placement.parse().unwrap();
            let error = Components::new(placement, sizes, None, None).unwrap_err().to_string();
            assert!(error.contains("needs persistent memory"), "{error}");
        }
    }
}
