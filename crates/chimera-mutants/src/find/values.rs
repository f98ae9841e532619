//! Values that take the place of a function's result.

use quote::ToTokens as _;
use syn::{GenericArgument, PathArguments, ReturnType, Type};

const SIGNED: [&str; 6] = ["i8", "i16", "i32", "i64", "i128", "isize"];
const UNSIGNED: [&str; 6] = ["u8", "u16", "u32", "u64", "u128", "usize"];

/// Values of the type that a function returns, as source: none where none is known that might compile.
pub(super) fn of_result(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".into()],
        ReturnType::Type(_, of) => of_type(of),
    }
}

fn of_type(of: &Type) -> Vec<String> {
    match of {
        Type::Tuple(tuple) if tuple.elems.is_empty() => vec!["()".into()],
        Type::Tuple(tuple) => tuples(&tuple.elems.iter().map(of_type).collect::<Vec<_>>()),
        Type::Paren(paren) => of_type(&paren.elem),
        Type::Group(group) => of_type(&group.elem),
        Type::Reference(reference) => of_reference(reference),
        Type::Array(array) => {
            let length = array.len.to_token_stream();
            of_type(&array.elem).into_iter().map(|value| format!("[{value}; {length}]")).collect()
        }
        Type::Path(path) => path.path.segments.last().map(of_path).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The first values of all parts, then the second ones.
fn tuples(parts: &[Vec<String>]) -> Vec<String> {
    if parts.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    let part = |parts: &Vec<String>, at: usize| parts[at.min(parts.len() - 1)].clone();
    (0..most)
        .map(|at| {
            let values: Vec<_> = parts.iter().map(|values| part(values, at)).collect();
            format!("({})", values.join(", "))
        })
        .collect()
}

fn of_reference(reference: &syn::TypeReference) -> Vec<String> {
    match &*reference.elem {
        Type::Slice(_) if reference.mutability.is_some() => vec!["&mut []".into()],
        Type::Slice(_) => vec!["&[]".into()],
        Type::Path(path) if path.path.is_ident("str") => vec!["\"\"".into(), "\"mutant\"".into()],
        _ => Vec::new(),
    }
}

fn of_path(segment: &syn::PathSegment) -> Vec<String> {
    let name = segment.ident.to_string();
    let inner = || first_argument(&segment.arguments).map(of_type).unwrap_or_default();
    let wrap = |prefix: &str| -> Vec<String> {
        inner().into_iter().map(|value| format!("{prefix}({value})")).collect()
    };
    let texts = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    match &*name {
        "bool" => texts(&["true", "false"]),
        "f32" | "f64" => texts(&["0.0", "1.0"]),
        "String" => texts(&["String::new()", "String::from(\"mutant\")"]),
        "Ordering" => texts(&["std::cmp::Ordering::Equal"]),
        "Option" => [vec!["None".into()], wrap("Some")].concat(),
        "Result" if matches!(segment.arguments, PathArguments::None) => texts(&["Ok(())"]),
        "Result" => wrap("Ok"),
        "Box" => wrap("Box::new"),
        "Arc" => wrap("std::sync::Arc::new"),
        "Vec" => {
            let of_one = inner().into_iter().map(|value| format!("vec![{value}]"));
            [vec!["Vec::new()".to_owned()], of_one.collect()].concat()
        }
        _ if SIGNED.contains(&&*name) => texts(&["0", "1", "-1"]),
        _ if UNSIGNED.contains(&&*name) => texts(&["0", "1"]),
        _ => texts(&["Default::default()"]),
    }
}

fn first_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of),
        _ => None,
    })
}
