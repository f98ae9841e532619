//! Agreement of a store that is there with the options.

use crate::engine::Options;
use crate::pool::Superblock;
use crate::types::error::{Error, Result};
use crate::types::stream::StreamKind;

/// Fails unless `found` is what is `wanted`.
///
/// # Errors
/// `Mismatch`.
pub(crate) fn same(what: &'static str, found: String, wanted: String) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(Error::Mismatch { what, found, wanted }) }
}

/// Checks sizes of records and segments, where the options say anything of them.
///
/// # Errors
/// `Mismatch`.
pub(crate) fn agree(superblock: &Superblock, kind: StreamKind, options: &Options) -> Result<()> {
    let size = |bytes: u32| if kind.is_fixed() { bytes.to_string() } else { "any".to_owned() };
    if let Some((key_bytes, value_bytes)) = options.sizes {
        same("a key size of", size(kind.key_bytes), key_bytes.to_string())?;
        same("a value size of", size(kind.value_bytes), value_bytes.to_string())?;
    }
    let found = superblock.geometry.segment_bytes;
    let wanted = options.segment_bytes.unwrap_or(found);
    same("a segment size of", found.to_string(), wanted.to_string())
}
