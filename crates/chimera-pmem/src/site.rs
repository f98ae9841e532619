//! [`Site`]: a place in the code that changes persistent memory, and what tools must know of it.

/// A static id of one call of the seam.
///
/// Every engine declares its sites with [`sites!`](crate::sites), its steps with [`steps!`](crate::steps),
/// and so has one enumerable list of them; the crash lab drops, delays and reorders each in turn, and a site
/// that no test executes is an error. What the rules of the lab must know of a site is declared with it. On
/// [`Hardware`](crate::Hardware) a site costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    name: &'static str,
    /// The attributes, as bits.
    attributes: u8,
}

const IN_PLACE: u8 = 1;
const UNREAD: u8 = 1 << 1;
const MAY_BE_CLEAN: u8 = 1 << 2;
const STEP: u8 = 1 << 3;
const DEFERRED: u8 = 1 << 4;

impl Site {
    /// A site named `name`, for example `"viper.put.record"`, without attributes. Use
    /// [`sites!`](crate::sites).
    pub const fn new(name: &'static str) -> Self {
        Self { name, attributes: 0 }
    }

    /// The name, unique in the workspace.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Attribute: its stores change what is published already, in place and on purpose.
    pub const fn in_place(self) -> Self {
        self.with(IN_PLACE)
    }

    /// Attribute: its stores change a part of a word that no lookup reads, so a lookup may be acknowledged
    /// before they are durable.
    pub const fn unread(self) -> Self {
        self.with(UNREAD)
    }

    /// Attribute: its flushes may find a line clean, because it cannot be told whether somebody has flushed
    /// the line since it was stored to. For the same reason its fences may have nothing to wait for.
    pub const fn may_be_clean(self) -> Self {
        self.with(MAY_BE_CLEAN)
    }

    /// Attribute: its stores may be acknowledged before they are durable. A batch of them is flushed at once, or a crash that
    /// takes them leaves more to do, and loses nothing.
    pub const fn deferred(self) -> Self {
        self.with(DEFERRED)
    }

    /// Attribute: no call of the seam, but a check, a comparison or a step of recovery that a tool can leave
    /// out ([`Pmem::skips`](crate::Pmem::skips)).
    pub const fn step(self) -> Self {
        self.with(STEP)
    }

    /// See [`in_place`](Self::in_place).
    pub const fn is_in_place(self) -> bool {
        self.has(IN_PLACE)
    }

    /// See [`unread`](Self::unread).
    pub const fn is_unread(self) -> bool {
        self.has(UNREAD)
    }

    /// See [`may_be_clean`](Self::may_be_clean).
    pub const fn line_may_be_clean(self) -> bool {
        self.has(MAY_BE_CLEAN)
    }

    /// See [`deferred`](Self::deferred).
    pub const fn is_deferred(self) -> bool {
        self.has(DEFERRED)
    }

    /// See [`step`](Self::step).
    pub const fn is_step(self) -> bool {
        self.has(STEP)
    }

    const fn with(self, attribute: u8) -> Self {
        Self { attributes: self.attributes | attribute, ..self }
    }

    const fn has(self, attribute: u8) -> bool {
        self.attributes & attribute != 0
    }
}

/// Declares the sites of a component and the list `ALL` of them. Behind a name come the attributes of a site,
/// if it has any: methods of [`Site`].
///
/// ```
/// mod sites {
///     chimera_pmem::sites! {
///         /// The record of a put, before its bit.
///         PUT_RECORD = "example.put.record";
///         /// A counter of a record, changed where it is.
///         COUNTER = "example.counter", in_place;
///     }
/// }
/// assert_eq!(sites::ALL.len(), 2);
/// assert_eq!(sites::PUT_RECORD.name(), "example.put.record");
/// assert!(sites::COUNTER.is_in_place() && !sites::PUT_RECORD.is_in_place());
/// ```
#[macro_export]
macro_rules! sites {
    ($($(#[$doc:meta])* $name:ident = $text:literal $(, $attribute:ident)*;)+) => {
        $(
            $(#[$doc])*
            pub const $name: $crate::Site = $crate::Site::new($text)$(.$attribute())*;
        )+
        /// Every site of this component.
        pub const ALL: &[$crate::Site] = &[$($name),+];
    };
}

/// Declares steps that a tool can leave out, and the list `ALL` of them: sites with the attribute
/// [`step`](Site::step).
///
/// ```
/// mod steps {
///     chimera_pmem::steps! {
///         /// The checksum of a record, at recovery.
///         RECORD_CHECK = "example.step.record_check";
///     }
/// }
/// assert!(steps::ALL[0].is_step());
/// ```
#[macro_export]
macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        $crate::sites! { $($(#[$doc])* $name = $text, step;)+ }
    };
}
