//! Which mutant is active, and which ones are reached. Written into the tree of mutants only.
#![allow(warnings)]

use std::cmp::Ordering as Order;
use std::io::Write as _;
use std::ops;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Not looked at the environment yet.
const UNKNOWN: u32 = u32::MAX;
/// No mutant is active, and those that are reached are written down.
const RECORD: u32 = u32::MAX - 1;

static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
static REACHED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
static FILE: OnceLock<Option<std::fs::File>> = OnceLock::new();

/// Whether mutant `number` is active.
#[inline]
pub(crate) fn is(number: u32) -> bool {
    choose(number, 1) != 0
}

/// Which of `count` mutants from `first` on is active, from 1; 0 if none is.
#[inline]
pub(crate) fn choose(first: u32, count: u32) -> u32 {
    let active = ACTIVE.load(Ordering::Relaxed);
    let which = active.wrapping_sub(first);
    if which < count {
        return which + 1;
    }
    if active >= RECORD { slow(active, first, count) } else { 0 }
}

#[cold]
#[inline(never)]
fn slow(active: u32, first: u32, count: u32) -> u32 {
    if active == UNKNOWN {
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
        let chosen = number("CHIMERA_MUTANT").unwrap_or(0);
        let records = std::env::var_os("CHIMERA_MUTANTS_REACHED").is_some();
        ACTIVE.store(if chosen == 0 && records { RECORD } else { chosen }, Ordering::Relaxed);
        return choose(first, count);
    }
    for number in first..first + count {
        if !REACHED[number as usize].swap(true, Ordering::Relaxed) {
            let file = FILE.get_or_init(|| {
                let path = std::env::var_os("CHIMERA_MUTANTS_REACHED")?;
                std::fs::OpenOptions::new().append(true).create(true).open(path).ok()
            });
            if let Some(mut file) = file.as_ref() {
                let _ = file.write_all(format!("{number}\n").as_bytes());
            }
        }
    }
    0
}

#[inline]
pub(crate) fn flip(number: u32, value: bool) -> bool {
    value != is(number)
}

/// A condition: 1 is true, 2 is false.
#[inline]
pub(crate) fn condition(first: u32, value: bool) -> bool {
    match choose(first, 2) {
        0 => value,
        which => which == 1,
    }
}

#[inline]
pub(crate) fn never(number: u32, value: bool) -> bool {
    !is(number) && value
}

#[inline]
pub(crate) fn not<T: ops::Not<Output = T>>(number: u32, value: T) -> T {
    if is(number) { value } else { !value }
}

#[inline]
pub(crate) fn neg<T: ops::Neg<Output = T>>(number: u32, value: T) -> T {
    if is(number) { value } else { -value }
}

macro_rules! comparisons {
    ($($name:ident $two:ident: $op:tt, [$($other:tt)+];)+) => {$(
        #[inline]
        pub(crate) fn $name<T: PartialOrd + ?Sized>(first: u32, a: &T, b: &T) -> bool {
            $two(first, a, b)
        }

        #[inline]
        pub(crate) fn $two<A: PartialOrd<B> + ?Sized, B: ?Sized>(first: u32, a: &A, b: &B) -> bool {
            let others: &[fn(&A, &B) -> bool] = &[$(|a, b| a $other b),+];
            match choose(first, others.len() as u32) {
                0 => a $op b,
                which => others[which as usize - 1](a, b),
            }
        }
    )+};
}

comparisons! {
    less less_two: <, [<= == >];
    at_most at_most_two: <=, [< >];
    more more_two: >, [>= == <];
    at_least at_least_two: >=, [> <];
}

pub(crate) trait Number: Copy {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    fn modulo(self, other: Self) -> Self;
}

pub(crate) trait Bits: Copy {
    fn both(self, other: Self) -> Self;
    fn any(self, other: Self) -> Self;
    fn differ(self, other: Self) -> Self;
}

pub(crate) trait Shift: Copy {
    fn left(self, by: u32) -> Self;
    fn right(self, by: u32) -> Self;
}

pub(crate) trait Amount: Copy {
    fn amount(self) -> u32;
}

macro_rules! numbers {
    ($($t:ty)+) => {$(
        impl Number for $t {
            #[inline] fn plus(self, other: Self) -> Self { self + other }
            #[inline] fn minus(self, other: Self) -> Self { self - other }
            #[inline] fn times(self, other: Self) -> Self { self * other }
            #[inline] fn over(self, other: Self) -> Self { self / other }
            #[inline] fn modulo(self, other: Self) -> Self { self % other }
        }
    )+};
}

macro_rules! bits {
    ($($t:ty)+) => {$(
        impl Bits for $t {
            #[inline] fn both(self, other: Self) -> Self { self & other }
            #[inline] fn any(self, other: Self) -> Self { self | other }
            #[inline] fn differ(self, other: Self) -> Self { self ^ other }
        }
    )+};
}

macro_rules! shifts {
    ($($t:ty)+) => {$(
        impl Shift for $t {
            #[inline] fn left(self, by: u32) -> Self { self << by }
            #[inline] fn right(self, by: u32) -> Self { self >> by }
        }
        impl Amount for $t {
            #[inline] fn amount(self) -> u32 { self as u32 }
        }
    )+};
}

numbers! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 }
bits! { bool u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }
shifts! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }

macro_rules! operators {
    ($($name:ident $assign:ident $bound:ident: $own:ident $($other:ident)+;)+) => {$(
        #[inline]
        pub(crate) fn $name<T: $bound>(first: u32, a: T, b: T) -> T {
            let others: &[fn(T, T) -> T] = &[$(T::$other),+];
            match choose(first, others.len() as u32) {
                0 => a.$own(b),
                which => others[which as usize - 1](a, b),
            }
        }

        #[inline]
        pub(crate) fn $assign<T: $bound>(first: u32, a: &mut T, b: T) {
            *a = $name(first, *a, b);
        }
    )+};
}

operators! {
    add add_assign Number: plus minus times;
    sub sub_assign Number: minus plus over;
    mul mul_assign Number: times over plus;
    div div_assign Number: over times modulo;
    rem rem_assign Number: modulo over plus;
    and and_assign Bits: both any differ;
    or or_assign Bits: any both differ;
    xor xor_assign Bits: differ any both;
}

#[inline]
pub(crate) fn shl<T: Shift, S: Amount>(first: u32, a: T, by: S) -> T {
    if is(first) { a.right(by.amount()) } else { a.left(by.amount()) }
}

#[inline]
pub(crate) fn shr<T: Shift, S: Amount>(first: u32, a: T, by: S) -> T {
    if is(first) { a.left(by.amount()) } else { a.right(by.amount()) }
}

#[inline]
pub(crate) fn shl_assign<T: Shift, S: Amount>(first: u32, a: &mut T, by: S) {
    *a = shl(first, *a, by);
}

#[inline]
pub(crate) fn shr_assign<T: Shift, S: Amount>(first: u32, a: &mut T, by: S) {
    *a = shr(first, *a, by);
}

macro_rules! opposites {
    ($($name:ident $own:ident $own_fn:ident $other:ident $other_fn:ident;)+) => {$(
        #[inline]
        pub(crate) fn $name<A, B, O>(number: u32, a: A, b: B) -> O
        where
            A: ops::$own<B, Output = O> + ops::$other<B, Output = O>,
        {
            if is(number) { ops::$other::$other_fn(a, b) } else { ops::$own::$own_fn(a, b) }
        }
    )+};
}

opposites! {
    add_two Add add Sub sub;
    sub_two Sub sub Add add;
    mul_two Mul mul Div div;
    div_two Div div Mul mul;
}
