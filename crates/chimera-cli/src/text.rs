//! Keys and values between the command line and a store of fixed sizes.
//!
//! As text, a key or value may be shorter than the store's size: zero bytes are added at its end, and
//! left out when it is shown. In hexadecimal everything is shown as it is.

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;

/// How keys and values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    Text,
    Hex,
}

/// How keys are written, and how values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms {
    pub(crate) key: Form,
    pub(crate) value: Form,
}

impl Forms {
    pub(crate) fn new(hex_key: bool, hex_value: bool) -> Self {
        let form = |is_hex| if is_hex { Form::Hex } else { Form::Text };
        Self { key: form(hex_key), value: form(hex_value) }
    }
}

impl Form {
    /// The bytes that `argument` stands for.
    ///
    /// # Errors
    /// `Usage` when it is no hexadecimal number of whole bytes.
    pub(crate) fn read(self, what: &str, argument: &[u8]) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Text => Ok(argument.to_vec()),
            Self::Hex => decode_hex(argument).ok_or_else(|| {
                let shown = printable(argument);
                let rule = "it needs an even number of the digits 0-9 and a-f";
                Failure::Usage(format!("the {what} `{shown}` is not hexadecimal: {rule}"))
            }),
        }
    }

    /// The bytes of a key, which has at least one.
    ///
    /// # Errors
    /// As [`read`](Self::read), and for an empty key.
    pub(crate) fn read_key(self, argument: &[u8]) -> Result<Vec<u8>, Failure> {
        let key = self.read("key", argument)?;
        if key.is_empty() {
            return Err(Failure::Usage("a key has at least one byte".to_owned()));
        }
        Ok(key)
    }

    /// `bytes` for output: text without the zeros at its end, or hexadecimal.
    pub(crate) fn show(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Text => trimmed(bytes).to_vec(),
            Self::Hex => encode_hex(bytes).into_bytes(),
        }
    }

    /// `bytes` for one line of output, control characters escaped.
    pub(crate) fn show_in_line(self, bytes: &[u8]) -> String {
        match self {
            Self::Text => printable(trimmed(bytes)),
            Self::Hex => encode_hex(bytes),
        }
    }
}

/// A key, and perhaps its value, in JSON. Bytes that are not UTF-8 come in hexadecimal, and
/// `encoding` says so of both. Where the value is not written as the key is, `value_encoding` says how.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct JsonRecord {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    encoding: Form,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_encoding: Option<Form>,
}

impl JsonRecord {
    pub(crate) fn new(forms: Forms, key: &[u8], value: Option<&[u8]>) -> Self {
        let is_text = |bytes: &[u8]| std::str::from_utf8(trimmed(bytes)).is_ok();
        let or_hex = |form, is_text| if is_text { form } else { Form::Hex };
        let of_key = or_hex(forms.key, is_text(key));
        let of_value = or_hex(forms.value, value.is_none_or(is_text));
        let are_alike = forms.key == forms.value;
        let of_both = if of_key == of_value { of_key } else { Form::Hex };
        let (of_key, of_value) = if are_alike { (of_both, of_both) } else { (of_key, of_value) };
        let show = |form: Form, bytes| String::from_utf8_lossy(&form.show(bytes)).into_owned();
        Self {
            key: show(of_key, key),
            value: value.map(|value| show(of_value, value)),
            encoding: of_key,
            value_encoding: value.map(|_| of_value).filter(|form| *form != of_key),
        }
    }

    /// The key with what was done to it, for programs.
    pub(crate) fn done(forms: Forms, key: &[u8], outcome: Value) -> impl Serialize {
        Done { record: Self::new(forms, key, None), outcome }
    }
}

#[derive(Serialize)]
struct Done {
    #[serde(flatten)]
    record: JsonRecord,
    #[serde(flatten)]
    outcome: Value,
}

/// `bytes` with zeros up to `size` bytes; as they are where any number will do.
///
/// # Errors
/// `TooLong` when there are more.
pub(crate) fn fit(
    what: &'static str,
    mut bytes: Vec<u8>,
    size: Option<u32>,
) -> Result<Vec<u8>, Failure> {
    let Some(size) = size else { return Ok(bytes) };
    if bytes.len() > size as usize {
        return Err(Failure::TooLong { what, found: bytes.len(), size });
    }
    bytes.resize(size as usize, 0);
    Ok(bytes)
}

