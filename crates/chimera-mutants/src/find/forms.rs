//! How each kind of site is written so that all its mutants are in one text.

use std::ops::Range;

use super::operators::{Kind, Operator};
use crate::site::{Edit, Form, Site};

fn all(site: &Site, edits: Vec<Edit>) -> Form {
    Form { edits, mutants: site.mutants.len() as u32 }
}

/// A function that returns a value at once. `at` is behind its first brace.
pub(super) fn body(site: &mut Site, at: usize, value: &str) {
    site.is_insertion = true;
    let text = format!(" if crate::mutant::is({{N}}) {{ return {value}; }}");
    site.forms.push(all(site, vec![Edit::open(at, text)]));
}

/// A statement that is left out.
pub(super) fn statement(site: &mut Site) {
    let Range { start, end } = site.range;
    let open = Edit::open(start, "if !crate::mutant::is({N}) { ");
    site.forms.push(all(site, vec![open, Edit::close(end, " }")]));
}

/// The site's expression as the argument of a function.
pub(super) fn call(site: &mut Site, function: &str) {
    let Range { start, end } = site.range;
    let open = Edit::open(start, format!("crate::mutant::{function}({{N}}, "));
    site.forms.push(all(site, vec![open, Edit::close(end, ")")]));
}

/// An arm that is not taken. `end` is behind its pattern.
pub(super) fn arm(site: &mut Site, end: usize) {
    site.forms.push(all(site, vec![Edit::close(end, " if !crate::mutant::is({N})")]));
}

/// Bytes of an expression with an operator between two others.
pub(super) struct Binary {
    pub(super) left: Range<usize>,
    pub(super) op: Range<usize>,
    pub(super) right: Range<usize>,
}

impl Binary {
    /// The expression as `open` left `between` right `close`.
    fn wrapped(&self, open: String, between: &str, close: &str) -> Vec<Edit> {
        vec![
            Edit::open(self.left.start, open),
            Edit::instead(self.op.clone(), between),
            Edit::close(self.right.end, close),
        ]
    }
}

/// An operator. `has_call` says that the left side must not be evaluated twice.
pub(super) fn binary(
    site: &mut Site,
    operator: &Operator,
    parts: &Binary,
    text: &str,
    has_call: bool,
) {
    site.range = parts.left.start..parts.right.end;
    let function = operator.function;
    match operator.kind {
        Kind::Equality => call(site, "flip"),
        Kind::Logic => logic(site, parts),
        Kind::Assignment => assignment(site, function, parts, &text[parts.left.clone()], has_call),
        Kind::Comparison | Kind::Arithmetic => {
            let (from, between, to) = match operator.kind {
                Kind::Comparison => ("&(", "), &(", "))"),
                _ => ("", ",", ")"),
            };
            let open = |suffix| format!("crate::mutant::{function}{suffix}({{N}}, {from}");
            site.forms.push(all(site, parts.wrapped(open(""), between, to)));
            if let Some(mutants) = operator.two {
                let edits = parts.wrapped(open("_two"), between, to);
                site.forms.push(Form { edits, mutants });
            }
        }
    }
}

/// `a || b` is `!(!a && !b)`: evaluation stops where it has to.
fn logic(site: &mut Site, parts: &Binary) {
    let flip = "crate::mutant::flip({N}, ";
    let edits = vec![
        Edit::open(parts.left.start, format!("{flip}{flip}")),
        Edit::close(parts.left.end, ")"),
        Edit::open(parts.right.start, flip),
        Edit::close(parts.right.end, "))"),
    ];
    site.forms.push(all(site, edits));
}

/// `a += b` as `a = add(a, b)`, so that `b` may look at what holds `a`. Where `a` must not be evaluated twice it is passed on.
fn assignment(site: &mut Site, function: &str, parts: &Binary, left: &str, has_call: bool) {
    if !has_call && !left.contains('\n') {
        let edits = vec![
            Edit::instead(parts.op.clone(), format!("= crate::mutant::{function}({{N}}, {left},")),
            Edit::close(parts.right.end, ")"),
        ];
        site.forms.push(all(site, edits));
    }
    let open = format!("crate::mutant::{function}_assign({{N}}, &mut (");
    site.forms.push(all(site, parts.wrapped(open, "),", ")")));
}

/// An operator in front of an expression.
pub(super) fn unary(site: &mut Site, function: &str, op: Range<usize>) {
    let open = Edit::instead(op, format!("crate::mutant::{function}({{N}}, "));
    site.forms.push(all(site, vec![open, Edit::close(site.range.end, ")")]));
    if function == "not" {
        // Of what is only behind a reference.
        call(site, "flip");
    }
}
