//! Survivors that are argued: the lists in `docs/mutants/`.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::outcome::Outcome;
use crate::room::Room;

/// How many survivors of one name are argued, by the file in the room and the name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Argued(BTreeMap<(String, String), usize>);

/// Survivors compared with the arguments.
#[derive(Debug, Default)]
pub(crate) struct Compared<'a> {
    pub(crate) argued: Vec<&'a Outcome>,
    pub(crate) unexplained: Vec<&'a Outcome>,
    /// What is argued more often than it survives, as `file: name`. Only a complete run can tell.
    pub(crate) stale: Vec<String>,
}

impl Argued {
    /// The arguments for a room of the repository at `root`. None if there is no such file.
    pub(crate) fn read(root: &Path, room: &Room) -> io::Result<Self> {
        let path = root.join("docs/mutants").join(room.name).with_extension("md");
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            read => Self::parse(&read?)
                .map_err(|what| io::Error::other(format!("{}:{what}", path.display()))),
        }
    }

    /// A heading of the second level names a file. A paragraph says why, and the items of the list that follows it are names of
    /// mutants, in backticks. A number in parentheses behind a name says how many of that name there are.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut argued = Self::default();
        let (mut file, mut has_reason) = (None, false);
        for (at, line) in text.lines().enumerate() {
            let wrong = |what: &str| format!("{}: {what}", at + 1);
            if let Some(name) = line.strip_prefix("## ") {
                (file, has_reason) = (Some(name.trim().to_owned()), false);
            } else if let Some(item) = line.strip_prefix("- ") {
                let (name, count) = item_of(item).ok_or_else(|| wrong("no name in backticks"))?;
                let file = file.clone().ok_or_else(|| wrong("a mutant of no file"))?;
                if !has_reason {
                    return Err(wrong("a mutant without a reason"));
                }
                *argued.0.entry((file, name)).or_default() += count;
            } else if !line.trim().is_empty() {
                has_reason = true;
            }
        }
        Ok(argued)
    }

    /// Which survivors are argued. The first of a name are, as many as are argued.
    pub(crate) fn compare<'a>(
        &self,
        room: &Room,
        outcomes: &'a BTreeMap<u32, Outcome>,
    ) -> Compared<'a> {
        let mut left = self.0.clone();
        let mut compared = Compared::default();
        let source = format!("{}/{}/", room.home, room.source);
        for outcome in outcomes.values().filter(|outcome| outcome.fate.survives()) {
            let file = outcome.file.strip_prefix(&source).unwrap_or(&outcome.file);
            match left.get_mut(&(file.to_owned(), outcome.what.clone())) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    compared.argued.push(outcome);
                }
                _ => compared.unexplained.push(outcome),
            }
        }
        let is_left = left.into_iter().filter(|(_, count)| *count > 0);
        compared.stale = is_left.map(|((file, name), _)| format!("{file}: {name}")).collect();
        compared
    }
}

/// A name in backticks, and how often. Where the name has backticks itself there are two on each side.
fn item_of(item: &str) -> Option<(String, usize)> {
    let item = item.trim();
    let ticks = &item[..item.len() - item.trim_start_matches('`').len()];
    let (name, rest) =
        item.strip_prefix(ticks).filter(|_| !ticks.is_empty())?.rsplit_once(ticks)?;
    let rest = rest.trim();
    let count = if rest.is_empty() {
        1
    } else {
        rest.strip_prefix('(')?.strip_suffix(')')?.parse().ok()?
    };
    Some((name.to_owned(), count))
}
