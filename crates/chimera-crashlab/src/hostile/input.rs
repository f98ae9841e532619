//! [`Input`]: bytes read as numbers.

/// Numbers that are at a limit of something.
const LIMITS: [u64; 16] = [
    0,
    1,
    2,
    8,
    255,
    4096,
    u16::MAX as u64,
    1 << 20,
    (1 << 31) - 1,
    u32::MAX as u64,
    1 << 32,
    1 << 44,
    1 << 50,
    (1 << 51) + 1,
    u64::MAX - 7,
    u64::MAX,
];

/// Bytes that are read once, from the front. Behind their end there are zeros.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *byte
    }

    pub(super) fn number16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A number of any size: most are small or at a limit.
    pub(super) fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..128 => u64::from(byte),
            byte @ 128..144 => LIMITS[usize::from(byte - 128)],
            144..192 => u64::from(self.number16()),
            192..224 => u64::from(self.number16()) | u64::from(self.number16()) << 16,
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// A number below `limit`, 0 for a limit of 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        if limit <= 1 { 0 } else { usize::from(self.number16()) % limit }
    }
}
