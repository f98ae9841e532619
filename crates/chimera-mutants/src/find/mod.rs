//! Finding what can be mutated in the text of a file.

mod forms;
mod gates;
mod operators;
mod values;

use std::ops::Range;

use quote::ToTokens as _;
use syn::visit::{self, Visit};

use crate::site::{Mutant, Site};

/// What was found in a file.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In the order of the text: what holds another comes before it.
    pub(crate) sites: Vec<Site>,
    /// Modules of other files that only tests or models have.
    pub(crate) gated_modules: Vec<String>,
    /// Other modules of other files.
    pub(crate) modules: Vec<String>,
}

/// Finds the sites of a file.
///
/// # Errors
/// When the text is not Rust.
pub(crate) fn find(text: &str) -> syn::Result<Found> {
    let file = syn::parse_file(text)?;
    let mut finder = Finder { text, found: Found::default(), owner: None, functions: Vec::new() };
    if !gates::is_gated(&file.attrs) {
        finder.visit_file(&file);
    }
    Ok(finder.found)
}

/// A function that is being looked at.
struct Function {
    name: String,
    body: Range<usize>,
}

struct Finder<'a> {
    text: &'a str,
    found: Found,
    /// The type whose methods are being looked at.
    owner: Option<String>,
    functions: Vec<Function>,
}

/// Traits whose functions only describe a value to humans.
const DESCRIPTIONS: [&str; 4] = ["Debug", "Display", "LowerHex", "UpperHex"];

fn bytes(node: &impl syn::spanned::Spanned) -> Range<usize> {
    node.span().byte_range()
}

impl Finder<'_> {
    /// Adds a site whose mutants stand where `node` begins. Code outside of functions is never mutated.
    fn add(
        &mut self,
        node: &impl syn::spanned::Spanned,
        changes: Vec<(String, Range<usize>, String)>,
        make: impl FnOnce(&mut Site),
    ) {
        let Some(function) = self.functions.last() else { return };
        let start = node.span().start();
        let mutants = changes.into_iter().map(|(what, range, text)| Mutant {
            line: start.line,
            column: start.column + 1,
            what: format!("{what} in {}", function.name),
            shown: (range, text),
        });
        let mut site = Site {
            range: bytes(node),
            function: function.body.clone(),
            mutants: mutants.collect(),
            forms: Vec::new(),
            is_insertion: false,
        };
        make(&mut site);
        self.found.sites.push(site);
    }

    /// A function: its body is replaced, then looked into.
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() {
            return;
        }
        let name = signature.ident.to_string();
        let name = self.owner.as_ref().map_or(name.clone(), |owner| format!("{owner}::{name}"));
        self.functions.push(Function { name: name.clone(), body: bytes(block) });
        let is_unit = matches!(&signature.output, syn::ReturnType::Default);
        let only: String =
            block.stmts.iter().map(|stmt| stmt.to_token_stream().to_string()).collect();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        for value in values::of_result(&signature.output) {
            if bare(&only) == bare(&value) || only.is_empty() {
                continue;
            }
            let shown = bytes(block);
            let change = (format!("return {value}"), shown, format!("{{ {value} }}"));
            let at = bytes(block).start + 1;
            self.add(&signature.ident, vec![change], |site| forms::body(site, at, &value));
        }
        if is_unit && let [_, .., last @ syn::Stmt::Expr(expr, None)] = &*block.stmts {
            self.statement(last, expr);
        }
        self.visit_block(block);
        self.functions.pop();
    }

    /// A statement whose value nobody uses is deleted.
    fn statement(&mut self, statement: &syn::Stmt, expr: &syn::Expr) {
        if !is_call(expr) || is_fence(expr) {
            return;
        }
        let range = bytes(statement);
        let text = self.text[range.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        let mut short: String = text.chars().take(50).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        let what = format!("delete `{short}`");
        self.add(statement, vec![(what, range, String::new())], forms::statement);
    }

    /// A condition is true, or false.
    fn condition(&mut self, condition: &syn::Expr, name: &str) {
        let is_cfg = matches!(condition, syn::Expr::Macro(call) if call.mac.path.is_ident("cfg"));
        if has_let(condition) || is_cfg || matches!(condition, syn::Expr::Lit(_)) {
            return;
        }
        let change = |to: &str| (format!("{name} is {to}"), bytes(condition), to.to_owned());
        self.add(condition, vec![change("true"), change("false")], |site| {
            forms::call(site, "condition");
        });
    }

    /// An arm is deleted where a later one takes what it would have.
    fn arm(&mut self, arm: &syn::Arm) {
        let pattern = self.text[bytes(&arm.pat)].split_whitespace().collect::<Vec<_>>().join(" ");
        let change = (format!("delete arm `{pattern}`"), bytes(arm), String::new());
        let end = bytes(&arm.pat).end;
        self.add(&arm.pat, vec![change], |site| forms::arm(site, end));
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let operator = operators::operator(&binary.op);
        if operator.others.is_empty()
            || operator.kind == operators::Kind::Logic
                && (has_let(&binary.left) || has_let(&binary.right))
        {
            return;
        }
        let op = bytes(&binary.op);
        let sign = &self.text[op.clone()];
        let change =
            |to: &&str| (format!("replace {sign} with {to}"), op.clone(), (*to).to_owned());
        let changes = operator.others.iter().map(change).collect();
        let parts = forms::Binary {
            left: bytes(&binary.left),
            op: op.clone(),
            right: bytes(&binary.right),
        };
        let text = self.text;
        let has_call = has_call(&binary.left);
        self.add(&binary.op, changes, |site| {
            forms::binary(site, &operator, &parts, text, has_call);
        });
    }

    fn unary(&mut self, unary: &syn::ExprUnary) {
        let function = match unary.op {
            syn::UnOp::Not(_) => "not",
            syn::UnOp::Neg(_) => "neg",
            _ => return,
        };
        let op = bytes(&unary.op);
        let what = format!("delete {}", &self.text[op.clone()]);
        self.add(unary, vec![(what, op.clone(), String::new())], |site| {
            forms::unary(site, function, op);
        });
    }

    fn gated_or(&mut self, attributes: &[syn::Attribute], look: impl FnOnce(&mut Self)) {
        if !gates::is_gated(attributes) {
            look(self);
        }
    }

    fn owned(&mut self, owner: String, look: impl FnOnce(&mut Self)) {
        let before = self.owner.replace(owner);
        look(self);
        self.owner = before;
    }
}

