//! [`Limits`]: the longest key and the longest value.

use crate::types::error::{Error, Result};

/// The longest key and the longest value that records of any size can have, in bytes. A key has at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) key_bytes: usize,
    pub(crate) value_bytes: usize,
}

impl Limits {
    /// # Errors
    /// `KeyLength` when there can be no record of this key.
    #[inline(always)]
    pub(crate) fn check_key(self, key: &[u8]) -> Result<()> {
        let (found, most) = (key.len(), self.key_bytes);
        if (1..=most).contains(&found) { Ok(()) } else { Err(Error::KeyLength { found, most }) }
    }

    /// # Errors
    /// `ValueLength` when there can be no record with this value.
    #[inline(always)]
    pub(crate) fn check_value(self, value: &[u8]) -> Result<()> {
        let (found, most) = (value.len(), self.value_bytes);
        if found <= most { Ok(()) } else { Err(Error::ValueLength { found, most }) }
    }
}
