//! Which code a build of the tests does not have, or has for the tests only.

use syn::{Attribute, Meta, Token, punctuated::Punctuated};

/// Whether an item is for tests, or for models of concurrent code only.
pub(super) fn is_gated(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|predicate| !holds(&predicate))
        }
        _ => false,
    })
}

/// Whether a predicate holds where `test` and `loom` do not and all else does.
fn holds(predicate: &Meta) -> bool {
    let Meta::List(list) = predicate else {
        return !["test", "loom"].iter().any(|name| predicate.path().is_ident(name));
    };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let mut parts = parts.iter().flatten();
    match &list.path {
        path if path.is_ident("not") => !parts.any(holds),
        path if path.is_ident("any") => parts.any(holds),
        _ => parts.all(holds),
    }
}
