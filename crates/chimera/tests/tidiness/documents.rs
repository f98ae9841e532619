//! Pages for strangers: how long they are, where their links lead, and which words nobody uses any more.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::source::{crates, sources};
use crate::{HERE, assert_none};

/// Bytes that a page may have. A page that is not here fails.
const PAGES: [(&str, usize); 19] = [
    ("README.md", 11 << 10),
    ("ARCHITECTURE.md", 13 << 10),
    ("CONTRIBUTING.md", 6 << 10),
    ("CHANGELOG.md", 22 << 10),
    ("SECURITY.md", 4 << 10),
    ("docs/BENCHMARKS.md", 30 << 10),
    ("docs/DEVICE-MODEL.md", 9 << 10),
    ("docs/DURABILITY.md", 41 << 10),
    ("docs/ENGINES.md", 12 << 10),
    ("docs/FORMAT.md", 41 << 10),
    ("docs/GLOSSARY.md", 10 << 10),
    ("docs/METRICS.md", 11 << 10),
    ("docs/OPERATIONS.md", 19 << 10),
    ("docs/PEERS.md", 9 << 10),
    ("docs/PLACEMENT.md", 14 << 10),
    ("docs/PMEM.md", 9 << 10),
    ("docs/PRIMITIVES.md", 15 << 10),
    ("docs/STREAM.md", 5 << 10),
    ("docs/TESTING.md", 15 << 10),
];

/// Most terms of our own.
const OWN_TERMS_MAX: usize = 25;

/// Words that were private to this project, wherever they stand, and names. docs/GLOSSARY.md says what is used instead.
const RETIRED: [&str; 9] = [
    "ballast",
    "brings home",
    "comes home",
    "Sought",
    "TooManyAlike",
    "options_alike",
    "is_backed",
    "fold_one",
    "lend",
];

fn root() -> PathBuf {
    crates().parent().expect("the crates lie in the project").to_owned()
}

/// Pages, by their path from the project's root.
fn pages() -> Vec<(String, String)> {
    let mut pages = Vec::new();
    for directory in ["", "docs", "docs/mutants"] {
        for entry in fs::read_dir(root().join(directory)).expect("a directory of pages") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(root()).expect("inside").display().to_string();
                pages.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    assert!(pages.len() > 12, "only {} pages found", pages.len());
    pages
}

#[test]
fn pages_are_short() {
    let mut wrong = String::new();
    for (name, text) in pages() {
        match PAGES.iter().find(|page| page.0 == name) {
            Some((_, most)) if text.len() <= *most => {}
            Some((_, most)) => {
                let _ = writeln!(wrong, "{name}: {} bytes, {most} at most", text.len());
            }
            None if name.starts_with("docs/mutants/") && text.len() <= 20 << 10 => {}
            None => {
                let _ = writeln!(wrong, "{name} has no size in {HERE}/documents.rs");
            }
        }
    }
    assert_none(&wrong, "pages have sizes");
}

/// The anchor of a heading, as it is shown: lower case, hyphens for spaces, and nothing else but letters and digits.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    text.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| line.starts_with('#')).map(anchor).collect()
}

/// Where the links of a page lead: what stands between `](` and `)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = String::new();
    for (name, text) in pages() {
        let folder = root().join(&name).parent().expect("a folder").to_owned();
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (path, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { root().join(&name) } else { folder.join(path) };
            let is_page = target.extension().is_some_and(|extension| extension == "md");
            let is_there = target.exists()
                && (place.is_empty() || !is_page || {
                    anchors(&fs::read_to_string(&target).expect("text")).contains(place)
                });
            if !is_there {
                let _ = writeln!(wrong, "{name}: {link}");
            }
        }
    }
    assert_none(&wrong, "links lead somewhere");
}

