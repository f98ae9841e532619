//! The files are sound, and the documents say what they say.

mod citations;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::*;

/// What documents say of published values: the document, the first cell of the row of a table (nothing, of a part of a
/// sentence), and the text, with `{paper:id}` for values.
const MENTIONS: &str = include_str!("../../published/mentions.tsv");
const BENCHMARKS: &str = "docs/BENCHMARKS.md";

struct Mention {
    document: &'static str,
    row: &'static str,
    text: String,
}

fn mentions() -> Vec<Mention> {
    let mut lines = MENTIONS.lines();
    assert_eq!(lines.next(), Some("document\trow\ttext"));
    let parse = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [document, row, text] => Mention { document, row, text: filled(text) },
        _ => panic!("not a mention: {line}"),
    };
    lines.map(parse).collect()
}

/// A text with its values.
fn filled(text: &str) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (value, rest) = part.split_once('}').unwrap_or_else(|| panic!("no end: {text}"));
        let (name, id) = value.split_once(':').unwrap_or_else(|| panic!("no paper: {text}"));
        filled += paper(name).get(id).text;
        filled += rest;
    }
    filled
}

fn read(document: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(document)).unwrap_or_else(|error| panic!("{document}: {error}"))
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split(" | ").map(str::trim).collect()
}

/// The first cells of all rows of tables with a column `published`, and what stands in that column.
fn published_cells(text: &str) -> Vec<(&str, &str)> {
    let (mut found, mut column) = (Vec::new(), None);
    for line in text.lines() {
        if !line.starts_with('|') {
            column = None;
            continue;
        }
        let cells = cells(line);
        match column {
            None => column = Some(cells.iter().position(|cell| *cell == "published")),
            Some(Some(_)) if cells[0].starts_with("---") => {}
            Some(Some(published)) => found.push((cells[0], cells[published])),
            Some(None) => {}
        }
    }
    found
}

/// Sentences outside of tables and code.
fn sentences(text: &str) -> Vec<String> {
    let mut is_code = false;
    let is_prose = |line: &&str| {
        is_code ^= line.starts_with("```");
        !is_code && !line.starts_with(['|', '#']) && !line.starts_with("    ")
    };
    let lines: Vec<_> = text.lines().filter(is_prose).map(str::trim).collect();
    let prose = lines.join(" ");
    prose.split(". ").flat_map(|part| part.split("  ")).map(str::to_owned).collect()
}

/// Whether a sentence speaks of a number that somebody has published.
fn has_published_number(sentence: &str) -> bool {
    let outside = sentence.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let is_word = |letter: char| !letter.is_alphanumeric();
    let words: Vec<_> = outside.split(is_word).filter(|word| !word.is_empty()).collect();
    let is_number = |pair: &[&str]| {
        let is_place = matches!(pair[0], "Figure" | "Table" | "section" | "Figures" | "Tables");
        !is_place && pair[1].starts_with(|letter: char| letter.is_ascii_digit())
    };
    let speaks = words.iter().any(|word| matches!(*word, "paper" | "published"));
    speaks && words.windows(2).any(is_number)
}

#[test]
fn every_value_has_its_words() {
    for (name, _) in FILES {
        let all = paper(name).all();
        let ids: BTreeSet<_> = all.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), all.len(), "{name}: an id is there twice");
        for row in all {
            let parts = row.id.split('.').filter(|part| !part.is_empty()).count();
            assert!(parts >= 2, "{name}: {row:?}");
            assert!(!row.what.is_empty() && !row.quote.is_empty(), "{name}: {row:?}");
            let is_said = match row.text {
                "0" => row.quote.contains("no impact") || row.quote.contains("unchanged"),
                "4" if row.quote.contains("nearly four") => true,
                text => row.quote.contains(text.trim_start_matches('-')),
            };
            assert!(is_said || row.what.starts_with("computed: "), "{name}: {row:?}");
        }
    }
}

#[test]
fn ids_and_places_agree() {
    for row in FILES.iter().flat_map(|(name, _)| paper(name).all()) {
        let place = row.figure.to_lowercase().replace(' ', "");
        let is_numbered = ["figure", "table", "section"].iter().any(|kind| place.starts_with(kind));
        // What a section says of a figure is that figure's.
        let is_alike = row.id.starts_with(&format!("{place}.")) || place.starts_with("section");
        assert!(is_alike || !is_numbered, "{row:?}");
    }
}

