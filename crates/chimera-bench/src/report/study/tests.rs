//! The page, the figures and the tables of a small study.

use chimera_primitives::operation::{Experiment, cells as all_cells};

use super::*;
use crate::results::machine::Machine;
use crate::results::study::{Study, StudyCounters, StudyRow, Timing};

fn study() -> Study {
    let mut rows = Vec::new();
    for (number, cell) in Experiment::ALL.into_iter().flat_map(all_cells).enumerate() {
        let timing = Timing { median_ns: 100.0 + number as f64, spread: 0.1 };
        rows.push(StudyRow {
            experiment: cell.experiment.to_string(),
            contender: cell.contender.to_string(),
            layout: cell.contender.layout().map(|kind| kind.to_string()),
            size: cell.size,
            position: cell.position.name().to_owned(),
            uncached: timing,
            cached: timing,
            counters: StudyCounters { bytes_modified: 32.0, lines_read: 2.0, ..<_>::default() },
        });
    }
    let mut study = Study {
        machine: Machine::here("clwb".to_owned()),
        medium: "anonymous".to_owned(),
        profile: "dram".to_owned(),
        modelled: false,
        seed: 42,
        cache_bytes: 32 << 20,
        array_bytes: 64 << 20,
        exceeds_cache: true,
        load_ns: 1.0,
        repetitions: 5,
        operations: 1000,
        command: "chimera primitives run --all <&>".to_owned(),
        seconds: 1.0,
        rows,
        findings: Vec::new(),
    };
    study.findings = findings(&study);
    study
}

#[test]
fn every_experiment_has_a_figure_and_a_table() {
    let study = study();
    let (page, text) = (page(&study), text(&study));
    for experiment in Experiment::ALL {
        let figure = figure(&study, experiment, true).expect("it was measured");
        assert!(figure.starts_with("<svg") && figure.ends_with("</svg>"), "{experiment}");
        assert!(figure.contains("prefers-color-scheme:dark"));
        assert!(!figure.contains("NaN") && !figure.contains("inf"), "{experiment}");
        assert!(page.contains(&format!("id=\"{experiment}\"")));
        assert!(text.contains(experiment.title()));
    }
    assert!(profile(&study, true).expect("layouts were measured").contains("hashing-counted"));
}

/// One file: nothing is loaded from anywhere, nothing is left unescaped, tags are closed.
#[test]
fn the_page_stands_alone() {
    let page = page(&study());
    for word in ["http://", "https://", "<script", "src=", "<link", "@import", "url("] {
        let outside = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.contains(word), "{word}");
    }
    assert!(page.contains("--all &lt;&amp;&gt;"));
    for tag in ["table", "tr", "td", "th", "div", "figure", "details", "svg", "g", "text", "h2"] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert!(page.contains("color-scheme:light dark"));
}

#[test]
fn what_the_paper_says_is_compared() {
    let found = study().findings;
    assert!(found.len() >= 20, "{}", found.len());
    for source in ["E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10", "A1"] {
        assert!(found.iter().any(|finding| finding.source.starts_with(source)), "{source}");
    }
}

/// Between the bounds, on them, and beyond.
#[test]
fn a_finding_holds_within_the_bounds_that_are_shown() {
    for (ns, expected) in [(399.0, false), (400.0, true), (450.0, true), (501.0, false)] {
        let mut study = study();
        for row in &mut study.rows {
            // Five levels take four more than one does; times are told per level.
            let whole = 1000.0 + f64::from(row.size - 1) * ns;
            if row.experiment == "E2" {
                row.uncached.median_ns = whole / f64::from(row.size);
            }
        }
        let all = findings(&study);
        let level = all.iter().find(|it| it.what == "a level of inner nodes in PMem").unwrap();
        assert!((level.measured - ns).abs() < 1e-6, "{level:?}");
        assert_eq!((level.holds, &*level.published), (expected, "400 to 500 ns"));
        assert_eq!(level.bounds(), "400 to 500 ns");
    }
    let all = findings(&study());
    let erasing = all.iter().find(|it| it.what == "erasing sorted over bitmap").unwrap();
    assert_eq!(erasing.bounds(), "2 times at least");
    assert_eq!(erasing.holds, erasing.measured >= 2.0);
}

#[test]
fn what_was_not_measured_is_left_out() {
    let mut study = study();
    study.rows.retain(|row| row.experiment == "E4");
    assert!(figure(&study, Experiment::E1, true).is_none());
    let page = page(&study);
    assert!(page.contains("id=\"E4\"") && !page.contains("id=\"E1\""));
    assert!(findings(&study).iter().all(|finding| finding.source.starts_with("E4")));
    study.rows.clear();
    assert!(profile(&study, true).is_none());
}
