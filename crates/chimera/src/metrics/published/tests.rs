use super::*;

const SOUND: &str = "\
# TYPE a counter
# HELP a Things.
a_total{x=\"1\",y=\"2\"} 7
a_total{x=\"2\",y=\"2\"} 8
# TYPE t_seconds histogram
# UNIT t_seconds seconds
# HELP t_seconds Times.
t_seconds_bucket{le=\"0.5\"} 1
t_seconds_bucket{le=\"2\"} 3
t_seconds_bucket{le=\"+Inf\"} 4
t_seconds_count 4
t_seconds_sum 9.5
# EOF
";

#[test]
fn a_sound_text_is_read() {
    let metrics = Published::parse(SOUND).unwrap();
    assert_eq!(metrics.value("a_total", &[("y", "2"), ("x", "2")]), Some(8.0));
    assert_eq!(metrics.value("a_total", &[]), None);
    assert_eq!(metrics.label("a_total", "y"), Some("2"));
    assert_eq!(metrics.samples().count(), 7);
    let buckets = metrics.buckets("t_seconds", &[]);
    assert_eq!(buckets.count().to_string(), "4");
    assert_eq!(buckets.quantile(0.25), Some(0.5));
    assert_eq!(buckets.quantile(0.5), Some(1.25));
    assert_eq!(buckets.quantile(1.0), Some(2.0), "the highest finite bound");
    assert_eq!(buckets.since(&buckets).quantile(0.5), None);
    assert_eq!(buckets.since(&Buckets::default()), buckets);
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let cases = [
        ("# EOF\n", "", "the mark of the end is missing"),
        ("# EOF\n", "# EOF\nb 1\n", "something follows the end"),
        ("# EOF\n", "# EOF", "it does not end"),
        ("# EOF\n", "# TYPE a gauge\n# EOF\n", "the family is there twice"),
        ("# EOF\n", "a_total 1\n# EOF\n", "the sample is of another family"),
        ("x=\"2\"", "x=\"1\"", "the sample is there twice"),
        ("y=\"2\"} 7", "x=\"2\"} 7", "a label is there twice"),
        ("a_total{x=\"1\"", "a{x=\"1\"", "the sample's name does not fit its family's type"),
        ("UNIT t_seconds seconds", "UNIT t_seconds bytes", "the name does not end in the unit"),
        ("\"2\"} 3", "\"2\"} 0", "buckets are not cumulative"),
        ("_count 4", "_count 5", "the last bucket of a histogram does not have all"),
        ("{le=\"+Inf\"} 4", "{le=\"4\"} 4", "the last bucket of a histogram does not have all"),
        ("} 7", "} seven", "the value is no number"),
        ("} 7", "}7", "the value is no number"),
        ("counter", "thing", "the type is none"),
        ("# HELP a Things.\n", "# HELP b Things.\n", "it is not about the family begun"),
        ("# HELP a", "# HELPS a", "the word is none"),
        ("x=\"1\"", "x=\"\\1\"", "a letter is escaped that need not be"),
    ];
    for (from, to, what) in cases {
        assert!(SOUND.contains(from), "{from}");
        let error = Published::parse(&SOUND.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.what, what, "{from} -> {to}: {error}");
    }
    assert!(Published::parse("").is_err());
}
