//! The child: sequences of operations on a store, rehearsed on another one, and marks around those that are stepped.

use std::process::ExitCode;

use nix::sys::ptrace;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::Failure;
use crate::estimate::{Described, Done, Told};
use crate::goals::{Layout, Operation, layout};
use crate::sampling::{Class, WINDOW_MAX, Window, totals, windows};
use crate::stepper::FORBIDDEN;
use crate::subject::{RECORDS, SEED, Subject};

/// Odd: deletes go through all records in steps of this.
const DELETE_STEP: u64 = 40_503;

/// What is counted, in this order, and how long the sequences are. Gets come before updates in place, which leave
/// marks that make gets cheaper. Inserts double the store, so that the index grows by a whole cycle.
const SEQUENCES: [(Operation, u64); 6] = [
    (Operation::Get, 1 << 13),
    (Operation::GetByEngine, 1 << 13),
    (Operation::Update, 1 << 13),
    (Operation::Insert, RECORDS),
    (Operation::Overwrite, 1 << 14),
    (Operation::Delete, 1 << 13),
];

/// Runs the child that is to be stepped.
pub(crate) fn run(name: &str) -> ExitCode {
    let Some(layout) = layout(name) else { return ExitCode::from(2) };
    if let Err(error) = ptrace::traceme() {
        println!("{error}");
        return ExitCode::from(FORBIDDEN);
    }
    match sequences(layout) {
        Ok(told) => {
            println!("{}", serde_json::to_string(&told).expect("plain data"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::from(2)
        }
    }
}

fn sequences(layout: Layout) -> Result<Told, Failure> {
    let mut told = Told { layout: layout.name.to_owned(), ..Told::default() };
    let (mut rehearsal, mut subject) = (Subject::new(layout)?, Subject::new(layout)?);
    for length in 1..=WINDOW_MAX {
        let numbers: Vec<_> = (0..length as u64).collect();
        subject.window(Operation::Nothing, &numbers)?;
        told.windows.push(Done { operation: Operation::Nothing, class: Class::Plain, length });
    }
    for (operation, count) in SEQUENCES {
        let numbers = numbers(operation, count);
        rehearsal.warm_up(operation)?;
        subject.warm_up(operation)?;
        let classes = rehearsal.rehearse(operation, &numbers)?;
        let mut windows = windows(&classes).into_iter().peekable();
        let mut at = 0;
        while at < numbers.len() {
            if let Some(window) = windows.next_if(|window| window.start == at) {
                let Window { class, length, .. } = window;
                subject.window(operation, &numbers[at..at + length])?;
                at += length;
                told.windows.push(Done { operation, class, length });
            } else {
                subject.run(operation, numbers[at])?;
                at += 1;
            }
        }
        told.totals.push(Described { operation, classes: totals(&classes) });
    }
    Ok(told)
}

/// The records that a sequence of operations is about.
fn numbers(operation: Operation, count: u64) -> Vec<u64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let number = |at: u64| match operation {
        Operation::Insert => RECORDS + at,
        Operation::Delete => at.wrapping_mul(DELETE_STEP) % RECORDS,
        _ => random.next_u64() % RECORDS,
    };
    (0..count).map(number).collect()
}
