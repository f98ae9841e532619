//! `chimera check`.
//!
//! A sound store opens for reading and every checksum in it is right. A store that does not open
//! because it is damaged is opened once more with salvage, still for reading, to say what is left.

use std::fs;
use std::path::{Path, PathBuf};

use chimera::{CheckReport, Damage, Db, Error, Options};
use clap::Args;
use serde::Serialize;

use crate::commands::Context;
use crate::failure::Failure;
use crate::human::count;
use crate::paths;
use crate::progress::Bar;
use crate::store;

const EXAMPLES: &str = "\
Examples:
  chimera check
  chimera check --json --path users || echo damaged

Changes nothing. Exit code 0: sound. 1: damage found. 3: there is no store, it is in use, or a file
of it is missing.";

/// Bytes before the first segment: the file `superblock`.
const SUPERBLOCK_BYTES: u64 = 8192;

/// Verify every checksum, and that index and records agree
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {}

/// What was found.
#[derive(Default, Serialize)]
struct Report {
    #[serde(flatten, serialize_with = "paths::fields")]
    path: PathBuf,
    sound: bool,
    /// Why the store does not open.
    refusal: Option<&'static str>,
    /// Whether it could be read, with salvage where needed.
    readable: bool,
    blocks: u64,
    records: u64,
    index_entries: u64,
    words_unchecked: u64,
    damages: u64,
    first_damage: Option<Spot>,
}

/// Where something is wrong.
#[derive(Clone, Serialize)]
struct Spot {
    what: String,
    /// Offset in the pool.
    at: u64,
    /// The same, as a file of the store and an offset in it.
    file: Option<String>,
    file_offset: Option<u64>,
}

impl Check {
    pub(crate) fn run(context: &mut Context) -> Result<(), Failure> {
        let report = examine(&context.path)?;
        if context.json {
            context.output.json(&report)?;
        } else {
            for line in lines(&report) {
                context.output.line(line)?;
            }
        }
        if report.sound { Ok(()) } else { Err(Failure::Damaged) }
    }
}

/// Opens the store and verifies it.
fn examine(path: &Path) -> Result<Report, Failure> {
    // Values are verified once, below.
    let options = Options::new().read_only(true).verify_at_open(false);
    let mut report = Report { path: path.to_owned(), ..Report::default() };
    let db = match store::open(path, options.clone()) {
        Ok(db) => Some(db),
        Err(Error::Corrupted { what, at }) => {
            report.refusal = Some("it is damaged");
            report.damages = 1;
            report.first_damage = Some(spot(path, &Damage { at, what }));
            store::open(path, options.salvage(true)).ok()
        }
        Err(Error::PowerLost { .. }) => {
            report.refusal = Some("the machine went down while it was open");
            store::open(path, options.salvage(true)).ok()
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(db) = db {
        report.readable = true;
        report.add(&check(&db));
    }
    report.sound = report.refusal.is_none() && report.damages == 0;
    Ok(report)
}

fn check(db: &Db) -> CheckReport {
    let bar = Bar::new("checking", "blocks");
    db.check(bar.as_ref().map(Bar::callback).as_ref())
}

impl Report {
    fn add(&mut self, found: &CheckReport) {
        self.blocks = found.blocks;
        self.records = found.records;
        self.index_entries = found.index_entries;
        self.words_unchecked = found.words_unchecked;
        self.damages = self.damages.max(found.damages);
        if let Some(damage) = &found.first_damage
            && self.first_damage.as_ref().is_none_or(|first| damage.at < first.at)
        {
            self.first_damage = Some(spot(&self.path, damage));
        }
    }
}

fn lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(refusal) = &report.refusal {
        lines.push(format!("the store does not open: {refusal}"));
    }
    if report.readable {
        lines.extend(common_lines(report));
        lines.extend(viper_lines(report));
    }
    lines.push(format!("damages            {}", count(report.damages)));
    if let Some(first) = &report.first_damage {
        lines.push(format!("first damage       {}", first.what));
        let place = match (&first.file, first.file_offset) {
            (Some(file), Some(offset)) => format!(", which is byte {offset} of the file `{file}`"),
            _ => String::new(),
        };
        lines.push(format!("                   at byte {} of the pool{place}", first.at));
    }
    lines.push(verdict(report));
    lines
}

/// What was verified, whatever the engine.
fn common_lines(report: &Report) -> Vec<String> {
    vec![
        format!("blocks             {}", count(report.blocks)),
        format!("records            {}", count(report.records)),
        format!("index entries      {}", count(report.index_entries)),
    ]
}

/// What Viper could not verify.
fn viper_lines(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("words unchecked    {}", count(report.words_unchecked))];
    if report.words_unchecked > 0 {
        let why = "8 bytes each, updated in place; the rest of their records was verified";
        lines.push(format!("                   ({why})"));
    }
    lines
}

/// How it stands, and what to do.
fn verdict(report: &Report) -> String {
    let records = count(report.records);
    if report.sound {
        return "sound".to_owned();
    }
    if !report.readable {
        return "nothing can be read, not even with salvage: restore a copy".to_owned();
    }
    if report.damages == 0 {
        return format!(
            "the records are sound, but the last writes before the power loss may be missing: \
             restore a copy, or accept its {records} records by one write with --salvage"
        );
    }
    format!(
        "damaged: restore a copy, or read the {records} sound records that are left, for example \
         with `chimera list-keys --values --hex --salvage`"
    )
}

/// Where a damage is in the store's files.
fn spot(path: &Path, damage: &Damage) -> Spot {
    let place = place_in_files(damage.at, segment_bytes(path));
    Spot {
        what: damage.what.clone(),
        at: damage.at,
        file: place.as_ref().map(|(file, _)| file.clone()),
        file_offset: place.map(|(_, offset)| offset),
    }
}

/// Length of the store's segments, which all have the same.
fn segment_bytes(path: &Path) -> Option<u64> {
    fs::metadata(path.join("segment-000000")).ok().map(|metadata| metadata.len())
}

/// The file, and the offset in it, of byte `at` of the pool (docs/FORMAT.md).
fn place_in_files(at: u64, segment_bytes: Option<u64>) -> Option<(String, u64)> {
    let Some(inside) = at.checked_sub(SUPERBLOCK_BYTES) else {
        return Some(("superblock".to_owned(), at));
    };
    let segment_bytes = segment_bytes.filter(|&bytes| bytes > 0)?;
    Some((format!("segment-{:06}", inside / segment_bytes), inside % segment_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damage_is_found_in_its_file() {
        let place = |at| place_in_files(at, Some(1 << 20)).map(|(file, at)| format!("{file}:{at}"));
        assert_eq!(place(1024).as_deref(), Some("superblock:1024"));
        assert_eq!(place(8192).as_deref(), Some("segment-000000:0"));
        assert_eq!(place(8192 + (3 << 20) + 5).as_deref(), Some("segment-000003:5"));
        assert_eq!(place_in_files(8192, None), None);
    }
}