/// `bytes` without the zeros at the end.
pub(crate) fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// `bytes` as text; control characters and what is not UTF-8 as `\x00`.
pub(crate) fn printable(bytes: &[u8]) -> String {
    escaped(bytes, char::is_control)
}

/// As [`printable`], in several lines where `bytes` has line breaks; tabs stay, too.
pub(crate) fn for_terminal(bytes: &[u8]) -> String {
    escaped(bytes, |character| character.is_control() && !matches!(character, '\n' | '\t'))
}

fn escaped(bytes: &[u8], is_escaped: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_escaped(character) {
                let mut buffer = [0; 4];
                escape(character.encode_utf8(&mut buffer).as_bytes(), &mut text);
            } else {
                text.push(character);
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        text.push_str("\\x");
        push_hex(*byte, text);
    }
}

fn push_hex(byte: u8, text: &mut String) {
    for digit in [byte >> 4, byte & 15] {
        text.extend(char::from_digit(u32::from(digit), 16));
    }
}

/// The bytes as pairs of hexadecimal digits.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        push_hex(*byte, &mut text);
    }
    text
}

/// The bytes of a hexadecimal number; `0x` before it and white space in it do not matter.
fn decode_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.iter().copied().filter(|c| !c.is_ascii_whitespace()).collect();
    let digits = digits.strip_prefix(b"0x").unwrap_or(&digits);
    let value = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some((value(*high)? << 4 | value(*low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_comes_back_as_it_was() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode_hex(encode_hex(&bytes).as_bytes()), Some(bytes));
        assert_eq!(decode_hex(b"0xAb cD\n"), Some(vec![0xab, 0xcd]));
        for wrong in ["a", "0xa", "zz", "a b c"] {
            assert_eq!(decode_hex(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn zeros_are_added_and_left_out() {
        let padded = fit("key", b"ab".to_vec(), Some(4)).unwrap();
        assert_eq!(padded, b"ab\0\0");
        assert_eq!(Form::Text.show(&padded), b"ab");
        assert_eq!(Form::Hex.show(&padded), b"61620000");
        assert_eq!(trimmed(b"\0a\0\0"), b"\0a");
        assert!(trimmed(&[0; 8]).is_empty());
        assert!(fit("key", b"abcde".to_vec(), Some(4)).is_err());
    }

    #[test]
    fn what_would_break_a_line_is_escaped() {
        assert_eq!(printable(b"a\nb\xffc\\"), "a\\x0ab\\xffc\\");
        assert_eq!(for_terminal(b"a\nb\tc\x1b[2J\r\x9b"), "a\nb\tc\\x1b[2J\\x0d\\x9b");
        assert_eq!(for_terminal("\u{9b}".as_bytes()), "\\xc2\\x9b");
        assert_eq!(printable("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
    }

    #[test]
    fn json_falls_back_to_hexadecimal() {
        let forms = Forms::new(false, false);
        let text = JsonRecord::new(forms, b"k\0", Some(b"v\0"));
        assert_eq!((text.key.as_str(), text.value.as_deref()), ("k", Some("v")));
        assert_eq!(text.encoding, Form::Text);
        let hex = JsonRecord::new(forms, b"k\0", Some(b"\xff\0"));
        assert_eq!((hex.key.as_str(), hex.value.as_deref()), ("6b00", Some("ff00")));
        assert_eq!(hex.encoding, Form::Hex);
        assert_eq!(JsonRecord::new(forms, b"k\0", None).encoding, Form::Text);
    }

    #[test]
    fn json_says_how_a_value_is_written_that_differs_from_its_key() {
        let record = JsonRecord::new(Forms::new(true, false), b"k", Some(b"v"));
        assert_eq!((record.key.as_str(), record.value.as_deref()), ("6b", Some("v")));
        assert_eq!((record.encoding, record.value_encoding), (Form::Hex, Some(Form::Text)));
        let record = JsonRecord::new(Forms::new(false, true), b"k", Some(b"v"));
        assert_eq!((record.key.as_str(), record.value.as_deref()), ("k", Some("76")));
        let record = JsonRecord::new(Forms::new(false, true), b"\xff", Some(b"v"));
        assert_eq!((record.encoding, record.value_encoding), (Form::Hex, None));
        assert_eq!(JsonRecord::new(Forms::new(true, false), b"k", None).value_encoding, None);
    }
}
