//! Comparing an existing store with the options.

use crate::engine::contract::engine_type::Plan;
use crate::engine::options::Options;
use crate::pool::{PoolGeometry, Superblock};
use crate::records::unchecked_word::UncheckedWord;
use crate::types::error::{Error, Result};
use crate::types::stream::StreamKind;

/// Fails unless `found` is what is `wanted`.
///
/// # Errors
/// `Mismatch`.
pub(crate) fn same(what: &'static str, found: String, wanted: String) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(Error::Mismatch { what, found, wanted }) }
}

/// Checks sizes of records and segments and where numbers are, where the options say anything of them.
///
/// # Errors
/// `Mismatch`; `InvalidOptions` as [`check_counter`].
pub(crate) fn agree(superblock: &Superblock, kind: StreamKind, options: &Options) -> Result<()> {
    let size = |bytes: u32| if kind.is_fixed() { bytes.to_string() } else { "any".to_owned() };
    if let Some((key_bytes, value_bytes)) = options.sizes {
        same("a key size of", size(kind.key_bytes), key_bytes.to_string())?;
        same("a value size of", size(kind.value_bytes), value_bytes.to_string())?;
    }
    check_counter(options, kind.is_fixed().then_some(kind.value_bytes))?;
    let found = superblock.geometry.segment_bytes;
    let wanted = options.segment_bytes.unwrap_or(found);
    same("a segment size of", found.to_string(), wanted.to_string())
}

/// Checks that values of this fixed size, or of none, have a number where the options say that they have one.
///
/// # Errors
/// `InvalidOptions`; `FieldOutOfRange`.
pub(crate) fn check_counter(options: &Options, value_bytes: Option<u32>) -> Result<()> {
    let Some(at) = options.counter_at.map(|at| at as usize) else { return Ok(()) };
    let Some(value_bytes) = value_bytes.map(|bytes| bytes as usize) else {
        let what = "`counter_at` is for stores of a fixed size: in others use `put_counter`";
        return Err(Error::InvalidOptions(what.to_owned()));
    };
    if UncheckedWord::at(at) == UncheckedWord::NONE || !at.is_multiple_of(8) {
        let what = "`counter_at` takes a multiple of 8 below 65528";
        return Err(Error::InvalidOptions(format!("{what}, not {at}")));
    }
    if at + 8 > value_bytes {
        return Err(Error::FieldOutOfRange { at, value_bytes });
    }
    Ok(())
}

/// Bytes of a segment, unless the options say otherwise; of a block, the thirty-second part of a segment, at
/// least and at most.
const SEGMENT_BYTES: u64 = 64 << 20;
const BLOCK_BYTES_MIN: u64 = 256;
const BLOCK_BYTES_MAX: u64 = 4096;

/// A store for records of any size in runs of blocks, of an engine that keeps nothing in the superblock.
///
/// # Errors
/// `InvalidOptions` when the options ask for records of a fixed size, or for segments that cannot be.
pub(crate) fn plan_of_runs(options: &Options) -> Result<Plan> {
    if options.sizes.is_some() {
        let what = "this engine has no stores for records of a fixed size";
        return Err(Error::InvalidOptions(what.to_owned()));
    }
    let segment_bytes = options.segment_bytes.unwrap_or(SEGMENT_BYTES);
    let block_bytes = (segment_bytes / 32).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX) as u32 & !63;
    let geometry = PoolGeometry { segment_bytes, block_bytes, block_shift_bytes: 0 };
    geometry.validate().map_err(Error::InvalidOptions)?;
    let is_segment_fixed = options.segment_bytes.is_some();
    Ok(Plan { geometry, is_segment_fixed, area: Vec::new() })
}
