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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_up_to_the_limit_are_taken_and_no_others() {
        let limits = Limits { key_bytes: 3, value_bytes: 2 };
        assert!(limits.check_key(b"k").is_ok() && limits.check_key(b"key").is_ok());
        let none = limits.check_key(b"");
        assert!(matches!(none, Err(Error::KeyLength { found: 0, most: 3 })), "{none:?}");
        let long = limits.check_key(b"keys");
        assert!(matches!(long, Err(Error::KeyLength { found: 4, most: 3 })), "{long:?}");
        assert!(limits.check_value(b"").is_ok() && limits.check_value(b"ab").is_ok());
        let long = limits.check_value(b"abc");
        assert!(matches!(long, Err(Error::ValueLength { found: 3, most: 2 })), "{long:?}");
    }
}
