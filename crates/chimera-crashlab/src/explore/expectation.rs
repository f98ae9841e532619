//! [`Expectation`]: what a store may hold after a crash.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::model::{Effect, Model, Write, Writes, text};
use crate::durability::Loss;
use crate::subject::Value;

/// Writes that were acknowledged as one and are not in the model yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Recent {
    writes: Writes,
    may_be_missing: bool,
}

/// What a store may hold after a crash: what was acknowledged, less what its [`Loss`] says may be missing;
/// and of one operation in flight its effect as a whole or nothing of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectation {
    loss: Loss,
    /// What the store holds for certain, but for `recent`.
    model: Model,
    /// In the order of acknowledgement, from the first that may be missing.
    recent: Vec<Recent>,
    in_flight: Option<Effect>,
    /// The last write may be in a log alone. Damage of the log may lose it without a word.
    is_logged: bool,
    unchecked: UncheckedWords,
    tails: Tails,
}

/// The last writes of each session since the store was opened. Their damage looks as if they had been cut off.
#[derive(Clone, Debug, Default)]
struct Tails {
    /// So many writes of a session.
    length: usize,
    /// Their sessions and keys.
    writes: Vec<(usize, u64)>,
    /// Keys, and values that they once had: what came between may be gone by now.
    once: Vec<(u64, Value)>,
}

impl Tails {
    fn push(&mut self, write: &Write) {
        if self.length == 0 {
            return;
        }
        self.writes.push((write.session, write.key));
        let of_session = |(session, _): &(usize, u64)| *session == write.session;
        if self.writes.iter().filter(|it| of_session(it)).count() > self.length {
            let first = self.writes.iter().position(of_session).expect("one of these");
            self.writes.remove(first);
        }
        self.once.extend(write.value.map(|value| (write.key, value)));
    }

    /// Whether a key has nothing, or what it once had, because one of them is gone.
    fn explain(&self, key: u64, found: Option<&Value>) -> bool {
        self.writes.iter().any(|(_, of)| *of == key)
            && found.is_none_or(|found| self.once.contains(&(key, *found)))
    }

    /// Of a store that is opened again.
    fn opened(&self) -> Self {
        Self { writes: Vec::new(), ..self.clone() }
    }
}

/// The words of values whose damage may go unnoticed, because they are updated in place: for each key a bit for
/// each word.
#[derive(Clone, Debug, Default)]
struct UncheckedWords(BTreeMap<u64, u8>);

impl UncheckedWords {
    /// After a write that has happened, in place of the value `old`.
    fn set(&mut self, write: &Write, old: Option<&Value>) {
        // What changes nothing writes nothing.
        if write.value.as_ref() != old {
            self.0.remove(&write.key);
            self.add(write);
        }
    }

    /// After a write that may have happened.
    fn add(&mut self, write: &Write) {
        *self.0.entry(write.key).or_default() |= write.word.map_or(0, |word| 1 << word);
    }

    fn has(&self, key: u64, word: usize) -> bool {
        self.0.get(&key).is_some_and(|words| words >> word & 1 != 0)
    }
}

impl Expectation {
    /// Nothing else than `model`; writes from now on may be lost as `loss` says.
    pub(crate) fn certain(model: Model, loss: Loss) -> Self {
        Self { loss, model, ..Self::default() }
    }

    /// As it is, where damage of so many last writes of each session looks as if they had been cut off.
    pub(crate) fn with_tails_of(mut self, length: usize) -> Self {
        self.tails.length = length;
        self
    }

    /// As it is, of a store that was opened since: what is there, more than checksums say so of.
    pub(crate) fn opened_since(&self) -> Self {
        Self { tails: self.tails.opened(), ..self.clone() }
    }

    /// Nothing else than `model` from now on.
    pub(crate) fn settled_as(&self, model: Model) -> Self {
        let mut unchecked = self.unchecked.clone();
        self.pending().for_each(|write| unchecked.add(&write));
        let mut tails = self.tails.clone();
        // It may have happened.
        let in_flight = self.in_flight();
        in_flight.iter().flat_map(Writes::all).for_each(|write| tails.push(write));
        Self { unchecked, tails: tails.opened(), ..Self::certain(model, self.loss) }
    }

