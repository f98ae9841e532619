//! What the paper says of directions and factors, and what came out.

use crate::published::paper;
use crate::results::statistics::ratio;
use crate::results::study::{Finding, Study, StudyRow};

const ANYWHERE: &str = "";

/// Of a range without an end.
const ANY: f64 = f64::INFINITY;

/// A factor or a difference, what the paper says of it, and the range that counts as the same. Where the paper has a range it
/// is that one; where it has a number, or words alone, the range is ours, and is shown.
struct Check<'a> {
    source: &'a str,
    what: &'a str,
    published: &'a str,
    unit: &'a str,
    range: (f64, f64),
}

/// How many times as long one takes as another.
fn factor<'a>(source: &'a str, what: &'a str, published: &'a str, range: (f64, f64)) -> Check<'a> {
    Check { source, what, published, unit: "times", range }
}

/// A value of the paper.
fn value(id: &str) -> f64 {
    paper("damon20").value(id)
}

/// A range of the paper, from its least and its most value, and as text.
fn range_of(min: &str, max: &str) -> ((f64, f64), String) {
    let (min, max) = (paper("damon20").get(min), paper("damon20").get(max));
    ((min.value, max.value), format!("{} to {} {}", min.text, max.text, max.unit))
}

/// Compares everything that can be compared, of experiments that were measured.
pub(crate) fn findings(study: &Study) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut note = |check: Check<'_>, measured: Option<f64>| {
        if let Some(measured) = measured.filter(|measured| measured.is_finite()) {
            all.push(Finding {
                source: check.source.to_owned(),
                what: check.what.to_owned(),
                published: check.published.to_owned(),
                measured,
                unit: check.unit.to_owned(),
                least: check.range.0,
                most: Some(check.range.1).filter(|most| most.is_finite()),
                holds: (check.range.0..=check.range.1).contains(&measured),
            });
        }
    };
    reads(study, &mut note);
    inserts(study, &mut note);
    runs(study, &mut note);
    erases(study, &mut note);
    all
}

fn time(row: Option<&StudyRow>) -> Option<f64> {
    row.map(|row| row.uncached.median_ns)
}

/// How many times as long one contender takes as another.
fn times(
    study: &Study,
    experiment: &str,
    (one, other): (&str, &str),
    size: u32,
    position: &str,
) -> Option<f64> {
    let one = time(study.row(experiment, one, size, position))?;
    let other = time(study.row(experiment, other, size, position))?;
    Some(ratio(one, other))
}

