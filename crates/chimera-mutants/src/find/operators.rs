//! Operators: which ones take the place of which, and how all of them are written at once.

use syn::BinOp;

/// An operator that is chosen by a function of the run-time module.
pub(super) struct Operator {
    /// The function for two operands of one type.
    pub(super) function: &'static str,
    pub(super) others: &'static [&'static str],
    /// Whether there is a function of the same name and `_two` for operands of two types, and how many of the others
    /// it has.
    pub(super) two: Option<u32>,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `==` and `!=`: the result is negated.
    Equality,
    /// `&&` and `||`: both operands and the result are negated.
    Logic,
    /// The operands are looked at.
    Comparison,
    /// The operands are taken.
    Arithmetic,
    /// The left operand is changed.
    Assignment,
}

/// What is known of an operator.
pub(super) fn operator(op: &BinOp) -> Operator {
    use Kind::{Arithmetic, Assignment, Comparison, Equality, Logic};
    let new = |function, others, two, kind| Operator { function, others, two, kind };
    match op {
        BinOp::Eq(_) => new("flip", &["!="], None, Equality),
        BinOp::Ne(_) => new("flip", &["=="], None, Equality),
        BinOp::And(_) => new("flip", &["||"], None, Logic),
        BinOp::Or(_) => new("flip", &["&&"], None, Logic),
        BinOp::Lt(_) => new("less", &["<=", "==", ">"], Some(3), Comparison),
        BinOp::Le(_) => new("at_most", &["<", ">"], Some(2), Comparison),
        BinOp::Gt(_) => new("more", &[">=", "==", "<"], Some(3), Comparison),
        BinOp::Ge(_) => new("at_least", &[">", "<"], Some(2), Comparison),
        BinOp::Add(_) => new("add", &["-", "*"], Some(1), Arithmetic),
        BinOp::Sub(_) => new("sub", &["+", "/"], Some(1), Arithmetic),
        BinOp::Mul(_) => new("mul", &["/", "+"], Some(1), Arithmetic),
        BinOp::Div(_) => new("div", &["*", "%"], Some(1), Arithmetic),
        BinOp::Rem(_) => new("rem", &["/", "+"], None, Arithmetic),
        BinOp::BitAnd(_) => new("and", &["|", "^"], None, Arithmetic),
        BinOp::BitOr(_) => new("or", &["&", "^"], None, Arithmetic),
        BinOp::BitXor(_) => new("xor", &["|", "&"], None, Arithmetic),
        BinOp::Shl(_) => new("shl", &[">>"], None, Arithmetic),
        BinOp::Shr(_) => new("shr", &["<<"], None, Arithmetic),
        BinOp::AddAssign(_) => new("add", &["-=", "*="], None, Assignment),
        BinOp::SubAssign(_) => new("sub", &["+=", "/="], None, Assignment),
        BinOp::MulAssign(_) => new("mul", &["/=", "+="], None, Assignment),
        BinOp::DivAssign(_) => new("div", &["*=", "%="], None, Assignment),
        BinOp::RemAssign(_) => new("rem", &["/=", "+="], None, Assignment),
        BinOp::BitAndAssign(_) => new("and", &["|=", "^="], None, Assignment),
        BinOp::BitOrAssign(_) => new("or", &["&=", "^="], None, Assignment),
        BinOp::BitXorAssign(_) => new("xor", &["|=", "&="], None, Assignment),
        BinOp::ShlAssign(_) => new("shl", &[">>="], None, Assignment),
        BinOp::ShrAssign(_) => new("shr", &["<<="], None, Assignment),
        _ => new("", &[], None, Arithmetic),
    }
}
