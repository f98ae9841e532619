mod argued;
mod coverage;
mod fixture;

use crate::find;
use crate::splice::{Placed, Spliced};

/// A text with all its mutants, in the last of their forms or in the first.
fn spliced(text: &str, is_last: bool) -> String {
    let found = find::find(text).expect("Rust");
    let mut first = 1;
    let mut placed = Vec::new();
    for (id, site) in found.sites.iter().enumerate() {
        let form = if is_last { site.forms.len() - 1 } else { 0 };
        placed.push(Placed { site, form, first, id });
        first += site.mutants.len() as u32;
    }
    let new = Spliced::new(text, &placed).text;
    assert!(syn::parse_file(&new).is_ok(), "{new}");
    assert_eq!(new.lines().count(), text.lines().count(), "lines stay what they are");
    new
}

/// A function without a result that has this for its body, with all mutants; `m` is the run-time module.
fn body(text: &str) -> String {
    let new = spliced(&format!("fn f() {{ {text} }}"), false).replace("crate::mutant::", "m::");
    let start = "fn f() { if m::is(1) { return (); } ";
    new.strip_prefix(start).and_then(|rest| rest.strip_suffix(" }")).expect(&new).to_owned()
}

/// What the mutants of a text are called.
fn names(text: &str) -> Vec<String> {
    let found = find::find(text).expect("Rust");
    let mutants = found.sites.into_iter().flat_map(|site| site.mutants);
    mutants.map(|it| format!("{}:{} {}", it.line, it.column, it.what)).collect()
}

#[test]
fn results_are_returned_at_once() {
    let values = |output: &str| -> Vec<String> {
        let names = names(&format!("fn f() -> {output} {{ g!() }}"));
        names.iter().map(|name| name.replace("1:4 return ", "").replace(" in f", "")).collect()
    };
    assert_eq!(values("bool"), ["true", "false"]);
    assert_eq!(values("u64"), ["0", "1"]);
    assert_eq!(values("i8"), ["0", "1", "-1"]);
    assert_eq!(values("Option<u8>"), ["None", "Some(0)", "Some(1)"]);
    assert_eq!(values("io::Result<()>"), ["Ok(())"]);
    assert_eq!(
        values("Result<Vec<bool>, E>"),
        ["Ok(Vec::new())", "Ok(vec![true])", "Ok(vec![false])"]
    );
    assert_eq!(values("(u8, bool)"), ["(0, true)", "(1, false)"]);
    assert_eq!(values("[u8; 4]"), ["[0; 4]", "[1; 4]"]);
    assert_eq!(values("&str"), ["\"\"", "\"mutant\""]);
    assert_eq!(values("Other"), ["Default::default()"]);
    assert!(values("impl Iterator<Item = u8>").is_empty());
    assert!(values("!").is_empty());
}

#[test]
fn a_result_that_is_there_already_is_no_mutant() {
    assert_eq!(names("fn f() -> bool { true }"), ["1:4 return false in f"]);
    assert!(names("fn f() {}").is_empty());
    assert_eq!(names("impl S { fn f(&self) -> R<()> { Ok(()) } }").len(), 1);
}

#[test]
fn operators() {
    assert_eq!(body("a == b;"), "m::flip(2, a == b);");
    assert_eq!(body("a < b;"), "m::less(2, &(a ), &( b));");
    assert_eq!(body("a + b * c;"), "m::add(2, a , m::mul(4, b , c));");
    assert_eq!(body("a + b + c;"), "m::add(2, m::add(4, a , b) , c);");
    assert_eq!(body("a << 2 | b;"), "m::or(2, m::shl(4, a , 2) , b);");
    assert_eq!(
        body("a && b || c;"),
        "m::flip(2, m::flip(2, m::flip(3, m::flip(3, a) && m::flip(3, b))) || m::flip(2, c));"
    );
    assert_eq!(body("!!a;"), "m::not(2, m::not(3, a));");
    assert_eq!(body("x = -a;"), "x = m::neg(2, a);");
    assert_eq!(body("a += b;"), "a = m::add(2, a, b);");
    assert_eq!(body("*at(i) |= b;"), "m::or_assign(2, &mut (*at(i) ), b);");
}

#[test]
fn statements_and_conditions() {
    assert_eq!(body("g(); h!();"), "if !m::is(2) { g(); } h!();");
    assert_eq!(body("a.g()?; a"), "if !m::is(2) { a.g()?; } a");
    assert_eq!(body("let _ = g(); a"), "if !m::is(2) { let _ = g(); } a");
    assert_eq!(body("a; g()"), "a; if !m::is(2) { g() }");
    assert_eq!(body("fence(SeqCst);"), "fence(SeqCst);");
    assert_eq!(
        body("if a {} else if b {}"),
        "if m::condition(2, a) {} else if m::condition(4, b) {}"
    );
    assert_eq!(body("while a {}"), "while m::never(2, a) {}");
    assert_eq!(body("if let A = a && b == c {}"), "if let A = a && m::flip(2, b == c) {}");
    assert_eq!(body("if cfg!(test) {}"), "if cfg!(test) {}");
}

#[test]
fn arms() {
    assert_eq!(
        body("match a { 1 | 2 => b, 3 if c => d, _ => e, }"),
        "match a { 1 | 2 if !m::is(2) => b, 3 if m::condition(3, c) => d, _ => e, }"
    );
    assert_eq!(body("match a { A => b, B => c }"), "match a { A => b, B => c }");
}

#[test]
fn what_is_not_mutated() {
    for text in [
        "const fn f() -> u8 { 1 + 1 }",
        "const A: u8 = 1 + 1;",
        "enum E { A = 1 + 1 }",
        "#[cfg(test)] mod tests { fn f() -> bool { a == b } }",
        "#[cfg(loom)] fn f() -> bool { a == b }",
        "#[cfg(all(test, not(loom)))] mod tests { fn f() -> bool { a == b } }",
        "#[test] fn f() { g(); }",
        "impl fmt::Debug for S { fn fmt(&self) -> R { a == b } }",
        "macro_rules! m { () => { a == b } }",
    ] {
        assert!(names(text).is_empty(), "{text}: {:?}", names(text));
    }
    assert!(!names("#[cfg(not(loom))] fn f() -> bool { a == b }").is_empty());
    assert_eq!(body("let a = [0; 1 + 1];"), "let a = [0; 1 + 1];");
    assert_eq!(body("assert!(a == b);"), "assert!(a == b);");
}

#[test]
fn later_forms_parse() {
    let text = "fn f() { if a + b < c { x += !y; } }";
    let new = spliced(text, true);
    assert!(
        new.contains("less_two(") && new.contains("add_two(") && new.contains("add_assign("),
        "{new}"
    );
}

#[test]
fn places_of_the_new_text_are_found_in_the_original() {
    let text = "fn f() { g(a + b); }";
    let found = find::find(text).expect("Rust");
    let placed: Vec<_> = found
        .sites
        .iter()
        .enumerate()
        .map(|(id, site)| Placed { site, form: 0, first: 1, id })
        .collect();
    let new = Spliced::new(text, &placed);
    let place = |part: &str| {
        let start = new.text.find(part).expect("a part");
        start..start + part.len()
    };
    assert_eq!(&text[new.original(&place("a ,"))], "a ");
    assert_eq!(&text[new.original(&place("b)"))], "b");
    let add = found.sites.iter().position(|site| site.mutants[0].what.starts_with("replace +"));
    assert_eq!(new.site_at(&place("crate::mutant::add")), add);
    assert_eq!(new.site_at(&place("g(")), None);
    assert_eq!(new.site_at(&place("return ()")), Some(0));
}
