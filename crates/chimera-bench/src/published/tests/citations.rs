//! Sections, figures and tables that the source and the documents cite are in the papers.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All sections, figures and tables of the papers.
const PLACES: &str = include_str!("../../../published/places.tsv");
/// What names a paper, and the name of its file.
const NAMES: [(&str, &str); 8] = [
    ("Viper", "viper"),
    ("PVLDB", "viper"),
    ("HiKV", "hikv"),
    ("ATC", "hikv"),
    ("ChameleonDB", "chameleondb"),
    ("EuroSys", "chameleondb"),
    ("FAST", "another"),
    ("DaMoN", "damon20"),
];

/// A paper, a kind of place and a number.
type Place = (String, String, String);

fn places() -> BTreeSet<Place> {
    let mut lines = PLACES.lines();
    assert_eq!(lines.next(), Some("paper\tkind\tnumber\ttitle"));
    let place = |line: &str| match line.split('\t').collect::<Vec<_>>()[..] {
        [paper, kind, number, _] => (paper.to_owned(), kind.to_owned(), number.to_owned()),
        _ => panic!("not a place: {line}"),
    };
    lines.map(place).collect()
}

fn add_files(directory: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("lists") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_read = path.extension().is_some_and(|it| it == "rs" || it == "md");
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            add_files(&path, all);
        } else if is_read {
            all.push(path);
        }
    }
}

/// What a word that begins a citation cites.
fn kind(word: &str) -> Option<&'static str> {
    Some(match word.trim_start_matches(|letter: char| !letter.is_alphabetic()) {
        "section" | "sections" => "section",
        "Figure" | "Figures" => "figure",
        "Table" | "Tables" => "table",
        _ => return None,
    })
}

/// The number at the begin of a word, without the letter of a part of a figure.
fn number(word: &str) -> Option<&str> {
    let end = word.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let number = word[..end.unwrap_or(word.len())].trim_end_matches('.');
    number.starts_with(|letter: char| letter.is_ascii_digit()).then_some(number)
}

/// The citations of a paragraph: the paper, if one is named before, or right after; the kind; and the number.
fn citations(paragraph: &str) -> Vec<(Option<&'static str>, &'static str, String)> {
    let words: Vec<_> = paragraph.split_whitespace().collect();
    let named = |word: &str| NAMES.iter().find(|(name, _)| word.contains(name)).map(|it| it.1);
    let (mut all, mut paper) = (Vec::new(), None);
    for (at, word) in words.iter().enumerate() {
        paper = named(word).or(paper);
        let Some(kind) = kind(word) else { continue };
        let mut cited = Vec::new();
        for word in &words[at + 1..] {
            if !matches!(*word, "and" | "to") && number(word).is_none() {
                break;
            }
            cited.push(*word);
            if word.ends_with([':', ';', '.']) {
                break;
            }
        }
        // "section 4.5 of ATC'17"
        let after = words[at + 1 + cited.len()..].iter().take(3).find_map(|word| named(word));
        let paper = after.filter(|_| words.get(at + 1 + cited.len()) == Some(&"of")).or(paper);
        all.extend(cited.iter().filter_map(|it| number(it)).map(|it| (paper, kind, it.to_owned())));
    }
    all
}

/// The text of comments and documents, paragraph by paragraph.
fn paragraphs(path: &Path, text: &str) -> Vec<String> {
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    let mut all = vec![String::new()];
    for line in text.lines().map(str::trim) {
        let comment = line.trim_start_matches('/').trim_start_matches('!');
        let is_prose = !is_source || line.starts_with("//");
        if !is_prose || comment.trim().is_empty() || line.starts_with(['#', '|']) {
            all.push(String::new());
        }
        if is_prose {
            let last = all.last_mut().expect("there is one");
            *last += comment;
            last.push(' ');
        }
    }
    all
}

#[test]
fn what_is_cited_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (places, mut files, mut wrong, mut count) = (places(), Vec::new(), Vec::new(), 0);
    add_files(&root.join("crates"), &mut files);
    add_files(&root.join("docs"), &mut files);
    for path in files {
        let name = path.strip_prefix(&root).expect("below the root").display().to_string();
        if name.ends_with("citations.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        let cited = paragraphs(&path, &text);
        for (paper, kind, number) in cited.iter().flat_map(|paragraph| citations(paragraph)) {
            let is_it = |place: &&Place| {
                paper.is_none_or(|paper| paper == place.0)
                    && (kind, &number) == (&place.1, &place.2)
            };
            count += 1;
            if paper != Some("another") && !places.iter().any(|place| is_it(&place)) {
                wrong.push(format!(
                    "{name}: {} has no {kind} {number}",
                    paper.unwrap_or("no paper")
                ));
            }
        }
    }
    assert!(count > 80, "only {count} citations are found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn citations_are_understood() {
    let found = citations(
        "HiKV has it (sections 3.1 and 3.4.1); in Figures 5 to 13, see section 4.5 of PVLDB'21.",
    );
    let expected = [
        (Some("hikv"), "section", "3.1"),
        (Some("hikv"), "section", "3.4.1"),
        (Some("hikv"), "figure", "5"),
        (Some("hikv"), "figure", "13"),
        (Some("viper"), "section", "4.5"),
    ];
    let found: Vec<_> = found.iter().map(|it| (it.0, it.1, &*it.2)).collect();
    assert_eq!(found, expected);
    assert_eq!(citations("Figure 1d of Viper")[0], (Some("viper"), "figure", "1".to_owned()));
}
