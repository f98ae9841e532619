//! Random sequences of operations against a map, over a matrix of configurations.

#[path = "../tools/mod.rs"]
mod tools;

mod operations;

use chimera::baselines::RecordLayout;
use chimera::{Geometry, Options, VerifyReads};
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};

use operations::{Operation, operation, run};
use tools::{SMALL, from_environment, small_with};

/// What differs between stores.
#[derive(Clone, Debug)]
struct Case {
    key_bytes: usize,
    value_bytes: usize,
    options: Options,
    /// Keys whose hashes are all the same, as far as the key's size allows.
    collide: bool,
}

fn case(key_bytes: usize, value_bytes: usize, geometry: Geometry) -> Case {
    let options = small_with(geometry).fixed_size(key_bytes as u32, value_bytes as u32);
    Case { key_bytes, value_bytes, options, collide: false }
}

/// Geometry with room for larger records: pages of `page_bytes`, four to a block, 8 blocks to a
/// segment.
fn pages_of(page_bytes: u32) -> Geometry {
    let block_bytes = u64::from(page_bytes) * 4;
    let segment_bytes = (8 * block_bytes + 4096).next_multiple_of(4096);
    Geometry { page_bytes, pages_per_block: 4, block_shift_bytes: 0, segment_bytes }
}

/// Runs random sequences. Shorter ones that fail as well are searched for.
fn check(case: &Case) {
    let cases = from_environment("CHIMERA_TEST_MODEL_CASES", 16) as u32;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let sequence = vec(operation(), 1..250);
    let outcome = TestRunner::new(config).run(&sequence, |sequence: Vec<Operation>| {
        run(case, &sequence);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{case:?}: {error}");
    }
}

/// Both layouts.
fn check_layouts(case: &Case) {
    for layout in [RecordLayout::Checked, RecordLayout::Published] {
        let options = case.options.clone().viper(|viper| viper.layout(layout));
        check(&Case { options, ..case.clone() });
    }
}

#[test]
fn keys_of_one_byte_without_values() {
    check_layouts(&case(1, 0, SMALL));
}

#[test]
fn odd_sizes() {
    check_layouts(&case(3, 5, SMALL));
}

#[test]
fn two_words() {
    check_layouts(&case(8, 8, SMALL));
}

#[test]
fn the_papers_records_in_the_papers_geometry() {
    let geometry = Geometry { segment_bytes: 128 << 10, ..Geometry::default() };
    check_layouts(&case(16, 200, geometry));
}

#[test]
fn large_keys_and_values() {
    check_layouts(&case(100, 900, pages_of(4096)));
}

#[test]
fn values_larger_than_a_usual_page() {
    check_layouts(&case(8, 5000, pages_of(8192)));
    let options =
        Options::new().fixed_size(16, 9001).segment_bytes(1 << 20).populate_ahead_bytes(0);
    check(&Case { key_bytes: 16, value_bytes: 9001, options, collide: false });
}

#[test]
fn one_record_to_a_page_and_one_page_to_a_block() {
    let geometry = Geometry { pages_per_block: 1, ..SMALL };
    check_layouts(&case(8, 200, geometry));
}

#[test]
fn eight_pages_to_a_block() {
    check_layouts(&case(8, 40, Geometry { pages_per_block: 8, ..SMALL }));
}

#[test]
fn unaligned_blocks() {
    for block_shift_bytes in [64, 128, 192] {
        check(&case(16, 24, Geometry { block_shift_bytes, ..SMALL }));
    }
    let geometry =
        Geometry { block_shift_bytes: 2048, segment_bytes: 128 << 10, ..Geometry::default() };
    check_layouts(&case(16, 200, geometry));
}

#[test]
fn more_than_one_word_of_bits_to_a_page() {
    let geometry = Geometry { page_bytes: 4096, segment_bytes: 64 << 10, ..SMALL };
    check_layouts(&case(8, 8, geometry));
}

#[test]
fn the_smallest_index_segments() {
    let case = case(8, 8, SMALL);
    let options = case.options.clone().viper(|viper| viper.index_segment_slots(8));
    check_layouts(&Case { options, ..case });
}

#[test]
fn keys_of_one_hash() {
    for slots in [8, 64] {
        let case = case(32, 24, SMALL);
        let options = case.options.clone().viper(|viper| viper.index_segment_slots(slots));
        check_layouts(&Case { options, collide: true, ..case });
    }
}

#[test]
fn no_verification_and_no_flushes() {
    let case = case(8, 24, SMALL);
    let options =
        case.options.clone().verify_reads(VerifyReads::Never).verify_at_open(false).flush(false);
    check(&Case { options, ..case });
}
