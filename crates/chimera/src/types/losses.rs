//! [`Losses`]: what a store that was opened in spite of damage lacks.

use std::fmt;

use super::check::Damage;

/// What damage has kept out of a store that was opened with [`Options::salvage`](crate::Options::salvage), as far as it
/// is known: see [`Db::losses`](crate::Db::losses).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Losses {
    /// Places where something is left out, each counted once: records, and parts of the index or of a log, each of which
    /// may have led to many records. At most [`COUNT_MAX`](Self::COUNT_MAX), however many there are.
    pub count: u64,
    /// The first one by position; none where nothing is left out.
    pub first: Option<Damage>,
    /// Whether more may be missing than these places explain: the store is not what it was when it was closed in order, and how
    /// many records some of the places led to is not known. Where more is missing for certain, that is a place of its own.
    pub may_be_more: bool,
}

impl Losses {
    /// Most places that are counted.
    pub const COUNT_MAX: u64 = 1 << 20;

    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = &self.first else { return f.write_str("nothing is left out") };
        let (least, places, verb) = match self.count {
            1 => ("", "place", "is"),
            Self::COUNT_MAX => ("at least ", "places", "are"),
            _ => ("", "places", "are"),
        };
        let Self { count, .. } = self;
        let Damage { at, what } = first;
        write!(
            f,
            "{least}{count} {places} of the store {verb} left out, first at byte {at}: {what}"
        )?;
        if self.may_be_more {
            f.write_str("; whether this explains all that is missing since the store was closed is not known")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_say_how_many_and_where() {
        assert_eq!(Losses::default().to_string(), "nothing is left out");
        let first = Some(Damage { at: 4096, what: "it is damaged".to_owned() });
        let losses = |count| Losses { count, first: first.clone(), may_be_more: false };
        let said = |count| losses(count).to_string();
        assert_eq!(said(1), "1 place of the store is left out, first at byte 4096: it is damaged");
        assert!(said(2).starts_with("2 places of the store are left out"));
        assert!(said(Losses::COUNT_MAX).starts_with("at least 1048576 places"));
        let more = Losses { may_be_more: true, ..losses(1) }.to_string();
        assert!(more.starts_with(&said(1)) && more.ends_with("is not known"), "{more}");
    }
}