#[test]
fn anchors_are_those_of_headings() {
    assert_eq!(
        anchor("### `pmem-hash`, `dram-hash`, teaching engine"),
        "pmem-hash-dram-hash-teaching-engine"
    );
    assert_eq!(links("[a](b.md#c) and [d](#e)").collect::<Vec<_>>(), ["b.md#c", "#e"]);
}

/// The blocks of a page that begin with such a fence.
fn blocks<'a>(text: &'a str, fence: &str) -> Vec<&'a str> {
    let after = |rest: &'a str| rest.split("\n```").next().unwrap_or_default();
    text.split(&format!("\n{fence}\n")).skip(1).map(after).collect()
}

#[test]
fn rust_of_pages_stands_in_an_example_that_runs() {
    let directory = crates().join("chimera/examples");
    let entries = fs::read_dir(directory).expect("a directory of examples");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(entry.expect("an entry").path()).expect("text")
    };
    let examples: Vec<String> = entries.map(read).collect();
    let text = fs::read_to_string(root().join("docs/OPERATIONS.md")).expect("text");
    let rust = blocks(&text, "```rust");
    assert!(rust.len() > 4, "only {} blocks", rust.len());
    let mut wrong = String::new();
    for block in rust {
        if !examples.iter().any(|example| example.contains(block)) {
            let _ = writeln!(wrong, "docs/OPERATIONS.md: no example has\n{block}");
        }
    }
    assert_none(&wrong, "snippets are compiled and run");
}

/// The names of the variants of an enum in a file of source.
fn variants<'a>(source: &'a str, head: &str) -> Vec<&'a str> {
    let body = source.split(head).nth(1).expect("the enum").split("\n}").next().expect("its end");
    let names = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = names.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    names.filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).next()).collect()
}

#[test]
fn each_error_has_a_row_that_says_what_to_do() {
    let source = fs::read_to_string(crates().join("chimera/src/types/error.rs")).expect("text");
    let names = variants(&source, "pub enum Error {");
    assert!(names.len() > 30, "{names:?}");
    let text = fs::read_to_string(root().join("docs/OPERATIONS.md")).expect("text");
    let told = text.split("## What to do with each error").nth(1).expect("the section");
    let rows = told.lines().filter(|line| line.starts_with("| "));
    let firsts: String = rows.filter_map(|row| row.split('|').nth(1)).collect();
    let mut wrong = String::new();
    for name in names.iter().filter(|name| !firsts.contains(&format!("`{name}`"))) {
        let _ = writeln!(wrong, "docs/OPERATIONS.md: no row for {name}");
    }
    assert_none(&wrong, "each error is explained");
}

/// The rows of the table under a heading of a page, without its head.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let section = text.split(heading).nth(1).expect("the section is there");
    let section = section.split("\n## ").next().expect("its text");
    section.lines().filter(|line| line.starts_with("| ")).skip(2).collect()
}

#[test]
fn the_glossary_has_few_terms_of_our_own_and_all_retired_words() {
    let text = fs::read_to_string(root().join("docs/GLOSSARY.md")).expect("text");
    let own = rows(&text, "## Terms of our own");
    assert!((10..=OWN_TERMS_MAX).contains(&own.len()), "{} terms of our own", own.len());
    assert!(rows(&text, "## Retired words").len() > 20);
}

/// Whether a word, or a name, stands in a text by itself.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[test]
fn retired_words_are_not_used() {
    let mut wrong = String::new();
    let mut look = |name: &Path, text: &str| {
        for (number, line) in text.lines().enumerate() {
            for word in RETIRED.iter().filter(|word| has_word(line, word)) {
                let _ = writeln!(wrong, "{}:{}: {word}", name.display(), number + 1);
            }
        }
    };
    for (name, text) in pages().iter().filter(|page| page.0 != "docs/GLOSSARY.md") {
        look(Path::new(name), text);
    }
    for source in sources().iter().filter(|source| !source.is_in(HERE)) {
        look(&source.path, &source.text);
    }
    assert_none(&wrong, "docs/GLOSSARY.md says which words are used instead");
}
