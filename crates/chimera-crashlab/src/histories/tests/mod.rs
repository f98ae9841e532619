mod brute_force;
mod known;
mod losses;
mod random;

use super::{History, Operation, Outcome};

/// A history of one key, written down step by step.
#[derive(Default)]
struct Written(History);

impl Written {
    fn begins(mut self, thread: u32, operation: Operation) -> Self {
        self.0.invoke(thread, 1, operation);
        self
    }

    fn ends(mut self, thread: u32, outcome: Outcome) -> Self {
        self.0.returns(thread, outcome);
        self
    }

    fn does(self, thread: u32, operation: Operation, outcome: Outcome) -> Self {
        self.begins(thread, operation).ends(thread, outcome)
    }

    fn puts(self, thread: u32, value: u64, was_new: bool) -> Self {
        self.does(thread, Operation::Put(value), Outcome::WasNew(was_new))
    }

    fn reads(self, thread: u32, found: Option<u64>) -> Self {
        self.does(thread, Operation::Get, Outcome::Found(found))
    }

    fn crashes(mut self) -> Self {
        self.0.crash();
        self
    }

    #[track_caller]
    fn must_be_good(self) {
        if let Err(violation) = self.0.check() {
            panic!("{violation}");
        }
    }

    /// The history is bad, and its last event is what shows it.
    #[track_caller]
    fn must_be_bad(self) {
        let violation = self.0.check().expect_err("a history that nothing explains");
        assert_eq!(violation.events, self.0.events(), "{violation}");
    }
}