fn reads(study: &Study, note: &mut dyn FnMut(Check<'_>, Option<f64>)) {
    for (what, place, min, max) in [
        (
            "a level of inner nodes in DRAM",
            "DRAM",
            "section5.2.level_dram_min_ns",
            "section5.2.level_dram_max_ns",
        ),
        (
            "a level of inner nodes in PMem",
            "PMem",
            "section5.2.level_pmem_min_ns",
            "section5.2.level_pmem_max_ns",
        ),
    ] {
        let (range, published) = range_of(min, max);
        let contender = format!("inner nodes in {place}");
        // Times are per level, with the leaf on top: the difference of all levels is the cost of those added.
        let whole = |levels: u32| {
            time(study.row("E2", &contender, levels, ANYWHERE)).map(|ns| ns * f64::from(levels))
        };
        let per_level = whole(5).zip(whole(1)).map(|(five, one)| (five - one) / 4.0);
        note(Check { source: "E2", what, published: &published, unit: "ns", range }, per_level);
    }
    let over = |contender: &str| {
        times(study, "E3", (contender, "unsorted"), 4096, ANYWHERE)
            .map(|times| (times - 1.0) * 100.0)
    };
    for (what, contender, id, range) in [
        (
            "iterating by a bitmap over by a count",
            "bitmap",
            "section5.2.bitmap_percent",
            (0.0, 20.0),
        ),
        (
            "iterating by slots over by a count",
            "indirection, by slots",
            "section5.2.indirection_percent",
            (5.0, 60.0),
        ),
    ] {
        let published = format!("+{} %", value(id));
        let check = Check { source: "E3, 4 KiB", what, published: &published, unit: "%", range };
        note(check, over(contender));
    }
    let more = |what, published, range| Check {
        source: "E1, 1 KiB, last key",
        what,
        published,
        unit: "times",
        range,
    };
    note(
        more("linear search over probing hashes", "hashing is usually the best", (1.0, ANY)),
        times(study, "E1", ("unsorted", "hashing"), 1024, "last"),
    );
    note(
        more("binary search by slots over directly", "a little slower", (1.0, 3.0)),
        times(study, "E1", ("indirection, binary", "sorted, binary"), 1024, "last"),
    );
}

fn inserts(study: &Study, note: &mut dyn FnMut(Check<'_>, Option<f64>)) {
    note(
        factor(
            "E4, 4 KiB, first key",
            "inserting sorted over unsorted",
            "significantly worse",
            (2.0, ANY),
        ),
        times(study, "E4", ("sorted", "unsorted"), 4096, "first"),
    );
    note(
        factor(
            "E4, 4 KiB, first key",
            "inserting with hashes over unsorted",
            "about equally well",
            (0.7, 1.6),
        ),
        times(study, "E4", ("hashing", "unsorted"), 4096, "first"),
    );
    for size in [256, 4096] {
        let alone = time(study.row("E5", "sorted", size, ANYWHERE));
        let whole = time(study.row("E5", "sorted, node by itself", size, ANYWHERE));
        let share = alone.zip(whole).map(|(alone, whole)| (1.0 - ratio(alone, whole)) * 100.0);
        let source = format!("E5, {size} B");
        let what = "allocation of a split, node by itself";
        let (range, published) =
            range_of("section5.3.allocation_min_percent", "section5.3.allocation_max_percent");
        note(Check { source: &source, what, published: &published, unit: "%", range }, share);
    }
}

fn runs(study: &Study, note: &mut dyn FnMut(Check<'_>, Option<f64>)) {
    let moved = |kind: &str| time(study.row("E6", &format!("sorted C0, {kind}"), 4096, ANYWHERE));
    let over = |kind| moved(kind).zip(moved("no-fa")).map(|(one, other)| ratio(one, other));
    note(
        factor(
            "E6, 4 KiB",
            "only the pointer in a transaction over no FA",
            "almost the same",
            (0.8, 2.0),
        ),
        over("individual"),
    );
    note(
        factor("E6, 4 KiB", "all in a transaction over no FA", "much higher", (1.5, ANY)),
        over("transactional"),
    );
    let merged = |way: &str, keys: &str, kind: &str| {
        time(study.row("E7", &format!("{way}, direct, {keys}, {kind}"), 4096, ANYWHERE))
    };
    let duplicates = "100 % duplicates";
    note(
        factor("E7, 4 KiB", "2-way over K-way, duplicates, no FA", "K-way is faster", (1.0, ANY)),
        merged("2-way", duplicates, "no-fa")
            .zip(merged("K-way", duplicates, "no-fa"))
            .map(|(two, many)| ratio(two, many)),
    );
    note(
        factor(
            "E7, 4 KiB",
            "K-way over 2-way, duplicates, transactional",
            "2-way is faster",
            (1.0, ANY),
        ),
        merged("K-way", duplicates, "transactional")
            .zip(merged("2-way", duplicates, "transactional"))
            .map(|(many, two)| ratio(many, two)),
    );
}

fn erases(study: &Study, note: &mut dyn FnMut(Check<'_>, Option<f64>)) {
    note(
        factor(
            "E8, 4 KiB, first key",
            "erasing sorted over bitmap",
            "way too many writes",
            (2.0, ANY),
        ),
        times(study, "E8", ("sorted", "bitmap"), 4096, "first"),
    );
    note(
        factor(
            "E8, 4 KiB, first key",
            "erasing unsorted over bitmap",
            "the bitmap is best",
            (1.0, ANY),
        ),
        times(study, "E8", ("unsorted", "bitmap"), 4096, "first"),
    );
    // A quarter more or less.
    let nearly = |id| {
        let times = value(id);
        (format!("nearly {times}"), (times * 0.75, times * 1.25))
    };
    let (published, range) = nearly("section5.4.balance_times");
    for position in ["to smaller keys", "to larger keys"] {
        let source = format!("E9, 4 KiB, {position}");
        note(
            factor(&source, "balancing with hashes over sorted", &published, range),
            times(study, "E9", ("hashing", "sorted"), 4096, position),
        );
    }
    let (published, range) = nearly("section5.4.merge_times");
    note(
        factor("E10, 4 KiB", "merging with hashes over a count", &published, range),
        times(study, "E10", ("hashing", "unsorted"), 4096, ANYWHERE),
    );
    let about_us = value("section5.4.deallocation_us");
    note(
        Check {
            source: "E10, deallocation",
            what: "deallocating a node by itself",
            published: &format!("about {about_us} us"),
            unit: "ns",
            range: (about_us * 500.0, about_us * 1500.0),
        },
        time(study.row("A1", "deallocating by itself", 1024, ANYWHERE)),
    );
    note(
        factor(
            "A1, 1 KiB",
            "allocating by itself over of a group",
            "use group allocations",
            (1.0, ANY),
        ),
        times(study, "A1", ("allocating by itself", "allocating of a group"), 1024, ANYWHERE),
    );
}
