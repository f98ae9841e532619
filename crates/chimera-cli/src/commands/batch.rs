//! `chimera batch`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use chimera::{Db, Session};
use clap::{Args, ValueHint};
use serde::Serialize;
use serde_json::json;

use crate::arguments::WriteArguments;
use crate::commands::Context;
use crate::failure::Failure;
use crate::human::count;
use crate::interrupt::{self, Input, Plan};
use crate::losses;
use crate::store::{self, Sizes};
use crate::text::{Forms, fit, printable};

const EXAMPLES: &str = "\
Examples:
  chimera batch changes.txt
  printf 'put\\tapples\\tred\\ndelete\\tpears\\n' | chimera batch -
  chimera scan --values --hex | sed 's/^/put\\t/' | chimera batch --hex --path copy -
  chimera batch --atomic transfer.txt

Each line is an operation, its fields divided by tabs:
  put KEY VALUE     the value is the rest of the line
  delete KEY        no error where there is no such key
Empty lines, and lines that begin with #, are passed over. With --hex keys and values may have any
bytes. A store that is made has the defaults of `put`.

Operations are carried out one after the other. At a line that is wrong, and after Ctrl-C, the
command stops: the lines before are done and kept. Giving the same file again does no harm.

With --atomic all lines are carried out, or none: also where the process or the machine stops.
They may have 64 MiB of keys and values.";

/// Put and delete what the lines of a file say; creates the store if there is none
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Batch {
    #[command(flatten)]
    write: WriteArguments,
    /// Carry out all lines or none
    #[arg(long)]
    atomic: bool,
    /// File to read; `-` is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

/// What a line asks for.
enum Operation {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// What was done.
#[derive(Default, Serialize)]
struct Done {
    inserted: u64,
    replaced: u64,
    deleted: u64,
    /// Keys to delete that were not there.
    missing: u64,
}

impl Batch {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let _guard = interrupt::plan(Plan::Stop(if self.atomic {
            "ended at once: all lines are done, or none, and the same file can be given again"
        } else {
            "ended at once: the lines before are done and kept, and the same file can be given again"
        }));
        let input = BufReader::new(Input::open(&self.file)?);
        let mut lines = Lines { input, number: 0, is_atomic: self.atomic };
        // Before anything is made: there must be something to do.
        let Some(first) = lines.next(context.forms)? else {
            return end(context, &Done::default(), None);
        };
        let mut all = vec![(lines.number, first)];
        while self.atomic
            && let Some(next) = lines.next(context.forms)?
        {
            all.push((lines.number, next));
        }
        let created = store::is_absent(&context.path)?;
        let options = if created {
            store::options_to_create(&context.path, &self.write)
        } else {
            store::options_to_write(&self.write)
        };
        let db = store::open(&context.path, options)?;
        let mut done = Done::default();
        let outcome = if self.atomic {
            carry_out_as_one(&db, all, &lines).map(|all| done = all)
        } else {
            let first = all.remove(0).1;
            carry_out(&db, first, &mut lines, context.forms, &mut done)
        };
        let losses = db.losses();
        // What was done stays, whatever came then.
        db.close()?;
        if created && !context.json {
            let text = format!("created store `{}`", context.path.display());
            context.output.line(text)?;
        }
        end(context, &done, outcome.err())?;
        losses::end(losses)
    }
}

/// Carries out one line after the other.
fn carry_out(
    db: &Db,
    first: Operation,
    lines: &mut Lines,
    forms: Forms,
    done: &mut Done,
) -> Result<(), Failure> {
    let (sizes, mut session) = (Sizes::of(db), db.session());
    let mut operation = Some(first);
    while let Some(next) = operation {
        let next = next.fit(sizes).map_err(|failure| lines.wrong(failure))?;
        done.carry_out(&mut session, &next).map_err(|failure| lines.wrong(failure))?;
        operation = lines.next(forms)?;
    }
    Ok(())
}

/// Carries out numbered lines, all or none.
fn carry_out_as_one(db: &Db, all: Vec<(u64, Operation)>, lines: &Lines) -> Result<Done, Failure> {
    let sizes = Sizes::of(db);
    let fit = |(number, operation): (u64, Operation)| {
        operation.fit(sizes).map_err(|failure| lines.wrong_at(number, failure))
    };
    let all = all.into_iter().map(fit).collect::<Result<Vec<_>, _>>()?;
    let done = db.transaction(|transaction| {
        let mut done = Done::default();
        for operation in &all {
            let is_there = transaction.contains_key(operation.key())?;
            match operation {
                Operation::Put(key, value) => transaction.put(key, value),
                Operation::Delete(key) => transaction.delete(key),
            }
            *done.of(operation, is_there) += 1;
        }
        Ok::<_, chimera::Error>(done)
    })?;
    Ok(done)
}

/// Says what was done, and fails as the batch did.
fn end(context: &mut Context, done: &Done, failure: Option<Failure>) -> Result<(), Failure> {
    if context.json {
        let mut report = json!(done);
        report["complete"] = failure.is_none().into();
        context.output.json(&report)?;
    } else {
        let Done { inserted, replaced, deleted, missing } = done;
        let [inserted, replaced, deleted, missing] =
            [*inserted, *replaced, *deleted, *missing].map(count);
        context.output.line(format!(
            "{inserted} inserted, {replaced} replaced, {deleted} deleted, {missing} not there to delete"
        ))?;
    }
    failure.map_or(Ok(()), Err)
}

impl Operation {
    /// As it is for a store with records of these sizes.
    fn fit(self, sizes: Sizes) -> Result<Self, Failure> {
        Ok(match self {
            Self::Put(key, value) => {
                Self::Put(fit("key", key, sizes.key)?, fit("value", value, sizes.value)?)
            }
            Self::Delete(key) => Self::Delete(fit("key", key, sizes.key)?),
        })
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Put(key, _) | Self::Delete(key) => key,
        }
    }
}

