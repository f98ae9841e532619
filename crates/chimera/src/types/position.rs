//! [`StreamPosition`]: how far one has come in a stream.

use std::fmt;
use std::str::FromStr;

/// A place in a stream: after how many frames, and the digest of these. As text, `FRAMES-DIGEST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    pub(crate) frames: u64,
    pub(crate) digest: u64,
}

impl StreamPosition {
    /// Frames before it.
    pub fn frames(&self) -> u64 {
        self.frames
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.frames, self.digest)
    }
}

impl FromStr for StreamPosition {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        text.split_once('-')
            .and_then(|(frames, digest)| {
                let frames = frames.parse().ok()?;
                let digest = u64::from_str_radix(digest, 16).ok()?;
                Some(Self { frames, digest })
            })
            .ok_or_else(|| format!("`{text}` is no position such as 12-0123456789abcdef"))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for StreamPosition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_from_its_text() {
        let position = StreamPosition { frames: 12, digest: 0xab };
        assert_eq!(position.to_string(), "12-00000000000000ab");
        assert_eq!("12-00000000000000ab".parse(), Ok(position));
        for wrong in ["", "12", "12-", "-ab", "x-ab", "12-xyz", "1-1-1"] {
            assert!(wrong.parse::<StreamPosition>().is_err(), "{wrong}");
        }
    }
}
