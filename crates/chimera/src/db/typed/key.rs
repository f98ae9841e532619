//! [`TypedKey`]: keys as bytes that have the order of the keys.

/// What can be a key: it has bytes whose order is its own, so that scans go in the order of the keys.
///
/// Whole numbers have their bytes with the highest first, signed ones with the sign turned around; a tuple those of its parts.
/// Bytes and strings are themselves; as a part of a tuple that is not its last one, a zero is followed by 255, and two zeros end
/// it.
pub trait TypedKey: Sized {
    /// Appends the bytes of a key that nothing follows.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Appends the bytes of a part of a key that others follow: [`decode_part`](Self::decode_part) has to find where they end.
    fn encode_part(&self, bytes: &mut Vec<u8>);

    /// The key that has these bytes, all of them; `None` where there is none.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// The part that these bytes begin with, which is taken off.
    fn decode_part(bytes: &mut &[u8]) -> Option<Self>;
}

/// The first bytes, which are taken off.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

/// A part, if nothing follows.
fn only<K: TypedKey>(mut bytes: &[u8]) -> Option<K> {
    K::decode_part(&mut bytes).filter(|_| bytes.is_empty())
}

macro_rules! numbers {
    ($($number:ty, $turned:expr;)+) => {$(
        impl TypedKey for $number {
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&(*self ^ $turned).to_be_bytes());
            }

            fn encode_part(&self, bytes: &mut Vec<u8>) {
                self.encode(bytes);
            }

            fn decode(bytes: &[u8]) -> Option<Self> {
                only(bytes)
            }

            fn decode_part(bytes: &mut &[u8]) -> Option<Self> {
                let number = take(bytes, size_of::<Self>())?.try_into().ok()?;
                Some(Self::from_be_bytes(number) ^ $turned)
            }
        }
    )+};
}

numbers! {
    u8, 0; u16, 0; u32, 0; u64, 0; u128, 0;
    i8, i8::MIN; i16, i16::MIN; i32, i32::MIN; i64, i64::MIN; i128, i128::MIN;
}

impl<const N: usize> TypedKey for [u8; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn encode_part(&self, bytes: &mut Vec<u8>) {
        self.encode(bytes);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }

    fn decode_part(bytes: &mut &[u8]) -> Option<Self> {
        take(bytes, N)?.try_into().ok()
    }
}

impl TypedKey for Vec<u8> {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }

    fn encode_part(&self, bytes: &mut Vec<u8>) {
        for byte in self {
            bytes.push(*byte);
            if *byte == 0 {
                bytes.push(u8::MAX);
            }
        }
        bytes.extend_from_slice(&[0, 0]);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }

    fn decode_part(bytes: &mut &[u8]) -> Option<Self> {
        let mut part = Self::new();
        loop {
            let byte = take(bytes, 1)?[0];
            if byte > 0 {
                part.push(byte);
                continue;
            }
            match take(bytes, 1)?[0] {
                0 => return Some(part),
                u8::MAX => part.push(0),
                _ => return None,
            }
        }
    }
}

impl TypedKey for String {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.as_bytes());
    }

    fn encode_part(&self, bytes: &mut Vec<u8>) {
        // As that of its bytes, of which none is 255.
        for byte in self.bytes() {
            bytes.push(byte);
            if byte == 0 {
                bytes.push(u8::MAX);
            }
        }
        bytes.extend_from_slice(&[0, 0]);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::from_utf8(bytes.to_vec()).ok()
    }

    fn decode_part(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::decode_part(bytes)?).ok()
    }
}

