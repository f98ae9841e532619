//! Just enough of the grammar of Rust: what a file imports, and the paths in its code.

use std::iter::Peekable;
use std::vec::IntoIter;

/// What was read of a file.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) imports: Vec<Import>,
    /// Of two names at least.
    pub(crate) paths: Vec<Vec<String>>,
}

/// One name of a `use` declaration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) path: Vec<String>,
    /// As the file calls it; `*` for all.
    pub(crate) name: String,
    /// Others may take it from here: `pub use`.
    pub(crate) is_passed_on: bool,
}

/// Reads a file, without what is compiled for tests only.
pub(crate) fn read(text: &str) -> Read {
    let mut read = Read::default();
    let mut tokens = tokens(text).into_iter().peekable();
    let mut is_public = false;
    let mut before = String::new();
    while let Some(token) = tokens.next() {
        match token.as_str() {
            "#" => skip_attribute(&mut tokens),
            "pub" => {
                is_public = true;
                if tokens.peek().is_some_and(|next| next == "(") {
                    skip_group(&mut tokens);
                }
                before = token;
                continue;
            }
            "use" => {
                let tree: Vec<_> = tokens.by_ref().take_while(|token| token != ";").collect();
                import(&[], &tree, is_public, &mut read.imports);
            }
            name if is_name(name) && before != "::" && before != "$" => {
                let path = path(token.clone(), &mut tokens);
                if path.len() > 1 {
                    read.paths.push(path);
                }
            }
            _ => {}
        }
        is_public = false;
        before = token;
    }
    read
}

/// The tokens of a file, without attributes and what is compiled for tests only.
pub(crate) fn code(text: &str) -> Vec<String> {
    let mut tokens = tokens(text).into_iter().peekable();
    let mut code = Vec::new();
    while let Some(token) = tokens.next() {
        match token.as_str() {
            "#" => skip_attribute(&mut tokens),
            _ => code.push(token),
        }
    }
    code
}

