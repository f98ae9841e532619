//! [`Capabilities`]: what the stores of an engine can do.

/// What the stores of an engine can do. Tests and tools ask for these, never for an engine's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Capabilities {
    /// Stores for keys of one size and values of one size.
    pub fixed_size: bool,
    /// Stores for keys and values of any size.
    pub any_size: bool,
    /// A change of one aligned word of a value is made where the value lies.
    pub in_place: bool,
    /// Space of deleted and replaced records is made free again.
    pub reclaim: bool,
    /// Records can be read in the order of their keys, where the store is opened with
    /// [`Options::ordered`](crate::Options::ordered).
    pub ordered: bool,
    /// Many writes can be made as one: [`Session::write`](crate::Session::write).
    pub atomic_batch: bool,
    /// Reads can be of one moment.
    pub snapshots: bool,
    /// Point operations are served before recovery is complete.
    pub online_recovery: bool,
}

impl Capabilities {
    /// Those that every engine has by what engines share.
    pub(crate) const SHARED: Self = Self {
        fixed_size: false,
        any_size: false,
        in_place: false,
        reclaim: false,
        ordered: false,
        atomic_batch: true,
        snapshots: false,
        online_recovery: false,
    };

    /// Each with its name.
    pub fn named(&self) -> [(&'static str, bool); 8] {
        [
            ("fixed_size", self.fixed_size),
            ("any_size", self.any_size),
            ("in_place", self.in_place),
            ("reclaim", self.reclaim),
            ("ordered", self.ordered),
            ("atomic_batch", self.atomic_batch),
            ("snapshots", self.snapshots),
            ("online_recovery", self.online_recovery),
        ]
    }
}
