//! What a new store is, by the options; what an existing one is, by its superblock.
//!
//! The engine's area of the superblock is three words: page size and pages per block; sizes of keys and of
//! values, both 0 where records have any size; the layout.

use chimera_pmem::Site;

use super::{capacity, sites, steps};
use crate::engine::shared::creation::{self, same};
use crate::engine::{Capabilities, Demand, EngineType, Options, Plan, ViperOptions};
use crate::index::volatile::extendible_hash::HashGeometry;
use crate::pool::{AREA_AT, PoolGeometry, Superblock, block_sites};
use crate::records::vpage::{self, LogPages, PageLayout, PageParameters};
use crate::records::{block_flags, page_word};
use crate::types::error::{Error, Result};
use crate::types::layout::{Geometry, RecordLayout};
use crate::types::stream::StreamKind;

/// Largest key, in bytes.
const KEY_BYTES_MAX: u32 = 4096;
/// Largest value of a fixed size, in bytes.
const VALUE_BYTES_MAX: u32 = 512 << 10;

/// What is known of Viper before a store is open.
pub(crate) struct Type;

impl EngineType for Type {
    type Parameters = PageParameters;

    const CAPABILITIES: Capabilities = Capabilities {
        fixed_size: true,
        any_size: true,
        in_place: true,
        reclaim: true,
        ordered: true,
        ..Capabilities::SHARED
    };

    fn plan(options: &Options) -> Result<Plan> {
        let parameters = new_parameters(options)?;
        let PageParameters { geometry, .. } = &parameters;
        let asked = &options.viper.geometry;
        Ok(Plan {
            geometry: pool_geometry(geometry, geometry.segment_bytes),
            is_segment_fixed: options.segment_bytes.is_some() || asked.is_some(),
            area: encode(&parameters),
        })
    }

    fn parameters(superblock: &Superblock, options: &Options) -> Result<PageParameters> {
        hash_geometry(&options.viper)?;
        let parameters =
            decode(superblock)?.filter(|parameters| check(parameters).is_ok()).ok_or_else(
                || Error::corrupted("the superblock's record sizes are not valid", AREA_AT),
            )?;
        let PageParameters { key_bytes, value_bytes, .. } = parameters;
        creation::agree(superblock, StreamKind { key_bytes, value_bytes }, options)?;
        agree(&parameters, options)?;
        Ok(parameters)
    }

    fn pool_bytes(options: &Options, demand: &Demand) -> Result<u64> {
        capacity::pool_bytes(&new_parameters(options)?, demand)
    }

    fn sites() -> Vec<Site> {
        let lists = [
            block_sites::ALL,
            block_flags::sites::ALL,
            vpage::sites::ALL,
            sites::ALL,
            page_word::steps::ALL,
            vpage::steps::ALL,
            steps::ALL,
        ];
        lists.concat()
    }
}

/// Geometry of the index's segments.
pub(super) fn hash_geometry(options: &ViperOptions) -> Result<HashGeometry> {
    HashGeometry::new(options.index_segment_slots).ok_or_else(|| {
        let slots = options.index_segment_slots;
        let text = "index segments must have a power of two of slots, from 8 to 4096";
        Error::InvalidOptions(format!("{text}, not {slots}"))
    })
}

fn pool_geometry(geometry: &Geometry, segment_bytes: u64) -> PoolGeometry {
    PoolGeometry {
        segment_bytes,
        block_bytes: geometry.page_bytes * geometry.pages_per_block,
        block_shift_bytes: geometry.shift_bytes(),
    }
}

fn encode(parameters: &PageParameters) -> Vec<u64> {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let PageParameters { geometry, layout, key_bytes, value_bytes } = parameters;
    vec![
        pair(geometry.page_bytes, geometry.pages_per_block),
        pair(*key_bytes, *value_bytes),
        u64::from(layout.code()),
    ]
}

