//! Mutants that make no difference here, each with the reason. Reviewed by hand.

use crate::simulated::{Mutation, MutationKind};

/// Why a mutant makes no difference here, if it is one of those.
pub(super) fn reason(mutation: Mutation) -> Option<&'static str> {
    match (mutation.kind, mutation.site) {
        (MutationKind::DelayFlush, "pool.used_blocks") => Some(
            "one fence later it is still before the fence that makes the block's first bit durable",
        ),
        _ => None,
    }
}