/// Whether an expression is a call, or one whose error is passed on.
fn is_call(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Call(_) | syn::Expr::MethodCall(_) => true,
        syn::Expr::Try(tried) => is_call(&tried.expr),
        _ => false,
    }
}

/// Whether an expression is a fence between threads, of which only models can tell.
fn is_fence(expr: &syn::Expr) -> bool {
    let syn::Expr::Call(call) = expr else { return false };
    matches!(&*call.func, syn::Expr::Path(path) if path.path.is_ident("fence"))
}

/// Whether a condition binds names.
fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Whether looking at an expression twice may do something twice.
fn has_call(expr: &syn::Expr) -> bool {
    let mut calls = Calls(false);
    calls.visit_expr(expr);
    calls.0
}

struct Calls(bool);

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr(&mut self, expr: &'ast syn::Expr) {
        use syn::Expr;
        if matches!(expr, Expr::Call(_) | Expr::MethodCall(_) | Expr::Macro(_) | Expr::Block(_)) {
            self.0 = true;
        }
        visit::visit_expr(self, expr);
    }
}

/// Whether an arm takes everything.
fn takes_all(arm: &syn::Arm) -> bool {
    let is_name = |pat: &syn::PatIdent| {
        pat.subpat.is_none()
            && pat.ident.to_string().starts_with(|first: char| first.is_lowercase())
    };
    arm.guard.is_none()
        && match &arm.pat {
            syn::Pat::Wild(_) => true,
            syn::Pat::Ident(ident) => is_name(ident),
            _ => false,
        }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.gated_or(&item.attrs, |it| {
            let before = it.owner.take();
            it.function(&item.sig, &item.block);
            it.owner = before;
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.gated_or(&item.attrs, |it| it.function(&item.sig, &item.block));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.gated_or(&item.attrs, |it| {
            if let Some(block) = &item.default {
                it.function(&item.sig, block);
            }
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_some_and(|of| DESCRIPTIONS.iter().any(|name| of.ident == name)) {
            return;
        }
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        let owner = owner.unwrap_or_else(|| "impl".into());
        self.gated_or(&item.attrs, |it| it.owned(owner, |it| visit::visit_item_impl(it, item)));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        let owner = item.ident.to_string();
        self.gated_or(&item.attrs, |it| it.owned(owner, |it| visit::visit_item_trait(it, item)));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_gated = gates::is_gated(&item.attrs);
        match &item.content {
            None if is_gated => self.found.gated_modules.push(item.ident.to_string()),
            None => self.found.modules.push(item.ident.to_string()),
            Some(_) if is_gated => {}
            Some(_) => visit::visit_item_mod(self, item),
        }
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        match statement {
            syn::Stmt::Expr(expr, Some(_)) => self.statement(statement, expr),
            syn::Stmt::Local(local) if matches!(local.pat, syn::Pat::Wild(_)) => {
                if let Some(init) = &local.init {
                    self.statement(statement, &init.expr);
                }
            }
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        self.gated_or(&local.attrs, |it| visit::visit_local(it, local));
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        self.condition(&expr.cond, "condition");
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_while(&mut self, expr: &'ast syn::ExprWhile) {
        if !has_let(&expr.cond) {
            let change = ("condition is false".into(), bytes(&expr.cond), "false".into());
            self.add(&expr.cond, vec![change], |site| forms::call(site, "never"));
        }
        visit::visit_expr_while(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        self.visit_expr(&expr.expr);
        let last = expr.arms.iter().rposition(takes_all).unwrap_or(0);
        for (at, arm) in expr.arms.iter().enumerate() {
            if gates::is_gated(&arm.attrs) {
                continue;
            }
            match &arm.guard {
                Some((_, guard)) => self.condition(guard, "guard"),
                None if at < last => self.arm(arm),
                None => {}
            }
            if let Some((_, guard)) = &arm.guard {
                self.visit_expr(guard);
            }
            self.visit_expr(&arm.body);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        self.binary(binary);
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        self.unary(unary);
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        // The length is a constant.
        self.visit_expr(&repeat.expr);
    }

    // What is evaluated when compiling, or is no expression.
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_angle_bracketed_generic_arguments(
        &mut self,
        _: &'ast syn::AngleBracketedGenericArguments,
    ) {
    }
}