impl Done {
    fn carry_out(&mut self, session: &mut Session, operation: &Operation) -> Result<(), Failure> {
        let was_there = match operation {
            Operation::Put(key, value) => !session.put(key, value)?,
            Operation::Delete(key) => session.delete(key)?,
        };
        *self.of(operation, was_there) += 1;
        Ok(())
    }

    /// What counts an operation on a key that was there, or was not.
    fn of(&mut self, operation: &Operation, was_there: bool) -> &mut u64 {
        match (operation, was_there) {
            (Operation::Put(..), false) => &mut self.inserted,
            (Operation::Put(..), true) => &mut self.replaced,
            (Operation::Delete(_), true) => &mut self.deleted,
            (Operation::Delete(_), false) => &mut self.missing,
        }
    }
}

/// The lines of the input.
struct Lines {
    input: BufReader<Input>,
    /// Of the line that was read last, from 1.
    number: u64,
    /// They are carried out at the end.
    is_atomic: bool,
}

impl Lines {
    /// What the next line asks for that asks for anything; none at the end.
    ///
    /// # Errors
    /// `Line` for one that is wrong, `Interrupted`, and what the system says.
    fn next(&mut self, forms: Forms) -> Result<Option<Operation>, Failure> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = self.input.read_until(b'\n', &mut line);
            if interrupt::is_asked() {
                return Err(self.interrupted());
            }
            let read = read.map_err(|source| Failure::Io { action: "read the file", source })?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            if !line.is_empty() && !line.starts_with(b"#") {
                return parse(line, forms).map(Some).map_err(|failure| self.wrong(failure));
            }
        }
    }

    fn wrong(&self, failure: Failure) -> Failure {
        self.wrong_at(self.number, failure)
    }

    fn wrong_at(&self, number: u64, failure: Failure) -> Failure {
        let done = if self.is_atomic {
            "nothing was done"
        } else {
            "the lines before it are done and kept"
        };
        Failure::Line { number, failure: Box::new(failure), done }
    }

    fn interrupted(&self) -> Failure {
        let done = match self.number {
            0 => "nothing was done".to_owned(),
            _ if self.is_atomic => "nothing was done".to_owned(),
            number => format!("the lines up to number {} are done and kept", count(number)),
        };
        Failure::Interrupted(format!("{done}; the same file can be given again"))
    }
}

fn parse(line: &[u8], forms: Forms) -> Result<Operation, Failure> {
    let mut fields = line.splitn(3, |&byte| byte == b'\t');
    let fields = [fields.next(), fields.next(), fields.next()];
    match fields {
        [Some(b"put"), Some(key), Some(value)] => {
            Ok(Operation::Put(forms.key.read_key(key)?, forms.value.read("value", value)?))
        }
        [Some(b"delete"), Some(key), None] => Ok(Operation::Delete(forms.key.read_key(key)?)),
        _ => {
            let shown = printable(line.get(..40).unwrap_or(line));
            let rule = "a line is `put`, a key and a value, or `delete` and a key, divided by tabs";
            Err(Failure::Usage(format!("`{shown}` is no operation: {rule}")))
        }
    }
}
