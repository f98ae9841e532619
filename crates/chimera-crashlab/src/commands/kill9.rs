//! `kill9`.

use super::{Common, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments, _common: &Common) -> Outcome {
    Err("not yet".into())
}
