//! [`Client`]: what every session keeps between operations.

/// How a session's last update that found its key was carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Written {
    /// There was nothing to change.
    #[default]
    Nothing,
    InPlace,
    Anew,
}

/// What a session of every engine keeps between operations.
#[derive(Debug, Default)]
pub(crate) struct SharedClient {
    /// For counters.
    pub(crate) number: u32,
    /// The batch that it makes; 0 for none.
    pub(crate) batch: u64,
    /// For metrics.
    pub(crate) written: Written,
    /// Gets before the next one that verifies the sum of its value, where a part of them does.
    pub(crate) gets_left: u32,
    /// A value that was read.
    pub(crate) value: Vec<u8>,
    /// A value that is being changed.
    pub(crate) changed: Vec<u8>,
}

impl SharedClient {
    pub(crate) fn new(number: u32) -> Self {
        Self { number, ..Self::default() }
    }
}

/// What a session keeps between operations.
pub(crate) trait Client: Send + 'static {
    /// The part that all engines have.
    fn shared(&mut self) -> &mut SharedClient;

    /// The same, to look at.
    fn shared_ref(&self) -> &SharedClient;
}

/// For engines whose sessions keep nothing else.
impl Client for SharedClient {
    #[inline(always)]
    fn shared(&mut self) -> &mut SharedClient {
        self
    }

    #[inline(always)]
    fn shared_ref(&self) -> &SharedClient {
        self
    }
}
