//! The commands, one module for each.

pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod completion;
pub(crate) mod delete;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod list_keys;
pub(crate) mod listing;
pub(crate) mod put;
pub(crate) mod scan;
pub(crate) mod stats;
pub(crate) mod update_u64;

use chimera::Losses;

use crate::arguments::Global;
use crate::failure::Failure;
use crate::output::Output;
use crate::text::Form;

/// What stands for standard input and output in place of a file.
pub(crate) const STANDARD_STREAM: &str = "-";

/// What every command works with.
pub(crate) struct Context {
    pub(crate) json: bool,
    pub(crate) verbose: bool,
    /// How keys and values are given and shown.
    pub(crate) form: Form,
    pub(crate) output: Output,
}

impl Context {
    pub(crate) fn new(global: &Global) -> Self {
        Self {
            json: global.json,
            verbose: global.verbose > 0,
            form: if global.hex { Form::Hex } else { Form::Text },
            output: Output::new(),
        }
    }

    /// That there is no such key, in a store with these losses.
    pub(crate) fn key_not_found(&self, key: &[u8], losses: Losses) -> Failure {
        let key = self.form.show_in_line(key);
        if losses.is_empty() {
            Failure::KeyNotFound(key)
        } else {
            Failure::NotInWhatIsLeft { key, losses }
        }
    }
}
