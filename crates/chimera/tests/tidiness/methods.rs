//! Just enough of the grammar of Rust: which methods a file defines, of which types, and which it calls on what.
//!
//! A receiver is told by its last name: `self`, a field, a parameter or a variable, or a method whose result is called
//! on. What its type is follows from a name's declarations anywhere in the folder.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{code, is_name};

/// What a file has of methods.
#[derive(Debug, Default)]
pub(crate) struct Methods {
    /// Types that it defines.
    pub(crate) types: BTreeSet<String>,
    /// Of each type that it implements something of.
    pub(crate) defined: BTreeMap<String, Vec<String>>,
    pub(crate) called: BTreeSet<Call>,
    /// Names of fields and parameters, and of methods, with the types that they are declared to have.
    pub(crate) named: BTreeSet<(String, String)>,
}

/// A call of a method.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) on: Receiver,
    pub(crate) method: String,
}

/// What a method is called on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Receiver {
    /// `self`, of this type.
    This(String),
    /// Something of this name, or what a method of this name returns.
    Named(String),
}

/// Reads a file.
pub(crate) fn methods(text: &str) -> Methods {
    let tokens = code(text);
    let mut read = Methods::default();
    let mut implemented: Option<(String, usize)> = None;
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                implemented = implemented.filter(|(_, outside)| *outside < depth);
            }
            "struct" | "enum" | "type" if depth == 0 => {
                read.types.extend(tokens.get(at + 1).filter(|name| is_name(name)).cloned());
            }
            "impl" if is_item(&tokens[..at]) => {
                implemented = type_of(&tokens[at + 1..]).map(|name| (name, depth));
            }
            "fn" => {
                let Some(name) = tokens.get(at + 1).filter(|name| is_name(name)) else { continue };
                if let Some((of, outside)) = &implemented
                    && depth == outside + 1
                {
                    read.defined.entry(of.clone()).or_default().push(name.clone());
                }
                read.named.extend(returned(&tokens[at + 2..]).map(|kind| (name.clone(), kind)));
            }
            ":" => {
                if let (Some(name), Some(kind)) =
                    (at.checked_sub(1).map(|at| &tokens[at]), referred(&tokens[at + 1..]))
                {
                    read.named.insert((name.clone(), kind));
                }
            }
            "." => {
                let this = implemented.as_ref().map(|(of, _)| of.as_str());
                read.called.extend(call(&tokens, at, this));
            }
            _ => {}
        }
    }
    read
}

/// Whether an item may begin behind these tokens.
fn is_item(before: &[String]) -> bool {
    before.last().is_none_or(|last| ["}", ";", "{", "unsafe"].contains(&last.as_str()))
}

/// The name of the type that the header of an `impl` names, which follows.
fn type_of(header: &[String]) -> Option<String> {
    let end = header.iter().position(|token| token == "{")?;
    let mut names = Vec::new();
    let mut inside = 0;
    for (at, token) in header[..end].iter().enumerate() {
        match token.as_str() {
            "<" => inside += 1,
            ">" if at.checked_sub(1).is_none_or(|before| header[before] != "-") => inside -= 1,
            "where" if inside == 0 => break,
            "for" if inside == 0 => names.clear(),
            name if inside == 0 && is_name(name) => names.push(name),
            _ => {}
        }
    }
    names.last().map(|name| (*name).to_owned())
}

/// The type that is written here, or that a reference leads to which is written here.
fn referred(tokens: &[String]) -> Option<String> {
    let mut rest = tokens.iter().map(String::as_str).peekable();
    rest.next_if_eq(&"&");
    if rest.next_if_eq(&"'").is_some() {
        rest.next();
    }
    rest.next_if_eq(&"mut");
    let name = rest.next().filter(|name| is_name(name))?;
    Some(name.to_owned())
}

/// The type that a function returns whose generics and parameters begin here.
fn returned(tokens: &[String]) -> Option<String> {
    let open = tokens.iter().position(|token| token == "(")?;
    let mut depth = 0;
    let close = tokens[open..].iter().position(|token| {
        match token.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let behind = &tokens[open + close + 1..];
    match behind {
        [minus, greater, kind @ ..] if minus == "-" && greater == ">" => referred(kind),
        _ => None,
    }
}

/// The call of a method whose dot is at `at`.
fn call(tokens: &[String], at: usize, this: Option<&str>) -> Option<Call> {
    let method = tokens.get(at + 1).filter(|name| is_name(name))?;
    let is_called = matches!(tokens.get(at + 2).map(String::as_str), Some("(" | "::"));
    if !is_called {
        return None;
    }
    let on = match (tokens[..at].last()?.as_str(), this) {
        ("self", Some(this)) => Receiver::This(this.to_owned()),
        (")", _) => Receiver::Named(before_group(&tokens[..at])?),
        (name, _) if is_name(name) => Receiver::Named(name.to_owned()),
        _ => return None,
    };
    Some(Call { on, method: method.clone() })
}

/// The name before the group of parentheses that ends here.
fn before_group(tokens: &[String]) -> Option<String> {
    let mut depth = 0;
    let open = tokens.iter().rposition(|token| {
        match token.as_str() {
            ")" => depth += 1,
            "(" => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    tokens[..open].last().filter(|name| is_name(name)).cloned()
}

#[test]
fn methods_and_calls_are_read() {
    let text = "\
struct Part<T> { own: Other, list: Vec<u8> }
impl<'a, F: Fn() -> u8> fmt::Display for Part<F> where F: 'a { fn fmt(&self) { self.own.f(1).g() } }
impl Part<u8> {
    pub fn new(other: &'a mut Other, f: impl Fn()) -> &Third<u8> {
        fn inner() {}
        other.list::<u8>(self.own(), 2);
        self.field.len
    }
}
#[cfg(test)] impl Part<u16> { fn tested() {} }
";
    let read = methods(text);
    assert_eq!(read.types, BTreeSet::from(["Part".to_owned()]));
    assert_eq!(read.defined["Part"], ["fmt", "new"]);
    let on = |on: &str, method: &str| {
        let on = match on {
            "self" => Receiver::This("Part".to_owned()),
            name => Receiver::Named(name.to_owned()),
        };
        Call { on, method: method.to_owned() }
    };
    let called = [on("self", "own"), on("own", "f"), on("f", "g"), on("other", "list")];
    assert_eq!(read.called, BTreeSet::from(called));
    for (name, kind) in [("own", "Other"), ("other", "Other"), ("new", "Third")] {
        assert!(read.named.contains(&(name.to_owned(), kind.to_owned())), "{:?}", read.named);
    }
}
