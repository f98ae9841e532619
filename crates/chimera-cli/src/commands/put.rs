//! `chimera put`.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use chimera::{Db, Durability, EngineKind, Error};
use clap::Args;
use serde_json::json;

use crate::arguments::WriteArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human;
use crate::losses;
use crate::paths;
use crate::store::{self, Sizes};
use crate::text::{JsonRecord, fit};

/// Most bytes read from standard input: more than any value has, in hexadecimal, too.
const INPUT_BYTES_MAX: u64 = 3 << 30;

/// Sizes of keys and values of a store made with one of them said, in bytes.
const DEFAULT_SIZES: (u32, u32) = (16, 200);

const EXAMPLES: &str = "\
Examples:
  chimera put greeting 'hello world'
  printf '%s' \"$text\" | chimera put note -         every byte of standard input is stored
  chimera put --hex 6b6579 0xc0ffee
  chimera put --path users --key-size 8 --value-size 64 alice 'alice@example.org'
  chimera put --path pages --engine hikv index.html - <index.html

A store takes storage as records come: a new one occupies some 40 KiB, and on a plain
file system 24 KiB for its journal, although its segment file looks as large as --segment-size.";

/// Store a value under a key; creates the store if there is none
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Put {
    /// Key; where keys have a fixed size, shorter ones get zero bytes at their end
    key: OsString,
    /// Value; `-` reads it from standard input
    #[arg(allow_hyphen_values = true)]
    value: OsString,
    #[command(flatten)]
    write: WriteArguments,
    /// Engine, when the store is created: viper, hikv, chameleon [default: viper]
    #[arg(long)]
    engine: Option<EngineKind>,
    /// Bytes of every key, when the store is created [default: any; 16 with --value-size]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=4096))]
    key_size: Option<u32>,
    /// Bytes of every value, when the store is created [default: any; 200 with --key-size]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=524_288))]
    value_size: Option<u32>,
    /// Size of each of the store's segments, when it is created, such as 1GiB [default: 64MiB; on a
    /// device, what fills it]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size)]
    segment_size: Option<u64>,
}

impl Put {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let key = context.forms.key.read_key(self.key.as_bytes())?;
        let value = context.forms.value.read("value", &self.value_bytes()?)?;
        let created = store::is_absent(&context.path)?;
        let db = if created { self.create(context, &key, &value)? } else { self.open(context)? };
        let sizes = Sizes::of(&db);
        let key = fit("key", key, sizes.key)?;
        let value = fit("value", value, sizes.value)?;
        let is_new = db.put(&key, &value)?;
        let durability = db.effective_durability();
        let (medium, losses) = (db.stats().medium, db.losses());
        db.close()?;
        if context.json {
            let outcome = json!({
                "inserted": is_new,
                "created_store": created,
                "medium": medium,
                "durability": durability,
                "losses": losses,
            });
            context.output.json(&JsonRecord::done(context.forms, &key, outcome))?;
            return losses::end(losses);
        }
        if created {
            let text = format!("created store `{}`: {sizes}", context.path.display());
            context.output.line(text)?;
        }
        let done = if is_new { "inserted" } else { "replaced" };
        let detail =
            if context.verbose { survives(durability, &medium.to_string()) } else { String::new() };
        context.output.line(format!("{done}{detail}"))?;
        losses::end(losses)
    }

    fn value_bytes(&self) -> Result<Vec<u8>, Failure> {
        if self.value != paths::STANDARD_STREAM {
            return Ok(self.value.as_bytes().to_vec());
        }
        let mut bytes = Vec::new();
        let failed = |source| Failure::Io { action: "read standard input", source };
        io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > INPUT_BYTES_MAX {
            let most = human::rounded_size(INPUT_BYTES_MAX);
            return Err(Failure::Usage(format!("standard input has more than {most}")));
        }
        Ok(bytes)
    }

    /// Makes a store that holds records such as this one.
    fn create(&self, context: &Context, key: &[u8], value: &[u8]) -> Result<Db, Failure> {
        let mut options = store::options_to_create(&context.path, &self.write);
        if let Some(engine) = self.engine {
            options = options.engine(engine);
        }
        if self.key_size.is_some() || self.value_size.is_some() {
            let key_size = self.key_size.unwrap_or(DEFAULT_SIZES.0);
            let value_size = self.value_size.unwrap_or(DEFAULT_SIZES.1);
            // Before anything is made: the record must fit.
            fit("key", key.to_vec(), Some(key_size))?;
            fit("value", value.to_vec(), Some(value_size))?;
            options = options.fixed_size(key_size, value_size);
        }
        if let Some(bytes) = self.segment_size {
            options = options.segment_bytes(bytes);
        }
        Ok(store::open(&context.path, options)?)
    }

    /// Opens an existing store, which must be as the arguments say.
    fn open(&self, context: &Context) -> Result<Db, Failure> {
        let mut options = store::options_to_write(&self.write);
        if let Some(engine) = self.engine {
            options = options.engine(engine);
        }
        if let Some(bytes) = self.segment_size {
            options = options.segment_bytes(bytes);
        }
        let db = store::open(&context.path, options)?;
        let sizes = Sizes::of(&db);
        expect("a key size of", sizes.key, self.key_size)?;
        expect("a value size of", sizes.value, self.value_size)?;
        Ok(db)
    }
}

fn expect(what: &'static str, found: Option<u32>, wanted: Option<u32>) -> Result<(), Error> {
    match wanted {
        Some(wanted) if Some(wanted) != found => {
            let found = found.map_or_else(|| "any".to_owned(), |found| found.to_string());
            let wanted = wanted.to_string();
            Err(Error::Mismatch { what, found, wanted })
        }
        _ => Ok(()),
    }
}

/// What a write with this durability survives.
fn survives(durability: Durability, medium: &str) -> String {
    let what = match durability {
        Durability::Process => {
            "survives the end of the process, and a power loss now that the store is closed"
        }
        Durability::Batched => "survives the end of the process, now that the store is closed",
        _ => "survives a power loss",
    };
    let what = if medium == "tmpfs" { "survives the end of the process" } else { what };
    format!(" (medium {medium}, durability {durability}: {what})")
}
