//! [`KeyChange`] and [`TellChange`]: how an add-on is told of changes of the index.

/// How the index has changed for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// The key is new.
    Inserted,
    /// The key has another record.
    Replaced,
    /// The key is gone.
    Removed,
}

/// Who is told of each change of the index. Called under the key's lock, so changes of a key come in their order, and
/// before the write is acknowledged. Of a new key before anybody can find it, of a removed key when nobody can any
/// more: whoever has seen a key comes after its change.
pub trait TellChange: Send + Sync {
    /// `key` has changed in the index. Must not use the store.
    fn changed(&self, key: &[u8], change: KeyChange);
}
