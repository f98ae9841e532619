//! The commands that documents give are understood, and nothing in them is refused.

use std::path::Path;

use super::options::decided;

const DOCUMENTS: [(&str, usize); 2] = [("README.md", 1), ("docs/BENCHMARKS.md", 24)];
/// What documents write where a user writes something else.
const PLACEHOLDERS: [(&str, &str); 7] = [
    ("P", "/nowhere"),
    ("K", "8"),
    ("V", "8"),
    ("R", "1000"),
    ("R/2", "500"),
    ("$records", "1000"),
    ("hikv-nvm:N", "hikv-nvm:600"),
];

/// All that is in code, and begins with or has `chimera bench` in it.
fn commands(text: &str) -> Vec<String> {
    let spans = text.split('`').skip(1).step_by(2);
    let of_bench = spans.filter_map(|span| Some(span.split_once("chimera bench ")?.1));
    let words = |rest: &str| {
        let rest = rest.split(';').next().unwrap_or_default();
        let word = |word: &str| {
            let known = PLACEHOLDERS.iter().find(|known| known.0 == word);
            known.map_or(word, |known| known.1).to_owned()
        };
        rest.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    };
    of_bench.map(words).filter(|line| !line.contains("...") && !line.contains('|')).collect()
}

#[test]
fn commands_of_the_documents_are_taken_as_they_are() {
    let mut wrong = Vec::new();
    for (document, least) in DOCUMENTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
        // Blocks have their marks on lines of their own.
        let text = std::fs::read_to_string(path).expect("is there").replace("```", "");
        let mut commands = commands(&text);
        // That one has no store, and tests of its own.
        commands.retain(|line| line != "device");
        assert!(commands.len() >= least, "{document}: {commands:?}");
        let refused = |line: &String| Some(format!("{document}: {line}: {}", decided(line).err()?));
        wrong.extend(commands.iter().filter_map(refused));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