#[test]
fn what_is_computed_follows_from_what_is_there() {
    let (viper, hikv, chameleon) = (paper("viper"), paper("hikv"), paper("chameleondb"));
    let of = |paper: &Paper, over: &str, under: &str| paper.value(over) / paper.value(under);
    let gib = f64::from(1 << 30);
    let keys = viper.value("section5.1.records_millions") * 1e6;
    for (found, computed) in [
        (viper.get("figure9.space_ratio"), of(viper, "figure9.pmem_gb", "figure9.raw_gb")),
        (viper.get("figure9.dram_bytes_per_key"), viper.value("figure9.dram_gb") * gib / keys),
        (viper.get("figure11.pmem_of_hybrid"), 1.0 / 3.0),
        (viper.get("figure11.hybrid_of_dram"), 2.0 / 3.0),
        (viper.get("figure11.dram_over_hybrid"), 3.0 / 2.0),
        (
            viper.get("section5.3.9.recovery_1_mrecords"),
            of(viper, "section5.3.9.records_millions", "section5.3.9.recovery_1_s"),
        ),
        (
            viper.get("section5.3.9.recovery_2_mrecords"),
            of(viper, "section5.3.9.records_millions", "section5.3.9.recovery_2_s"),
        ),
        (
            hikv.get("figure13.dram_bytes_per_key"),
            hikv.value("figure13.dram_gb") * 1e3 / hikv.value("section4.8.keys_millions"),
        ),
        (
            hikv.get("section4.8.recovery_1_mkeys"),
            of(hikv, "section4.8.keys_millions", "section4.8.recovery_1_s"),
        ),
        (chameleon.get("figure1.write_64"), 1.0),
        (chameleon.get("figure1.write_128"), 2.0),
        (chameleon.get("figure1.write_256"), 4.0),
        (chameleon.get("table1.keys_per_shard"), 1e9 / chameleon.value("table1.shards")),
        (
            chameleon.get("figure16.threshold_over_rest"),
            of(chameleon, "figure16.threshold_ns", "figure16.rest_p99_ns"),
        ),
        (
            chameleon.get("table4.nf_over_f"),
            of(chameleon, "table4.nf_put_mops", "table4.f_put_mops"),
        ),
    ] {
        assert!(found.what.starts_with("computed: "), "{found:?}");
        assert!((found.value / computed - 1.0).abs() < 0.02, "{found:?} is {computed}");
    }
    let computed = |name: &&str| {
        paper(name).all().iter().filter(|row| row.what.starts_with("computed: ")).count()
    };
    assert_eq!(FILES.iter().map(|(name, _)| computed(name)).sum::<usize>(), 15, "one is not here");
}

#[test]
fn tables_of_the_documents_have_what_was_published() {
    let (text, all) = (read(BENCHMARKS), mentions());
    let found = published_cells(&text);
    assert!(found.len() > 30, "the tables are not understood");
    for (row, cell) in &found {
        let expected = all.iter().find(|it| it.document == BENCHMARKS && it.row == *row);
        let expected = expected.unwrap_or_else(|| panic!("{row}: published, and not mentioned"));
        assert_eq!(*cell, expected.text, "{row}");
    }
    for mention in all.iter().filter(|mention| !mention.row.is_empty()) {
        let rows = found.iter().filter(|(row, _)| *row == mention.row).count();
        assert_eq!((mention.document, rows), (BENCHMARKS, 1), "{}", mention.row);
    }
}

#[test]
fn sentences_of_the_documents_have_what_was_published() {
    let all: Vec<_> = mentions().into_iter().filter(|mention| mention.row.is_empty()).collect();
    let sentences = sentences(&read(BENCHMARKS));
    assert!(sentences.len() > 100, "the document is not understood");
    for sentence in sentences.iter().filter(|sentence| has_published_number(sentence)) {
        let is_known = all.iter().any(|mention| sentence.contains(&mention.text));
        assert!(is_known, "published, and not mentioned: {sentence}");
    }
    for mention in &all {
        let is_said = sentences.iter().any(|sentence| sentence.contains(&mention.text));
        assert!(mention.document == BENCHMARKS && is_said, "nobody says: {}", mention.text);
    }
}