    /// Whether a damaged store that nothing else may be missing from may hold `found` without complaint: what is
    /// expected, but for a word that is updated in place, and for what looks as if it had been cut off.
    pub(crate) fn is_unnoticed(&self, key: u64, found: Option<&Value>) -> bool {
        if self.tails.explain(key, found) {
            return true;
        }
        match (self.model.get(key), found) {
            (Some(expected), Some(found)) => {
                let mut words = expected.iter().zip(found).enumerate();
                words.all(|(word, (expected, found))| {
                    expected == found || self.unchecked.has(key, word)
                })
            }
            (expected, found) => expected.is_none() && found.is_none(),
        }
    }

    /// What the store holds for certain.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Whether the store holds what the model holds and nothing else.
    pub(crate) fn is_certain(&self) -> bool {
        self.recent.is_empty() && self.in_flight().is_none()
    }

    /// Whether the last write may be in a log alone.
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged
    }

    /// An operation begins.
    pub(crate) fn begin(&mut self, effect: Effect) {
        self.in_flight = (effect != Effect::Nothing).then_some(effect);
    }

    /// The write that has begun happens, whatever crash comes now. One that is refused in the end may happen.
    pub(crate) fn decide(&mut self) {
        if let Some(Effect::Write(_)) = self.in_flight {
            self.acknowledge();
            self.is_logged = true;
        }
    }

    /// The operation that has begun is acknowledged.
    pub(crate) fn acknowledge(&mut self) {
        self.is_logged = false;
        match self.in_flight.take() {
            Some(Effect::Write(writes)) => {
                writes.all().iter().for_each(|write| self.tails.push(write));
                self.recent.push(Recent { writes, may_be_missing: true });
                self.limit(self.loss.group(writes.session()));
            }
            Some(Effect::Settle) => self.recent.iter_mut().for_each(Recent::settle),
            Some(Effect::EndSession(session)) => self.end_session(session),
            Some(Effect::Nothing | Effect::Refused(_)) | None => {}
        }
        let certain = self.recent.iter().take_while(|recent| !recent.may_be_missing).count();
        for recent in self.recent.drain(..certain) {
            for write in recent.writes.all() {
                self.unchecked.set(write, self.model.get(write.key).as_ref());
                self.model.set(write.key, write.value);
            }
        }
    }

    /// Only the last so many writes of a group may be missing.
    fn limit(&mut self, group: usize) {
        let loss = self.loss;
        let of_group = |recent: &&mut Recent| {
            recent.may_be_missing && loss.group(recent.writes.session()) == group
        };
        let writes = self.recent.iter_mut().rev().filter(of_group);
        writes.skip(loss.operations_max()).for_each(Recent::settle);
    }

    /// A session that ends writes its batch; a window of the whole store stays open.
    fn end_session(&mut self, session: usize) {
        if let Loss::SuffixOfEachSession { .. } = self.loss {
            let own = self.recent.iter_mut().filter(|recent| recent.writes.session() == session);
            own.for_each(Recent::settle);
        }
    }

    /// Whether a store may hold `found`.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub(crate) fn judge(&self, found: &[Option<Value>]) -> Result<(), String> {
        if self.is_certain() && self.model.values() == found || self.explains(found) {
            return Ok(());
        }
        let keys = (0..).zip(found);
        match keys.clone().find(|(key, found)| !self.allows(*key, found.as_ref())) {
            Some((key, found)) => Err(format!(
                "key {key} holds {}, but may hold only {}",
                text(found.as_ref()),
                self.text(key)
            )),
            None => Err(format!(
                "each key holds what it may hold, but not together: {}",
                keys.map(|(_, found)| text(found.as_ref())).collect::<Vec<_>>().join(", ")
            )),
        }
    }

    /// Writes that may be missing, and those in flight: each as it happens, as one.
    fn uncertain(&self) -> impl Iterator<Item = Writes> {
        let recent = self.recent.iter().filter(|recent| recent.may_be_missing);
        recent.map(|recent| recent.writes).chain(self.in_flight())
    }

    fn in_flight(&self) -> Option<Writes> {
        match self.in_flight {
            Some(Effect::Write(writes) | Effect::Refused(writes)) => Some(writes),
            _ => None,
        }
    }

    /// Writes that are not in the model, one by one.
    fn pending(&self) -> impl Iterator<Item = Write> {
        let recent = self.recent.iter().map(|recent| recent.writes);
        recent.chain(self.in_flight()).flat_map(|writes| writes.all().to_vec())
    }

    /// Whether some of the uncertain writes, of each group the first ones, give what was found.
    fn explains(&self, found: &[Option<Value>]) -> bool {
        let mut lengths: Vec<(usize, u64)> = Vec::new();
        for group in self.uncertain().map(|writes| self.loss.group(writes.session())) {
            match lengths.iter_mut().find(|(of, _)| *of == group) {
                Some((_, length)) => *length += 1,
                None => lengths.push((group, 1)),
            }
        }
        let ways: u64 = lengths.iter().map(|(_, length)| length + 1).product();
        (0..ways).any(|mut way| {
            let mut left: Vec<(usize, u64)> = Vec::new();
            for (group, length) in &lengths {
                left.push((*group, way % (length + 1)));
                way /= length + 1;
            }
            self.after(left).values() == found
        })
    }

    /// What the store holds when of the uncertain writes of each group so many are left, the first ones.
    fn after(&self, mut left: Vec<(usize, u64)>) -> Model {
        let mut model = self.model.clone();
        let in_flight = self.in_flight().map(|writes| Recent { writes, may_be_missing: true });
        for recent in self.recent.iter().copied().chain(in_flight) {
            let group = self.loss.group(recent.writes.session());
            let mut left = left.iter_mut().filter(|(of, left)| *of == group && *left > 0);
            let is_left =
                !recent.may_be_missing || left.next().map(|(_, left)| *left -= 1).is_some();
            if is_left {
                model.apply(&recent.writes);
            }
        }
        model
    }

    /// Whether `found` may be there under `key`, whatever the other keys hold.
    fn allows(&self, key: u64, found: Option<&Value>) -> bool {
        let mut of_key = self.pending().filter(|write| write.key == key);
        self.model.get(key).as_ref() == found || of_key.any(|write| write.value.as_ref() == found)
    }

    /// What may be there, for people.
    pub(crate) fn text(&self, key: u64) -> String {
        let of_key = |write: &Write| write.key == key;
        let all = |writes: Writes| writes.all().to_vec();
        let later = self.recent.iter().flat_map(|recent| all(recent.writes)).filter(of_key);
        let in_flight = self.in_flight().into_iter().flat_map(all).filter(of_key);
        let later = later.map(|write| (write, "a later write"));
        let in_flight = in_flight.map(|write| (write, "the operation in flight"));
        let others = later
            .chain(in_flight)
            .map(|(write, of)| format!("{} of {of}", text(write.value.as_ref())));
        let all: Vec<_> = [text(self.model.get(key).as_ref())].into_iter().chain(others).collect();
        all.join(", or ")
    }

    /// A hash that equal expectations share.
    pub(crate) fn hash(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.model.values().hash(&mut hasher);
        // One write by itself as it always was: kept cases go by it.
        let in_flight = self.in_flight();
        let writes = in_flight.as_ref().map_or(&[][..], Writes::all);
        let hashed = |write: &Write| Some((write.key, write.value));
        writes.first().and_then(hashed).hash(&mut hasher);
        writes.iter().skip(1).map(hashed).for_each(|write| write.hash(&mut hasher));
        // As it was before any write could be missing: kept cases go by it.
        if !self.recent.is_empty() {
            self.recent.hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Recent {
    fn settle(&mut self) {
        self.may_be_missing = false;
    }
}
