use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::exercise::contents_of;
use super::image::{BASES, Image, key_of, value_of};
use super::run;

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/open");
    let entries = std::fs::read_dir(&directory).expect("the corpus");
    let mut all: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("a case");
            (path, bytes)
        })
        .collect();
    all.sort_unstable();
    all
}

/// Every case that the fuzzer has ever found worth keeping, without the fuzzer.
#[test]
fn the_corpus_does_no_harm() {
    let corpus = corpus();
    assert!(corpus.len() > 50, "only {} cases", corpus.len());
    for (path, bytes) in corpus {
        // For whoever has to find out about a panic.
        println!("{}", path.display());
        run(&bytes);
    }
}

/// Images that nothing was done to are stores in order: the document is right, and the fuzzer begins
/// behind the checks.
#[test]
fn an_untouched_image_is_a_store() {
    for (number, base) in (0..).zip(&BASES) {
        let expected: BTreeMap<_, _> = (0..base.records)
            .map(|number| (number as u8, 1 + number))
            .map(|(number, version)| {
                (key_of(&base.shape, number), value_of(&base.shape, number, version))
            })
            .collect();
        assert_eq!(contents_of(&Image::new(base)), expected, "{base:?}");
        // Any way of opening it, and some puts.
        for setting in 0..=u8::MAX {
            run(&[setting, number]);
            run(&[setting, number, 0, 128, 3, 7, 130, 4, 129, 200, 9]);
        }
    }
}

#[test]
fn bases_are_different() {
    let shapes: BTreeSet<_> = BASES.iter().map(|base| format!("{base:?}")).collect();
    assert_eq!(shapes.len(), BASES.len());
}
