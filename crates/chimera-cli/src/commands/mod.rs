//! The commands, one module for each.

pub(crate) mod backup;
pub(crate) mod batch;
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
pub(crate) mod man;
pub(crate) mod put;
pub(crate) mod scan;
pub(crate) mod stats;
pub(crate) mod update_u64;

use std::path::PathBuf;

use chimera::Losses;

use crate::arguments::Global;
use crate::failure::Failure;
use crate::output::Output;
use crate::text::Forms;

/// What every command works with.
pub(crate) struct Context {
    pub(crate) json: bool,
    pub(crate) verbose: bool,
    /// Where the store is.
    pub(crate) path: PathBuf,
    /// Whether the command line says so.
    pub(crate) path_is_given: bool,
    /// How keys and values are given and shown.
    pub(crate) forms: Forms,
    pub(crate) output: Output,
}

impl Context {
    pub(crate) fn new(global: &Global, path_is_given: bool) -> Self {
        Self {
            json: global.json,
            verbose: global.verbose > 0,
            path: global.path.clone(),
            path_is_given,
            forms: Forms::new(global.hex || global.hex_key, global.hex || global.hex_value),
            output: Output::new(),
        }
    }

    /// That there is no such key, in a store with these losses.
    pub(crate) fn key_not_found(&self, key: &[u8], losses: Losses) -> Failure {
        let key = self.forms.key.show_in_line(key);
        if losses.is_empty() {
            Failure::KeyNotFound(key)
        } else {
            Failure::NotInWhatIsLeft { key, losses }
        }
    }
}