fn decode(superblock: &Superblock) -> Result<Option<PageParameters>> {
    let [pages, sizes, layout] = superblock.area[..] else { return Ok(None) };
    let halves = |word: u64| (word as u32, (word >> 32) as u32);
    let (page_bytes, pages_per_block) = halves(pages);
    let (key_bytes, value_bytes) = halves(sizes);
    let PoolGeometry { segment_bytes, block_bytes, block_shift_bytes } = superblock.geometry;
    let is_whole = page_bytes.checked_mul(pages_per_block) == Some(block_bytes);
    #[cfg(not(feature = "baselines"))]
    if block_shift_bytes > 0 {
        return Err(Error::NeedsFeature {
            what: "blocks shifted from pages",
            feature: "baselines",
        });
    }
    let geometry = Geometry {
        page_bytes,
        pages_per_block,
        #[cfg(feature = "baselines")]
        block_shift_bytes,
        segment_bytes,
    };
    let layout = RecordLayout::from_code(layout, AREA_AT)?;
    Ok(is_whole.then_some(PageParameters { geometry, layout, key_bytes, value_bytes }))
}

/// Whether there can be a store like this.
fn check(parameters: &PageParameters) -> Result<(), String> {
    let PageParameters { geometry, layout, key_bytes, value_bytes } = parameters;
    geometry.validate()?;
    if !parameters.is_variable() {
        if !(1..=KEY_BYTES_MAX).contains(key_bytes) {
            return Err("keys must have 1 to 4096 bytes".to_owned());
        }
        if *value_bytes > VALUE_BYTES_MAX {
            return Err("values must have at most 524288 bytes".to_owned());
        }
        if PageLayout::new(geometry, *layout, *key_bytes, *value_bytes).is_none() {
            let page = geometry.page_bytes;
            return Err(format!(
                "pages of {page} bytes do not hold a record; leave the geometry out"
            ));
        }
        return Ok(());
    }
    if *value_bytes != 0 {
        return Err("values have a size and keys have none".to_owned());
    }
    if !layout.is_checked() {
        return Err("the published layout needs records of a fixed size".to_owned());
    }
    let block_bytes = u64::from(geometry.page_bytes) * u64::from(geometry.pages_per_block);
    if block_bytes > LogPages::BLOCK_BYTES_MAX {
        let most = LogPages::BLOCK_BYTES_MAX;
        return Err(format!("blocks of records of any size have at most {most} bytes"));
    }
    Ok(())
}

/// What the options ask for.
pub(super) fn new_parameters(options: &Options) -> Result<PageParameters> {
    hash_geometry(&options.viper)?;
    if let Some((0, _)) = options.sizes {
        return Err(Error::InvalidOptions("keys must have 1 to 4096 bytes".to_owned()));
    }
    let layout = options.viper.layout.unwrap_or_default();
    let (key_bytes, value_bytes) = options.sizes.unwrap_or_default();
    let mut geometry = options.viper.geometry.unwrap_or_else(|| {
        // Pages large enough for a record. Their header takes at least two words beside one.
        let sized = key_bytes <= KEY_BYTES_MAX && value_bytes <= VALUE_BYTES_MAX;
        let slot_bytes = match options.sizes {
            Some(_) if sized => PageLayout::slot_bytes_of(layout, key_bytes, value_bytes),
            _ => 0,
        };
        let page_bytes = Geometry::default().page_bytes;
        let pages = (slot_bytes + 16).div_ceil(page_bytes);
        Geometry {
            page_bytes: page_bytes * pages,
            #[cfg(feature = "baselines")]
            block_shift_bytes: options.viper.block_shift_bytes,
            ..Geometry::default()
        }
    });
    if let Some(segment_bytes) = options.segment_bytes {
        geometry.segment_bytes = segment_bytes;
    }
    let parameters = PageParameters { geometry, layout, key_bytes, value_bytes };
    check(&parameters).map_err(Error::InvalidOptions)?;
    Ok(parameters)
}

/// Checks that a store is as the options say, where they say anything.
fn agree(parameters: &PageParameters, options: &Options) -> Result<()> {
    let PageParameters { geometry, layout, .. } = parameters;
    if let Some(wanted) = options.viper.layout {
        same("the record layout", format!("{layout:?}"), format!("{wanted:?}"))?;
    }
    match options.viper.geometry {
        Some(wanted) => same("the geometry", format!("{geometry:?}"), format!("{wanted:?}")),
        None => Ok(()),
    }
}
