//! Mutants that make no difference, each with the reason. Reviewed by hand.

use crate::simulated::{Mutation, MutationKind};

/// Why a mutant makes no difference, if it is one of those.
pub(super) fn reason(mutation: Mutation) -> Option<&'static str> {
    let is = |kind, site: &str| mutation.kind == kind && mutation.site == site;
    let is_any = |site: &str| mutation.site == site;
    if is_any("viper.index.word") {
        return Some(
            "the index in persistent memory means nothing after a crash; it is flushed to show what that costs",
        );
    }
    if is(MutationKind::Skip, "viper.step.clear_owned") {
        return Some(
            "the flag tells people who look at a file, not recovery, that a session filled the block",
        );
    }
    None
}
