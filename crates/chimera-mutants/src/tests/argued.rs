use std::collections::BTreeMap;

use crate::argued::Argued;
use crate::outcome::{Fate, Outcome};
use crate::room::Room;

const LIST: &str = "# Survivors

## a.rs

Why it makes no difference.

- `replace < with <= in f`
- ``delete `x();` in f`` (2)

## deep/b.rs

Another reason.

- `return 0 in g`
";

fn outcome(id: u32, file: &str, what: &str, fate: Fate) -> (u32, Outcome) {
    let file = format!("crates/chimera/src/pool/{file}");
    let what = what.to_owned();
    (id, Outcome { id, file, line: 1, column: 1, what, fate, by: None, seconds: 0.0, wide: false })
}

#[test]
fn survivors_are_compared_with_what_is_argued() {
    let argued = Argued::parse(LIST).expect("a list");
    let outcomes = BTreeMap::from([
        outcome(1, "a.rs", "replace < with <= in f", Fate::Missed),
        outcome(2, "a.rs", "replace < with <= in f", Fate::Missed),
        outcome(3, "a.rs", "delete `x();` in f", Fate::Unreached),
        outcome(4, "b.rs", "return 0 in g", Fate::Missed),
        outcome(5, "deep/b.rs", "return 0 in g", Fate::Noticed),
    ]);
    let room = Room::named("pool").expect("a room");
    let compared = argued.compare(&room, &outcomes);
    let ids = |all: &[&Outcome]| all.iter().map(|outcome| outcome.id).collect::<Vec<_>>();
    assert_eq!(ids(&compared.argued), [1, 3]);
    assert_eq!(ids(&compared.unexplained), [2, 4]);
    assert_eq!(compared.stale, ["a.rs: delete `x();` in f", "deep/b.rs: return 0 in g"]);
}

#[test]
fn an_argument_has_a_file_a_reason_and_a_name() {
    for wrong in [
        "Why.\n\n- `return 0 in f`\n",
        "## a.rs\n\n- `return 0 in f`\n",
        "## a.rs\n\nWhy.\n\n- return 0 in f\n",
        "## a.rs\n\nWhy.\n\n- `return 0 in f` twice\n",
    ] {
        assert!(Argued::parse(wrong).is_err(), "{wrong}");
    }
}
