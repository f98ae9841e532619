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
