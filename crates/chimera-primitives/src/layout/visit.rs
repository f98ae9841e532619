//! [`LayoutVisitor`]: the way from the name of a layout to its code.

use super::{
    BitmapOnly, Hashing, HashingCounted, Indirection, Layout, LayoutKind, Sorted, Unsorted,
};

/// Something to be done with a layout that is named when the program runs.
pub trait LayoutVisitor {
    /// What comes of it.
    type Output;
    /// Does it.
    fn visit<L: Layout>(self) -> Self::Output;
}

impl LayoutKind {
    /// Calls `visitor` with this layout.
    pub fn visit<V: LayoutVisitor>(self, visitor: V) -> V::Output {
        match self {
            Self::Sorted => visitor.visit::<Sorted>(),
            Self::Unsorted => visitor.visit::<Unsorted>(),
            Self::Indirection => visitor.visit::<Indirection>(),
            Self::Hashing => visitor.visit::<Hashing>(),
            Self::Bitmap => visitor.visit::<BitmapOnly>(),
            Self::HashingCounted => visitor.visit::<HashingCounted>(),
        }
    }
}
