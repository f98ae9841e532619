//! `chimera update-u64`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use chimera::Db;
use clap::Args;
use serde_json::json;

use crate::arguments::WriteArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::losses;
use crate::store::{self, Sizes};
use crate::text::{JsonRecord, fit};

/// Length of a counter.
const COUNTER_BYTES: usize = 8;
/// Longest value.
const VALUE_BYTES_MAX: usize = 1 << 30;

const EXAMPLES: &str = "\
Examples:
  chimera update-u64 --create visitors 1     prints `0 -> 1`
  chimera update-u64 visitors -1             numbers wrap around at 0 and at 2^64
  chimera update-u64 account 100 --at 8      the number in bytes 8 to 15 of the value

The number is 8 bytes of the value, little-endian. The change is atomic: after a crash the value
has either the old number or the new one.

A counter is a value of exactly 8 bytes. Any other value is refused and stays as it is, unless
--at says where in it the number is, or --force takes its first 8 bytes for one. A value of
8 bytes may be text all the same: nothing tells it from a number.";

/// Add to a number inside a value, and print it before and after
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpdateU64 {
    /// Key
    key: OsString,
    /// What to add: a whole number, perhaps negative
    #[arg(allow_negative_numbers = true, value_parser = parse_delta)]
    delta: u64,
    /// Where the number begins in a value that is no counter, in bytes
    #[arg(long, value_name = "OFFSET")]
    at: Option<usize>,
    /// Take the first 8 bytes of any value for the number
    #[arg(long, conflicts_with = "at")]
    force: bool,
    /// Begin with a value of zeros when there is no such key
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    write: WriteArguments,
}

impl UpdateU64 {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let key = context.forms.key.read_key(self.key.as_bytes())?;
        let db = store::open_to_write(&context.path, &self.write)?;
        let sizes = Sizes::of(&db);
        let key = fit("key", key, sizes.key)?;
        let at = self.at.unwrap_or_default();
        // Nobody else has the store open: no other value can come in between.
        self.refuse_other_values(context, &db, &key)?;
        let mut old = db.fetch_add_u64(&key, at, self.delta)?;
        let created = old.is_none() && self.create;
        if created {
            // Where it may have any, the value has what the number needs.
            let value_bytes = sizes.value.map_or(at.saturating_add(8), |size| size as usize);
            db.put(&key, vec![0; value_bytes.min(VALUE_BYTES_MAX)])?;
            old = db.fetch_add_u64(&key, at, self.delta)?;
        }
        let losses = db.losses();
        db.close()?;
        let Some(old) = old else {
            return Err(context.key_not_found(&key, losses));
        };
        let new = old.wrapping_add(self.delta);
        if context.json {
            let outcome = json!({
                "at": at,
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

    /// Refuses a value that is no counter, where the command line does not say which bytes are the number.
    ///
    /// # Errors
    /// `NotACounter` for a value of another length, and where one of another length would be made.
    fn refuse_other_values(&self, context: &Context, db: &Db, key: &[u8]) -> Result<(), Failure> {
        if self.force || self.at.is_some() {
            return Ok(());
        }
        let to_make = || Sizes::of(db).value.filter(|_| self.create).map(|size| size as usize);
        let bytes = db.get(key)?.map(|value| value.len()).or_else(to_make);
        match bytes {
            Some(bytes) if bytes != COUNTER_BYTES => {
                let key = context.forms.key.show_in_line(key);
                Err(Failure::NotACounter { key, bytes })
            }
            _ => Ok(()),
        }
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