pub(crate) fn is_name(token: &str) -> bool {
    token.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// The names of a path that begins with `first`.
fn path(first: String, tokens: &mut Peekable<IntoIter<String>>) -> Vec<String> {
    let mut path = vec![first];
    while tokens.next_if(|next| next == "::").is_some() {
        match tokens.next_if(|next| is_name(next)) {
            Some(name) => path.push(name),
            None => break,
        }
    }
    path
}

/// Takes an attribute whose `#` was taken, and what it belongs to if that is for tests only.
fn skip_attribute(tokens: &mut Peekable<IntoIter<String>>) {
    // Of a whole file.
    let _ = tokens.next_if(|next| next == "!");
    if tokens.peek().is_some_and(|next| next == "[") && is_for_tests(&skip_group(tokens)) {
        skip_item(tokens);
    }
}

fn is_for_tests(attribute: &[String]) -> bool {
    let is = |at: usize, name: &str| attribute.get(at).is_some_and(|token| token == name);
    let test = attribute.iter().position(|token| token == "test");
    is(1, "cfg") && test.is_some_and(|at| !(is(at - 1, "(") && is(at - 2, "not")))
}

/// Takes a group with its brackets.
fn skip_group(tokens: &mut Peekable<IntoIter<String>>) -> Vec<String> {
    let mut depth = 0;
    let mut group = Vec::new();
    for token in tokens {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        group.push(token);
        if depth == 0 {
            break;
        }
    }
    group
}

/// Takes an item: up to a semicolon, or a block.
fn skip_item(tokens: &mut Peekable<IntoIter<String>>) {
    while let Some(next) = tokens.peek() {
        match next.as_str() {
            "{" => {
                skip_group(tokens);
                return;
            }
            "(" | "[" => drop(skip_group(tokens)),
            ";" => {
                tokens.next();
                return;
            }
            _ => drop(tokens.next()),
        }
    }
}

/// The names of the tree of a `use` declaration.
fn import(prefix: &[String], tree: &[String], is_passed_on: bool, into: &mut Vec<Import>) {
    let group = tree.iter().position(|token| token == "{");
    let end = group.unwrap_or(tree.len());
    let (names, renamed) = match tree[..end].iter().position(|token| token == "as") {
        Some(at) => (&tree[..at], tree.get(at + 1)),
        None => (&tree[..end], None),
    };
    let mut path = prefix.to_vec();
    path.extend(names.iter().filter(|token| is_name(token)).cloned());
    if let Some(open) = group {
        for part in parts(&tree[open + 1..tree.len() - 1]) {
            import(&path, part, is_passed_on, into);
        }
        return;
    }
    // `use a::{self}` is `use a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let is_all = names.last().is_some_and(|last| last == "*");
    let name = if is_all { Some("*") } else { renamed.or(path.last()).map(String::as_str) };
    let name = name.unwrap_or_default().to_owned();
    into.push(Import { path, name, is_passed_on });
}

/// What stands between the commas of a group.
fn parts(group: &[String]) -> Vec<&[String]> {
    let mut depth = 0;
    let parts = group.split(|token| {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0 && token == ","
    });
    parts.filter(|part| !part.is_empty()).collect()
}

/// Names, `::`, and single signs; without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if first == '"' {
            1 + string(&rest[1..])
        } else if let Some(length) = character(rest) {
            length
        } else if first.is_alphanumeric() || first == '_' {
            let is_inside = |letter: char| letter.is_alphanumeric() || letter == '_';
            let length = rest.find(|letter| !is_inside(letter)).unwrap_or(rest.len());
            tokens.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Length of a string up to its end, without the sign at its start.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !is_escaped => return at + 1,
            '\\' if !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// Length of `r"..."` or `r#"..."#`, where there is one.
fn raw_string(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let signs = inside.len() - inside.trim_start_matches('#').len();
    let inside_text = inside[signs..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(signs));
    let start = text.len() - inside_text.len();
    Some(inside_text.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// Length of a character such as `'a'` or `'\n'`; none where a lifetime begins.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    let length =
        if first == '\\' { 1 + inside[1..].chars().next()?.len_utf8() } else { first.len_utf8() };
    let end = inside.get(length..)?.find('\'')?;
    // `'\u{fc}'` is longer; what is longer without an escape is a lifetime.
    (first == '\\' || end == 0).then_some(1 + length + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        read(text).paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn a_tree_of_imports_is_taken_apart() {
        let read = read("pub(crate) use a::b; use c::{self, d::{E as F, g}, *};");
        let import = |path: &str, name: &str, is_passed_on| Import {
            path: path.split("::").map(str::to_owned).collect(),
            name: name.to_owned(),
            is_passed_on,
        };
        let expected = [
            import("a::b", "b", true),
            import("c", "c", false),
            import("c::d::E", "F", false),
            import("c::d::g", "g", false),
            import("c", "*", false),
        ];
        assert_eq!(read.imports, expected);
    }

    #[test]
    fn paths_are_found_in_code_only() {
        let text = "fn f<'a>(x: &'a super::A) -> Vec<b::C> { d::e::<F>() } // g::h\n\
                    const I: &str = \"j::k\\\" l::m\"; const N: char = '\"'; /* o::p */ q::r!();";
        assert_eq!(paths(text), ["super::A", "b::C", "d::e", "q::r"]);
        assert_eq!(paths("const A: &str = r#\"b::c \" d::e\"#; f::g();"), ["f::g"]);
    }

    #[test]
    fn what_is_compiled_for_tests_only_is_left_out() {
        let text = "#[cfg(test)] mod tests { a::b(); } #[cfg(all(test, not(loom)))] use c::d;\n\
                    #[cfg(not(test))] fn e() { f::g() } #[derive(Debug)] struct H(i::J);";
        let read = read(text);
        assert!(read.imports.is_empty(), "{read:?}");
        assert_eq!(paths(text), ["f::g", "i::J"]);
    }
}
