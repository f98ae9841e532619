//! `chimera update-u64`.

use std::ffi::OsString;

use clap::Args;
use serde_json::json;

use crate::arguments::WriteArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::losses;
use crate::store::{self, Sizes};
use crate::text::{JsonRecord, fit};

/// Longest value.
const VALUE_BYTES_MAX: usize = 1 << 30;

const EXAMPLES: &str = "\
Examples:
  chimera update-u64 --create visitors 1     prints `0 -> 1`
  chimera update-u64 visitors -1             numbers wrap around at 0 and at 2^64
  chimera update-u64 account 100 --at 8      the number in bytes 8 to 15 of the value

The number is 8 bytes of the value, little-endian. The change is atomic: after a crash the value
has either the old number or the new one.";

/// Add to a number inside a value, and print it before and after
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpdateU64 {
    /// Key
    key: OsString,
    /// What to add: a whole number, perhaps negative
    #[arg(allow_negative_numbers = true, value_parser = parse_delta)]
    delta: u64,
    /// Where the number begins in the value, in bytes
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    at: usize,
    /// Begin with a value of zeros when there is no such key
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    write: WriteArguments,
}

impl UpdateU64 {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let key = context.forms.key.read_key(&self.key)?;
        let db = store::open_to_write(context, &self.write)?;
        let sizes = Sizes::of(&db);
        let key = fit("key", key, sizes.key)?;
        let mut old = db.fetch_add_u64(&key, self.at, self.delta)?;
        // Nobody else has the store open: no other value can come in between.
        let created = old.is_none() && self.create;
        if created {
            // Where it may have any, the value has what the number needs.
            let value_bytes = sizes.value.map_or(self.at.saturating_add(8), |size| size as usize);
            db.put(&key, &vec![0; value_bytes.min(VALUE_BYTES_MAX)])?;
            old = db.fetch_add_u64(&key, self.at, self.delta)?;
        }
        let losses = db.losses();
        db.close()?;
        let Some(old) = old else {
            return Err(context.key_not_found(&key, losses));
        };
        let new = old.wrapping_add(self.delta);
        if context.json {
            let outcome = json!({
                "at": self.at,
                "old": old,
                "new": new,
                "created": created,
                "losses": losses,
            });
            context.output.json(&JsonRecord::done(context.forms, &key, outcome))?;
        } else {
            context.output.line(format!("{old} -> {new}"))?;
        }
        losses::end(losses)
    }
}

/// A number to add, as what wraps around to the same.
fn parse_delta(text: &str) -> Result<u64, String> {
    let range = || "a whole number from -2^63 to 2^64-1".to_owned();
    let number: i128 = text.parse().map_err(|_| range())?;
    match u64::try_from(number) {
        Ok(delta) => Ok(delta),
        Err(_) => i64::try_from(number).map(|delta| delta as u64).map_err(|_| range()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_may_be_negative() {
        assert_eq!(parse_delta("42"), Ok(42));
        assert_eq!(parse_delta("-1"), Ok(u64::MAX));
        assert_eq!(parse_delta("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_delta("-9223372036854775808"), Ok(1 << 63));
        for wrong in ["", "x", "1.5", "18446744073709551616", "-9223372036854775809"] {
            assert!(parse_delta(wrong).is_err(), "{wrong}");
        }
    }
}
