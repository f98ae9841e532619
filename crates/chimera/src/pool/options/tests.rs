//! Which durability a medium gives.

use super::*;

const GROUP: Durability = Durability::Group { max_delay: Duration::from_millis(7) };

fn effective(durability: Durability, medium: Medium) -> Result<Durability> {
    PoolOptions { durability, ..PoolOptions::default() }.effective_durability(medium)
}

#[test]
fn persistent_memory_is_durable_at_once_whatever_is_asked_for_it() {
    for medium in [Medium::FsDax, Medium::DevDax, Medium::Simulated] {
        for asked in [Durability::Auto, Durability::Immediate, GROUP] {
            assert_eq!(effective(asked, medium).unwrap(), Durability::Immediate, "{medium}");
        }
    }
}

#[test]
fn plain_files_have_what_is_asked_for_and_else_a_window() {
    let usual = Durability::Group { max_delay: Duration::from_millis(50) };
    assert_eq!(effective(Durability::Auto, Medium::File).unwrap(), usual);
    for asked in [Durability::Immediate, GROUP] {
        assert_eq!(effective(asked, Medium::File).unwrap(), asked);
    }
}

#[test]
fn memory_that_a_machine_loses_refuses_what_it_cannot_keep() {
    for medium in [Medium::Tmpfs, Medium::Anonymous] {
        assert_eq!(effective(Durability::Auto, medium).unwrap(), Durability::Process);
        for asked in [Durability::Immediate, GROUP] {
            let error = effective(asked, medium).unwrap_err();
            assert!(matches!(error, Error::InvalidOptions(_)), "{error}");
            assert!(error.to_string().contains("cannot be had"), "{error}");
        }
    }
}

#[test]
fn process_durability_is_everywhere_and_batches_are_nowhere() {
    for medium in [Medium::FsDax, Medium::DevDax, Medium::File, Medium::Tmpfs, Medium::Anonymous] {
        assert_eq!(effective(Durability::Process, medium).unwrap(), Durability::Process);
        assert!(matches!(effective(Durability::Batched, medium), Err(Error::InvalidOptions(_))));
    }
}

#[test]
fn what_no_pool_can_have_is_refused() {
    let usual = PoolOptions::default();
    assert_eq!(usual.populate_ahead_bytes, None);
    let populated = PoolOptions { populate_at_open: true, ..usual.clone() };
    let is_valid = |options: &PoolOptions| match options.validate() {
        Ok(()) => true,
        Err(Error::InvalidOptions(_)) => false,
        Err(other) => panic!("{other}"),
    };
    assert!(is_valid(&usual) && !is_valid(&populated));
    assert!(is_valid(&PoolOptions { capacity_bytes: Some(1), ..populated.clone() }));
    assert!(is_valid(&PoolOptions { anonymous_bytes: Some(1), ..populated }));
    for (bytes, expected) in [
        (16 << 10, true),
        ((16 << 10) - 4096, false),
        ((16 << 10) + 8, false),
        (1 << 20, true),
        (1 << 30, true),
        ((1 << 30) + 4096, false),
    ] {
        let options = PoolOptions { journal_bytes: Some(bytes), ..usual.clone() };
        assert_eq!(is_valid(&options), expected, "{bytes}");
    }
    let after =
        |ms| PoolOptions { checkpoint_interval: Duration::from_millis(ms), ..usual.clone() };
    assert!(is_valid(&after(10)) && !is_valid(&after(9)));
}
