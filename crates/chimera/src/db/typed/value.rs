//! [`TypedValue`]: values as bytes.

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What can be a value.
///
/// Whole numbers have their bytes with the lowest first, so that those of 8 bytes are
/// [counters](crate::Session::fetch_add_u64). [`Plain`] is for types of plain data, and `Encoded` with the feature `postcard` for
/// everything that serde knows.
pub trait TypedValue: Sized {
    /// Appends the bytes of the value.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// The value that has these bytes; `None` where there is none.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)+) => {$(
        impl TypedValue for $number {
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn decode(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )+};
}

numbers! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

impl TypedValue for () {
    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl<const N: usize> TypedValue for [u8; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

impl TypedValue for Vec<u8> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl TypedValue for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::from_utf8(bytes.to_vec()).ok()
    }
}

/// Plain data as a value: its bytes as they are in memory. See [`TypedDb`](crate::TypedDb) for which types can be that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plain<T>(pub T);

impl<T: FromBytes + IntoBytes + Immutable> TypedValue for Plain<T> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.0.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        T::read_from_bytes(bytes).ok().map(Self)
    }
}

/// A value of any type that serde knows, encoded by postcard.
#[cfg(feature = "postcard")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encoded<T>(pub T);

#[cfg(feature = "postcard")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> TypedValue for Encoded<T> {
    /// # Panics
    /// When `T` says that it cannot be serialised, or does not know its length.
    fn encode(&self, bytes: &mut Vec<u8>) {
        let encoded = postcard::to_allocvec(&self.0);
        bytes.extend_from_slice(&encoded.expect("a type that can be serialised"));
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
        rest.is_empty().then_some(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    fn comes_back<V: TypedValue + Debug + PartialEq>(value: &V, expected: &[u8]) {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(bytes, expected);
        assert_eq!(V::decode(&bytes).as_ref(), Some(value));
    }

    #[test]
    fn values_come_back() {
        comes_back(&0x0102_u16, &[2, 1]);
        comes_back(&-1_i64, &[255; 8]);
        comes_back(&1.5_f32, &1.5_f32.to_le_bytes());
        comes_back(&(), &[]);
        comes_back(&[1, 2], &[1, 2]);
        comes_back(&vec![1, 2], &[1, 2]);
        comes_back(&"ß".to_owned(), "ß".as_bytes());
        comes_back(&Plain([1_u16, 2]), &[1, 0, 2, 0]);
        assert_eq!(u64::decode(&[1; 7]), None);
        assert_eq!(<()>::decode(&[1]), None);
        assert_eq!(String::decode(&[255]), None);
        assert_eq!(<Plain<u32>>::decode(&[1; 5]), None);
    }

    #[cfg(feature = "postcard")]
    #[test]
    fn what_serde_knows_is_a_value() {
        let value = Encoded((7_u8, Some("seven".to_owned()), vec![-1_i32]));
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        assert_eq!(Encoded::decode(&bytes), Some(value));
        bytes.push(0);
        assert_eq!(
            Encoded::<(u8, Option<String>, Vec<i32>)>::decode(&bytes),
            None,
            "one byte more"
        );
        assert_eq!(Encoded::<String>::decode(&[9, b'x']), None);
    }
}
