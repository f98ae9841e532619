//! Which code a build of the tests does not have, or has for the tests only.

use quote::ToTokens as _;
use syn::Attribute;

/// Whether an item is for tests, or for models of concurrent code only.
pub(super) fn is_gated(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let tokens = attribute.meta.to_token_stream().to_string();
        let tokens: String = tokens.split_whitespace().collect();
        let is_negated = tokens.contains("not(loom)") || tokens.contains("not(test)");
        tokens == "test" || tokens.starts_with("cfg(") && !is_negated && names_gate(&tokens)
    })
}

fn names_gate(tokens: &str) -> bool {
    tokens.split(|byte: char| !byte.is_alphanumeric()).any(|word| word == "test" || word == "loom")
}