macro_rules! tuples {
    ($($($part:ident)* | $last:ident;)+) => {$(
        #[expect(non_snake_case, reason = "a part has the name of its type")]
        impl<$($part: TypedKey,)* $last: TypedKey> TypedKey for ($($part,)* $last) {
            fn encode(&self, bytes: &mut Vec<u8>) {
                let ($($part,)* $last) = self;
                $($part.encode_part(bytes);)*
                $last.encode(bytes);
            }

            fn encode_part(&self, bytes: &mut Vec<u8>) {
                let ($($part,)* $last) = self;
                $($part.encode_part(bytes);)*
                $last.encode_part(bytes);
            }

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                $(let $part = TypedKey::decode_part(&mut bytes)?;)*
                Some(($($part,)* TypedKey::decode(bytes)?))
            }

            fn decode_part(bytes: &mut &[u8]) -> Option<Self> {
                $(let $part = TypedKey::decode_part(bytes)?;)*
                Some(($($part,)* TypedKey::decode_part(bytes)?))
            }
        }
    )+};
}

tuples! {
    A | B;
    A B | C;
    A B C | D;
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    fn bytes_of(key: &impl TypedKey) -> Vec<u8> {
        let mut bytes = Vec::new();
        key.encode(&mut bytes);
        bytes
    }

    fn comes_back<K: TypedKey + Debug + PartialEq>(key: &K) -> Result<(), TestCaseError> {
        let decoded = K::decode(&bytes_of(key));
        prop_assert_eq!(decoded.as_ref(), Some(key));
        let mut part = Vec::new();
        key.encode_part(&mut part);
        part.push(9);
        let mut rest = &part[..];
        let decoded = K::decode_part(&mut rest);
        prop_assert_eq!(decoded.as_ref(), Some(key));
        prop_assert_eq!(rest, [9]);
        Ok(())
    }

    fn is_in_order<K: TypedKey + Debug + Ord>(one: &K, other: &K) -> Result<(), TestCaseError> {
        prop_assert_eq!(one.cmp(other), bytes_of(one).cmp(&bytes_of(other)));
        comes_back(one)
    }

    /// Texts of few bytes, so that some begin alike.
    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec(0..3_u8, 0..4).prop_map(|bytes| {
            bytes.into_iter().map(|byte| ['\0', '\u{1}', 'ß'][usize::from(byte)]).collect()
        })
    }

    proptest! {
        #[test]
        fn keys_come_back_and_their_bytes_have_their_order(
            numbers in any::<[(i64, u16, i8, u128); 2]>(),
            texts in [text(), text()],
            parts in any::<[(u8, i16); 2]>(),
            bytes in [proptest::collection::vec(254..=255_u8, 0..3), proptest::collection::vec(0..=1_u8, 0..3)],
        ) {
            is_in_order(&numbers[0], &numbers[1])?;
            is_in_order(&texts[0], &texts[1])?;
            is_in_order(&bytes[0], &bytes[1])?;
            let key = |number: usize| (texts[number].clone(), parts[number].0, texts[1 - number].clone());
            is_in_order(&key(0), &key(1))?;
            let key = |number: usize| ((bytes[number].clone(), parts[number]), [parts[number].0; 2]);
            is_in_order(&key(0), &key(1))?;
        }

        #[test]
        fn foreign_bytes_are_no_key_or_one_that_has_them(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Some(key) = <(String, u16)>::decode(&bytes) {
                prop_assert_eq!(bytes_of(&key), &bytes[..]);
            }
            if let Some(key) = <(Vec<u8>, i8, Vec<u8>)>::decode(&bytes) {
                prop_assert_eq!(bytes_of(&key), &bytes[..]);
            }
            prop_assert_eq!(u64::decode(&bytes).is_some(), bytes.len() == 8);
        }
    }

    #[test]
    fn bytes_of_keys_are_as_documented() {
        assert_eq!(bytes_of(&1_u32), [0, 0, 0, 1]);
        assert_eq!(bytes_of(&-1_i16), [0x7f, 0xff]);
        assert_eq!(bytes_of(&("a\0".to_owned(), 2_u8)), [b'a', 0, 255, 0, 0, 2]);
        assert_eq!(bytes_of(&(2_u8, "a\0".to_owned())), [2, b'a', 0]);
    }
}
