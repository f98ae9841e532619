//! [`Site`]: the name of a place in the code that changes persistent memory.

/// A static id of one call of the seam.
///
/// Every engine declares its sites with [`sites!`](crate::sites) and so has one enumerable list of
/// them; the crash lab drops, delays and reorders each in turn, and a site that no test executes is
/// an error. On [`Hardware`](crate::Hardware) a site costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    name: &'static str,
}

impl Site {
    /// A site named `name`, for example `"viper.put.record"`. Use [`sites!`](crate::sites).
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }

    /// The name, unique in the workspace.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

/// Declares the sites of a component and the list `ALL` of them.
///
/// ```
/// mod sites {
///     chimera_pmem::sites! {
///         /// The record of a put, before its bit.
///         PUT_RECORD = "example.put.record";
///         /// The bit that makes it valid.
///         PUT_BIT = "example.put.bit";
///     }
/// }
/// assert_eq!(sites::ALL.len(), 2);
/// assert_eq!(sites::PUT_BIT.name(), "example.put.bit");
/// ```
#[macro_export]
macro_rules! sites {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        $($(#[$doc])* pub const $name: $crate::Site = $crate::Site::new($text);)+
        /// Every site of this component.
        pub const ALL: &[$crate::Site] = &[$($name),+];
    };
}
