//! [`Campaign`]: many cases, by number.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use chimera::EngineKind;
use chimera_pmem::Hardware;

use super::harm::{Act, Harm, Kind, Unit};
use super::life::Subject;
use super::look::{Seen, Way, look};
use super::places::Places;
use super::tally::{Tally, Violation};
use super::verdict::{Verdict, judge};
use crate::chance::Chance;
use crate::explore::quiet;
use crate::file_memory::FileMemory;
use crate::subject::Failure;

/// Cases of one store. Number 0 of them is the store without damage.
pub(crate) const CASES_PER_STORE: u64 = 64;

/// Many cases. Everything random follows from the seed and the number of a case.
pub(crate) struct Campaign<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) seed: u64,
    pub(crate) cases: std::ops::Range<u64>,
    pub(crate) threads: u64,
    /// The name of a check that damaged stores leave out: a fault that must be found.
    pub(crate) skipped: Option<&'static str>,
    /// Called now and then with the number of cases that are done.
    pub(crate) progress: &'a (dyn Fn(u64) + Sync),
}

impl Campaign<'_> {
    /// Runs all cases.
    pub(crate) fn run(&self) -> Tally {
        let stores = self.cases.start / CASES_PER_STORE..self.cases.end.div_ceil(CASES_PER_STORE);
        let (next, done) = (AtomicU64::new(stores.start), AtomicU64::new(0));
        let all = Mutex::new(Tally::default());
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    loop {
                        let store = next.fetch_add(1, Ordering::Relaxed);
                        if store >= stores.end {
                            return;
                        }
                        let tally = self.store(store);
                        let cases = tally.sum().cases + tally.unchanged;
                        all.lock().unwrap_or_else(PoisonError::into_inner).add(tally);
                        (self.progress)(done.fetch_add(cases, Ordering::Relaxed) + cases);
                    }
                });
            }
        });
        all.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seed of a store, or of a case.
    fn seed(&self, of: u64, number: u64) -> u64 {
        Chance::new(self.seed ^ Chance::new(of).next() ^ number.wrapping_mul(0x9e37_79b9)).next()
    }

    /// The cases of one store.
    fn store(&self, number: u64) -> Tally {
        let mut tally = Tally { stores: 1, ..Tally::default() };
        let first = number * CASES_PER_STORE;
        let made = quiet::catch(|| {
            Subject::new(self.engine, self.seed(1, number)).map_err(Failure::Wrong)
        });
        let subject = match made {
            Ok(subject) => subject,
            Err(failure) => {
                let text = format!("before anything was damaged: {failure}");
                return broken(tally, first, &text);
            }
        };
        let keys: Vec<_> = subject.keys().collect();
        let places = Places::of(&subject.image);
        let cases = first.max(self.cases.start)..(first + CASES_PER_STORE).min(self.cases.end);
        for case in cases {
            let mut chance = Chance::new(self.seed(2, case));
            let harm = match case - first {
                0 => Some(Harm::none(&subject)),
                _ => Harm::random(&subject, &places, &mut chance),
            };
            let Some(harm) = harm else {
                tally.unchanged += 1;
                continue;
            };
            let verdict = self.try_all(&subject, &harm, &keys, &mut chance);
            tally.note(harm.structure, harm.kind, &verdict);
            if let Verdict::Violation(what) = verdict {
                let state = if subject.is_closed { "closed" } else { "killed" };
                let text = format!("{state}, {:?}; {}: {what}", subject.place, harm.place);
                let (structure, kind) = (harm.structure, harm.kind);
                tally.violations.push(Violation { case, structure, kind, text });
            }
        }
        tally
    }

    /// Opens the store in each way; the worst that came of one.
    fn try_all(
        &self,
        subject: &Subject,
        harm: &Harm,
        keys: &[Vec<u8>],
        chance: &mut Chance,
    ) -> Verdict {
        let writing = if chance.below(4) == 0 { Way::Used } else { Way::Writing };
        let salvage = (chance.below(4) == 0).then_some(Way::Salvage);
        let mut worst = Verdict::Unharmed;
        for way in [Some(Way::ReadOnly), Some(writing), salvage].into_iter().flatten() {
            let seen = quiet::catch(|| Ok(self.open(subject, harm, way, keys)));
            let verdict = match seen {
                Ok(seen) => judge(subject, harm, way, &seen),
                Err(failure) => Verdict::Violation(format!("{failure} ({way:?})")),
            };
            worst = match (worst, verdict) {
                (violation @ Verdict::Violation(_), _) => return violation,
                (worst, Verdict::Unharmed) => worst,
                (_, violation @ Verdict::Violation(_)) => violation,
                // What one way does not notice counts.
                (allowed @ Verdict::Allowed(_), _) => allowed,
                (_, verdict) => verdict,
            };
        }
        match (&worst, harm.structure) {
            (Verdict::Noticed(step), "nothing") => {
                Verdict::Violation(format!("nothing was damaged, and {step:?} says otherwise"))
            }
            _ => worst,
        }
    }

    fn open(&self, subject: &Subject, harm: &Harm, way: Way, keys: &[Vec<u8>]) -> Seen {
        // Another process than all of those that made the store.
        let mut machine = subject.place.machine(&harm.image, 8);
        machine.skipped = self.skipped;
        if subject.place.has_journal() {
            look::<Hardware>(&machine, &subject.options, way, keys)
        } else {
            look::<FileMemory>(&machine, &subject.options, way, keys)
        }
    }
}

fn broken(mut tally: Tally, case: u64, text: &str) -> Tally {
    let verdict = Verdict::Violation(text.to_owned());
    let kind = Kind { unit: Unit::Nothing, act: Act::Kept };
    tally.note("nothing", kind, &verdict);
    tally.violations.push(Violation { case, structure: "nothing", kind, text: text.to_owned() });
    tally
}
